//! Flows and probes, each on its own.

use super::algorithm::check_algorithm;
use super::program::{self, Programs};
use super::quic;
use crate::applications::{Application, COMMAND_CHARACTERS_MAX};
use crate::routing::Topology;
use crate::types::{FlowSpec, ProbeSpec, Scenario, SocketBuffers, Transport};

use dragstrip_tcp::profiles::Sysctls;
use dragstrip_units::{DURATION_MAX_NS, Duration, Report, tc};
use std::collections::BTreeMap;

/// Bit rates of a video over RTP: from what one packet per frame needs to what a studio sends.
const RTP_RATE_MIN_BPS: u64 = 10_000;
const RTP_RATE_MAX_BPS: u64 = 1_000_000_000;
/// Most frames per second of a video over RTP.
const FPS_MAX: u32 = 240;
/// Least packet of a video over RTP: several of its headers.
const RTP_PACKET_BYTES_MIN: u32 = 100;
/// Room of a datagram that every host can reassemble (RFC 1122 §3.3.2): a report fits.
const RTP_ROOM_MIN: u32 = 576 - 28;
/// Frames have a size.
const VARIATION_MAX: f64 = 0.9;
/// Headers of IPv4 and UDP.
const UDP_HEADERS_BYTES: u32 = 28;
/// IPv4's header in front of ping's.
const IP_HEADER_BYTES: u32 = 20;
/// More would be no header.
const TUNNEL_HEADER_BYTES_MAX: u32 = 1_000;
/// Most bit rates of a video.
const LADDER_MAX: usize = 64;
/// Shortest segment of a video: one millisecond.
const SEGMENT_NS_MIN: u64 = 1_000_000;
/// A request for a segment contains that segment's size.
const REQUEST_BYTES_MIN: u64 = 8;
/// ICMP's header, which `size_bytes` includes.
const ICMP_HEADER_BYTES: u32 = 8;

pub(super) fn check(scenario: &Scenario, topology: &Topology, report: &mut Report) {
    let programs = program::read(scenario, report);
    if scenario.flows.is_empty() {
        report.add("flows", "an empty list", "at least one flow");
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        check_flow(scenario, flow, &format!("flows[{index}]"), (topology, &programs), report);
    }
    for (index, probe) in scenario.probes.iter().enumerate() {
        check_probe(scenario, probe, &format!("probes[{index}]"), topology, report);
    }
}

fn check_flow(
    scenario: &Scenario,
    flow: &FlowSpec,
    at: &str,
    (topology, programs): (&Topology, &Programs),
    report: &mut Report,
) {
    let FlowSpec {
        label: _,
        sender,
        receiver,
        transport,
        application,
        start_ns,
        stop_ns,
        source: _,
        dscp,
        mark: _,
    } = flow;
    report.at_most(format!("{at}.dscp"), u64::from(*dscp), 63);
    let is_host = check_host(scenario, sender, &format!("{at}.sender"), topology, report)
        & check_host(scenario, receiver, &format!("{at}.receiver"), topology, report);
    if is_host && sender == receiver {
        report.add(
            format!("{at}.receiver"),
            format!("{receiver:?}"),
            "another host than the sender",
        );
    }
    check_start(scenario, *start_ns, at, report);
    if let Some(stop) = stop_ns {
        if stop <= start_ns {
            report.add(
                format!("{at}.stop_ns"),
                stop,
                format!("later than the start ({})", seconds_text(*start_ns)),
            );
        }
        report.at_most(format!("{at}.stop_ns"), *stop, DURATION_MAX_NS);
    }
    match transport {
        Transport::Tcp { cc, cc_options, receiver_cc, socket } => {
            let transport_field = format!("{at}.transport");
            match programs.get(cc.as_str()) {
                Some(program) => {
                    program::options(program.as_ref(), cc, cc_options, at, report);
                    let field = format!("{transport_field}.cc");
                    let sending = if application.is_asking() { receiver } else { sender };
                    program::check_step(scenario, program.as_ref(), (cc, sending), field, report);
                }
                None => {
                    check_algorithm(scenario, cc, cc_options, (&transport_field, "cc"), report);
                }
            }
            let sends_both_ways =
                application.is_asking() || matches!(application, Application::Tunnel { .. });
            let sending = if sends_both_ways { vec![sender, receiver] } else { vec![sender] };
            check_kernel_has(
                scenario,
                cc,
                &sending,
                topology,
                &format!("{transport_field}.cc"),
                report,
            );
            if let Some(other) = receiver_cc {
                if !programs.contains_key(other.as_str()) {
                    let options = BTreeMap::new();
                    check_algorithm(
                        scenario,
                        other,
                        &options,
                        (&transport_field, "receiver_cc"),
                        report,
                    );
                }
                let field = format!("{transport_field}.receiver_cc");
                check_kernel_has(scenario, other, &[receiver], topology, &field, report);
            }
            let ends = [sender, receiver];
            check_buffers(scenario, *socket, &ends, topology, &transport_field, report);
        }
        Transport::Quic { cc, cc_options } => {
            let of_flow = (kind(application), mtu(scenario, topology, &[sender, receiver]));
            quic::check(scenario, flow, of_flow, (topology, at), report);
            quic::check_options(scenario, (cc, cc_options), programs, at, report);
        }
        Transport::Udp => {}
    }
    check_pairing(transport, application, at, report);
    check_application(application, &format!("{at}.application"), report);
    check_alone(scenario, flow, at, report);
    let payload = match application {
        Application::ConstantRate { datagram_bytes, .. } => {
            Some(("datagram_bytes", datagram_bytes))
        }
        Application::Rtp { packet_bytes, .. } => Some(("packet_bytes", packet_bytes)),
        Application::Bulk { .. }
        | Application::OnOff { .. }
        | Application::RequestResponse { .. }
        | Application::Video { .. }
        | Application::Tunnel { .. }
        | Application::Program { .. } => None,
    };
    if let Some((field, bytes)) = payload {
        let room = mtu(scenario, topology, &[sender, receiver]).saturating_sub(UDP_HEADERS_BYTES);
        report.at_most(format!("{at}.application.{field}"), *bytes, room);
        if matches!(application, Application::Rtp { .. }) && room < RTP_ROOM_MIN {
            let value = format!("rtp over an MTU of {} bytes", room + UDP_HEADERS_BYTES);
            report.add(format!("{at}.application.kind"), value, "an MTU of 576 bytes at least");
        }
    }
}

/// Checks that `name` is a host; reports it if not.
fn check_host(
    scenario: &Scenario,
    name: &str,
    field: &str,
    topology: &Topology,
    report: &mut Report,
) -> bool {
    let node = topology.node(name).map(|index| &scenario.nodes[index]);
    match node.map(|node| node.host().is_some()) {
        Some(true) => return true,
        Some(false) => report.add(field, format!("the router {name:?}"), "the name of a host"),
        None => report.add(field, format!("{name:?}"), "the name of a host"),
    }
    false
}

fn check_start(scenario: &Scenario, start_ns: u64, at: &str, report: &mut Report) {
    if start_ns >= scenario.duration_ns {
        let expected =
            format!("before the end of the run ({})", seconds_text(scenario.duration_ns));
        report.add(format!("{at}.start_ns"), start_ns, expected);
    }
}

/// The smallest MTU of these hosts; unknown ones have no say.
fn mtu(scenario: &Scenario, topology: &Topology, hosts: &[&String]) -> u32 {
    let of = |name: &&String| Some(scenario.nodes[topology.node(name)?].host()?.mtu_bytes);
    hosts.iter().filter_map(of).min().unwrap_or(u32::MAX)
}

/// Checks that the sending hosts' kernels have the congestion control.
fn check_kernel_has(
    scenario: &Scenario,
    cc: &str,
    hosts: &[&String],
    topology: &Topology,
    at: &str,
    report: &mut Report,
) {
    let limited = |name: &&String| {
        let host = topology.node(name).and_then(|index| scenario.nodes[index].host())?;
        let algorithms =
            host.profile.row().algorithms.filter(|algorithms| !algorithms.contains(&cc))?;
        Some((host.profile.name(), algorithms))
    };
    if let Some((profile, algorithms)) = hosts.iter().find_map(limited)
        && dragstrip_cc::names().contains(&cc)
    {
        let expected = format!("one of {} on a host of profile {profile}", algorithms.join(", "));
        report.add(at, format!("{cc:?}"), expected);
    }
}

/// Buffers that applications choose are known of Linux only.
fn check_buffers(
    scenario: &Scenario,
    socket: SocketBuffers,
    hosts: &[&String],
    topology: &Topology,
    at: &str,
    report: &mut Report,
) {
    let SocketBuffers { send_bytes, receive_bytes } = socket;
    let is_fixed = |name: &&String| {
        let host = topology.node(name).and_then(|index| scenario.nodes[index].host())?;
        matches!(host.profile.row().sysctls, Sysctls::Freebsd).then(|| host.profile.name())
    };
    for (field, bytes) in [("send_bytes", send_bytes), ("receive_bytes", receive_bytes)] {
        let Some(bytes) = bytes else { continue };
        let field = format!("{at}.socket.{field}");
        report.at_least(field.clone(), bytes, 1);
        if let Some(profile) = hosts.iter().find_map(is_fixed) {
            report.add(
                field,
                bytes,
                format!("none on a host of profile {profile}: use its sysctls"),
            );
        }
    }
}

/// Packets of a program's flow are told from others by their hosts: two programs between the same ones would be one.
fn check_alone(scenario: &Scenario, flow: &FlowSpec, at: &str, report: &mut Report) {
    let ends = |flow: &FlowSpec| {
        let program = flow.application.is_program();
        let mut hosts = [flow.sender.clone(), flow.receiver.clone()];
        hosts.sort_unstable();
        program.then_some(hosts)
    };
    let Some(hosts) = ends(flow) else { return };
    let alike = scenario
        .flows
        .iter()
        .find(|other| other.label != flow.label && ends(other).as_ref() == Some(&hosts));
    if let Some(other) = alike {
        let expected =
            format!("hosts of its own: the program {:?} is between the same two", other.label);
        report.add(format!("{at}.receiver"), format!("{:?}", flow.receiver), expected);
    }
}

/// Datagrams and videos over RTP are UDP's, everything else is TCP's.
fn check_pairing(transport: &Transport, application: &Application, at: &str, report: &mut Report) {
    match transport {
        Transport::Tcp { .. } if application.is_datagrams() => {
            let field = format!("{at}.application.kind");
            report.add(
                field,
                format!("{} over TCP", kind(application)),
                "bulk, on_off, request_response, video, tunnel or program over TCP",
            );
        }
        Transport::Udp if !application.is_datagrams() => {
            report.add(
                format!("{at}.application.kind"),
                format!("{} over UDP", kind(application)),
                "constant_rate or rtp over UDP",
            );
        }
        Transport::Tcp { .. } | Transport::Quic { .. } | Transport::Udp => {}
    }
}

const fn kind(application: &Application) -> &'static str {
    match application {
        Application::Bulk { .. } => "bulk",
        Application::OnOff { .. } => "on_off",
        Application::RequestResponse { .. } => "request_response",
        Application::Video { .. } => "video",
        Application::ConstantRate { .. } => "constant_rate",
        Application::Rtp { .. } => "rtp",
        Application::Tunnel { .. } => "tunnel",
        Application::Program { .. } => "program",
    }
}

fn check_application(application: &Application, at: &str, report: &mut Report) {
    match application {
        Application::Bulk { bytes } => {
            if let Some(bytes) = bytes {
                report.amount(format!("{at}.bytes"), *bytes);
            }
        }
        Application::OnOff { on_ns, off_ns } => {
            report.time(format!("{at}.on_ns"), *on_ns, 1);
            report.time(format!("{at}.off_ns"), *off_ns, 0);
        }
        Application::RequestResponse { request_bytes, response_bytes, think_ns } => {
            report.amount(format!("{at}.request_bytes"), *request_bytes);
            report.amount(format!("{at}.response_bytes"), *response_bytes);
            report.time(format!("{at}.think_ns"), *think_ns, 0);
        }
        Application::Video { .. } => check_video(application, at, report),
        Application::ConstantRate { rate_bps, datagram_bytes } => {
            report.rate(format!("{at}.rate_bps"), *rate_bps);
            report.at_least(format!("{at}.datagram_bytes"), *datagram_bytes, 1);
        }
        Application::Rtp { .. } => check_rtp(application, at, report),
        Application::Tunnel { header_bytes } => {
            report.at_most(format!("{at}.header_bytes"), *header_bytes, TUNNEL_HEADER_BYTES_MAX);
        }
        Application::Program { client, server, files: _, folder: _ } => {
            if client.trim().is_empty() {
                report.add(format!("{at}.client"), format!("{client:?}"), "a command");
            }
            for (field, command) in [("client", client), ("server", server)] {
                let characters = command.chars().count() as u64;
                report.at_most(format!("{at}.{field}"), characters, COMMAND_CHARACTERS_MAX as u64);
            }
        }
    }
}

/// A player can begin, fill its buffer and reach each rate.
fn check_video(application: &Application, at: &str, report: &mut Report) {
    let Application::Video {
        ladder_bps,
        segment_ns,
        buffer_ns,
        startup_ns,
        adaptation: _,
        reservoir_ns,
        cushion_ns,
        safety,
        request_bytes,
    } = application
    else {
        return;
    };
    let ladder = format!("{at}.ladder_bps");
    if !(1..=LADDER_MAX).contains(&ladder_bps.len()) {
        report.add(ladder.clone(), ladder_bps.len(), format!("from 1 to {LADDER_MAX} bit rates"));
    }
    for rate in ladder_bps {
        report.rate(ladder.clone(), *rate);
    }
    for pair in ladder_bps.windows(2) {
        if pair[1] <= pair[0] {
            report.add(ladder.clone(), pair[1], "bit rates that ascend");
        }
    }
    report.time(format!("{at}.segment_ns"), *segment_ns, SEGMENT_NS_MIN);
    report.time(format!("{at}.buffer_ns"), *buffer_ns, segment_ns.saturating_mul(2));
    let room = buffer_ns.saturating_sub(*segment_ns);
    report.time(format!("{at}.startup_ns"), *startup_ns, 1);
    if *startup_ns > room {
        let expected = format!("no longer than {} (the buffer less a segment)", seconds_text(room));
        report.add(format!("{at}.startup_ns"), *startup_ns, expected);
    }
    let top = reservoir_ns.saturating_add(*cushion_ns);
    if top > room {
        let (field, value) = if *reservoir_ns > room {
            ("reservoir_ns", *reservoir_ns)
        } else {
            ("cushion_ns", *cushion_ns)
        };
        let room = seconds_text(room);
        let expected = format!(
            "with reservoir and cushion at most {room} together (the buffer less a segment)"
        );
        report.add(format!("{at}.{field}"), value, expected);
    }
    report.share(format!("{at}.safety"), *safety);
    if *request_bytes < REQUEST_BYTES_MIN {
        report.at_least(format!("{at}.request_bytes"), *request_bytes, REQUEST_BYTES_MIN);
    } else {
        report.amount(format!("{at}.request_bytes"), *request_bytes);
    }
}

/// A video over RTP has a range of bit rates, frames, and packets in which a frame's part fits behind the header.
fn check_rtp(application: &Application, at: &str, report: &mut Report) {
    let Application::Rtp { min_bps, max_bps, fps, packet_bytes, variation, ecn: _ } = application
    else {
        return;
    };
    if !(RTP_RATE_MIN_BPS..=RTP_RATE_MAX_BPS).contains(min_bps) {
        let expected = format!("from {RTP_RATE_MIN_BPS} (10kbit) to {RTP_RATE_MAX_BPS} (1gbit)");
        report.add(format!("{at}.min_bps"), min_bps, expected);
    }
    if max_bps < min_bps || *max_bps > RTP_RATE_MAX_BPS {
        let expected = format!("from min_bps ({min_bps}) to {RTP_RATE_MAX_BPS} (1gbit)");
        report.add(format!("{at}.max_bps"), max_bps, expected);
    }
    if !(1..=FPS_MAX).contains(fps) {
        report.add(format!("{at}.fps"), fps, format!("from 1 to {FPS_MAX}"));
    }
    report.at_least(format!("{at}.packet_bytes"), *packet_bytes, RTP_PACKET_BYTES_MIN);
    if !(0.0..=VARIATION_MAX).contains(variation) {
        let expected = format!("a number from 0 to {VARIATION_MAX}");
        report.add(format!("{at}.variation"), variation, expected);
    }
}

fn check_probe(
    scenario: &Scenario,
    probe: &ProbeSpec,
    at: &str,
    topology: &Topology,
    report: &mut Report,
) {
    let ProbeSpec { label: _, from, target, interval_ns, size_bytes, start_ns } = probe;
    check_host(scenario, from, &format!("{at}.from"), topology, report);
    if topology.node(target).is_none() {
        report.add(format!("{at}.target"), format!("{target:?}"), "the name of a node");
    } else if from == target {
        report.add(
            format!("{at}.target"),
            format!("{target:?}"),
            "another node than it comes from",
        );
    }
    report.time(format!("{at}.interval_ns"), *interval_ns, 1);
    report.at_least(format!("{at}.size_bytes"), *size_bytes, ICMP_HEADER_BYTES);
    let room = mtu(scenario, topology, &[from, target]).saturating_sub(IP_HEADER_BYTES);
    report.at_most(format!("{at}.size_bytes"), *size_bytes, room);
    check_start(scenario, *start_ns, at, report);
}

fn seconds_text(ns: u64) -> String {
    tc::format_time(Duration::from_nanos(ns))
}
