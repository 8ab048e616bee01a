//! A tree of classes as a configuration: its words, and the model that it builds.

use super::leaves::Leaves;
use super::rounds::Rounds;
use super::types::{ClassParameters, ClassSpec, SchedulerSpec, TreeSpec};
use super::{Scheduler, Tree, check, filter, hfsc, htb, parse, print};
use crate::disciplines::fifo::Fifo;
use crate::disciplines::{Class, Configuration, Confirmation, Facts, QdiscSpec, Streams, tbf};
use crate::netlink::saturated;
use crate::tc::{self, Text, Words};
use crate::token_rate::rate;
use dragstrip_units::{Problem, Report};
use std::collections::BTreeMap;

impl TreeSpec {
    fn scheduler(&self, streams: &Streams<'_>, places: &BTreeMap<u16, usize>) -> Scheduler {
        let parent = |class: &ClassSpec| places.get(&class.parent).copied();
        match &self.scheduler {
            SchedulerSpec::Htb { direct_packets, .. } => {
                let configs = self.classes.iter().filter_map(|class| {
                    let ClassParameters::Htb(htb) = class.parameters else { return None };
                    Some(htb::Config {
                        parent: parent(class),
                        is_leaf: class.leaf.is_some(),
                        rate: rate(htb.rate_bps),
                        ceil: rate(htb.ceil_bps),
                        burst_bytes: htb.burst_bytes,
                        cburst_bytes: htb.cburst_bytes,
                        quantum_bytes: htb.quantum_bytes,
                        priority: htb.priority,
                        framing: htb.framing(),
                    })
                });
                Scheduler::Htb {
                    hierarchy: htb::Hierarchy::new(&configs.collect::<Vec<_>>()),
                    direct: Fifo::packets(*direct_packets),
                }
            }
            SchedulerSpec::Hfsc { .. } => {
                let configs = self.classes.iter().filter_map(|class| {
                    let ClassParameters::Hfsc(hfsc) = class.parameters else { return None };
                    Some(hfsc::Config {
                        parent: parent(class),
                        is_leaf: class.leaf.is_some(),
                        real_time: hfsc.real_time.map(|curve| curve.built()),
                        link_share: hfsc.link_share.map(|curve| curve.built()),
                        upper_limit: hfsc.upper_limit.map(|curve| curve.built()),
                    })
                });
                Scheduler::Hfsc(hfsc::Hierarchy::new(&configs.collect::<Vec<_>>()))
            }
            SchedulerSpec::Drr {} => {
                let quanta = self.classes.iter().map(|class| {
                    let ClassParameters::Drr { quantum_bytes } = class.parameters else {
                        return None;
                    };
                    Some(quantum_bytes.max(1))
                });
                Scheduler::Drr(Rounds::new(quanta.collect()))
            }
            SchedulerSpec::Prio(_) => Scheduler::Prio,
            SchedulerSpec::Ets(ets) => {
                let strict = ets.strict as usize;
                let shared = ets.quanta_bytes.iter().map(|&quantum| Some(quantum.max(1)));
                let quanta = std::iter::repeat_n(None, strict).chain(shared).collect();
                Scheduler::Ets { strict, rounds: Rounds::new(quanta) }
            }
            SchedulerSpec::Netem(netem) => Scheduler::Netem(*netem.build(streams)),
            SchedulerSpec::Tbf(spec) => {
                let peak = spec.peakrate_bps.zip(spec.mtu_bytes);
                Scheduler::Tbf(tbf::Shaper::new(tbf::Config {
                    rate: rate(spec.rate_bps),
                    burst: saturated(spec.burst_bytes),
                    peak: peak.map(|(bps, mtu)| (rate(bps), saturated(mtu))),
                }))
            }
        }
    }
}

impl Configuration for TreeSpec {
    type Model = Box<Tree>;

    const KIND: &'static str = "tc";
    const MODULES: &'static [&'static str] =
        &["sch_hfsc", "sch_drr", "cls_u32", "cls_fw", "cls_flow", "act_gact", "act_skbedit"];
    const EXAMPLES: &'static [&'static str] = &[
        "tc qdisc add root handle 1: prio; tc qdisc add parent 1:1 tbf rate 1mbit burst 3kb limit 30kb; \
         tc filter add parent 1: prio 1 matchall classid 1:2",
        "tc qdisc add root handle 1: htb default 12; tc class add parent 1: classid 1:1 htb rate 10mbit; \
         tc class add parent 1:1 classid 1:11 htb rate 1mbit ceil 5mbit prio 1; \
         tc class add parent 1:1 classid 1:12 htb rate 5mbit ceil 10mbit prio 2; \
         tc qdisc add parent 1:11 fq_codel; tc qdisc add parent 1:12 sfq; \
         tc filter add parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:11; \
         tc filter add parent 1: protocol ip prio 2 handle 0x1/0xff fw classid 1:11; \
         tc filter add parent 1: protocol ip prio 3 u32 match ip dport 5001 0xffff match ip protocol 6 0xff \
         police rate 1mbit burst 10kb drop flowid 1:11",
        "tc qdisc add root handle 1: hfsc default 2; \
         tc class add parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit; \
         tc class add parent 1:1 classid 1:3 hfsc rt m1 5mbit d 10ms m2 1mbit; \
         tc class add parent 1:1 classid 1:2 hfsc ls m2 5mbit",
        "tc qdisc add root handle 1: drr; tc class add classid 1:1 drr quantum 3028; \
         tc class add classid 1:2 drr; tc qdisc add parent 1:2 handle 2: ets bands 2; \
         tc filter add parent 1: flow hash keys src,dst divisor 2 baseclass 1:1",
        "tc qdisc add root handle 1: netem delay 10ms; tc qdisc add parent 1:1 handle 2: tbf rate 1mbit \
         burst 3kb limit 30kb; tc qdisc add parent 2:1 pfifo limit 50",
    ];
    const LEAST: &'static str = "tc qdisc add root handle 1: drr; tc class add classid 1:1 drr";
    const NOTES: &'static str = "- Its words are tc's commands, one after the other: \
        [class trees](../how-to/class-trees.md) has the classes, filters and actions that are understood.\n";
    const CLASSFUL: bool = true;
    const KEEPS: bool = false;

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut rest = Vec::new();
        while let Some(word) = words.next() {
            rest.push(word);
        }
        let spec = parse::tree(&rest)?;
        if let QdiscSpec::Tc(tree) = spec {
            return Ok(*tree);
        }
        let expected =
            format!("a discipline with classes; one without is written {:?}", spec.print());
        Err(tc::wrong(format!("\"tc ... {}\" alone", spec.kind()), expected))
    }

    fn unknown(word: &str) -> Problem {
        tc::unknown(word, &["qdisc", "class", "filter"], &[])
    }

    fn print(&self) -> Text {
        print::commands(self)
    }

    fn check(&self, at: &str, report: &mut Report) {
        check::tree(self, at, report);
    }

    fn facts(&self) -> Facts {
        self.known_facts()
    }

    fn build(&self, streams: &Streams<'_>) -> Self::Model {
        let numbers = self.places();
        let leaves = Leaves::new(self.classes.iter().map(|class| {
            let leaf = class.leaf.as_deref()?;
            Some(leaf.build(
                &streams.within(&format!("{:x}:{:x}", self.handle, class.minor)).as_streams(),
            ))
        }));
        let of = |parent: u16| {
            let specs = self.filters.iter().filter(move |filter| filter.parent == parent);
            filter::Filters::new(specs, || streams.named("tc"))
        };
        Box::new(Tree {
            handle: self.handle,
            scheduler: self.scheduler(streams, &numbers),
            leaves,
            numbers,
            depths: (0..self.classes.len()).map(|at| self.depth(at)).collect(),
            filters: of(0),
            inner_filters: self.classes.iter().map(|class| of(class.minor)).collect(),
            default: match self.scheduler {
                SchedulerSpec::Htb { default_minor, .. }
                | SchedulerSpec::Hfsc { default_minor } => Some(default_minor),
                SchedulerSpec::Drr {}
                | SchedulerSpec::Prio(_)
                | SchedulerSpec::Ets(_)
                | SchedulerSpec::Netem(_)
                | SchedulerSpec::Tbf(_) => None,
            },
            priomap: match &self.scheduler {
                SchedulerSpec::Prio(prio) => Some(prio.priomap),
                SchedulerSpec::Ets(ets) => Some(ets.priomap),
                SchedulerSpec::Htb { .. }
                | SchedulerSpec::Hfsc { .. }
                | SchedulerSpec::Drr {}
                | SchedulerSpec::Netem(_)
                | SchedulerSpec::Tbf(_) => None,
            },
        })
    }

    fn options(&self) -> Option<Vec<u8>> {
        None
    }

    fn classes(&self) -> Vec<Class<'_>> {
        Vec::new()
    }

    fn confirm(&self, _options: &[u8]) -> Vec<Confirmation> {
        Vec::new()
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        super::random::trees(scope)
    }
}
