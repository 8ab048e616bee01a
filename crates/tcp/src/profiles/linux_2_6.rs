//! Linux 2.6.27 and 2.6.38.

use super::linux_6::{SINCE_6_1, SINCE_6_12};
use super::{StackRow, Sysctls};
use crate::profile::{DelayedAck, Profile, ReceiveTuning, SendBuffer, Settings, StackKind};
use crate::ticks::TimerWheel;
use dragstrip_cc::{BsdHost, CubicCurve, CwndLimited, Growth, HyStartClock, Rules, VegasRule};
use dragstrip_units::Duration;

/// Linux 2.6.27.
pub const LINUX_2_6_27: StackRow = StackRow {
    kernel: "Linux 2.6",
    nearest_since: None,
    settings: Settings::linux_2_6_27,
    initial_window: rfc3390_window,
    algorithms: Some(&["reno", "cubic", "exp", "fixed"]),
    sysctls: Sysctls::Linux { lacks: &[SINCE_2_6, SINCE_6_1, SINCE_6_12] },
    accurate_ecn: false,
    no_bursts: None,
    tolerates_threshold: false,
};

/// Linux 2.6.38.
pub const LINUX_2_6_38: StackRow = StackRow {
    settings: Settings::linux_2_6_38,
    algorithms: Some(&["reno", "cubic", "vegas", "exp", "fixed"]),
    ..LINUX_2_6_27
};

/// Settings that came after 2.6.
pub(super) const SINCE_2_6: &[&str] = &[
    "tcp_ecn_fallback",
    "tcp_max_reordering",
    "tcp_recovery",
    "tcp_early_retrans",
    "tcp_no_ssthresh_metrics_save",
    "tcp_limit_output_bytes",
    "tcp_min_tso_segs",
    "tcp_tso_rtt_log",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_comp_sack_delay_ns",
    "tcp_comp_sack_nr",
    "tcp_comp_sack_slack_ns",
    "tcp_min_rtt_wlen",
    "tcp_thin_linear_timeouts",
    "tcp_autocorking",
    "tcp_notsent_lowat",
];

/// RFC 3390's initial window in segments of `mss` bytes (`tcp_init_cwnd` before 2.6.39).
#[must_use]
pub const fn rfc3390_window(mss: u32) -> u32 {
    match mss {
        0..=1095 => 4,
        1096..=1460 => 3,
        1461.. => 2,
    }
}

impl Profile {
    /// Linux 2.6.27.
    pub const LINUX_2_6_27: Self = Self {
        congestion: Rules {
            growth: Growth::Acks,
            module_growth: Growth::Acks,
            slow_start_at_threshold: true,
            limited: CwndLimited::WithinBurst,
            hystart: HyStartClock::None,
            cubic: CubicCurve::PerWindow,
            vegas: VegasRule::Module,
            bsd: BsdHost::Foreign,
        },
        stack: StackKind::Linux26 { fack: true },
        timer_wheel: TimerWheel::Exact,
        receive_tuning: ReceiveTuning::Twice,
        measured_share: false,
        least_receiver_rtt: false,
        initial_offer: 4,
        initial_offer_unscaled: true,
        initial_room: 0,
        delayed_ack: DelayedAck::Estimated,
        full_push_acknowledged: true,
        burst_end_pushed: false,
        two_ticks_on_top: true,
        undoes_before_retransmitting: false,
        overstates_pending_marks: false,
        counts_sacked: true,
        send_buffer: SendBuffer::Segments,
        skb_overhead: 1_280,
        fills_bursts: false,
        limits_paced_output: true,
        ticked_timestamps: true,
        paws_window: 1,
        reordering_bits: 8,
    };

    /// Linux 2.6.38.
    pub const LINUX_2_6_38: Self = Self {
        congestion: Rules { hystart: HyStartClock::Jiffies, ..Self::LINUX_2_6_27.congestion },
        initial_offer: 10,
        ..Self::LINUX_2_6_27
    };
}

impl Settings {
    /// A stock Linux 2.6.27 with 512 MiB or more of memory, as far as it differs from 6.1.
    #[must_use]
    pub fn linux_2_6_27() -> Self {
        let settings = Self {
            profile: Profile::LINUX_2_6_27,
            // As Fedora 10 built it.
            hz: 1000,
            ecn_accept: false,
            // Since 4.2.
            ecn_fallback: false,
            max_reordering: 127,
            metrics_cache: true,
            rmem: [4096, 87_380, 4_194_304],
            wmem: [4096, 16_384, 4_194_304],
            core_rmem_max: 131_071,
            core_wmem_max: 131_071,
            receive_locked: false,
            rack: false,
            tail_loss_probe: false,
            adv_win_scale: 2,
            comp_sack_nr: 0,
            rto_initial: Duration::from_secs(3),
            ..Self::linux_6()
        };
        Self { initial_cwnd: rfc3390_window(settings.mss()), ..settings }
    }

    /// A stock Linux 2.6.38: its settings are those of 2.6.27, but that ECN is granted when asked for.
    #[must_use]
    pub fn linux_2_6_38() -> Self {
        Self { profile: Profile::LINUX_2_6_38, hz: 250, ecn_accept: true, ..Self::linux_2_6_27() }
    }
}
