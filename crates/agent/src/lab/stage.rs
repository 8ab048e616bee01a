//! A run's hosts before the run: reached, looked at, and what the scenario asks of each; the idle path. Nothing is changed
//! but what an earlier run has left.

use super::change::Change;
use super::findings::{Clock, Finding, examine};
use super::hosts::{Agent, Host, Lab, Remote};
use super::messages::{Ask, Facts, Route};
use super::placement::{Placement, place};
use crate::checks::{Check, RoundTrips};
use crate::conductor::{PINGS_WAIT_NS, SETTLE_NS, serialisation_ns};
use crate::fault::{Fault, fault, refusal};
use crate::kernel::{Kernel, Lines};
use crate::{machine, sys};
use dragstrip_qdisc::KINDS;
use dragstrip_scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Applies a function to all items, each in a separate thread.
pub fn in_parallel<I: Sync, T: Send>(all: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = all.iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn connect(lab: &Lab, hosts: &[&Host], agent: &Agent) -> Result<Vec<Remote>, Fault> {
    in_parallel(hosts, |host| Remote::connect(lab, host, agent)).into_iter().collect()
}

pub fn look(remote: &Remote, host: &Host) -> Result<Facts, Fault> {
    let interfaces = host.interfaces.iter().map(|cable| cable.name.clone()).collect();
    remote.ask(&Ask::Facts { interfaces, connection: remote.connection })
}

pub fn kernel(facts: &Facts) -> Kernel {
    let lacks = KINDS.iter().map(|kind| kind.name);
    let lacks = lacks.filter(|kind| facts.lacks.iter().any(|lacking| lacking == kind)).collect();
    Kernel {
        tick_hz: facts.tick_hz,
        lacks,
        release: Some(facts.kernel.clone()),
        lines: Lines::None,
    }
}

/// Refuses errors in the files before any host is contacted.
pub fn expect(lab: &Lab, scenario: &Scenario, programs: &[&str]) -> Result<(), Fault> {
    place(scenario, lab, &BTreeMap::new())?;
    machine::refuse_options(scenario)?;
    if let (Some(name), false) = (programs.first(), lab.allow.programs) {
        let expected = "nothing, or a line programs = true in [allow] of the lab's file";
        return refusal(format!("load {name}"), "", expected);
    }
    Ok(())
}

/// A run's hosts.
pub struct Stage<'l> {
    pub lab: &'l Lab,
    pub remotes: Vec<Remote>,
    pub facts: BTreeMap<String, Facts>,
    pub placement: Placement,
}

impl<'l> Stage<'l> {
    /// Looks at all hosts that the scenario needs, and lays it out; nothing is changed but what an earlier run left.
    ///
    /// `programs` are the congestion controls that come along.
    pub fn prepare(
        lab: &'l Lab,
        scenario: &Scenario,
        agent: &Agent,
        programs: &[&str],
    ) -> Result<Self, Fault> {
        expect(lab, scenario, programs)?;
        let mut stage = Self::reach(lab, std::slice::from_ref(scenario), agent)?;
        stage.lay_out(scenario, programs)?;
        Ok(stage)
    }

    /// Looks at all hosts that any of the scenarios needs.
    pub fn reach(lab: &'l Lab, scenarios: &[Scenario], agent: &Agent) -> Result<Self, Fault> {
        let nodes = scenarios.iter().flat_map(|scenario| &scenario.nodes).map(|node| node.name());
        let homes: BTreeSet<&str> =
            nodes.map(|node| lab.nodes.get(node).map_or(node, String::as_str)).collect();
        let hosts: Vec<&Host> =
            lab.hosts.iter().filter(|host| homes.contains(host.name.as_str())).collect();
        let remotes = connect(lab, &hosts, agent)?;
        let pairs: Vec<(&Remote, &&Host)> = remotes.iter().zip(&hosts).collect();
        let results = in_parallel(&pairs, |(remote, host)| {
            let facts = look(remote, host)?;
            if facts.holder.as_ref().is_some_and(|holder| !holder.alive) {
                remote.ask::<Vec<Change>>(&Ask::Clean)?;
                return look(remote, host);
            }
            Ok(facts)
        });
        let host_facts = results.into_iter().collect::<Result<Vec<Facts>, Fault>>()?;
        let nothing = Clock { offset_ns: 0, error_ns: 0, round_trip_ns: 0 };
        for (host, facts) in hosts.iter().zip(&host_facts) {
            let wrong = examine(lab, host, facts, nothing).into_iter().find(|finding| !finding.ok);
            if let Some(Finding { host, what, found, expected, refused, .. }) = wrong {
                let field = format!("host {host}: {what}");
                return if refused {
                    refusal(field, found, expected)
                } else {
                    fault(format!("{field}: {found}, expected {expected}"))
                };
            }
        }
        let facts = hosts.iter().map(|host| host.name.clone()).zip(host_facts).collect();
        Ok(Self { lab, remotes, facts, placement: Placement::default() })
    }

    /// Lays a scenario out on the hosts, as far as they have what it needs.
    pub fn lay_out(&mut self, scenario: &Scenario, programs: &[&str]) -> Result<(), Fault> {
        let kernels = self.facts.iter().map(|(name, facts)| (name.clone(), kernel(facts)));
        self.placement = place(scenario, self.lab, &kernels.collect())?;
        self.check_algorithms(scenario, programs)?;
        self.check_programs(scenario, programs)?;
        self.check_routes()
    }

    fn remote(&self, host: &str) -> Result<&Remote, Fault> {
        let candidate = self.remotes.iter().find(|remote| remote.name == host);
        candidate.map_or_else(|| fault(format!("host {host} is not connected")), Ok)
    }

    /// The line to the host of a node.
    pub fn remote_of(&self, node: usize) -> Result<&Remote, Fault> {
        self.remote(self.placement.host_of(node).unwrap_or_default())
    }

    /// Every congestion control must be in the kernels of both ends.
    fn check_algorithms(&self, scenario: &Scenario, programs: &[&str]) -> Result<(), Fault> {
        let plan = self.placement.plan();
        for flow in &scenario.flows {
            for (end, receiver) in [(&flow.sender, false), (&flow.receiver, true)] {
                let Some(cc) = flow.transport.cc(receiver) else { continue };
                let host = self.placement.host_of(plan.node(end)?).unwrap_or_default();
                let facts_algorithms =
                    self.facts.get(host).map(|facts| facts.algorithms.as_slice());
                let algorithms = facts_algorithms.unwrap_or_default();
                let cc_there = sys::in_kernel(cc);
                if !algorithms.contains(&cc_there) && !programs.contains(&cc_there.as_str()) {
                    let kernel = self.facts.get(host).map_or("", |facts| facts.kernel.as_str());
                    let expected = format!(
                        "one that the kernel of host {host} ({kernel}) has loaded: {}{}",
                        algorithms.join(" "),
                        machine::loading(cc)
                    );
                    return refusal(format!("flow {}: cc", flow.label), cc, expected);
                }
            }
        }
        Ok(())
    }

    /// The hosts at the ends of flows with these congestion controls, one for each kernel: of several that are namespaces of
    /// one machine the first.
    pub fn loading(&self, scenario: &Scenario, programs: &[&str]) -> Result<Vec<&str>, Fault> {
        let plan = self.placement.plan();
        let mut by_boot: BTreeMap<&str, &str> = BTreeMap::new();
        for flow in &scenario.flows {
            for (end, receiver) in [(&flow.sender, false), (&flow.receiver, true)] {
                let cc = flow.transport.cc(receiver).map(sys::in_kernel);
                if cc.is_none_or(|cc| !programs.contains(&cc.as_str())) {
                    continue;
                }
                let host = self.placement.host_of(plan.node(end)?).unwrap_or_default();
                let boot = self.facts.get(host).map_or("", |facts| facts.boot.as_str());
                by_boot.entry(boot).or_insert(host);
            }
        }
        Ok(by_boot.into_values().collect())
    }

    /// Their kernels must take programs, and not have them already.
    fn check_programs(&self, scenario: &Scenario, programs: &[&str]) -> Result<(), Fault> {
        for host in self.loading(scenario, programs)? {
            let Some(facts) = self.facts.get(host) else { continue };
            if !facts.btf {
                let expected = format!(
                    "a kernel that takes congestion controls from BPF: {} of this host was built without BTF \
                     (CONFIG_DEBUG_INFO_BTF: there is no /sys/kernel/btf/vmlinux)",
                    facts.kernel
                );
                return refusal(format!("host {host}: load"), "", expected);
            }
            for name in programs {
                if facts.algorithms.iter().any(|algorithm| algorithm == name) {
                    let expected = "a name that its kernel has not: choose another .name";
                    return refusal(format!("host {host}: load {name}"), "", expected);
                }
            }
        }
        Ok(())
    }

    /// Packets must take the lab's cables, host by host, and routers must forward.
    fn check_routes(&self) -> Result<(), Fault> {
        for (name, part) in &self.placement.parts {
            if part.forwards && !self.facts.get(name).is_some_and(|facts| facts.forwards) {
                return fault(format!(
                    "host {name}: forwards no packets: sysctl -w net.ipv4.ip_forward=1"
                ));
            }
            let targets = part.ways.iter().map(|(target, ..)| *target).collect();
            let routes: Vec<Route> = self.remote(name)?.ask(&Ask::Routes { targets })?;
            for (target, interface, gateway) in &part.ways {
                let actual = routes.iter().find(|route| route.target == *target);
                if actual.is_some_and(|r| r.interface == *interface && r.gateway == *gateway) {
                    continue;
                }
                let route_text = |interface: &str, gateway: Option<Ipv4Addr>| {
                    let via = gateway.map_or_else(String::new, |gateway| format!("via {gateway} "));
                    format!("{via}dev {interface}")
                };
                let is = actual.map_or_else(
                    || "is missing".to_owned(),
                    |r| format!("goes {}", route_text(&r.interface, r.gateway)),
                );
                return fault(format!(
                    "host {name}: route to {target}: {is}, expected {way}: ip route add {target} {way}",
                    way = route_text(interface, *gateway)
                ));
            }
        }
        Ok(())
    }

    /// The idle round trip of each flow's path; held against the bare lab's and the delays that were set, if that is
    /// known: a fault if one is back too soon.
    pub fn round_trips(
        &self,
        scenario: &Scenario,
        bare: Option<&BTreeMap<String, RoundTrips>>,
    ) -> Result<(BTreeMap<String, RoundTrips>, Vec<Check>), Fault> {
        let plan = self.placement.plan();
        let (mut measured, mut checks) = (BTreeMap::new(), Vec::new());
        for flow in &scenario.flows {
            let (from, to) = (plan.node(&flow.sender)?, plan.node(&flow.receiver)?);
            let name = format!("{} to {}", flow.sender, flow.receiver);
            if measured.contains_key(&name) {
                continue;
            }
            let (set, constant) = self.placement.delay_ns(scenario, from, to);
            let set = if bare.is_some() { set as i64 } else { 0 };
            let before = bare.and_then(|bare| bare.get(&name)).copied();
            let (source, target) = (plan.nodes[from].address, plan.nodes[to].address);
            let wait_ns = 2 * set + PINGS_WAIT_NS + serialisation_ns(scenario);
            let ask = Ask::Ping { source, target, wait_ns };
            let Some(trips) = self.remote_of(from)?.ask::<Option<RoundTrips>>(&ask)? else {
                return fault(self.unanswered(&name, from, to)?);
            };
            if let (Some(before), true) = (before, constant) {
                let RoundTrips { best_ns, median_ns } = trips;
                if best_ns < set {
                    return fault(format!(
                        "{name}: the idle round trip takes {best_ns} ns, expected at least {set} ns: {} ns without \
                         what was set",
                        before.best_ns
                    ));
                }
                let expected_ns = before.median_ns + set;
                let slots = (plan.slots_ns(from, to) + plan.slots_ns(to, from)) as i64;
                let most =
                    expected_ns + RoundTrips::slack_ns(set, serialisation_ns(scenario)) + slots;
                checks.push(Check::idle(&name, expected_ns, median_ns, [set, most]));
            }
            measured.insert(name, trips);
        }
        Ok((measured, checks))
    }

    /// Waits for a while in which the run sends nothing, and reports the traffic that its interfaces carried
    /// nevertheless.
    pub fn settle(&self) -> Result<Vec<Check>, Fault> {
        let before = self.carried()?;
        let began = sys::now();
        std::thread::sleep(Duration::from_nanos(SETTLE_NS as u64));
        let span_ns = sys::now() - began;
        let after = self.carried()?;
        let pairs = after.into_iter().zip(before);
        Ok(pairs
            .map(|((interface, bytes), (_, earlier))| {
                Check::foreign(interface, bytes.saturating_sub(earlier), span_ns)
            })
            .collect())
    }

    /// Bytes by interface of the run, in the order of the hosts' names.
    fn carried(&self) -> Result<Vec<(String, u64)>, Fault> {
        let mut carried_bytes = Vec::new();
        for (host, part) in &self.placement.parts {
            let interfaces: Vec<String> =
                part.interfaces.iter().map(|ready| ready.name.clone()).collect();
            let bytes: Vec<u64> =
                self.remote(host)?.ask(&Ask::Carried { interfaces: interfaces.clone() })?;
            let names = interfaces.iter().map(|name| format!("host {host}: {name}"));
            carried_bytes.extend(names.zip(bytes));
        }
        Ok(carried_bytes)
    }

    /// Explains missing ping answers, as far as routers can be queried.
    fn unanswered(&self, name: &str, from: usize, to: usize) -> Result<String, Fault> {
        let plan = self.placement.plan();
        let (source, target) = (plan.nodes[from].address, plan.nodes[to].address);
        for (host, part) in self.placement.parts.iter().filter(|(_, part)| part.forwards) {
            let Some(&router) = part.nodes.first() else { continue };
            let router_address = plan.nodes[router].address;
            let ask = |source, target| Ask::Ping { source, target, wait_ns: PINGS_WAIT_NS };
            let near: Option<RoundTrips> =
                self.remote_of(from)?.ask(&ask(source, router_address))?;
            let ends = self.lab.hosts.iter().find(|lab_host| lab_host.name == *host);
            let next = part.ways.iter().find(|(address, ..)| *address == target);
            let out = ends.zip(next).and_then(|(ends, (_, interface, _))| {
                ends.interfaces.iter().find(|cable| cable.name == *interface)
            });
            let far: Option<RoundTrips> = match out {
                Some(cable) => self.remote(host)?.ask(&ask(cable.address, target))?,
                None => None,
            };
            if near.is_some() && far.is_some() {
                return Ok(format!(
                    "host {host}: forwards nothing from {source} to {target}, though it reaches both and ip_forward is 1: \
                     is its FORWARD policy DROP (docker sets it)?"
                ));
            }
        }
        Ok(format!("{name}: pings from {source} to {target} are not answered"))
    }
}
