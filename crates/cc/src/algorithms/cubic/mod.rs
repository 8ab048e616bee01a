//! CUBIC: Linux's, FreeBSD's.

pub mod freebsd;
pub mod linux;
mod root;
