//! A tournament over a fixed number of entrants, each with at most one pending event.
//!
//! Knuth, The Art of Computer Programming, vol. 3, 5.4.1 (tournament selection). A node holds the
//! smaller of its children's keys; changing one entrant replays its path to the root only, and stops
//! early where the winner stays the same. A key packs time and entrant into 8 bytes, so that equal
//! times are ordered by entrant, always the same way.

/// Entrants that a key can name: 2^24; 40 bits of nanoseconds remain, 18 minutes.
const ID_BITS: u32 = 24;
const NEVER: u64 = u64::MAX;

/// The pending event of each entrant, and which comes first.
pub struct WinnerTree {
    /// Entrant `i`'s key is `keys[leaves + i]`; the winner's is `keys[1]`.
    keys: Vec<u64>,
    leaves: usize,
}

impl WinnerTree {
    /// No entrant has an event.
    pub fn new(entrants: usize) -> Self {
        assert!(entrants <= 1 << ID_BITS, "{entrants} entrants do not fit into a key");
        let leaves = entrants.next_power_of_two().max(2);
        Self { keys: vec![NEVER; 2 * leaves], leaves }
    }

    /// Entrant `id`'s event is now at `time_ns`.
    #[inline]
    pub fn set(&mut self, id: usize, time_ns: u64) {
        debug_assert!(time_ns >> (64 - ID_BITS) == 0);
        self.replay(id, (time_ns << ID_BITS) | id as u64);
    }

    /// Entrant `id` has no event.
    #[inline]
    pub fn clear(&mut self, id: usize) {
        self.replay(id, NEVER);
    }

    /// The earliest event: its time and whose it is. It stays until set or cleared.
    #[inline]
    pub fn first(&self) -> Option<(u64, usize)> {
        let key = self.keys[1];
        (key != NEVER).then_some((key >> ID_BITS, (key & ((1 << ID_BITS) - 1)) as usize))
    }

    #[inline]
    fn replay(&mut self, id: usize, key: u64) {
        let mut node = self.leaves + id;
        self.keys[node] = key;
        while node > 1 {
            let winner = self.keys[node].min(self.keys[node ^ 1]);
            node >>= 1;
            if self.keys[node] == winner {
                return;
            }
            self.keys[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WinnerTree;

    #[test]
    fn events_come_in_order_of_time_then_of_entrant() {
        let mut tree = WinnerTree::new(5);
        for (id, time_ns) in [(3, 70), (0, 90), (4, 20), (1, 20)] {
            tree.set(id, time_ns);
        }
        let mut order = Vec::new();
        while let Some((time_ns, id)) = tree.first() {
            order.push((time_ns, id));
            tree.clear(id);
        }
        assert_eq!(order, [(20, 1), (20, 4), (70, 3), (90, 0)]);
    }

    #[test]
    fn it_agrees_with_a_linear_search() {
        let mut stream = dragstrip_units::Stream::named(1, "winner tree");
        let mut model = [None; 37];
        let mut tree = WinnerTree::new(model.len());
        for _ in 0..5_000 {
            let id = stream.below(37) as usize;
            if stream.below(4) == 0 {
                model[id] = None;
                tree.clear(id);
            } else {
                let time_ns = u64::from(stream.below(50));
                model[id] = Some(time_ns);
                tree.set(id, time_ns);
            }
            let least =
                model.iter().enumerate().filter_map(|(id, time)| time.map(|time| (time, id))).min();
            assert_eq!(tree.first(), least);
        }
    }
}
