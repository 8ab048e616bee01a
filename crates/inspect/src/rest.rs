//! Results of an inspection besides flows with data: unanswered connections, QUIC, and all other traffic.

use crate::connection::{Connection, Syns};
use crate::first_packet::Lone;
use crate::quantiles::Quantiles;
use crate::quic::{Quic, version_name};
use crate::state::File;
use crate::table::Key;
use crate::text::{count_phrase, end_text, seconds};
use dragstrip_capture::read::Protocol;
use serde::Serialize;

/// Connections without an answer that are listed.
const ATTEMPTS_MAX: usize = 10_000;
/// Protocols and ports that are listed.
const OTHER_MAX: usize = 1_000;

/// A connection that was not opened: nothing answered its SYNs, or RST did.
#[derive(Debug, Serialize)]
pub struct Attempts {
    /// Index of its file, from 0.
    pub file: usize,
    /// Address of the end that opens.
    pub client: String,
    /// Address of the end that does not answer, or refuses.
    pub server: String,
    /// SYNs.
    pub syns: u64,
    /// SYNs that repeat an earlier one.
    pub retransmitted: u64,
    /// The first SYN, seconds since the file's first TCP segment.
    pub first_s: f64,
    /// The last SYN.
    pub last_s: f64,
}

/// Packets of a protocol and port that are not TCP.
#[derive(Debug, Serialize)]
pub struct OtherRow {
    /// Index of their file, from 0.
    pub file: usize,
    /// `UDP`, `ICMP`, `ARP` ...
    pub protocol: String,
    /// The service's port, of a protocol that has ports.
    pub port: Option<u16>,
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Service of the port or meaning of the type, if it has a name.
    pub name: Option<String>,
}

/// A QUIC connection, by addresses and ports.
#[derive(Debug, Serialize)]
pub struct QuicRow {
    /// Index of its file, from 0.
    pub file: usize,
    /// The end with the other port.
    pub client: String,
    /// The end with port 443.
    pub server: String,
    /// Version in the first long header; null if the capture has none.
    pub version: Option<String>,
    /// From the first packet to the last.
    pub duration_s: f64,
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Packets to the server.
    pub packets_to_server: u64,
    /// Bytes to the server.
    pub bytes_to_server: u64,
    /// Round trips by the spin bit; null if it does not spin.
    pub rtt_ms: Option<SpinRtt>,
}

/// Round trips by the spin bit.
#[derive(Debug, Serialize)]
pub struct SpinRtt {
    /// Number of samples.
    pub samples: u64,
    /// Quantiles, milliseconds.
    pub p5: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 95th.
    pub p95: Option<f64>,
}

/// Connections that were not opened.
#[derive(Debug, Default)]
pub struct Unopened {
    /// Nothing came back.
    pub unanswered: Vec<Attempts>,
    /// RST came back.
    pub refused: Vec<Attempts>,
    /// Connections beyond the list's limit.
    left_out: u64,
}

impl Unopened {
    /// A connection, if it was not opened.
    pub fn take(&mut self, files: &[File], file: usize, key: &Key, point: &Connection) -> bool {
        let Some((side, refused)) = point.unanswered() else { return false };
        self.push(files, file, key, side, &point.sides[side].syns, refused);
        true
    }

    /// A single packet, if it is a SYN.
    pub fn take_lone(&mut self, files: &[File], key: &Key, lone: &Lone) -> bool {
        let (packet, turned, file) = lone.packet();
        if !packet.opens() {
            return false;
        }
        let at = packet.time_ns;
        let syns = Syns { total: 1, again: 0, first_ns: at, last_ns: at };
        self.push(files, file, key, usize::from(turned), &syns, false);
        true
    }

    fn push(
        &mut self,
        files: &[File],
        file: usize,
        key: &Key,
        side: usize,
        syns: &Syns,
        refused: bool,
    ) {
        let list = if refused { &mut self.refused } else { &mut self.unanswered };
        if list.len() == ATTEMPTS_MAX {
            self.left_out += 1;
            return;
        }
        let begin = files[file].first_ns.unwrap_or(syns.first_ns);
        list.push(Attempts {
            file,
            client: end_text(key, side),
            server: end_text(key, 1 - side),
            syns: syns.total,
            retransmitted: syns.again,
            first_s: seconds(syns.first_ns - begin),
            last_s: seconds(syns.last_ns - begin),
        });
    }

    /// Note on connections beyond the lists' limit.
    pub fn note(&self) -> Option<String> {
        count_phrase(
            self.left_out,
            "more connections were not answered or refused, and are not listed",
        )
    }
}

/// QUIC's connections of all files.
pub fn quic(files: &[File]) -> Vec<QuicRow> {
    let all = files.iter().enumerate().flat_map(|(file, state)| {
        state.other.quic.iter().map(move |(ends, quic)| (file, ends, quic))
    });
    let quic = all.filter(|(.., quic)| quic.is_quic());
    quic.map(|(file, ends, quic)| {
        let [client, server] = ends.map(|(address, port)| {
            end_text(&Key { addresses: [address; 2], ports: [port; 2], ..Key::default() }, 0)
        });
        let Quic { first_ns, last_ns, packets, bytes, version, .. } = quic;
        QuicRow {
            file,
            client,
            server,
            version: version.map(version_name),
            duration_s: seconds((last_ns - first_ns).max(0)),
            packets: packets[0] + packets[1],
            bytes: bytes[0] + bytes[1],
            packets_to_server: packets[0],
            bytes_to_server: bytes[0],
            rtt_ms: quic.trips().map(spin_rtt),
        }
    })
    .collect()
}

fn spin_rtt(trips: &Quantiles) -> SpinRtt {
    let ms = |share| trips.at(share).map(|ns| ns / 1e6);
    SpinRtt { samples: trips.count(), p5: ms(0.05), p50: ms(0.5), p95: ms(0.95) }
}

/// Traffic other than TCP, the most packets of each file first.
pub fn non_tcp_rows(files: &[File]) -> Vec<OtherRow> {
    let mut rows = Vec::new();
    for (file, state) in files.iter().enumerate() {
        let quic = state.other.quic.iter().any(|(_, quic)| quic.is_quic());
        let mut rest = state.other.rest;
        for (index, (protocol, sum)) in state.other.sorted().into_iter().enumerate() {
            if index >= OTHER_MAX {
                rest.packets += sum.packets;
                rest.bytes += sum.bytes;
                continue;
            }
            let (name, port, meaning) = protocol.names();
            // Something else uses the port too.
            let meaning = meaning.filter(|_| quic || protocol != Protocol::Port(17, 443));
            rows.push(OtherRow {
                file,
                protocol: name,
                port,
                packets: sum.packets,
                bytes: sum.bytes,
                name: meaning.map(str::to_owned),
            });
        }
        if rest.packets > 0 {
            rows.push(OtherRow {
                file,
                protocol: "other protocols and ports".to_owned(),
                port: None,
                packets: rest.packets,
                bytes: rest.bytes,
                name: None,
            });
        }
    }
    rows
}
