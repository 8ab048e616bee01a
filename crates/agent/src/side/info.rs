//! The recorded fields of TCP_INFO.

use crate::fault::Fault;
use crate::netlink::{long, word};
use crate::sys;
use dragstrip_recording::{SampleRow, Word};
use std::os::fd::OwnedFd;

/// The state `CWR` of `tcp_ca_state`; what is above it is a reduction too.
pub const CWR: u8 = 2;

/// The parts of TCP_INFO that are recorded (struct tcp_info, linux/tcp.h).
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// No connection exists yet.
    pub handshake: bool,
    pub state: u8,
    pub ecn: bool,
    pub mss: u64,
    pub cwnd: u64,
    pub ssthresh: Option<u64>,
    pub in_flight: u64,
    /// Bytes that wait to be sent for the first time.
    pub unsent: u64,
    pub srtt_us: u64,
    pub min_rtt_us: Option<u64>,
    pub pacing: Option<u64>,
    pub delivery: u64,
    pub bytes_acked: u64,
    pub retransmits: u64,
    pub segments: u64,
    /// Microseconds spent busy, limited by the receiver's window, limited by the send buffer.
    pub busy_us: [u64; 3],
}

impl Info {
    /// Data wait and yet less than two thirds of the window is in flight. A window that is too small for a burst is used
    /// up to two thirds (`tcp_tso_should_defer`, tcp_tso_win_divisor 3); the kernel does not say who paces, and the host's own
    /// queue holds data back likewise (`tcp_small_queue_check`).
    pub const fn is_paced(&self) -> bool {
        self.unsent > 0 && self.in_flight * 3 < self.cwnd * 2
    }

    pub fn read(fd: &OwnedFd) -> Result<Self, Fault> {
        let mut bytes = [0; 256];
        sys::get_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(Self::parse(&bytes))
    }

    /// The structure as the kernel gives it; what an older kernel lacks is 0.
    pub fn parse(bytes: &[u8]) -> Self {
        let word = |at| u64::from(word(bytes, at).unwrap_or_default());
        let long = |at| long(bytes, at).unwrap_or_default();
        let octet = |at: usize| bytes.get(at).copied().unwrap_or_default();
        const OPTION_ECN: u8 = 8;
        const SYN_SENT: u8 = 2;
        const SYN_RECV: u8 = 3;
        let infinite = |value: u64, limit: u64| (value < limit).then_some(value);
        Self {
            handshake: matches!(octet(0), SYN_SENT | SYN_RECV),
            state: octet(1),
            ecn: octet(5) & OPTION_ECN != 0,
            mss: word(16),
            cwnd: word(80),
            ssthresh: infinite(word(76), 0x7fff_ffff),
            in_flight: (word(24) + word(36)).saturating_sub(word(28) + word(32)),
            unsent: word(144),
            srtt_us: word(68),
            min_rtt_us: infinite(word(148), u64::from(u32::MAX)),
            pacing: infinite(long(104), u64::MAX),
            delivery: long(160),
            bytes_acked: long(120),
            retransmits: word(100),
            segments: word(156),
            busy_us: [long(168), long(176), long(184)],
        }
    }

    /// State of the sender, as `samples.state` has it.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            0 if self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh) => "slow_start",
            0 => "congestion_avoidance",
            1 => "disorder",
            CWR => "cwr",
            3 => "recovery",
            _ => "loss",
        }
    }

    /// A row of `samples`, whose limit is not known yet.
    pub fn row(
        &self,
        time_ns: i64,
        flow: u32,
        rtt_ns: Option<i64>,
        bytes: Bytes,
        state: Word,
    ) -> SampleRow {
        let positive = |value: u64| (value > 0).then_some(value as i64);
        SampleRow {
            time_ns,
            flow,
            cwnd_bytes: (self.cwnd * self.mss) as i64,
            ssthresh_bytes: self.ssthresh.map(|packets| (packets * self.mss) as i64),
            bytes_in_flight: (self.in_flight * self.mss) as i64,
            srtt_ns: positive(self.srtt_us * 1_000),
            rtt_ns,
            min_rtt_ns: self.min_rtt_us.map(|us| (us * 1_000) as i64),
            pacing_bps: self.pacing.map(|bytes| (bytes * 8) as i64),
            delivery_bps: positive(self.delivery * 8),
            bytes_acked: bytes.acked as i64,
            bytes_written: bytes.written as i64,
            retransmits: self.retransmits as i64,
            state,
            limit: Word::default(),
        }
    }

    /// Limit of the sender in an interval before this reading, if it may be paced.
    pub fn limit(&self, longest: &'static str, may_be_paced: bool) -> &'static str {
        if self.handshake {
            "handshake"
        } else if longest == "cwnd" && may_be_paced && self.is_paced() {
            "pacing"
        } else {
            longest
        }
    }
}

/// Bytes of a flow so far: acknowledged to the sender, and taken by its socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes {
    pub acked: u64,
    pub written: u64,
}

/// Limit that held a sender back longest in an interval, by the kernel's own clocks: `Info::busy_us` at its beginning and at its end.
pub fn longest_limit(before: [u64; 3], after: [u64; 3], interval_us: u64) -> &'static str {
    let grown = |index: usize| after[index].saturating_sub(before[index]);
    let (busy, rwnd, sndbuf) = (grown(0), grown(1), grown(2));
    let times_us = [
        ("cwnd", busy.saturating_sub(rwnd + sndbuf)),
        ("rwnd", rwnd),
        ("sndbuf", sndbuf),
        ("app", interval_us.saturating_sub(busy)),
    ];
    let longest = times_us.iter().rev().max_by_key(|(_, time)| *time);
    longest.map_or("cwnd", |(name, _)| *name)
}
