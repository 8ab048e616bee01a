//! Links that change during a run: what a packet meets, to the nanosecond, and every discipline with every change.

use dragstrip_qdisc::{Change, KINDS, Kind};
use dragstrip_scenario::{Application, ChangeSpec, FlowSpec, LinkSpec, QdiscSpec, Scenario};
use dragstrip_sim::audit::audit;
use dragstrip_sim::{Event, Loss, Observer, Sighting, Vantage, run, run_observed};
use dragstrip_testkit::path;

const MS: u64 = 1_000_000;

/// Each sighting at the bottleneck's own queue and line: microseconds and what.
#[derive(Debug, Default)]
struct Bottleneck(Vec<(u64, &'static str)>);

impl Observer for Bottleneck {
    fn saw(&mut self, sighting: &Sighting) {
        let at_first_link = matches!(sighting.vantage, Vantage::Link { link: 0, .. });
        let event_name = match sighting.event {
            Event::Arrived => "arrives",
            Event::Dropped(Loss::Queue(_)) => "dropped",
            Event::Sent { .. }
            | Event::Received
            | Event::Enqueued
            | Event::Dequeued
            | Event::Dropped(Loss::Medium)
            | Event::Marked
            | Event::Duplicated { .. } => return,
        };
        if at_first_link {
            self.0.push((sighting.at.as_micros_floor(), event_name));
        }
    }
}

fn change(at_ms: u64) -> ChangeSpec {
    ChangeSpec { at_ns: at_ms * MS, link: "r-d".to_owned(), ..ChangeSpec::default() }
}

/// Datagrams of 1500 bytes of IP, ten at a time at 1.2 ms, over this bottleneck.
fn datagrams(bottleneck: LinkSpec, changes: Vec<ChangeSpec>) -> Scenario {
    let mut scenario = path::dumbbell(1, bottleneck, 0, 1);
    scenario.duration_ns = 400 * MS;
    scenario.flows =
        vec![FlowSpec { stop_ns: Some(11 * MS), ..path::datagrams("s0", "d", 9_813_333, 1472) }];
    scenario.changes = changes;
    scenario
}

fn observe(scenario: &Scenario) -> Vec<(u64, &'static str)> {
    let mut bottleneck = Bottleneck::default();
    run_observed(scenario, &mut bottleneck, &mut |_| true).unwrap();
    bottleneck.0
}

fn wire() -> LinkSpec {
    LinkSpec { rate_bps: Some(1_000_000), ..path::link("r", "d") }
}

/// 12.112 ms a frame; what is on the line at 30 ms (the third) ends when it would have, the others take a quarter.
#[test]
fn a_frame_on_the_line_ends_at_the_old_rate() {
    let changed = ChangeSpec { rate_bps: Some(4_000_000), ..change(30) };
    let times: Vec<u64> =
        observe(&datagrams(wire(), vec![changed])).iter().map(|event| event.0).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(times.len(), 10);
    assert_eq!(gaps, [12_112, 12_112, 3_028, 3_028, 3_028, 3_028, 3_028, 3_028, 3_028]);
}

/// 50 ms of delay fall to 1 ms at 40 ms: who leaves the line before is overtaken by who leaves it after.
#[test]
fn packets_on_their_way_keep_their_time_and_are_overtaken() {
    let slow = LinkSpec { delay_ns: 50 * MS, ..wire() };
    let changed = ChangeSpec { delay_ns: Some(MS), ..change(40) };
    let arrivals: Vec<u64> = observe(&datagrams(slow, vec![changed]))
        .into_iter()
        .filter(|(_, name)| *name == "arrives")
        .map(|event| event.0)
        .collect();
    // Sightings of the line's end and of the netem after it: twenty.
    assert_eq!(arrivals.len(), 20);
    let plain = observe(&datagrams(wire(), Vec::new()));
    let ends: Vec<u64> = plain.iter().map(|event| event.0).collect();
    let mut expected: Vec<u64> = ends.clone();
    expected.extend(ends.iter().map(|end| if *end <= 40_000 { end + 50_000 } else { end + 1_000 }));
    expected.sort_unstable();
    let mut sorted = arrivals;
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
}

/// Down from 30 to 100 ms: the frame on the line arrives, the rest and what comes is dropped; then packets pass again.
#[test]
fn a_link_that_is_down_drops_what_waits_and_what_comes() {
    let down = ChangeSpec { up: Some(false), ..change(30) };
    let up = ChangeSpec { up: Some(true), ..change(100) };
    let mut scenario = datagrams(wire(), vec![down, up]);
    scenario.flows.push(FlowSpec {
        label: "later".to_owned(),
        start_ns: 60 * MS,
        stop_ns: Some(120 * MS),
        ..path::datagrams("s0", "d", 400_000, 1000)
    });
    let events = observe(&scenario);
    let dropped: Vec<u64> =
        events.iter().filter(|(_, name)| *name == "dropped").map(|event| event.0).collect();
    let arrived: Vec<u64> =
        events.iter().filter(|(_, name)| *name == "arrives").map(|event| event.0 / 1000).collect();
    assert_eq!(dropped[..7], [30_000; 7]);
    assert!(dropped[7..].iter().all(|at| (60_000..100_000).contains(at)), "{dropped:?}");
    assert_eq!(dropped.len(), 7 + 2);
    assert_eq!(arrived, [12, 24, 36, 108]);
}

/// A limit below what waits drops nothing of a FIFO but all that comes until there is room.
#[test]
fn a_lower_limit_refuses_who_comes_next() {
    let pfifo = |limit| QdiscSpec::parse(&format!("pfifo limit {limit}")).unwrap();
    let link = LinkSpec { qdisc: pfifo(100), ..wire() };
    let changed = ChangeSpec { limit_packets: Some(3), ..change(6) };
    let events = observe(&datagrams(link, vec![changed]));
    let dropped = events.iter().filter(|(_, name)| *name == "dropped").count();
    // Every packet that arrives after 6 ms finds at least three.
    assert_eq!((dropped, events.len() - dropped), (5, 5));
}

/// A change to the current value has no effect.
#[test]
fn changes_to_what_is_leave_a_run_as_it_is() {
    let htb =
        |rate: u64| QdiscSpec::parse(&format!("htb rate {rate}bit leaf bfifo limit 50kb")).unwrap();
    let mut scenario = path::dumbbell(2, path::link("r", "d"), 20 * MS, 5);
    scenario.links[0].qdisc = htb(5_000_000);
    scenario.flows = vec![path::flow("s0", "d", "cubic"), path::flow("s1", "d", "bbr")];
    let plain = run(&scenario, &mut |_| true).unwrap();
    scenario.changes = vec![ChangeSpec {
        rate_bps: Some(5_000_000),
        limit_bytes: Some(50_000),
        up: Some(true),
        ..change(2_000)
    }];
    assert_eq!(run(&scenario, &mut |_| true).unwrap().sha256(), plain.sha256());
}

/// Every discipline with everything that may change of it: each packet and byte is where the books say, twice the same.
#[test]
fn every_discipline_meets_every_change() {
    let waits = |kind: &&Kind| !kind.classful && !["tbf", "netem"].contains(&kind.name);
    for words in KINDS.iter().filter(waits).flat_map(|kind| kind.examples) {
        let takes = |change| QdiscSpec::parse(words).unwrap().changed(change).is_some();
        let in_bytes = takes(Change::LimitBytes(1_000_000));
        let in_packets = takes(Change::LimitPackets(1_000));
        for shaper in ["htb rate 10mbit leaf ", ""] {
            if *words == "noqueue" && !shaper.is_empty() {
                continue;
            }
            let bottleneck = LinkSpec {
                rate_bps: shaper.is_empty().then_some(10_000_000),
                qdisc: QdiscSpec::parse(&format!("{shaper}{words}")).unwrap(),
                ..path::link("r", "d")
            };
            let mut scenario = path::dumbbell(2, bottleneck, 20 * MS, 6);
            scenario.flows = vec![path::flow("s0", "d", "cubic"), path::flow("s1", "d", "bbr")];
            scenario.flows[1].application = Application::Bulk { bytes: Some(2_000_000) };
            let limit = |change: ChangeSpec, packets: u32| ChangeSpec {
                limit_bytes: in_bytes.then_some(u64::from(packets) * 1514),
                limit_packets: in_packets.then_some(packets),
                ..change
            };
            let changes = |least: u32| {
                let slow = ChangeSpec { rate_bps: Some(1_000_000), ..change(1_000) };
                let far = ChangeSpec { delay_ns: Some(30 * MS), loss: Some(0.02), ..change(2_000) };
                let fast = ChangeSpec { rate_bps: Some(30_000_000), ..change(3_100) };
                vec![
                    limit(slow, least + 10),
                    limit(far, least + 4),
                    ChangeSpec { up: Some(false), ..change(3_000) },
                    limit(fast, least + 200),
                    ChangeSpec { up: Some(true), ..change(3_400) },
                    ChangeSpec { delay_ns: Some(0), loss: Some(0.0), ..change(4_000) },
                ]
            };
            // Where a limit must not be below thresholds, it stays above them.
            scenario.changes = changes(0);
            if scenario.validate().is_err() {
                scenario.changes = changes(250);
            }
            assert_eq!(scenario.validate(), Ok(()), "{words}");
            let (recording, books) = audit(&scenario).unwrap();
            assert_eq!(
                books.sent + books.copied,
                books.delivered + books.dropped + books.waiting,
                "{words}"
            );
            assert_eq!(books.records, books.waiting, "{words}");
            for stream in &books.streams {
                assert!(stream.acked <= stream.in_order && stream.in_order <= stream.written);
            }
            assert_eq!(
                run(&scenario, &mut |_| true).unwrap().sha256(),
                recording.sha256(),
                "{words}"
            );
        }
    }
}

/// A flow has most of what the link carries at both rates, and no more.
#[test]
fn a_flow_follows_the_rate() {
    let mut scenario = path::dumbbell(1, wire(), 20 * MS, 20);
    scenario.links[0].qdisc = QdiscSpec::parse("bfifo limit 30kb").unwrap();
    scenario.flows = vec![path::flow("s0", "d", "cubic")];
    scenario.changes = vec![ChangeSpec { rate_bps: Some(8_000_000), ..change(10_000) }];
    let (_, books) = audit(&scenario).unwrap();
    // 10 s at 1 Mbit/s and 10 s at 8: 11.25 MB on the line, of which 1448 of 1514 bytes are payload.
    let most = 11_250_000 * 1448 / 1514;
    let bytes = books.streams[0].in_order;
    assert!(bytes > most * 85 / 100 && bytes <= most, "{bytes} of {most}");
    let mean = scenario.mean_rate_bps(&scenario.links[0], 0, scenario.duration_ns);
    assert_eq!(mean, Some(4_500_000.0));
}
