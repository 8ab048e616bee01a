//! Bounds on the runs that a link may request, checked before anything runs.

use crate::refused::{self, Refused};
use dragstrip_scenario::{Application, FlowSpec, Problem, Scenario};
use dragstrip_units::{Duration, tc};
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// Characters of a link's fragment.
pub const FRAGMENT_BYTES_MAX: usize = 64 << 10;
/// Bytes of what it unfolds to: experiments and scenarios are never longer.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Flows of a run.
pub const FLOWS_MAX: usize = 100;
/// Nodes and links: four times what a dumbbell has of them with so many flows, each from a host of its own.
pub const PARTS_MAX: usize = 1_000;
/// The longest run: ten minutes.
pub const DURATION_MAX_NS: u64 = 600_000_000_000;
/// Runs of one form.
pub const RUNS_MAX: usize = 100;
/// Variants of an experiment, of which the page shows the names and runs the picked one.
pub const VARIANTS_MAX: usize = 1_000;
/// Memory for what is recorded: 128 MiB.
pub const RECORDING_BYTES_MAX: u64 = 128 << 20;
/// Packets of a run that starts by itself: some seconds.
pub const PACKETS_MAX: u64 = 5_000_000;
/// Packets of a run that starts when somebody who was told what it takes asks for it.
pub const PACKETS_ASKED_MAX: u64 = 50_000_000;
/// Events without a simulated millisecond: a run that gets no further (an application that turns on and off every
/// nanosecond is a valid one). A hundred flows at 10 Gbit/s have some thousands.
pub const STALLED_EVENTS: u64 = 100_000;
/// The simulated time, ns, in which [`STALLED_EVENTS`] are counted.
pub const STALLED_NS: u64 = 1_000_000;

/// The bounds, as JSON.
#[must_use]
#[wasm_bindgen]
pub fn bounds() -> String {
    json!({
        "fragment_bytes": FRAGMENT_BYTES_MAX,
        "text_bytes": TEXT_BYTES_MAX,
        "flows": FLOWS_MAX,
        "parts": PARTS_MAX,
        "duration_ns": DURATION_MAX_NS,
        "runs": RUNS_MAX,
        "variants": VARIANTS_MAX,
        "recording_bytes": RECORDING_BYTES_MAX,
        "packets": PACKETS_MAX,
        "packets_asked": PACKETS_ASKED_MAX,
        "stalled_events": STALLED_EVENTS,
    })
    .to_string()
}

/// The cost of running a scenario given as JSON, as JSON: `flows`, `duration_ns`, about how many `packets`, about how
/// many `recording_bytes`, and the `verdict`: `run`, or `ask` beyond [`PACKETS_MAX`].
///
/// # Errors
/// An invalid scenario, or one beyond the bounds.
#[wasm_bindgen]
pub fn cost(scenario: &str) -> Result<String, Refused> {
    Ok(cost_of(&read(scenario)?)?.to_string())
}

/// Reads a scenario, and checks that it is valid and within the bounds.
pub fn read(scenario: &str) -> Result<Scenario, Refused> {
    text(scenario, "scenario")?;
    let scenario = Scenario::from_json(scenario).map_err(refused::problem)?;
    // Before validation, which looks at each pair of hosts that talk.
    within(&scenario).map_err(refused::problems)?;
    scenario.validate().map_err(refused::problems)?;
    Ok(scenario)
}

/// Checks that a text is short enough to be read.
pub fn text(content: &str, field: &str) -> Result<(), Refused> {
    if content.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let value = format!("{} bytes", content.len());
    Err(refused::wrong(field, &value, &format!("at most {TEXT_BYTES_MAX} bytes")))
}

/// Checks the bounds that do not depend on the paths.
fn within(scenario: &Scenario) -> Result<(), Vec<Problem>> {
    let Scenario { nodes, links, media, routes, flows, probes, duration_ns, .. } = scenario;
    let parts = nodes.len() + links.len() + media.len() + routes.len() + probes.len();
    let mut problems = Vec::new();
    if flows.len() > FLOWS_MAX {
        let expected = format!("at most {FLOWS_MAX} flows; more run on the command line");
        problems.push(Problem::new("flows", format!("{} flows", flows.len()), expected));
    }
    if parts > PARTS_MAX {
        let expected = format!("at most {PARTS_MAX} nodes, links, media, routes and probes in all");
        problems.push(Problem::new("nodes", format!("{parts} of them"), expected));
    }
    if *duration_ns > DURATION_MAX_NS {
        let long = |ns| tc::format_time(Duration::from_nanos(ns));
        let expected =
            format!("at most {}; longer runs on the command line", long(DURATION_MAX_NS));
        problems.push(Problem::new("duration", long(*duration_ns), expected));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The cost of a valid scenario.
pub fn cost_of(scenario: &Scenario) -> Result<Value, Refused> {
    let recording_bytes = scenario.recording_bytes();
    let packets = packets(scenario);
    let mut problems = Vec::new();
    if recording_bytes > RECORDING_BYTES_MAX {
        let value = format!("a recording of about {} MiB", recording_bytes >> 20);
        let expected = format!(
            "at most {} MiB: a shorter run, a lower rate or fewer flows; or the command line",
            RECORDING_BYTES_MAX >> 20
        );
        problems.push(Problem::new("duration", value, expected));
    }
    if packets > PACKETS_ASKED_MAX {
        let value = format!("about {packets} packets");
        let expected = format!(
            "at most {PACKETS_ASKED_MAX}: a shorter run or a lower rate; or the command line"
        );
        problems.push(Problem::new("duration", value, expected));
    }
    if !problems.is_empty() {
        return Err(refused::problems(problems));
    }
    Ok(json!({
        "flows": scenario.flows.len(),
        "duration_ns": scenario.duration_ns,
        "packets": packets,
        "recording_bytes": recording_bytes,
        "verdict": if packets > PACKETS_MAX { "ask" } else { "run" },
    }))
}

/// About how many packets are sent: TCP's data, datagrams and pings. What waits in a queue, or is lost, was sent too.
fn packets(scenario: &Scenario) -> u64 {
    let datagrams = |flow: &FlowSpec| match flow.application {
        Application::ConstantRate { rate_bps, datagram_bytes } => {
            let bits = u128::from(rate_bps) * u128::from(scenario.duration_ns) / 1_000_000_000;
            u64::try_from(bits / u128::from(8 * datagram_bytes.max(1))).unwrap_or(u64::MAX)
        }
        Application::Rtp { max_bps, packet_bytes, .. } => {
            let bits = u128::from(max_bps) * u128::from(scenario.duration_ns) / 1_000_000_000;
            u64::try_from(bits / u128::from(8 * packet_bytes.max(1))).unwrap_or(u64::MAX)
        }
        Application::Bulk { .. }
        | Application::OnOff { .. }
        | Application::RequestResponse { .. }
        | Application::Video { .. }
        | Application::Tunnel { .. }
        | Application::Program { .. } => 0,
    };
    let datagrams = scenario.flows.iter().map(datagrams);
    let pings =
        scenario.probes.iter().map(|probe| scenario.duration_ns / probe.interval_ns.max(1) + 1);
    datagrams.chain(pings).fold(scenario.packets(), u64::saturating_add)
}
