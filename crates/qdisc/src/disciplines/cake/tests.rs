//! Vectors: closed forms of the kernel's arithmetic, and what a Linux 6.1 did in virtual time where a test says so.

use super::{Cake, CakeSpec};
use crate::QdiscSpec;
use crate::contract::{Dequeue, DropReason, Dscp, Ecn, Hosts, Item, PacketId, Qdisc, Verdict};
use crate::disciplines::{Configuration, Discipline, Streams};
use crate::testing::{Log, segment};
use crate::truesize::truesize;
use dragstrip_packet::Flags;
use dragstrip_units::{Duration, Instant};

fn cake(words: &str) -> Box<Cake> {
    let spec = QdiscSpec::parse(&format!("cake {words}")).unwrap();
    let Discipline::Cake(cake) = spec.build(&Streams::of_link(1, "test")) else { panic!("cake") };
    cake
}

fn frame(id: u32, flow: u32) -> Item {
    Item { packet: PacketId(id), len: 1514, flow, ..Item::default() }
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// Returns the packets that leave from `now` to `until`, each with its time in microseconds.
fn served(qdisc: &mut Cake, mut now: Instant, until: Instant, log: &mut Log) -> Vec<(u32, u64)> {
    let mut departures = Vec::new();
    loop {
        match qdisc.dequeue(now, log) {
            Dequeue::Packet(item) => departures.push((item.packet.0, now.as_micros_floor())),
            Dequeue::Wait(next) if next <= until => now = next,
            Dequeue::Wait(_) | Dequeue::Empty => return departures,
        }
    }
}

fn ids(left: &[(u32, u64)]) -> Vec<u32> {
    left.iter().map(|(id, _)| *id).collect()
}

#[test]
fn the_shaper_has_no_burst_and_makes_good_what_left_late() {
    let (mut cake, mut log) = (cake("bandwidth 10mbit besteffort"), Log::default());
    let frame = |id, flow| Item { ecn: Ecn::Ect0, ..frame(id, flow) };
    for id in 0..6 {
        let _ = cake.enqueue(frame(id, 1), at(0), &mut log);
    }
    let departures = served(&mut cake, at(0), at(2_500), &mut log);
    assert_eq!(departures, [(0, 0), (1, 1_211), (2, 2_422)]);
    // Asked only at 6 ms: the two that were due since go at once, the next when it would have gone anyway.
    let departures = served(&mut cake, at(6_000), at(8_000), &mut log);
    assert_eq!(departures, [(3, 6_000), (4, 6_000), (5, 6_056)]);
    // After idling there is nothing to make good.
    for id in 6..8 {
        let _ = cake.enqueue(frame(id, 1), at(100_000), &mut log);
    }
    let departures = served(&mut cake, at(100_000), at(200_000), &mut log);
    assert_eq!(departures, [(6, 100_000), (7, 101_211)]);
}

#[test]
fn the_shaper_charges_for_the_framing() {
    let (mut cake, mut log) = (cake("bandwidth 8mbit besteffort pppoe-vcmux"), Log::default());
    for id in 0..3 {
        let _ = cake.enqueue(frame(id, 1), at(0), &mut log);
    }
    // 32 cells: 1696 bytes at a microsecond each.
    let departures = served(&mut cake, at(0), at(9_000), &mut log);
    assert_eq!(departures, [(0, 0), (1, 1_696), (2, 3_392)]);
}

/// Three flows of one host and one of another to one destination, all backlogged; as measured on a Linux 6.1: of 120 packets 30
/// each by flow, because the destination counts four; by source 20, 20, 20 and 60.
#[test]
fn hosts_share_before_their_flows_do() {
    let shares = |isolation: &str| {
        let mut cake = cake(&format!("bandwidth 10mbit besteffort {isolation}"));
        let mut log = Log::default();
        for id in 0..800 {
            let flow = id % 4;
            log.hosts.push(Hosts { source: 10 + flow / 3, destination: 7 });
            let _ = cake.enqueue(frame(id, flow), at(0), &mut log);
        }
        let mut counts = [0_i32; 4];
        for (id, _) in served(&mut cake, at(0), at(1_211 * 120), &mut log) {
            counts[id as usize % 4] += 1;
        }
        counts
    };
    let near = |counts: [i32; 4], wanted: [i32; 4]| {
        let most = counts.iter().zip(wanted).map(|(count, want)| (count - want).abs()).max();
        assert!(most <= Some(2), "{counts:?}");
    };
    for isolation in ["triple-isolate", "flows", "dual-dsthost"] {
        near(shares(isolation), [30, 30, 30, 30]);
    }
    near(shares("dual-srchost"), [20, 20, 20, 60]);
    near(shares("srchost"), [20, 20, 20, 60]);
}

#[test]
fn a_sparse_flow_goes_ahead_of_a_backlogged_one() {
    let (mut cake, mut log) = (cake("bandwidth 100mbit besteffort"), Log::default());
    for id in 0..6 {
        let _ = cake.enqueue(frame(id, 1), at(0), &mut log);
    }
    assert_eq!(ids(&served(&mut cake, at(0), at(122), &mut log)), [0, 1]);
    let _ = cake.enqueue(Item { len: 66, ..frame(10, 2) }, at(130), &mut log);
    assert_eq!(ids(&served(&mut cake, at(130), at(10_000), &mut log)), [10, 2, 3, 4, 5]);
}

/// Memory of 30,000 bytes holds 13 full frames of 2304: of thirty at once the first is on the line, and of the others the oldest
/// go. As measured on a Linux 6.1: 0, 17, 18 ... 29 come out.
#[test]
fn memory_runs_out_and_the_oldest_go() {
    let (mut cake, mut log) = (cake("bandwidth 1mbit besteffort memlimit 30000"), Log::default());
    let mut left = Vec::new();
    for id in 0..30 {
        let verdict = cake.enqueue(frame(id, 1), at(0), &mut log);
        let room =
            if id < 14 { Verdict::Queued } else { Verdict::DroppedOther(DropReason::Overlimit) };
        assert_eq!(verdict, room, "{id}");
        left.extend(served(&mut cake, at(0), at(0), &mut log));
    }
    assert_eq!(ids(&left), [0]);
    let dropped: Vec<u32> = log.drops.iter().map(|(packet, _)| packet.0).collect();
    assert_eq!(dropped, (1..17).collect::<Vec<_>>());
    assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Overlimit));
    assert_eq!(cake.memory, 13 * truesize(1514));
}

/// Whoever holds most loses, whichever tin it is in and whoever comes; and the heap stays right through 20,000 overflows.
#[test]
fn the_longest_queue_of_all_tins_loses() {
    let (mut cake, mut log) = (cake("bandwidth 100mbit diffserv4 memlimit 230400"), Log::default());
    let mut now = at(0);
    for id in 0..20_000_u32 {
        let flow = [1, 1, 1, 1, 2, 2, 3][id as usize % 7];
        let dscp = [Dscp::DEFAULT, Dscp::EF, Dscp::LE][flow as usize - 1];
        let _ = cake.enqueue(Item { dscp, ..frame(id, flow) }, now, &mut log);
        let longest = cake.flows.iter().flat_map(|tin| &tin.all).map(|flow| flow.queue.bytes).max();
        let before = log.drops.len();
        let _ = cake.enqueue(Item { dscp, ..frame(20_000 + id, flow) }, now, &mut log);
        for _ in before..log.drops.len() {
            // It had most before, or has become the longest with the packet that came.
            let after =
                cake.flows.iter().flat_map(|tin| &tin.all).map(|flow| flow.queue.bytes).max();
            assert!(after <= longest.map(|bytes| bytes + 1514));
        }
        if id % 3 == 0 {
            now += Duration::from_micros(122);
            let _ = cake.dequeue(now, &mut log);
        }
    }
    assert!(log.drops.len() > 10_000);
    let bytes: Vec<u64> =
        cake.flows.iter().flat_map(|tin| &tin.all).map(|flow| flow.queue.bytes).collect();
    let longest_queues = bytes.iter().filter(|bytes| **bytes > 0).count();
    // Two or three of them are equal but for a packet: nobody has room while another holds more.
    assert!(longest_queues >= 2, "{longest_queues}");
    assert!(cake.memory <= 230_400);
}

/// Voice within its quarter, bulk within its sixteenth, best effort with the rest.
#[test]
fn tins_have_their_part_of_the_rate_ahead_of_best_effort() {
    let (mut cake, mut log) = (cake("bandwidth 16mbit diffserv3 memlimit 15mb"), Log::default());
    let dscps = [Dscp::DEFAULT, Dscp::LE, Dscp::EF];
    for id in 0..4_500 {
        let dscp = dscps[id as usize % 3];
        let _ = cake.enqueue(Item { dscp, ecn: Ecn::Ect0, ..frame(id, id % 3) }, at(0), &mut log);
    }
    let mut counts = [0; 3];
    for (id, _) in served(&mut cake, at(0), at(757 * 1_600 - 1), &mut log) {
        counts[id as usize % 3] += 1;
    }
    // 1600 frames take 757 us each: 1/16 and 1/4 of them, and what is left.
    assert_eq!(counts.iter().sum::<i32>(), 1_600);
    assert!((counts[1] - 100).abs() <= 2 && (counts[2] - 400).abs() <= 2, "{counts:?}");
}

/// Without a shaper tins take turns by weight: 1024, 64 and 256.
#[test]
fn without_a_shaper_tins_take_turns_by_weight() {
    let (mut cake, mut log) = (cake("memlimit 15mb"), Log::default());
    let dscps = [Dscp::DEFAULT, Dscp::LE, Dscp::EF];
    for id in 0..4_500 {
        let _ =
            cake.enqueue(Item { dscp: dscps[id as usize % 3], ..frame(id, 1) }, at(0), &mut log);
    }
    let mut counts = [0; 3];
    for _ in 0..1_344 {
        let Dequeue::Packet(item) = cake.dequeue(at(0), &mut log) else { panic!("empty") };
        counts[item.packet.0 as usize % 3] += 1;
    }
    assert!((counts[0] - 1_024_i32).abs() < 8 && (counts[1] - 64_i32).abs() < 3, "{counts:?}");
}

/// COBALT drops from a queue that stands, but never its last packet.
#[test]
fn the_last_packet_of_a_queue_is_marked_and_not_dropped() {
    let run = |ecn| {
        let (mut cake, mut log) = (cake("bandwidth 1mbit besteffort"), Log::default());
        let mut left = 0;
        for id in 0..200 {
            // Each waits for 100 ms alone in its queue while the first flow of all is never served out.
            let now = at(u64::from(id) * 100_000);
            let _ = cake.enqueue(Item { ecn, ..frame(id, 2) }, now, &mut log);
            left += usize::from(matches!(
                cake.dequeue(now + Duration::from_millis(99), &mut log),
                Dequeue::Packet(_)
            ));
        }
        (left, log.drops.len(), log.marks.len())
    };
    assert_eq!(run(Ecn::NotEct), (200, 0, 0));
    let (left, dropped, marked) = run(Ecn::Ect0);
    assert_eq!((left, dropped), (200, 0));
    assert!(marked > 20, "{marked}");
}

/// At ingress what is dropped has used the line: as much time passes for it.
#[test]
fn at_ingress_drops_are_charged() {
    let run = |direction: &str| {
        let mut cake = cake(&format!("bandwidth 10mbit besteffort memlimit 15mb {direction}"));
        let mut log = Log::default();
        for id in 0..2_000 {
            let _ = cake.enqueue(frame(id, 1), at(0), &mut log);
        }
        let departure_count = served(&mut cake, at(0), at(1_211_200), &mut log).len();
        (departure_count, log.drops.len())
    };
    let (left, dropped) = run("egress");
    assert_eq!(left, 1_001);
    assert!(dropped > 50, "{dropped}");
    let (left, dropped) = run("ingress");
    assert!(dropped > 50 && (left + dropped).abs_diff(1_001) <= 1, "{left} {dropped}");
}

#[test]
fn superfluous_acknowledgements_are_dropped_as_filtered() {
    let run = |words: &str| {
        let mut cake = cake(&format!("bandwidth 1mbit besteffort {words}"));
        let mut log = Log::default();
        for id in 0..8 {
            let ack = 100 * u64::from(id);
            log.segments.push(segment(ack, 0, Flags::ACK));
            let verdict = cake.enqueue(Item { len: 66, ..frame(id, 1) }, at(0), &mut log);
            let dropped = Verdict::DroppedOther(DropReason::AckFilter);
            assert!(verdict == Verdict::Queued || verdict == dropped);
        }
        assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::AckFilter));
        ids(&served(&mut cake, at(0), at(100_000), &mut log))
    };
    assert_eq!(run(""), (0..8).collect::<Vec<_>>());
    assert_eq!(run("ack-filter"), [6, 7]);
    assert_eq!(run("ack-filter-aggressive"), [7]);
}

/// Washed packets go by the DSCP that they came with, and leave without.
#[test]
fn wash_clears_the_dscp() {
    #[derive(Default)]
    struct Washed(Log, Vec<PacketId>);
    impl crate::contract::Sink for Washed {
        fn dropped(&mut self, item: Item, reason: DropReason) {
            self.0.dropped(item, reason);
        }
        fn marked(&mut self, packet: PacketId) {
            self.0.marked(packet);
        }
        fn duplicated(&mut self, item: Item) -> Item {
            self.0.duplicated(item)
        }
        fn washed(&mut self, packet: PacketId) {
            self.1.push(packet);
        }
    }
    for (words, wanted) in [("wash", vec![PacketId(1)]), ("nowash", vec![])] {
        let (mut cake, mut sink) = (cake(&format!("bandwidth 1mbit {words}")), Washed::default());
        let _ = cake.enqueue(frame(0, 1), at(0), &mut sink);
        let _ = cake.enqueue(Item { dscp: Dscp::EF, ..frame(1, 2) }, at(0), &mut sink);
        assert_eq!(sink.1, wanted);
        let Dequeue::Packet(first) = cake.dequeue(at(0), &mut sink) else { panic!("empty") };
        assert_eq!(first.packet, PacketId(1));
        assert_eq!(first.dscp == Dscp::DEFAULT, words == "wash");
    }
}

/// A state that has not come to rest keeps its queue, and its count, until other packets have let it decay.
#[test]
fn an_emptied_queue_decays_in_the_turns_of_others() {
    let (mut cake, mut log) = (cake("bandwidth 10mbit besteffort"), Log::default());
    for id in 0..400 {
        let _ = cake.enqueue(Item { ecn: Ecn::Ect0, ..frame(id, 1) }, at(0), &mut log);
    }
    served(&mut cake, at(0), at(1_000_000), &mut log);
    let state = |cake: &Cake| {
        cake.flows[0].all.iter().filter(|flow| flow.set != super::Set::Unused).count()
    };
    let mut packets = 0;
    let mut now = at(1_000_000);
    // The first packet of another flow finds the queue empty; each of its turns takes at most one from the count.
    loop {
        let _ = cake.enqueue(frame(1_000 + packets, 2), now, &mut log);
        served(&mut cake, now, now, &mut log);
        packets += 1;
        now += Duration::from_millis(10);
        // The other flow's own queue is in turn until the next dequeue.
        if state(&cake) <= 1 {
            break;
        }
        assert!(packets < 1_000);
    }
    assert!(packets > 8, "{packets}");
}

#[test]
fn words_of_tc() {
    let spec = |words: &str| {
        let QdiscSpec::Cake(spec) = QdiscSpec::parse(&format!("cake {words}")).unwrap() else {
            panic!("cake")
        };
        spec
    };
    assert_eq!(spec(""), CakeSpec::default());
    assert_eq!(spec("bandwidth 20mbit unlimited"), CakeSpec::default());
    assert_eq!(spec("lan").rtt_ns, 1_000_000);
    assert_eq!(spec("diffserv").diffserv, super::Diffserv::Diffserv4);
    let framing = |words: &str| {
        let CakeSpec { raw, overhead_bytes, mpu_bytes, link_layer, .. } = spec(words);
        (raw, overhead_bytes, mpu_bytes, link_layer)
    };
    use super::LinkLayer::{Atm, Noatm, Ptm};
    assert_eq!(framing(""), (true, 0, 0, Noatm));
    assert_eq!(framing("overhead 0"), (false, 0, 0, Noatm));
    assert_eq!(framing("ethernet ether-vlan"), (false, 42, 84, Noatm));
    assert_eq!(framing("pppoe-ptm ether-vlan"), (false, 34, 0, Ptm));
    assert_eq!(framing("conservative"), (false, 48, 0, Atm));
    assert_eq!(framing("conservative overhead 10 noatm"), (false, 10, 0, Noatm));
    assert_eq!(framing("docsis raw atm"), (true, 0, 64, Atm));
    assert_eq!(framing("raw overhead 22 mpu 64"), (true, 22, 64, Noatm));
    assert_eq!(spec("memlimit 32mb").memory_limit_bytes, Some(32 << 20));
}

#[test]
fn netlink_says_what_tc_says() {
    use crate::netlink::{Attributes, Writer};
    let words = "bandwidth 20mbit diffserv4 dual-srchost ack-filter rtt 50ms overhead 22 ptm";
    let QdiscSpec::Cake(spec) = QdiscSpec::parse(&format!("cake {words}")).unwrap() else {
        panic!("cake")
    };
    let options = spec.options().unwrap();
    let attributes = Attributes(&options);
    let numbers: Vec<_> = (2..=17).map(|kind| attributes.number(kind)).collect();
    let some = Some::<u32>;
    let expected = [
        some(2_500_000),
        some(1),
        some(2),
        some(5),
        some(22),
        some(50_000),
        some(2_500),
        None,
        some(0),
        None,
        None,
        some(0),
        some(0),
        some(0),
        some(1),
        some(1),
    ];
    assert_eq!(numbers, expected);
    assert!(spec.confirm(&options).iter().all(|one| one.found == Some(one.wanted)));
    let raw = CakeSpec::default();
    assert_eq!(Attributes(&raw.options().unwrap()).number(12), Some(0));
    assert!(raw.confirm(&options).iter().any(|one| one.found != Some(one.wanted)));
    // Marks are counted by tin.
    let statistics = Writer::value(|inside| {
        inside.nest(10, |tins| {
            for tin in 1..=3 {
                tins.nest(tin, |tin_stats| {
                    tin_stats.u32(2, 99).u32(8, u32::from(tin));
                });
            }
        });
    });
    assert_eq!(spec.marked(&statistics), 6);
    assert_eq!(spec.marked(&[]), 0);
}
