//! The design's tables while a run lasts, and their form as an answer.
//!
//! An answer is one line of JSON, then raw columns: `{"tables": [{"name", "columns": [{"name", "kind",
//! "names", "offset", "bytes"}]}], ...}`. Kinds are those of the simulator's bindings: `int` (64 bits, little
//! endian, the least one stands for "no value"), `text` (32-bit indexes into `names`), `bool` (bytes).

use serde_json::{Value, json};

/// No value.
pub const NULL: i64 = i64::MIN;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Text,
    Bool,
}

/// Name and kind of a column.
pub type Shape = (&'static str, Kind);

/// A table that grows by rows.
#[derive(Debug)]
pub struct Table {
    name: &'static str,
    shape: &'static [Shape],
    columns: Vec<Vec<i64>>,
    names: Vec<Vec<String>>,
}

impl Table {
    pub fn new(name: &'static str, shape: &'static [Shape]) -> Self {
        let columns = vec![Vec::new(); shape.len()];
        Self { name, shape, columns, names: vec![Vec::new(); shape.len()] }
    }

    /// Adds a row and gives its number.
    pub fn push(&mut self, row: &[i64]) -> usize {
        assert_eq!(row.len(), self.shape.len(), "a row of {}", self.name);
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(*value);
        }
        self.columns[0].len() - 1
    }

    fn column(&self, name: &str) -> usize {
        self.shape.iter().position(|(own, _)| *own == name).unwrap_or(0)
    }

    /// The number of a text in a column.
    pub fn text(&mut self, column: &str, text: &str) -> i64 {
        let column = self.column(column);
        let names = &mut self.names[column];
        let known = names.iter().position(|name| name == text);
        known.unwrap_or_else(|| {
            names.push(text.to_owned());
            names.len() - 1
        }) as i64
    }

    /// Changes a value of an earlier row.
    pub fn set(&mut self, row: usize, column: &str, value: i64) {
        let column = self.column(column);
        self.columns[column][row] = value;
    }
}

use Kind::{Bool, Int, Text};

/// All tables of a run.
#[derive(Debug)]
pub struct Tables {
    pub flows: Table,
    pub samples: Table,
    pub received: Table,
    pub rtts: Table,
    pub probes: Table,
    pub queues: Table,
}

impl Tables {
    pub fn new() -> Self {
        Self {
            flows: Table::new("flows", FLOWS),
            samples: Table::new("samples", SAMPLES),
            received: Table::new("received", RECEIVED),
            rtts: Table::new("rtts", RTTS),
            probes: Table::new("probes", PROBES),
            queues: Table::new("queues", QUEUES),
        }
    }

    /// The answer's bytes; `extra` becomes part of the line of JSON.
    pub fn answer(self, extra: Value) -> Vec<u8> {
        let Self { flows, samples, received, rtts, probes, queues } = self;
        let mut raw = Vec::new();
        let mut described = Vec::new();
        for table in [flows, samples, received, rtts, probes, queues] {
            let mut columns = Vec::new();
            for ((shape, values), names) in table.shape.iter().zip(&table.columns).zip(&table.names)
            {
                let start = raw.len();
                encode(shape.1, values, &mut raw);
                columns.push(json!({
                    "name": shape.0,
                    "kind": match shape.1 { Int => "int", Text => "text", Bool => "bool" },
                    "names": names,
                    "offset": start,
                    "bytes": raw.len() - start,
                }));
            }
            described.push(json!({"name": table.name, "columns": columns}));
        }
        let mut answer = json!({"tables": described, "run": extra}).to_string().into_bytes();
        answer.push(b'\n');
        answer.extend(raw);
        answer
    }
}

fn encode(kind: Kind, values: &[i64], into: &mut Vec<u8>) {
    match kind {
        Int => into.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        Text => into.extend(values.iter().flat_map(|value| (*value as i32).to_le_bytes())),
        Bool => into.extend(values.iter().map(|value| u8::from(*value != 0))),
    }
}

const FLOWS: &[Shape] = &[
    ("flow", Int),
    ("label", Text),
    ("protocol", Text),
    ("cc", Text),
    ("sender", Text),
    ("receiver", Text),
    ("start_ns", Int),
    ("stop_ns", Int),
    ("bytes_acked", Int),
    ("bytes_received", Int),
    ("segments_sent", Int),
    ("retransmits", Int),
    ("rto_count", Int),
    ("reductions", Int),
    ("ecn_negotiated", Bool),
    ("datagrams_lost", Int),
];
const SAMPLES: &[Shape] = &[
    ("time_ns", Int),
    ("flow", Int),
    ("cwnd_bytes", Int),
    ("ssthresh_bytes", Int),
    ("bytes_in_flight", Int),
    ("srtt_ns", Int),
    ("rtt_ns", Int),
    ("min_rtt_ns", Int),
    ("pacing_bps", Int),
    ("delivery_bps", Int),
    ("bytes_acked", Int),
    ("bytes_written", Int),
    ("retransmits", Int),
    ("state", Text),
    ("limited_by", Text),
];
const RECEIVED: &[Shape] =
    &[("time_ns", Int), ("flow", Int), ("wire_bytes", Int), ("new_bytes", Int)];
const RTTS: &[Shape] = &[("time_ns", Int), ("flow", Int), ("rtt_ns", Int)];
const PROBES: &[Shape] =
    &[("time_ns", Int), ("probe", Text), ("target", Text), ("rtt_ns", Int), ("lost", Bool)];
const QUEUES: &[Shape] = &[
    ("time_ns", Int),
    ("link", Text),
    ("backlog_bytes", Int),
    ("backlog_packets", Int),
    ("enqueued", Int),
    ("dropped", Int),
    ("marked", Int),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_where_its_columns_are() {
        let mut tables = Tables::new();
        tables.rtts.push(&[1, 0, 7]);
        let label = tables.probes.text("probe", "a ping");
        tables.probes.push(&[5, label, 0, NULL, 1]);
        let answer = tables.answer(json!({"idle": 1}));
        let end = answer.iter().position(|byte| *byte == b'\n').unwrap();
        let head: Value = serde_json::from_slice(&answer[..end]).unwrap();
        let raw = &answer[end + 1..];
        let column = |table: usize, column: usize| {
            let found = &head["tables"][table]["columns"][column];
            let start = found["offset"].as_u64().unwrap() as usize;
            raw[start..start + found["bytes"].as_u64().unwrap() as usize].to_vec()
        };
        assert_eq!(column(3, 2), 7_i64.to_le_bytes());
        assert_eq!(column(4, 3), NULL.to_le_bytes());
        assert_eq!(column(4, 4), [1]);
        assert_eq!(head["tables"][4]["columns"][1]["names"][0], "a ping");
        assert_eq!(head["run"]["idle"], 1);
    }
}
