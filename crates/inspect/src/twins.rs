//! Connections that captures show inside a tunnel and outside.

use crate::state::Flow;
use crate::table::Table;
use dragstrip_capture::read::Address;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of connections that the captures show a second time, inside a tunnel: of each, all but the one with the most segments, and
/// of equal ones all but the one outside.
pub fn twins(flows: &Table<Flow>) -> BTreeSet<usize> {
    let mut twins = BTreeSet::new();
    if flows.entries().all(|(key, _)| key.tunnel == 0) {
        return twins;
    }
    let mut openings: BTreeMap<Twin, (u64, usize)> = BTreeMap::new();
    for (number, (key, flow)) in flows.entries().enumerate() {
        let Flow::Followed(followed) = flow else { continue };
        let Some((_, point)) = followed.points.first() else { continue };
        let opened = [0, 1].map(|side| point.sides[side].half.opened_at());
        if opened == [None; 2] {
            continue;
        }
        let segments = point.sides.iter().map(|side| side.half.segments).sum();
        match openings.entry((key.addresses, key.ports, opened)) {
            Entry::Vacant(place) => {
                place.insert((segments, number));
            }
            Entry::Occupied(mut place) => {
                let (most, other) = *place.get();
                let outside = key.tunnel == 0;
                if segments > most || (segments == most && outside) {
                    twins.insert(other);
                    place.insert((segments, number));
                } else {
                    twins.insert(number);
                }
            }
        }
    }
    twins
}

/// Identity of a connection: addresses, ports, first sequence numbers.
type Twin = ([Address; 2], [u16; 2], [Option<u32>; 2]);
