//! Differences between hosts: a kernel's rules and its settings. Each kernel's values are in `profiles/`.
//!
//! Settings are named as the sysctls without `net.ipv4.tcp_`.

use crate::metrics::Metrics;
use crate::ticks::TimerWheel;
use dragstrip_cc::Rules;
use dragstrip_units::Duration;

/// The rules of a kernel's endpoint that are no settings of its: which of the behaviours the endpoint knows.
/// Sources: the kernels named; where the fact is not verified, the field says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its congestion controls' rules.
    pub congestion: Rules,
    /// Implementation of loss detection, recovery and transmission.
    pub stack: StackKind,
    /// Timer resolution.
    pub timer_wheel: TimerWheel,
    /// Growth of the receive buffer.
    pub receive_tuning: ReceiveTuning,
    /// The window's share of the receive buffer is that of payload in the memory of the first full segment, and half until then
    /// (`scaling_ratio`: dfa2f0483360, 6.6; 697a6c8cec03, 6.10); otherwise `tcp_adv_win_scale` says it.
    pub measured_share: bool,
    /// A shorter RTT replaces the receiver's estimate, and is not averaged (`tcp_rcv_rtt_update`: b879dcb1aeec, 6.16, and older
    /// kernels' stable series since).
    pub least_receiver_rtt: bool,
    /// Segments offered at first at most.
    pub initial_offer: u32,
    /// The first offer is no more than an unscaled field holds (`tcp_select_initial_window` until 378979e94e95, 6.10).
    pub initial_offer_unscaled: bool,
    /// Segments that the receive buffer has room for at first at least, four times as many where it is tuned
    /// (`tcp_fixup_rcvbuf` until 4.20).
    pub initial_room: u64,
    /// Delay of acknowledgements of data in order.
    pub delayed_ack: DelayedAck,
    /// A full segment with PSH is the end of a write, and acknowledged when it has been read (6.7, 6.1 since October 2023).
    pub full_push_acknowledged: bool,
    /// The last of several segments that leave together carries PSH, so that receivers do not wait for more to merge with it
    /// (5.4, `__tcp_transmit_skb`).
    pub burst_end_pushed: bool,
    /// Probe and reordering timers have two ticks on top, not 2 ms (`TCP_TIMEOUT_MIN`, until late in 6.1's stable series).
    pub two_ticks_on_top: bool,
    /// A recovery that has retransmitted nothing yet is taken back when the data that it waits for arrive
    /// (`tcp_packet_delayed` since 6.12, 6.1 since October 2024).
    pub undoes_before_retransmitting: bool,
    /// Accurate ECN takes the marks that no acknowledgement has told of for 15 at least, too many to wait: each segment that
    /// takes the general way and advances the timestamp to echo is acknowledged at once (L4STeam's 5.15:
    /// `tcp_ecn_received_counters`, `__tcp_accecn_process`).
    pub overstates_pending_marks: bool,
    /// Without RACK (`tcp_recovery`) the SACKed segments above a hole are counted (RFC 6675; until 1c120191dcec, 6.17).
    pub counts_sacked: bool,
    /// Accounting of the send buffer.
    pub send_buffer: SendBuffer,
    /// Memory of a socket buffer beside its payload, bytes, where [`SendBuffer::Memory`] counts it: an sk_buff of 256 and a head that
    /// comes out of the allocator's 1024 bytes, since 6.3 out of a cache of its own with 640 (bf9f1baa279f).
    pub skb_overhead: u64,
    /// A socket buffer smaller than what may leave takes the rest from the next (`tcp_grow_skb`: 8ee602c63520, 6.10).
    pub fills_bursts: bool,
    /// `tcp_limit_output_bytes` holds for paced connections too (c4221a8cc3a7, 6.16).
    pub limits_paced_output: bool,
    /// Timestamps stand still between ticks; otherwise they count milliseconds.
    pub ticked_timestamps: bool,
    /// By how much a timestamp may be older than the one to echo before its segment is refused, in units of its clock
    /// (`TCP_PAWS_WINDOW`).
    pub paws_window: u32,
    /// Bits of the connection's own `reordering`: 8 in 2.6.27, where the setting is cut to them when a connection
    /// begins, and compared whole at a timeout.
    pub reordering_bits: u32,
}

/// Implementation of loss detection, recovery, RTT samples and transmission: one folder each under `sender/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackKind {
    /// Linux since 4.15: RACK, tail loss probes, proportional rate reduction, as their settings say; pacing, small queues.
    Linux6,
    /// Linux 2.6 before RACK: duplicate ACKs, rate halving, F-RTO before a timeout is believed.
    Linux26 {
        /// `tcp_fack`: forward acknowledgement until reordering is seen.
        fack: bool,
    },
    /// Linux 2.2: the window is inflated by duplicate ACKs, and nothing new leaves after a timeout before all is acknowledged.
    Linux22,
    /// FreeBSD 9: three duplicate ACKs, NewReno or the holes that SACKs show, and everything again after a timeout.
    Freebsd9,
}

/// Growth of the receive buffer once per round trip, when more was read than in any before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveTuning {
    /// To twice what was read and room for slow start.
    Headroom,
    /// The same by `tcp_rcvbuf_grow` (65c5287892e9, 6.16; repaired by aa251c84636c and b1e014a1f327, 6.18): without sixteen segments of
    /// cushion, but with room for what is out of order, and on short paths with less for slow start (ecfea98b7d0d, 6.19).
    Growth,
    /// To twice what was read, which is also all that is offered.
    Twice,
    /// By a step when seven eighths of it arrived in a round trip (FreeBSD); all of it is offered.
    Step,
    /// Never; whole segments of its share are offered (Linux 2.2).
    Fixed,
}

/// Delay of acknowledgements of data in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// After a time estimated from the data's spacing, two segments at the latest, at once for a start (Linux).
    Estimated,
    /// Every second segment, or when the timer that the first has set goes off.
    EverySecond,
    /// After a time estimated from the data's spacing, two full segments at the latest, the first at once (Linux 2.2).
    Spacing,
}

/// Accounting of the send buffer, and its growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// Memory of socket buffers of up to 64 KiB; to a multiple of the window (`tcp_sndbuf_expand`).
    Memory,
    /// The same where every segment is a socket buffer of its own, its bytes and headers in a power of two (before 4.17, when
    /// the interface offloads nothing).
    LinearSegments,
    /// Memory of a socket buffer per segment; to twice the window, when what is out, SACKed or not, leaves some of it
    /// (`tcp_new_space` until 3.13).
    Segments,
    /// Payload; by a step when it is seven eighths full and the windows allow for more (FreeBSD).
    Payload,
    /// Memory of a socket buffer per segment; it never grows, and whatever is free is written to (Linux 2.2).
    Fixed,
}

/// The settings that only FreeBSD has, by its sysctls.
#[derive(Clone, Debug, PartialEq)]
pub struct BsdSettings {
    /// `rfc3465` and `abc_l_var`: segments of an ACK that count at most; 0: bytes are not counted.
    pub abc_limit: u32,
    /// `rfc3042`: new segments on the first two duplicate ACKs.
    pub limited_transmit: bool,
    /// `delayed_ack` and `delacktime`; zero: no ACK is delayed.
    pub delayed_ack: Duration,
    /// `rexmit_slop`: on top of every retransmission timeout.
    pub rto_slop: Duration,
    /// `sendbuf_inc`, bytes; 0: `sendbuf_auto` is off.
    pub send_step: u64,
    /// `recvbuf_inc`, bytes; 0: `recvbuf_auto` is off.
    pub receive_step: u64,
}

/// `SOCK_MIN_SNDBUF` and `SOCK_MIN_RCVBUF`: memory of two small segments, and of one (x86-64).
const SNDBUF_MIN: u64 = 4608;
const RCVBUF_MIN: u64 = 2304;

/// The settings of one host's TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The kernel's rules that are no settings.
    pub profile: Profile,
    /// Kernel ticks per second.
    pub hz: u32,
    /// IP packet size limit, bytes.
    pub mtu_bytes: u32,
    /// Segments are sent in bursts sized from the pacing rate.
    pub gso: bool,
    /// Bursts stay one packet on their way.
    pub whole_bursts: bool,
    /// The interface's queue discipline paces every connection (`fq_classify` sets `sk_pacing_status`).
    pub paced: bool,
    /// Initial window, packets (`TCP_INIT_CWND`).
    pub initial_cwnd: u32,
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_dsack`.
    pub dsack: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `tcp_window_scaling`.
    pub window_scaling: bool,
    /// `tcp_ecn` = 1 or 4: ask for ECN when connecting.
    pub ecn_request: bool,
    /// `tcp_ecn` other than 0: grant it when asked.
    pub ecn_accept: bool,
    /// `tcp_ecn` = 3: ask for accurate ECN (RFC 9768) when connecting.
    pub accurate_ecn_request: bool,
    /// `tcp_ecn` = 3 to 5: grant it when asked.
    pub accurate_ecn_accept: bool,
    /// `tcp_ecn_fallback`: a SYN that asks for ECN and is lost is followed by one that does not.
    pub ecn_fallback: bool,
    /// `tcp_reordering`.
    pub reordering: u32,
    /// `tcp_max_reordering`.
    pub max_reordering: u32,
    /// `tcp_rmem`: minimum, initial, maximum receive buffer, bytes.
    pub rmem: [u64; 3],
    /// `tcp_wmem`: minimum, initial, maximum send buffer, bytes.
    pub wmem: [u64; 3],
    /// `net.core.rmem_max`, bytes: widens the window scale.
    pub core_rmem_max: u64,
    /// `net.core.wmem_max`, bytes: the most that `SO_SNDBUF` asks for.
    pub core_wmem_max: u64,
    /// The application has set `SO_RCVBUF`: `rmem[1]` is the buffer and stays (`SOCK_RCVBUF_LOCK`).
    pub receive_locked: bool,
    /// `tcp_recovery` bit 0: RACK loss detection.
    pub rack: bool,
    /// `tcp_recovery` bit 1: the reordering window does not adapt.
    pub rack_static_window: bool,
    /// `tcp_recovery` bit 2: no shortcut at the duplicate-ACK threshold.
    pub rack_no_dupthresh: bool,
    /// `tcp_early_retrans` ≥ 3: tail loss probe.
    pub tail_loss_probe: bool,
    /// `tcp_frto`.
    pub frto: bool,
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// `tcp_adv_win_scale`.
    pub adv_win_scale: i32,
    /// `tcp_moderate_rcvbuf`.
    pub moderate_rcvbuf: bool,
    /// `tcp_limit_output_bytes`.
    pub limit_output_bytes: u64,
    /// `tcp_notsent_lowat`: the socket is writable only while less than this is unsent, bytes.
    pub notsent_lowat: u32,
    /// `tcp_tso_win_divisor`.
    pub tso_win_divisor: u32,
    /// `tcp_min_tso_segs`.
    pub min_tso_segs: u32,
    /// `tcp_tso_rtt_log`.
    pub tso_rtt_log: u32,
    /// `tcp_pacing_ss_ratio`, per cent.
    pub pacing_ss_ratio: u32,
    /// `tcp_pacing_ca_ratio`, per cent.
    pub pacing_ca_ratio: u32,
    /// `tcp_comp_sack_delay_ns`.
    pub comp_sack_delay: Duration,
    /// `tcp_comp_sack_slack_ns`.
    pub comp_sack_slack: Duration,
    /// `tcp_comp_sack_nr`.
    pub comp_sack_nr: u32,
    /// `tcp_comp_sack_rtt_percent` (416dd649f3aa, 6.19); 5 before.
    pub comp_sack_rtt_percent: u32,
    /// `tcp_syn_linear_timeouts` (ccce324dabfe, 6.5): timeouts of a SYN before they double; 0 before.
    pub syn_linear_timeouts: u32,
    /// `tcp_rcvbuf_low_rtt` (ecfea98b7d0d, 6.19): below this RTT the receive buffer grows gently; zero before.
    pub rcvbuf_low_rtt: Duration,
    /// `tcp_min_rtt_wlen`, seconds.
    pub min_rtt_wlen_s: u32,
    /// Minimum of the RTO's variance term (`TCP_RTO_MIN`).
    pub rto_min: Duration,
    /// Maximum RTO (`TCP_RTO_MAX`).
    pub rto_max: Duration,
    /// RTO before the first RTT sample (`TCP_TIMEOUT_INIT`).
    pub rto_initial: Duration,
    /// Bytes of one write of a bulk application (iperf3: 128 KiB); its last segment carries PSH.
    pub write_bytes: u64,
    /// The application has set `TCP_NODELAY`: short segments wait for nothing.
    pub nodelay: bool,
    /// `tcp_no_metrics_save` = 0: the next connection to a host begins with what the last one has learnt.
    pub metrics_cache: bool,
    /// Metrics cached before the run.
    pub history: Metrics,
    /// Settings that only FreeBSD has.
    pub bsd: BsdSettings,
}

impl ReceiveTuning {
    /// The buffer grows with room for slow start, as in every kernel since 3.x.
    #[inline]
    #[must_use]
    pub fn has_headroom(self) -> bool {
        matches!(self, Self::Headroom | Self::Growth)
    }
}

impl Settings {
    /// Segments sent later and SACKed show by their time what is lost. A setting that nothing stands behind has no effect.
    #[inline]
    #[must_use]
    pub fn detects_by_time(&self) -> bool {
        self.rack || !self.profile.counts_sacked
    }

    /// `SO_SNDBUF` (sock_setsockopt): twice what is asked for, as far as `wmem_max` and not below a minimum; it stays
    /// (`SOCK_SNDBUF_LOCK`).
    #[must_use]
    pub fn with_send_buffer(mut self, asked: u64) -> Self {
        self.wmem = [self.wmem[0]; 3].map(|_| (2 * asked.min(self.core_wmem_max)).max(SNDBUF_MIN));
        self
    }

    /// `SO_RCVBUF` (`__sock_set_rcvbuf`): likewise, with `rmem_max`.
    #[must_use]
    pub fn with_receive_buffer(mut self, asked: u64) -> Self {
        self.rmem[1] = (2 * asked.min(self.core_rmem_max)).max(RCVBUF_MIN);
        self.moderate_rcvbuf = false;
        self.receive_locked = true;
        self
    }

    /// `TCP_TIMEOUT_MIN_US`: what probe and reordering timers have on top, before rounding up to ticks.
    pub(crate) fn timeout_min_us(&self) -> u64 {
        if self.profile.two_ticks_on_top { 2_000_000 / u64::from(self.hz) } else { 2_000 }
    }

    /// `reordering` at the start of a connection: the setting, cut to the bits it is kept in.
    #[must_use]
    pub fn initial_reordering(&self) -> u32 {
        match self.profile.reordering_bits {
            bits @ 1..32 => self.reordering & ((1 << bits) - 1),
            _ => self.reordering,
        }
    }

    /// Bytes of payload in a full segment.
    #[must_use]
    pub fn mss(&self) -> u32 {
        self.mtu_bytes - 40 - if self.timestamps { 12 } else { 0 }
    }

    /// The MSS announced to the peer, which does not know of options (`advmss`).
    #[must_use]
    pub fn advmss(&self) -> u32 {
        self.mtu_bytes - 40
    }

    /// `tcp_win_from_space`: how much of a buffer of `space` bytes is offered as window.
    #[inline]
    #[must_use]
    pub fn window_from_space(&self, space: i64) -> i64 {
        if self.adv_win_scale <= 0 {
            space >> -self.adv_win_scale
        } else {
            space - (space >> self.adv_win_scale)
        }
    }
}
