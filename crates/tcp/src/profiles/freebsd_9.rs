//! FreeBSD 9 as of May 2011.

use super::{StackRow, Sysctls};
use crate::profile::{DelayedAck, Profile, ReceiveTuning, SendBuffer, Settings, StackKind};
use crate::ticks::TimerWheel;
use dragstrip_cc::{BsdHost, CubicCurve, CwndLimited, Growth, HyStartClock, Rules, VegasRule};
use dragstrip_units::Duration;

/// FreeBSD 9.
pub const FREEBSD_9: StackRow = StackRow {
    kernel: "FreeBSD 9",
    nearest_since: None,
    settings: Settings::freebsd_9,
    initial_window: |mss| bsd_initial_window(mss, false, true),
    algorithms: Some(&[
        "newreno-freebsd",
        "cubic-freebsd",
        "vegas-freebsd",
        "cdg-freebsd",
        "fixed",
    ]),
    sysctls: Sysctls::Freebsd,
    accurate_ecn: false,
    no_bursts: Some("bursts of FreeBSD 9 are not modelled"),
    tolerates_threshold: false,
};

/// FreeBSD's initial window in segments of `mss` bytes (`cc_conn_init`): RFC 6928's, RFC 3390's or RFC 5681's.
#[must_use]
pub const fn bsd_initial_window(mss: u32, ten_segments: bool, rfc3390: bool) -> u32 {
    let (most, bytes) = match (ten_segments, rfc3390) {
        (true, _) => (10, 14_600),
        (false, true) => (4, 4_380),
        (false, false) => {
            return match mss {
                0..=1095 => 4,
                1096..=2190 => 3,
                2191.. => 2,
            };
        }
    };
    let segments = bytes / mss;
    if segments < 2 {
        2
    } else if segments > most {
        most
    } else {
        segments
    }
}

impl Profile {
    /// FreeBSD 9.
    pub const FREEBSD_9: Self = Self {
        congestion: Rules {
            growth: Growth::Packets,
            module_growth: Growth::Packets,
            slow_start_at_threshold: true,
            limited: CwndLimited::AsTold,
            // What Linux's algorithms would do: it has none of them.
            hystart: HyStartClock::None,
            cubic: CubicCurve::PerWindow,
            vegas: VegasRule::Module,
            bsd: BsdHost::Native,
        },
        stack: StackKind::Freebsd9,
        timer_wheel: TimerWheel::Exact,
        receive_tuning: ReceiveTuning::Step,
        measured_share: false,
        least_receiver_rtt: false,
        initial_offer: u32::MAX,
        initial_offer_unscaled: true,
        initial_room: 0,
        delayed_ack: DelayedAck::EverySecond,
        full_push_acknowledged: false,
        burst_end_pushed: false,
        two_ticks_on_top: false,
        undoes_before_retransmitting: false,
        overstates_pending_marks: false,
        counts_sacked: true,
        send_buffer: SendBuffer::Payload,
        skb_overhead: 1_280,
        fills_bursts: false,
        limits_paced_output: true,
        ticked_timestamps: true,
        paws_window: 0,
        reordering_bits: 32,
    };
}

impl Settings {
    /// FreeBSD 9 as of May 2011.
    #[must_use]
    pub fn freebsd_9() -> Self {
        let settings = Self {
            profile: Profile::FREEBSD_9,
            hz: 1000,
            dsack: false,
            ecn_accept: false,
            adv_win_scale: 0,
            rmem: [0, 65_536, 262_144],
            wmem: [0, 32_768, 262_144],
            core_rmem_max: 2_097_152,
            core_wmem_max: 2_097_152,
            receive_locked: false,
            rack: false,
            tail_loss_probe: false,
            frto: false,
            rto_min: Duration::from_millis(30),
            rto_max: Duration::from_secs(64),
            rto_initial: Duration::from_secs(3),
            ..Self::linux_6()
        };
        Self { initial_cwnd: bsd_initial_window(settings.mss(), false, true), ..settings }
    }
}
