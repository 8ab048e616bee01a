//! Linux 6.1 and, as far as it differs, 4.15. Defaults: linux `tcp_ipv4.c`, `tcp_sk_init`.

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
    settings: Settings::linux_6,
    initial_window: |_| INITIAL_WINDOW,
    algorithms: None,
    sysctls: Sysctls::Linux { lacks: &[] },
    no_bursts: None,
    // tcp_no_ssthresh_metrics_save: it leaves the threshold alone, and may be run beside those that do not.
    tolerates_threshold: true,
};

/// Linux 4.15.
pub const LINUX_4_15: StackRow = StackRow {
    kernel: "Linux 4.15",
    settings: Settings::linux_4_15,
    sysctls: Sysctls::Linux { lacks: &[SINCE_4_15] },
    tolerates_threshold: false,
    ..LINUX_6
};

/// Settings that came after 4.15.
const SINCE_4_15: &[&str] =
    &["tcp_comp_sack_delay_ns", "tcp_comp_sack_nr", "tcp_comp_sack_slack_ns", "tcp_tso_rtt_log"];

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
        initial_offer: u32::MAX,
        initial_room: 0,
        delayed_ack: DelayedAck::Estimated,
        full_push_acknowledged: true,
        burst_end_pushed: true,
        two_ticks_on_top: false,
        undoes_before_retransmitting: true,
        send_buffer: SendBuffer::Memory,
        ticked_timestamps: false,
        paws_window: 1,
        reordering_bits: 32,
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
        ..Self::LINUX_6
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
