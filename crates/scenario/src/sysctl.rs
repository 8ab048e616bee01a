//! Kernel settings by their own names, as Linux knows them: 6.1, and what came later.
//!
//! A scenario sets them verbatim (`net.ipv4.tcp_sack` → `0`). What the simulator cannot honour is
//! refused, never ignored: a setting that exists in the kernel and is not modelled may only be set
//! to the value the simulator behaves as anyway.
//!
//! Sources: `Documentation/networking/ip-sysctl.rst` and `net/ipv4/sysctl_net_ipv4.c` of
//! Linux 6.1 for names, ranges and defaults; the reference sheet of the stack for their effect.

use crate::types::StackProfile;
use dragstrip_tcp::profiles::StackRow;
use dragstrip_units::Problem;
use dragstrip_units::suggest;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// `tcp_rmem` or `tcp_wmem`: minimum, initial and largest buffer of a socket, bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// Bytes that a socket keeps under memory pressure.
    pub min: u32,
    /// Initial bytes of a socket.
    pub default: u32,
    /// Upper bound of autotuning, bytes.
    pub max: u32,
}

impl fmt::Display for BufferSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.min, self.default, self.max)
    }
}

/// Simulator support of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Yes.
    Modelled,
    /// Every value is accepted because none has an effect here, for this reason.
    NoEffect(&'static str),
    /// Only the kernel's default is accepted: the simulator always behaves so.
    DefaultOnly,
}

/// Values of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `0` or `1`.
    Bool,
    /// A whole number.
    Int(RangeInclusive<i64>),
    /// Three sizes in bytes, ascending, separated by blanks.
    Sizes,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => write!(f, "0 or 1"),
            Self::Int(range) => {
                write!(f, "a whole number from {} to {}", range.start(), range.end())
            }
            Self::Sizes => write!(f, "three ascending sizes in bytes: \"min default max\""),
        }
    }
}

/// A line of the table of known settings.
#[derive(Clone, Debug)]
pub struct Sysctl {
    /// Full name, e.g. `net.ipv4.tcp_sack`.
    pub name: &'static str,
    /// Accepted values.
    pub kind: Kind,
    /// Linux 6.1's default, as `sysctl -n` prints it; of what came later, what 6.1 does.
    pub default: String,
    /// Meaning, with its unit.
    pub meaning: &'static str,
    /// Support by the simulator.
    pub support: Support,
}

/// One field of [`Sysctls`]: how to read and to write it as text.
trait Setting: Sized {
    fn kind(range: Option<RangeInclusive<i64>>) -> Kind;
    fn parse(text: &str, kind: &Kind) -> Option<Self>;
    fn show(&self) -> String;
}

impl Setting for bool {
    fn kind(_range: Option<RangeInclusive<i64>>) -> Kind {
        Kind::Bool
    }
    fn parse(text: &str, _kind: &Kind) -> Option<Self> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }
    fn show(&self) -> String {
        u8::from(*self).to_string()
    }
}

macro_rules! integer_setting {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            fn kind(range: Option<RangeInclusive<i64>>) -> Kind {
                Kind::Int(range.unwrap_or(0..=i64::from(i32::MAX)))
            }
            fn parse(text: &str, kind: &Kind) -> Option<Self> {
                let value = text.parse::<i64>().ok()?;
                match kind {
                    Kind::Int(range) if range.contains(&value) => Self::try_from(value).ok(),
                    Kind::Int(_) | Kind::Bool | Kind::Sizes => None,
                }
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
integer_setting!(u32, i32, u64);

impl Setting for BufferSizes {
    fn kind(_range: Option<RangeInclusive<i64>>) -> Kind {
        Kind::Sizes
    }
    fn parse(text: &str, _kind: &Kind) -> Option<Self> {
        let sizes: Vec<u32> =
            text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[min, default, max] = sizes.as_slice() else { return None };
        // The kernel stores them in an int and refuses zero.
        let fits = 1 <= min && min <= default && default <= max && max <= i32::MAX as u32;
        fits.then_some(Self { min, default, max })
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// One line per setting: meaning, name, type, default, range (integers), support.
macro_rules! sysctls {
    ($($(#[doc = $meaning:literal])+
       $prefix:literal $field:ident: $type:ty = $default:expr $(, $range:expr)? => $support:expr;)+) => {
        /// All settings of a host, in the kernel's units.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each field's documentation is its line in the table")]
        pub struct Sysctls {
            $($(#[doc = $meaning])+ pub $field: $type,)+
        }

        impl Sysctls {
            /// Linux 6.1's defaults; of what came later, what it does.
            #[must_use]
            pub const fn linux_6() -> Self {
                Self { $($field: $default,)+ }
            }

            /// Full names and values, as `sysctl -n` prints them, in the order of the table.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((concat!($prefix, stringify!($field)), self.$field.show())),+]
            }

            /// Sets one by its full name; `false` when there is none of that name.
            fn set(&mut self, name: &str, text: &str) -> Result<bool, String> {
                match name {
                    $(concat!($prefix, stringify!($field)) => {
                        #[allow(unused_mut, unused_assignments)]
                        let mut range = None;
                        $(range = Some($range);)?
                        let kind = <$type>::kind(range);
                        self.$field = <$type>::parse(text, &kind).ok_or(kind.to_string())?;
                        let default: $type = $default;
                        if $support == Support::DefaultOnly && self.$field != default {
                            return Err(format!(
                                "{}: the simulator does not model other values", default.show()
                            ));
                        }
                        Ok(true)
                    })+
                    _ => Ok(false),
                }
            }
        }

        /// The known settings, in the order of their names here.
        #[must_use]
        pub fn sysctl_table() -> Vec<Sysctl> {
            vec![$({
                #[allow(unused_mut, unused_assignments)]
                let mut range = None;
                $(range = Some($range);)?
                let default: $type = $default;
                Sysctl {
                    name: concat!($prefix, stringify!($field)),
                    kind: <$type>::kind(range),
                    default: default.show(),
                    meaning: concat!($($meaning),+).trim_ascii(),
                    support: $support,
                }
            }),+]
        }
    };
}

use Support::{DefaultOnly, Modelled, NoEffect};

const FRESH: Support = NoEffect("every connection of a run starts without history");

sysctls! {
    /// Selective acknowledgements (RFC 2018).
    "net.ipv4." tcp_sack: bool = true => Modelled;
    /// Report duplicate arrivals by SACK (RFC 2883).
    "net.ipv4." tcp_dsack: bool = true => Modelled;
    /// Timestamp option (RFC 7323): 0 off, 1 on, 2 on without a random offset.
    "net.ipv4." tcp_timestamps: u32 = 1, 0..=2 => Modelled;
    /// Window scale option (RFC 7323).
    "net.ipv4." tcp_window_scaling: bool = true => Modelled;
    /// ECN (RFC 3168): 0 never, 1 request it, 2 only when requested. As in Linux 7.0, accurate ECN (RFC 9768): 3
    /// request it, 4 and 5 only when requested, and request ECN or none.
    "net.ipv4." tcp_ecn: u32 = 2, 0..=5 => Modelled;
    /// After a SYN that asks for ECN and is lost, ask no more (accurate ECN: after two).
    "net.ipv4." tcp_ecn_fallback: bool = true => Modelled;
    /// Initial reordering tolerance, packets.
    "net.ipv4." tcp_reordering: u32 = 3, 1..=i64::from(i32::MAX) => Modelled;
    /// Largest reordering tolerance that is learnt, packets.
    "net.ipv4." tcp_max_reordering: u32 = 300 => Modelled;
    /// Receive buffer: min, initial, max, bytes of memory.
    "net.ipv4." tcp_rmem: BufferSizes = BufferSizes { min: 4096, default: 131_072, max: 6_291_456 } => Modelled;
    /// Send buffer: min, initial, max, bytes of memory.
    "net.ipv4." tcp_wmem: BufferSizes = BufferSizes { min: 4096, default: 16_384, max: 4_194_304 } => Modelled;
    /// RACK (RFC 8985), bits: 1 on (since 6.17 always), 2 fixed reordering window, 4 no early entry at three duplicate ACKs.
    "net.ipv4." tcp_recovery: u32 = 1, 0..=7 => Modelled;
    /// Tail loss probe: 0 off, 3 and 4 on (1 and 2 no longer mean anything).
    "net.ipv4." tcp_early_retrans: u32 = 3, 0..=4 => Modelled;
    /// F-RTO (RFC 5682): 0 off, otherwise on.
    "net.ipv4." tcp_frto: u32 = 2, 0..=255 => Modelled;
    /// 1: remember nothing of a connection for the next one to the same host. On Linux 6.1 none does here.
    "net.ipv4." tcp_no_metrics_save: bool = false => Modelled;
    /// 1: do not remember ssthresh for the next connection to the same host.
    "net.ipv4." tcp_no_ssthresh_metrics_save: bool = true => FRESH;
    /// Shrink the window after an idle time of one RTO (RFC 2861).
    "net.ipv4." tcp_slow_start_after_idle: bool = true => Modelled;
    /// Share of the receive buffer that is advertised: n > 0: all but 1/2^n; n ≤ 0: 1/2^-n of it. No effect since 6.6, which
    /// measures the share.
    "net.ipv4." tcp_adv_win_scale: i32 = 1, -31..=31 => Modelled;
    /// Autotuning of the receive buffer.
    "net.ipv4." tcp_moderate_rcvbuf: bool = true => Modelled;
    /// Most bytes of a connection in the host's own queue and device (TCP small queues).
    "net.ipv4." tcp_limit_output_bytes: u32 = 1_048_576 => Modelled;
    /// A burst may wait to grow to 1/n of the window.
    "net.ipv4." tcp_tso_win_divisor: u32 = 3, 0..=255 => Modelled;
    /// Smallest burst of a sender that is not window limited, packets.
    "net.ipv4." tcp_min_tso_segs: u32 = 2, 1..=255 => Modelled;
    /// Bursts grow by 64 KB halved for every 2^n µs of minimum RTT; 0: they do not.
    "net.ipv4." tcp_tso_rtt_log: u32 = 9, 0..=255 => Modelled;
    /// Pacing rate in slow start, percent of cwnd/srtt.
    "net.ipv4." tcp_pacing_ss_ratio: u32 = 200, 0..=1000 => Modelled;
    /// Pacing rate in congestion avoidance, percent of cwnd/srtt.
    "net.ipv4." tcp_pacing_ca_ratio: u32 = 120, 0..=1000 => Modelled;
    /// Longest wait for SACKs to be sent together, ns.
    "net.ipv4." tcp_comp_sack_delay_ns: u64 = 1_000_000 => Modelled;
    /// Most SACKs that are sent together; 0: none.
    "net.ipv4." tcp_comp_sack_nr: u32 = 44, 0..=255 => Modelled;
    /// Slack of the joint SACK after its due time, ns.
    "net.ipv4." tcp_comp_sack_slack_ns: u64 = 100_000 => Modelled;
    /// Longest wait for SACKs to be sent together, percent of the RTT (since 6.19).
    "net.ipv4." tcp_comp_sack_rtt_percent: u32 = 5, 1..=1000 => Modelled;
    /// Below this RTT the receive buffer grows gently, µs (since 6.19).
    "net.ipv4." tcp_rcvbuf_low_rtt: u32 = 0 => Modelled;
    /// Retransmissions of a SYN, one timeout apart, before that time doubles (since 6.5).
    "net.ipv4." tcp_syn_linear_timeouts: u32 = 0, 0..=127 => Modelled;
    /// Window of the minimum RTT filter, seconds.
    "net.ipv4." tcp_min_rtt_wlen: u32 = 300, 0..=86_400 => Modelled;
    /// Linear retransmission timeouts for connections with few packets in flight.
    "net.ipv4." tcp_thin_linear_timeouts: bool = false => DefaultOnly;
    /// Timeouts without progress before a connection is given up (15: after some fifteen minutes; never, here).
    "net.ipv4." tcp_retries2: u32 = 15, 0..=255 => DefaultOnly;
    /// Hold small writes back while earlier packets wait in the device.
    "net.ipv4." tcp_autocorking: bool = true => DefaultOnly;
    /// The socket is writable only while less than this is unsent, bytes (`TCP_NOTSENT_LOWAT`).
    "net.ipv4." tcp_notsent_lowat: u32 = u32::MAX, 1..=i64::from(u32::MAX) => Modelled;
    /// Share of the window kept for the application: max(window/2^n, mss); 31: none.
    "net.ipv4." tcp_app_win: i32 = 31, 0..=31 => DefaultOnly;
    /// First MSS that path MTU probing tries, bytes.
    "net.ipv4." tcp_base_mss: u32 = 1024 => DefaultOnly;
    /// Largest receive buffer an application may ask for, bytes; the window scale allows for it.
    "net.core." rmem_max: u32 = 212_992, 2304..=i64::from(i32::MAX) => Modelled;
    /// Largest send buffer an application may ask for, bytes.
    "net.core." wmem_max: u32 = 212_992, 4608..=i64::from(i32::MAX) => Modelled;
}

/// Settings people try that are something else's business, or that the simulator lacks.
const REFUSED: &[(&str, &str)] = &[
    ("net.ipv4.tcp_congestion_control", "the flow to name it: flows[].transport.cc"),
    ("net.ipv4.tcp_allowed_congestion_control", "the flow to name it: flows[].transport.cc"),
    ("net.ipv4.tcp_available_congestion_control", "the flow to name it: flows[].transport.cc"),
    ("net.core.default_qdisc", "the link to name it: links[].qdisc"),
    ("net.ipv4.tcp_fack", "nothing: Linux 4.15 removed it, the profile linux-6 has RACK instead"),
    ("net.ipv4.tcp_abc", "nothing: Linux 3.9 removed it, the profile linux-6 counts packets"),
    ("net.ipv4.tcp_low_latency", "nothing: it has had no effect since Linux 4.14"),
    ("net.ipv4.tcp_mem", "nothing: the simulator's hosts have no memory pressure"),
    ("net.ipv4.tcp_mtu_probing", "nothing: the simulator does not probe the path MTU"),
    ("net.ipv4.tcp_fastopen", "nothing: the simulator does not model TCP Fast Open"),
    ("net.ipv4.tcp_syn_retries", "nothing: the simulator does not model it"),
    ("net.ipv4.tcp_synack_retries", "nothing: the simulator does not model it"),
    ("net.ipv4.tcp_retries1", "nothing: the simulator does not model it"),
    ("net.ipv4.tcp_keepalive_time", "nothing: the simulator does not model it"),
    ("net.core.rmem_default", "net.ipv4.tcp_rmem, which TCP uses in its place"),
    ("net.core.wmem_default", "net.ipv4.tcp_wmem, which TCP uses in its place"),
];

impl Default for Sysctls {
    fn default() -> Self {
        Self::linux_6()
    }
}

impl Sysctls {
    /// A kernel's defaults, changed by `map`: full sysctl name → text as `sysctl -w` takes it.
    ///
    /// # Errors
    /// The first unknown name or value, or a name that this kernel does not have yet.
    pub fn of_kernel(
        profile: StackProfile,
        map: &BTreeMap<String, String>,
    ) -> Result<Self, Problem> {
        let (sysctls, mut problems) = Self::of_kernel_all(profile, map);
        if problems.is_empty() { Ok(sysctls) } else { Err(problems.swap_remove(0)) }
    }

    /// Linux 6.1's defaults, changed by `map`: full sysctl name → text as `sysctl -w` takes it.
    ///
    /// # Errors
    /// The first unknown name or value, in the order of the map. [`Problem::field`] is `["net.ipv4.tcp_sack"]`, to be
    /// appended to the path of the map ([`Problem::within`]).
    pub fn from_map(map: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let (sysctls, mut problems) = Self::of_kernel_all(StackProfile::Linux6, map);
        if problems.is_empty() { Ok(sysctls) } else { Err(problems.swap_remove(0)) }
    }

    /// As [`of_kernel`](Self::of_kernel), with every problem instead of the first.
    pub(crate) fn of_kernel_all(
        profile: StackProfile,
        map: &BTreeMap<String, String>,
    ) -> (Self, Vec<Problem>) {
        let StackRow { kernel, settings, sysctls, accurate_ecn, .. } = profile.row();
        let lacks = sysctls.lacks().unwrap_or_default();
        let mut sysctls = Self::of(&settings());
        let mut problems = Vec::new();
        for (name, text) in map {
            let text = text.trim();
            let plain = name.strip_prefix("net.ipv4.");
            if lacks.iter().copied().flatten().any(|absent| plain == Some(absent)) {
                let expected = format!("a setting that {kernel} has");
                problems.push(Problem::new(at(name), format!("{name:?}"), expected));
                continue;
            }
            match sysctls.set(name, text) {
                Ok(true) if sysctls.tcp_ecn > 2 && !accurate_ecn => {
                    sysctls.tcp_ecn = 2;
                    let expected = format!("from 0 to 2: {kernel} has no accurate ECN");
                    problems.push(Problem::new(at(name), format!("{text:?}"), expected));
                }
                Ok(true) => {}
                Ok(false) => problems.push(unknown(name)),
                Err(expected) => {
                    problems.push(Problem::new(at(name), format!("{text:?}"), expected))
                }
            }
        }
        (sysctls, problems)
    }
}

pub(crate) fn at(name: &str) -> String {
    format!("[{name:?}]")
}

/// A name that is not in the table: someone else's business, or a slip.
fn unknown(name: &str) -> Problem {
    if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Problem::new(at(name), format!("{name:?}"), *instead);
    }
    let table = sysctl_table();
    let names = || table.iter().map(|line| line.name);
    // `tcp_sack` alone is what people say.
    let expected = match names().find(|full| full.rsplit_once('.').is_some_and(|(_, n)| n == name))
    {
        Some(full) => format!("the full name {full:?}"),
        None => suggest(name, names(), "a setting of docs/reference/sysctls.md"),
    };
    Problem::new(at(name), format!("{name:?}"), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_setting(name: &str, value: &str) -> Result<Sysctls, Problem> {
        Sysctls::from_map(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn the_empty_map_is_a_stock_kernel() {
        assert_eq!(Sysctls::from_map(&BTreeMap::new()), Ok(Sysctls::linux_6()));
    }

    #[test]
    fn every_default_can_be_set_and_changes_nothing() {
        let lacks = StackProfile::Linux6.row().sysctls.lacks().unwrap();
        for line in sysctl_table() {
            let plain = line.name.strip_prefix("net.ipv4.");
            if lacks.iter().copied().flatten().any(|absent| plain == Some(absent)) {
                continue;
            }
            assert_eq!(
                parse_setting(line.name, &line.default),
                Ok(Sysctls::linux_6()),
                "{}",
                line.name
            );
        }
    }

    #[test]
    fn each_kind_is_parsed() {
        assert!(!parse_setting("net.ipv4.tcp_sack", "0").unwrap().tcp_sack);
        assert_eq!(parse_setting("net.ipv4.tcp_reordering", "100").unwrap().tcp_reordering, 100);
        assert_eq!(
            parse_setting("net.ipv4.tcp_adv_win_scale", "-2").unwrap().tcp_adv_win_scale,
            -2
        );
        let sizes = BufferSizes { min: 4096, default: 87_380, max: 1_000_000 };
        assert_eq!(
            parse_setting("net.ipv4.tcp_rmem", "4096\t87380 1000000").unwrap().tcp_rmem,
            sizes
        );
    }

    #[test]
    fn absurd_values_say_what_would_be_right() {
        for (name, value, expected) in [
            ("net.ipv4.tcp_sack", "yes", "0 or 1"),
            ("net.ipv4.tcp_ecn", "6", "a whole number from 0 to 5"),
            ("net.ipv4.tcp_reordering", "1e15", "a whole number from 1 to 2147483647"),
            (
                "net.ipv4.tcp_rmem",
                "4096 87380",
                "three ascending sizes in bytes: \"min default max\"",
            ),
            ("net.ipv4.tcp_rmem", "9 8 7", "three ascending sizes in bytes: \"min default max\""),
        ] {
            let problem = parse_setting(name, value).unwrap_err();
            assert_eq!(problem.field, format!("[{name:?}]"));
            assert_eq!(problem.value, format!("{value:?}"));
            assert_eq!(problem.expected, expected);
        }
    }

    /// `net/ipv4/sysctl_net_ipv4.c` of 2.6.27.
    #[test]
    fn kernel_2_6_27_has_its_own_defaults_and_lacks_what_came_later() {
        let of = |name: &str, value: &str| {
            let map = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            Sysctls::of_kernel(StackProfile::Linux2627, &map)
        };
        let stock = of("net.ipv4.tcp_sack", "1").unwrap();
        assert_eq!((stock.tcp_adv_win_scale, stock.tcp_recovery), (2, 0));
        assert_eq!(stock.tcp_rmem.default, 87_380);
        let problem = of("net.ipv4.tcp_recovery", "1").unwrap_err();
        assert_eq!(problem.expected, "a setting that Linux 2.6 has");
    }

    #[test]
    fn a_release_has_the_nearest_profile() {
        for (release, profile) in [
            ("6.1.0-56-amd64", StackProfile::Linux6),
            ("4.15.0-213-generic", StackProfile::Linux415),
            ("5.15.0-101-generic", StackProfile::Linux6),
            ("6.12.117+deb13-amd64", StackProfile::Linux612),
            ("6.18.44", StackProfile::Linux7),
            ("7.3.4+deb13-amd64", StackProfile::Linux7),
            ("unknown", StackProfile::Linux6),
        ] {
            assert_eq!(StackProfile::of_release(release), profile, "{release}");
        }
    }

    #[test]
    fn features_that_a_kernel_lacks_are_in_the_table() {
        let lacks = StackProfile::ALL.iter().filter_map(|profile| profile.row().sysctls.lacks());
        for absent in lacks.flatten().copied().flatten() {
            assert!(sysctl_table().iter().any(|line| line.name == format!("net.ipv4.{absent}")));
        }
    }

    #[test]
    fn a_setting_that_4_15_lacks_is_refused_by_name() {
        let of = |name: &str, value: &str| {
            let map = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            Sysctls::of_kernel(StackProfile::Linux415, &map)
        };
        let problem = of("net.ipv4.tcp_comp_sack_nr", "44").unwrap_err();
        assert_eq!(problem.expected, "a setting that Linux 4.15 has");
        assert_eq!(of("net.ipv4.tcp_recovery", "0").unwrap().tcp_rmem.default, 87_380);
    }

    #[test]
    fn settings_of_later_kernels_are_refused_by_name() {
        let of = |profile, name: &str, value: &str| {
            let map = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            Sysctls::of_kernel(profile, &map)
        };
        let (syn, sack) =
            ("net.ipv4.tcp_syn_linear_timeouts", "net.ipv4.tcp_comp_sack_rtt_percent");
        let problem = of(StackProfile::Linux6, syn, "4").unwrap_err();
        assert_eq!(problem.expected, "a setting that Linux 6.1 has");
        assert_eq!(of(StackProfile::Linux612, syn, "2").unwrap().tcp_syn_linear_timeouts, 2);
        let problem = of(StackProfile::Linux612, sack, "5").unwrap_err();
        assert_eq!(problem.expected, "a setting that Linux 6.12 has");
        assert_eq!(of(StackProfile::Linux7, sack, "5").unwrap().tcp_comp_sack_rtt_percent, 5);
    }

    #[test]
    fn only_profiles_of_kernels_with_it_can_be_given_accurate_ecn() {
        let map = BTreeMap::from([("net.ipv4.tcp_ecn".to_owned(), "3".to_owned())]);
        let of = |profile| Sysctls::of_kernel(profile, &map);
        assert_eq!(of(StackProfile::Linux6).unwrap().tcp_ecn, 3);
        assert_eq!(of(StackProfile::Linux515L4s).unwrap().tcp_ecn, 3);
        assert_eq!(of(StackProfile::Linux7).unwrap().tcp_ecn, 3);
        let problem = of(StackProfile::Linux612).unwrap_err();
        assert_eq!(problem.expected, "from 0 to 2: Linux 6.12 has no accurate ECN");
        let problem = of(StackProfile::Linux2627).unwrap_err();
        assert_eq!(problem.expected, "from 0 to 2: Linux 2.6 has no accurate ECN");
    }

    #[test]
    fn unmodelled_settings_are_refused() {
        let problem = parse_setting("net.ipv4.tcp_base_mss", "512").unwrap_err();
        assert_eq!(problem.expected, "1024: the simulator does not model other values");
    }

    #[test]
    fn unknown_names_are_errors_that_point_somewhere() {
        for (name, hint) in [
            ("net.ipv4.tcp_sak", "did you mean \"net.ipv4.tcp_sack\"?"),
            ("tcp_sack", "the full name \"net.ipv4.tcp_sack\""),
            ("net.ipv4.tcp_congestion_control", "flows[].transport.cc"),
            ("vm.swappiness", "docs/reference/sysctls.md"),
        ] {
            let problem = parse_setting(name, "1").unwrap_err();
            assert!(problem.expected.contains(hint), "{problem}");
        }
    }
}
