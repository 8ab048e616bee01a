//! Captures: packets as bytes in files that Wireshark, tcpdump and tcptrace know.
//!
//! What lives here: the numbers of the file formats ([`mod@format`]), headers and blocks as bytes ([`mod@write`]),
//! bytes as packets ([`read`]).
//! What must not: files (whoever calls passes something to write to), what a simulation does to packets (`dragstrip-sim`).

pub mod format;
pub mod read;
pub mod write;
