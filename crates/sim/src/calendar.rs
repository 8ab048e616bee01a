//! The event queue: one pending event per source, the earliest first.
//!
//! A source waits for one instant at a time: a lane of packets in flight, a queue discipline's watchdog, an endpoint's
//! timer, an application. Sources are numbered; a winner tree with four children a node holds each one's time and
//! number packed into 64 bits, so that an update is a walk to the root and ties go to the lower number. Three trees,
//! because a handful of sources (shared lanes, bottlenecks) carry most events, lanes of single stages many, and the
//! timers of a thousand connections rarely change.

use dragstrip_units::Instant;

/// Number of a source. Lower numbers win ties.
pub(crate) type Source = u32;

/// Bits of a key that hold the source; the other 44 hold the time: 4 h 53 min.
const SOURCE_BITS: u32 = 20;
const IDLE: u64 = u64::MAX;

/// The last instant a run can reach.
pub(crate) const END_OF_TIME: Instant = Instant::from_nanos((1 << (64 - SOURCE_BITS)) - 2);

/// Most sources.
pub(crate) const MAX_SOURCES: usize = 1 << SOURCE_BITS;

/// Children of a node, whose keys share half a cache line.
const WIDTH: usize = 4;

#[derive(Clone, Debug)]
struct Tree {
    /// The earliest of all.
    winner: u64,
    /// A heap-shaped tree: the winner of group `g` is key `(g - 1) % 4` of group `(g - 1) / 4`.
    groups: Vec<[u64; WIDTH]>,
    /// The first group of sources.
    leaves: usize,
}

impl Tree {
    fn new(sources: usize) -> Self {
        let (mut leaves, mut row) = (0, 1);
        while row * WIDTH < sources {
            leaves += row;
            row *= WIDTH;
        }
        Self { winner: IDLE, groups: vec![[IDLE; WIDTH]; leaves + row], leaves }
    }

    #[inline]
    fn update(&mut self, leaf: usize, key: u64) {
        let mut group = self.leaves + leaf / WIDTH;
        let mut place = leaf % WIDTH;
        let mut best = key;
        while let Some(keys) = self.groups.get_mut(group) {
            if keys[place] == best {
                return;
            }
            keys[place] = best;
            best = keys[0].min(keys[1]).min(keys[2].min(keys[3]));
            if group == 0 {
                self.winner = best;
                return;
            }
            (group, place) = ((group - 1) / WIDTH, (group - 1) % WIDTH);
        }
    }
}

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Each with its first source.
    trees: [(Source, Tree); 3],
}

impl Calendar {
    /// Creates a calendar with the numbers of sources in `counts`, in parts with a tree each; the busiest part first.
    pub fn new(counts: [usize; 3]) -> Self {
        debug_assert!(counts.iter().sum::<usize>() <= MAX_SOURCES);
        let mut first = 0;
        let trees = counts.map(|count| {
            let tree = (first, Tree::new(count));
            first += count as Source;
            tree
        });
        Self { trees }
    }

    /// `source` waits for `at` from now on; [`Instant::NEVER`]: for nothing.
    #[inline]
    pub fn set(&mut self, source: Source, at: Instant) {
        let key =
            if at > END_OF_TIME { IDLE } else { at.as_nanos() << SOURCE_BITS | u64::from(source) };
        let [busy, middle, calm] = &mut self.trees;
        let (first, tree) = if source < middle.0 {
            busy
        } else if source < calm.0 {
            middle
        } else {
            calm
        };
        tree.update((source - *first) as usize, key);
    }

    /// The earliest source and its time.
    #[inline]
    pub fn next(&self) -> Option<(Instant, Source)> {
        let [(_, busy), (_, middle), (_, calm)] = &self.trees;
        let key = busy.winner.min(middle.winner).min(calm.winner);
        if key == IDLE {
            return None;
        }
        let source = key as u32 & ((1 << SOURCE_BITS) - 1);
        Some((Instant::from_nanos(key >> SOURCE_BITS), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn the_earliest_wins_and_ties_go_to_the_lower_number() {
        let mut calendar = Calendar::new([2, 1, 2]);
        calendar.set(4, at(10));
        calendar.set(3, at(5));
        calendar.set(1, at(5));
        assert_eq!(calendar.next(), Some((at(5), 1)));
        calendar.set(1, Instant::NEVER);
        assert_eq!(calendar.next(), Some((at(5), 3)));
        calendar.set(3, at(20));
        assert_eq!(calendar.next(), Some((at(10), 4)));
        calendar.set(4, Instant::NEVER);
        calendar.set(3, Instant::NEVER);
        assert_eq!(calendar.next(), None);
    }

    #[test]
    fn it_orders_random_times_like_a_sorted_list() {
        let mut stream = dragstrip_units::Stream::named(1, "calendar");
        let mut calendar = Calendar::new([3, 9, 25]);
        let mut times: Vec<(u64, u32)> = Vec::new();
        for source in 0..37 {
            let time = u64::from(stream.below(50));
            calendar.set(source, at(time));
            times.push((time, source));
        }
        times.sort_unstable();
        for (time, source) in times {
            assert_eq!(calendar.next(), Some((at(time), source)));
            calendar.set(source, Instant::NEVER);
        }
        assert_eq!(calendar.next(), None);
    }
}
