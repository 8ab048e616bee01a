//! Frames that a capture contains twice: from two ports, before and after a router.

use crate::half::{FIN, SYN};
use dragstrip_capture::read::Packet;
use std::collections::{BTreeMap, VecDeque};

/// Longest delay between copies of a frame from a mirror port or an interface `any`, if nothing else distinguishes
/// them from retransmissions, nanoseconds.
const COPY_NS: i64 = 1_000_000;
/// Longest delay if IP distinguishes them: the queueing time of a router between the packet before it and after it.
const TWIN_NS: i64 = 100_000_000;
/// Packets of a direction among which a copy is looked for.
const RECENT_MAX: usize = 8_192;

/// The last packets of a direction, by what they are.
#[derive(Debug, Default)]
pub struct Recent {
    known: BTreeMap<u64, EarlierPacket>,
    /// In the order of time.
    prints: VecDeque<(u64, i64)>,
    /// The identification of the first packet, and whether a later one had another.
    ids: Option<(u16, bool)>,
}

/// An earlier packet with the same contents.
#[derive(Clone, Copy, Debug)]
struct EarlierPacket {
    at: i64,
    ttl: u8,
}

impl Recent {
    /// True when the same packet was captured before: on the other side of a router, with another time to live, or on
    /// another port.
    ///
    /// Retransmitted data have a new identification if the sender counts (RFC 6864), and the same time to live.
    pub fn is_copy(&mut self, packet: &Packet) -> bool {
        let id = packet.ip_id.unwrap_or(0);
        let (first, counts) = self.ids.unwrap_or((id, false));
        let counts = counts || id != first;
        self.ids = Some((first, counts));
        while let Some((print, at)) = self.prints.front().copied()
            && (self.prints.len() == RECENT_MAX || packet.time_ns - at > TWIN_NS)
        {
            self.prints.pop_front();
            if self.known.get(&print).is_some_and(|previous| previous.at == at) {
                self.known.remove(&print);
            }
        }
        let print = fingerprint(packet);
        if let Some(EarlierPacket { at, ttl }) = self.known.get(&print).copied() {
            // No host repeats data, a SYN or a FIN so soon.
            let told_apart = packet.payload > 0 || id != 0 || packet.flags & (SYN | FIN) != 0;
            let soon = packet.time_ns - at <= COPY_NS;
            if ttl != packet.ttl || (id != 0 && counts) || (told_apart && soon) {
                return true;
            }
        }
        self.known.insert(print, EarlierPacket { at: packet.time_ns, ttl: packet.ttl });
        self.prints.push_back((print, packet.time_ns));
        false
    }
}

/// Hash of the header fields that routers and captures leave unchanged.
pub fn fingerprint(packet: &Packet) -> u64 {
    let (value, echo) = packet.stamps.unwrap_or_default();
    let words = [
        u64::from(packet.seq) << 32 | u64::from(packet.ack),
        u64::from(packet.flags) << 48 | u64::from(packet.window) << 32 | u64::from(packet.payload),
        u64::from(packet.ip_id.unwrap_or(0)),
        u64::from(value) << 32 | u64::from(echo),
        u64::from(packet.sacks[0].0) << 32 | u64::from(packet.sacks[0].1),
    ];
    words.iter().fold(1, |hash: u64, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}
