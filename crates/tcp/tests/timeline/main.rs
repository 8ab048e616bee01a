//! Time lines: one endpoint, a scripted peer, a virtual clock (as packetdrill does it for a kernel).
//!
//! Expected figures are worked out by hand from shared facts of Linux 6.1 (function names beside them)
//! and the RFCs; the clock ticks 250 times a second unless a test says otherwise.

mod buffers;
mod ecn;
mod freebsd_9;
mod growth;
mod handshake;
mod harness;
mod kernel_2_2;
mod kernel_2_6_27;
mod kernel_4_15;
mod marks;
mod pacing;
mod receiver;
mod recovery;
mod timers;
mod undo;
