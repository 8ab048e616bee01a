//! The queue of all tins that holds most bytes: the kernel's heap, which is built only once the memory has run out
//! (`cake_heapify`, `cake_drop`).
//!
//! It has an entry for every queue of eight tins, in the kernel's order, so that equals are chosen as there.

use super::flows::{Flows, QUEUES};

/// Tins that the heap has room for (`CAKE_MAX_TINS`).
const TINS: usize = 8;
const ENTRIES: usize = TINS * QUEUES;

/// A queue: number in its tin times eight, plus the tin.
type Entry = u16;

/// The heap.
#[derive(Clone, Debug, Default)]
pub(super) struct Longest {
    heap: Vec<Entry>,
    /// Position of each queue in the heap.
    place: Vec<u16>,
    /// Packets that may leave before it is given up.
    kept_for: u16,
}

fn bytes(tins: &[Flows], entry: Entry) -> u64 {
    let (queue, tin) = (usize::from(entry) / TINS, usize::from(entry) % TINS);
    tins.get(tin).map_or(0, |flows| flows.all[queue].queue.bytes)
}

impl Longest {
    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.place[usize::from(self.heap[one])] = one as u16;
        self.place[usize::from(self.heap[other])] = other as u16;
    }

    fn sink(&mut self, mut at: usize, tins: &[Flows]) {
        loop {
            let (mut most, mut largest) = (bytes(tins, self.heap[at]), at);
            for child in [2 * at + 1, 2 * at + 2] {
                if child < ENTRIES && bytes(tins, self.heap[child]) > most {
                    (most, largest) = (bytes(tins, self.heap[child]), child);
                }
            }
            if largest == at {
                return;
            }
            self.swap(at, largest);
            at = largest;
        }
    }

    /// A queue has changed since a packet came to it.
    pub(super) fn has_grown(&mut self, (tin, queue): (usize, usize), tins: &[Flows]) {
        if self.kept_for == 0 {
            return;
        }
        let mut at = usize::from(self.place[queue * TINS + tin]);
        while at > 0 {
            let parent = (at - 1) / 2;
            if bytes(tins, self.heap[at]) <= bytes(tins, self.heap[parent]) {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    /// A packet was taken from a queue in its turn.
    pub(super) fn has_shrunk(&mut self, (tin, queue): (usize, usize), tins: &[Flows]) {
        if self.kept_for > 0 {
            self.sink(usize::from(self.place[queue * TINS + tin]), tins);
        }
    }

    /// A packet has left.
    pub(super) fn has_left(&mut self) {
        self.kept_for = self.kept_for.saturating_sub(1);
    }

    /// The tin and the queue to drop from.
    pub(super) fn queue(&mut self, tins: &[Flows]) -> (usize, usize) {
        if self.heap.is_empty() {
            self.heap = (0..ENTRIES as u16).collect();
            self.place = self.heap.clone();
        }
        if self.kept_for == 0 {
            for at in (0..=ENTRIES / 2).rev() {
                self.sink(at, tins);
            }
        }
        self.kept_for = u16::MAX;
        (usize::from(self.heap[0]) % TINS, usize::from(self.heap[0]) / TINS)
    }

    /// A packet was dropped from the queue to drop from.
    pub(super) fn was_dropped_from(&mut self, tins: &[Flows]) {
        self.sink(0, tins);
    }

    /// The queue to drop from is empty: packets that were filtered have left the heap out of order.
    pub(super) fn is_wrong(&mut self) {
        self.kept_for = 0;
    }
}
