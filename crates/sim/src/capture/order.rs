//! Merges the sightings of a vantage point in the order of time, and at one instant in the order of cause and effect.
//!
//! Sightings of one stage come in order except for overtaking packets; those of two do not, as departures may be
//! reported ahead of the clock. So each stage has its own line, and the lines are merged up to the clock. A cause is
//! always reported before its effect, however far ahead: at one instant the order of reports counts.

use dragstrip_units::{Instant, make_room};
use std::collections::VecDeque;

/// Sightings since the last merge after which another one pays.
const ENOUGH: u32 = 512;

/// Lines of one vantage point.
#[derive(Debug)]
pub(super) struct Order<T> {
    lines: Vec<VecDeque<Sighting<T>>>,
    added: u64,
    fresh: u32,
}

/// A sighting, and the number of those reported before it.
#[derive(Debug)]
struct Sighting<T> {
    place: (Instant, u64),
    sighting: T,
}

impl<T> Order<T> {
    /// Creates an order of `lines` stages.
    pub fn new(lines: usize) -> Self {
        Self { lines: (0..lines).map(|_| VecDeque::new()).collect(), added: 0, fresh: 0 }
    }

    /// Adds what one stage has seen; whether there is much to merge now.
    #[inline]
    pub fn add(&mut self, line: usize, at: Instant, sighting: T) -> bool {
        let line = &mut self.lines[line];
        make_room(line);
        line.push_back(Sighting { place: (at, self.added), sighting });
        self.added += 1;
        let mut place = line.len() - 1;
        while place > 0 && line[place - 1].place.0 > at {
            line.swap(place - 1, place);
            place -= 1;
        }
        self.fresh += 1;
        self.fresh >= ENOUGH
    }

    /// Takes everything up to `clock`, before which nothing more will be added: `each` has the line, the time and what was seen.
    #[inline]
    pub fn take(&mut self, clock: Instant, mut handle: impl FnMut(usize, Instant, &T)) {
        self.fresh = 0;
        loop {
            // The first line, and the time up to which it stays ahead of the others.
            let (mut first, mut next) = (END, END);
            let mut line = usize::MAX;
            for (index, sightings) in self.lines.iter().enumerate() {
                let Some(Sighting { place, .. }) = sightings.front() else { continue };
                next = next.min(first.max(*place));
                if *place < first {
                    (first, line) = (*place, index);
                }
            }
            if first.0 > clock || line == usize::MAX {
                return;
            }
            while let Some(Sighting { place, sighting }) = self.lines[line].front()
                && *place < next
                && place.0 <= clock
            {
                handle(line, place.0, sighting);
                self.lines[line].pop_front();
            }
        }
    }
}

/// After every place.
const END: (Instant, u64) = (Instant::NEVER, u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_merged_by_time_and_only_up_to_the_clock() {
        let mut order = Order::new(2);
        let at = Instant::from_nanos;
        for (line, time) in [(0, 5), (0, 9), (0, 7), (1, 6), (1, 5), (0, 5)] {
            assert!(!order.add(line, at(time), (line, time)));
        }
        let mut merged = Vec::new();
        order.take(at(7), |_, _, item| merged.push(*item));
        assert_eq!(merged, [(0, 5), (1, 5), (0, 5), (1, 6), (0, 7)]);
        order.take(Instant::NEVER, |_, _, item| merged.push(*item));
        assert_eq!(merged.last(), Some(&(0, 9)));
    }
}
