//! Results of probing a host, checked against the scenario's requirements.

use super::hosts::{Host, Lab, Remote};
use super::messages::{Ask, Facts};
use crate::fault::{Fault, fault};
use crate::sys::{self, Discipline};
use serde::Serialize;
use std::net::Ipv4Addr;

/// Readings of a host's clock; the one with the shortest way counts.
const READINGS: usize = 60;

/// Something about a host, and whether it will do.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub host: String,
    pub what: String,
    pub found: String,
    pub ok: bool,
    /// If not ok: what would be right. `refused`: the user can write it differently.
    pub expected: String,
    pub refused: bool,
}

/// Lists the results of probing a host, by subject.
pub fn examine(lab: &Lab, host: &Host, facts: &Facts, clock: Clock) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |subject: &str, found: String, ok: bool, expected: &str, refused: bool| {
        let (subject, expected) = (subject.to_owned(), expected.to_owned());
        findings.push(Finding {
            host: host.name.clone(),
            what: subject,
            found,
            ok,
            expected,
            refused,
        });
    };
    add("kernel", facts.kernel.clone(), true, "", false);
    let rights = match (facts.net_admin, facts.net_raw) {
        (true, true) => "CAP_NET_ADMIN and CAP_NET_RAW",
        (true, false) => "CAP_NET_ADMIN only",
        (false, true) => "CAP_NET_RAW only",
        (false, false) => "none",
    };
    let enough = facts.net_admin && facts.net_raw;
    let expected = "CAP_NET_ADMIN and CAP_NET_RAW: root, a sudo rule, or file capabilities (docs/how-to/lab.md)";
    add("rights", rights.to_owned(), enough, expected, true);
    add("congestion controls", facts.algorithms.join(" "), true, "", false);
    let programs = if facts.btf { "taken" } else { "not taken: its kernel has no BTF" };
    add("congestion controls from BPF", programs.to_owned(), true, "", false);
    let lacks = if facts.lacks.is_empty() {
        "all".to_owned()
    } else {
        format!("all but {}", facts.lacks.join(" "))
    };
    add("queue disciplines", lacks, true, "", false);
    if host.role == "router" {
        let expected = "net.ipv4.ip_forward = 1 on a router";
        add("forwarding", on_off(facts.forwards).to_owned(), facts.forwards, expected, false);
    }
    for cable in &host.interfaces {
        let subject = format!("interfaces.{}", cable.name);
        if cable.name == host.management {
            add(&subject, "management".into(), false, "an interface that is not management", true);
            continue;
        }
        let Some(interface) =
            facts.interfaces.iter().find(|interface| interface.name == cable.name)
        else {
            add(&subject, String::new(), false, "the name of an interface that the host has", true);
            continue;
        };
        let prefix = format!("{}/{}", cable.address, cable.length);
        let all: Vec<String> =
            interface.addresses.iter().map(|(a, l)| format!("{a}/{l}")).collect();
        let outside = interface.addresses.iter().find(|(address, _)| !inside(lab, *address));
        let half = interface.half_duplex;
        let (text, ok, expected, refused) = if let Some(why) = &interface.carries {
            (format!("carries {why}"), false, "another interface for the lab".to_owned(), true)
        } else if let Some((address, _)) = outside {
            (
                format!("has the address {address}"),
                false,
                "addresses within the lab's prefixes alone".to_owned(),
                true,
            )
        } else if !all.contains(&prefix) {
            let assigned = if all.is_empty() { "no address".to_owned() } else { all.join(" ") };
            (
                assigned,
                false,
                format!("the address {prefix}: ip address add {prefix} dev {}", cable.name),
                false,
            )
        } else if !interface.up {
            ("down".to_owned(), false, format!("up: ip link set {} up", cable.name), false)
        } else if let (Some((kind, handle)), false) =
            (&interface.foreign, lab.allow.replace_qdisc || cable.real || facts.holder.is_some())
        {
            (
                format!("root qdisc {kind} {handle}"),
                false,
                "the system's default; replace_qdisc = true to lose it".to_owned(),
                true,
            )
        } else if half {
            ("half duplex".to_owned(), false, "full duplex".to_owned(), false)
        } else {
            let speed =
                interface.speed_mbit.map_or_else(String::new, |mbit| format!(", {mbit} Mbit/s"));
            (
                format!("{} to {}, MTU {}{speed}", all.join(" "), cable.to, interface.mtu_bytes),
                true,
                String::new(),
                false,
            )
        };
        add(&subject, text, ok, &expected, refused);
    }
    let offset_text = format!(
        "{:.1} ms ahead, known to {:.2} ms",
        clock.offset_ns as f64 / 1e6,
        clock.error_ns as f64 / 1e6
    );
    add("clock", offset_text, true, "", false);
    add("clock discipline", discipline(facts.discipline), true, "", false);
    match &facts.holder {
        None => add("in use", "no".into(), true, "", false),
        Some(holder) => {
            let (hour, minute) = (holder.since / 3_600 % 24, holder.since / 60 % 60);
            let state = if holder.alive { "" } else { ", who has gone and left changes behind" };
            let holder_text = format!(
                "by {:?} ({}) since {hour:02}:{minute:02} UTC{state} (boot id {})",
                holder.lab, holder.owner, holder.boot
            );
            let expected = "nobody; dragstrip lab clean if nobody runs it";
            add("in use", holder_text, false, expected, false);
        }
    }
    findings
}

/// Describes the state of a host's clock discipline as its kernel reports it.
fn discipline(of: Option<Discipline>) -> String {
    let ms = |ns: i64| ns as f64 / 1e6;
    match of {
        None => "unknown: its kernel does not answer adjtimex(2)".to_owned(),
        Some(Discipline { synchronised: false, .. }) => {
            "none: its kernel says that nothing keeps its clock (chronyd, ntpd, phc2sys)".to_owned()
        }
        Some(Discipline { error_ns, error_max_ns, .. }) => format!(
            "synchronised, error estimated at {:.3} ms, {:.3} ms at most",
            ms(error_ns),
            ms(error_max_ns)
        ),
    }
}

const fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn inside(lab: &Lab, address: Ipv4Addr) -> bool {
    lab.prefixes.iter().any(|(start, length)| {
        let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
        u32::from(*start) & mask == u32::from(address) & mask
    })
}

/// Offset of a host's clock ahead of ours, and the error bounds of that offset.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Clock {
    pub offset_ns: i64,
    pub error_ns: i64,
    pub round_trip_ns: i64,
}

/// Reads a host's clock often, and uses the reading with the shortest round trip.
pub fn clock(remote: &Remote) -> Result<Clock, Fault> {
    let mut best: Option<Clock> = None;
    let mut longest = 0;
    for _ in 0..READINGS {
        let before = sys::now();
        let remote_ns: i64 = remote.ask(&Ask::Time)?;
        let after = sys::now();
        let (way, middle) = (after - before, before + (after - before) / 2);
        longest = longest.max(way);
        if best.is_none_or(|best| way < 2 * best.error_ns) {
            best =
                Some(Clock { offset_ns: remote_ns - middle, error_ns: way / 2, round_trip_ns: 0 });
        }
    }
    let best = best.map(|clock| Clock { round_trip_ns: longest, ..clock });
    best.map_or_else(|| fault(format!("host {}: its clock cannot be read", remote.name)), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsynchronised_clock_has_no_error_bound() {
        let synchronised =
            Discipline { synchronised: true, error_ns: 12_000, error_max_ns: 1_500_000 };
        let expected = "synchronised, error estimated at 0.012 ms, 1.500 ms at most";
        assert_eq!(discipline(Some(synchronised)), expected);
        let alone = discipline(Some(Discipline { synchronised: false, ..synchronised }));
        assert!(alone.starts_with("none:") && !alone.contains("0.012"), "{alone}");
        assert!(discipline(None).starts_with("unknown:"));
    }
}
