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
    /// What the discipline notes beside the packet.
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
}
