//! Description of a table and a column, and the macro that makes types of it.

use crate::packed::BLOCK;
use crate::stores::Kind;

/// A table as it is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Its name, which is its file's too.
    pub name: &'static str,
    /// Meaning of a row.
    pub rows: &'static str,
    /// Note on the whole table.
    pub note: &'static str,
    /// Its columns, in order.
    pub columns: &'static [ColumnDef],
}

/// A column as it is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDef {
    /// Its table.
    pub table: &'static str,
    /// Its name; the unit is the suffix.
    pub name: &'static str,
    /// Kind of value in the column.
    pub kind: Kind,
    /// True when a row may have no value.
    pub nullable: bool,
    /// The unit of its values; `1` for counts, empty for what has none.
    pub unit: &'static str,
    /// Meaning of a value.
    pub meaning: &'static str,
}

impl TableDef {
    /// The column called `name`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&'static ColumnDef> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Rows that wait for their columns, in [`Samples::stage`](crate::Samples::stage): 20 KiB of `samples`.
pub(crate) const STAGED_ROWS: usize = BLOCK;

/// Makes of each table: its definition, a type with a growing column per field, a type for a row of it.
macro_rules! tables {
    ($(
        $name:ident: $table:ident of $row:ident, $rows:literal, $note:literal {
            $($column:ident: $store:ident, $unit:literal, $meaning:literal;)+
        }
    )+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`, ", $rows, ", while it grows.")]
            #[derive(Clone, Debug, Default)]
            pub struct $table {
                $(#[doc = $meaning] pub $column: $store,)+
                rows: usize,
                staged: Vec<$row>,
            }

            #[doc = concat!("A row of [`", stringify!($table), "`].")]
            #[derive(Clone, Copy, Debug)]
            pub struct $row {
                $(#[doc = $meaning] pub $column: <$store as Store>::Value,)+
            }

            impl $table {
                /// Adds a row and gives its number.
                #[inline]
                pub fn push(&mut self, row: $row) -> usize {
                    debug_assert!(self.staged.is_empty(), "rows keep their order");
                    $(self.$column.push(row.$column);)+
                    self.rows += 1;
                    self.rows - 1
                }

                /// Adds a row that the columns have only after [`Writer::settle`] or once the table is finished: for a
                /// row per ACK. Columns that grow by a value each evict one another from the nearest cache, for they
                /// lie alike in their pages.
                #[inline]
                pub fn stage(&mut self, row: $row) {
                    if self.staged.len() == self.staged.capacity() {
                        self.settle();
                        self.staged.reserve_exact(STAGED_ROWS);
                    }
                    self.staged.push(row);
                }

                #[cold]
                fn settle(&mut self) {
                    if self.staged.is_empty() {
                        return;
                    }
                    $(self.$column.extend(self.staged.iter().map(|row| row.$column));)+
                    self.rows += self.staged.len();
                    self.staged.clear();
                }

                fn keep_plain(&mut self) {
                    $(self.$column.keep_plain();)+
                }

                fn finish(mut self) -> Table {
                    self.settle();
                    Table {
                        name: stringify!($name),
                        columns: vec![
                            $(Column { name: stringify!($column), data: self.$column.finish() },)+
                        ],
                    }
                }
            }
        )+

        /// All tables, in order.
        pub const TABLES: &[TableDef] = &[$(TableDef {
            name: stringify!($name),
            rows: $rows,
            note: $note,
            columns: &[$(column::$name::$column,)+],
        },)+];

        /// Every column by its table and name: a column that does not exist cannot be asked for.
        #[allow(non_upper_case_globals, reason = "columns are spelt as in the files")]
        pub mod column {
            $(
                #[doc = concat!("Columns of `", stringify!($name), "`.")]
                pub mod $name {
                    use crate::{ColumnDef, Store};
                    $(
                        #[doc = $meaning]
                        pub const $column: ColumnDef = ColumnDef {
                            table: stringify!($name),
                            name: stringify!($column),
                            kind: <crate::$store as Store>::KIND,
                            nullable: <crate::$store as Store>::NULLABLE,
                            unit: $unit,
                            meaning: $meaning,
                        };
                    )+
                }
            )+
        }

        /// The tables of a run while it lasts. Rows are typed; a row costs what it holds and no allocation
        /// beyond the columns' growth.
        #[derive(Clone, Debug, Default)]
        pub struct Writer {
            $(#[doc = $rows] pub $name: $table,)+
        }

        impl Writer {
            /// Moves all staged rows into their columns, so that these can be read meanwhile.
            pub fn settle(&mut self) {
                $(self.$name.settle();)+
            }

            /// Keeps the rows from here on as they are, for who reads the columns while they grow. Otherwise those of
            /// `samples`, `rtts` and `cc_state` are packed, and reading one unpacks it whole.
            pub fn keep_plain(&mut self) {
                $(self.$name.keep_plain();)+
            }

            /// The finished tables.
            #[must_use]
            pub fn finish(self) -> Recording {
                Recording { tables: vec![$(self.$name.finish(),)+] }
            }
        }
    };
}

pub(crate) use tables;
