//! The contract between the endpoint and a congestion control: Linux's `tcp_congestion_ops`.

use crate::{CaState, CwndLimited, Window};
use dragstrip_units::{Duration, Instant};

/// Event other than an ACK (`tcp_ca_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// First transmission with nothing in flight (`CA_EVENT_TX_START`).
    TxStart,
    /// The window is restarted after an idle time (`CA_EVENT_CWND_RESTART`).
    CwndRestart,
    /// A reduction has ended and `cwnd` has been set to `ssthresh` (`CA_EVENT_COMPLETE_CWR`).
    CompleteCwr,
    /// A retransmission timeout was entered (`CA_EVENT_LOSS`).
    Loss,
    /// A tail loss probe has repaired a loss that nothing else showed (`CA_EVENT_TLP_RECOVERY` of Google's v3 branch);
    /// comes before the reduction.
    TlpRecovery,
    /// A data segment without a mark has arrived at this host (`CA_EVENT_ECN_NO_CE`). Like the next, only for an
    /// algorithm whose row asks for another feedback than the classic one ([`EcnMode`](crate::EcnMode)).
    EcnNoCe,
    /// A marked data segment has arrived at this host (`CA_EVENT_ECN_IS_CE`).
    EcnIsCe,
}

/// Layer that spaces the packets out (`sk_pacing_status`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingStatus {
    /// Nobody: packets leave as the window allows. The pacing rate is still computed.
    #[default]
    None,
    /// The endpoint itself, because the algorithm asked for it.
    Needed,
    /// An `fq` queue discipline at the sender.
    Fq,
}

/// RTT information in one ACK (`struct ack_sample`).
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Packets newly acknowledged, cumulatively or selectively.
    pub packets: u32,
    /// RTT of the most recently sent of them that was never retransmitted, in µs.
    pub rtt_us: Option<u32>,
    /// Packets delivered since the acknowledged one was sent: what was in flight then, less losses.
    pub in_flight: u32,
}

/// Kind of an ACK (`CA_ACK_*`), and its marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckEvent {
    /// It missed header prediction: SACK blocks, ECE or CWR, another window than before, or out of order
    /// (`CA_ACK_SLOWPATH`).
    pub slow_path: bool,
    /// It moved the receiver's window (`CA_ACK_WIN_UPDATE`).
    pub window_update: bool,
    /// It carries an ECN echo (`CA_ACK_ECE`).
    pub ece: bool,
    /// Packets that it (S)ACKs.
    pub newly_delivered: u32,
    /// Newly delivered packets reported as marked. By a classic or a DCTCP echo: all or none.
    pub newly_marked: u32,
}

/// A delivery-rate sample (`struct rate_sample`; draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// `delivered` counter when the sampled packet was sent.
    pub prior_delivered: u64,
    /// Packets delivered over the interval; `None` when the sample is invalid.
    pub delivered: Option<u32>,
    /// The longer of the send and the ACK interval, µs; 0 when the sample is invalid.
    pub interval_us: u64,
    /// RTT of this ACK in µs.
    pub rtt_us: Option<u32>,
    /// Packets newly marked lost while this ACK was processed.
    pub losses: u32,
    /// Packets newly acknowledged or SACKed by this ACK.
    pub acked_sacked: u32,
    /// Packets of `delivered` reported as marked (`delivered_ce`).
    pub delivered_ce: u32,
    /// Packets of `acked_sacked` reported as marked: the increase of the connection's `delivered_ce`.
    pub newly_marked: u32,
    /// The ACK carries an ECN echo (`is_ece`).
    pub is_ece: bool,
    /// Packets in flight before this ACK.
    pub prior_in_flight: u32,
    /// Packets in flight when the sampled packet had been sent, itself included (`tx_in_flight` of Google's v3 branch). 0
    /// unless the algorithm asks for it ([`CongestionControl::wants_flights`]).
    pub tx_in_flight: u32,
    /// Packets marked lost since the sampled packet was sent (`lost` of that branch). As above.
    pub lost: u32,
    /// The sampled packet was sent while the application, not the window, was the limit.
    pub is_app_limited: bool,
    /// The sampled packet was a retransmission.
    pub is_retrans: bool,
    /// The ACK may have been delayed by the receiver.
    pub is_ack_delayed: bool,
}

/// A packet that has just been marked lost, as it was sent (the `tx` part of `tcp_skb_cb` in Google's v3 branch).
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Packets in flight when it had been sent, itself included.
    pub tx_in_flight: u32,
    /// Packets marked lost since it was sent, itself included.
    pub lost: u32,
    /// It was sent while the application, not the window, was the limit.
    pub is_app_limited: bool,
}

/// The endpoint's state as an algorithm sees it: the read-only part of `tcp_sock`.
///
/// Sequence positions are bytes since the start of the connection and do not wrap.
#[derive(Clone, Debug)]
#[repr(C)] // in the order of use: with many connections a packet costs the cache lines that it touches
pub struct View {
    /// The time of the hook.
    pub now: Instant,
    /// Next byte to send.
    pub snd_nxt: u64,
    /// Smoothed RTT in 1/8 µs (`srtt_us`); 0 before the first sample.
    pub srtt_us_x8: u32,
    /// Payload bytes of a full segment (`mss_cache`).
    pub mss: u32,
    /// First unacknowledged byte.
    pub snd_una: u64,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Packets of `packets_out` that are SACKed.
    pub sacked_out: u32,
    /// Packets of `packets_out` that are marked lost.
    pub lost_out: u32,
    /// Packets of `packets_out` that are retransmitted and not yet (S)ACKed.
    pub retrans_out: u32,
    /// Packets delivered so far (`delivered`).
    pub delivered: u64,
    /// Time of the last change of `delivered`.
    pub delivered_at: Instant,
    /// `delivered` + in flight at the moment the application ran dry; 0 when it has not.
    pub app_limited: u64,
    /// Time of the last data segment's transmission (`lsndtime`).
    pub last_data_sent: Instant,
    /// Departure time of the last paced packet (`tcp_wstamp_ns`); at most `now` when unpaced.
    pub departure: Instant,
    /// Timestamps of the segment in hand, or of the last one (`rx_opt.rcv_tsval`, `rx_opt.rcv_tsecr`); none where they were not agreed
    /// on.
    pub stamps: Option<Stamps>,
    /// Windowed minimum RTT in µs; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Packets in flight before this ACK ([`CwndLimited::WithinBurst`] judges by it).
    pub prior_in_flight: u32,
    /// Largest `packets_out` in the current window's round (`max_packets_out`).
    pub max_packets_out: u32,
    /// Kernel ticks per second of this host.
    pub hz: u32,
    /// True when the last transmissions were held back by `cwnd` (`is_cwnd_limited`).
    pub is_cwnd_limited: bool,
    /// Both ends agreed on ECN (`TCP_ECN_OK`).
    pub ecn: bool,
    /// Recovery state before the hook.
    pub state: CaState,
    /// Layer that paces.
    pub pacing_status: PacingStatus,
    /// log2 of the fraction of a second that one burst may hold (`sk_pacing_shift`, 10 ≈ 1 ms).
    pub pacing_shift: u8,
    /// Criterion for a used window.
    pub limited: CwndLimited,
    /// Packets marked lost so far (`lost`).
    pub lost: u64,
    /// Delivered packets reported as marked (`delivered_ce`).
    pub delivered_ce: u64,
    /// `cwnd` when the current reduction began; in [`undo_cwnd`](CongestionControl::undo_cwnd) what the kernel goes
    /// back to (2.6 does not remember the window, and doubles the threshold).
    pub prior_cwnd: u32,
    /// Largest burst the host builds, bytes (`sk_gso_max_size`; 65536 − headers).
    pub gso_max_bytes: u32,
    /// Initial window of the stack profile, packets.
    pub initial_cwnd: u32,
    /// Packets that may leave at once in a dubious situation (2.6.27 `tcp_max_burst`: `reordering`).
    pub max_burst: u32,
    /// Segments of an ACK that count for growth at most (FreeBSD's `abc_l_var`); 0: bytes are not counted (RFC 3465 off).
    pub abc_limit: u32,
}

/// A segment's timestamps (RFC 7323 section 3), ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The peer's clock, which begins at 0 here; in a kernel at a random number for each connection.
    pub val: u32,
    /// This host's clock, as it was sent.
    pub ecr: u32,
}

impl View {
    /// The view of a connection that has just been opened, on a host without pacing: kernel ticks per second, payload bytes of a
    /// full segment, initial window in packets.
    #[must_use]
    pub const fn new(hz: u32, mss: u32, initial_cwnd: u32) -> Self {
        Self {
            now: Instant::ZERO,
            hz,
            snd_una: 0,
            snd_nxt: 0,
            mss,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            is_cwnd_limited: false,
            // The SYN counts as delivered.
            delivered: 1,
            delivered_ce: 0,
            ecn: false,
            lost: 0,
            delivered_at: Instant::ZERO,
            app_limited: 0,
            srtt_us_x8: 0,
            min_rtt_us: u32::MAX,
            state: CaState::Open,
            prior_cwnd: 0,
            last_data_sent: Instant::ZERO,
            departure: Instant::ZERO,
            pacing_status: PacingStatus::None,
            pacing_shift: 10,
            gso_max_bytes: 65_536 - 320 - 1,
            initial_cwnd,
            limited: CwndLimited::Recently,
            prior_in_flight: 0,
            max_burst: 3,
            abc_limit: 2,
            stamps: None,
        }
    }

    /// Packets in the network: sent, not delivered, not lost (`tcp_packets_in_flight`).
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        // Asked several times for each ACK; the scoreboard keeps both within `packets_out`.
        let left_network = self.sacked_out.wrapping_add(self.lost_out);
        debug_assert!(left_network <= self.packets_out, "more has left the network than was sent");
        self.packets_out.wrapping_sub(left_network).wrapping_add(self.retrans_out)
    }

    /// Kernel ticks since the start of the run (`tcp_jiffies32`, without the wrap).
    #[inline]
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        let ns = self.now.as_nanos();
        // Asked for every ACK: division by what is known is none.
        match self.hz {
            250 => ns / 4_000_000,
            1_000 => ns / 1_000_000,
            100 => ns / 10_000_000,
            hz => ns / (1_000_000_000 / u64::from(hz)),
        }
    }

    /// Ticks since `then`. None if the hook sees the arrival of an ACK, a microsecond before a timer that noted `then`
    /// and has fired in the same instant.
    #[inline]
    #[must_use]
    pub fn jiffies_since(&self, then: u64) -> u32 {
        self.jiffies().saturating_sub(then).min(u64::from(u32::MAX)) as u32
    }

    /// `usecs_to_jiffies`: the ticks that `us` µs touch.
    #[inline]
    #[must_use]
    pub fn jiffies_in(&self, us: u32) -> u32 {
        us.div_ceil(1_000_000 / self.hz)
    }

    /// `now` in µs (`tcp_mstamp`).
    #[inline]
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.now.as_micros_floor()
    }

    /// Ticks in a span, cut.
    #[inline]
    #[must_use]
    pub fn to_jiffies_floor(&self, span: Duration) -> u64 {
        span.as_nanos() / (1_000_000_000 / u64::from(self.hz))
    }

    /// True when growth is justified: the window, not the application, was the limit (`tcp_is_cwnd_limited`).
    #[inline]
    #[must_use]
    pub fn cwnd_limited(&self, window: &Window) -> bool {
        if self.is_cwnd_limited && self.limited != CwndLimited::WithinBurst {
            return true; // nearly always
        }
        match self.limited {
            CwndLimited::Recently => {
                self.is_cwnd_limited
                    || (window.in_slow_start() && window.cwnd < 2 * self.max_packets_out)
            }
            CwndLimited::WithinBurst => {
                window.cwnd <= self.prior_in_flight.saturating_add(self.max_burst)
            }
            CwndLimited::AsTold => self.is_cwnd_limited,
            CwndLimited::Always => true,
        }
    }
}

/// Request of an algorithm to the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum Response {
    /// Nothing.
    #[default]
    None,
    /// Begin a window reduction now, as after an ECN echo (`tcp_enter_cwr`): the endpoint calls
    /// [`CongestionControl::ssthresh`] and reduces over one round trip.
    EnterCwr,
    /// Mark the connection application-limited: `app_limited = max(delivered + in flight, 1)`. BBR writes that field
    /// itself while it starves the path on purpose (PROBE_RTT), so that the low rates it then measures do not count.
    MarkAppLimited,
}

/// A congestion control. Each method names the kernel hook it stands for.
///
/// Hooks are called in the order of the kernel's `tcp_ack`: [`acked`](Self::acked),
/// [`in_ack_event`](Self::in_ack_event), then (if the ACK is unusual) [`ssthresh`](Self::ssthresh) and
/// [`set_state`](Self::set_state), then either [`cong_control`](Self::cong_control) or, when
/// the window may grow, [`cong_avoid`](Self::cong_avoid).
pub trait CongestionControl {
    /// `init`: the handshake has ended; `window.cwnd` is the initial window.
    fn init(&mut self, view: &View, window: &mut Window) {
        let _ = (view, window);
    }

    /// `ssthresh`: a reduction begins; the answer is the new slow-start threshold in packets.
    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32;

    /// `cong_avoid`: the window may grow; `acked` is what growth counts: the packets that were delivered, or 1 for
    /// the ACK where ACKs are counted ([`Growth`](crate::Growth)).
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response;

    /// `set_state`: the recovery state is about to become `new` (`view.state` is the old one).
    #[inline]
    fn set_state(&mut self, view: &View, window: &mut Window, new: CaState) {
        let _ = (view, window, new);
    }

    /// `cwnd_event`.
    #[inline]
    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        let _ = (view, window, event);
    }

    /// `pkts_acked`: called for every ACK that (S)ACKs something, before loss detection.
    #[inline]
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        let _ = (view, window, ack);
    }

    /// `in_ack_event`: an ACK that is not below `snd_una`, also with nothing outstanding. Kernels before 4.7 do not
    /// have it: not called where the stack profile is older.
    #[inline]
    fn in_ack_event(&mut self, view: &View, window: &mut Window, event: &AckEvent) {
        let _ = (view, window, event);
    }

    /// `undo_cwnd`: a reduction turned out to be spurious; the answer is the window to restore.
    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        window.cwnd.max(view.prior_cwnd)
    }

    /// True when [`cong_control`](Self::cong_control) replaces `cong_avoid`, PRR and the default
    /// pacing rate. Asked after [`init`](Self::init): it may depend on what the handshake has granted.
    #[inline]
    fn has_cong_control(&self) -> bool {
        false
    }

    /// `cong_control`: called for every ACK instead of the default window engine.
    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        let _ = (view, window, sample);
        Response::None
    }

    /// True when the endpoint notes for each packet the data in flight and lost when it was sent: for
    /// [`marked_lost`](Self::marked_lost), [`RateSample::tx_in_flight`] and [`RateSample::lost`]. Asked once.
    fn wants_flights(&self) -> bool {
        false
    }

    /// `skb_marked_lost` of Google's v3 branch: `packet` has been marked lost, and `view.lost` counts it. Only for an
    /// algorithm that [wants flights](Self::wants_flights).
    fn marked_lost(&mut self, view: &View, window: &mut Window, packet: &LostPacket) {
        let _ = (view, window, packet);
    }

    /// `min_cwnd`: how low rate halving may bring the window (2.6.27).
    fn min_cwnd(&self, window: &Window) -> u32 {
        window.ssthresh
    }

    /// `min_tso_segs`: the smallest burst, packets; `None`: the host's `tcp_min_tso_segs`.
    fn min_tso_segs(&self, view: &View, window: &Window) -> Option<u32> {
        let _ = (view, window);
        None
    }

    /// True if the receiver shall echo each mark as DCTCP's does and all segments be ECN-capable where classic ECN is agreed on
    /// (Google's `TCP_ECN_ECT_PERMANENT` and `dctcp_ece_ack_update`). Both ends are asked.
    fn wants_exact_echo(&self) -> bool {
        false
    }

    /// True if segments shall be ECT(1) where accurate ECN is agreed on.
    fn wants_l4s(&self) -> bool {
        false
    }

    /// `tso_segs` of Google's and L4STeam's branches: the largest burst, packets, in place of what the host makes of the pacing
    /// rate; `None`: that. Only of an algorithm with a [`cong_control`](Self::cong_control).
    fn tso_segs(&self) -> Option<u32> {
        None
    }

    /// `sndbuf_expand`: send buffer as a multiple of the window.
    fn sndbuf_factor(&self) -> u32 {
        2
    }

    /// The phase the algorithm is in, for the recording (`state` column) and for people.
    fn phase(&self, view: &View, window: &Window) -> &'static str {
        let _ = view;
        if window.in_slow_start() { "slow_start" } else { "congestion_avoidance" }
    }

    /// `get_info`, for the recording: tells name and value of each of the algorithm's own quantities that is known
    /// now, in the units of its [`About::variables`](crate::About::variables).
    fn variables(&self, view: &View, window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let _ = (view, window, tell);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::view;
    use dragstrip_units::Instant;

    #[test]
    fn jiffies_are_the_whole_ticks_of_any_clock() {
        let mut view = view();
        for hz in [100, 250, 300, 1_000, 1_024] {
            let tick_ns = 1_000_000_000 / u64::from(hz);
            for tick in [0, 1, 77, 1 << 33] {
                for ns in [tick * tick_ns, tick * tick_ns + tick_ns - 1] {
                    (view.hz, view.now) = (hz, Instant::from_nanos(ns));
                    assert_eq!(view.jiffies(), tick, "{hz} {ns}");
                }
            }
        }
    }
}
