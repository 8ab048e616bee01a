//! Packets of many queues in one block of memory.
//!
//! A fair-queueing discipline has a thousand queues, nearly all of them empty. They share one arena of
//! doubly linked nodes, which grows to the largest backlog seen and is then reused: no allocation
//! per packet and none per queue.

use crate::contract::Item;

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<T> {
    item: Item,
    /// The discipline's note on the packet.
    note: T,
    prev: u32,
    next: u32,
}

/// The memory of all queues of one discipline.
#[derive(Clone, Debug)]
pub(crate) struct Arena<T> {
    nodes: Vec<Node<T>>,
    /// First of the unused nodes, which are linked by `next`.
    unused: u32,
}

/// One queue of packets in an [`Arena`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    head: u32,
    tail: u32,
    /// Sum of `len`.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, bytes: 0, packets: 0 };
}

impl<T: Copy> Arena<T> {
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), unused: NONE }
    }

    pub(crate) fn push_back(&mut self, queue: &mut Queue, item: Item, note: T) {
        let node = Node { item, note, prev: queue.tail, next: NONE };
        let index = if self.unused == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.unused;
            let slot = &mut self.nodes[index as usize];
            self.unused = slot.next;
            *slot = node;
            index
        };
        if queue.tail == NONE {
            queue.head = index;
        } else {
            self.nodes[queue.tail as usize].next = index;
        }
        queue.tail = index;
        queue.bytes += u64::from(item.len);
        queue.packets += 1;
    }

    /// The next packet to leave, left where it is.
    pub(crate) fn front(&self, queue: &Queue) -> Option<(Item, T)> {
        self.nodes.get(queue.head as usize).map(|node| (node.item, node.note))
    }

    pub(crate) fn pop_front(&mut self, queue: &mut Queue) -> Option<(Item, T)> {
        let index = queue.head;
        let next = self.nodes.get(index as usize)?.next;
        queue.head = next;
        if next == NONE {
            queue.tail = NONE;
        } else {
            self.nodes[next as usize].prev = NONE;
        }
        Some(self.release(queue, index))
    }

    /// The packets of a queue, the next to leave first, each with its place for [`Self::take`].
    pub(crate) fn iter(&self, queue: &Queue) -> impl Iterator<Item = (u32, Item)> + '_ {
        let mut at = queue.head;
        std::iter::from_fn(move || {
            let place = at;
            let node = self.nodes.get(place as usize)?;
            at = node.next;
            Some((place, node.item))
        })
    }

    /// The packet that came last, with its place.
    pub(crate) fn last(&self, queue: &Queue) -> Option<(u32, Item)> {
        self.nodes.get(queue.tail as usize).map(|node| (queue.tail, node.item))
    }

    /// The packet at a place of `queue`, taken out from among the others.
    pub(crate) fn take(&mut self, queue: &mut Queue, place: u32) -> (Item, T) {
        let Node { prev, next, .. } = self.nodes[place as usize];
        match self.nodes.get_mut(prev as usize) {
            Some(node) => node.next = next,
            None => queue.head = next,
        }
        match self.nodes.get_mut(next as usize) {
            Some(node) => node.prev = prev,
            None => queue.tail = prev,
        }
        self.release(queue, place)
    }

    pub(crate) fn pop_back(&mut self, queue: &mut Queue) -> Option<(Item, T)> {
        let index = queue.tail;
        let prev = self.nodes.get(index as usize)?.prev;
        queue.tail = prev;
        if prev == NONE {
            queue.head = NONE;
        } else {
            self.nodes[prev as usize].next = NONE;
        }
        Some(self.release(queue, index))
    }

    fn release(&mut self, queue: &mut Queue, index: u32) -> (Item, T) {
        let node = &mut self.nodes[index as usize];
        node.next = self.unused;
        self.unused = index;
        queue.bytes -= u64::from(node.item.len);
        queue.packets -= 1;
        (node.item, node.note)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arena, Queue};
    use crate::contract::{Item, PacketId};

    fn item(id: u32) -> Item {
        Item { packet: PacketId(id), len: 100 + id, ..Item::default() }
    }

    #[test]
    fn queues_share_the_memory_and_keep_their_order() {
        let mut arena = Arena::new();
        let (mut a, mut b) = (Queue::EMPTY, Queue::EMPTY);
        for round in 0..3 {
            for id in 0..4 {
                arena.push_back(if id % 2 == 0 { &mut a } else { &mut b }, item(id), round);
            }
            assert_eq!((a.packets, a.bytes, b.bytes), (2, 202, 204));
            assert_eq!(arena.front(&a), Some((item(0), round)));
            assert_eq!(arena.pop_front(&mut a), Some((item(0), round)));
            assert_eq!(arena.pop_back(&mut b), Some((item(3), round)));
            assert_eq!(arena.pop_back(&mut a), Some((item(2), round)));
            assert_eq!(arena.pop_front(&mut b), Some((item(1), round)));
            assert_eq!((arena.pop_front(&mut a), arena.pop_back(&mut b)), (None, None));
            assert_eq!(arena.front(&a), None);
        }
        assert_eq!(arena.nodes.len(), 4);
    }

    #[test]
    fn a_packet_is_taken_from_anywhere() {
        for out_of in 0..3 {
            let (mut arena, mut queue) = (Arena::new(), Queue::EMPTY);
            for id in 0..3 {
                arena.push_back(&mut queue, item(id), ());
            }
            let (place, taken) = arena.iter(&queue).nth(out_of).unwrap();
            assert_eq!(arena.take(&mut queue, place), (taken, ()));
            arena.push_back(&mut queue, item(3), ());
            let remaining_ids: Vec<u32> =
                arena.iter(&queue).map(|(_, item)| item.packet.0).collect();
            let expected_ids: Vec<u32> = (0..4).filter(|id| *id as usize != out_of).collect();
            assert_eq!(remaining_ids, expected_ids);
            assert_eq!(arena.pop_back(&mut queue), Some((item(3), ())));
            assert_eq!((queue.packets, arena.nodes.len()), (2, 3));
        }
    }
}
