//! The ACK filter: acknowledgements in a queue that a newer one makes superfluous (`cake_ack_filter`).
//!
//! Only pure ones go: nothing but ACK, ECE and CWR set, no payload, acknowledging no more than the newer one, with no later time
//! stamps and with no SACK block that the newer one lacks. A DSACK always stays. Where ECE or CWR change between two of them the
//! earlier one stays too, for it says something of its own.

use crate::arena::{Arena, Queue};
use crate::contract::Sink;
use dragstrip_packet::{Flags, Segment};
use std::cmp::Ordering;

/// The place of the packet to remove, now that the queue's last one has come.
pub(super) fn superfluous<T: Copy, S: Sink>(
    arena: &Arena<T>,
    queue: &Queue,
    aggressive: bool,
    sink: &S,
) -> Option<u32> {
    if queue.packets < 2 {
        return None;
    }
    let (last_place, last) = arena.last(queue)?;
    let newer = sink.segment(last.packet)?;
    if !newer.flags.has(Flags::ACK) || newer.flags.has(Flags::SYN) {
        return None;
    }
    let mut eligible: Option<(u32, Flags)> = None;
    let (mut found, mut before) = (0, None);
    for (place, item) in arena.iter(queue).take_while(|(place, _)| *place != last_place) {
        before = Some(place);
        if item.flow != last.flow {
            continue;
        }
        let Some(older) = sink.segment(item.packet) else { continue };
        if eligible.is_some_and(|(_, flags)| flags != echoes(older)) {
            eligible = None;
            found -= 1;
        }
        if !is_covered(older, newer) {
            continue;
        }
        eligible = eligible.or(Some((place, echoes(older))));
        found += 1;
        if found > 1 {
            return eligible.map(|(place, _)| place);
        }
    }
    let (place, flags) = eligible?;
    let adjacent = before == Some(place);
    (aggressive && adjacent && flags == echoes(newer)).then_some(place)
}

/// Its ECN flags.
fn echoes(segment: &Segment) -> Flags {
    segment.flags.only(Flags::ECE.with(Flags::CWR))
}

/// True when `older` is a pure acknowledgement whose content `newer` covers in full.
fn is_covered(older: &Segment, newer: &Segment) -> bool {
    let pure = older.flags.without(Flags::ECE.with(Flags::CWR)) == Flags::ACK && older.len == 0;
    if !pure || older.ack > newer.ack {
        return false;
    }
    if let Some(stamps) = older.timestamps() {
        let latest = newer.timestamps().unwrap_or_default();
        if is_after(stamps.val, latest.val) || is_after(stamps.ecr, latest.ecr) {
            return false;
        }
    }
    match sacks(older, newer) {
        Ordering::Less => true,
        Ordering::Equal => older.ack < newer.ack,
        Ordering::Greater => false,
    }
}

/// In 32 bits that run over.
const fn is_after(stamp: u32, other: u32) -> bool {
    (other.wrapping_sub(stamp) as i32) < 0
}

/// Compares the SACK blocks of `older` with those of `newer`; greater whenever it reports anything else
/// (`cake_tcph_sack_compare`).
fn sacks(older: &Segment, newer: &Segment) -> Ordering {
    match (older.has_sack(), newer.has_sack()) {
        (false, false) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (true, true) => {}
    }
    let mut old_bytes = 0;
    for block in older.sack() {
        let (start, end) = block.range(older.ack);
        if start < older.ack {
            return Ordering::Greater;
        }
        old_bytes += end - start;
        let has_it = newer.sack().any(|other| {
            let (first, last) = other.range(newer.ack);
            first <= start && last >= end
        });
        if !has_it {
            return Ordering::Greater;
        }
    }
    let new_bytes: u64 = newer.sack().map(|block| u64::from(block.bytes())).sum();
    if new_bytes > old_bytes { Ordering::Less } else { Ordering::Equal }
}

#[cfg(test)]
mod tests {
    use super::superfluous;
    use crate::arena::{Arena, Queue};
    use crate::contract::{Item, PacketId};
    use crate::testing::{Log, segment};
    use dragstrip_packet::{Flags, SackBlock, Segment, Timestamps};

    fn ack(ack: u64) -> Segment {
        segment(ack, 0, Flags::ACK)
    }

    fn with(mut segment: Segment, flags: Flags) -> Segment {
        segment.flags = segment.flags.with(flags);
        segment
    }

    fn stamped(mut segment: Segment, val: u32) -> Segment {
        segment.set_timestamps(Timestamps { val, ecr: 7 });
        segment
    }

    fn sacking(mut segment: Segment, blocks: &[(u64, u64)]) -> Segment {
        let relative = |&(start, end): &(u64, u64)| SackBlock::relative(segment.ack, start, end);
        let blocks: Vec<SackBlock> = blocks.iter().map(relative).collect();
        segment.set_sack(&blocks);
        segment
    }

    /// Returns the packet of one queue that is dropped on arrival of the last: with the normal filter, and with the
    /// aggressive one.
    fn goes(segments: &[(u32, Segment)]) -> [Option<usize>; 2] {
        let mut log = Log::default();
        let (mut arena, mut queue) = (Arena::new(), Queue::EMPTY);
        for (id, (flow, segment)) in segments.iter().enumerate() {
            log.segments.push(*segment);
            let packet = PacketId(id as u32);
            arena.push_back(&mut queue, Item { packet, flow: *flow, ..Item::default() }, ());
        }
        [false, true].map(|aggressive| {
            superfluous(&arena, &queue, aggressive, &log).map(|place| place as usize)
        })
    }

    fn of_one_flow<const N: usize>(segments: [Segment; N]) -> [Option<usize>; 2] {
        goes(&segments.map(|segment| (1, segment)))
    }

    #[test]
    fn the_oldest_of_two_goes_and_a_single_one_only_aggressively() {
        assert_eq!(of_one_flow([ack(10)]), [None, None]);
        assert_eq!(of_one_flow([ack(10), ack(20)]), [None, Some(0)]);
        assert_eq!(of_one_flow([ack(10), ack(20), ack(30)]), [Some(0), Some(0)]);
        // One that is not the neighbour of the newest stays.
        let data = segment(0, 100, Flags::ACK);
        assert_eq!(of_one_flow([ack(10), data, ack(20)]), [None, None]);
        // Data make acknowledgements superfluous too, and are none.
        let data_20 = segment(20, 100, Flags::ACK);
        assert_eq!(of_one_flow([ack(10), ack(15), data_20]), [Some(0), Some(0)]);
        assert_eq!(of_one_flow([data, data, ack(20)]), [None, None]);
    }

    #[test]
    fn other_flows_are_left_alone() {
        assert_eq!(goes(&[(1, ack(10)), (2, ack(10)), (2, ack(20))]), [None, Some(1)]);
        assert_eq!(goes(&[(1, ack(10)), (2, ack(5)), (1, ack(15)), (1, ack(20))]), [Some(0); 2]);
    }

    #[test]
    fn what_says_something_of_its_own_stays() {
        let two = |older: Segment, newer| of_one_flow([older, older, newer])[0];
        assert_eq!(two(ack(10), ack(20)), Some(0));
        assert_eq!(two(ack(30), ack(20)), None, "acknowledges more");
        assert_eq!(two(ack(20), ack(20)), None, "a duplicate");
        for flag in [Flags::FIN, Flags::RST, Flags::PSH, Flags::AE] {
            assert_eq!(two(with(ack(10), flag), ack(20)), None, "{flag:?}");
        }
        assert_eq!(two(stamped(ack(10), 5), stamped(ack(20), 5)), Some(0));
        assert_eq!(two(stamped(ack(10), 6), stamped(ack(20), 5)), None, "stamped later");
        assert_eq!(two(stamped(ack(10), u32::MAX), stamped(ack(20), 5)), Some(0), "run over");
        assert_eq!(two(ack(10), with(ack(20), Flags::SYN)), None, "not yet connected");
    }

    #[test]
    fn sack_blocks_have_to_be_in_the_newer_one() {
        let two = |older: &[(u64, u64)], at, newer: &[(u64, u64)]| {
            let older = sacking(ack(10), older);
            of_one_flow([older, older, sacking(ack(at), newer)])[0]
        };
        assert_eq!(two(&[(20, 30)], 10, &[(20, 40)]), Some(0));
        assert_eq!(two(&[(20, 30)], 10, &[(20, 30)]), None, "as much at the same point");
        assert_eq!(two(&[(20, 30)], 15, &[(20, 30)]), Some(0));
        assert_eq!(two(&[(20, 30)], 40, &[]), None);
        assert_eq!(two(&[], 10, &[(20, 30)]), Some(0));
        assert_eq!(two(&[(20, 30), (50, 60)], 15, &[(20, 30)]), None);
        assert_eq!(two(&[(20, 30), (50, 60)], 15, &[(45, 60), (20, 30)]), Some(0));
        assert_eq!(two(&[(5, 8), (20, 30)], 15, &[(20, 40)]), None, "a DSACK");
    }

    #[test]
    fn a_change_of_the_echo_keeps_the_last_before_it() {
        let echo = |at| with(ack(at), Flags::ECE);
        assert_eq!(of_one_flow([ack(10), echo(20), echo(30)]), [None, Some(1)]);
        assert_eq!(of_one_flow([ack(10), echo(20), echo(30), echo(40)]), [Some(1), Some(1)]);
        assert_eq!(of_one_flow([ack(10), echo(20)]), [None, None]);
        assert_eq!(of_one_flow([echo(10), echo(15), ack(20)]), [Some(0), Some(0)]);
    }
}
