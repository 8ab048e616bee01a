//! Slow-start parts that window rules compose: each watches ACKs and may end slow start.

pub mod hystart;
pub mod hystart_pp;
