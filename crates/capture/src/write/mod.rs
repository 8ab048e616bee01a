//! Packets as bytes: headers, the blocks around them, and the file that they are gathered in.

mod anonymous;
mod blocks;
mod file;
mod frame;

pub use anonymous::Anonymous;
pub use blocks::{EPOCH_S, Section};
pub use file::{File, Record, SNAPLEN_MAX};
pub use frame::{End, Frame, Numbers};
