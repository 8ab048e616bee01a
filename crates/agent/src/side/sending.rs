//! The end of a TCP connection that sends the data: its kernel's state, and the RTTs seen at its host.

use super::info::{Bytes, CWR, Info, longest_limit};
use super::message::Sent;
use super::tap::{Matcher, TappedPacket};
use crate::fault::Fault;
use dragstrip_recording::Samples;
use std::os::fd::OwnedFd;

/// True when something may pace a flow: its algorithm (`sk_pacing_status`), or a discipline at its host's egress
/// (`fq_classify`).
pub fn may_be_paced(cc: &str, pacing_queue: bool) -> bool {
    pacing_queue || dragstrip_cc::paces(cc)
}

/// State of a sending end.
pub struct Sending {
    /// This end opened the connection: the kernel counts its SYN as a byte.
    opened: bool,
    /// Something may pace it; if not, data that wait while the window has room wait for the host's own queue.
    may_be_paced: bool,
    info: Info,
    matcher: Matcher,
    rtt_ns: Option<i64>,
    /// Arrival time of the last ACK that no sample has covered yet.
    acked_ns: Option<i64>,
    /// ACKs that came together with a later one and have no separate sample.
    acks_together: u64,
    /// Start of the interval, and `Info::busy_us` at that time.
    interval: (i64, [u64; 3]),
    /// Rows of `samples` since then, with what was read for each: the interval's limit is known at its end.
    rows: Vec<(usize, Info)>,
    /// Beginnings of CWR, and of any reduction, that samples saw.
    seen_cwr: u64,
    seen_reductions: u64,
}

impl Sending {
    pub fn new(opened: bool, may_be_paced: bool, start_ns: i64) -> Self {
        Self {
            opened,
            may_be_paced,
            info: Info::default(),
            matcher: Matcher::default(),
            rtt_ns: None,
            acked_ns: None,
            acks_together: 0,
            interval: (start_ns, [0; 3]),
            rows: Vec::new(),
            seen_cwr: 0,
            seen_reductions: 0,
        }
    }

    /// A packet at this host's interfaces, with the ports that its data leave and its ACKs come from. An ACK
    /// may give an RTT: (time in the run, RTT).
    pub fn see(
        &mut self,
        packet: &TappedPacket,
        data: u16,
        acks: u16,
        start: i64,
    ) -> Option<(i64, i64)> {
        if packet.outgoing && packet.source_port == data && packet.payload > 0 {
            self.matcher.record_sent(packet.time, packet.sequence, packet.payload);
        } else if !packet.outgoing && packet.source_port == acks && packet.target_port == data {
            if packet.payload == 0 {
                self.acks_together += u64::from(self.acked_ns.is_some());
                self.acked_ns = Some(packet.time - start);
            }
            let rtt =
                self.matcher.acknowledged(packet.time, packet.acknowledged, &packet.sacked)?;
            self.rtt_ns = Some(rtt);
            return Some((packet.time - start, rtt));
        }
        None
    }

    /// Reads the connection's state from the kernel.
    pub fn read(&mut self, socket: Option<&OwnedFd>) -> Result<(), Fault> {
        if let Some(socket) = socket {
            let info = Info::read(socket)?;
            let starts_reduction = info.state >= CWR && self.info.state < CWR;
            self.seen_reductions += u64::from(starts_reduction);
            self.seen_cwr += u64::from(starts_reduction && info.state == CWR);
            self.info = info;
        }
        Ok(())
    }

    /// Rows of this interval that wait for what held the sender back.
    pub fn has_open_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Takes the arrival time of the last ACK that no sample has covered yet.
    pub fn take_acked(&mut self) -> Option<i64> {
        self.acked_ns.take()
    }

    /// A row of `samples` from what was read last.
    pub fn sample(&mut self, flow: usize, time_ns: i64, written_bytes: u64, table: &mut Samples) {
        let info = &self.info;
        let bytes = Bytes { acked: self.bytes_acked(), written: written_bytes };
        let state = table.state.word(info.state_name());
        let row = info.row(time_ns, flow as u32, self.rtt_ns, bytes, state);
        self.rows.push((table.push(row), info.clone()));
    }

    /// Says of an interval's rows what held the sender back longest in it, by the kernel's own clocks.
    pub fn end_interval(&mut self, now_ns: i64, table: &mut Samples) {
        let (begun_ns, before) = std::mem::replace(&mut self.interval, (now_ns, self.info.busy_us));
        let interval_us = (now_ns - begun_ns) as u64 / 1_000;
        let longest = longest_limit(before, self.info.busy_us, interval_us);
        for (row, info) in self.rows.drain(..) {
            let limit = table.limit.word(info.limit(longest, self.may_be_paced));
            table.limit.set(row, limit);
        }
    }

    fn bytes_acked(&self) -> u64 {
        self.info.bytes_acked.saturating_sub(u64::from(self.opened))
    }

    /// Statistics for the flow's row.
    pub fn report(&self) -> Sent {
        Sent {
            bytes_acked: self.bytes_acked(),
            segments: self.info.segments,
            retransmits: self.info.retransmits,
            ecn: self.info.ecn,
            seen_cwr: self.seen_cwr,
            seen_reductions: self.seen_reductions,
            acks_together: self.acks_together,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bbr_fq_and_strangers_pace() {
        assert!(!may_be_paced("cubic", false));
        assert!(may_be_paced("cubic", true));
        assert!(may_be_paced("bbr", false));
        assert!(!may_be_paced("exp", false));
        assert!(may_be_paced("an_algorithm_from_elsewhere", false));
    }
}
