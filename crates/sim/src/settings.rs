//! From a host's profile and sysctls to the settings of its TCP.

use crate::SetupError;
use crate::error::problem;
use dragstrip_scenario::{FreebsdSysctls, GsoMode, HistorySpec, HostSpec, StackProfile, Sysctls};
use dragstrip_tcp::{BsdSettings, Metrics, Settings, bsd_initial_window, rfc3390_window};
use dragstrip_units::Duration;

/// The settings of a host's TCP.
pub(crate) fn settings(host: &HostSpec, field: &str) -> Result<Settings, SetupError> {
    match host.profile {
        StackProfile::Linux6
        | StackProfile::Linux415
        | StackProfile::Linux22
        | StackProfile::Linux2627
        | StackProfile::Linux2638 => linux_settings(host, field),
        StackProfile::Freebsd9 => freebsd_settings(host, field),
    }
}

fn freebsd_settings(host: &HostSpec, field: &str) -> Result<Settings, SetupError> {
    let sysctls = FreebsdSysctls::from_map(&host.sysctl)
        .map_err(|found| problem(format!("{field}.sysctl{}", found.field), found.to_string()))?;
    let get = |name: &str| sysctls.get(&format!("net.inet.tcp.{name}"));
    let is_on = |name: &str| get(name) != 0;
    let span = |name: &str| Duration::from_millis(get(name));
    let options = is_on("rfc1323");
    let settings = Settings {
        hz: host.tick_hz,
        mtu_bytes: host.mtu_bytes,
        gso: host.gso == GsoMode::Auto,
        sack: is_on("sack.enable"),
        timestamps: options,
        window_scaling: options,
        rmem: [0, get("recvspace"), get("recvbuf_max").max(get("recvspace"))],
        wmem: [0, get("sendspace"), get("sendbuf_max").max(get("sendspace"))],
        core_rmem_max: sysctls.get("kern.ipc.maxsockbuf"),
        moderate_rcvbuf: is_on("recvbuf_auto"),
        rto_min: span("rexmit_min"),
        bsd: BsdSettings {
            abc_limit: if is_on("rfc3465") { get("abc_l_var") as u32 } else { 0 },
            limited_transmit: is_on("rfc3042"),
            delayed_ack: if is_on("delayed_ack") { span("delacktime") } else { Duration::ZERO },
            rto_slop: span("rexmit_slop"),
            send_step: if is_on("sendbuf_auto") { get("sendbuf_inc") } else { 0 },
            receive_step: get("recvbuf_inc"),
        },
        ..Settings::freebsd_9()
    };
    let (ten, rfc3390) = (is_on("experimental.initcwnd10"), is_on("rfc3390"));
    Ok(Settings { initial_cwnd: bsd_initial_window(settings.mss(), ten, rfc3390), ..settings })
}

/// As `tcp_update_metrics` keeps it: the RTT × 8, its deviation × 4.
fn history(host: &HostSpec) -> Metrics {
    let takes_over = matches!(host.profile, StackProfile::Linux2627 | StackProfile::Linux2638);
    let Some(known) = host.history.filter(|_| takes_over) else { return Metrics::default() };
    let HistorySpec { ssthresh_packets, reordering_packets, rtt_ns, rtt_deviation_ns } = known;
    Metrics {
        ssthresh: ssthresh_packets,
        reordering: reordering_packets,
        srtt_us_x8: (rtt_ns / 125) as u32,
        rttvar_us_x4: (rtt_deviation_ns / 250) as u32,
    }
}

fn linux_settings(host: &HostSpec, field: &str) -> Result<Settings, SetupError> {
    let sysctls = Sysctls::of_kernel(host.profile, &host.sysctl)
        .map_err(|found| problem(format!("{field}.sysctl{}", found.field), found.to_string()))?;
    let sizes = |sizes: dragstrip_scenario::BufferSizes| {
        [u64::from(sizes.min), u64::from(sizes.default), u64::from(sizes.max)]
    };
    let stock = match host.profile {
        StackProfile::Linux6 => Settings::linux_6(),
        StackProfile::Linux415 => Settings::linux_4_15(),
        StackProfile::Linux22 => Settings::linux_2_2(),
        StackProfile::Linux2627 => Settings::linux_2_6_27(),
        StackProfile::Linux2638 => Settings::linux_2_6_38(),
        StackProfile::Freebsd9 => Settings::freebsd_9(),
    };
    let settings = Settings {
        hz: host.tick_hz,
        mtu_bytes: host.mtu_bytes,
        gso: host.gso == GsoMode::Auto,
        sack: sysctls.tcp_sack,
        dsack: sysctls.tcp_dsack,
        timestamps: sysctls.tcp_timestamps != 0,
        window_scaling: sysctls.tcp_window_scaling,
        ecn_request: sysctls.tcp_ecn == 1,
        ecn_accept: sysctls.tcp_ecn != 0,
        reordering: sysctls.tcp_reordering,
        max_reordering: sysctls.tcp_max_reordering,
        rmem: sizes(sysctls.tcp_rmem),
        wmem: sizes(sysctls.tcp_wmem),
        core_rmem_max: u64::from(sysctls.rmem_max),
        rack: sysctls.tcp_recovery & 1 != 0,
        rack_static_window: sysctls.tcp_recovery & 2 != 0,
        rack_no_dupthresh: sysctls.tcp_recovery & 4 != 0,
        tail_loss_probe: sysctls.tcp_early_retrans >= 3,
        frto: sysctls.tcp_frto != 0,
        slow_start_after_idle: sysctls.tcp_slow_start_after_idle,
        adv_win_scale: sysctls.tcp_adv_win_scale,
        moderate_rcvbuf: sysctls.tcp_moderate_rcvbuf,
        limit_output_bytes: u64::from(sysctls.tcp_limit_output_bytes),
        tso_win_divisor: sysctls.tcp_tso_win_divisor,
        min_tso_segs: sysctls.tcp_min_tso_segs,
        tso_rtt_log: sysctls.tcp_tso_rtt_log,
        pacing_ss_ratio: sysctls.tcp_pacing_ss_ratio,
        pacing_ca_ratio: sysctls.tcp_pacing_ca_ratio,
        comp_sack_delay: Duration::from_nanos(sysctls.tcp_comp_sack_delay_ns),
        comp_sack_slack: Duration::from_nanos(sysctls.tcp_comp_sack_slack_ns),
        comp_sack_nr: sysctls.tcp_comp_sack_nr,
        min_rtt_wlen_s: sysctls.tcp_min_rtt_wlen,
        metrics_cache: stock.metrics_cache && !sysctls.tcp_no_metrics_save,
        history: history(host),
        ..stock
    };
    Ok(match host.profile {
        StackProfile::Linux6
        | StackProfile::Linux415
        | StackProfile::Linux22
        | StackProfile::Freebsd9 => settings,
        StackProfile::Linux2627 | StackProfile::Linux2638 => {
            Settings { initial_cwnd: rfc3390_window(settings.mss()), ..settings }
        }
    })
}
