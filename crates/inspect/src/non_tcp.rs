//! Traffic other than TCP in a file: packets and bytes by protocol and port.

use crate::quic::Quics;
use dragstrip_capture::read::{Other, Protocol};
use std::collections::BTreeMap;

/// Most protocols and ports that are counted separately: a scan has all of them.
const ROWS_MAX: usize = 4_096;

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
}

/// A file's other packets.
#[derive(Debug, Default)]
pub struct OtherPackets {
    rows: BTreeMap<Protocol, Sum>,
    /// Total of the ports that exceed the table's capacity.
    pub rest: Sum,
    /// UDP's port 443.
    pub quic: Quics,
}

impl OtherPackets {
    /// Takes a packet.
    pub fn take(&mut self, packet: &Other) {
        let full = self.rows.len() == ROWS_MAX;
        let row = if full && !self.rows.contains_key(&packet.protocol) {
            &mut self.rest
        } else {
            self.rows.entry(packet.protocol).or_default()
        };
        row.packets += 1;
        row.bytes += u64::from(packet.bytes);
        self.quic.take(packet);
    }

    /// Each protocol and port, the one with the most packets first.
    pub fn sorted(&self) -> Vec<(Protocol, Sum)> {
        let mut rows: Vec<_> = self.rows.iter().map(|row| (*row.0, *row.1)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.1.packets));
        rows
    }
}
