//! Links where flows queue and lose, against an observer of every packet.

use dragstrip_measures::Measured;
use dragstrip_scenario::{FlowSpec, LinkSpec, QdiscSpec, Record, Scenario};
use dragstrip_sim::{Event, Loss, Observer, Owner, Sighting, Vantage, run_observed};
use dragstrip_testkit::path::{dumbbell, flow, host, link, router};
use std::collections::BTreeMap;

const NETWORKS: u64 = 300;
/// Waits closer to each other than this are a tie.
const TIE: f64 = 0.1;
/// Fewer losses than this name no link.
const LOSSES_MIN: u64 = 5;

/// Numbers from a seed (Steele, Lea, Flood, OOPSLA 2014: SplitMix).
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// A chain of two to four busy links between routers; a long flow over all of them and others over a part.
fn network(seed: u64) -> Scenario {
    let mut draws = Draws(seed);
    let busy = draws.from(2, 4) as usize;
    let mut scenario = dumbbell(0, link("r", "d"), 0, 8);
    scenario.nodes = (0..=busy).map(|at| router(&format!("r{at}"))).collect();
    scenario.links.clear();
    scenario.seed = seed;
    scenario.record = Record { rtts: false, ..scenario.record };
    for at in 0..busy {
        let (near, far) = (format!("r{at}"), format!("r{}", at + 1));
        let rate_bps = draws.from(4, 12) * 1_000_000;
        let buffer_ms = draws.from(10, 150);
        let bytes = (rate_bps * buffer_ms / 8000).max(8000);
        let queue = match draws.below(4) {
            0 => format!("pfifo limit {}", bytes / 1514),
            1 => "codel".to_owned(),
            _ => format!("bfifo limit {bytes}"),
        };
        scenario.links.push(LinkSpec {
            rate_bps: Some(rate_bps),
            delay_ns: draws.from(1, 10) * 1_000_000,
            qdisc: QdiscSpec::parse(&queue).expect("a queue"),
            ..link(&near, &far)
        });
        scenario.links.push(link(&far, &near));
    }
    let mut spans = vec![(0, busy)];
    for _ in 0..draws.from(1, 4) {
        let from = draws.below(busy as u64) as usize;
        spans.push((from, draws.from(from as u64 + 1, busy as u64) as usize));
    }
    for (number, (from, to)) in spans.into_iter().enumerate() {
        let (near, far) = (format!("r{from}"), format!("r{to}"));
        let (sender, receiver) = (format!("s{number}"), format!("d{number}"));
        scenario.nodes.extend([host(&sender), host(&receiver)]);
        let delay_ns = draws.from(0, 20) * 1_000_000;
        scenario.links.extend([
            LinkSpec { delay_ns, ..link(&sender, &near) },
            link(&near, &sender),
            link(&far, &receiver),
            link(&receiver, &far),
        ]);
        let cc = draws.of(&["cubic", "cubic", "reno", "bbr", "vegas"]);
        let start_ns = draws.below(3) * 1_000_000_000;
        scenario.flows.push(FlowSpec { start_ns, ..flow(&sender, &receiver, cc) });
    }
    scenario
}

/// Each flow's data at each link: packets, their wait (ns) and losses.
#[derive(Default)]
struct Truth {
    owner: BTreeMap<u32, u32>,
    enqueued_ns: BTreeMap<u32, u64>,
    at: BTreeMap<(u32, u32), (u64, u64, u64)>,
}

impl Observer for Truth {
    fn saw(&mut self, sighting: &Sighting<'_>) {
        let (packet, now_ns) = (sighting.packet.0, sighting.at.as_nanos());
        match (sighting.vantage, sighting.event) {
            (_, Event::Sent { owner: Owner::Flow { flow, back: false } }) => {
                self.owner.insert(packet, flow);
            }
            (_, Event::Sent { .. }) => {
                self.owner.remove(&packet);
            }
            (Vantage::Link { .. }, Event::Enqueued) => {
                self.enqueued_ns.insert(packet, now_ns);
            }
            (Vantage::Link { link, .. }, Event::Dequeued) => {
                if let Some(flow) = self.owner.get(&packet) {
                    let counts = self.at.entry((*flow, link)).or_default();
                    counts.0 += 1;
                    counts.1 += now_ns - self.enqueued_ns[&packet];
                }
            }
            (Vantage::Link { link, .. }, Event::Dropped(Loss::Queue(_))) => {
                if let Some(flow) = self.owner.get(&packet) {
                    self.at.entry((*flow, link)).or_default().2 += 1;
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_link_named_is_where_a_flow_waits_longest_and_loses() {
    let (mut waits, mut losses, mut told) = (0, 0, 0);
    let (mut other_than_slowest, mut apart) = (0, 0);
    let mut wrong = Vec::new();
    for seed in 0..NETWORKS {
        let scenario = network(seed);
        let mut truth = Truth::default();
        let recording =
            run_observed(&scenario, &mut truth, &mut |_| true).expect("a valid scenario");
        let run = Measured::new(scenario.clone(), recording).expect("all columns");
        let pairs = scenario.flows.iter().map(FlowSpec::data_ends);
        let paths = scenario.path_facts(pairs, 1514).expect("paths");
        for (place, named) in run.queueing().expect("all columns").iter().enumerate() {
            let of = |name: &str| {
                let link =
                    scenario.links.iter().position(|link| link.name == name).expect("a link");
                truth.at.get(&(place as u32, link as u32)).copied().unwrap_or_default()
            };
            let wait_ms = |name: &str| {
                let (packets, waited_ns, _) = of(name);
                waited_ns as f64 / 1e6 / packets.max(1) as f64
            };
            let links: Vec<&str> = paths[place].forward.iter().map(String::as_str).collect();
            let bottleneck = named.bottleneck.as_deref().expect("a limited path");
            // Of a flow whose packets never arrive nothing is recorded that tells its waits.
            if run.flows()[place].bytes_received == 0 {
                continue;
            }
            let longest = links.iter().map(|name| wait_ms(name)).fold(0.0, f64::max);
            let threshold_ms = 0.01 * paths[place].base_rtt_ns as f64 / 1e6;
            if longest >= 2.0 * threshold_ms {
                waits += 1;
                other_than_slowest += u32::from(named.bottleneck != paths[place].bottleneck);
                if wait_ms(bottleneck) < (1.0 - TIE) * longest {
                    let all: Vec<_> = links.iter().map(|name| (name, wait_ms(name))).collect();
                    wrong.push(format!(
                        "{seed}.{place} waits: {bottleneck} of {all:.2?}, {:?}",
                        named.hops
                    ));
                }
            }
            let most = links.iter().map(|name| of(name).2).max().unwrap_or(0);
            if most >= LOSSES_MIN {
                losses += 1;
                let Some(loss_link) = named.loss_link.as_deref() else { continue };
                told += 1;
                apart += u32::from(named.loss_link != named.bottleneck);
                let lost = of(loss_link).2;
                if (lost as f64) < (1.0 - TIE) * most as f64 {
                    let all: Vec<_> = links.iter().map(|name| (name, of(name).2)).collect();
                    wrong.push(format!(
                        "{seed}.{place} loses: {:?} of {all:?}, {:?}",
                        named.loss_link, named.hops
                    ));
                }
            }
        }
    }
    println!(
        "{waits} waits, {losses} losses, {told} told, {other_than_slowest} elsewhere, {apart} apart"
    );
    assert!(
        wrong.is_empty(),
        "{} wrong of {waits} and {losses}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        waits >= 1000
            && losses >= 900
            && other_than_slowest >= 200
            && apart >= 50
            && f64::from(told) >= 0.8 * f64::from(losses)
    );
}
