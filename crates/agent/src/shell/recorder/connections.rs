//! All connections of a run, within bounds, and the tables that they become.

use super::connection::{Connection, SegmentHead};
use super::rows::{Names, add_flow};
use super::sockets::{End, TcpSocket};
use super::tee::Head;
use dragstrip_recording::Writer;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Connections that are recorded; later ones are counted.
pub const CONNECTIONS_MAX: usize = 2_000;
/// Flows of datagrams that are recorded.
const DATAGRAM_FLOWS_MAX: usize = 1_000;
/// Snapshots of all directions together. When there are more, every second one goes and the interval doubles.
const SNAPSHOTS_MAX: usize = 200_000;
/// Looks for the name of a connection's program.
const LOOKS_MAX: u32 = 3;

/// Figures of the connections beside their tables.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    pub connections: usize,
    /// Connections beyond the bound.
    pub not_recorded: u64,
    pub datagram_flows: usize,
}

/// The connections.
#[derive(Debug)]
pub struct Connections {
    interval_ns: u64,
    /// Number of intervals of which one is kept.
    stride: u64,
    /// End of the interval that is under way.
    due_ns: u64,
    snapshots: usize,
    all: Vec<Connection>,
    /// By what they are (UDP or not) and their ends at the server's host and at the client's.
    places: BTreeMap<(bool, [End; 2]), usize>,
    datagram_flows: usize,
    not_recorded: u64,
    /// Arrived in frames with data by connection and direction, when the busiest was last asked for.
    looked_at: Vec<[u64; 2]>,
}

impl Connections {
    pub const fn new(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            stride: 1,
            due_ns: interval_ns,
            snapshots: 0,
            all: Vec::new(),
            places: BTreeMap::new(),
            datagram_flows: 0,
            not_recorded: 0,
            looked_at: Vec::new(),
        }
    }

    /// End of the interval that is under way.
    pub const fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// A packet at a host.
    pub fn see(&mut self, head: &Head<'_>) {
        self.close_until(head.at_ns);
        let Some(segment) = SegmentHead::read(head.bytes, head.length) else { return };
        let [source, target] = segment.ends;
        let from_server = head.outgoing == (head.host == 0);
        let ends = if from_server { [source, target] } else { [target, source] };
        let place = self.places.get(&(segment.is_udp, ends)).copied();
        let reopens = head.outgoing && segment.opens() && self.is_new(place, &segment);
        let place = match place {
            Some(place) if !reopens => place,
            Some(_) | None if self.has_room(segment.is_udp) => {
                let opener = if segment.opens() == from_server { 0 } else { 1 };
                self.add(Connection::new(segment.is_udp, ends, opener, head.at_ns))
            }
            Some(_) | None => {
                let is_connection = !segment.is_udp && segment.opens();
                self.not_recorded += u64::from(head.outgoing && is_connection);
                return;
            }
        };
        self.all[place].see(head, &segment);
    }

    const fn has_room(&self, for_udp: bool) -> bool {
        if for_udp {
            self.datagram_flows < DATAGRAM_FLOWS_MAX
        } else {
            self.all.len() - self.datagram_flows < CONNECTIONS_MAX
        }
    }

    /// Adds one; returns its place.
    fn add(&mut self, connection: Connection) -> usize {
        let place = self.all.len();
        self.datagram_flows += usize::from(connection.is_udp);
        self.places.insert((connection.is_udp, connection.ends), place);
        self.all.push(connection);
        place
    }

    /// The segment opens another connection between the same ends, and does not repeat how this one was opened.
    fn is_new(&self, place: Option<usize>, segment: &SegmentHead) -> bool {
        let opened_with = place.and_then(|place| self.all[place].opened_with());
        opened_with.is_some_and(|sequence| sequence != segment.sequence)
    }

    /// Ends all intervals that are over at this instant.
    pub fn close_until(&mut self, now_ns: u64) {
        while now_ns >= self.due_ns {
            let due_ns = self.due_ns;
            self.close(due_ns);
            self.due_ns += self.interval_ns * self.stride;
            self.thin_out();
        }
    }

    fn close(&mut self, time_ns: u64) {
        for connection in &mut self.all {
            self.snapshots += connection.close_interval(time_ns);
        }
    }

    /// Keeps every second interval where there are too many.
    fn thin_out(&mut self) {
        if self.snapshots <= SNAPSHOTS_MAX {
            return;
        }
        self.stride *= 2;
        let step_ns = self.interval_ns * self.stride;
        self.snapshots = 0;
        for lane in self.all.iter_mut().flat_map(|connection| &mut connection.lanes) {
            lane.history.retain(|snapshot| snapshot.time_ns.is_multiple_of(step_ns));
            self.snapshots += lane.history.len();
        }
        self.due_ns = self.due_ns.next_multiple_of(step_ns);
    }

    /// Takes the current answers of both hosts' kernels; `programs` names those that own sockets.
    pub fn learn(
        &mut self,
        now_ns: u64,
        lists: [Vec<TcpSocket>; 2],
        programs: impl FnOnce() -> BTreeMap<u32, String>,
    ) {
        self.all.iter_mut().for_each(Connection::forget_listing);
        let mut nameless = Vec::new();
        for (host, sockets) in lists.into_iter().enumerate() {
            for socket in sockets {
                let ends = if host == 0 {
                    [socket.local, socket.peer]
                } else {
                    [socket.peer, socket.local]
                };
                let Some(&place) = self.places.get(&(false, ends)) else { continue };
                let connection = &mut self.all[place];
                if connection.opener == host && connection.program.is_empty() && socket.inode > 0 {
                    nameless.push((place, socket.inode));
                }
                connection.learn(now_ns, host, socket);
            }
        }
        nameless.retain(|(place, _)| self.all[*place].looks < LOOKS_MAX);
        if nameless.is_empty() {
            return;
        }
        let names = programs();
        for (place, inode) in nameless {
            let connection = &mut self.all[place];
            connection.looks += 1;
            connection.program = names.get(&inode).cloned().unwrap_or_default();
        }
    }

    /// A connection that no kernel was asked about yet.
    pub fn has_strangers(&self) -> bool {
        let last = self.all.len().saturating_sub(20);
        self.all[last..].iter().any(Connection::is_stranger)
    }

    /// The latest RTT of the direction that carried most since the last call, and how many carried something.
    pub fn busiest(&mut self) -> (Option<i64>, usize) {
        self.looked_at.resize(self.all.len(), [0; 2]);
        let (mut most, mut rtt_ns, mut busy) = (0, None, 0);
        for (connection, before) in self.all.iter().zip(&mut self.looked_at) {
            for (lane, before) in connection.lanes.iter().zip(before) {
                let grown = lane.wire_bytes - *before;
                *before = lane.wire_bytes;
                busy += usize::from(grown > 0);
                if grown > most {
                    (most, rtt_ns) = (grown, lane.rtt_ns);
                }
            }
        }
        (rtt_ns, busy)
    }

    /// Ends the last interval, adds everything to the tables, and returns the length of an interval.
    pub fn conclude(mut self, end_ns: u64, names: &Names, tables: &mut Writer) -> (u64, Totals) {
        self.close_until(end_ns);
        let step_ns = self.interval_ns * self.stride;
        let since_ns = self.due_ns - step_ns;
        if end_ns > since_ns {
            self.close(end_ns);
        }
        let mut labels = BTreeSet::new();
        let mut flow = 0;
        for connection in &self.all {
            for host in connection.flows() {
                let label = distinct(&mut labels, connection.label(host, names));
                add_flow(tables, flow, (connection, host), &label, names);
                flow += 1;
            }
        }
        let Self { datagram_flows, not_recorded, .. } = self;
        let connections = self.all.len() - datagram_flows;
        let totals = Totals { connections, not_recorded, datagram_flows };
        (step_ns, totals)
    }
}

/// A label that no flow has yet.
fn distinct(labels: &mut BTreeSet<String>, label: String) -> String {
    let numbered = (2..).map(|number| format!("{label} {number}"));
    let free = std::iter::once(label.clone()).chain(numbered).find(|label| !labels.contains(label));
    let free = free.unwrap_or(label);
    labels.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Info;
    use dragstrip_recording::Data;

    const INTERVAL_NS: u64 = 100;
    const ACK: u8 = 16;
    const SYN: u8 = 2;

    /// An IP packet with a TCP header, from a port of the client's host to port 80 of the server's or back.
    fn packet(
        from_server: bool,
        port: u16,
        flags: u8,
        sequence: u32,
        payload: u32,
    ) -> (Vec<u8>, u32) {
        let (hosts, ports) = if from_server { ([2, 1], [80, port]) } else { ([1, 2], [port, 80]) };
        let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
        bytes.extend([198, 18, 0, hosts[0], 198, 18, 0, hosts[1]]);
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        bytes.extend(sequence.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        (bytes, 40 + payload)
    }

    fn send(all: &mut Connections, at_ns: u64, port: u16, flags: u8, sequence: u32, payload: u32) {
        let from_server = flags & ACK != 0;
        let (bytes, length) = packet(from_server, port, flags, sequence, payload);
        let host = usize::from(!from_server);
        all.see(&Head { at_ns, host, outgoing: true, length, bytes: &bytes });
        all.see(&Head { at_ns, host: 1 - host, outgoing: false, length, bytes: &bytes });
    }

    fn names() -> Names {
        let server = [[198, 18, 0, 2].into(), [0_u16; 8].into()];
        Names { hosts: ["s1".to_owned(), "d".to_owned()], server, cc: "cubic".to_owned() }
    }

    fn integers(tables: Writer, table: &str, name: &str) -> Vec<i64> {
        let recording = tables.finish();
        let table = recording.table(table).unwrap();
        let column = table.columns.iter().find(|column| column.name == name).unwrap();
        let Data::Int(values) = &column.data else { panic!("integers") };
        values.to_vec()
    }

    #[test]
    fn a_flow_has_its_name_and_a_row_for_each_interval() {
        let mut all = Connections::new(INTERVAL_NS);
        send(&mut all, 10, 4000, SYN, 0, 0);
        send(&mut all, 20, 4000, ACK, 1, 1000);
        send(&mut all, 230, 4000, ACK, 1001, 500);
        let mut tables = Writer::default();
        let (step_ns, totals) = all.conclude(250, &names(), &mut tables);
        assert_eq!((step_ns, totals.connections, totals.not_recorded), (INTERVAL_NS, 1, 0));
        assert_eq!(tables.flows.label.names(), ["tcp:4000→80"]);
        assert_eq!(tables.flows.sender.names(), ["s1"]);
        assert_eq!(tables.flows.stop_ns.values(), [230]);
        assert_eq!(integers(tables, "received", "wire_bytes"), [1054, 554]);
    }

    #[test]
    fn later_connections_than_the_bound_are_counted() {
        let mut all = Connections::new(INTERVAL_NS);
        for number in 0..CONNECTIONS_MAX + 5 {
            send(&mut all, 1, 1000 + number as u16, SYN, 7, 0);
            send(&mut all, 2, 1000 + number as u16, ACK, 1, 100);
        }
        let mut tables = Writer::default();
        let (_, totals) = all.conclude(50, &names(), &mut tables);
        assert_eq!((totals.connections, totals.not_recorded), (CONNECTIONS_MAX, 5));
        assert_eq!(tables.flows.label.names().len(), CONNECTIONS_MAX);
    }

    #[test]
    fn long_runs_keep_every_second_interval() {
        let mut all = Connections::new(INTERVAL_NS);
        send(&mut all, 1, 4000, SYN, 0, 0);
        let intervals = SNAPSHOTS_MAX as u64 + 10;
        for number in 0..intervals {
            send(&mut all, number * INTERVAL_NS + 50, 4000, ACK, 1 + number as u32, 1);
        }
        let mut tables = Writer::default();
        let (step_ns, _) = all.conclude(intervals * INTERVAL_NS, &names(), &mut tables);
        assert_eq!(step_ns, 2 * INTERVAL_NS);
        let rows = integers(tables, "received", "wire_bytes");
        assert_eq!(rows.len() as u64, intervals / 2);
        assert!(rows.iter().all(|bytes| *bytes == 2 * 55));
    }

    #[test]
    fn the_same_ports_again_are_another_flow() {
        let mut all = Connections::new(INTERVAL_NS);
        for first in [0, 5000] {
            send(&mut all, 1, 4000, SYN, first, 0);
            send(&mut all, 2, 4000, SYN, first, 0);
            send(&mut all, 3, 4000, ACK, 1, 100);
        }
        let mut tables = Writer::default();
        all.conclude(50, &names(), &mut tables);
        assert_eq!(tables.flows.label.names(), ["tcp:4000→80", "tcp:4000→80 2"]);
    }

    #[test]
    fn datagrams_are_a_flow_with_their_losses_and_a_question_is_none() {
        let mut all = Connections::new(INTERVAL_NS);
        for number in 0..30_u64 {
            let (mut bytes, length) = packet(false, 4000, 0, 0, 100);
            bytes[9] = 17;
            let head = Head { at_ns: number, host: 1, outgoing: true, length, bytes: &bytes };
            all.see(&head);
            if number % 3 > 0 {
                all.see(&Head { host: 0, outgoing: false, ..head });
            }
        }
        let (mut question, length) = packet(false, 4001, 0, 0, 100);
        question[9] = 17;
        all.see(&Head { at_ns: 40, host: 1, outgoing: true, length, bytes: &question });
        assert!(!all.has_strangers(), "no kernel lists them");
        let mut tables = Writer::default();
        let (_, totals) = all.conclude(50, &names(), &mut tables);
        assert_eq!((totals.connections, totals.datagram_flows), (0, 2));
        assert_eq!(tables.flows.label.names(), ["udp:4000→80"]);
        assert_eq!(tables.flows.datagrams_lost.values(), [10]);
        assert_eq!(tables.flows.bytes_received.values(), [20 * (length as i64 - 28)]);
    }

    /// A socket of the server's host, busy for so many microseconds.
    fn socket(busy_us: u64) -> TcpSocket {
        let info = Info { cwnd: 10, mss: 1448, busy_us: [busy_us, 0, 0], ..Info::default() };
        let end = |host, port| ([198, 18, 0, host].into(), port);
        let (local, peer) = (end(2, 80), end(1, 4000));
        TcpSocket { local, peer, queued_bytes: 9, inode: 0, info, cc: "bbr".to_owned() }
    }

    #[test]
    fn a_sample_is_taken_when_the_kernel_was_asked_and_limited_by_its_clocks_since_then() {
        const MS: u64 = 1_000_000;
        let mut all = Connections::new(100 * MS);
        send(&mut all, 0, 4000, SYN, 0, 0);
        let ask = |all: &mut Connections, at_ms: u64, busy_ms: u64| {
            all.learn(at_ms * MS, [vec![socket(busy_ms * 1_000)], Vec::new()], BTreeMap::new);
        };
        send(&mut all, 10 * MS, 4000, ACK, 1, 1000);
        ask(&mut all, 90, 85);
        send(&mut all, 150 * MS, 4000, ACK, 1001, 1000);
        // The recorder is late: nobody asks in the second interval.
        send(&mut all, 250 * MS, 4000, ACK, 2001, 1000);
        ask(&mut all, 280, 270);
        send(&mut all, 350 * MS, 4000, ACK, 3001, 1000);
        ask(&mut all, 390, 290);
        let mut tables = Writer::default();
        all.conclude(400 * MS, &names(), &mut tables);
        assert_eq!(tables.received.time_ns.values(), [100, 200, 300, 400].map(|ms| ms * MS as i64));
        assert_eq!(*tables.samples.time_ns.values(), [90, 280, 390].map(|ms| ms * MS as i64));
        let limits = tables.samples.limit.index().iter();
        let limits = limits.map(|index| tables.samples.limit.names()[*index as usize].as_str());
        assert_eq!(limits.collect::<Vec<_>>(), ["cwnd", "cwnd", "app"]);
        assert_eq!(tables.flows.cc.names(), ["bbr"]);
        let written = tables.samples.bytes_written.values();
        let acked = tables.samples.bytes_acked.values();
        assert!(written.iter().zip(acked.iter()).all(|(written, acked)| written - acked == 9));
    }
}
