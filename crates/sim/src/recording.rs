//! What a run leaves: tables of columns (docs/recording.md describes each).

/// All tables of one run, in a fixed order: flows, samples, received, rtts, probes, queues.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The tables.
    pub tables: Vec<Table>,
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
}
