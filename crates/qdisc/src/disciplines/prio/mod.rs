//! Strict priority (`sch_prio.c`): a band is served while those before it are empty.
//!
//! A forwarded packet's priority comes from what used to be the TOS bits (`rt_tos2priority`): 0 best effort, 2 bulk, 4
//! interactive bulk, 6 interactive. `priomap` names the band of each priority, and each band is a pfifo of `txqueuelen` packets, which
//! is what Linux puts there. Other disciplines in bands, and filters, are not modelled.
//!
//! As Linux 6.1 does it: all bands are asked in their order, empty ones too.

pub mod spec;

use crate::classes::{Classes, Classify};
use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink, Verdict};
use crate::disciplines::fifo::Fifo;
use crate::disciplines::{PRIORITIES, TXQUEUELEN};
use dragstrip_units::Instant;
pub use spec::PrioSpec;

/// The band of each priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priomap(pub(crate) [u32; PRIORITIES]);

impl Classify for Priomap {
    fn class_of(&self, item: &Item) -> Option<usize> {
        self.0.get(usize::from(item.priority() & 15)).map(|&band| band as usize)
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Prio(Classes<Priomap, Vec<Fifo>>);

impl Prio {
    fn new(bands: u32, priomap: Priomap) -> Self {
        let children = (0..bands).map(|_| Fifo::packets(TXQUEUELEN)).collect();
        Self(Classes::new(priomap, children))
    }
}

impl Qdisc for Prio {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.0.enqueue(item, now, sink)
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let bands = self.0.children_mut().iter_mut();
        let mut answers = bands.map(|band| band.dequeue(now, sink));
        answers.find(|&answer| answer != Dequeue::Empty).unwrap_or(Dequeue::Empty)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::Prio;
    use crate::QdiscSpec;
    use crate::contract::{Dequeue, DropReason, Dscp, Item, PacketId, Qdisc, Verdict};
    use crate::disciplines::{Discipline, Streams};
    use crate::testing::Log;
    use dragstrip_units::Instant;

    fn prio(words: &str) -> Box<Prio> {
        let spec = QdiscSpec::parse(&format!("prio {words}")).unwrap();
        let Discipline::Prio(prio) = spec.build(&Streams::of_link(1, "test")) else {
            panic!("prio")
        };
        prio
    }

    /// The order in which packets with these DSCP leave, by number.
    fn order(words: &str, dscps: &[u8]) -> Vec<u32> {
        let (mut prio, mut log) = (prio(words), Log::default());
        for (id, &dscp) in (0..).zip(dscps) {
            let dscp = Dscp::new(dscp).unwrap();
            let item = Item { packet: PacketId(id), len: 1514, dscp, ..Item::default() };
            assert_eq!(prio.enqueue(item, Instant::ZERO, &mut log), Verdict::Queued);
        }
        std::iter::from_fn(|| match prio.dequeue(Instant::ZERO, &mut log) {
            Dequeue::Packet(item) => Some(item.packet.0),
            Dequeue::Wait(_) | Dequeue::Empty => None,
        })
        .collect()
    }

    /// TOS 0x10 (DSCP 4) goes to band 0, 0x08 (DSCP 2) to band 2, all others to band 1; EF is 0xb8, "low delay" and "throughput": 4.
    #[test]
    fn the_tos_bits_choose_the_band() {
        let dscps = [2, 0, 46, 4, 2, 0, 4];
        assert_eq!(order("", &dscps), [3, 6, 1, 2, 5, 0, 4]);
        let turned = "bands 2 priomap 0 1 1 1 1 1 0 1 1 1 1 1 1 1 1 1";
        assert_eq!(order(turned, &dscps), [1, 3, 5, 6, 0, 2, 4]);
    }

    #[test]
    fn each_band_has_a_thousand_places() {
        let (mut prio, mut log) = (prio(""), Log::default());
        for id in 0..1_001 {
            let item = Item { packet: PacketId(id), len: 66, ..Item::default() };
            let _ = prio.enqueue(item, Instant::ZERO, &mut log);
        }
        assert_eq!(log.drops, [(PacketId(1_000), DropReason::Overlimit)]);
        let bulk = Item { packet: PacketId(1_001), dscp: Dscp::new(2).unwrap(), ..Item::default() };
        assert_eq!(prio.enqueue(bulk, Instant::ZERO, &mut log), Verdict::Queued);
    }
}
