//! Counts and state of an endpoint, for recorders.

use super::{Endpoint, Phase};
use crate::ecn::Agreed;
use crate::snapshot::{LimitedBy, Snapshot};
use dragstrip_cc::CongestionControl;
use dragstrip_cc::program::Fault;

impl Endpoint {
    /// RTT sample of the last ACK processed, ns; `None` if it gave none.
    #[inline]
    #[must_use]
    pub fn new_rtt_ns(&self) -> Option<u64> {
        self.sender.new_rtt_us().map(|us| u64::from(us) * 1_000)
    }

    /// ECN was agreed on.
    #[must_use]
    pub fn ecn_negotiated(&self) -> bool {
        self.ecn != Agreed::None && matches!(self.phase, Phase::Established | Phase::Reset)
    }

    /// Data segments sent, retransmissions included.
    #[must_use]
    pub fn segments_sent(&self) -> u64 {
        self.sender.counters().segments_sent
    }

    /// Segments retransmitted.
    #[must_use]
    pub fn retransmits(&self) -> u64 {
        self.sender.counters().retransmits
    }

    /// Retransmission timeouts.
    #[must_use]
    pub fn rto_count(&self) -> u64 {
        self.sender.counters().rto_count
    }

    /// Window reductions begun (CWR, Recovery and Loss episodes).
    #[must_use]
    pub fn reductions(&self) -> u64 {
        self.sender.counters().reductions
    }

    /// Bytes cumulatively acknowledged.
    #[must_use]
    pub fn bytes_acked(&self) -> u64 {
        self.sender.view().snd_una
    }

    /// The algorithm's own quantities for the recording: name and value of each that is known now
    /// ([`CongestionControl::variables`]).
    pub fn variables(&self, tell: &mut dyn FnMut(&'static str, f64)) {
        self.sender.cc().variables(self.sender.view(), self.sender.window(), tell);
    }

    /// Returns the fault that has stopped the algorithm, if it is a program.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.sender.cc().fault()
    }

    /// Returns a recorder's snapshot of the sending half.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let sender = &self.sender;
        let (view, window) = (sender.view(), sender.window());
        let mss = u64::from(view.mss);
        let measured_ns = |us: u32| (us != u32::MAX && us > 0).then(|| u64::from(us) * 1_000);
        Snapshot {
            cwnd_bytes: u64::from(window.cwnd) * mss,
            ssthresh_bytes: (window.ssthresh < dragstrip_cc::Window::INFINITE)
                .then(|| u64::from(window.ssthresh) * mss),
            bytes_in_flight: u64::from(view.in_flight()) * mss,
            srtt_ns: (view.srtt_us_x8 > 0).then(|| u64::from(view.srtt_us_x8) * 125),
            rtt_ns: sender.last_rtt_us().map(|us| u64::from(us) * 1_000),
            min_rtt_ns: measured_ns(view.min_rtt_us),
            pacing_bps: (window.pacing_rate != u64::MAX)
                .then(|| window.pacing_rate.saturating_mul(8)),
            delivery_bps: sender.delivery_bps(),
            bytes_acked: view.snd_una,
            bytes_written: sender.bytes_written(),
            retransmits: sender.counters().retransmits,
            state: match view.state {
                dragstrip_cc::CaState::Open => sender.cc().phase(view, window),
                dragstrip_cc::CaState::Disorder => "disorder",
                dragstrip_cc::CaState::Cwr => "cwr",
                dragstrip_cc::CaState::Recovery => "recovery",
                dragstrip_cc::CaState::Loss => "loss",
            },
            reordering: sender.reordering(),
            segments_lost: view.lost_out,
            bytes_unsent: sender.bytes_written() - view.snd_nxt,
            limit: match self.phase {
                Phase::Closed | Phase::Handshake => LimitedBy::Handshake,
                Phase::Established | Phase::Reset => sender.limit(),
            },
        }
    }
}
