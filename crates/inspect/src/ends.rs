//! Captures at both ends of a connection, measured by the rules of SPP and tcpstat, which CAIA's reports were measured with.
//!
//! SPP (Synthetic Packet Pairs; Zander and Armitage, CAIA 2013; `record.c`, `pair.c` of 0.4) takes two captures, here the sender's and the
//! receiver's. A packet is the same in both if its identification, numbers, flags and window are; the copies match in order. A pair is the
//! last packet seen at the receiver before one of the other direction, and the first such one; each packet is used once. What passes
//! between the two at the receiver is taken off, so that no clocks need to agree. tcpstat counts the bytes of IP packets in intervals
//! from the first packet on.
//!
//! One rule differs. "Before" is an earlier microsecond to SPP; here it is an earlier place in the receiver's capture. A simulated host
//! answers in no time, where a real one takes some microseconds: SPP would pair each ACK with the segment in front of the one it answers.

use dragstrip_capture::read::Packet;
use dragstrip_recording::TCPSTAT_NS;
use std::collections::{BTreeMap, VecDeque};

/// A packet that is seen as much later at the other end as this is another one (`-d`, 60 s, and 1).
const APART_US_MAX: u64 = 61_000_000;

/// The end at which a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The source of the connection's data.
    Sender,
    /// The destination of the data.
    Receiver,
}

/// A packet's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the receiver.
    Out,
    /// To the sender.
    Back,
}

/// A round trip from the sender to the receiver and back, in microseconds as captures have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// The middle of it by the sender's clock.
    pub time_us: i64,
    /// Duration without the receiver's processing time.
    pub rtt_us: i64,
    /// The receiver's time, from one packet to the other.
    pub processing_us: i64,
}

/// Fields that distinguish packets of one direction: identification, sequence and acknowledgement numbers, flags,
/// window.
type Print = (Option<u16>, u32, u32, u16, u16);

/// Packets of one way.
#[derive(Debug, Default)]
struct Matched {
    /// Stamps that only one end has shown so far, the receiver's with their number there.
    waiting: [BTreeMap<Print, VecDeque<(i64, u32)>>; 2],
    both: Vec<Record>,
}

/// A packet that both ends have shown: its place in the receiver's capture, and its stamps at sender and receiver.
type Record = (u32, [i64; 2]);

impl Matched {
    fn take(&mut self, end: End, packet: &Packet, number: u32) {
        let print = (packet.ip_id, packet.seq, packet.ack, packet.flags, packet.window);
        let (this_end, other_end) = (end as usize, 1 - end as usize);
        let stamp = (packet.time_ns.div_euclid(1_000), number);
        let counterpart_entry =
            self.waiting[other_end].get_mut(&print).and_then(VecDeque::pop_front);
        let Some(counterpart) = counterpart_entry else {
            self.waiting[this_end].entry(print).or_default().push_back(stamp);
            return;
        };
        if self.waiting[other_end].get(&print).is_some_and(VecDeque::is_empty) {
            self.waiting[other_end].remove(&print);
        }
        let [near, far] = if this_end == 0 { [stamp, counterpart] } else { [counterpart, stamp] };
        if near.0.abs_diff(far.0) <= APART_US_MAX {
            self.both.push((far.1, [near.0, far.0]));
        }
    }

    /// In the order in which the receiver's end has shown them.
    fn records(mut self) -> Vec<Record> {
        self.both.sort_unstable();
        self.both
    }
}

/// A connection at both its ends.
#[derive(Debug, Default)]
pub struct Ends {
    out: Matched,
    back: Matched,
    /// Packets that the receiver's end has shown.
    seen: u32,
    tcpstat: Tcpstat,
}

/// Bytes that arrive at the receiver's end, per interval.
#[derive(Debug, Default)]
struct Tcpstat {
    first_us: i64,
    bytes: Vec<u64>,
}

impl Tcpstat {
    fn take(&mut self, packet: &Packet) {
        let at_us = packet.time_ns.div_euclid(1_000);
        if self.bytes.is_empty() {
            self.first_us = at_us;
        }
        let interval = (at_us - self.first_us).max(0) as u64 * 1_000 / TCPSTAT_NS;
        let interval = interval as usize;
        if interval >= self.bytes.len() {
            self.bytes.resize(interval + 1, 0);
        }
        self.bytes[interval] += u64::from(packet.ip_bytes);
    }
}

impl Ends {
    /// A packet from the capture at an end; each capture in its order, sequentially or interleaved with the other.
    pub fn take(&mut self, end: End, way: Way, packet: &Packet) {
        if (end, way) == (End::Receiver, Way::Out) {
            self.tcpstat.take(packet);
        }
        let number = self.seen;
        self.seen += u32::from(end == End::Receiver);
        match way {
            Way::Out => self.out.take(end, packet, number),
            Way::Back => self.back.take(end, packet, number),
        }
    }

    /// Round trips by SPP; and by tcpstat the end of each interval (nanoseconds) and the bytes of IP packets that arrived in it.
    #[must_use]
    pub fn finish(self) -> (Vec<Trip>, Vec<(i64, u64)>) {
        let Tcpstat { first_us, bytes } = self.tcpstat;
        let end_of =
            |number: usize| first_us * 1_000 + (number as u64 + 1) as i64 * TCPSTAT_NS as i64;
        let intervals =
            bytes.into_iter().enumerate().map(|(number, bytes)| (end_of(number), bytes));
        (trips(&self.out.records(), &self.back.records()), intervals.collect())
    }
}

/// The pairs of records.
fn trips(out: &[Record], back: &[Record]) -> Vec<Trip> {
    let mut trips = Vec::new();
    let mut next = 0;
    for (place, answer) in back {
        let before = out[next..].iter().take_while(|record| record.0 < *place).count();
        let Some(last) = before.checked_sub(1).map(|last| out[next + last].1) else { continue };
        next += before;
        // SPP reports a pair when it has seen the packet after its first: the last one of a file never.
        if next == out.len() {
            break;
        }
        let interval_us = answer[0] - last[0];
        let processing_us = answer[1] - last[1];
        let rtt_us = (interval_us - processing_us).max(0);
        trips.push(Trip { time_us: answer[0] - interval_us / 2, rtt_us, processing_us });
    }
    trips
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet as both captures have it; the receiver's clock is 3.7 s ahead.
    fn packet(at_us: i64, number: u16, ip_bytes: u32) -> Packet {
        let time_ns = at_us * 1_000 + 999;
        Packet { time_ns, ip_id: Some(number), ip_bytes, ..Packet::default() }
    }

    const AHEAD_US: i64 = 3_700_000;
    const OUT: [(i64, i64); 6] = [
        (0, 10_000),
        (1_000, 12_000),
        (2_000, 14_000),
        (20_000, 32_000),
        (60_000, 71_000),
        (100_000, 111_000),
    ];
    const BACK: [(i64, i64); 3] = [(24_500, 14_500), (46_000, 33_000), (81_000, 71_500)];

    /// The round trips, and the receiver's time, of so many packets there and of all back.
    fn paired(there: usize, turned: bool) -> Vec<(i64, i64, i64)> {
        let mut all = Vec::new();
        for (way, records) in [(Way::Out, &OUT[..there]), (Way::Back, &BACK[..])] {
            let way = match (way, turned) {
                (Way::Out, false) | (Way::Back, true) => Way::Out,
                (Way::Out, true) | (Way::Back, false) => Way::Back,
            };
            for (number, (near, far)) in records.iter().enumerate() {
                let ends = if turned {
                    [End::Receiver, End::Sender]
                } else {
                    [End::Sender, End::Receiver]
                };
                all.push((ends[0], way, packet(*near, number as u16, 100)));
                all.push((ends[1], way, packet(*far + AHEAD_US, number as u16, 100)));
            }
        }
        all.sort_by_key(|(_, _, packet)| packet.time_ns);
        let mut ends = Ends::default();
        for (end, way, packet) in &all {
            ends.take(*end, *way, packet);
        }
        let trips = ends.finish().0;
        trips.iter().map(|trip| (trip.rtt_us, trip.processing_us, trip.time_us)).collect()
    }

    /// Output of spp 0.4.2 for these two files (`-# 511 -cp`).
    #[test]
    fn pairs_are_those_of_spp() {
        let three = [(22_000, 500, 13_250), (25_000, 1_000, 33_000), (20_500, 500, 70_500)];
        assert_eq!(paired(6, false), three);
        assert_eq!(paired(5, false), three[..2], "the last pair waits for a packet behind it");
    }

    /// With the receiver's capture as the reference there is one pair: the rest are answers to nothing.
    #[test]
    fn the_reference_capture_matters() {
        let reversed = paired(6, true);
        assert_eq!(
            reversed.iter().map(|trip| (trip.0, trip.1)).collect::<Vec<_>>(),
            [(24_000, 14_000)]
        );
    }

    #[test]
    fn an_answer_in_the_same_microsecond_is_one_to_what_stands_before_it() {
        let mut ends = Ends::default();
        for (end, way, at, number) in [
            (End::Receiver, Way::Out, 11_000, 1),
            (End::Receiver, Way::Out, 13_000, 2),
            (End::Receiver, Way::Back, 13_000, 9),
            (End::Receiver, Way::Out, 15_000, 3),
            (End::Sender, Way::Out, 0, 1),
            (End::Sender, Way::Out, 1_000, 2),
            (End::Sender, Way::Out, 2_000, 3),
            (End::Sender, Way::Back, 23_000, 9),
        ] {
            ends.take(end, way, &packet(at, number, 100));
        }
        let trip = Trip { time_us: 12_000, rtt_us: 22_000, processing_us: 0 };
        assert_eq!(ends.finish().0, [trip]);
    }

    #[test]
    fn a_lost_packet_and_one_that_comes_twice_pair_with_nothing() {
        let mut ends = Ends::default();
        for (end, way, at, number) in [
            (End::Sender, Way::Out, 0, 1),
            (End::Sender, Way::Out, 1_000, 2),
            (End::Receiver, Way::Out, 11_000, 2),
            (End::Receiver, Way::Out, 11_500, 2),
            (End::Receiver, Way::Back, 12_000, 9),
            (End::Sender, Way::Back, 22_000, 9),
            (End::Receiver, Way::Out, 90_000, 3),
            (End::Sender, Way::Out, 80_000, 3),
            (End::Sender, Way::Out, 80_500, 4),
            (End::Receiver, Way::Out, 80_500 + 62_000_000, 4),
        ] {
            ends.take(end, way, &packet(at, number, 100));
        }
        let (trips, _) = ends.finish();
        assert_eq!(trips, [Trip { time_us: 11_500, rtt_us: 20_000, processing_us: 1_000 }]);
    }

    #[test]
    fn bytes_are_counted_in_intervals_from_the_first_packet() {
        let mut ends = Ends::default();
        for (at_us, way) in [
            (500_000, Way::Out),
            (600_000, Way::Back),
            (1_499_999, Way::Out),
            (3_500_000, Way::Out),
        ] {
            ends.take(End::Receiver, way, &packet(at_us, 1, 1_500));
            ends.take(End::Sender, way, &packet(at_us, 1, 1_500));
        }
        let seconds = [
            (1_500_000_000, 3_000),
            (2_500_000_000, 0),
            (3_500_000_000, 0),
            (4_500_000_000, 1_500),
        ];
        assert_eq!(ends.finish().1, seconds);
    }
}
