//! Finished tables.

use crate::define::ColumnDef;
use crate::stores::Data;

/// All tables of one run, in the order of [`TABLES`](crate::TABLES).
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The tables.
    pub tables: Vec<Table>,
}

/// A finished table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, all of one length.
    pub columns: Vec<Column>,
}

/// A finished column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name; the unit is the suffix.
    pub name: &'static str,
    /// Its values.
    pub data: Data,
}

impl Table {
    /// True when it is one of [`LATER`](crate::LATER) and has no rows.
    #[must_use]
    pub fn is_left_out(&self) -> bool {
        let empty = self.columns.iter().all(|column| column.data.is_empty());
        empty && crate::LATER.contains(&self.name)
    }
}

impl Recording {
    /// The table called `name`.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The values of a column; none if this recording lacks it.
    #[must_use]
    pub fn column(&self, def: &ColumnDef) -> Option<&Data> {
        let columns = &self.table(def.table)?.columns;
        columns.iter().find(|column| column.name == def.name).map(|column| &column.data)
    }
}
