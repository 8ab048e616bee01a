//! The recording: the one definition of the tables that every engine writes.
//!
//! Scope: tables and columns with kind, unit and meaning ([`TABLES`]), the typed rows through which engines write them
//! ([`Writer`]), the finished columns ([`Recording`]) and their hash. Out of scope: files, and anything that fills or
//! interprets a table.
//!
//! Schema, Python module and reference page are generated from here (`cargo xtask generate`).

mod define;
mod hash;
mod names;
mod packed;
mod recording;
mod stores;
mod tables;

pub use define::{ColumnDef, TableDef};
pub use names::Word;
pub use packed::Ints;
pub use recording::{Column, Recording, Table};
pub use stores::{
    Data, Flag, Float, Int, Key, Kind, MaybeInt, PackedInt, PackedMaybeInt, Store, Text,
};
pub use tables::*;

/// The format that is written and read. It stays 1 until the first release, whatever changes
/// (`docs/decisions/0013-a-recording-only-grows.md`).
pub const FORMAT: u32 = 1;

/// Period that a row of `tcpstat` counts over. tcpstat's default of 5 s are five of them.
pub const TCPSTAT_NS: u64 = 1_000_000_000;
