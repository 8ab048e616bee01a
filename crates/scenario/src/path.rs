//! Facts about a path before any transmission: its links, round trip, bottleneck, bandwidth-delay product and buffer.
//! Computed only here; reports, measures, sweeps and comparisons use them.

use crate::applications::Application;
use crate::media::MediumSpec;
use crate::routing::{RouteError, Topology};
use crate::types::{FlowSpec, LinkSpec, Scenario, Transport};
use dragstrip_cc::agent::Policy;
use dragstrip_qdisc::{Buffer, Configuration as _, Facts};
use dragstrip_units::Problem;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bits that leave at an opportunity of a trace.
const TRACE_BITS: u64 = 1500 * 8;

/// A link, as far as a path is concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkFacts {
    /// The least rate that is configured: of the transmitter, a shaper or netem. None where a medium alone decides,
    /// or nothing does.
    pub rate_bps: Option<u64>,
    /// The rate that nothing exceeds, the medium's included.
    pub fastest_bps: Option<u64>,
    /// Propagation delay and netem's mean delay.
    pub delay_ns: u64,
    /// Buffer in front of it.
    pub buffer: Buffer,
}

/// A full segment's Ethernet frame at an MTU of 1500 bytes, without its FCS.
pub const FULL_FRAME_BYTES: u32 = 1514;

/// The way between two nodes and back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathFacts {
    /// Names of the links there, in the order a packet takes them.
    pub forward: Vec<String>,
    /// Names of the links back.
    pub back: Vec<String>,
    /// The first of the slowest links there; where no rate is configured, the first with a medium.
    pub bottleneck: Option<String>,
    /// The bottleneck's configured rate.
    pub rate_bps: Option<u64>,
    /// Round trip without transmission and queueing: all delays there and back.
    pub idle_rtt_ns: u64,
    /// Round trip of one frame of [`PathFacts::frame_bytes`] over an empty path: the idle one, and its transmission
    /// by every wire (a shaper lets a single frame go at once).
    pub base_rtt_ns: u64,
    /// Frame that `base_rtt_ns` is for, the same both ways.
    pub frame_bytes: u32,
    /// Bytes that the bottleneck carries in an idle round trip.
    pub bdp_bytes: Option<u64>,
    /// Buffer at the bottleneck.
    pub buffer: Buffer,
}

fn least<const N: usize>(rates: [Option<u64>; N]) -> Option<u64> {
    rates.into_iter().flatten().min()
}

/// Maximum rate of a medium.
fn fastest(medium: &MediumSpec) -> Option<u64> {
    match medium {
        MediumSpec::Adsl { rate_bps, .. } | MediumSpec::WifiG { rate_bps, .. } => Some(*rate_bps),
        // Text shrinks at most to what the serial port carries.
        MediumSpec::Modem { dte_bps, .. } => Some(*dte_bps),
        MediumSpec::EthernetHub { .. } => Some(100_000_000),
        MediumSpec::Tunnel { .. } => None,
        MediumSpec::Trace { opportunities_ms } => {
            let bits = opportunities_ms.len() as u64 * TRACE_BITS;
            Some(bits * 1000 / opportunities_ms.last().copied().unwrap_or(1).max(1))
        }
        MediumSpec::HomeplugAv { phy_bps, .. } => Some(*phy_bps),
        // MCS 15, 40 MHz, short guard interval.
        MediumSpec::WifiN { .. } => Some(300_000_000),
    }
}

/// Nanoseconds of one frame on the wires of a link.
fn transmission_ns(link: &LinkSpec, frame_bytes: u32) -> f64 {
    let of = |bytes: u64, bps: u64| bytes as f64 * 8e9 / bps.max(1) as f64;
    let frame = u64::from(frame_bytes);
    let wire = link.rate_bps.map_or(0.0, |bps| of(frame + u64::from(link.overhead_bytes), bps));
    let netem = link.netem.as_ref().and_then(|netem| netem.rate_bps);
    wire + netem.map_or(0.0, |bps| of(frame, bps))
}

impl FlowSpec {
    /// The nodes that its data leaves and reaches: in request/response the answers are the data.
    #[must_use]
    pub fn data_ends(&self) -> (&str, &str) {
        if self.application.is_asking() {
            (&self.receiver, &self.sender)
        } else {
            (&self.sender, &self.receiver)
        }
    }
}

/// Shared limit of several flows.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Limit<'a> {
    Link(usize),
    Medium(&'a str),
}

/// Disjoint sets; each entry points towards the first member of its set.
struct Sets(Vec<usize>);

impl Sets {
    fn first(&mut self, of: usize) -> usize {
        let mut at = of;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, first_flow: usize, second_flow: usize) {
        let (first_flow, second_flow) = (self.first(first_flow), self.first(second_flow));
        self.0[first_flow.max(second_flow)] = first_flow.min(second_flow);
    }
}

impl Scenario {
    /// The facts of one of this scenario's links.
    #[must_use]
    pub fn link_facts(&self, link: &LinkSpec) -> LinkFacts {
        let Facts { rate_bps, delay_ns, buffer, .. } = link.qdisc.facts();
        let netem = link.netem.as_ref();
        let rate_bps = least([link.rate_bps, rate_bps, netem.and_then(|netem| netem.rate_bps)]);
        let medium = link.medium.as_ref().and_then(|name| self.media.get(name)).and_then(fastest);
        let behind_ns = netem.map_or(0, |netem| netem.delay_ns);
        LinkFacts {
            rate_bps,
            fastest_bps: least([rate_bps, medium]),
            delay_ns: link.delay_ns.saturating_add(delay_ns).saturating_add(behind_ns),
            buffer,
        }
    }

    /// The facts of the way between each of these pairs of nodes, in their order.
    ///
    /// # Errors
    /// A node that does not exist, or that packets do not reach.
    pub fn path_facts<'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        frame_bytes: u32,
    ) -> Result<Vec<PathFacts>, Problem> {
        let topology = Topology::new(self);
        let facts_of = |(near, far): (&str, &str)| {
            let node = |name: &str| {
                let index = topology.node(name);
                index
                    .ok_or_else(|| Problem::new("nodes", format!("{name:?}"), "the name of a node"))
            };
            let (from, to) = (node(near)?, node(far)?);
            let route_problem = |error: RouteError| {
                let value = format!("{near} to {far}");
                Problem::new("links", value, format!("a path for packets: {error}"))
            };
            let forward = topology.path(from, to).map_err(route_problem)?;
            let back = topology.path(to, from).map_err(route_problem)?;
            Ok(self.along(&forward, &back, frame_bytes))
        };
        pairs.into_iter().map(facts_of).collect()
    }

    /// True if a policy is among the scenario's own algorithms.
    #[must_use]
    pub fn has_policies(&self) -> bool {
        self.programs.values().any(|text| Policy::is_policy(text))
    }

    /// True when something in it draws random numbers; if not, every seed gives the same recording.
    ///
    /// Errs on the side of drawing: a medium whose stations contend counts, and so does an algorithm that does not
    /// declare that it draws nothing. Arriving flows count too: an experiment's next seed has others.
    #[must_use]
    pub fn draws(&self) -> bool {
        let algorithm = |flow: &FlowSpec| match &flow.transport {
            Transport::Tcp { cc, .. } => match self.programs.get(cc) {
                // The algorithm within a policy may draw; a program cannot.
                Some(text) => Policy::is_policy(text) && text.contains("\"inner\""),
                None => dragstrip_cc::draws(cc),
            },
            Transport::Quic { .. } => true,
            Transport::Udp => {
                matches!(flow.application, Application::Rtp { variation, .. } if variation > 0.0)
            }
        };
        let queue = |link: &LinkSpec| {
            let behind = link.netem.as_ref().map(|netem| netem.facts().draws);
            link.qdisc.facts().draws || behind.unwrap_or(false)
        };
        let contended = |medium: &MediumSpec| match medium {
            MediumSpec::WifiG { .. }
            | MediumSpec::WifiN { .. }
            | MediumSpec::HomeplugAv { .. }
            | MediumSpec::EthernetHub { .. } => true,
            MediumSpec::Adsl { .. }
            | MediumSpec::Modem { .. }
            | MediumSpec::Trace { .. }
            | MediumSpec::Tunnel { .. } => false,
        };
        let loses = self.changes.iter().any(|change| change.loss.is_some());
        self.flows.iter().any(|flow| algorithm(flow) || flow.source.is_some())
            || loses
            || self.links.iter().any(queue)
            || self.media.values().any(contended)
    }

    /// The number of the set of competing flows that each flow belongs to, counted from 0 in the order of the flows.
    ///
    /// Flows compete whose data crosses the same limited link (one with a rate or a medium), and with them the
    /// competitors of their competitors: in a parking lot all do. Flows in opposite directions do not, unless
    /// stations of a medium take turns.
    #[must_use]
    pub fn competing(&self) -> Vec<u32> {
        let topology = Topology::new(self);
        let limited = |at: &usize| {
            let link = &self.links[*at];
            link.medium.is_some() || self.link_facts(link).rate_bps.is_some()
        };
        let limited: Vec<bool> = (0..self.links.len()).map(|at| limited(&at)).collect();
        let mut sets = Sets((0..self.flows.len()).collect());
        let mut first: BTreeMap<Limit<'_>, usize> = BTreeMap::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let (from, to) = flow.data_ends();
            let ends = topology.node(from).zip(topology.node(to));
            let path = ends.and_then(|(from, to)| topology.path(from, to).ok());
            for at in path.into_iter().flatten().filter(|at| limited[*at]) {
                let representative = *first.entry(self.limit(at)).or_insert(number);
                sets.join(representative, number);
            }
        }
        let mut numbers = BTreeMap::new();
        let mut numbered = |flow| {
            let next = numbers.len() as u32;
            *numbers.entry(sets.first(flow)).or_insert(next)
        };
        (0..self.flows.len()).map(&mut numbered).collect()
    }

    /// The resource for which flows over this link compete: the link, or the medium whose stations take turns.
    fn limit(&self, at: usize) -> Limit<'_> {
        let name = self.links[at].medium.as_ref();
        match name.and_then(|name| self.media.get_key_value(name)) {
            Some((
                name,
                MediumSpec::WifiG { .. }
                | MediumSpec::WifiN { .. }
                | MediumSpec::HomeplugAv { .. }
                | MediumSpec::EthernetHub { .. },
            )) => Limit::Medium(name),
            Some((
                _,
                MediumSpec::Adsl { .. }
                | MediumSpec::Modem { .. }
                | MediumSpec::Trace { .. }
                | MediumSpec::Tunnel { .. },
            ))
            | None => Limit::Link(at),
        }
    }

    fn along(&self, forward: &[usize], back: &[usize], frame_bytes: u32) -> PathFacts {
        let link = |index: &usize| &self.links[*index];
        let names = |way: &[usize]| way.iter().map(|at| link(at).name.clone()).collect();
        let facts = forward.iter().map(|at| (link(at), self.link_facts(link(at))));
        // min_by_key keeps the first of equals.
        let slowest = facts
            .clone()
            .filter(|(_, facts)| facts.rate_bps.is_some())
            .min_by_key(|(_, facts)| facts.rate_bps);
        let bottleneck = slowest.or_else(|| facts.clone().find(|(link, _)| link.medium.is_some()));
        let both_ways = || forward.iter().chain(back).map(link);
        let idle = both_ways().map(|link| self.link_facts(link).delay_ns);
        let idle_rtt_ns = idle.fold(0, u64::saturating_add);
        let frames: f64 = both_ways().map(|link| transmission_ns(link, frame_bytes)).sum();
        let rate_bps = bottleneck.as_ref().and_then(|(_, facts)| facts.rate_bps);
        let bdp = |bps: u64| {
            let bits = u128::from(bps) * u128::from(idle_rtt_ns) / 1_000_000_000;
            u64::try_from(bits / 8).unwrap_or(u64::MAX)
        };
        PathFacts {
            forward: names(forward),
            back: names(back),
            rate_bps,
            idle_rtt_ns,
            base_rtt_ns: idle_rtt_ns.saturating_add(frames.round_ties_even() as u64),
            frame_bytes,
            bdp_bytes: rate_bps.map(bdp),
            buffer: bottleneck.as_ref().map(|(_, facts)| facts.buffer).unwrap_or_default(),
            bottleneck: bottleneck.map(|(link, _)| link.name.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::Application;
    use crate::fixture;
    use crate::types::NodeSpec;
    use dragstrip_qdisc::{NetemSpec, QdiscSpec};

    #[test]
    fn flows_compete_where_their_data_crosses_the_same_limit() {
        let mut scenario = fixture::scenario();
        let mut second_flow = scenario.flows[0].clone();
        (second_flow.label, second_flow.application) =
            ("again".to_owned(), Application::Bulk { bytes: None });
        scenario.flows[0].application = Application::Bulk { bytes: None };
        let mut back = second_flow.clone();
        (back.sender, back.receiver) = (second_flow.receiver.clone(), second_flow.sender.clone());
        let mut requests = back.clone();
        requests.application =
            Application::RequestResponse { request_bytes: 1, response_bytes: 1, think_ns: 0 };
        scenario.flows = vec![second_flow.clone(), back, second_flow, requests];
        assert_eq!(scenario.competing(), [0, 1, 0, 0]);
        let unlimited = |link: &mut LinkSpec| {
            (link.rate_bps, link.netem, link.qdisc) = (None, None, QdiscSpec::default());
        };
        scenario.links.iter_mut().for_each(unlimited);
        assert_eq!(scenario.competing(), [0, 1, 2, 3]);
    }

    fn facts(scenario: &Scenario, from: &str, to: &str) -> PathFacts {
        scenario.path_facts([(from, to)], 98).unwrap().remove(0)
    }

    #[test]
    fn the_fixture_has_a_round_trip_of_six_links() {
        let facts = facts(&fixture::scenario(), "a", "b");
        assert_eq!(facts.forward, ["a-r1", "r1-r2", "r2-b"]);
        assert_eq!(facts.back, ["b-r2", "r2-r1", "r1-a"]);
        // Six delays of 1 ms; 98 bytes at 10 Mbit/s are 78.4 us.
        assert_eq!((facts.idle_rtt_ns, facts.base_rtt_ns), (6_000_000, 6_470_400));
        assert_eq!(facts.bottleneck.as_deref(), Some("a-r1"));
        assert_eq!((facts.rate_bps, facts.bdp_bytes), (Some(10_000_000), Some(7_500)));
        assert_eq!(facts.buffer, Buffer { packets: Some(100), bytes: None });
    }

    #[test]
    fn the_slowest_of_transmitter_shaper_and_netem_counts() {
        let mut scenario = fixture::scenario();
        let rate = |scenario: &Scenario| scenario.link_facts(&scenario.links[1]).rate_bps;
        scenario.links[1].qdisc =
            QdiscSpec::parse("htb rate 8mbit ceil 9mbit leaf bfifo limit 9kb").unwrap();
        assert_eq!(rate(&scenario), Some(8_000_000));
        scenario.links[1].qdisc =
            QdiscSpec::parse("htb rate 8mbit ceil 7mbit leaf pfifo limit 9").unwrap();
        assert_eq!(rate(&scenario), Some(7_000_000));
        let netem = NetemSpec { rate_bps: Some(6_000_000), delay_ns: 5, ..NetemSpec::default() };
        scenario.links[1].netem = Some(Box::new(netem));
        assert_eq!(rate(&scenario), Some(6_000_000));
        assert_eq!(scenario.link_facts(&scenario.links[1]).delay_ns, 1_000_005);
        assert_eq!(facts(&scenario, "a", "b").bottleneck.as_deref(), Some("r1-r2"));
        assert_eq!(facts(&scenario, "a", "b").buffer.packets, Some(9));
    }

    #[test]
    fn a_medium_without_a_configured_rate_is_the_bottleneck() {
        let mut scenario = fixture::scenario();
        for link in &mut scenario.links {
            link.rate_bps = None;
        }
        assert_eq!(facts(&scenario, "a", "b").bottleneck, None);
        let adsl: MediumSpec =
            serde_json::from_str(r#"{"kind": "adsl", "rate_bps": 1500000}"#).unwrap();
        scenario.media.insert("line".to_owned(), adsl);
        scenario.links[1].medium = Some("line".to_owned());
        let path = facts(&scenario, "a", "b");
        assert_eq!((path.bottleneck.as_deref(), path.rate_bps), (Some("r1-r2"), None));
        assert_eq!(scenario.link_facts(&scenario.links[1]).fastest_bps, Some(1_500_000));
    }

    #[test]
    fn missing_paths_and_nodes_are_reported() {
        let mut scenario = fixture::scenario();
        assert_eq!(scenario.path_facts([("a", "x")], 98).unwrap_err().value, "\"x\"");
        scenario.nodes.push(NodeSpec::Router { name: "r3".to_owned() });
        let problem = scenario.path_facts([("a", "r3")], 98).unwrap_err();
        assert_eq!(problem.value, "a to r3");
    }
}
