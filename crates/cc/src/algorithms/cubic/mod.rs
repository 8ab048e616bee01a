//! CUBIC: Linux's, FreeBSD's, RFC 9438's.

pub mod freebsd;
pub mod linux;
pub mod rfc9438;
mod root;
