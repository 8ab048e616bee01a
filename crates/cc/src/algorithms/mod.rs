//! One file or folder per algorithm. `cargo xtask new-algorithm NAME` adds one.

pub mod bbr;
pub mod cdg;
pub mod cubic;
pub mod exp;
pub mod fixed;
pub mod reno;
pub mod vegas;
