//! From a host's profile and sysctls to the settings of its TCP, and from a kernel's stock settings to its sysctls.

use crate::freebsd::FreebsdSysctls;
use crate::sysctl::{BufferSizes, Sysctls};
use crate::types::{GsoMode, HistorySpec, HostSpec};
use dragstrip_tcp::profiles::{self, StackRow, bsd_initial_window};
use dragstrip_tcp::{BsdSettings, Metrics, Settings};
use dragstrip_units::{Duration, Problem};

impl HostSpec {
    /// Kernel ticks per second.
    #[must_use]
    pub fn ticks_per_second(&self) -> u32 {
        self.tick_hz.unwrap_or_else(|| (self.profile.row().settings)().hz)
    }

    /// The settings of its TCP.
    ///
    /// # Errors
    /// The first sysctl that its kernel lacks or whose value is invalid; the caller prefixes the field with the path
    /// of `sysctl`.
    pub fn settings(&self) -> Result<Settings, Problem> {
        match self.profile.row().sysctls {
            profiles::Sysctls::Linux { .. } => linux_settings(self),
            profiles::Sysctls::Freebsd => freebsd_settings(self),
        }
    }
}

fn freebsd_settings(host: &HostSpec) -> Result<Settings, Problem> {
    let sysctls = FreebsdSysctls::from_map(&host.sysctl)?;
    let get = |name: &str| sysctls.get(&format!("net.inet.tcp.{name}"));
    let is_on = |name: &str| get(name) != 0;
    let span = |name: &str| Duration::from_millis(get(name));
    let options = is_on("rfc1323");
    let settings = Settings {
        hz: host.ticks_per_second(),
        mtu_bytes: host.mtu_bytes,
        gso: host.gso != GsoMode::Off,
        whole_bursts: host.gso == GsoMode::Whole,
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
        ..(host.profile.row().settings)()
    };
    let (ten, rfc3390) = (is_on("experimental.initcwnd10"), is_on("rfc3390"));
    Ok(Settings { initial_cwnd: bsd_initial_window(settings.mss(), ten, rfc3390), ..settings })
}

/// As `tcp_update_metrics` keeps it: the RTT × 8, its deviation × 4. What keeps no metrics takes none over.
fn history(host: &HostSpec, stock: &Settings) -> Metrics {
    let Some(history) = host.history.filter(|_| stock.metrics_cache) else {
        return Metrics::default();
    };
    let HistorySpec { ssthresh_packets, reordering_packets, rtt_ns, rtt_deviation_ns } = history;
    Metrics {
        ssthresh: ssthresh_packets,
        reordering: reordering_packets,
        srtt_us_x8: (rtt_ns / 125) as u32,
        rttvar_us_x4: (rtt_deviation_ns / 250) as u32,
    }
}

fn linux_settings(host: &HostSpec) -> Result<Settings, Problem> {
    let StackRow { settings: stock, initial_window, .. } = host.profile.row();
    let sysctls = Sysctls::of_kernel(host.profile, &host.sysctl)?;
    let stock = stock();
    let sizes =
        |sizes: BufferSizes| [u64::from(sizes.min), u64::from(sizes.default), u64::from(sizes.max)];
    let settings = Settings {
        hz: host.ticks_per_second(),
        mtu_bytes: host.mtu_bytes,
        gso: host.gso != GsoMode::Off,
        whole_bursts: host.gso == GsoMode::Whole,
        sack: sysctls.tcp_sack,
        dsack: sysctls.tcp_dsack,
        timestamps: sysctls.tcp_timestamps != 0,
        window_scaling: sysctls.tcp_window_scaling,
        ecn_request: matches!(sysctls.tcp_ecn, 1 | 4),
        ecn_accept: sysctls.tcp_ecn != 0,
        accurate_ecn_request: sysctls.tcp_ecn == 3,
        accurate_ecn_accept: sysctls.tcp_ecn >= 3,
        ecn_fallback: sysctls.tcp_ecn_fallback,
        reordering: sysctls.tcp_reordering,
        max_reordering: sysctls.tcp_max_reordering,
        rmem: sizes(sysctls.tcp_rmem),
        wmem: sizes(sysctls.tcp_wmem),
        core_rmem_max: u64::from(sysctls.rmem_max),
        core_wmem_max: u64::from(sysctls.wmem_max),
        rack: sysctls.tcp_recovery & 1 != 0,
        rack_static_window: sysctls.tcp_recovery & 2 != 0,
        rack_no_dupthresh: sysctls.tcp_recovery & 4 != 0,
        tail_loss_probe: sysctls.tcp_early_retrans >= 3,
        frto: sysctls.tcp_frto != 0,
        slow_start_after_idle: sysctls.tcp_slow_start_after_idle,
        adv_win_scale: sysctls.tcp_adv_win_scale,
        moderate_rcvbuf: sysctls.tcp_moderate_rcvbuf,
        limit_output_bytes: u64::from(sysctls.tcp_limit_output_bytes),
        notsent_lowat: sysctls.tcp_notsent_lowat,
        tso_win_divisor: sysctls.tcp_tso_win_divisor,
        min_tso_segs: sysctls.tcp_min_tso_segs,
        tso_rtt_log: sysctls.tcp_tso_rtt_log,
        pacing_ss_ratio: sysctls.tcp_pacing_ss_ratio,
        pacing_ca_ratio: sysctls.tcp_pacing_ca_ratio,
        comp_sack_delay: Duration::from_nanos(sysctls.tcp_comp_sack_delay_ns),
        comp_sack_slack: Duration::from_nanos(sysctls.tcp_comp_sack_slack_ns),
        comp_sack_nr: sysctls.tcp_comp_sack_nr,
        comp_sack_rtt_percent: sysctls.tcp_comp_sack_rtt_percent,
        rcvbuf_low_rtt: Duration::from_micros(sysctls.tcp_rcvbuf_low_rtt.into()),
        syn_linear_timeouts: sysctls.tcp_syn_linear_timeouts,
        min_rtt_wlen_s: sysctls.tcp_min_rtt_wlen,
        metrics_cache: stock.metrics_cache && !sysctls.tcp_no_metrics_save,
        history: history(host, &stock),
        ..stock
    };
    Ok(Settings { initial_cwnd: initial_window(settings.mss()), ..settings })
}

impl Sysctls {
    /// The settings of a Linux as sysctls; settings that the simulator does not model have Linux 6.1's defaults.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let sizes = |sizes: [u64; 3]| {
            let [min, default, max] = sizes.map(|bytes| bytes as u32);
            BufferSizes { min, default, max }
        };
        let recovery = [settings.rack, settings.rack_static_window, settings.rack_no_dupthresh];
        Self {
            tcp_sack: settings.sack,
            tcp_dsack: settings.dsack,
            tcp_timestamps: settings.timestamps.into(),
            tcp_window_scaling: settings.window_scaling,
            tcp_ecn: match (settings.accurate_ecn_accept, settings.ecn_request) {
                (true, _) if settings.accurate_ecn_request => 3,
                (true, true) => 4,
                (true, false) => 5,
                (false, true) => 1,
                (false, false) if settings.ecn_accept => 2,
                (false, false) => 0,
            },
            tcp_ecn_fallback: settings.ecn_fallback,
            tcp_reordering: settings.reordering,
            tcp_max_reordering: settings.max_reordering,
            tcp_rmem: sizes(settings.rmem),
            tcp_wmem: sizes(settings.wmem),
            rmem_max: settings.core_rmem_max as u32,
            wmem_max: settings.core_wmem_max as u32,
            tcp_recovery: (0..).zip(recovery).map(|(bit, on)| u32::from(on) << bit).sum(),
            tcp_early_retrans: if settings.tail_loss_probe { 3 } else { 0 },
            tcp_frto: if settings.frto { 2 } else { 0 },
            tcp_slow_start_after_idle: settings.slow_start_after_idle,
            tcp_adv_win_scale: settings.adv_win_scale,
            tcp_moderate_rcvbuf: settings.moderate_rcvbuf,
            tcp_limit_output_bytes: settings.limit_output_bytes as u32,
            tcp_notsent_lowat: settings.notsent_lowat,
            tcp_tso_win_divisor: settings.tso_win_divisor,
            tcp_min_tso_segs: settings.min_tso_segs,
            tcp_tso_rtt_log: settings.tso_rtt_log,
            tcp_pacing_ss_ratio: settings.pacing_ss_ratio,
            tcp_pacing_ca_ratio: settings.pacing_ca_ratio,
            tcp_comp_sack_delay_ns: settings.comp_sack_delay.as_nanos(),
            tcp_comp_sack_slack_ns: settings.comp_sack_slack.as_nanos(),
            tcp_comp_sack_nr: settings.comp_sack_nr,
            tcp_comp_sack_rtt_percent: settings.comp_sack_rtt_percent,
            tcp_rcvbuf_low_rtt: settings.rcvbuf_low_rtt.as_micros_floor() as u32,
            tcp_syn_linear_timeouts: settings.syn_linear_timeouts,
            tcp_min_rtt_wlen: settings.min_rtt_wlen_s,
            ..Self::linux_6()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::StackProfile;

    fn stock(profile: StackProfile) -> HostSpec {
        let text = format!("{{\"name\": \"h\", \"profile\": {:?}}}", profile.name());
        serde_json::from_str(&text).expect("a host")
    }

    /// A host of a kernel has the settings in that kernel's row, its clock too.
    #[test]
    fn a_host_without_settings_has_its_row() {
        for &profile in StackProfile::ALL {
            let row = (profile.row().settings)();
            assert_eq!(stock(profile).settings(), Ok(row.clone()), "{}", profile.name());
            assert_eq!(stock(profile).ticks_per_second(), row.hz);
        }
        assert_eq!(stock(StackProfile::Freebsd9).ticks_per_second(), 1000);
    }

    #[test]
    fn the_table_of_sysctls_has_the_defaults_of_linux_6() {
        assert_eq!(Sysctls::of(&Settings::linux_6()), Sysctls::linux_6());
    }
}
