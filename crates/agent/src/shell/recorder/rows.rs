//! A connection as rows of the tables: its flows, their names, and the intervals of their lives.

use super::connection::{Connection, Lane, Reading};
use crate::side::{Bytes, longest_limit, may_be_paced};
use dragstrip_recording::{FlowRow, ReceivedRow, Writer};
use std::net::IpAddr;

/// An initial window of ten segments: a direction that carried less beside a larger one is no flow.
const SMALL_BYTES: u64 = 14_600;
/// Fewer datagrams, a question to a name server say, are no flow.
const DATAGRAMS_MIN: u64 = 20;

/// Names of hosts, server and client, and what flows have if no kernel says it.
#[derive(Clone, Debug)]
pub struct Names {
    pub hosts: [String; 2],
    /// Addresses of the server's host itself.
    pub server: [IpAddr; 2],
    /// Congestion control.
    pub cc: String,
}

impl Connection {
    /// Hosts whose data are a flow of this connection, the one with more of them first.
    pub fn flows(&self) -> Vec<usize> {
        if self.is_udp {
            return [0, 1]
                .into_iter()
                .filter(|host| self.lanes[*host].segments >= DATAGRAMS_MIN)
                .collect();
        }
        let sent = [self.lanes[0].sent, self.lanes[1].sent];
        let first = usize::from(sent[1] > sent[0]);
        let mut hosts = Vec::new();
        if sent[first] > 0 {
            hosts.push(first);
        }
        if sent[1 - first] >= SMALL_BYTES {
            hosts.push(1 - first);
        }
        hosts
    }

    /// The program, its port and the place that it connected to: `curl:34567→80`.
    pub fn label(&self, host: usize, names: &Names) -> String {
        let protocol = if self.is_udp { "udp" } else { "tcp" };
        let program = if self.program.is_empty() { protocol } else { &self.program };
        let (_, own_port) = self.ends[self.opener];
        let (address, port) = self.ends[1 - self.opener];
        let far = match address {
            address if self.opener == 0 || names.server.contains(&address) => port.to_string(),
            IpAddr::V4(address) => format!("{address}:{port}"),
            IpAddr::V6(address) => format!("[{address}]:{port}"),
        };
        let is_other = self.flows().first() != Some(&host);
        let back = if is_other { " back" } else { "" };
        format!("{program}:{own_port}→{far}{back}")
    }
}

/// The rows of a flow: the data of a connection from this host.
pub fn add_flow(
    tables: &mut Writer,
    flow: u32,
    (connection, host): (&Connection, usize),
    label: &str,
    names: &Names,
) {
    let lane = &connection.lanes[host];
    let cc = match lane.cc.as_str() {
        _ if connection.is_udp => "",
        "" => &names.cc,
        cc => cc,
    };
    let stop_ns = lane.last_arrival_ns.unwrap_or(connection.start_ns).max(connection.start_ns);
    let lost = connection.is_udp.then(|| lane.segments.saturating_sub(lane.datagrams));
    let table = &mut tables.flows;
    let row = FlowRow {
        flow,
        label: table.label.word(label),
        protocol: table.protocol.word(if connection.is_udp { "udp" } else { "tcp" }),
        cc: table.cc.word(cc),
        sender: table.sender.word(&names.hosts[host]),
        receiver: table.receiver.word(&names.hosts[1 - host]),
        start_ns: connection.start_ns as i64,
        stop_ns: stop_ns as i64,
        bytes_acked: lane.acked as i64,
        bytes_received: lane.received as i64,
        segments_sent: lane.segments as i64,
        retransmits: lane.retransmits as i64,
        rto_count: None,
        reductions: lane.reductions as i64,
        ecn_negotiated: connection.ecn,
        datagrams_lost: lost.map(|lost| lost as i64),
    };
    table.push(row);
    let life = (connection.start_ns, stop_ns);
    add_intervals(tables, flow, lane, life, may_be_paced(cc, false));
}

/// Rows of `received` for the intervals of a flow's life, and of `samples` for those in which its kernel was asked.
fn add_intervals(
    tables: &mut Writer,
    flow: u32,
    lane: &Lane,
    (start_ns, stop_ns): (u64, u64),
    may_be_paced: bool,
) {
    let (mut closed_ns, mut wire_bytes, mut received) = (start_ns, 0, 0);
    let (mut read_ns, mut busy_us) = (start_ns, [0; 3]);
    for snapshot in &lane.history {
        if closed_ns >= stop_ns && received == snapshot.received {
            break;
        }
        tables.received.push(ReceivedRow {
            time_ns: snapshot.time_ns as i64,
            flow,
            wire_bytes: (snapshot.wire_bytes - wire_bytes) as i64,
            new_bytes: (snapshot.received - received) as i64,
        });
        (closed_ns, wire_bytes, received) =
            (snapshot.time_ns, snapshot.wire_bytes, snapshot.received);
        if let Some(Reading { at_ns, info }) = &snapshot.reading
            && *at_ns > read_ns
        {
            let longest = longest_limit(busy_us, info.busy_us, (at_ns - read_ns) / 1_000);
            (read_ns, busy_us) = (*at_ns, info.busy_us);
            let bytes = Bytes { acked: snapshot.acked, written: snapshot.written };
            let time_ns = snapshot.time_ns.min(read_ns) as i64;
            let table = &mut tables.samples;
            let state = table.state.word(info.state_name());
            let mut row = info.row(time_ns, flow, snapshot.rtt_ns, bytes, state);
            row.limit = table.limit.word(info.limit(longest, may_be_paced));
            table.push(row);
        }
    }
}
