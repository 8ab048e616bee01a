//! Closed forms of the kernel's arithmetic.

use super::{BINS, Bin, Bins, CERTAIN, Fate, LEVELS, Sfb, fate};
use crate::QdiscSpec;
use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Verdict};
use crate::disciplines::{Discipline, Streams};
use crate::testing::Log;
use dragstrip_units::{Duration, Instant, Stream};

fn sfb(words: &str) -> Sfb {
    let spec = QdiscSpec::parse(&format!("sfb {words}")).unwrap();
    let Discipline::Sfb(sfb) = spec.build(&Streams::of_link(1, "test")) else { panic!("sfb") };
    *sfb
}

fn frame(id: u32, flow: u32) -> Item {
    Item { packet: PacketId(id), len: 1514, flow, ..Item::default() }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Reports for each of `count` frames of a flow whether it is admitted.
fn admitted(sfb: &mut Sfb, flow: u32, count: u32, now: Instant) -> Vec<bool> {
    let mut log = Log::default();
    let mut admits = |id| matches!(sfb.enqueue(frame(id, flow), now, &mut log), Verdict::Queued);
    (0..count).map(&mut admits).collect()
}

/// The least of packets and of probabilities in a flow's bins.
fn state(sfb: &mut Sfb, flow: u32) -> (u16, u16) {
    let set = &mut sfb.sets[sfb.active];
    let hash = set.hash(flow);
    let least = (u16::MAX, CERTAIN);
    set.of(hash).fold(least, |least, bin| (least.0.min(bin.packets), least.1.min(bin.probability)))
}

/// tc's increment and decrement are 33 and 3 of 65535: full bins are certain after 1986 packets, empty ones at nothing after 21845.
#[test]
fn probability_climbs_on_full_bins_and_falls_on_empty_ones() {
    let config = sfb("").config;
    assert_eq!((config.increment, config.decrement), (33, 3));
    let mut bins = Bins::new(&mut Stream::named(1, "test"));
    let hash = bins.hash(7);
    (0..20).for_each(|_| bins.enter(hash));
    for arrival in 1..1986 {
        assert_eq!(bins.learn(hash, &config), (20, 33 * arrival));
    }
    assert_eq!(bins.learn(hash, &config), (20, CERTAIN));
    assert_eq!(bins.learn(hash, &config), (20, CERTAIN));
    // Between empty and full nothing changes.
    bins.leave(hash);
    assert_eq!(bins.learn(hash, &config), (19, CERTAIN));
    (0..19).for_each(|_| bins.leave(hash));
    for arrival in 1..21_845_u16 {
        assert_eq!(bins.learn(hash, &config), (0, CERTAIN - 3 * arrival));
    }
    assert_eq!(bins.learn(hash, &config), (0, 0));
    assert_eq!(bins.learn(hash, &config), (0, 0));
}

/// Four bits of the hash each, the lowest first.
#[test]
fn a_hash_names_a_bin_of_each_level() {
    let mut bins = Bins::new(&mut Stream::named(1, "test"));
    bins.enter(0x7654_3210);
    let occupied_bins: Vec<(usize, usize)> = (0..LEVELS)
        .flat_map(|level| (0..BINS).map(move |bin| (level, bin)))
        .filter(|&(level, bin)| bins.levels[level][bin] == Bin { packets: 1, probability: 0 })
        .collect();
    assert_eq!(occupied_bins, (0..8).map(|level| (level, level)).collect::<Vec<_>>());
}

/// At 40000 of 65535: whatever can be drawn, 14466 drop, 25534 mark.
#[test]
fn above_one_half_twice_the_excess_is_dropped() {
    let count = |probability, wanted| {
        (0..=u16::MAX).filter(|&drawn| fate(drawn, probability) == wanted).count()
    };
    for (probability, drops, marks) in
        [(0, 0, 0), (20_000, 0, 20_000), (32_767, 0, 32_767), (40_000, 14_466, 25_534)]
    {
        assert_eq!(count(probability, Fate::Drop), drops);
        assert_eq!(count(probability, Fate::Mark), marks);
        assert_eq!(count(probability, Fate::Pass), 65_536 - drops - marks);
    }
}

/// As often as p says: 9830 of 65535 of 20,000 are 3000, with a standard deviation of 50.
#[test]
fn packets_are_marked_or_dropped_as_often_as_p_says() {
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let (mut sfb, mut log) = (sfb("increment 0 decrement 0"), Log::default());
        let hash = sfb.sets[0].hash(1);
        sfb.sets[0].of(hash).for_each(|bin| bin.probability = 9_830);
        for id in 0..20_000 {
            let verdict = sfb.enqueue(Item { ecn, ..frame(id, 1) }, at(0), &mut log);
            if let Verdict::Marked = verdict {
                assert!(marks);
            }
            let _ = sfb.dequeue(at(0), &mut log);
        }
        let (marked, dropped) = (log.marks.len(), log.drops.len());
        let signals = if marks { marked } else { dropped };
        assert_eq!(marked + dropped, signals);
        assert!(signals.abs_diff(3_000) < 200, "{signals}");
    }
}

/// A flow that nothing leaves of has 25 packets in the queue, another one room; and the queue its limit.
#[test]
fn a_bin_has_room_for_max_packets() {
    let mut sfb = sfb("increment 0 limit 60");
    let first = admitted(&mut sfb, 1, 40, at(0));
    assert_eq!(first, [[true; 25].as_slice(), &[false; 15]].concat());
    assert_eq!(state(&mut sfb, 1), (25, 0));
    assert!(admitted(&mut sfb, 2, 25, at(0)).iter().all(|&admitted| admitted));
    assert_eq!(admitted(&mut sfb, 3, 12, at(0)), [[true; 10].as_slice(), &[false; 2]].concat());
    let mut log = Log::default();
    let _ = sfb.enqueue(frame(0, 3), at(0), &mut log);
    assert_eq!(log.drops, [(PacketId(0), DropReason::Overlimit)]);
    // In the order in which they came, and the bins count down.
    let mut flows = Vec::new();
    while let Dequeue::Packet(item) = sfb.dequeue(at(0), &mut log) {
        flows.push(item.flow);
    }
    assert_eq!(flows, [[1; 25].as_slice(), &[2; 25], &[3; 10]].concat());
    assert_eq!(state(&mut sfb, 1), (0, 0));
}

/// Certain at once: after the first, 20 packets use the tokens, then nobody passes; at 10 a second a tick of 4 ms earns nothing, and
/// who asks meanwhile loses what time has passed.
#[test]
fn inelastic_flows_pass_at_the_penalty_rate() {
    let mut sfb = sfb("increment 1 target 1 max 100");
    assert_eq!(admitted(&mut sfb, 1, 30, at(0)), [[true; 21].as_slice(), &[false; 9]].concat());
    for (ms, passes) in [(96, 0), (192, 0), (290, 0), (392, 1), (1_392, 10), (60_000, 20)] {
        let passed = admitted(&mut sfb, 1, 30, at(ms)).into_iter().filter(|&passed| passed);
        assert_eq!(passed.count(), passes, "{ms}");
    }
    // Another flow is not in that box, but for its second packet.
    assert_eq!(admitted(&mut sfb, 2, 2, at(60_000)), [true, false]);
    let mut none = self::sfb("increment 1 target 1 max 100 penalty_rate 0");
    assert_eq!(admitted(&mut none, 1, 3, at(0)), [true, false, false]);
}

/// The hash changes at the first packet later than a second; what is inelastic in the last 400 ms is so from the first packet on.
#[test]
fn the_next_bins_learn_before_their_turn() {
    for (db, least) in [(0, (0, 0)), (400, (3, CERTAIN))] {
        let mut sfb = sfb(&format!("rehash 1000 db {db} increment 1 target 1 max 100"));
        assert_eq!(admitted(&mut sfb, 1, 2, at(0)), [true; 2]);
        // Not yet: 600 ms are not later than 600 ms.
        assert_eq!(admitted(&mut sfb, 1, 4, at(600)), [true; 4]);
        assert!(!sfb.warming);
        assert_eq!(admitted(&mut sfb, 1, 3, at(604)), [true; 3]);
        assert_eq!((sfb.active, sfb.warming), (0, db > 0));
        sfb.take_turns(at(1_000));
        assert_eq!((sfb.active, state(&mut sfb, 1)), (0, (9, CERTAIN)));
        sfb.take_turns(at(1_004));
        assert_eq!((sfb.active, sfb.warming), (1, false));
        assert_eq!(state(&mut sfb, 1), least);
        // All leave, whatever hash they came by.
        while let Dequeue::Packet(_) = sfb.dequeue(at(1_004), &mut Log::default()) {}
        let packets = sfb.sets.iter().flat_map(|set| set.levels.iter().flatten());
        assert!(packets.clone().all(|bin| bin.packets == 0));
    }
}

#[test]
fn without_rehash_the_bins_stay() {
    let mut sfb = sfb("rehash 0 db 0");
    sfb.take_turns(at(10_000_000));
    assert_eq!((sfb.active, sfb.warming), (0, false));
}
