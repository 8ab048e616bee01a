//! A file's packets in the order of their stamps, as far as they are not far apart.

use dragstrip_capture::read::{Packet, STAMP_MAX_NS};
use std::collections::VecDeque;

/// Packets held back, among which the order is put right.
const HELD: usize = 256;
/// So many in a row that are behind are a clock that was set back, not packets written late.
const STEP: u32 = 64;

/// Puts packets in order.
#[derive(Debug, Default)]
pub struct Order {
    held: VecDeque<Packet>,
    /// The latest stamp so far.
    latest: Option<i64>,
    released: i64,
    behind: u32,
    shift_ns: i64,
    ended: bool,
    /// Packets with a stamp before that of a packet before them.
    pub disorder: u64,
    /// Times that the clock was set back.
    pub steps: u64,
}

impl Order {
    /// Takes the next of the file.
    pub fn push(&mut self, mut packet: Packet) {
        packet.time_ns = packet.time_ns.saturating_add(self.shift_ns).min(STAMP_MAX_NS);
        let latest = *self.latest.get_or_insert(packet.time_ns);
        if packet.time_ns >= latest {
            self.latest = Some(packet.time_ns);
            self.behind = 0;
            self.held.push_back(packet);
            return;
        }
        self.disorder += 1;
        self.behind += 1;
        if self.behind == STEP {
            self.steps += 1;
            self.shift_ns = self.shift_ns.saturating_add(latest.saturating_sub(packet.time_ns));
            packet.time_ns = latest;
            self.behind = 0;
        }
        let at = self.held.partition_point(|held| held.time_ns <= packet.time_ns);
        self.held.insert(at, packet);
    }

    /// No more will come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether nothing can be said of the next packet before more is read.
    pub fn starved(&self) -> bool {
        !self.ended && self.held.len() <= HELD
    }

    /// The time of the next packet.
    pub fn next_ns(&self) -> Option<i64> {
        self.held.front().map(|packet| packet.time_ns.max(self.released))
    }

    /// The next packet; time never runs back.
    pub fn pop(&mut self) -> Option<Packet> {
        let mut packet = self.held.pop_front()?;
        packet.time_ns = packet.time_ns.max(self.released);
        self.released = packet.time_ns;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(order: &mut Order) -> Vec<i64> {
        order.end();
        std::iter::from_fn(|| order.pop()).map(|packet| packet.time_ns).collect()
    }

    fn pushed(times: impl IntoIterator<Item = i64>) -> Order {
        let mut order = Order::default();
        for time_ns in times {
            order.push(Packet { time_ns, ..Packet::default() });
        }
        order
    }

    #[test]
    fn neighbours_are_put_in_order() {
        let mut order = pushed([1, 3, 2, 4]);
        assert_eq!((times(&mut order), order.disorder, order.steps), (vec![1, 2, 3, 4], 1, 0));
    }

    #[test]
    fn a_clock_set_back_goes_on_from_where_it_was() {
        let mut order = pushed((0..1_000).map(|time| time + 1_000_000).chain(0..1_000));
        let found = times(&mut order);
        assert!(found.is_sorted());
        assert_eq!((order.disorder, order.steps), (64, 1));
        assert_eq!(found[1_999] - found[1_063], 936, "intervals after the step are kept");
    }

    #[test]
    fn a_clock_set_back_by_a_century_twice_stays_among_the_stamps() {
        let century = 4_294_967_295_000_000_000;
        let mut order = pushed((0..6).flat_map(|back| [century * (1 - back % 2); 100]));
        assert_eq!(times(&mut order).last(), Some(&STAMP_MAX_NS));
        assert_eq!(order.steps, 2, "from the limit on nothing is behind");
    }
}
