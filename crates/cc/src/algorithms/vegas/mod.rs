//! Vegas: Linux's, FreeBSD's.

pub mod freebsd;
pub mod linux;
pub(crate) mod rounds;
