//! Enhanced transmission selection (IEEE 802.1Qaz; `sch_ets.c`): strict bands, then deficit round robin between the others.
//!
//! ```text
//! strict bands in their order ──all empty──▶ active list:  head fits in the deficit? ──yes──▶ send, deficit -= length
//!                                                │  ▲                │ no
//!                                                │  └──── to its end, deficit += quantum
//! ```
//!
//! A packet's band follows from its priority, as with prio; what `priomap` does not name goes to the last band. Each band is a
//! pfifo of `txqueuelen` packets. Other disciplines in bands, and filters, are not modelled.
//!
//! As Linux 6.1 does it: a band that becomes active goes to the end of the list with a deficit of one quantum; what an emptied one
//! had left is gone. Bands in the list are looked at, so that no empty one is asked.

pub mod spec;

use crate::classes::Classes;
use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink, Verdict};
use crate::disciplines::TXQUEUELEN;
use crate::disciplines::fifo::Fifo;
use crate::disciplines::prio::Priomap;
use dragstrip_units::Instant;
pub use spec::EtsSpec;
use std::collections::VecDeque;

/// The discipline.
#[derive(Clone, Debug)]
pub struct Ets {
    classes: Classes<Priomap, Vec<Fifo>>,
    strict: usize,
    /// Quantum of each band after the strict ones.
    quanta: Vec<u32>,
    deficits: Vec<u64>,
    /// Bands behind the strict ones that have packets.
    active: VecDeque<usize>,
}

impl Ets {
    /// `strict` bands, and one for each quantum.
    ///
    /// # Panics
    /// With a quantum of nothing.
    fn new(strict: u32, quanta: Vec<u32>, priomap: Priomap) -> Self {
        assert!(quanta.iter().all(|&quantum| quantum > 0));
        let bands = strict as usize + quanta.len();
        let children = (0..bands).map(|_| Fifo::packets(TXQUEUELEN)).collect();
        Self {
            classes: Classes::new(priomap, children),
            strict: strict as usize,
            deficits: vec![0; quanta.len()],
            quanta,
            active: VecDeque::new(),
        }
    }
}

impl Qdisc for Ets {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        let band = self.classes.class_of(&item).and_then(|band| band.checked_sub(self.strict));
        let verdict = self.classes.enqueue(item, now, sink);
        if let Some(band) = band
            && let Some(deficit) = self.deficits.get_mut(band)
            && verdict == Verdict::Queued
            && self.classes.child(band + self.strict).backlog().packets == 1
        {
            *deficit = u64::from(self.quanta[band]);
            self.active.push_back(band);
        }
        verdict
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let strict = self.classes.children_mut().iter_mut().take(self.strict);
        let mut answers = strict.map(|band| band.dequeue(now, sink));
        if let Some(answer) = answers.find(|&answer| answer != Dequeue::Empty) {
            return answer;
        }
        while let Some(&band) = self.active.front() {
            let child = self.classes.child_mut(band + self.strict);
            let Some(head) = child.head() else { break };
            let deficit = &mut self.deficits[band];
            if u64::from(head.len) > *deficit {
                *deficit += u64::from(self.quanta[band]);
                self.active.rotate_left(1);
                continue;
            }
            *deficit -= u64::from(head.len);
            let answer = child.dequeue(now, sink);
            if child.backlog().packets == 0 {
                self.active.pop_front();
            }
            return answer;
        }
        Dequeue::Empty
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::Ets;
    use crate::QdiscSpec;
    use crate::contract::{Dequeue, Dscp, Item, PacketId, Qdisc, Verdict};
    use crate::disciplines::{Discipline, Streams};
    use crate::testing::Log;
    use dragstrip_units::Instant;

    fn ets(words: &str) -> Ets {
        let spec = QdiscSpec::parse(&format!("ets {words}")).unwrap();
        let Discipline::Ets(ets) = spec.build(&Streams::of_link(1, "test")) else { panic!("ets") };
        *ets
    }

    fn fill(ets: &mut Ets, dscp: u8, ids: std::ops::Range<u32>) {
        for id in ids {
            let dscp = Dscp::new(dscp).unwrap();
            let item = Item { packet: PacketId(id), len: 1514, dscp, ..Item::default() };
            assert_eq!(ets.enqueue(item, Instant::ZERO, &mut Log::default()), Verdict::Queued);
        }
    }

    fn departed_ids(ets: &mut Ets, count: usize) -> Vec<u32> {
        let mut next = || match ets.dequeue(Instant::ZERO, &mut Log::default()) {
            Dequeue::Packet(item) => Some(item.packet.0),
            Dequeue::Wait(_) | Dequeue::Empty => None,
        };
        std::iter::from_fn(&mut next).take(count).collect()
    }

    /// The bands of best effort, bulk, and the two interactive ones.
    const MAP: &str = "priomap 1 1 2 1 1 1 0 1 1 1 1 1 1 1 1 1";

    /// As drr's on the kernel: 1514 and 3028, both backlogged, send 1 2 2 1 2 2.
    #[test]
    fn bands_share_by_their_quanta_behind_the_strict_one() {
        let mut ets = ets(&format!("strict 1 quanta 1514 3028 {MAP}"));
        fill(&mut ets, 0, 0..4);
        fill(&mut ets, 2, 10..18);
        assert_eq!(departed_ids(&mut ets, 4), [0, 10, 11, 1]);
        fill(&mut ets, 4, 20..22);
        assert_eq!(departed_ids(&mut ets, 9), [20, 21, 12, 13, 2, 14, 15, 3, 16]);
        assert_eq!(departed_ids(&mut ets, 9), [17]);
    }

    /// A frame more than fits is left in the deficit: 1000 bytes in turn send two frames in three turns.
    #[test]
    fn a_quantum_smaller_than_a_frame_saves_up() {
        let mut ets = ets(&format!("quanta 1514 1000 1514 {MAP}"));
        fill(&mut ets, 0, 0..6);
        fill(&mut ets, 2, 10..16);
        // Band 1 has 1000, 2000 (sends, 486), 1486, 2486 (sends, 972), 1972 (sends).
        assert_eq!(departed_ids(&mut ets, 7), [10, 0, 11, 12, 1, 13, 2]);
    }

    /// The rest of an emptied band's quantum is discarded.
    #[test]
    fn an_emptied_band_begins_with_one_quantum() {
        let mut ets = ets("quanta 4542 1514 priomap 0 0 1");
        fill(&mut ets, 0, 0..1);
        assert_eq!(departed_ids(&mut ets, 1), [0]);
        fill(&mut ets, 2, 10..12);
        fill(&mut ets, 0, 1..6);
        assert_eq!(departed_ids(&mut ets, 7), [10, 1, 2, 3, 11, 4, 5]);
    }
}
