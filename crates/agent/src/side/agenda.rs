//! Timed events of all sides in one process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A timed event. Simultaneous events are ordered as in this list; numbers are those of the step, flow or probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Sample,
    /// The tap's ring is emptied between two samples.
    Drain,
    Stop(usize),
    Start(usize),
    Toggle(usize),
    Ask(usize),
    Datagram(usize),
    Ping(usize),
    /// A discipline changes.
    Change(usize),
}

/// Events by time, then by kind, then by side.
#[derive(Debug)]
pub struct Agenda {
    events: BinaryHeap<Reverse<(i64, Event, usize)>>,
    end_ns: i64,
}

impl Agenda {
    pub const fn new(end_ns: i64) -> Self {
        Self { events: BinaryHeap::new(), end_ns }
    }

    /// Notes what happens on a side; what is later than the run's end is not.
    pub fn add(&mut self, time_ns: i64, event: Event, side: usize) {
        if time_ns <= self.end_ns {
            self.events.push(Reverse((time_ns, event, side)));
        }
    }

    /// Time of the next event, or of the run's end.
    pub fn next_ns(&self) -> i64 {
        self.events.peek().map_or(self.end_ns, |Reverse((time_ns, ..))| *time_ns).min(self.end_ns)
    }

    /// The next event that is due.
    pub fn due(&mut self, now_ns: i64) -> Option<(i64, Event, usize)> {
        let due = self.events.peek().is_some_and(|Reverse((time_ns, ..))| *time_ns <= now_ns);
        if due { self.events.pop().map(|Reverse(event)| event) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_are_ordered_and_late_ones_dropped() {
        let mut agenda = Agenda::new(10);
        for (time, event, side) in [
            (11, Event::Sample, 0),
            (5, Event::Start(0), 0),
            (5, Event::Stop(1), 1),
            (5, Event::Sample, 1),
            (5, Event::Sample, 0),
        ] {
            agenda.add(time, event, side);
        }
        assert_eq!((agenda.next_ns(), agenda.due(4)), (5, None));
        let order: Vec<_> = std::iter::from_fn(|| agenda.due(99)).map(|(_, e, s)| (e, s)).collect();
        assert_eq!(
            order,
            [(Event::Sample, 0), (Event::Sample, 1), (Event::Stop(1), 1), (Event::Start(0), 0)]
        );
        assert_eq!(agenda.next_ns(), 10);
    }
}
