//! Goals of BBRv3: less loss in short buffers than version 1, and a fairer share against CUBIC.

use dragstrip_scenario::{BfifoSpec, LinkSpec, QdiscSpec, Scenario};
use dragstrip_sim::{Data, Recording};
use dragstrip_testkit::path::{dumbbell, flow, link};

const RATE_BPS: u64 = 20_000_000;
const RTT_NS: u64 = 40_000_000;
const BDP_BYTES: u64 = RATE_BPS / 8 * RTT_NS / 1_000_000_000;

/// Flows of these algorithms at a bottleneck with `buffer` bytes.
fn race(algorithms: &[&str], buffer: u64, seconds: u64) -> Recording {
    let qdisc = QdiscSpec::from(BfifoSpec { limit_bytes: buffer });
    let bottleneck = LinkSpec { rate_bps: Some(RATE_BPS), qdisc, ..link("r", "d") };
    let mut scenario: Scenario = dumbbell(algorithms.len(), bottleneck, RTT_NS, seconds);
    for (n, cc) in algorithms.iter().enumerate() {
        scenario.flows.push(flow(&format!("s{n}"), "d", cc));
    }
    dragstrip_sim::run(&scenario, &mut |_| true).expect("a valid scenario")
}

fn numbers<'a>(recording: &'a Recording, of: &str, name: &str) -> &'a [i64] {
    let table = recording.tables.iter().find(|table| table.name == of).expect("a table");
    let column = table.columns.iter().find(|column| column.name == name).expect("a column");
    let Data::Int(values) = &column.data else { panic!("{name} holds no numbers") };
    values
}

/// Payload of a flow that arrived after `from_s`, Mbit/s.
fn goodput(recording: &Recording, flow: i64, from_s: i64, to_s: i64) -> f64 {
    let times = numbers(recording, "received", "time_ns");
    let flows = numbers(recording, "received", "flow");
    let bytes = numbers(recording, "received", "new_bytes");
    let sum: i64 = (0..times.len())
        .filter(|&row| flows[row] == flow && times[row] > from_s * 1_000_000_000)
        .map(|row| bytes[row])
        .sum();
    sum as f64 * 8e-6 / (to_s - from_s) as f64
}

/// Segments that all flows retransmitted.
fn retransmits(recording: &Recording) -> i64 {
    let flows = numbers(recording, "samples", "flow");
    let counts = numbers(recording, "samples", "retransmits");
    let last = |flow| (0..flows.len()).rev().find(|&row| flows[row] == flow).map(|row| counts[row]);
    (0..).map_while(last).sum()
}

/// Buffer of a fifth of the BDP: version 1 overruns it in every cycle, version 3 learns its bound.
#[test]
fn in_a_short_buffer_it_loses_far_less_than_version_1() {
    let run = |cc| {
        let recording = race(&[cc, cc], BDP_BYTES / 5, 30);
        let rate = goodput(&recording, 0, 5, 30) + goodput(&recording, 1, 5, 30);
        (retransmits(&recording), rate)
    };
    let ((lost_1, _), (lost_3, rate_3)) = (run("bbr"), run("bbr3"));
    assert!(lost_3 * 4 < lost_1, "{lost_3} of version 3, {lost_1} of version 1");
    assert!(rate_3 > 0.8 * 20.0, "{rate_3} Mbit/s");
}

/// One BDP of buffer: version 1 takes nearly all from CUBIC.
#[test]
fn beside_cubic_it_takes_less_than_version_1() {
    let share = |cc| {
        let recording = race(&[cc, "cubic"], BDP_BYTES, 60);
        let (bbr, cubic) = (goodput(&recording, 0, 10, 60), goodput(&recording, 1, 10, 60));
        bbr / (bbr + cubic)
    };
    let (version_one, three) = (share("bbr"), share("bbr3"));
    assert!(
        (three - 0.5).abs() < (version_one - 0.5).abs() - 0.05,
        "shares: {version_one} of v1, {three} of v3"
    );
}
