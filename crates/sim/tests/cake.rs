//! cake on a path: what hosts, framing and the return path's acknowledgements make of a rate.

use dragstrip_scenario::{LinkSpec, QdiscSpec, Scenario};
use dragstrip_sim::Recording;
use dragstrip_testkit::path::{datagrams, dumbbell, flow, link};

const MS: u64 = 1_000_000;

fn queue(text: &str) -> LinkSpec {
    let qdisc = QdiscSpec::parse(text).expect(text);
    LinkSpec { rate_bps: Some(100_000_000), qdisc, ..link("r", "d") }
}

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

/// Payload of each flow, Mbit/s.
fn goodputs(scenario: &Scenario) -> Vec<f64> {
    let recording = run(scenario);
    let seconds = scenario.duration_ns as f64 / 1e9;
    let table = recording.table("flows").expect("flows");
    let column = table.columns.iter().find(|column| column.name == "bytes_received");
    let dragstrip_sim::Data::Int(bytes) = &column.expect("bytes_received").data else {
        panic!("numbers")
    };
    bytes.iter().map(|&bytes| bytes as f64 * 8.0 / seconds / 1e6).collect()
}

fn near(values: &[f64], expected: &[f64], share: f64) {
    let close = |(values, expected): (&f64, &f64)| (values / expected - 1.0).abs() < share;
    assert!(values.len() == expected.len() && values.iter().zip(expected).all(close), "{values:?}");
}

/// Two flows of one sender and one of another, each as much as the shaper lets pass. Between senders: a half and two quarters;
/// to one receiver, or between flows: thirds.
#[test]
fn hosts_share_the_rate_by_their_classification() {
    for (isolation, shares) in [
        ("dual-srchost", [0.25, 0.25, 0.5]),
        ("triple-isolate", [1.0 / 3.0; 3]),
        ("dual-dsthost", [1.0 / 3.0; 3]),
        ("flows", [1.0 / 3.0; 3]),
    ] {
        let bottleneck = queue(&format!("cake bandwidth 6mbit {isolation}"));
        let mut scenario = dumbbell(2, bottleneck, 5 * MS, 20);
        for (number, sender) in ["s0", "s0", "s1"].into_iter().enumerate() {
            let label = format!("{sender}-{number}");
            let spec = datagrams(sender, "d", 6_000_000, 1_000);
            scenario.flows.push(dragstrip_scenario::FlowSpec { label, ..spec });
        }
        let payload = 6.0 * 1_000.0 / 1_042.0;
        near(&goodputs(&scenario), &shares.map(|share| share * payload), 0.01);
    }
}

/// 1470 bytes of payload are 1498 of IP: with 32 of framing 32 cells, by themselves 1498, as a frame 1512.
#[test]
fn the_framing_takes_its_part_of_the_rate() {
    for (framing, charged) in [
        ("pppoe-vcmux", 1_696.0),
        ("overhead 0", 1_498.0),
        ("raw", 1_512.0),
        ("pppoe-ptm", 1_552.0),
    ] {
        let bottleneck = queue(&format!("cake bandwidth 5mbit {framing}"));
        let mut scenario = dumbbell(1, bottleneck, 5 * MS, 20);
        scenario.flows.push(datagrams("s0", "d", 8_000_000, 1_470));
        near(&goodputs(&scenario), &[5.0 * 1_470.0 / charged], 0.001);
    }
}

/// A way back on which 947 acknowledgements of 66 bytes pass in a second.
#[test]
fn filtered_acknowledgements_make_room_on_a_slow_way_back() {
    let over = |up: &str| {
        let mut scenario = dumbbell(1, queue("cake bandwidth 50mbit"), 20 * MS, 20);
        let back = scenario.links.iter_mut().find(|link| link.name == "d-r").expect("d-r");
        back.rate_bps = Some(500_000);
        back.qdisc = QdiscSpec::parse(up).expect(up);
        scenario.flows.push(flow("s0", "d", "cubic"));
        goodputs(&scenario)[0]
    };
    let (plain, filter, aggressive) =
        (over("cake"), over("cake ack-filter"), over("cake ack-filter-aggressive"));
    // Packets that are not filtered have to be dropped, and each acknowledges two segments.
    assert!(plain < 40.0 && filter > 1.2 * plain, "{plain} {filter}");
    assert!((aggressive / filter - 1.0).abs() < 0.03, "{filter} {aggressive}");
}
