//! A file's packets in the order of their stamps, as far as they are not far apart.

use crate::copies::fingerprint;
use dragstrip_capture::read::{Packet, STAMP_MAX_NS};
use std::collections::VecDeque;

/// Packets held back for reordering.
const HELD: usize = 256;
/// Number of late packets in a row that indicate a clock set back, not packets written late; with the stamps of the
/// file's first packets they are a repetition of the file.
const STEP: usize = 64;
/// Number of the file's first packets that indicate a repetition if the file ends before the others.
const REPEAT_MIN: usize = 8;

/// Puts packets in order.
#[derive(Debug, Default)]
pub struct Order {
    held: VecDeque<Packet>,
    /// Late packets in a row, in the file's order, until they are classified.
    behind: Vec<Packet>,
    /// The file's first packets: stamp and content.
    first: Vec<(i64, u64)>,
    /// All of `behind` repeat the file's first packets.
    repeats: bool,
    /// Everything up to this stamp of the file is there already.
    passed_until: Option<i64>,
    /// The latest stamp so far, as the file has it and as it is handed on.
    latest_file: i64,
    latest: Option<i64>,
    released: i64,
    shift_ns: i64,
    ended: bool,
    /// Packets with a stamp before that of a packet before them.
    pub disorder: u64,
    /// Times that the clock was set back.
    pub steps: u64,
    /// Packets left out because the file holds them twice, with the same stamps.
    pub repeated: u64,
}

impl Order {
    /// Takes the next of the file.
    pub fn push(&mut self, packet: Packet) {
        let stamp = packet.time_ns;
        if self.is_passed(stamp) {
            self.repeated += 1;
            return;
        }
        self.passed_until = None;
        let ahead = self.latest.is_none_or(|latest| self.shifted(stamp) >= latest);
        if ahead && self.behind.is_empty() {
            if self.first.len() < STEP {
                self.first.push((stamp, fingerprint(&packet)));
            }
            self.accept(packet);
            return;
        }
        let place = self.behind.len();
        self.repeats = (place == 0 || self.repeats)
            && self.first.get(place) == Some(&(stamp, fingerprint(&packet)));
        if ahead && !self.repeats {
            self.settle();
            self.accept(packet);
            return;
        }
        self.behind.push(packet);
        if self.repeats && self.behind.len() == self.first.len() {
            self.pass_over();
        } else if self.behind.len() == STEP {
            self.step();
        }
    }

    /// True when the file contains this stamp for the second time.
    pub fn is_passed(&self, stamp: i64) -> bool {
        self.passed_until.is_some_and(|until| stamp <= until)
    }

    fn shifted(&self, stamp: i64) -> i64 {
        stamp.saturating_add(self.shift_ns).min(STAMP_MAX_NS)
    }

    /// Accepts a packet in order.
    fn accept(&mut self, mut packet: Packet) {
        self.latest_file = self.latest_file.max(packet.time_ns);
        packet.time_ns = self.shifted(packet.time_ns);
        self.latest = Some(packet.time_ns);
        self.held.push_back(packet);
    }

    /// Classifies the late packets as written late.
    fn settle(&mut self) {
        for mut packet in std::mem::take(&mut self.behind) {
            packet.time_ns = self.shifted(packet.time_ns);
            self.disorder += 1;
            let at = self.held.partition_point(|buffered| buffered.time_ns <= packet.time_ns);
            self.held.insert(at, packet);
        }
    }

    /// Classifies the late packets as a repetition of the file, which begins again.
    fn pass_over(&mut self) {
        self.repeated += self.behind.len() as u64;
        self.behind.clear();
        self.passed_until = Some(self.latest_file);
    }

    /// Classifies the late packets as following a clock set back.
    fn step(&mut self) {
        let behind = std::mem::take(&mut self.behind);
        if let (Some(first), Some(latest)) = (behind.first(), self.latest) {
            self.steps += 1;
            self.shift_ns = self.shift_ns.saturating_add(latest - self.shifted(first.time_ns));
        }
        for packet in behind {
            if self.latest.is_none_or(|latest| self.shifted(packet.time_ns) >= latest) {
                self.settle();
                self.accept(packet);
            } else {
                self.behind.push(packet);
            }
        }
        self.repeats = false;
    }

    /// No more will come.
    pub fn end(&mut self) {
        if self.repeats && self.behind.len() >= REPEAT_MIN {
            self.pass_over();
        }
        self.settle();
        self.ended = true;
    }

    /// True when the next packet cannot be determined before more is read.
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
        let stamps = times(&mut order);
        assert!(stamps.is_sorted());
        assert_eq!((order.disorder, order.steps), (0, 1));
        assert_eq!(stamps[1_999] - stamps[1_063], 936, "intervals after the step are kept");
    }

    #[test]
    fn a_clock_set_back_by_a_century_twice_stays_among_the_stamps() {
        let century = 4_294_967_295_000_000_000;
        let mut order = pushed((0..6).flat_map(|back| [century * (1 - back % 2); 100]));
        assert_eq!(times(&mut order).last(), Some(&STAMP_MAX_NS));
        assert_eq!(order.steps, 2, "from the limit on nothing is behind");
    }

    fn packets(times: impl IntoIterator<Item = i64>) -> Vec<Packet> {
        let numbered = times.into_iter().enumerate();
        numbered
            .map(|(seq, time_ns)| Packet { time_ns, seq: seq as u32, ..Packet::default() })
            .collect()
    }

    #[test]
    fn a_file_appended_to_itself_is_read_once() {
        for count in [2, 6, 64, 500] {
            let once = packets((0..count).map(|time| 1_000 + 3 * time));
            let mut order = Order::default();
            for packet in once.iter().chain(&once).chain(&once) {
                order.push(*packet);
            }
            order.end();
            let remaining: Vec<Packet> = std::iter::from_fn(|| order.pop()).collect();
            assert_eq!((remaining, order.repeated), (once, 2 * count as u64), "{count}");
            assert_eq!((order.disorder, order.steps), (0, 0));
        }
    }

    #[test]
    fn packets_after_a_repeated_part_are_read() {
        let all = packets((0..300).map(|time| 1_000 + time));
        let mut order = Order::default();
        for packet in all[..200].iter().chain(&all) {
            order.push(*packet);
        }
        order.end();
        let remaining: Vec<Packet> = std::iter::from_fn(|| order.pop()).collect();
        assert_eq!((remaining, order.repeated), (all, 200));
    }

    #[test]
    fn a_single_late_packet_is_not_a_repetition() {
        let mut order = pushed([10, 20, 5, 30]);
        assert_eq!((times(&mut order), order.disorder), (vec![5, 10, 20, 30], 1));
        assert_eq!((order.repeated, order.steps), (0, 0));
    }

    #[test]
    fn packets_after_a_step_keep_their_order_among_those_before_it() {
        let mut order = Order::default();
        for packet in packets((0..300).map(|time| 1_000_000 + time).chain(0..300)) {
            order.push(packet);
        }
        order.end();
        let seqs: Vec<u32> = std::iter::from_fn(|| order.pop()).map(|packet| packet.seq).collect();
        assert!(seqs.is_sorted(), "none after the step is placed before it");
    }
}
