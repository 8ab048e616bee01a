//! The recording as an answer.
//!
//! An answer is one line of JSON, then raw columns: `{"tables": [{"name", "columns": [{"name", "kind",
//! "names", "offset", "bytes"}]}], "sha256": text, "run": {..}, "captures": [{"point", "packets", "missing", "offset", "bytes"}]}`. Kinds and bytes are those of the recording
//! (`dragstrip_recording::Data`).

use crate::side::Captured;
use dragstrip_recording::{Data, Recording, Table};
use serde_json::{Value, json};

/// The bytes behind an answer's line.
#[derive(Debug, Default)]
pub struct Behind(Vec<u8>);

impl Behind {
    /// Appends the bytes of a part; returns its description, with their place.
    pub fn append(&mut self, mut description: Value, bytes: &[u8]) -> Value {
        description["offset"] = self.0.len().into();
        description["bytes"] = bytes.len().into();
        self.0.extend_from_slice(bytes);
        description
    }

    /// Appends captures.
    pub fn captures(&mut self, files: &[Captured]) -> Vec<Value> {
        files.iter().map(|file| self.append(json!(file.described), &file.bytes)).collect()
    }

    /// The whole answer.
    pub fn under(self, head: &Value) -> Vec<u8> {
        let mut answer = head.to_string().into_bytes();
        answer.push(b'\n');
        answer.extend(self.0);
        answer
    }
}

/// The answer's bytes; `about` describes the run, `files` are its captures.
pub fn answer(recording: &Recording, about: Value, files: &[Captured]) -> Vec<u8> {
    let mut raw = Behind::default();
    let mut tables = Vec::new();
    for table in &recording.tables {
        let mut columns = Vec::new();
        for column in &table.columns {
            let bytes = column.data.to_bytes();
            let names: &[String] = match &column.data {
                Data::Text { names, .. } => names,
                Data::Int(_) | Data::Bool(_) | Data::Float(_) => &[],
            };
            let kind = column.data.kind().name();
            let description = json!({"name": column.name, "kind": kind, "names": names});
            columns.push(raw.append(description, &bytes));
        }
        tables.push(json!({"name": table.name, "columns": columns}));
    }
    let captures = raw.captures(files);
    let sha256 = recording.sha256();
    raw.under(&json!({"tables": tables, "sha256": sha256, "run": about, "captures": captures}))
}

/// Rows by time, and those of one time by flow: sides write in turn, and who is first must not show.
pub fn in_order(recording: &mut Recording) {
    for table in &mut recording.tables {
        let (Some(time), Some(flow)) = (integers(table, "time_ns"), integers(table, "flow")) else {
            continue;
        };
        sort_rows(table, |row| (time[row], flow[row]));
    }
}

/// Rows of `queues` by time, those of one time as they are.
pub fn queues_in_order(recording: &mut Recording) {
    for table in recording.tables.iter_mut().filter(|table| table.name == "queues") {
        let Some(time) = integers(table, "time_ns") else { continue };
        sort_rows(table, |row| time[row]);
    }
}

fn sort_rows<K: Ord>(table: &mut Table, key: impl Fn(usize) -> K) {
    let rows = table.columns.first().map_or(0, |column| column.data.len());
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|&row| key(row));
    for column in &mut table.columns {
        match &mut column.data {
            Data::Int(values) => permute(values.to_mut(), &order),
            Data::Text { index, .. } => permute(index, &order),
            Data::Bool(values) => permute(values, &order),
            Data::Float(values) => permute(values, &order),
        }
    }
}

fn integers(table: &Table, name: &str) -> Option<Vec<i64>> {
    match &table.columns.iter().find(|column| column.name == name)?.data {
        Data::Int(values) => Some(values.to_vec()),
        Data::Text { .. } | Data::Bool(_) | Data::Float(_) => None,
    }
}

fn permute<T: Copy>(values: &mut Vec<T>, order: &[usize]) {
    *values = order.iter().map(|&row| values[row]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Described;
    use dragstrip_recording::{ProbeRow, RttRow, Writer};

    #[test]
    fn rows_stand_by_time_and_flow() {
        let mut writer = Writer::default();
        for (time_ns, flow, rtt_ns) in [(2, 0, 1), (1, 1, 2), (1, 0, 3), (2, 0, 4)] {
            writer.rtts.push(RttRow { time_ns, flow, rtt_ns });
        }
        let mut recording = writer.finish();
        in_order(&mut recording);
        let rtts = recording.table("rtts").unwrap();
        assert_eq!(integers(rtts, "time_ns").unwrap(), [1, 1, 2, 2]);
        assert_eq!(integers(rtts, "rtt_ns").unwrap(), [3, 2, 1, 4]);
    }

    #[test]
    fn an_answer_says_where_its_columns_are() {
        let mut writer = Writer::default();
        writer.rtts.push(RttRow { time_ns: 1, flow: 0, rtt_ns: 7 });
        let probe = writer.probes.probe.word("a ping");
        let target = writer.probes.target.word("a host");
        writer.probes.push(ProbeRow { time_ns: 5, probe, target, rtt_ns: None, lost: true });
        let recording = writer.finish();
        let described = Described { point: "s".to_owned(), packets: 1, missing: 0 };
        let file = Captured { bytes: b"packets".to_vec(), described };
        let answer = answer(&recording, json!({"idle": 1}), &[file]);
        let end = answer.iter().position(|byte| *byte == b'\n').unwrap();
        let head: Value = serde_json::from_slice(&answer[..end]).unwrap();
        let raw = &answer[end + 1..];
        let column = |table: usize, column: usize| {
            let column_head = &head["tables"][table]["columns"][column];
            let start = column_head["offset"].as_u64().unwrap() as usize;
            raw[start..start + column_head["bytes"].as_u64().unwrap() as usize].to_vec()
        };
        assert_eq!(column(3, 2), 7_i64.to_le_bytes());
        assert_eq!(column(4, 3), Data::NULL.to_le_bytes());
        assert_eq!(column(4, 4), [1]);
        assert_eq!(head["tables"][4]["columns"][1]["names"][0], "a ping");
        assert_eq!(head["run"]["idle"], 1);
        let start = head["captures"][0]["offset"].as_u64().unwrap() as usize;
        assert_eq!(&raw[start..], b"packets");
        assert_eq!(head["sha256"], recording.sha256());
    }
}
