//! Headers that filters of a class tree look at: those that captures show.

use crate::capture::{FIRST_ADDRESS, flow_ports};
use dragstrip_qdisc::Headers;
use dragstrip_scenario::{FlowSpec, Transport};

/// Protocols of IP.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// ICMP's type, and the code behind it, where other protocols have ports.
const ECHO_REQUEST: u16 = 8 << 8;
const ECHO_REPLY: u16 = 0;

fn between((from, to): (usize, usize), protocol: u8) -> Headers {
    let address = |node: usize| FIRST_ADDRESS + node as u32;
    Headers { protocol, source: address(from), destination: address(to), ..Headers::default() }
}

/// The other way round.
const fn reversed(headers: Headers) -> Headers {
    let Headers { protocol, source, destination, source_port, destination_port, mark } = headers;
    Headers {
        protocol,
        source: destination,
        destination: source,
        source_port: destination_port,
        destination_port: source_port,
        mark,
    }
}

/// Headers of a flow's packets, there and back, by the nodes of its ends and its number.
pub(crate) fn of_flow(ends: (usize, usize), flow: usize, spec: &FlowSpec) -> (Headers, Headers) {
    let protocol = match spec.transport {
        Transport::Tcp { .. } => TCP,
        Transport::Quic { .. } | Transport::Udp => UDP,
    };
    let (source_port, destination_port) = flow_ports(flow);
    let mark = spec.mark;
    let there = Headers { source_port, destination_port, mark, ..between(ends, protocol) };
    (there, reversed(there))
}

/// Headers of a ping and of its answer.
pub(crate) fn of_probe(ends: (usize, usize)) -> (Headers, Headers) {
    let there = between(ends, ICMP);
    let answer = Headers { source_port: ECHO_REPLY, ..reversed(there) };
    (Headers { source_port: ECHO_REQUEST, ..there }, answer)
}
