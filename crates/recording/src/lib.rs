//! The recording: the one definition of the tables that every engine writes.
//!
//! What lives here: tables and columns with kind, unit, meaning and the format version they came with
//! ([`TABLES`]), the typed rows through which engines write them ([`Writer`]), the finished columns
//! ([`Recording`]) and their hashes. What must not: files, and anything that fills or interprets a table.
//!
//! Schema, Python module and reference page are generated from here (`cargo xtask generate`).

mod define;
mod hash;
mod names;
mod recording;
mod stores;
mod tables;

pub use define::{ColumnDef, TableDef};
pub use names::Word;
pub use recording::{Column, Recording, Table};
pub use stores::{Data, Flag, Float, Int, Key, Kind, MaybeInt, Store, Text};
pub use tables::*;

/// The format that is written: the number goes up when a table or a column is added. Nothing is ever
/// renamed or removed, so that a reader of format N reads all formats up to N.
pub const FORMAT: u32 = 4;

/// What a row of `tcpstat` counts over. tcpstat's default of 5 s are five of them.
pub const TCPSTAT_NS: u64 = 1_000_000_000;
