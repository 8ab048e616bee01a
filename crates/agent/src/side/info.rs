//! The recorded fields of TCP_INFO.

use crate::fault::Fault;
use crate::netlink::{long, word};
use crate::sys;
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
        let word = |at| u64::from(word(&bytes, at).unwrap_or_default());
        let long = |at| long(&bytes, at).unwrap_or_default();
        const OPTION_ECN: u8 = 8;
        const SYN_SENT: u8 = 2;
        const SYN_RECV: u8 = 3;
        let infinite = |value: u64, limit: u64| (value < limit).then_some(value);
        Ok(Self {
            handshake: matches!(bytes[0], SYN_SENT | SYN_RECV),
            state: bytes[1],
            ecn: bytes[5] & OPTION_ECN != 0,
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
        })
    }
}
