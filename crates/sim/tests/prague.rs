//! Goals of Prague: a full link with a queue below a millisecond, against CUBIC with a queue of fifteen.

use dragstrip_scenario::{BfifoSpec, DualPi2Spec, FqCodelSpec, LinkSpec, QdiscSpec, Scenario};
use dragstrip_sim::{Data, Recording};
use dragstrip_testkit::path::{dumbbell, flow, link};

const SECONDS: u64 = 40;

/// Flows of these algorithms at a bottleneck of so many Mbit/s and an empty path of so many ms.
fn race(algorithms: &[&str], mbit: u64, rtt_ms: u64, qdisc: impl Into<QdiscSpec>) -> Recording {
    let rate_bps = Some(mbit * 1_000_000);
    let bottleneck = LinkSpec { rate_bps, qdisc: qdisc.into(), ..link("r", "d") };
    let mut scenario: Scenario =
        dumbbell(algorithms.len(), bottleneck, rtt_ms * 1_000_000, SECONDS);
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

/// A table's values of a flow after the first ten seconds.
fn later(recording: &Recording, of: &str, name: &str, flow: i64) -> Vec<i64> {
    let (times, flows) = (numbers(recording, of, "time_ns"), numbers(recording, of, "flow"));
    let values = numbers(recording, of, name);
    let rows = (0..times.len()).filter(|&row| flows[row] == flow && times[row] > 10_000_000_000);
    rows.map(|row| values[row]).collect()
}

fn goodput_mbit(recording: &Recording, flow: i64) -> f64 {
    let bytes: i64 = later(recording, "received", "new_bytes", flow).iter().sum();
    bytes as f64 * 8e-6 / (SECONDS - 10) as f64
}

/// Percentile of the RTTs beyond the empty path's, ms.
fn queue_ms(recording: &Recording, flow: i64, rtt_ms: u64, percent: usize) -> f64 {
    let mut rtts = later(recording, "rtts", "rtt_ns", flow);
    rtts.sort_unstable();
    rtts[rtts.len() * percent / 100] as f64 / 1e6 - rtt_ms as f64
}

fn retransmits(recording: &Recording, flow: i64) -> i64 {
    later(recording, "samples", "retransmits", flow).last().copied().unwrap_or(0)
}

/// The coupling makes windows alike, not rates: CUBIC's RTT has 15 ms of queue, and Prague grows as if its own were 25 ms or more.
#[test]
fn with_cubic_in_dualpi2_it_has_its_share_and_no_queue() {
    for (mbit, rtt_ms) in [(40, 10), (40, 20), (40, 50), (120, 5), (120, 20)] {
        let recording = race(&["prague", "cubic"], mbit, rtt_ms, DualPi2Spec::default());
        let (prague, cubic) = (goodput_mbit(&recording, 0), goodput_mbit(&recording, 1));
        let case = format!("{mbit} Mbit/s, {rtt_ms} ms: {prague} and {cubic}");
        let alike = (rtt_ms + 15) as f64 / rtt_ms.max(25) as f64;
        assert!((0.8..2.0).contains(&(prague / cubic / alike)), "{case}");
        assert!(prague + cubic > 0.93 * mbit as f64, "{case}");
        assert_eq!(retransmits(&recording, 0), 0, "{case}");
        // The step of dualpi2 is a millisecond.
        let low_latency = [50, 99].map(|percent| queue_ms(&recording, 0, rtt_ms, percent));
        assert!(low_latency[0] < 0.7, "{case}: {low_latency:?} ms");
        assert!(low_latency[1] < 1.0, "{case}: {low_latency:?} ms");
        let classic = queue_ms(&recording, 1, rtt_ms, 50);
        assert!((10.0..20.0).contains(&classic), "{case}: classic {classic} ms");
    }
}

/// The shallow threshold of a stock kernel's fq_codel does as well, for a flow alone.
#[test]
fn alone_it_fills_the_link_with_a_marking_threshold() {
    let qdisc = FqCodelSpec { ce_threshold_ns: Some(1_000_000), ..FqCodelSpec::default() };
    for rtt_ms in [5, 40] {
        let recording = race(&["prague"], 50, rtt_ms, qdisc);
        let (goodput, p95) = (goodput_mbit(&recording, 0), queue_ms(&recording, 0, rtt_ms, 95));
        assert!(goodput > 0.95 * 50.0 * 1_448.0 / 1_514.0, "{rtt_ms} ms: {goodput}");
        assert!(p95 < 2.5, "{rtt_ms} ms: {p95}");
        assert_eq!(retransmits(&recording, 0), 0);
    }
}

/// Marks beyond the coupling: two flows of Prague, of 5 and 25 ms, differ by a third; of Reno by more than twice.
#[test]
fn short_paths_have_no_advantage() {
    let ratio = |cc: &str| {
        let bottleneck = LinkSpec {
            rate_bps: Some(50_000_000),
            qdisc: QdiscSpec::from(DualPi2Spec::default()),
            ..link("r", "d")
        };
        let mut scenario = dumbbell(2, bottleneck, 5_000_000, SECONDS);
        for link in &mut scenario.links {
            if link.from == "s1" || link.to == "s1" {
                link.delay_ns += 10_000_000;
            }
        }
        scenario.flows.extend([flow("s0", "d", cc), flow("s1", "d", cc)]);
        let recording = dragstrip_sim::run(&scenario, &mut |_| true).expect("a valid scenario");
        goodput_mbit(&recording, 0) / goodput_mbit(&recording, 1)
    };
    let (prague, reno) = (ratio("prague"), ratio("reno"));
    assert!((0.6..1.5).contains(&prague), "{prague}");
    assert!(reno > 2.0, "{reno}");
}

/// Without marks, losses control the window: half, and one packet per round trip, as Reno.
#[test]
fn with_a_plain_queue_it_is_reno() {
    let buffer = BfifoSpec { limit_bytes: 50_000_000 / 8 * 40 / 1_000 };
    let recording = race(&["prague", "reno"], 50, 40, buffer);
    let (prague, reno) = (goodput_mbit(&recording, 0), goodput_mbit(&recording, 1));
    assert!((0.5..2.0).contains(&(prague / reno)), "{prague} and {reno}");
    assert!(retransmits(&recording, 0) > 0);
}
