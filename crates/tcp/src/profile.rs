//! What differs between hosts: kernel settings, as plain values.
//!
//! Names are the sysctls' without `net.ipv4.tcp_`; defaults are Linux 6.1's (linux `tcp_ipv4.c`,
//! `tcp_sk_init`).

use dragstrip_units::Duration;

/// The settings of one host's TCP.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Kernel ticks per second.
    pub hz: u32,
    /// IP packet size limit, bytes.
    pub mtu_bytes: u32,
    /// Segments are sent in bursts sized from the pacing rate.
    pub gso: bool,
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
    /// `tcp_ecn` = 1: ask for ECN when connecting.
    pub ecn_request: bool,
    /// `tcp_ecn` = 1 or 2: grant it when asked.
    pub ecn_accept: bool,
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
}

impl Settings {
    /// A stock Linux 6.1.
    #[must_use]
    pub fn linux_6() -> Self {
        Self {
            hz: 250,
            mtu_bytes: 1500,
            gso: false,
            initial_cwnd: 10,
            sack: true,
            dsack: true,
            timestamps: true,
            window_scaling: true,
            ecn_request: false,
            ecn_accept: true,
            reordering: 3,
            max_reordering: 300,
            rmem: [4096, 131_072, 6_291_456],
            wmem: [4096, 16_384, 4_194_304],
            core_rmem_max: 212_992,
            rack: true,
            rack_static_window: false,
            rack_no_dupthresh: false,
            tail_loss_probe: true,
            frto: true,
            slow_start_after_idle: true,
            adv_win_scale: 1,
            moderate_rcvbuf: true,
            limit_output_bytes: 1_048_576,
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
