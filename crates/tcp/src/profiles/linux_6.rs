//! Linux 6.1 and, as far as they differ, 4.15, 6.12 and 7. Defaults: linux `tcp_ipv4.c`, `tcp_sk_init`; of 6.12 and 7 as Debian's
//! 6.12.117 and 7.3.4 have them. Each change names its commit and the release that it came with.

use super::{StackRow, Sysctls};
use crate::metrics::Metrics;
use crate::profile::{
    BsdSettings, DelayedAck, Profile, ReceiveTuning, SendBuffer, Settings, StackKind,
};
use crate::ticks::TimerWheel;
use dragstrip_cc::{BsdHost, CubicCurve, CwndLimited, Growth, HyStartClock, Rules, VegasRule};
use dragstrip_units::Duration;

/// `TCP_INIT_CWND` (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// Linux 6.1.
pub const LINUX_6: StackRow = StackRow {
    kernel: "Linux 6.1",
    nearest_since: Some((5, 0)),
    settings: Settings::linux_6,
    initial_window: |_| INITIAL_WINDOW,
    algorithms: None,
    sysctls: Sysctls::Linux { lacks: &[SINCE_6_1, SINCE_6_12] },
    // Of the kernel since 7.0 (`LINUX_7`): here for scenarios of 6.1 with it.
    accurate_ecn: true,
    no_bursts: None,
    // tcp_no_ssthresh_metrics_save: it leaves the threshold alone, and may be run beside those that do not.
    tolerates_threshold: true,
};

/// L4STeam's Linux 5.15.
pub const LINUX_5_15_L4S: StackRow = StackRow {
    kernel: "L4STeam's Linux 5.15",
    nearest_since: None,
    settings: Settings::linux_5_15_l4s,
    sysctls: Sysctls::Linux { lacks: &[SINCE_5_15, SINCE_6_1, SINCE_6_12] },
    tolerates_threshold: false,
    ..LINUX_6
};

/// Linux 4.15.
pub const LINUX_4_15: StackRow = StackRow {
    kernel: "Linux 4.15",
    nearest_since: Some((4, 15)),
    settings: Settings::linux_4_15,
    sysctls: Sysctls::Linux { lacks: &[SINCE_4_15, SINCE_5_15, SINCE_6_1, SINCE_6_12] },
    accurate_ecn: false,
    tolerates_threshold: false,
    ..LINUX_6
};

/// Linux 6.12.
pub const LINUX_6_12: StackRow = StackRow {
    kernel: "Linux 6.12",
    nearest_since: Some((6, 6)),
    settings: Settings::linux_6_12,
    sysctls: Sysctls::Linux { lacks: &[SINCE_6_12] },
    accurate_ecn: false,
    ..LINUX_6
};

/// Linux 7.
pub const LINUX_7: StackRow = StackRow {
    kernel: "Linux 7",
    nearest_since: Some((6, 16)),
    settings: Settings::linux_7,
    sysctls: Sysctls::Linux { lacks: &[] },
    accurate_ecn: true,
    ..LINUX_6
};

/// Settings that came after 5.15.
const SINCE_5_15: &[&str] = &["tcp_tso_rtt_log"];

/// Settings that came after 4.15, until 5.15.
const SINCE_4_15: &[&str] =
    &["tcp_comp_sack_delay_ns", "tcp_comp_sack_nr", "tcp_comp_sack_slack_ns"];

/// Settings that came after 6.1: with 6.5.
pub(super) const SINCE_6_1: &[&str] = &["tcp_syn_linear_timeouts"];

/// Settings that came after 6.12: with 6.19.
pub(super) const SINCE_6_12: &[&str] = &["tcp_comp_sack_rtt_percent", "tcp_rcvbuf_low_rtt"];

impl Profile {
    /// Linux 6.1.
    pub const LINUX_6: Self = Self {
        congestion: Rules {
            growth: Growth::Packets,
            module_growth: Growth::Packets,
            slow_start_at_threshold: false,
            limited: CwndLimited::Recently,
            hystart: HyStartClock::Microseconds,
            cubic: CubicCurve::PerJiffy,
            vegas: VegasRule::Module,
            bsd: BsdHost::Foreign,
        },
        stack: StackKind::Linux6,
        timer_wheel: TimerWheel::Buckets,
        receive_tuning: ReceiveTuning::Headroom,
        measured_share: false,
        least_receiver_rtt: false,
        initial_offer: u32::MAX,
        initial_offer_unscaled: true,
        initial_room: 0,
        delayed_ack: DelayedAck::Estimated,
        full_push_acknowledged: true,
        burst_end_pushed: true,
        two_ticks_on_top: false,
        undoes_before_retransmitting: true,
        overstates_pending_marks: false,
        counts_sacked: true,
        send_buffer: SendBuffer::Memory,
        skb_overhead: 1_280,
        fills_bursts: false,
        limits_paced_output: false,
        ticked_timestamps: false,
        paws_window: 1,
        reordering_bits: 32,
    };

    /// L4STeam's Linux 5.15.72.
    pub const LINUX_5_15_L4S: Self = Self {
        full_push_acknowledged: false,
        two_ticks_on_top: true,
        undoes_before_retransmitting: false,
        overstates_pending_marks: true,
        ..Self::LINUX_6
    };

    /// Linux 4.15.
    pub const LINUX_4_15: Self = Self {
        congestion: Rules { module_growth: Growth::Acks, ..Self::LINUX_6.congestion },
        send_buffer: SendBuffer::LinearSegments,
        // tcp_default_init_rwnd, until 4.20.
        initial_offer: 20,
        initial_room: 40,
        full_push_acknowledged: false,
        burst_end_pushed: false,
        two_ticks_on_top: true,
        undoes_before_retransmitting: false,
        // Not for paced connections since 4.20 (c73e5807e4f6).
        limits_paced_output: true,
        ..Self::LINUX_6
    };

    /// Linux 6.12. HyStart's round start (25c1a9ca53db), the timers' 2 ms (1c2709cfff1d) and the rules of undoing (e37ab7373696,
    /// b41b4cbd9655, a6458ab7fd4f) are those of 6.1, whose stable series have them.
    pub const LINUX_6_12: Self = Self {
        measured_share: true,
        least_receiver_rtt: true,
        initial_offer_unscaled: false,
        fills_bursts: true,
        skb_overhead: 896,
        ..Self::LINUX_6
    };

    /// Linux 7.
    pub const LINUX_7: Self = Self {
        receive_tuning: ReceiveTuning::Growth,
        counts_sacked: false,
        limits_paced_output: true,
        ..Self::LINUX_6_12
    };
}

impl Settings {
    /// A stock Linux 6.1.
    #[must_use]
    pub fn linux_6() -> Self {
        Self {
            profile: Profile::LINUX_6,
            hz: 250,
            mtu_bytes: 1500,
            gso: false,
            whole_bursts: false,
            paced: false,
            initial_cwnd: INITIAL_WINDOW,
            sack: true,
            dsack: true,
            timestamps: true,
            window_scaling: true,
            ecn_request: false,
            ecn_accept: true,
            accurate_ecn_request: false,
            accurate_ecn_accept: false,
            ecn_fallback: true,
            reordering: 3,
            max_reordering: 300,
            rmem: [4096, 131_072, 6_291_456],
            wmem: [4096, 16_384, 4_194_304],
            core_rmem_max: 212_992,
            core_wmem_max: 212_992,
            receive_locked: false,
            rack: true,
            rack_static_window: false,
            rack_no_dupthresh: false,
            tail_loss_probe: true,
            frto: true,
            slow_start_after_idle: true,
            adv_win_scale: 1,
            moderate_rcvbuf: true,
            limit_output_bytes: 1_048_576,
            notsent_lowat: u32::MAX,
            tso_win_divisor: 3,
            min_tso_segs: 2,
            tso_rtt_log: 9,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 120,
            comp_sack_delay: Duration::from_millis(1),
            comp_sack_slack: Duration::from_micros(100),
            comp_sack_nr: 44,
            comp_sack_rtt_percent: 5,
            syn_linear_timeouts: 0,
            rcvbuf_low_rtt: Duration::ZERO,
            min_rtt_wlen_s: 300,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            rto_initial: Duration::from_secs(1),
            write_bytes: 131_072,
            nodelay: false,
            metrics_cache: false,
            history: Metrics::default(),
            bsd: BsdSettings {
                abc_limit: 2,
                limited_transmit: true,
                delayed_ack: Duration::from_millis(100),
                rto_slop: Duration::from_millis(200),
                send_step: 8_192,
                receive_step: 16_384,
            },
        }
    }

    /// L4STeam's Linux 5.15.
    #[must_use]
    pub fn linux_5_15_l4s() -> Self {
        // tcp_tso_autosize takes no notice of the RTT before 5.18.
        Self { profile: Profile::LINUX_5_15_L4S, tso_rtt_log: 0, ..Self::linux_6() }
    }

    /// A stock Linux 6.12, as far as it differs from 6.1.
    #[must_use]
    pub fn linux_6_12() -> Self {
        Self { profile: Profile::LINUX_6_12, syn_linear_timeouts: 4, ..Self::linux_6() }
    }

    /// A stock Linux 7, as far as it differs from 6.12.
    #[must_use]
    pub fn linux_7() -> Self {
        Self {
            profile: Profile::LINUX_7,
            // 572be9bf9d0d, 6.16.
            rmem: [4096, 131_072, 33_554_432],
            // a6d4f25888b8, 6.18.
            core_rmem_max: 4_194_304,
            core_wmem_max: 4_194_304,
            // 9ea3bfa61b09, 6.16.
            limit_output_bytes: 4_194_304,
            // ca412f25d6b2, 6.19.
            comp_sack_slack: Duration::from_micros(10),
            comp_sack_rtt_percent: 33,
            rcvbuf_low_rtt: Duration::from_millis(1),
            ..Self::linux_6_12()
        }
    }

    /// A stock Linux 4.15, as far as it differs from 6.1.
    #[must_use]
    pub fn linux_4_15() -> Self {
        Self {
            profile: Profile::LINUX_4_15,
            rmem: [4096, 87_380, 6_291_456],
            limit_output_bytes: 262_144,
            // SACK compression came with 4.18.
            comp_sack_nr: 0,
            ..Self::linux_6()
        }
    }
}
