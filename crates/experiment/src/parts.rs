//! Hosts, links and queues as the short form and the explicit graph both need them.

use crate::problem;
use crate::quantity::{RateText, SizeText};
use crate::types::TransmitterKind;
use dragstrip_scenario::{HostSpec, LinkSpec, NetemSpec, NodeSpec, Problem, QdiscSpec};

/// A host with default settings.
pub(crate) fn host(name: &str) -> NodeSpec {
    NodeSpec::Host(HostSpec::with_name(name))
}

/// Larger sizes are refused as the largest.
pub(crate) fn u32_of(size: SizeText) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}

/// A plain veth from one node to another: no rate, no delay, no queue.
pub(crate) fn wire(from: &str, to: &str) -> LinkSpec {
    LinkSpec {
        name: format!("{from}-{to}"),
        from: from.to_owned(),
        to: to.to_owned(),
        rate_bps: None,
        delay_ns: 0,
        overhead_bytes: 0,
        medium: None,
        qdisc: QdiscSpec::default(),
        netem: None,
    }
}

/// Transmitter of a link with a rate.
#[derive(Clone, Copy)]
pub(crate) struct Transmitter {
    pub kind: TransmitterKind,
    pub rate: RateText,
    pub overhead: SizeText,
    pub atm: bool,
}

impl Transmitter {
    /// Puts the rate and the queue on a link: an htb class, its burst as tc and the kernel fill it in, or a wire.
    pub fn drive(self, link: &mut LinkSpec, queue: &str, field: &str) -> Result<(), Problem> {
        let Self { kind, rate, overhead, atm } = self;
        // A class tree stands on the interface itself, and the rate is that of the line behind it.
        let is_tree = matches!(discipline(queue, field), Ok(QdiscSpec::Tc(_)));
        if is_tree && atm {
            let expected =
                "cells in the tree's own words, such as \"linklayer atm\" of an htb class";
            return Err(problem(field, "a class tree with atm = true", expected));
        }
        match if is_tree { TransmitterKind::Wire } else { kind } {
            TransmitterKind::Wire => {
                link.rate_bps = Some(rate.0);
                link.overhead_bytes = u32_of(overhead);
                link.qdisc = discipline(queue, field)?;
            }
            TransmitterKind::Htb => {
                let charged = match overhead.0 {
                    0 => String::new(),
                    bytes => format!(" overhead {bytes}"),
                };
                let cells = if atm { " linklayer atm" } else { "" };
                let words = format!("htb rate {}bit{charged}{cells} leaf {queue}", rate.0);
                link.qdisc = discipline(&words, field)?;
            }
        }
        Ok(())
    }
}

/// A queue discipline in tc's words.
pub(crate) fn discipline(words: &str, field: &str) -> Result<QdiscSpec, Problem> {
    QdiscSpec::parse(words).map_err(|problem| Problem { field: field.to_owned(), ..problem })
}

/// Parses the words that follow `netem` in tc.
pub(crate) fn emulation(
    words: Option<&str>,
    field: &str,
) -> Result<Option<Box<NetemSpec>>, Problem> {
    let Some(words) = words else { return Ok(None) };
    let QdiscSpec::Netem(spec) = discipline(&format!("netem {words}"), field)? else {
        unreachable!("the words begin with netem")
    };
    Ok(Some(spec))
}
