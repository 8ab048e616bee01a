//! UDP (RFC 768): which service a datagram belongs to, and how its payload begins.

use super::bytes::be16;
use super::packet::{Content, Datagram, Other, Protocol};
use super::ports;
use super::scan::{Header, Scan};

/// UDP's number in IP.
pub const PROTOCOL: u8 = 17;
/// UDP's header, bytes.
pub const HEADER: usize = 8;

/// A datagram outside any tunnel.
pub fn datagram(scan: &Scan, header: &Header, data: &[u8]) -> Content {
    let (Some(source_port), Some(destination_port)) = (be16(data, 0), be16(data, 2)) else {
        return scan.non_tcp(Protocol::Ip(PROTOCOL));
    };
    let payload = data.get(HEADER..).unwrap_or_default();
    let mut begin = [0; 5];
    let begin_bytes = payload.len().min(begin.len());
    begin[..begin_bytes].copy_from_slice(&payload[..begin_bytes]);
    let datagram = Datagram {
        source: header.source,
        destination: header.destination,
        source_port,
        destination_port,
        begin,
        begin_bytes: begin_bytes as u8,
    };
    Content::Other(Other {
        time_ns: scan.time_ns,
        bytes: scan.bytes,
        protocol: Protocol::Port(PROTOCOL, ports::service(source_port, destination_port)),
        datagram: Some(datagram),
    })
}
