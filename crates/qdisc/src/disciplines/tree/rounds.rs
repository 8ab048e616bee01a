//! Deficit round robin between classes (`sch_drr.c`, and the bands of `sch_ets.c` that are not strict).
//!
//! A class that becomes active goes to the end of the list with a deficit of one quantum; what an emptied one had left is
//! gone. Where the first of the list has packets but gives none yet, nobody is served until it does: both disciplines
//! stop there.

use super::leaves::Leaves;
use crate::contract::{Dequeue, Sink};
use dragstrip_units::Instant;
use std::collections::VecDeque;

/// The classes that have packets, in their turn.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// By class; none: it takes no part.
    quanta: Vec<Option<u32>>,
    deficits: Vec<u64>,
    active: VecDeque<usize>,
}

impl Rounds {
    /// # Panics
    /// With a quantum of nothing.
    pub(super) fn new(quanta: Vec<Option<u32>>) -> Self {
        assert!(quanta.iter().flatten().all(|&quantum| quantum > 0));
        Self { deficits: vec![0; quanta.len()], quanta, active: VecDeque::new() }
    }

    /// A class has packets.
    pub(super) fn activate(&mut self, class: usize) {
        if let Some(quantum) = self.quanta[class]
            && !self.active.contains(&class)
        {
            self.deficits[class] = u64::from(quantum);
            self.active.push_back(class);
        }
    }

    pub(super) fn dequeue<S: Sink>(
        &mut self,
        leaves: &mut Leaves,
        now: Instant,
        sink: &mut S,
    ) -> Dequeue {
        while let Some(&class) = self.active.front() {
            let head = match leaves.peek(class, now, sink) {
                Dequeue::Packet(head) => head,
                Dequeue::Wait(until) => return Dequeue::Wait(until),
                Dequeue::Empty => {
                    let _ = self.active.pop_front();
                    continue;
                }
            };
            let deficit = &mut self.deficits[class];
            if u64::from(head.len) > *deficit {
                *deficit += u64::from(self.quanta[class].unwrap_or(1));
                self.active.rotate_left(1);
                continue;
            }
            *deficit -= u64::from(head.len);
            let answer = leaves.dequeue(class, now, sink);
            if leaves.packets(class) == 0 {
                let _ = self.active.pop_front();
            }
            return answer;
        }
        Dequeue::Empty
    }
}
