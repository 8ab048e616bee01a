//! Changes to a queue that holds packets, each against what the kernel's function does.

use super::purge;
use crate::contract::{Change, Dequeue, DropReason, Item, PacketId, Qdisc};
use crate::model::common::{Book, arrivals, make};
use crate::testing::Log;
use crate::{Discipline, QdiscSpec, Streams, arbitrary::Scope};
use dragstrip_units::{Duration, Instant};
use proptest::prelude::*;

fn build(words: &str) -> Discipline {
    QdiscSpec::parse(words).unwrap().build(&Streams::of_link(1, "test"))
}

/// Ten frames of two flows in turn, at once.
fn filled(words: &str) -> (Discipline, Log) {
    let (mut queue, mut log) = (build(words), Log::default());
    for id in 0..10 {
        let item = Item { packet: PacketId(id), len: 1514, flow: id % 2, ..Item::default() };
        let _ = queue.enqueue(item, Instant::ZERO, &mut log);
    }
    assert_eq!((queue.backlog().packets, log.drops.len()), (10, 0), "{words}");
    (queue, log)
}

fn dropped(words: &str, change: Change) -> Vec<u32> {
    let (mut queue, mut log) = filled(words);
    queue.change(change, Instant::ZERO, &mut log);
    assert_eq!(queue.backlog().packets as usize + log.drops.len(), 10, "{words}");
    log.drops.iter().map(|(packet, _)| packet.0).collect()
}

fn times(queue: &mut Discipline, mut now: Instant) -> Vec<u64> {
    let (mut log, mut left) = (Log::default(), Vec::new());
    loop {
        match queue.dequeue(now, &mut log) {
            Dequeue::Packet(_) => left.push(now.as_micros_floor()),
            Dequeue::Wait(until) => now = until,
            Dequeue::Empty => return left,
        }
    }
}

#[test]
fn a_lower_limit_drops_what_the_kernels_change_drops() {
    let most = Change::LimitPackets(7);
    // At the next enqueue: `fifo_init`, `netem_change`.
    for words in ["pfifo limit 100", "netem limit 100 delay 1s"] {
        assert!(dropped(words, most).is_empty(), "{words}");
    }
    assert!(dropped("bfifo limit 1mb", Change::LimitBytes(3000)).is_empty());
    // The oldest, or who is next.
    for words in ["codel limit 100", "pie limit 100"] {
        assert_eq!(dropped(words, most), [0, 1, 2], "{words}");
    }
    for words in ["fq_codel limit 100 quantum 1514", "fq_pie limit 100 quantum 1514"] {
        assert_eq!(dropped(words, most), [0, 1, 2], "{words}");
    }
    assert_eq!(dropped("fq limit 100", most), [0, 2, 4]);
    assert_eq!(dropped("dualpi2 limit 100", most), [0, 1, 2]);
    // `sfq_qdisc_ops` has no change.
    assert!(dropped("sfq limit 100", most).is_empty());
    // A ring of 8 places holds 7; one of 128 still does for 64 and up.
    assert_eq!(dropped("choke limit 100 bandwidth 10mbit", most), [9, 8, 7]);
    let smaller = Change::LimitPackets(70);
    assert!(dropped("choke limit 100 bandwidth 10mbit", smaller).is_empty());
    // RED's queue is another one.
    let red = dropped("red limit 400000 avpkt 1000", Change::LimitBytes(300_000));
    assert_eq!(red, (0..10).collect::<Vec<_>>());
    // At the next enqueue: `cake_change` sets the memory.
    assert!(dropped("cake", Change::LimitBytes(3000)).is_empty());
    // `sfb_change` purges the queue.
    assert_eq!(dropped("sfb limit 100", most), (0..10).collect::<Vec<_>>());
    // Below shapers the leaf's.
    assert_eq!(dropped("htb rate 1mbit leaf codel limit 100", most), [0, 1, 2]);
    assert!(dropped("tbf rate 1mbit burst 1600 limit 1mb", Change::LimitBytes(1)).is_empty());
}

/// htb at 1 Mbit/s lets two frames go, and the third waits until the second is paid for (11.424 ms) at the rate that it left at;
/// from then on 6.056 ms each.
#[test]
fn what_has_left_an_htb_class_is_paid_for_at_the_old_rate() {
    let (mut queue, mut log) = filled("htb rate 1mbit leaf pfifo limit 100");
    for _ in 0..2 {
        assert!(matches!(queue.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(_)));
    }
    queue.change(Change::RateBps(2_000_000), Instant::from_nanos(5_000_000), &mut log);
    let departure_times = times(&mut queue, Instant::from_nanos(5_000_000));
    assert_eq!(departure_times[..3], [11_424, 17_480, 23_536]);
}

/// `tbf_change` fills the bucket.
#[test]
fn a_tbf_begins_a_new_rate_with_a_full_bucket() {
    let (mut queue, mut log) = filled("tbf rate 1mbit burst 1600 limit 1mb");
    assert!(matches!(queue.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(_)));
    queue.change(Change::RateBps(2_000_000), Instant::from_nanos(1_000_000), &mut log);
    let departure_times = times(&mut queue, Instant::from_nanos(1_000_000));
    // 86 bytes are left in the bucket of 1600.
    assert_eq!(departure_times[..3], [1_000, 6_712, 12_768]);
}

/// At 8 Mbit/s a frame takes 1514 us. The clock that the second set stands; from the third on they take twice as long.
#[test]
fn cake_goes_on_from_where_its_clock_stands() {
    let (mut queue, mut log) = filled("cake bandwidth 8mbit");
    for us in [0, 1_514] {
        let at = Instant::from_nanos(us * 1_000);
        assert!(matches!(queue.dequeue(at, &mut log), Dequeue::Packet(_)));
    }
    let now = Instant::from_nanos(2_000_000);
    queue.change(Change::RateBps(4_000_000), now, &mut log);
    assert_eq!(times(&mut queue, now)[..4], [3_028, 6_056, 9_084, 12_112]);
    assert!(log.drops.is_empty());
}

/// Ten frames of 2304 bytes of memory; with room for five, the eleventh makes six of the longest queues go.
#[test]
fn less_memory_for_cake_shows_when_the_next_packet_comes() {
    let (mut queue, mut log) = filled("cake bandwidth 8mbit");
    queue.change(Change::LimitBytes(5 * 2304), Instant::ZERO, &mut log);
    assert_eq!((queue.backlog().packets, log.drops.len()), (10, 0));
    let item = Item { packet: PacketId(10), len: 1514, flow: 2, ..Item::default() };
    let _ = queue.enqueue(item, Instant::ZERO, &mut log);
    assert_eq!((queue.backlog().packets, log.drops.len()), (5, 6));
    assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Overlimit));
    // An unlimited one has no rate that could be another; nor has any a number of packets.
    let spec = |words| QdiscSpec::parse(words).unwrap();
    assert_eq!(spec("cake").changed(Change::RateBps(1_000_000)), None);
    let slower = spec("cake bandwidth 8mbit").changed(Change::RateBps(4_000_000));
    assert_eq!(slower, Some(spec("cake bandwidth 4mbit")));
    assert_eq!(spec("cake").changed(Change::LimitPackets(100)), None);
}

/// netem's packets stay where they are; one that is delayed less overtakes them.
#[test]
fn a_shorter_delay_lets_packets_overtake() {
    let (mut queue, mut log) = (build("netem delay 100ms"), Log::default());
    let frame = |id| Item { packet: PacketId(id), len: 1514, ..Item::default() };
    let _ = queue.enqueue(frame(0), Instant::ZERO, &mut log);
    queue.change(Change::DelayNs(20_000_000), Instant::ZERO, &mut log);
    let _ = queue.enqueue(frame(1), Instant::ZERO, &mut log);
    queue.change(Change::Loss(1.0), Instant::ZERO, &mut log);
    let _ = queue.enqueue(frame(2), Instant::ZERO, &mut log);
    queue.change(Change::Loss(0.0), Instant::ZERO, &mut log);
    let _ = queue.enqueue(frame(3), Instant::ZERO, &mut log);
    assert_eq!(log.drops, [(PacketId(2), DropReason::Loss)]);
    let mut order = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        match queue.dequeue(now, &mut log) {
            Dequeue::Packet(item) => order.push((item.packet.0, now.as_micros_floor())),
            Dequeue::Wait(until) => now = until,
            Dequeue::Empty => break,
        }
    }
    assert_eq!(order, [(1, 20_000), (3, 20_000), (0, 100_000)]);
}

/// Values that a scenario may name, of any size.
fn changes() -> impl Strategy<Value = Change> {
    let size = prop_oneof![0_u64..100, 0_u64..200_000, any::<u64>()];
    prop_oneof![
        (8_u64..1_000_000_000_000).prop_map(Change::RateBps),
        size.clone().prop_map(Change::LimitBytes),
        size.clone().prop_map(|size| Change::LimitPackets(size.min(u64::from(u32::MAX)) as u32)),
        size.prop_map(Change::DelayNs),
        (0.0..=1.0).prop_map(Change::Loss),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    /// Whatever changes while packets wait, each of them is accounted for; and the configuration knows what the model does not.
    #[test]
    fn every_packet_is_accounted_for_when_settings_change(
        spec in QdiscSpec::arbitrary(Scope::Anything),
        arrivals in arrivals(120),
        changes in prop::collection::vec((changes(), 0_usize..120), 1..8),
        requests in prop::collection::vec(0_u8..3, 1..60),
        ends: bool,
        seed: u64,
    ) {
        let mut qdisc = make(&spec, seed);
        let mut book = Book::default();
        let mut now = Instant::ZERO;
        for (index, arrival) in arrivals.iter().enumerate() {
            now += arrival.gap;
            book.arrives(&mut qdisc, arrival.item, now);
            for (change, _) in changes.iter().filter(|(_, at)| *at == index) {
                if spec.changed(*change).is_some() {
                    book.changes(&mut qdisc, *change, now);
                }
            }
            for _ in 0..requests[index % requests.len()] {
                book.asks(&mut qdisc, now, false);
            }
        }
        if ends {
            book.purged(&mut qdisc, now);
        }
        while qdisc.backlog().packets > 0 {
            match book.asks(&mut qdisc, now, false) {
                Dequeue::Wait(until) => now = until,
                Dequeue::Packet(_) | Dequeue::Empty => now += Duration::from_nanos(1),
            }
        }
    }
}

#[test]
fn a_device_that_goes_down_loses_everything() {
    let (mut queue, mut log) = filled("htb rate 1mbit leaf codel limit 100");
    purge(&mut queue, Instant::ZERO, &mut log);
    assert_eq!(queue.backlog().packets, 0);
    assert!(log.drops.iter().all(|(_, reason)| *reason == DropReason::Down));
    assert_eq!((log.drops.len(), log.marks.len()), (10, 0));
}
