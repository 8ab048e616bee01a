//! Time lines: one endpoint, a scripted peer, a virtual clock (as packetdrill does it for a kernel).
//!
//! A stack's sender has a file or folder of its stack's name; the others are about what all share, on a stock Linux 6.1.
//!
//! Expected figures are worked out by hand from shared facts of Linux 6.1 (function names beside them)
//! and the RFCs; the clock ticks 250 times a second unless a test says otherwise.

mod buffers;
mod ecn;
mod freebsd_9;
mod handshake;
mod harness;
mod linux_2_2;
mod linux_2_6;
mod linux_6;
mod marks;
mod receiver;
