//! The hashes of a recording.

use crate::FORMAT;
use crate::recording::{Column, Recording, Table};
use crate::stores::Data;
use crate::tables::TABLES;
use sha2::{Digest, Sha256};

impl Recording {
    /// SHA-256 in hexadecimal over the columns that came with format 1: the same recording has the same
    /// hash whatever format it is written in.
    #[must_use]
    pub fn sha256(&self) -> String {
        self.sha256_of(1)
    }

    /// All hashes by the names that `provenance.json` has for them.
    #[must_use]
    pub fn hashes(&self) -> Vec<(String, String)> {
        let name = |format| match format {
            1 => "recording_sha256".to_owned(),
            later => format!("format_{later}_sha256"),
        };
        (1..=FORMAT).map(|format| (name(format), self.sha256_of(format))).collect()
    }

    /// SHA-256 in hexadecimal over the columns that came with `format`. A column that no format defines
    /// belongs to format 1.
    ///
    /// Every part (table name, column name, each distinct text, a column's values in little-endian order)
    /// goes in behind its length, so that no two recordings hash alike by shifting bytes between them.
    #[must_use]
    pub fn sha256_of(&self, format: u32) -> String {
        let mut hash = Sha256::new();
        for table in &self.tables {
            for column in table.columns.iter().filter(|column| since(table, column) == format) {
                part(&mut hash, table.name.as_bytes());
                part(&mut hash, column.name.as_bytes());
                feed(&mut hash, &column.data);
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn since(table: &Table, column: &Column) -> u32 {
    let def = TABLES.iter().find(|def| def.name == table.name);
    def.and_then(|def| def.column(column.name)).map_or(1, |def| def.since)
}

fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn feed(hash: &mut Sha256, data: &Data) {
    if let Data::Text { names, .. } = data {
        for name in names {
            part(hash, name.as_bytes());
        }
    }
    hash.update((data.byte_count() as u64).to_le_bytes());
    data.blocks(&mut |block| hash.update(block));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{CcStateRow, RttRow, Writer};

    fn recording(data: Data) -> Recording {
        let columns = vec![Column { name: "column", data }];
        Recording { tables: vec![Table { name: "table", columns }] }
    }

    /// What `printf | sha256sum` says of the parts and their lengths.
    #[test]
    fn the_hash_is_that_of_lengths_and_parts() {
        assert_eq!(
            recording(Data::Int(vec![1, -1])).sha256(),
            "8045495fea87f62e43ae27e8dd32ce90865d8832dc2c4a81d5c4e2ffbbcd0bac"
        );
    }

    #[test]
    fn every_value_counts() {
        let base = recording(Data::Int(vec![0; 1_000])).sha256();
        for row in [0, 511, 512, 999] {
            let mut values = vec![0; 1_000];
            values[row] = 1;
            assert_ne!(recording(Data::Int(values)).sha256(), base, "row {row}");
        }
        assert_ne!(recording(Data::Int(vec![0; 1_001])).sha256(), base);
        let text = |names: &[&str], index: &[i32]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            recording(Data::Text { names, index: index.to_vec() }).sha256()
        };
        assert_ne!(text(&["ab", "c"], &[0]), text(&["a", "bc"], &[0]));
        assert_ne!(text(&["ab", "c"], &[0]), text(&["ab", "c"], &[1]));
        let flags = |flags: &[bool]| recording(Data::Bool(flags.to_vec())).sha256();
        assert_ne!(flags(&[true]), flags(&[false]));
    }

    #[test]
    fn each_format_has_a_hash_of_its_own() {
        let recorded = |rtt_ns, value| {
            let mut writer = Writer::default();
            writer.rtts.push(RttRow { time_ns: 1, flow: 0, rtt_ns });
            let name = writer.cc_state.name.word("w_max");
            writer.cc_state.push(CcStateRow { time_ns: 1, flow: 0, name, value });
            let recording = writer.finish();
            (recording.sha256(), recording.sha256_of(2))
        };
        let (first, second) = recorded(40, 1.0);
        assert_eq!(recorded(40, 2.0).0, first);
        assert_ne!(recorded(40, 2.0).1, second);
        assert_ne!(recorded(41, 1.0).0, first);
        assert_eq!(recorded(41, 1.0).1, second);
    }

    #[test]
    fn bytes_are_little_endian() {
        assert_eq!(Data::Int(vec![1, Data::NULL]).to_bytes()[8..], Data::NULL.to_le_bytes());
        let text = Data::Text { names: vec!["a".into()], index: vec![-1] };
        assert_eq!(text.to_bytes(), [0xff; 4]);
        assert_eq!(Data::Bool(vec![false, true]).to_bytes(), [0, 1]);
        assert_eq!(Data::Float(vec![0.5]).to_bytes(), 0.5_f64.to_le_bytes());
    }
}
