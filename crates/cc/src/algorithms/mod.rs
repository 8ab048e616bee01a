//! One file or folder per algorithm. `cargo xtask new-algorithm NAME` adds one.

pub mod bbr;
pub mod bbr2;
pub mod bbr3;
pub mod bic;
pub mod cdg;
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod exp;
pub mod fixed;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod ledbat;
pub mod ledbatpp;
pub mod lp;
pub mod nv;
pub mod prague;
pub mod reno;
pub mod scalable;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;
