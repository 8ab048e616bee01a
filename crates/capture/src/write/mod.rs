//! Packets as bytes: headers, the blocks around them, and the file that they are gathered in.

mod blocks;
mod file;
mod frame;

pub use blocks::{EPOCH_S, Section};
pub use file::{File, Record, SNAPLEN_MAX};
pub use frame::{End, Frame, Numbers};
