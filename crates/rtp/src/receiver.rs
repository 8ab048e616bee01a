//! The receiver: when it reports, and of which packets.

use crate::flight::{NEVER, Report};

/// Packets after which a report leaves (draft, section 5: "N = 16 has been tested").
const PACKETS: u64 = 16;
/// Longest time from an arrival to its report, ns (draft, section 5).
const INTERVAL_NS: u64 = 40_000_000;
/// Packets that a report spans at least (the authors' implementation), and at most.
const SPAN_MIN: u64 = 32;
const SPAN_MAX: u64 = 256;

/// Payload of UDP of a report: RTCP's header and the sender's SSRC, a stream's header, two bytes per packet up to a
/// whole word, the time (RFC 8888 §3.1).
const fn report_bytes(packets: u64) -> u16 {
    (8 + 8 + (2 * packets).next_multiple_of(4) + 4) as u16
}

/// The receiver of a video.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    highest: u64,
    /// Highest packet of the last report.
    reported: u64,
    unreported: u64,
    deadline_ns: u64,
}

impl Receiver {
    pub const fn new() -> Self {
        Self { highest: 0, reported: 0, unreported: 0, deadline_ns: NEVER }
    }

    pub const fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// A packet has come; true if a report is due at once.
    pub fn arrive(&mut self, now_ns: u64, number: u64, last: bool) -> bool {
        self.highest = self.highest.max(number);
        self.unreported += 1;
        self.deadline_ns = self.deadline_ns.min(now_ns + INTERVAL_NS);
        last || self.unreported >= PACKETS
    }

    /// The report that leaves now, and its size.
    pub fn report(&mut self, now_ns: u64) -> (Report, u16) {
        let end = self.highest;
        let since = (self.reported + 1).min(end.saturating_sub(SPAN_MIN - 1));
        let begin = since.max(end.saturating_sub(SPAN_MAX - 1)).max(1);
        self.reported = end;
        self.unreported = 0;
        self.deadline_ns = NEVER;
        (Report { begin, end, at_ns: now_ns }, report_bytes(end + 1 - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_size_of_rfc_8888() {
        // One packet: 4 + 4 + 4 + 4 + 4 + 4 bytes; 32 packets: 64 bytes of metrics.
        assert_eq!([1, 2, 32].map(report_bytes), [24, 24, 84]);
    }

    #[test]
    fn a_report_leaves_after_sixteen_packets_a_frame_or_forty_milliseconds() {
        let mut receiver = Receiver::new();
        let due: Vec<bool> =
            (1..=16).map(|number| receiver.arrive(number, number, false)).collect();
        assert_eq!(due.iter().filter(|is_due| **is_due).count(), 1);
        assert!(due[15]);
        let (report, bytes) = receiver.report(20);
        assert_eq!((report.begin, report.end, report.at_ns, bytes), (1, 16, 20, 52));
        assert_eq!(receiver.deadline_ns(), NEVER);
        assert!(!receiver.arrive(30, 17, false));
        assert_eq!(receiver.deadline_ns(), 30 + INTERVAL_NS);
        assert!(receiver.arrive(40, 118, true), "a frame's last packet");
        let (report, _) = receiver.report(40);
        assert_eq!((report.begin, report.end), (17, 118), "none is left out");
        receiver.arrive(50, 119, true);
        assert_eq!(receiver.report(50).0.begin, 119 - 31, "the last 32 again");
    }
}
