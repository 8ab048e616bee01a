//! pcap files, read in pieces and inspected, alone and beside themselves.
#![no_main]

#[path = "../captures.rs"]
mod captures;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| captures::inspect(file));
