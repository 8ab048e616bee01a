//! The stack profiles: one row per kernel, in a file of its family. Nothing about a profile stands anywhere else.

mod freebsd_9;
mod linux_2_2;
mod linux_2_6;
mod linux_6;

pub use freebsd_9::{FREEBSD_9, bsd_initial_window};
pub use linux_2_2::LINUX_2_2;
pub use linux_2_6::{LINUX_2_6_27, LINUX_2_6_38};
pub use linux_6::{LINUX_4_15, LINUX_5_15_L4S, LINUX_6, LINUX_6_12, LINUX_7};

use crate::profile::Settings;

/// Description of a kernel's TCP.
#[derive(Clone, Copy, Debug)]
pub struct StackRow {
    /// Name in messages.
    pub kernel: &'static str,
    /// The first Linux release that it is nearest to of all that it may stand for in a comparison with a kernel, whose release
    /// says which; `None`: it does not.
    pub nearest_since: Option<(u32, u32)>,
    /// Its stack, the variants of its rules, its ticks per second and the defaults of its settings.
    pub settings: fn() -> Settings,
    /// Its initial window, for segments of so many bytes.
    pub initial_window: fn(u32) -> u32,
    /// The congestion controls that it has in its version of them; `None`: all.
    pub algorithms: Option<&'static [&'static str]>,
    /// System whose names its settings have.
    pub sysctls: Sysctls,
    /// `tcp_ecn` may ask for accurate ECN (RFC 9768): `tcp_ecn_mode_max` is 5 (8ae3e8e6ceed, 7.0).
    pub accurate_ecn: bool,
    /// Why it sends no bursts for an interface to cut; `None`: it does.
    pub no_bursts: Option<&'static str>,
    /// A history of thresholds may be given to it, which it ignores. Those that keep metrics ([`Settings::metrics_cache`]) begin with
    /// all of a history; others take none.
    pub tolerates_threshold: bool,
}

/// System whose names a kernel's settings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sysctls {
    /// Linux's, but for those that came later than this kernel: without `net.ipv4.`.
    Linux {
        /// Lists of them.
        lacks: &'static [&'static [&'static str]],
    },
    /// FreeBSD's.
    Freebsd,
}

impl Sysctls {
    /// Lists of Linux's settings that came later, without `net.ipv4.`; `None` where the names are others.
    #[must_use]
    pub const fn lacks(self) -> Option<&'static [&'static [&'static str]]> {
        match self {
            Self::Linux { lacks } => Some(lacks),
            Self::Freebsd => None,
        }
    }
}

/// Calls `callback!` with the profiles: description, name of a variant, name, row. The order is that of the
/// reference page.
#[macro_export]
macro_rules! stack_profiles {
    ($callback:ident) => {
        $callback! {
            /// A stock Linux 6.1.
            Linux6 "linux-6" LINUX_6,
            /// L4STeam's Linux 5.15 (2022), which testbeds of L4S ran: as 6.1, but with accurate ECN nearly every segment is acknowledged
            /// that comes a millisecond after the last, a pushed full segment is not acknowledged by itself, and probe and reordering
            /// timers have two ticks on top.
            Linux515L4s "linux-5.15-l4s" LINUX_5_15_L4S,
            /// Linux 6.12 (2024, Debian 13): as 6.1, but the whole initial receive window is offered at once, the window follows the
            /// measured share of payload in the buffer, bursts cross the ends of socket buffers, which take less memory, and a SYN is
            /// sent again five times, a second apart, before that time doubles.
            Linux612 "linux-6.12" LINUX_6_12,
            /// Linux 7 (2026; as in 7.3): as 6.12, but receive buffers of up to 32 MB that grow by other rules, SACKs held back
            /// for a third of the RTT at most, no loss detection but by RACK, 4 MB in the own interface, and accurate ECN where
            /// `tcp_ecn` asks for it, which by default it does not.
            Linux7 "linux-7" LINUX_7,
            /// Linux 4.15 (2018): as 6.1, but a segment takes 4352 bytes of the send buffer, 20 are offered at first, SACKs are not
            /// compressed, a pushed full segment is not acknowledged by itself, and probe and reordering timers have two ticks on top.
            Linux415 "linux-4.15" LINUX_4_15,
            /// Linux 2.2 (1999): growth per ACK, fast retransmit with an inflated window, everything again after a
            /// timeout and nothing new before that, timeouts a quarter longer, ACKs delayed by the data's spacing, buffers of 64 KiB and
            /// windows of 32. Its vegas is the patch of 1999.
            Linux22 "linux-2.2" LINUX_2_2,
            /// Linux 2.6.27 (Fedora 10): growth per ACK, FACK and rate halving, no RACK, no pacing, 8 bits
            /// of reordering, receive window 3/4 of the buffer. Its cubic is 2.2.
            Linux2627 "linux-2.6.27" LINUX_2_6_27,
            /// Linux 2.6.38 (early 2011): as 2.6.27, but CUBIC has HyStart, in jiffies, and Vegas is there.
            Linux2638 "linux-2.6.38" LINUX_2_6_38,
            /// FreeBSD 9 as of May 2011: byte counting, NewReno and SACK recovery, timeouts with 200 ms of slop, every second
            /// segment acknowledged, clocks that advance with `tick_hz` (100 in a virtual machine, where FreeBSD so
            /// detects it).
            Freebsd9 "freebsd-9" FREEBSD_9,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_units::Duration;

    /// A kernel's defaults, as its source has them.
    struct Defaults {
        row: StackRow,
        hz: u64,
        /// `sysctl_tcp_rmem`, `sysctl_tcp_wmem`.
        rmem: [u64; 3],
        wmem: [u64; 3],
        adv_win_scale: i32,
        tail_loss_probe: bool,
        /// RACK (`tcp_recovery`), since 4.4.
        rack: bool,
        /// `tcp_comp_sack_nr`, since 4.18.
        comp_sack_nr: u32,
        /// `TCP_TIMEOUT_INIT`, `TCPTV_RTOBASE`: milliseconds.
        rto_initial_ms: u64,
        /// `tcp_ecn`: 2 grants ECN when it is requested.
        ecn_accept: bool,
        /// `tcp_limit_output_bytes`, for the kernels that have it.
        limit_output_bytes: Option<u64>,
        /// Segments of 1448 bytes.
        initial_window: u32,
    }

    #[test]
    fn each_profile_has_its_kernels_defaults() {
        // 6.1 and 4.15: tcp_sk_init, tcp_init (buffers for 2 GB of memory), TCP_INIT_CWND; tcp_limit_output_bytes
        // is 16 * 65536 since 4.20, 262144 before.
        let linux_6 = Defaults {
            row: LINUX_6,
            hz: 250,
            rmem: [4096, 131_072, 6_291_456],
            wmem: [4096, 16_384, 4_194_304],
            adv_win_scale: 1,
            tail_loss_probe: true,
            rack: true,
            comp_sack_nr: 44,
            rto_initial_ms: 1_000,
            ecn_accept: true,
            limit_output_bytes: Some(1_048_576),
            initial_window: 10,
        };
        let linux_5_15_l4s = Defaults { row: LINUX_5_15_L4S, ..linux_6 };
        // tcp_sk_init and tcp_init of 6.12.117 and 7.3.4; tcp_ecn is TCP_ECN_IN_ECN_OUT_NOECN in 7.3, which is 2.
        let linux_6_12 = Defaults { row: LINUX_6_12, ..linux_6 };
        let linux_7 = Defaults {
            row: LINUX_7,
            rmem: [4096, 131_072, 33_554_432],
            limit_output_bytes: Some(4_194_304),
            ..linux_6
        };
        let linux_4_15 = Defaults {
            row: LINUX_4_15,
            rmem: [4096, 87_380, 6_291_456],
            comp_sack_nr: 0,
            limit_output_bytes: Some(262_144),
            ..linux_6
        };
        // tcp.c and tcp_input.c of 2.6.27: sysctl_tcp_adv_win_scale = 2, TCP_TIMEOUT_INIT = 3 * HZ, tcp_init_cwnd
        // (RFC 3390), sysctl_tcp_ecn = 0; tail loss probes came with 3.10, RACK with 4.4.
        let linux_2_6_27 = Defaults {
            row: LINUX_2_6_27,
            hz: 1000,
            rmem: [4096, 87_380, 4_194_304],
            wmem: [4096, 16_384, 4_194_304],
            adv_win_scale: 2,
            tail_loss_probe: false,
            rack: false,
            comp_sack_nr: 0,
            rto_initial_ms: 3_000,
            ecn_accept: false,
            limit_output_bytes: None,
            initial_window: 3,
        };
        // sysctl_tcp_ecn = 2 since 2.6.31.
        let linux_2_6_38 =
            Defaults { row: LINUX_2_6_38, hz: 250, ecn_accept: true, ..linux_2_6_27 };
        // tcp_v4_init_sock of 2.2.14; SK_RMEM_MAX, SK_WMEM_MAX; half of the buffer is offered.
        let linux_2_2 = Defaults {
            row: LINUX_2_2,
            hz: 100,
            rmem: [4096, 65_535, 65_535],
            wmem: [4096, 65_535, 65_535],
            adv_win_scale: -1,
            ecn_accept: false,
            initial_window: 2,
            ..linux_2_6_27
        };
        // tcp_recvspace, tcp_sendspace, tcp_autorcvbuf_max, tcp_autosndbuf_max, TCPTV_RTOBASE; all of the buffer is
        // offered.
        let freebsd_9 = Defaults {
            row: FREEBSD_9,
            hz: 1000,
            rmem: [0, 65_536, 262_144],
            wmem: [0, 32_768, 262_144],
            adv_win_scale: 0,
            comp_sack_nr: 44,
            initial_window: 3,
            ..linux_2_2
        };
        for kernel in [
            linux_6,
            linux_6_12,
            linux_7,
            linux_5_15_l4s,
            linux_4_15,
            linux_2_6_27,
            linux_2_6_38,
            linux_2_2,
            freebsd_9,
        ] {
            let settings = (kernel.row.settings)();
            let name = kernel.row.kernel;
            assert_eq!(u64::from(settings.hz), kernel.hz, "{name}: HZ");
            assert_eq!(settings.rmem, kernel.rmem, "{name}: tcp_rmem");
            assert_eq!(settings.wmem, kernel.wmem, "{name}: tcp_wmem");
            assert_eq!(settings.adv_win_scale, kernel.adv_win_scale, "{name}: tcp_adv_win_scale");
            assert_eq!(settings.tail_loss_probe, kernel.tail_loss_probe, "{name}: tail loss probe");
            assert_eq!(settings.rack, kernel.rack, "{name}: tcp_recovery");
            assert_eq!(settings.comp_sack_nr, kernel.comp_sack_nr, "{name}: tcp_comp_sack_nr");
            let initial = Duration::from_millis(kernel.rto_initial_ms);
            assert_eq!(settings.rto_initial, initial, "{name}: first timeout");
            assert_eq!(settings.ecn_accept, kernel.ecn_accept, "{name}: tcp_ecn");
            if let Some(bytes) = kernel.limit_output_bytes {
                assert_eq!(settings.limit_output_bytes, bytes, "{name}: tcp_limit_output_bytes");
            }
            let window = (kernel.row.initial_window)(1448);
            assert_eq!(window, kernel.initial_window, "{name}: initial window");
            assert_eq!(settings.initial_cwnd, window, "{name}: initial window");
        }
    }
}
