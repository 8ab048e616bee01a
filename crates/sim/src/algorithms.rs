//! Algorithms at the ends of flows: congestion controls by name, programs, QUIC's stacks.

use crate::error::{SetupError, problem};
use dragstrip_cc::program::Program;
use dragstrip_cc::{Algorithm, Rules, UnknownAlgorithm};
use dragstrip_quic::Role as QuicRole;
use dragstrip_scenario::{FlowSpec, NodeSpec, Scenario, Transport, quic};
use dragstrip_units::Stream;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The scenario's own algorithms.
pub(crate) type Programs<'a> = BTreeMap<&'a str, Arc<Program>>;

/// Reads the scenario's own algorithms.
pub(crate) fn programs(scenario: &Scenario) -> Result<Programs<'_>, SetupError> {
    let read = scenario.programs.iter().map(|(name, text)| {
        let program = Program::parse(text).map_err(|misread| {
            problem(
                format!("programs.{name}:{}", misread.at),
                format!("got {}, expected {}", misread.found, misread.expected),
            )
        })?;
        Ok((name.as_str(), Arc::new(program)))
    });
    read.collect()
}

/// The congestion control of one end of a flow.
pub(crate) fn algorithm(
    programs: &Programs<'_>,
    flow: &FlowSpec,
    rules: &Rules,
    seed: u64,
    side: &str,
    field: &str,
) -> Result<Algorithm, SetupError> {
    let none = BTreeMap::new();
    let (named, cc, cc_options) = match &flow.transport {
        Transport::Tcp { receiver_cc: Some(cc), .. } if side == "server" => {
            ("receiver_cc", cc.as_str(), &none)
        }
        Transport::Tcp { cc, cc_options, .. } => ("cc", cc.as_str(), cc_options),
        Transport::Quic { .. } | Transport::Udp => ("", "reno", &none),
    };
    if let Some(program) = programs.get(cc) {
        return Algorithm::of(program, cc_options).map_err(|(option, expected)| {
            problem(
                format!("{field}.transport.cc_options.{option}"),
                format!("expected {expected}"),
            )
        });
    }
    let stream = Stream::named(seed, &format!("flow/{}/{side}/{cc}", flow.label));
    Algorithm::new(cc, cc_options, rules, stream).map_err(|error| match error {
        UnknownAlgorithm::Name { name, nearest } => problem(
            format!("{field}.transport.{named}"),
            format!("{name:?} is no congestion control; did you mean {nearest:?}?"),
        ),
        UnknownAlgorithm::Parameter { algorithm, parameter, expected } => problem(
            format!("{field}.transport.cc_options.{parameter}"),
            format!("{algorithm} expects {expected}"),
        ),
    })
}

/// One end of a flow of QUIC; else the field of its transport at fault, and why.
pub(crate) fn quic_endpoint(
    scenario: &Scenario,
    spec: &FlowSpec,
    cc: &str,
    is_client: bool,
    name: &str,
) -> Result<dragstrip_quic::Endpoint, (&'static str, String)> {
    let about = quic::find(cc).map_err(|expected| ("cc", expected))?;
    let hosts = scenario.nodes.iter().filter_map(NodeSpec::host);
    let ends = hosts.filter(|host| host.name == spec.sender || host.name == spec.receiver);
    let mtu = ends.map(|host| host.mtu_bytes).min().unwrap_or_default();
    let settings = dragstrip_quic::Settings {
        about,
        role: if is_client { QuicRole::Client } else { QuicRole::Server },
        payload_bytes: u16::try_from(mtu).unwrap_or(u16::MAX) - quic::HEADERS_BYTES,
        seed: scenario.seed,
        name,
    };
    dragstrip_quic::Endpoint::new(&settings).map_err(|error| ("protocol", error.to_string()))
}
