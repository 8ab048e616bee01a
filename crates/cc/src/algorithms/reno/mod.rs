//! Reno: Linux's, FreeBSD's NewReno.

pub mod freebsd;
pub mod linux;

pub use linux::{grow, half};
