//! Scenarios at the ends of what validation lets pass: one flow over one bottleneck.

use crate::path;
use dragstrip_qdisc::{KINDS, QdiscSpec};
use dragstrip_scenario::{Application, ChangeSpec, LinkSpec, NodeSpec, Scenario};
use dragstrip_units::DURATION_MAX_NS;
use proptest::prelude::*;
use proptest::sample::select;

/// The fastest of these bottlenecks: 400 Gbit/s.
const RATE_BPS_MAX: u64 = 400_000_000_000;
/// About how many full packets a run is long enough for.
const PACKETS: u64 = 3_000;
/// Ethernet's header.
const ETHERNET_BYTES: u64 = 14;

/// Shapers and queues that are set without knowing what they meet; `{}` is the rate.
fn queues() -> Vec<&'static str> {
    KINDS.iter().flat_map(|kind| kind.extremes).copied().collect()
}

/// `least` to `most`, each order of magnitude as likely as another, and the ends themselves.
fn magnitudes(least: u64, most: u64) -> impl Strategy<Value = u64> {
    let shift = most.leading_zeros()..64;
    let inside =
        (any::<u64>(), shift).prop_map(move |(bits, shift)| (bits >> shift).clamp(least, most));
    prop_oneof![1 => Just(least), 1 => Just(most), 6 => inside]
}

/// Scenarios with rates from 1 bit/s to 400 Gbit/s, MTUs from 68 to 65,535 bytes, and times up to the limit of a
/// run; `link` 0 is the bottleneck. Some are refused by validation.
pub fn extremes() -> impl Strategy<Value = Scenario> {
    let mtu =
        prop_oneof![select(vec![68_u32, 1_500, 9_000, 65_521, 65_522, 65_535]), 68..65_536_u32];
    let delay = prop_oneof![Just(0), magnitudes(1, DURATION_MAX_NS)];
    let bytes = prop_oneof![3 => Just(None), 1 => magnitudes(1, 1 << 60).prop_map(Some)];
    let cc = select(vec!["reno", "cubic", "vegas", "cdg", "bbr"]);
    let change = (0..8_u32, magnitudes(1, RATE_BPS_MAX), magnitudes(1, DURATION_MAX_NS));
    let change = proptest::option::weighted(0.3, change);
    let parts =
        (magnitudes(1, RATE_BPS_MAX), mtu, delay, select(queues()), bytes, cc, any::<u64>());
    (parts, change).prop_map(|((rate, mtu, delay_ns, queue, bytes, cc, seed), change)| {
        let qdisc = QdiscSpec::parse(&queue.replace("{}", &rate.to_string()));
        let bottleneck = LinkSpec {
            rate_bps: (!queue.contains("rate {}")).then_some(rate),
            qdisc: qdisc.expect("a queue of this list"),
            ..path::link("r", "d")
        };
        let mut scenario = path::dumbbell(1, bottleneck, delay_ns, 1);
        for node in &mut scenario.nodes {
            if let NodeSpec::Host(host) = node {
                host.mtu_bytes = mtu;
            }
        }
        let frame_ns = u128::from(mtu) * 8_000_000_000 / u128::from(rate);
        let busy = frame_ns * u128::from(PACKETS) + u128::from(delay_ns) * 8 + 1;
        scenario.duration_ns = u64::try_from(busy).unwrap_or(u64::MAX).min(DURATION_MAX_NS);
        scenario.record.interval_ns = scenario.duration_ns.div_ceil(10);
        scenario.flows = vec![path::flow("s0", "d", cc)];
        scenario.flows[0].application = Application::Bulk { bytes };
        scenario.seed = seed;
        if let Some((part, slower, size)) = change {
            let at = |eighths: u32| scenario.duration_ns / 8 * u64::from(eighths);
            let none =
                |at_ns| ChangeSpec { at_ns, link: "r-d".to_owned(), ..ChangeSpec::default() };
            let delay = ChangeSpec { delay_ns: Some(size), loss: Some(0.0), ..none(at(part)) };
            // Never faster: the most that the bottleneck carries is known from its rate at the start.
            let slower = Some(slower.min(rate)).filter(|_| !queue.starts_with("netem rate"));
            let rate = ChangeSpec { rate_bps: slower, up: Some(part % 2 == 0), ..none(at(part)) };
            let up = ChangeSpec { up: Some(true), ..none(at(part + 1)) };
            scenario.changes = vec![delay, rate, up];
            if part == 7 {
                scenario.changes.pop();
            }
        }
        scenario
    })
}

/// The most payload that the bottleneck of one of [`extremes`] lets pass: its rate for the whole run, a shaper's
/// bucket as often as it is full again (`tbf_change`, a link that comes up), and a packet each that was begun before the first and after the last bit.
///
/// # Panics
/// Without a rate on its first link.
#[must_use]
pub fn payload_bytes_max(scenario: &Scenario) -> u128 {
    let facts = scenario.link_facts(&scenario.links[0]);
    let rate = u128::from(facts.fastest_bps.expect("a bottleneck with a rate"));
    let mtu = scenario.nodes.iter().filter_map(NodeSpec::host).map(|host| host.mtu_bytes).max();
    let frame = u128::from(mtu.unwrap_or_default()) + u128::from(ETHERNET_BYTES);
    let qdisc = &scenario.links[0].qdisc;
    let full_again = |refills: fn(&ChangeSpec) -> bool| {
        1 + scenario.changes.iter().filter(|change| refills(change)).count() as u128
    };
    let buckets = if let QdiscSpec::Tbf(spec) = qdisc {
        let refills = |change: &ChangeSpec| change.rate_bps.is_some() || change.up == Some(true);
        u128::from(spec.burst_bytes) * full_again(refills)
    } else if let QdiscSpec::Htb(spec) = qdisc {
        u128::from(spec.burst_bytes) * full_again(|change| change.up == Some(true))
    } else {
        0
    };
    let wire = rate * u128::from(scenario.duration_ns) / 8_000_000_000 + buckets + 2 * frame;
    // Each frame carries at least Ethernet's, IP's and TCP's headers.
    wire * (frame - 54) / frame
}
