//! Algorithms at the ends of flows: congestion controls by name, programs, QUIC's stacks.

use crate::error::{SetupError, problem};
use crate::network::Target;
use dragstrip_cc::agent::Step;
use dragstrip_cc::{Algorithm, Options, Rules, Text, UnknownAlgorithm};
use dragstrip_quic::Role as QuicRole;
use dragstrip_scenario::{FlowSpec, NodeSpec, Scenario, Transport, quic};
use dragstrip_tcp::Settings;
use dragstrip_units::Stream;
use std::collections::BTreeMap;

/// The scenario's own algorithms.
pub(crate) type Programs<'a> = BTreeMap<&'a str, Text>;

/// Reads the scenario's own algorithms.
pub(crate) fn programs(scenario: &Scenario) -> Result<Programs<'_>, SetupError> {
    let read = scenario.programs.iter().map(|(name, text)| {
        let program = Text::parse(text).map_err(|misread| {
            problem(
                format!("programs.{name}:{}", misread.at),
                format!("got {}, expected {}", misread.value, misread.expected),
            )
        })?;
        Ok((name.as_str(), program))
    });
    read.collect()
}

/// The congestion control of one end of a flow of TCP; that of others is not asked.
pub(crate) fn algorithm(
    programs: &Programs<'_>,
    flow: &FlowSpec,
    rules: &Rules,
    seed: u64,
    side: &str,
    field: &str,
) -> Result<Algorithm, SetupError> {
    let none = BTreeMap::new();
    let (name_field, cc, options) = match &flow.transport {
        Transport::Tcp { receiver_cc: Some(cc), .. } if side == "server" => {
            ("receiver_cc", cc.as_str(), &none)
        }
        Transport::Tcp { cc, cc_options, .. } => ("cc", cc.as_str(), cc_options),
        Transport::Quic { .. } | Transport::Udp => ("", "reno", &none),
    };
    // The algorithm within a policy draws what it would draw alone.
    let drawing = match programs.get(cc) {
        Some(Text::Policy(policy)) => policy.inner.as_deref().unwrap_or(cc),
        Some(Text::Program(_)) | None => cc,
    };
    let stream = Stream::named(seed, &format!("flow/{}/{side}/{drawing}", flow.label));
    named(programs, (cc, options), (rules, stream), (&format!("{field}.transport"), name_field))
}

/// The congestion control called so, a program or a registered one.
fn named(
    programs: &Programs<'_>,
    (cc, options): (&str, &Options),
    (rules, stream): (&Rules, Stream),
    (transport, name_field): (&str, &str),
) -> Result<Algorithm, SetupError> {
    if let Some(program) = programs.get(cc) {
        return Algorithm::of(program, options, rules, stream).map_err(|(option, expected)| {
            problem(format!("{transport}.cc_options.{option}"), format!("expected {expected}"))
        });
    }
    Algorithm::new(cc, options, rules, stream).map_err(|error| match error {
        UnknownAlgorithm::Name { name, nearest } => problem(
            format!("{transport}.{name_field}"),
            format!("{name:?} is no congestion control; did you mean {nearest:?}?"),
        ),
        UnknownAlgorithm::Parameter { algorithm, parameter, expected } => problem(
            format!("{transport}.cc_options.{parameter}"),
            format!("{algorithm} expects {expected}"),
        ),
    })
}

/// Name of a flow's connection, by which its endpoints and its captures draw.
pub(crate) fn connection_name(spec: &FlowSpec) -> String {
    format!("flow/{}", spec.label)
}

/// One end of a flow of QUIC.
pub(crate) fn quic_endpoint(
    scenario: &Scenario,
    programs: &Programs<'_>,
    spec: &FlowSpec,
    is_client: bool,
    (connection, name, transport): (&str, &str, &str),
) -> Result<dragstrip_quic::Endpoint, SetupError> {
    let wrong = |part: &str, expected: String| problem(format!("{transport}.{part}"), expected);
    let none = BTreeMap::new();
    let (cc, options) = match &spec.transport {
        Transport::Quic { cc, cc_options } => (cc.as_str(), cc_options),
        Transport::Tcp { .. } | Transport::Udp => ("", &none),
    };
    let own;
    let control = match quic::find(cc).map_err(|expected| wrong("cc", expected))? {
        quic::Control::Stack(stack, algorithm) => dragstrip_quic::Control::Stack(stack, algorithm),
        quic::Control::Own(algorithm) => {
            let options = quic::of_algorithm(options);
            let rules = &Settings::linux_6().profile.congestion;
            let stream = Stream::named(scenario.seed, &format!("{name}/{algorithm}"));
            own = named(programs, (algorithm, &options), (rules, stream), (transport, "cc"))?;
            dragstrip_quic::Control::Own(&own)
        }
    };
    let hosts = scenario.nodes.iter().filter_map(NodeSpec::host);
    let ends = hosts.filter(|host| host.name == spec.sender || host.name == spec.receiver);
    let mtu = ends.map(|host| host.mtu_bytes).min().unwrap_or_default();
    let settings = dragstrip_quic::Settings {
        control,
        flow: quic::FlowSettings::new(options),
        role: if is_client { QuicRole::Client } else { QuicRole::Server },
        payload_bytes: u16::try_from(mtu).unwrap_or(u16::MAX) - quic::HEADERS_BYTES,
        seed: scenario.seed,
        connection,
        name,
    };
    dragstrip_quic::Endpoint::new(&settings)
        .map_err(|error| wrong("cc", format!("got {cc:?}, expected {error}")))
}

/// Targets of the packets to the server and to the client of a flow of TCP.
pub(crate) fn tcp_targets(
    programs: &Programs<'_>,
    flow: &FlowSpec,
    [server, client]: [u32; 2],
) -> [Target; 2] {
    let asked_at_acks = match programs.get(flow.transport.name()) {
        Some(Text::Policy(policy)) => policy.step == Step::Ack,
        Some(Text::Program(_)) | None => false,
    };
    match (asked_at_acks, flow.application.is_asking()) {
        (false, _) => [Target::Endpoint(server), Target::Endpoint(client)],
        (true, true) => [Target::Agent(server), Target::Endpoint(client)],
        (true, false) => [Target::Endpoint(server), Target::Agent(client)],
    }
}
