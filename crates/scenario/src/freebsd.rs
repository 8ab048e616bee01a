//! FreeBSD 9's settings by their own names.
//!
//! As with Linux's ([`crate::Sysctls`]), what the simulator cannot honour is refused.
//!
//! Sources: FreeBSD 9.3 `netinet/tcp_input.c`, `tcp_output.c`, `tcp_timer.c`, `tcp_subr.c`, `uipc_socket.c` for names and
//! defaults, but for those that changed since May 2011.

use crate::sysctl::{Kind, Support, Sysctl, at};
use dragstrip_tcp::Settings;
use dragstrip_tcp::profiles::FREEBSD_9;
use dragstrip_units::Duration;
use dragstrip_units::Problem;
use dragstrip_units::suggest;
use std::collections::BTreeMap;

/// Name, least value, largest value, default, meaning, support. A range from 0 to 1 is a switch.
type Line = (&'static str, i64, i64, fn(&Settings) -> i64, &'static str, Support);

use Support::{DefaultOnly, Modelled, NoEffect};

const TABLE: &[Line] = &[
    (
        "net.inet.tcp.sack.enable",
        0,
        1,
        |s| s.sack.into(),
        "Selective acknowledgements (RFC 2018).",
        Modelled,
    ),
    (
        "net.inet.tcp.rfc1323",
        0,
        1,
        |s| s.timestamps.into(),
        "Timestamps and window scaling.",
        Modelled,
    ),
    (
        "net.inet.tcp.rfc3042",
        0,
        1,
        |s| s.bsd.limited_transmit.into(),
        "Limited transmit: a new segment for each of the first two duplicate ACKs.",
        Modelled,
    ),
    ("net.inet.tcp.rfc3390", 0, 1, |_| 1, "Initial window of RFC 3390; 0: of RFC 5681.", Modelled),
    (
        "net.inet.tcp.experimental.initcwnd10",
        0,
        1,
        |_| 0,
        "Initial window of ten segments (RFC 6928); came after May 2011.",
        Modelled,
    ),
    (
        "net.inet.tcp.rfc3465",
        0,
        1,
        |s| (s.bsd.abc_limit > 0).into(),
        "Growth counts bytes, not ACKs.",
        Modelled,
    ),
    (
        "net.inet.tcp.abc_l_var",
        1,
        1 << 16,
        |s| s.bsd.abc_limit.into(),
        "Segments of an ACK that count for growth at most.",
        Modelled,
    ),
    (
        "net.inet.tcp.delayed_ack",
        0,
        1,
        |s| (s.bsd.delayed_ack > Duration::ZERO).into(),
        "Only every second segment is acknowledged at once.",
        Modelled,
    ),
    (
        "net.inet.tcp.delacktime",
        1,
        10_000,
        |s| ms(s.bsd.delayed_ack),
        "How long the other one waits, ms.",
        Modelled,
    ),
    (
        "net.inet.tcp.rexmit_min",
        1,
        60_000,
        |s| ms(s.rto_min),
        "Least retransmission timeout without its slop, ms.",
        Modelled,
    ),
    (
        "net.inet.tcp.rexmit_slop",
        0,
        60_000,
        |s| ms(s.bsd.rto_slop),
        "Added to every retransmission timeout, ms.",
        Modelled,
    ),
    (
        "net.inet.tcp.sendspace",
        2048,
        1 << 30,
        |s| s.wmem[1] as i64,
        "Send buffer at first, bytes of payload.",
        Modelled,
    ),
    (
        "net.inet.tcp.sendbuf_auto",
        0,
        1,
        |s| (s.bsd.send_step > 0).into(),
        "Autotuning of the send buffer.",
        Modelled,
    ),
    (
        "net.inet.tcp.sendbuf_inc",
        1,
        1 << 30,
        |s| s.bsd.send_step as i64,
        "A step of it, bytes.",
        Modelled,
    ),
    (
        "net.inet.tcp.sendbuf_max",
        2048,
        1 << 30,
        |s| s.wmem[2] as i64,
        "How far it goes, bytes; of May 2011 (unverified), 2097152 in 9.3.",
        Modelled,
    ),
    (
        "net.inet.tcp.recvspace",
        2048,
        1 << 30,
        |s| s.rmem[1] as i64,
        "Receive buffer at first, bytes of payload.",
        Modelled,
    ),
    (
        "net.inet.tcp.recvbuf_auto",
        0,
        1,
        |s| s.moderate_rcvbuf.into(),
        "Autotuning of the receive buffer.",
        Modelled,
    ),
    (
        "net.inet.tcp.recvbuf_inc",
        1,
        1 << 30,
        |s| s.bsd.receive_step as i64,
        "A step of it, bytes.",
        Modelled,
    ),
    (
        "net.inet.tcp.recvbuf_max",
        2048,
        1 << 30,
        |s| s.rmem[2] as i64,
        "How far it goes, bytes; of May 2011 (unverified), 2097152 in 9.3.",
        Modelled,
    ),
    (
        "kern.ipc.maxsockbuf",
        65_536,
        1 << 30,
        |s| s.core_rmem_max as i64,
        "Largest buffer of a socket, bytes; the window scale allows for it.",
        Modelled,
    ),
    ("net.inet.tcp.ecn.enable", 0, 1, |_| 0, "ECN (RFC 3168).", DefaultOnly),
    (
        "net.inet.tcp.minmss",
        0,
        65_535,
        |_| 216,
        "Least MSS that a peer may announce, bytes.",
        NoEffect("no peer here announces less"),
    ),
    (
        "net.inet.tcp.hostcache.expire",
        0,
        i32::MAX as i64,
        |_| 3600,
        "How long the metrics of a host are remembered, s.",
        NoEffect("every connection of a run starts without history"),
    ),
];

/// The settings that the defaults are read off.
fn stock() -> Settings {
    (FREEBSD_9.settings)()
}

fn ms(span: Duration) -> i64 {
    (span.as_nanos() / 1_000_000) as i64
}

/// All settings of a FreeBSD host, in the kernel's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreebsdSysctls {
    changed: BTreeMap<&'static str, i64>,
}

impl FreebsdSysctls {
    /// FreeBSD 9's defaults, changed by `map`: full sysctl name → text as `sysctl` takes it.
    ///
    /// # Errors
    /// The first unknown name or value.
    pub fn from_map(map: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let (sysctls, mut problems) = Self::all(map);
        if problems.is_empty() { Ok(sysctls) } else { Err(problems.swap_remove(0)) }
    }

    /// As [`from_map`](Self::from_map), with every problem instead of the first.
    pub(crate) fn all(map: &BTreeMap<String, String>) -> (Self, Vec<Problem>) {
        let mut changed = BTreeMap::new();
        let mut problems = Vec::new();
        for (name, text) in map {
            match value(name, text.trim()) {
                Ok((name, value)) => drop(changed.insert(name, value)),
                Err(problem) => problems.push(problem),
            }
        }
        (Self { changed }, problems)
    }

    /// The value of the setting called `name`, which must be in the table.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        let line = TABLE.iter().find(|line| line.0 == name).expect("a setting of the table");
        self.changed.get(name).copied().unwrap_or_else(|| (line.3)(&stock())) as u64
    }

    /// The same of a switch.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) != 0
    }
}

fn value(name: &str, text: &str) -> Result<(&'static str, i64), Problem> {
    let Some(&(known, least, most, default, _, support)) = TABLE.iter().find(|line| line.0 == name)
    else {
        let names = TABLE.iter().map(|line| line.0);
        let expected = suggest(name, names, "a setting of FreeBSD in docs/reference/sysctls.md");
        return Err(Problem::new(at(name), format!("{name:?}"), expected));
    };
    let wrong = |expected: String| Problem::new(at(name), format!("{text:?}"), expected);
    let kind = kind(least, most);
    let value: i64 = text.parse().map_err(|_| wrong(kind.to_string()))?;
    if !(least..=most).contains(&value) {
        return Err(wrong(kind.to_string()));
    }
    if support == DefaultOnly && value != default(&stock()) {
        let default = default(&stock());
        return Err(wrong(format!("{default}: the simulator does not model other values")));
    }
    Ok((known, value))
}

fn kind(least: i64, most: i64) -> Kind {
    if (least, most) == (0, 1) { Kind::Bool } else { Kind::Int(least..=most) }
}

/// The known settings of FreeBSD 9.
#[must_use]
pub fn freebsd_sysctl_table() -> Vec<Sysctl> {
    TABLE
        .iter()
        .map(|&(name, least, most, default, meaning, support)| Sysctl {
            name,
            kind: kind(least, most),
            default: default(&stock()).to_string(),
            meaning,
            support,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_setting(name: &str, value: &str) -> Result<FreebsdSysctls, Problem> {
        FreebsdSysctls::from_map(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn every_default_can_be_set_and_changes_nothing() {
        for line in freebsd_sysctl_table() {
            let set = parse_setting(line.name, &line.default).unwrap();
            assert_eq!(set.get(line.name).to_string(), line.default);
        }
    }

    #[test]
    fn errors_are_reported() {
        for (name, value, expected) in [
            ("net.inet.tcp.sack.enable", "2", "0 or 1"),
            ("net.inet.tcp.delacktime", "0.1", "a whole number from 1 to 10000"),
            ("net.inet.tcp.ecn.enable", "1", "0: the simulator does not model other values"),
            ("net.inet.tcp.sack.enabled", "1", "did you mean \"net.inet.tcp.sack.enable\"?"),
            ("net.ipv4.tcp_sack", "1", "docs/reference/sysctls.md"),
        ] {
            let problem = parse_setting(name, value).unwrap_err();
            assert_eq!(problem.field, format!("[{name:?}]"));
            assert!(problem.expected.contains(expected), "{problem}");
        }
    }
}
