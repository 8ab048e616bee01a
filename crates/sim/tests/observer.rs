//! Observer coverage: every packet is followed from its sender over each queue and line to its receiver or to the
//! place where it is lost, no event is reported twice or left out, and an observed run equals the unobserved one.

use dragstrip_packet::{Body, Ecn, TrafficClass};
use dragstrip_scenario::{CodelSpec, FlowSpec, LinkSpec, PfifoSpec, QdiscSpec, Scenario};
use dragstrip_sim::audit::audit_observed;
use dragstrip_sim::{Event, Loss, Observer, Sighting, Vantage, run, run_observed};
use dragstrip_testkit::{Budget, path, runner, scenarios};
use dragstrip_units::Instant;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::Config;
use std::collections::BTreeMap;

/// Every algorithm, queue discipline, impairment and application in one run of ten seconds.
const EVERYTHING: &str = include_str!("../../../tests/golden/recording.scenario.json");

/// A packet's location between two sightings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Node(u32),
    Queue(Vantage),
    Line(Vantage),
    /// Behind a link's line, in front of its netem.
    BeforeNetem(u32),
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Instant,
    place: Place,
    body: Body,
    class: TrafficClass,
    frame_bytes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    enqueued: u64,
    duplicated: u64,
    dequeued: u64,
    arrived: u64,
    marked: u64,
    dropped_from_queue: u64,
    lost_on_medium: u64,
}

/// Follows every packet and counts what happens at every vantage point.
#[derive(Debug)]
struct Follower {
    /// Nodes at the ends of each link, and whether there is a netem after it.
    links: Vec<(u32, u32, bool)>,
    under_way: BTreeMap<u32, Packet>,
    counts: BTreeMap<Vantage, Counts>,
    sent: u64,
    received: u64,
}

impl Follower {
    fn new(scenario: &Scenario) -> Self {
        let node = |name: &str| {
            scenario.nodes.iter().position(|node| node.name() == name).expect("a node") as u32
        };
        let ends = |link: &dragstrip_scenario::LinkSpec| {
            (node(&link.from), node(&link.to), scenario.netem_behind(link).is_some())
        };
        Self {
            links: scenario.links.iter().map(ends).collect(),
            under_way: BTreeMap::new(),
            counts: BTreeMap::new(),
            sent: 0,
            received: 0,
        }
    }

    /// Required location of a packet before it enters this queue.
    fn before(&self, vantage: Vantage) -> Place {
        let Vantage::Link { link, netem } = vantage else { panic!("no queue at {vantage:?}") };
        if netem { Place::BeforeNetem(link) } else { Place::Node(self.links[link as usize].0) }
    }

    /// Location of a packet after this line.
    fn behind(&self, vantage: Vantage) -> Place {
        let Vantage::Link { link, netem } = vantage else { panic!("no line at {vantage:?}") };
        let (_, to, has_netem) = self.links[link as usize];
        if has_netem && !netem { Place::BeforeNetem(link) } else { Place::Node(to) }
    }

    fn begin(&mut self, place: Place, sighting: &Sighting<'_>) {
        let Sighting { at, packet, class, frame_bytes, body, .. } = *sighting;
        // A burst that is one packet has the headers of all its segments.
        let headers = match body {
            Body::Tcp(segment) => body.frame_len() - u32::from(segment.len),
            Body::Udp(_) | Body::Quic(_) | Body::Icmp(_) => u32::MAX,
        };
        let more = frame_bytes.checked_sub(body.frame_len()).expect("at least its payload");
        assert_eq!(more % headers, 0);
        let packet_state = Packet { at, place, body: *body, class, frame_bytes };
        let previous = self.under_way.insert(packet.0, packet_state);
        assert!(previous.is_none(), "{sighting:?} while {previous:?} is under way");
    }

    /// The packet is unchanged, unless a queue has marked it.
    fn check(&self, sighting: &Sighting<'_>) -> Packet {
        let packet_state = *self.under_way.get(&sighting.packet.0).expect("a packet under way");
        assert!(sighting.at >= packet_state.at, "{sighting:?} after {packet_state:?}");
        assert_eq!(
            (sighting.body, sighting.frame_bytes),
            (&packet_state.body, packet_state.frame_bytes)
        );
        if sighting.event == Event::Marked {
            assert!(packet_state.class.ecn().is_capable(), "{packet_state:?} cannot be marked");
            assert_eq!(sighting.class, packet_state.class.with_ecn(Ecn::Ce));
        } else {
            assert_eq!(sighting.class, packet_state.class);
        }
        packet_state
    }

    fn go_on(&mut self, from: Place, to: Place, sighting: &Sighting<'_>) {
        let packet_state = self.check(sighting);
        assert_eq!(packet_state.place, from, "{sighting:?}");
        let now = Packet { at: sighting.at, place: to, class: sighting.class, ..packet_state };
        self.under_way.insert(sighting.packet.0, now);
    }

    fn end(&mut self, at: Place, sighting: &Sighting<'_>) {
        assert_eq!(self.check(sighting).place, at, "{sighting:?}");
        self.under_way.remove(&sighting.packet.0);
    }
}

impl Observer for Follower {
    fn saw(&mut self, sighting: &Sighting<'_>) {
        let vantage = sighting.vantage;
        let (queue, line) = (Place::Queue(vantage), Place::Line(vantage));
        match (vantage, sighting.event) {
            (Vantage::Node { node }, Event::Sent { .. }) => {
                self.sent += 1;
                self.begin(Place::Node(node), sighting);
            }
            (Vantage::Node { node }, Event::Received) => {
                self.received += 1;
                self.end(Place::Node(node), sighting);
            }
            (Vantage::Link { .. }, event) => {
                let counts = self.counts.entry(vantage).or_default();
                match event {
                    Event::Enqueued => {
                        counts.enqueued += 1;
                        self.go_on(self.before(vantage), queue, sighting);
                    }
                    Event::Dequeued => {
                        counts.dequeued += 1;
                        self.go_on(queue, line, sighting);
                    }
                    Event::Arrived => {
                        counts.arrived += 1;
                        self.go_on(line, self.behind(vantage), sighting);
                    }
                    Event::Marked => {
                        counts.marked += 1;
                        self.go_on(queue, queue, sighting);
                    }
                    Event::Duplicated { of } => {
                        assert!(self.under_way.contains_key(&of.0), "{sighting:?} of nothing");
                        counts.duplicated += 1;
                        self.begin(queue, sighting);
                    }
                    Event::Dropped(Loss::Queue(_)) => {
                        counts.dropped_from_queue += 1;
                        self.end(queue, sighting);
                    }
                    Event::Dropped(Loss::Medium) => {
                        counts.lost_on_medium += 1;
                        self.end(line, sighting);
                    }
                    Event::Sent { .. } | Event::Received => panic!("{sighting:?}"),
                }
            }
            (Vantage::Node { .. }, _) => panic!("{sighting:?}"),
        }
    }
}

/// Observes `scenario`, and compares the sightings with the run's own counters and with an unobserved run.
fn follow(scenario: &Scenario) -> Follower {
    let mut follower = Follower::new(scenario);
    let (recording, books) = audit_observed(scenario, &mut follower).expect("a valid scenario");
    let unwatched = run(scenario, &mut |_| true).expect("a valid scenario");
    assert_eq!(recording.sha256(), unwatched.sha256(), "watching has changed the run");
    let sum = |count: fn(&Counts) -> u64| follower.counts.values().map(count).sum::<u64>();
    let dropped = sum(|counts| counts.dropped_from_queue + counts.lost_on_medium);
    assert_eq!(
        (follower.sent, follower.received, dropped, sum(|counts| counts.duplicated)),
        (books.sent, books.delivered, books.dropped, books.copied)
    );
    assert_eq!(follower.under_way.len() as u64, books.waiting);
    for (&vantage, counts) in &follower.counts {
        let packets_at = |place: Place| {
            follower.under_way.values().filter(|packet| packet.place == place).count() as u64
        };
        assert_eq!(
            counts.enqueued + counts.duplicated,
            counts.dequeued + counts.dropped_from_queue + packets_at(Place::Queue(vantage)),
            "queue of {vantage:?}"
        );
        assert_eq!(
            counts.dequeued,
            counts.arrived + counts.lost_on_medium + packets_at(Place::Line(vantage)),
            "line of {vantage:?}"
        );
    }
    follower
}

#[test]
fn every_packet_is_followed_to_its_end() {
    let follower = follow(&Scenario::from_json(EVERYTHING).expect("a scenario"));
    let occurs =
        |count: fn(&Counts) -> u64| follower.counts.values().any(|counts| count(counts) > 0);
    assert!(occurs(|counts| counts.dropped_from_queue) && occurs(|counts| counts.marked));
    assert!(occurs(|counts| counts.duplicated));
}

#[test]
fn every_packet_of_random_scenarios_is_followed_to_its_end() {
    let mut runner = runner(Config::default(), 7);
    let strategy = scenarios(Budget { duration_ns: 3_000_000_000, flows: 4 });
    let mut lost_on_medium = 0;
    for _ in 0..600 {
        let scenario = strategy.new_tree(&mut runner).expect("a scenario").current();
        let follower = follow(&scenario);
        lost_on_medium += follower.counts.values().map(|counts| counts.lost_on_medium).sum::<u64>();
    }
    assert!(lost_on_medium > 0, "media that lose frames are among them");
}

/// Events at one link, in the order of time.
struct AtLink(u32, Vec<(u64, Event)>);

impl Observer for AtLink {
    fn saw(&mut self, sighting: &Sighting<'_>) {
        if sighting.vantage == (Vantage::Link { link: self.0, netem: false }) {
            self.1.push((sighting.at.as_nanos(), sighting.event));
        }
    }
}

/// A frame of 1 000 + 42 + 24 bytes takes 852.8 µs at 10 Mbit/s: the tap at the near end is at the beginning of that, the one at the far end a delay
/// after its end, whether departures are computed on arrival or decided one by one.
#[test]
fn a_packet_tap_is_after_the_queue_and_after_the_line() {
    let at_bottleneck = |qdisc: QdiscSpec| {
        let bottleneck = LinkSpec {
            rate_bps: Some(10_000_000),
            overhead_bytes: 24,
            delay_ns: 5_000_000,
            qdisc,
            ..path::link("r", "d")
        };
        let mut scenario = path::dumbbell(1, bottleneck, 0, 1);
        scenario.flows = vec![FlowSpec {
            stop_ns: Some(2_000_000),
            ..path::datagrams("s0", "d", 16_000_000, 1_000)
        }];
        let mut at_link = AtLink(0, Vec::new());
        run_observed(&scenario, &mut at_link, &mut |_| true).expect("a valid scenario");
        at_link.1.sort_by_key(|(at, _)| *at);
        at_link.1
    };
    let computed = at_bottleneck(PfifoSpec { limit_packets: 100 }.into());
    let of = |event: Event| -> Vec<u64> {
        computed.iter().filter(|at_link| at_link.1 == event).map(|at_link| at_link.0).collect()
    };
    let (enqueued, dequeued, arrived) =
        (of(Event::Enqueued), of(Event::Dequeued), of(Event::Arrived));
    assert_eq!(enqueued.len(), 4, "every 500 µs for 2 ms");
    let first = enqueued[0];
    let starts: Vec<u64> = (0..4).map(|packet| first + packet * 852_800).collect();
    assert_eq!(dequeued, starts);
    assert_eq!(arrived, starts.iter().map(|start| start + 852_800 + 5_000_000).collect::<Vec<_>>());
    let evented = at_bottleneck(
        CodelSpec {
            limit_packets: 100,
            target_ns: 5_000_000,
            interval_ns: 100_000_000,
            ecn: false,
            ce_threshold_ns: None,
        }
        .into(),
    );
    let in_order = |mut at_link: Vec<(u64, Event)>| {
        at_link.sort_by_key(|(at, event)| (*at, format!("{event:?}")));
        at_link
    };
    assert_eq!(in_order(computed), in_order(evented));
}
