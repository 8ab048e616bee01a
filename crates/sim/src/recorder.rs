//! Fills the tables of a recording (docs/reference/recording.md).

use crate::recording::{Column, Data, Recording, Table};
use dragstrip_tcp::Snapshot;
use dragstrip_units::Instant;
use std::collections::BTreeMap;

/// Columns of one table while it grows, and a row of it.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident of $row:ident { $($column:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name { $(pub $column: Vec<i64>,)+ }

        #[doc = concat!("A row of [`", stringify!($name), "`].")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $row { $(pub $column: i64,)+ }

        impl $name {
            #[inline]
            pub fn push(&mut self, row: $row) {
                $(self.$column.push(row.$column);)+
            }
        }
    };
}

columns!(
    /// Sender state.
    Samples of Sample {
        time_ns, flow, cwnd_bytes, ssthresh_bytes, bytes_in_flight, srtt_ns, rtt_ns, min_rtt_ns,
        pacing_bps, delivery_bps, bytes_acked, bytes_written, retransmits, state, limited_by,
    }
);
columns!(
    /// Arrivals per interval.
    Received of Arrived { time_ns, flow, wire_bytes, new_bytes }
);
columns!(
    /// Ping answers.
    Probes of Ping { time_ns, probe, target, rtt_ns, lost }
);
columns!(
    /// Queue state.
    Queues of QueueState { time_ns, link, backlog_bytes, backlog_packets, enqueued, dropped, marked }
);

/// RTT samples, kept small: there is one for nearly every ACK.
#[derive(Debug, Default)]
pub(crate) struct Rtts {
    time_ns: Vec<u64>,
    flow: Vec<u32>,
    rtt_ns: Vec<u64>,
}

impl Rtts {
    #[inline]
    pub fn push(&mut self, now: Instant, flow: u32, rtt_ns: u64) {
        self.time_ns.push(now.as_nanos());
        self.flow.push(flow);
        self.rtt_ns.push(rtt_ns);
    }
}

/// A set of names, each stored once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<String>,
    /// The number given last: the next one asked for is mostly the same.
    last: usize,
}

impl Names {
    /// The number of `name`.
    #[inline]
    pub fn number(&mut self, name: &str) -> i64 {
        if self.names.get(self.last).is_none_or(|last| last != name) {
            let known = self.names.iter().position(|known| known == name);
            self.last = known.unwrap_or(self.names.len());
            if known.is_none() {
                self.names.push(name.to_owned());
            }
        }
        self.last as i64
    }
}

/// What is known of a flow at the end of the run.
#[derive(Debug)]
pub(crate) struct FlowRow<'a> {
    pub label: &'a str,
    pub protocol: &'static str,
    pub cc: &'a str,
    pub sender: &'a str,
    pub receiver: &'a str,
    pub start_ns: u64,
    pub stop_ns: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segments_sent: u64,
    pub retransmits: u64,
    pub rto_count: u64,
    pub reductions: u64,
    pub ecn_negotiated: bool,
    pub datagrams_lost: Option<u64>,
}

/// The tables of a run while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub samples: Samples,
    pub states: Names,
    pub limits: Names,
    pub received: Received,
    pub rtts: Rtts,
    pub probes: Probes,
    pub probe_names: Names,
    pub target_names: Names,
    pub queues: Queues,
    pub link_names: Names,
}

fn or_null(value: Option<u64>) -> i64 {
    value.map_or(Data::NULL, |value| value as i64)
}

impl Recorder {
    /// A row of `samples`.
    pub fn sample(&mut self, now: Instant, flow: u32, snapshot: &Snapshot) {
        let state = self.states.number(snapshot.state);
        let limited_by = self.limits.number(snapshot.limited_by.name());
        self.samples.push(Sample {
            time_ns: now.as_nanos() as i64,
            flow: i64::from(flow),
            cwnd_bytes: snapshot.cwnd_bytes as i64,
            ssthresh_bytes: or_null(snapshot.ssthresh_bytes),
            bytes_in_flight: snapshot.bytes_in_flight as i64,
            srtt_ns: or_null(snapshot.srtt_ns),
            rtt_ns: or_null(snapshot.rtt_ns),
            min_rtt_ns: or_null(snapshot.min_rtt_ns),
            pacing_bps: or_null(snapshot.pacing_bps),
            delivery_bps: or_null(snapshot.delivery_bps),
            bytes_acked: snapshot.bytes_acked as i64,
            bytes_written: snapshot.bytes_written as i64,
            retransmits: snapshot.retransmits as i64,
            state,
            limited_by,
        });
    }

    /// The finished tables.
    pub fn finish(self, flows: &[FlowRow<'_>]) -> Recording {
        Recording {
            tables: vec![
                flows_table(flows),
                self.samples.table(self.states.names, self.limits.names),
                self.received.table(),
                self.rtts.table(),
                self.probes.table(self.probe_names.names, self.target_names.names),
                self.queues.table(self.link_names.names),
            ],
        }
    }
}

fn int(name: &'static str, values: Vec<i64>) -> Column {
    Column { name, data: Data::Int(values) }
}

fn text(name: &'static str, index: Vec<i64>, names: Vec<String>) -> Column {
    let index = index.into_iter().map(|number| number as i32).collect();
    Column { name, data: Data::Text { names, index } }
}

impl Samples {
    fn table(self, states: Vec<String>, limits: Vec<String>) -> Table {
        Table {
            name: "samples",
            columns: vec![
                int("time_ns", self.time_ns),
                int("flow", self.flow),
                int("cwnd_bytes", self.cwnd_bytes),
                int("ssthresh_bytes", self.ssthresh_bytes),
                int("bytes_in_flight", self.bytes_in_flight),
                int("srtt_ns", self.srtt_ns),
                int("rtt_ns", self.rtt_ns),
                int("min_rtt_ns", self.min_rtt_ns),
                int("pacing_bps", self.pacing_bps),
                int("delivery_bps", self.delivery_bps),
                int("bytes_acked", self.bytes_acked),
                int("bytes_written", self.bytes_written),
                int("retransmits", self.retransmits),
                text("state", self.state, states),
                text("limited_by", self.limited_by, limits),
            ],
        }
    }
}

impl Received {
    fn table(self) -> Table {
        Table {
            name: "received",
            columns: vec![
                int("time_ns", self.time_ns),
                int("flow", self.flow),
                int("wire_bytes", self.wire_bytes),
                int("new_bytes", self.new_bytes),
            ],
        }
    }
}

impl Rtts {
    fn table(self) -> Table {
        let wide = |values: Vec<u64>| values.into_iter().map(|value| value as i64).collect();
        Table {
            name: "rtts",
            columns: vec![
                int("time_ns", wide(self.time_ns)),
                int("flow", self.flow.into_iter().map(i64::from).collect()),
                int("rtt_ns", wide(self.rtt_ns)),
            ],
        }
    }
}

impl Probes {
    fn table(self, probes: Vec<String>, targets: Vec<String>) -> Table {
        Table {
            name: "probes",
            columns: vec![
                int("time_ns", self.time_ns),
                text("probe", self.probe, probes),
                text("target", self.target, targets),
                int("rtt_ns", self.rtt_ns),
                Column {
                    name: "lost",
                    data: Data::Bool(self.lost.into_iter().map(|lost| lost != 0).collect()),
                },
            ],
        }
    }
}

impl Queues {
    fn table(self, links: Vec<String>) -> Table {
        Table {
            name: "queues",
            columns: vec![
                int("time_ns", self.time_ns),
                text("link", self.link, links),
                int("backlog_bytes", self.backlog_bytes),
                int("backlog_packets", self.backlog_packets),
                int("enqueued", self.enqueued),
                int("dropped", self.dropped),
                int("marked", self.marked),
            ],
        }
    }
}

fn flows_table(rows: &[FlowRow<'_>]) -> Table {
    let ints = |get: fn(&FlowRow<'_>) -> u64| rows.iter().map(|row| get(row) as i64).collect();
    let texts = |name, get: for<'a> fn(&FlowRow<'a>) -> &'a str| {
        let mut known = BTreeMap::new();
        let mut names = Vec::new();
        let number = |row| {
            let next = names.len() as i64;
            *known.entry(get(row)).or_insert_with_key(|name| {
                names.push((*name).to_owned());
                next
            })
        };
        text(name, rows.iter().map(number).collect(), names)
    };
    Table {
        name: "flows",
        columns: vec![
            int("flow", (0..rows.len() as i64).collect()),
            texts("label", |row| row.label),
            texts("protocol", |row| row.protocol),
            texts("cc", |row| row.cc),
            texts("sender", |row| row.sender),
            texts("receiver", |row| row.receiver),
            int("start_ns", ints(|row| row.start_ns)),
            int("stop_ns", ints(|row| row.stop_ns)),
            int("bytes_acked", ints(|row| row.bytes_acked)),
            int("bytes_received", ints(|row| row.bytes_received)),
            int("segments_sent", ints(|row| row.segments_sent)),
            int("retransmits", ints(|row| row.retransmits)),
            int("rto_count", ints(|row| row.rto_count)),
            int("reductions", ints(|row| row.reductions)),
            Column {
                name: "ecn_negotiated",
                data: Data::Bool(rows.iter().map(|row| row.ecn_negotiated).collect()),
            },
            int("datagrams_lost", rows.iter().map(|row| or_null(row.datagrams_lost)).collect()),
        ],
    }
}
