//! The tables of several hosts as one recording. A host's data are validated against the definition of the tables:
//! invalid data give an error, and no recording.

use super::messages::Played;
use crate::fault::{Fault, fault};
use crate::side::{Captured, Described};
use dragstrip_recording::{Column, Data, Kind, Recording, TABLES, Table};
use serde::Deserialize;

/// Names in a column of text, and characters of one.
const NAMES_MAX: usize = 10_000;
const NAME_MAX: usize = 300;

/// The line of JSON in a host's answer to a run (record.rs).
#[derive(Deserialize)]
pub struct Head {
    tables: Vec<TableHead>,
    pub run: Played,
    captures: Vec<CaptureHead>,
}

#[derive(Deserialize)]
struct CaptureHead {
    #[serde(flatten)]
    described: Described,
    offset: usize,
    bytes: usize,
}

#[derive(Deserialize)]
struct TableHead {
    name: String,
    columns: Vec<ColumnHead>,
}

#[derive(Deserialize)]
struct ColumnHead {
    name: String,
    kind: String,
    names: Vec<String>,
    offset: usize,
    bytes: usize,
}

/// A host's tables.
pub fn recording(head: &Head, raw: &[u8], flows: usize) -> Result<Recording, Fault> {
    if head.tables.len() != TABLES.len() {
        return fault("its tables are not those of this version");
    }
    let mut tables = Vec::new();
    for (table, definition) in head.tables.iter().zip(TABLES) {
        if table.name != definition.name || table.columns.len() != definition.columns.len() {
            return fault(format!("its table {:?} is not of this version", definition.name));
        }
        let mut columns: Vec<Column> = Vec::new();
        for (column_head, column_def) in table.columns.iter().zip(definition.columns) {
            let place = || format!("table {}: column {}", column_def.table, column_def.name);
            if column_head.name != column_def.name || column_head.kind != column_def.kind.name() {
                return fault(format!("{}: is not of this version", place()));
            }
            let data =
                column(column_head, column_def.kind, raw).map_err(|fault| fault.at(&place()))?;
            if columns.first().is_some_and(|first| first.data.len() != data.len()) {
                return fault(format!("{}: has {} rows", place(), data.len()));
            }
            if let (Data::Int(numbers), "flow") = (&data, column_def.name)
                && numbers.iter().any(|number| !(0..flows as i64).contains(number))
            {
                return fault(format!("{}: speaks of a flow that there is not", place()));
            }
            columns.push(Column { name: column_def.name, data });
        }
        tables.push(Table { name: definition.name, columns });
    }
    Ok(Recording { tables })
}

/// A host's captures.
pub fn captures(head: &Head, raw: &[u8]) -> Result<Vec<Captured>, Fault> {
    let captured = |CaptureHead { described, offset, bytes }: &CaptureHead| {
        let part = part(raw, *offset, *bytes);
        let bytes = part.map_err(|fault| fault.at(&format!("capture {:?}", described.point)))?;
        Ok(Captured { bytes: bytes.to_vec(), described: described.clone() })
    };
    head.captures.iter().map(captured).collect()
}

fn part(raw: &[u8], offset: usize, bytes: usize) -> Result<&[u8], Fault> {
    let end = offset.checked_add(bytes);
    match end.and_then(|end| raw.get(offset..end)) {
        Some(part) => Ok(part),
        None => fault("lies outside of what was sent"),
    }
}

fn column(head: &ColumnHead, kind: Kind, raw: &[u8]) -> Result<Data, Fault> {
    let bytes = part(raw, head.offset, head.bytes)?;
    let width = match kind {
        Kind::Int | Kind::Float => 8,
        Kind::Text => 4,
        Kind::Bool => 1,
    };
    if !bytes.len().is_multiple_of(width) {
        return fault("is not of whole rows");
    }
    Ok(match kind {
        Kind::Int => Data::Int(eights(bytes).map(i64::from_le_bytes).collect()),
        Kind::Float => Data::Float(eights(bytes).map(f64::from_le_bytes).collect()),
        Kind::Bool => Data::Bool(bytes.iter().map(|byte| *byte != 0).collect()),
        Kind::Text => {
            let names = head.names.clone();
            if names.len() > NAMES_MAX || names.iter().any(|name| name.len() > NAME_MAX) {
                return fault("has too many names, or too long ones");
            }
            let fours = bytes.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]);
            let index: Vec<i32> = fours.map(i32::from_le_bytes).collect();
            if index.iter().any(|index| usize::try_from(*index).is_ok_and(|i| i >= names.len())) {
                return fault("has an index without a name");
            }
            Data::Text { names, index }
        }
    })
}

fn eights(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> + '_ {
    bytes.chunks_exact(8).map(|b| [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

/// Appends the rows of one recording to another.
pub fn append(to: &mut Recording, from: Recording) {
    if to.tables.is_empty() {
        *to = from;
        return;
    }
    for (to, from) in to.tables.iter_mut().zip(from.tables) {
        for (to, from) in to.columns.iter_mut().zip(from.columns) {
            match (&mut to.data, from.data) {
                (Data::Int(to), Data::Int(from)) => to.to_mut().extend(from.into_vec()),
                (Data::Float(to), Data::Float(from)) => to.extend(from),
                (Data::Bool(to), Data::Bool(from)) => to.extend(from),
                (Data::Text { names, index }, Data::Text { names: others, index: more }) => {
                    let places: Vec<i32> = others.into_iter().map(|n| place_of(names, n)).collect();
                    let merged_index = |index: i32| {
                        usize::try_from(index).ok().and_then(|i| places.get(i)).copied()
                    };
                    index.extend(more.into_iter().map(|index| merged_index(index).unwrap_or(-1)));
                }
                // Both are as TABLES has them.
                (Data::Int(_) | Data::Float(_) | Data::Bool(_) | Data::Text { .. }, _) => {}
            }
        }
    }
}

fn place_of(names: &mut Vec<String>, name: String) -> i32 {
    let position = names.iter().position(|entry| *entry == name);
    position.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    }) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;
    use dragstrip_recording::{ProbeRow, RttRow, Writer};
    use serde_json::{Value, json};

    const PLAYED: &str = r#"{"reports": [], "idle_share": 1.0, "steal_share": 0.0, "dropped": 0,
        "squeezed": 0, "samples": 1, "late": 0, "worst_ns": 0}"#;

    fn answer_of(flow: u32, label: &str) -> (Value, Vec<u8>) {
        let mut writer = Writer::default();
        writer.rtts.push(RttRow { time_ns: 1, flow, rtt_ns: 7 });
        let probe = writer.probes.probe.word(label);
        let target = writer.probes.target.word("d");
        writer.probes.push(ProbeRow { time_ns: 5, probe, target, rtt_ns: None, lost: true });
        let answer = record::answer(&writer.finish(), serde_json::from_str(PLAYED).unwrap(), &[]);
        let end = answer.iter().position(|byte| *byte == b'\n').unwrap();
        (serde_json::from_slice(&answer[..end]).unwrap(), answer[end + 1..].to_vec())
    }

    fn read(head: &Value, raw: &[u8]) -> Result<Recording, Fault> {
        recording(&serde_json::from_value(head.clone()).unwrap(), raw, 2)
    }

    #[test]
    fn two_hosts_make_one_recording() {
        let mut whole = Recording::default();
        for (flow, label) in [(0, "a"), (1, "b"), (0, "a")] {
            let (head, raw) = answer_of(flow, label);
            append(&mut whole, read(&head, &raw).unwrap());
        }
        let column = |table: &str, name: &str| {
            let table = whole.table(table).unwrap();
            table.columns.iter().find(|column| column.name == name).unwrap().data.clone()
        };
        assert_eq!(column("rtts", "flow"), Data::Int(vec![0, 1, 0].into()));
        let names = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(column("probes", "probe"), Data::Text { names, index: vec![0, 1, 0] });
    }

    #[test]
    fn invalid_data_of_a_host_give_no_recording() {
        let (head, raw) = answer_of(0, "a");
        let changed = |path: &str, value: Value| {
            let mut head = head.clone();
            *head.pointer_mut(path).unwrap() = value;
            read(&head, &raw).unwrap_err().to_string()
        };
        assert!(changed("/tables/0/name", json!("../x")).contains("not of this version"));
        assert!(changed("/tables/3/columns/0/offset", json!(usize::MAX)).contains("outside"));
        assert!(changed("/tables/3/columns/0/bytes", json!(0)).contains("rows"));
        assert!(changed("/tables/3/columns/0/bytes", json!(3)).contains("whole rows"));
        assert!(changed("/tables/3/columns/0/kind", json!("text")).contains("not of this version"));
        assert!(changed("/tables/4/columns/1/names", json!([])).contains("without a name"));
        let (other_answer, raw) = answer_of(9, "a");
        assert!(
            read(&other_answer, &raw).unwrap_err().to_string().contains("a flow that there is not")
        );
    }
}
