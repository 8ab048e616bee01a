//! Duration of transfers without competing flows.

use dragstrip_scenario::{Application, FULL_FRAME_BYTES, FlowSpec, PathFacts, Scenario};

/// Seconds that each flow with a size takes on its path without others: a round trip for the handshake, its bytes at the
/// rate of the bottleneck, and the way of the last one. (Slow start takes longer, and so do headers.)
pub(crate) fn alone_s(scenario: &Scenario) -> Vec<Option<f64>> {
    let pairs = scenario.flows.iter().map(FlowSpec::data_ends);
    let Ok(facts) = scenario.path_facts(pairs, FULL_FRAME_BYTES) else {
        return vec![None; scenario.flows.len()];
    };
    let of = |(flow, path): (&FlowSpec, PathFacts)| {
        let Application::Bulk { bytes: Some(bytes) } = flow.application else { return None };
        let links = scenario.links.iter().filter(|link| path.forward.contains(&link.name));
        let there_ns: u64 = links.map(|link| scenario.link_facts(link).delay_ns).sum();
        let trips_s = (path.idle_rtt_ns + there_ns) as f64 / 1e9;
        Some(trips_s + bytes as f64 * 8.0 / path.rate_bps? as f64)
    };
    scenario.flows.iter().zip(facts).map(of).collect()
}
