//! The hash of a recording.

use crate::recording::Recording;
use crate::stores::Data;
use sha2::{Digest, Sha256};

impl Recording {
    /// SHA-256 in hexadecimal over all columns.
    ///
    /// Every part (table name, column name, each distinct text, a column's values in little-endian order)
    /// goes in behind its length, so that no two recordings hash alike by shifting bytes between them. A table of
    /// [`LATER`](crate::LATER) without rows is left out.
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for table in self.tables.iter().filter(|table| !table.is_left_out()) {
            for column in &table.columns {
                part(&mut hash, table.name.as_bytes());
                part(&mut hash, column.name.as_bytes());
                feed(&mut hash, &column.data);
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
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
    use crate::recording::{Column, Table};

    fn recording(data: Data) -> Recording {
        let columns = vec![Column { name: "column", data }];
        Recording { tables: vec![Table { name: "table", columns }] }
    }

    /// The output of `printf | sha256sum` for the parts and their lengths.
    #[test]
    fn the_hash_is_that_of_lengths_and_parts() {
        assert_eq!(
            recording(Data::Int(vec![1, -1].into())).sha256(),
            "8045495fea87f62e43ae27e8dd32ce90865d8832dc2c4a81d5c4e2ffbbcd0bac"
        );
    }

    #[test]
    fn a_later_table_counts_where_it_has_rows() {
        let with = |name, data: Vec<i64>| {
            let mut recording = recording(Data::Int(vec![1, -1].into()));
            let columns = vec![Column { name: "time_ns", data: Data::Int(data.into()) }];
            recording.tables.push(Table { name, columns });
            recording.sha256()
        };
        let without = recording(Data::Int(vec![1, -1].into())).sha256();
        assert_eq!(with("video", vec![]), without);
        assert_ne!(with("video", vec![0]), without);
        assert_ne!(with("tcpstat", vec![]), without);
    }

    #[test]
    fn every_value_counts() {
        let base = recording(Data::Int(vec![0; 1_000].into())).sha256();
        for row in [0, 511, 512, 999] {
            let mut values = vec![0; 1_000];
            values[row] = 1;
            assert_ne!(recording(Data::Int(values.into())).sha256(), base, "row {row}");
        }
        assert_ne!(recording(Data::Int(vec![0; 1_001].into())).sha256(), base);
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
    fn bytes_are_little_endian() {
        assert_eq!(Data::Int(vec![1, Data::NULL].into()).to_bytes()[8..], Data::NULL.to_le_bytes());
        let text = Data::Text { names: vec!["a".into()], index: vec![-1] };
        assert_eq!(text.to_bytes(), [0xff; 4]);
        assert_eq!(Data::Bool(vec![false, true]).to_bytes(), [0, 1]);
        assert_eq!(Data::Float(vec![0.5]).to_bytes(), 0.5_f64.to_le_bytes());
    }
}
