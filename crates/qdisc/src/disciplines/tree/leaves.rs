//! The disciplines of a tree's classes, and what waits in all of them.

use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink, Verdict};
use crate::disciplines::Discipline;
use crate::peek::Peekable;
use dragstrip_units::Instant;

/// A discipline per class; an inner class has none.
#[derive(Clone, Debug)]
pub(super) struct Leaves {
    list: Vec<Option<Box<Peekable<Discipline>>>>,
    total: Backlog,
}

impl Leaves {
    pub(super) fn new(list: impl Iterator<Item = Option<Discipline>>) -> Self {
        let list = list.map(|leaf| leaf.map(|leaf| Box::new(Peekable::new(leaf)))).collect();
        Self { list, total: Backlog::default() }
    }

    /// Sum over all classes.
    pub(super) const fn total(&self) -> Backlog {
        self.total
    }

    pub(super) fn packets(&self, class: usize) -> u32 {
        self.list[class].as_ref().map_or(0, |leaf| leaf.backlog().packets)
    }

    pub(super) fn has(&self, class: usize) -> bool {
        self.list.get(class).is_some_and(Option::is_some)
    }

    /// Does something with a leaf, and counts what became of its packets.
    fn with<T>(
        &mut self,
        class: usize,
        act: impl FnOnce(&mut Peekable<Discipline>) -> T,
    ) -> Option<T> {
        let leaf = self.list[class].as_mut()?;
        let before = leaf.backlog();
        let answer = act(leaf);
        let after = leaf.backlog();
        self.total.bytes = self.total.bytes + after.bytes - before.bytes;
        self.total.packets = self.total.packets + after.packets - before.packets;
        Some(answer)
    }

    /// # Panics
    /// If the class is none that packets may enter.
    pub(super) fn enqueue<S: Sink>(
        &mut self,
        class: usize,
        item: Item,
        now: Instant,
        sink: &mut S,
    ) -> Verdict {
        let verdict = self.with(class, |leaf| leaf.enqueue(item, now, sink));
        verdict.expect("packets are led to leaves only")
    }

    pub(super) fn dequeue<S: Sink>(&mut self, class: usize, now: Instant, sink: &mut S) -> Dequeue {
        self.with(class, |leaf| leaf.dequeue(now, sink)).unwrap_or(Dequeue::Empty)
    }

    /// Returns the result that the next `dequeue` will have.
    pub(super) fn peek<S: Sink>(&mut self, class: usize, now: Instant, sink: &mut S) -> Dequeue {
        self.with(class, |leaf| leaf.peek(now, sink)).unwrap_or(Dequeue::Empty)
    }
}
