//! Classes: which packets belong to which, and each one's queue.
//!
//! A classful discipline is a scheduler over children. What they have in common lives here: packets are classified at
//! enqueue, by filters in their order (the first that matches decides), and wait in their class's discipline; who may send,
//! and when, is the scheduler's own. A discipline with one class uses the same type and pays nothing for it: there is
//! nothing to classify, and its child lies in place.

use crate::contract::{Backlog, DropReason, Dscp, Ecn, Item, Qdisc, Sink, Verdict};
use dragstrip_packet::TrafficClass;
use dragstrip_units::Instant;

/// Classifier: chooses a packet's class.
pub trait Classify {
    /// The class of `item`; none: nobody wants it.
    fn class_of(&self, item: &Item) -> Option<usize>;
}

/// All packets belong to the only class.
#[derive(Clone, Copy, Debug)]
pub struct OneClass;

impl Classify for OneClass {
    #[inline]
    fn class_of(&self, _item: &Item) -> Option<usize> {
        Some(0)
    }
}

/// Conditions a packet must meet for a filter to take it; an unset condition matches every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// This flow.
    pub flow: Option<u32>,
    /// The octet of DSCP and ECN has this value under this mask (tc's `ip dsfield VALUE MASK`).
    pub dsfield: Option<(u8, u8)>,
    /// This `skb->priority`.
    pub priority: Option<u8>,
}

impl Match {
    /// Packets with this DSCP, whatever their ECN codepoint.
    #[must_use]
    pub const fn dscp(dscp: Dscp) -> Self {
        Self { flow: None, dsfield: Some((dscp.value() << 2, 0xfc)), priority: None }
    }

    /// Packets with this ECN codepoint, whatever their DSCP.
    #[must_use]
    pub const fn ecn(ecn: Ecn) -> Self {
        Self { flow: None, dsfield: Some((ecn as u8, 0x03)), priority: None }
    }

    /// True when the filter matches `item`.
    #[must_use]
    pub fn takes(&self, item: &Item) -> bool {
        let Self { flow, dsfield, priority } = *self;
        let octet = TrafficClass::new(item.dscp, item.ecn).octet();
        flow.is_none_or(|flow| flow == item.flow)
            && dsfield.is_none_or(|(value, mask)| octet & mask == value)
            && priority.is_none_or(|priority| priority == item.priority())
    }
}

/// Sends packets to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Packets that the filter takes.
    pub matches: Match,
    /// Class they go to.
    pub class: usize,
}

/// Filters in their order, and the class of what none of them takes.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// The first that takes a packet decides.
    pub list: Vec<Filter>,
    /// For all others; none: they are dropped.
    pub default: Option<usize>,
}

impl Classify for Filters {
    fn class_of(&self, item: &Item) -> Option<usize> {
        let filter = self.list.iter().find(|filter| filter.matches.takes(item));
        filter.map(|filter| filter.class).or(self.default)
    }
}

/// Children and who is put where; `C` is an array or a `Vec` of disciplines.
#[derive(Clone, Debug)]
pub struct Classes<K, C> {
    classifier: K,
    children: C,
}

impl<K, C> Classes<K, C> {
    /// These children, filled by this classifier.
    #[must_use]
    pub const fn new(classifier: K, children: C) -> Self {
        Self { classifier, children }
    }
}

impl<K: Classify, C> Classes<K, C> {
    /// The class of `item`, as [`Self::enqueue`] chooses it.
    pub fn class_of(&self, item: &Item) -> Option<usize> {
        self.classifier.class_of(item)
    }

    /// Hands `item` to its class's child; what nobody wants is dropped.
    #[inline]
    pub fn enqueue<Q, S>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict
    where
        Q: Qdisc,
        C: AsMut<[Q]>,
        S: Sink,
    {
        let class = self.classifier.class_of(&item);
        match class.and_then(|class| self.children.as_mut().get_mut(class)) {
            Some(child) => child.enqueue(item, now, sink),
            None => {
                sink.dropped(item, DropReason::Unclassified);
                Verdict::Dropped(DropReason::Unclassified)
            }
        }
    }

    /// The discipline of a class.
    ///
    /// # Panics
    /// If there is no such class.
    #[inline]
    #[must_use]
    pub fn child<Q>(&self, class: usize) -> &Q
    where
        C: AsRef<[Q]>,
    {
        &self.children.as_ref()[class]
    }

    /// The discipline of a class.
    ///
    /// # Panics
    /// If there is no such class.
    #[inline]
    pub fn child_mut<Q>(&mut self, class: usize) -> &mut Q
    where
        C: AsMut<[Q]>,
    {
        &mut self.children.as_mut()[class]
    }

    /// All children, in the order of their classes.
    #[inline]
    pub fn children_mut<Q>(&mut self) -> &mut [Q]
    where
        C: AsMut<[Q]>,
    {
        self.children.as_mut()
    }

    /// Backlog of all children together.
    #[inline]
    pub fn backlog<Q>(&self) -> Backlog
    where
        Q: Qdisc,
        C: AsRef<[Q]>,
    {
        self.children.as_ref().iter().map(Qdisc::backlog).fold(Backlog::default(), |sum, one| {
            Backlog { bytes: sum.bytes + one.bytes, packets: sum.packets + one.packets }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Classify, Filter, Filters, Match};
    use crate::contract::{Dscp, Ecn, Item};

    #[test]
    fn the_first_filter_that_matches_decides() {
        let filter = |matches, class| Filter { matches, class };
        let filters = Filters {
            list: vec![
                filter(Match::dscp(Dscp::EF), 0),
                filter(Match { flow: Some(7), ..Match::default() }, 1),
                filter(Match::ecn(Ecn::Ect1), 2),
                filter(Match { priority: Some(2), ..Match::default() }, 3),
            ],
            default: None,
        };
        let item = |flow, dscp, ecn| Item { flow, dscp, ecn, ..Item::default() };
        let low_cost = Dscp::new(2).unwrap();
        for (item, class) in [
            (item(7, Dscp::EF, Ecn::Ect1), Some(0)),
            (item(7, Dscp::DEFAULT, Ecn::Ect1), Some(1)),
            (item(1, Dscp::DEFAULT, Ecn::Ect1), Some(2)),
            // TOS 0x08, "maximise throughput": bulk.
            (item(1, low_cost, Ecn::Ect0), Some(3)),
            (item(1, Dscp::LE, Ecn::Ect0), None),
        ] {
            assert_eq!(filters.class_of(&item), class, "{item:?}");
        }
        assert_eq!(Filters { default: Some(4), ..filters }.class_of(&Item::default()), Some(4));
    }

    #[test]
    fn forwarding_takes_the_priority_from_the_tos_bits() {
        let of = |dscp| Item { dscp: Dscp::new(dscp).unwrap(), ..Item::default() }.priority();
        assert_eq!([0, 1, 2, 4, 6, 46].map(of), [0, 0, 2, 6, 4, 4]);
    }
}
