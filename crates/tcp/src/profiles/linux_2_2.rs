//! Linux 2.2.

use super::linux_2_6::SINCE_2_6;
use super::linux_6::{SINCE_6_1, SINCE_6_12};
use super::{StackRow, Sysctls};
use crate::profile::{DelayedAck, Profile, ReceiveTuning, SendBuffer, Settings, StackKind};
use crate::ticks::TimerWheel;
use dragstrip_cc::{BsdHost, CubicCurve, CwndLimited, Growth, HyStartClock, Rules, VegasRule};
use dragstrip_units::Duration;

/// `tcp_v4_init_sock` of 2.2.14.
const INITIAL_WINDOW: u32 = 2;

/// Linux 2.2.
pub const LINUX_2_2: StackRow = StackRow {
    kernel: "Linux 2.2",
    nearest_since: None,
    settings: Settings::linux_2_2,
    initial_window: |_| INITIAL_WINDOW,
    algorithms: Some(&["reno", "vegas", "fixed"]),
    sysctls: Sysctls::Linux { lacks: &[SINCE_2_6, SINCE_2_2, SINCE_6_1, SINCE_6_12] },
    accurate_ecn: false,
    no_bursts: Some("Linux 2.2 offloads nothing"),
    tolerates_threshold: false,
};

/// Settings that came after 2.2, besides those that 2.6 lacks; its buffers are `net.core.rmem_default` and
/// `wmem_default`, which TCP leaves alone.
const SINCE_2_2: &[&str] = &[
    "tcp_dsack",
    "tcp_ecn",
    "tcp_reordering",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_frto",
    "tcp_no_metrics_save",
    "tcp_slow_start_after_idle",
    "tcp_adv_win_scale",
    "tcp_moderate_rcvbuf",
    "tcp_tso_win_divisor",
    "tcp_app_win",
    "tcp_base_mss",
];

impl Profile {
    /// Linux 2.2.
    pub const LINUX_2_2: Self = Self {
        congestion: Rules {
            growth: Growth::Acks,
            module_growth: Growth::Acks,
            slow_start_at_threshold: true,
            limited: CwndLimited::Always,
            hystart: HyStartClock::None,
            // It has no CUBIC.
            cubic: CubicCurve::PerWindow,
            vegas: VegasRule::Patch,
            bsd: BsdHost::Foreign,
        },
        stack: StackKind::Linux22,
        timer_wheel: TimerWheel::Exact,
        receive_tuning: ReceiveTuning::Fixed,
        measured_share: false,
        least_receiver_rtt: false,
        initial_offer: u32::MAX,
        initial_offer_unscaled: true,
        initial_room: 0,
        delayed_ack: DelayedAck::Spacing,
        full_push_acknowledged: false,
        burst_end_pushed: false,
        two_ticks_on_top: false,
        undoes_before_retransmitting: false,
        overstates_pending_marks: false,
        counts_sacked: true,
        send_buffer: SendBuffer::Fixed,
        skb_overhead: 1_280,
        fills_bursts: false,
        limits_paced_output: true,
        ticked_timestamps: true,
        paws_window: 0,
        reordering_bits: 32,
    };
}

impl Settings {
    /// A stock Linux 2.2 (2.2.10 to 2.2.13; `SK_RMEM_MAX`, `SK_WMEM_MAX`).
    #[must_use]
    pub fn linux_2_2() -> Self {
        Self {
            profile: Profile::LINUX_2_2,
            hz: 100,
            initial_cwnd: INITIAL_WINDOW,
            max_reordering: 127,
            dsack: false,
            ecn_accept: false,
            // Since 4.2.
            ecn_fallback: false,
            rmem: [4096, 65_535, 65_535],
            wmem: [4096, 65_535, 65_535],
            core_rmem_max: 65_535,
            core_wmem_max: 65_535,
            receive_locked: false,
            rack: false,
            tail_loss_probe: false,
            frto: false,
            slow_start_after_idle: false,
            // Half of it.
            adv_win_scale: -1,
            moderate_rcvbuf: false,
            comp_sack_nr: 0,
            rto_initial: Duration::from_secs(3),
            ..Self::linux_6()
        }
    }
}
