//! Routing of packets: fewest hops, unless a static route differs.
//!
//! Hosts do not forward. Among links equally near, the first in the scenario's list is taken. The
//! simulator and the validation use the same tables.

use crate::types::{NodeSpec, Scenario};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// A scenario's nodes and links by index, and its routes.
pub struct Topology<'a> {
    scenario: &'a Scenario,
    nodes: BTreeMap<&'a str, usize>,
    links: BTreeMap<&'a str, usize>,
    /// Per link: the nodes it leaves and enters.
    ends: Vec<(usize, usize)>,
    /// Per node: the links that leave it for a router, in the order of the scenario.
    to_routers: Vec<Vec<usize>>,
    /// (node, neighbour) → the first link from one to the other.
    direct: BTreeMap<(usize, usize), usize>,
    /// Per node: the routers with a link to it.
    routers_before: Vec<Vec<usize>>,
    /// (node, destination) → link.
    routes: BTreeMap<(usize, usize), usize>,
    /// Per node: which router it is, counted from 0; hosts have none.
    router: Vec<Option<usize>>,
    routers: usize,
    /// Hops by the routers in front of a destination: hosts attached to one router share them.
    known: RefCell<Remembered>,
}

/// Hops by router; the key is the routers in front of the destination.
type Remembered = BTreeMap<Vec<usize>, Rc<[Option<u32>]>>;

/// Routers whose hops are remembered, over all destinations: 8 MiB.
const REMEMBERED_HOPS_MAX: usize = 1 << 20;

/// Why packets do not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// No link of this node leads on.
    Unreachable {
        /// Node at which the packet is stuck.
        at: String,
    },
    /// The static routes lead back to this node.
    Loop {
        /// The node met twice.
        at: String,
    },
    /// A static route leads through a host, and hosts do not forward.
    ThroughHost {
        /// The host.
        at: String,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { at } => write!(f, "no link leads on from {at:?}"),
            Self::Loop { at } => write!(f, "the routes lead back to {at:?}"),
            Self::ThroughHost { at } => write!(f, "the way leads through the host {at:?}"),
        }
    }
}

/// The hops from every router to one destination.
pub struct Hops {
    destination: usize,
    /// By router, so that a hundred thousand hosts cost nothing.
    routers: Rc<[Option<u32>]>,
}

impl<'a> Topology<'a> {
    /// The scenario's graph; links and routes that name what does not exist are left out (they are
    /// [`Scenario::validate`]'s to report).
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let nodes: BTreeMap<&str, usize> =
            scenario.nodes.iter().enumerate().map(|(at, node)| (node.name(), at)).collect();
        let mut routers = 0;
        let number_routers = |node: &NodeSpec| match node {
            NodeSpec::Host(_) => None,
            NodeSpec::Router { .. } => {
                routers += 1;
                Some(routers - 1)
            }
        };
        let router: Vec<Option<usize>> = scenario.nodes.iter().map(number_routers).collect();
        let mut to_routers = vec![Vec::new(); scenario.nodes.len()];
        let mut direct = BTreeMap::new();
        let mut routers_before = vec![Vec::new(); scenario.nodes.len()];
        let mut ends = Vec::with_capacity(scenario.links.len());
        let mut links = BTreeMap::new();
        for (index, link) in scenario.links.iter().enumerate() {
            let (from, to) = (nodes.get(link.from.as_str()), nodes.get(link.to.as_str()));
            let (Some(&from), Some(&to)) = (from, to) else {
                ends.push((usize::MAX, usize::MAX));
                continue;
            };
            ends.push((from, to));
            direct.entry((from, to)).or_insert(index);
            if router[to].is_some() {
                to_routers[from].push(index);
            }
            if router[from].is_some() {
                routers_before[to].push(from);
            }
            links.insert(link.name.as_str(), index);
        }
        let routes = scenario
            .routes
            .iter()
            .filter_map(|route| {
                let node = *nodes.get(route.node.as_str())?;
                let destination = *nodes.get(route.destination.as_str())?;
                Some(((node, destination), *links.get(route.link.as_str())?))
            })
            .collect();
        let cache = RefCell::default();
        Self {
            scenario,
            nodes,
            links,
            ends,
            to_routers,
            direct,
            routers_before,
            routes,
            router,
            routers,
            known: cache,
        }
    }

    /// The node's index in the scenario's list.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.get(name).copied()
    }

    /// The name of a node.
    #[must_use]
    pub fn node_name(&self, node: usize) -> &'a str {
        self.scenario.nodes[node].name()
    }

    /// The link's index in the scenario's list, if both its ends exist.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<usize> {
        self.links.get(name).copied()
    }

    /// The indices of the nodes that `link` leaves and enters.
    #[must_use]
    pub fn ends(&self, link: usize) -> (usize, usize) {
        self.ends[link]
    }

    /// The first link from one node to a neighbour.
    #[must_use]
    pub fn link_between(&self, from: usize, to: usize) -> Option<usize> {
        self.direct.get(&(from, to)).copied()
    }

    /// Distance of every router from `destination`.
    #[must_use]
    pub fn hops_to(&self, destination: usize) -> Hops {
        let nearest = &self.routers_before[destination];
        // Only a router is on the path to other nodes and must not be entered twice.
        if self.router[destination].is_some() {
            return Hops { destination, routers: self.search(nearest, Some(destination)) };
        }
        if let Some(routers) = self.known.borrow().get(nearest) {
            return Hops { destination, routers: Rc::clone(routers) };
        }
        let routers = self.search(nearest, None);
        let mut cache = self.known.borrow_mut();
        if (cache.len() + 1) * self.routers > REMEMBERED_HOPS_MAX {
            cache.clear();
        }
        cache.insert(nearest.clone(), Rc::clone(&routers));
        Hops { destination, routers }
    }

    /// Breadth-first against the links, from the routers one hop away.
    fn search(&self, nearest: &[usize], destination: Option<usize>) -> Rc<[Option<u32>]> {
        let mut hops = vec![None; self.routers];
        let mut queue = std::collections::VecDeque::new();
        let mut reach = |queue: &mut std::collections::VecDeque<_>, before: usize, distance| {
            let Some(router) = self.router[before] else { return };
            if Some(before) != destination && hops[router].is_none() {
                hops[router] = Some(distance);
                queue.push_back((before, distance));
            }
        };
        for &before in nearest {
            reach(&mut queue, before, 1);
        }
        while let Some((node, distance)) = queue.pop_front() {
            for &before in &self.routers_before[node] {
                reach(&mut queue, before, distance + 1);
            }
        }
        hops.into()
    }

    /// The link that `node` sends packets for `destination` into; `hops` is
    /// [`hops_to`](Self::hops_to) of that destination.
    #[must_use]
    pub fn next_link(&self, node: usize, destination: usize, hops: &Hops) -> Option<usize> {
        if let Some(&link) = self.routes.get(&(node, destination)) {
            return Some(link);
        }
        if let Some(link) = self.link_between(node, hops.destination) {
            return Some(link);
        }
        let nearness = |link: &usize| {
            let hops = hops.routers[self.router[self.ends[*link].1]?];
            hops.map(|hops| (hops, *link))
        };
        // min_by_key keeps the first of equals.
        let links = self.to_routers[node].iter();
        links.filter_map(nearness).min_by_key(|(hops, _)| *hops).map(|(_, link)| link)
    }

    /// The links from one node to another, in the order a packet takes them.
    ///
    /// # Errors
    /// The node at which a packet would stop, and the reason.
    pub fn path(&self, from: usize, to: usize) -> Result<Vec<usize>, RouteError> {
        let name = |node: usize| self.scenario.nodes[node].name().to_owned();
        let hops = self.hops_to(to);
        let mut path: Vec<usize> = Vec::new();
        let mut at = from;
        while at != to {
            if path.iter().any(|&link| self.ends[link].0 == at) {
                return Err(RouteError::Loop { at: name(at) });
            }
            if at != from && self.router[at].is_none() {
                return Err(RouteError::ThroughHost { at: name(at) });
            }
            let Some(link) = self.next_link(at, to, &hops) else {
                return Err(RouteError::Unreachable { at: name(at) });
            };
            let (leaves, enters) = self.ends[link];
            // A route whose link starts elsewhere is reported as such by the validation.
            if leaves != at {
                return Err(RouteError::Unreachable { at: name(at) });
            }
            path.push(link);
            at = enters;
        }
        Ok(path)
    }
}

impl NodeSpec {
    /// The node's name, host or router.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Host(host) => &host.name,
            Self::Router { name } => name,
        }
    }

    /// The host, unless it is a router.
    #[must_use]
    pub const fn host(&self) -> Option<&crate::HostSpec> {
        match self {
            Self::Host(host) => Some(host),
            Self::Router { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::types::{LinkSpec, Route};
    use dragstrip_units::Stream;

    /// `a` to `b` over r1, r2 or over r1, r3, r2.
    fn diamond() -> Scenario {
        let mut scenario = fixture::scenario();
        scenario.nodes.push(NodeSpec::Router { name: "r3".to_owned() });
        scenario.links.push(fixture::link("r1-r3", "r1", "r3"));
        scenario.links.push(fixture::link("r3-r2", "r3", "r2"));
        scenario
    }

    fn names(scenario: &Scenario, from: &str, to: &str) -> Result<Vec<String>, RouteError> {
        let topology = Topology::new(scenario);
        let path = topology.path(topology.node(from).unwrap(), topology.node(to).unwrap())?;
        Ok(path.into_iter().map(|link| scenario.links[link].name.clone()).collect())
    }

    fn route(node: &str, destination: &str, link: &str) -> Route {
        Route { node: node.to_owned(), destination: destination.to_owned(), link: link.to_owned() }
    }

    #[test]
    fn the_fewest_hops_win() {
        assert_eq!(names(&diamond(), "a", "b").unwrap(), ["a-r1", "r1-r2", "r2-b"]);
    }

    #[test]
    fn a_static_route_wins_over_them() {
        let mut scenario = diamond();
        scenario.routes.push(route("r1", "b", "r1-r3"));
        assert_eq!(names(&scenario, "a", "b").unwrap(), ["a-r1", "r1-r3", "r3-r2", "r2-b"]);
        assert_eq!(names(&scenario, "a", "r2").unwrap(), ["a-r1", "r1-r2"]);
    }

    #[test]
    fn the_first_of_two_equal_links_is_taken() {
        let mut scenario = fixture::scenario();
        scenario.links.push(fixture::link("second", "r1", "r2"));
        assert_eq!(names(&scenario, "a", "b").unwrap()[1], "r1-r2");
    }

    #[test]
    fn a_loop_is_noticed() {
        let mut scenario = fixture::scenario();
        scenario.routes.push(route("r2", "b", "r2-r1"));
        assert_eq!(names(&scenario, "a", "b"), Err(RouteError::Loop { at: "r1".to_owned() }));
    }

    #[test]
    fn hosts_do_not_forward() {
        let mut scenario = fixture::scenario();
        scenario.links.retain(|link| link.name != "r1-r2");
        scenario.nodes.push(fixture::host("c"));
        scenario.links.push(fixture::link("r1-c", "r1", "c"));
        scenario.links.push(fixture::link("c-r2", "c", "r2"));
        assert_eq!(names(&scenario, "a", "b"), Err(RouteError::Unreachable { at: "a".to_owned() }));
        scenario.routes.push(route("a", "b", "a-r1"));
        scenario.routes.push(route("r1", "b", "r1-c"));
        assert_eq!(names(&scenario, "a", "b"), Err(RouteError::ThroughHost { at: "c".to_owned() }));
    }

    /// A link per (from, to) of random nodes, the first three of which are hosts.
    fn random(stream: &mut Stream) -> Scenario {
        let mut scenario = fixture::scenario();
        let count = 4 + stream.below(6);
        let name = |node: u32| format!("n{node}");
        let node = |node| match node {
            0..3 => fixture::host(&name(node)),
            _ => NodeSpec::Router { name: name(node) },
        };
        scenario.nodes = (0..count).map(node).collect();
        let links = 0..count * 3;
        let ends = links.map(|_| (name(stream.below(count)), name(stream.below(count))));
        let ends: Vec<(String, String)> = ends.filter(|(from, to)| from != to).collect();
        let link = |(at, (from, to)): (usize, &(String, String))| {
            fixture::link(&format!("l{at}"), from, to)
        };
        scenario.links = ends.iter().enumerate().map(link).collect();
        scenario
    }

    /// Hops from `node` to `destination`, by trying every length: as slow as it is plain.
    fn distance(scenario: &Scenario, node: &str, destination: &str) -> Option<usize> {
        let forwards = |name: &str| {
            let node_spec = scenario.nodes.iter().find(|node| node.name() == name);
            node_spec.is_some_and(|node| node.host().is_none())
        };
        let mut reached = vec![node.to_owned()];
        for hops in 0..=scenario.nodes.len() {
            if reached.iter().any(|name| name == destination) {
                return Some(hops);
            }
            let leaves = |name: &String| {
                let from = scenario.links.iter().filter(move |link| link.from == *name);
                from.map(|link| link.to.clone()).collect::<Vec<_>>()
            };
            reached = reached.iter().flat_map(leaves).collect();
            reached.retain(|name| name == destination || forwards(name));
            reached.sort();
            reached.dedup();
        }
        None
    }

    #[test]
    fn every_hop_of_a_random_graph_is_the_first_of_the_nearest() {
        let mut stream = Stream::named(1, "routing");
        let mut hop_count = 0;
        for _ in 0..200 {
            let scenario = random(&mut stream);
            // One topology for all pairs: what it remembers of one destination must not reach another.
            let topology = Topology::new(&scenario);
            for (from, to) in pairs(scenario.nodes.len()) {
                let (near, far) = (scenario.nodes[from].name(), scenario.nodes[to].name());
                let path = topology.path(from, to);
                let Some(hops) = distance(&scenario, near, far) else {
                    assert!(path.is_err(), "{near} to {far}");
                    continue;
                };
                let path = path.unwrap();
                assert_eq!(path.len(), hops, "{near} to {far}");
                for (hops_before, &link) in path.iter().enumerate() {
                    let nearer = |candidate: &LinkSpec| {
                        let rest = hops - hops_before - 1;
                        let enters = topology.node(&candidate.to).unwrap();
                        let on = scenario.nodes[enters].host().is_none() || candidate.to == far;
                        candidate.from == scenario.links[link].from
                            && on
                            && distance(&scenario, &candidate.to, far) == Some(rest)
                    };
                    assert_eq!(scenario.links.iter().position(nearer), Some(link));
                }
                hop_count += 1;
            }
        }
        assert!(hop_count > 1000, "{hop_count}");
    }

    fn pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = (0..nodes).flat_map(move |from| (0..nodes).map(move |to| (from, to)));
        all.filter(|(from, to)| from != to)
    }
}
