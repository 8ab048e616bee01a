//! What a run leaves: tables of columns (docs/reference/recording.md describes each).

use sha2::{Digest, Sha256};

/// All tables of one run, in a fixed order: flows, samples, received, rtts, probes, queues.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The tables.
    pub tables: Vec<Table>,
}

impl Recording {
    /// SHA-256 of all tables in hexadecimal: two runs are the same when their hashes are.
    ///
    /// Every part (table name, column name, each distinct text, a column's values in little-endian order)
    /// goes in behind its length, so that no two recordings hash alike by shifting bytes between them.
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for table in &self.tables {
            for column in &table.columns {
                part(&mut hash, table.name.as_bytes());
                part(&mut hash, column.name.as_bytes());
                column.data.feed(&mut hash);
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// Values of `SIZE` bytes each, a block at a time: a column may be larger than memory has room for twice.
fn values<T: Copy, const SIZE: usize>(
    hash: &mut Sha256,
    values: &[T],
    bytes: impl Fn(T) -> [u8; SIZE],
) {
    hash.update(((values.len() * SIZE) as u64).to_le_bytes());
    let mut block = Vec::with_capacity(512 * SIZE);
    for chunk in values.chunks(512) {
        block.clear();
        block.extend(chunk.iter().flat_map(|value| bytes(*value)));
        hash.update(&block);
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, all of one length.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name; the unit is the suffix.
    pub name: &'static str,
    /// Its values.
    pub data: Data,
}

/// A column's values.
#[derive(Clone, Debug)]
pub enum Data {
    /// Integers; [`Data::NULL`] stands for "no value".
    Int(Vec<i64>),
    /// Text from a small set: an index into `names` per row.
    Text {
        /// The distinct values.
        names: Vec<String>,
        /// A row's value is `names[index]`.
        index: Vec<i32>,
    },
    /// Yes or no.
    Bool(Vec<bool>),
}

impl Data {
    /// No value.
    pub const NULL: i64 = i64::MIN;

    fn feed(&self, hash: &mut Sha256) {
        match self {
            Self::Int(column) => values(hash, column, i64::to_le_bytes),
            Self::Text { names, index } => {
                for name in names {
                    part(hash, name.as_bytes());
                }
                values(hash, index, i32::to_le_bytes);
            }
            Self::Bool(column) => values(hash, column, |value| [u8::from(value)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
