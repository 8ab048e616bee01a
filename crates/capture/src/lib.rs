//! Captures: packets as bytes in files that Wireshark, tcpdump and tcptrace know.
//!
//! Scope: the numbers of the file formats ([`mod@format`]), headers and blocks as bytes ([`mod@write`]),
//! bytes as packets ([`read`]).
//! Out of scope: files (the caller passes a writer), the simulator's treatment of packets (`dragstrip-sim`).

pub mod format;
pub mod read;
pub mod write;
