//! A receiver's reports of CE marks by accurate ECN (RFC 9768).
//!
//! The three flags AE, CWR and ECE of an acknowledgement are a counter of marked packets modulo 8, which begins at 5
//! (§3.2.1). The number of new ones is the difference to the last value; where one acknowledgement covers eight
//! segments and more, the AccECN option's bytes give the number of wrap-arounds (§3.2.2.5). Only acknowledgements that
//! acknowledge data count: others may be older than the one before, and the handshake's third segment has another
//! meaning (§3.2.2.1).

use dragstrip_capture::read::Packet;
use dragstrip_packet::EcnBytes;

/// Initial value of the counter.
const BEGIN: u8 = 5;

/// The marks reported to one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback {
    /// The last counter; `None`: no handshake in the capture, and none so far.
    last: Option<u8>,
    last_bytes: Option<u32>,
    /// Marked packets so far.
    pub packets: u64,
}

/// The counter in a header's flags.
pub fn ace(flags: u16) -> u8 {
    (flags >> 6 & 7) as u8
}

impl Feedback {
    /// From the handshake on.
    pub fn begin() -> Self {
        Self { last: Some(BEGIN), last_bytes: Some(0), packets: 0 }
    }

    /// An acknowledgement of `bytes` new bytes in segments of `full`; how many marked packets it reports.
    pub fn take(&mut self, packet: &Packet, bytes: i64, full: u32) -> u64 {
        let counter = ace(packet.flags);
        let full_option =
            packet.ecn_bytes.filter(|option| usize::from(option.fields) > EcnBytes::CE);
        let ce_bytes = full_option.map(|option| option.counters[EcnBytes::CE]);
        let last = self.last.replace(counter);
        // Bytes that an acknowledgement without the option reports are included in the next one's: then they are not
        // usable.
        let bytes_before = std::mem::replace(&mut self.last_bytes, ce_bytes);
        let Some(last) = last else { return 0 };
        let least = u64::from(counter.wrapping_sub(last) & 7);
        let segments = bytes.max(0).cast_unsigned().div_ceil(u64::from(full.max(1)));
        let mut new = least;
        if segments >= 8
            && let (Some(before), Some(now)) = (bytes_before, ce_bytes)
        {
            let marked = u64::from(now.wrapping_sub(before) & EcnBytes::MASK);
            let marked = marked.div_ceil(u64::from(full.max(1))).min(segments);
            new += (marked.saturating_sub(least) + 4) / 8 * 8;
        }
        self.packets += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledgement(counter: u64, ce_bytes: Option<u32>) -> Packet {
        let option =
            |ce| EcnBytes { ect1_first: true, fields: 3, counters: [1, ce & EcnBytes::MASK, 1] };
        let flags = 16 | ((counter & 7) as u16) << 6;
        Packet { flags, ecn_bytes: ce_bytes.map(option), ..Packet::default() }
    }

    #[test]
    fn differences_of_the_counter_are_marks() {
        let mut feedback = Feedback::begin();
        let new: Vec<u64> = [5, 5, 6, 8, 15, 15]
            .iter()
            .map(|total| feedback.take(&acknowledgement(*total, None), 2_000, 1_000))
            .collect();
        assert_eq!((new, feedback.packets), (vec![0, 0, 1, 2, 7, 0], 10));
    }

    #[test]
    fn bytes_tell_how_often_the_counter_went_around() {
        for marked in 0..=40_u32 {
            let mut feedback = Feedback::begin();
            let packet = acknowledgement(5 + u64::from(marked), Some(marked * 1_000));
            assert_eq!(feedback.take(&packet, 40_000, 1_000), u64::from(marked), "{marked}");
        }
        let mut feedback = Feedback::begin();
        let around = EcnBytes::MASK - 499;
        feedback.take(&acknowledgement(5, Some(around)), 1_000, 1_000);
        let packet = acknowledgement(5 + 16, Some(around.wrapping_add(16_000)));
        assert_eq!(feedback.take(&packet, 16_000, 1_000), 16, "the counter of bytes wraps");
    }

    #[test]
    fn without_the_handshake_the_first_counter_is_the_beginning() {
        let mut feedback = Feedback::default();
        assert_eq!(feedback.take(&acknowledgement(3, None), 1_000, 1_000), 0);
        assert_eq!(feedback.take(&acknowledgement(4, None), 1_000, 1_000), 1);
    }
}
