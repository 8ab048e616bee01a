//! Packets from outside take the way of simulated ones.

use dragstrip_packet::{Body, Dscp, Ecn, TrafficClass};
use dragstrip_qdisc::{PacketId, QdiscSpec};
use dragstrip_scenario::Scenario;
use dragstrip_sim::{Event, Forwarder, Kinds, Observer, Sighting, Vantage, Way, run_observed};
use dragstrip_testkit::path;
use dragstrip_units::Instant;

/// Sent, received, dropped and marked packets.
#[derive(Default)]
struct Log {
    sent: Vec<(Instant, Body, u32)>,
    received: Vec<(Instant, u32)>,
    numbers: Vec<PacketId>,
    drops: usize,
    marks: usize,
}

impl Observer for Log {
    fn kinds(&self, _: Vantage) -> Kinds {
        Kinds::ALL
    }

    fn saw(&mut self, sighting: &Sighting<'_>) {
        match sighting.event {
            Event::Sent { .. } => {
                self.sent.push((sighting.at, *sighting.body, sighting.frame_bytes));
            }
            Event::Received => self.received.push((sighting.at, sighting.frame_bytes)),
            Event::Dropped(_) => self.drops += 1,
            Event::Marked => self.marks += 1,
            Event::Enqueued | Event::Dequeued | Event::Arrived | Event::Duplicated { .. } => {}
        }
    }
}

fn scenario(queue: &str) -> Scenario {
    let mut bottleneck = path::link("r", "d");
    bottleneck.rate_bps = Some(2_000_000);
    bottleneck.qdisc = QdiscSpec::parse(queue).unwrap();
    let mut scenario = path::dumbbell(1, bottleneck, 5_000_000, 3);
    scenario.flows = vec![path::datagrams("s0", "d", 3_000_000, 1_000)];
    scenario.probes.clear();
    scenario
}

#[test]
fn a_packet_from_outside_arrives_when_a_simulated_one_would() {
    for queue in ["bfifo limit 20000", "codel", "fq_codel"] {
        let scenario = scenario(queue);
        let mut simulated = Log::default();
        run_observed(&scenario, &mut simulated, &mut |_| true).unwrap();
        assert!(simulated.drops > 0, "{queue} is full");

        let mut forwarder = Forwarder::new(&scenario, &[["s0", "d"]], Log::default()).unwrap();
        for (at, body, frame) in &simulated.sent {
            forwarder.advance(*at);
            let class = TrafficClass::default();
            forwarder.send(Way::THERE, 7, class, *body, *frame, |log, id| log.numbers.push(id));
        }
        forwarder.advance(forwarder.end());
        let outside = forwarder.observer();
        assert_eq!(outside.numbers.len(), simulated.sent.len());
        assert_eq!(outside.received, simulated.received, "{queue}");
        assert_eq!(outside.drops, simulated.drops, "{queue}");
    }
}

#[test]
fn flows_share_a_fair_queue_and_capable_packets_are_marked() {
    let scenario = scenario("fq_codel ecn");
    let mut forwarder = Forwarder::new(&scenario, &[["s0", "d"]], Log::default()).unwrap();
    let body = Body::Udp(dragstrip_packet::Datagram { number: 1, len: 1_000 });
    let class = TrafficClass::new(Dscp::EF, Ecn::Ect0);
    for ms in 0..1_000 {
        forwarder.advance(Instant::from_nanos(ms * 1_000_000));
        for _ in 0..2 {
            forwarder.send(Way::THERE, 1, class, body, 1_042, |_, _| ());
        }
        if ms % 10 == 0 {
            // A second flow with a tenth of its share is not delayed by the first one's backlog.
            forwarder.send(Way::THERE, 2, class, body, 60, |_, _| ());
        }
    }
    // The way back has its own delay.
    forwarder.send(Way::BACK, 3, class, body, 99, |_, _| ());
    forwarder.advance(forwarder.end());
    let log = forwarder.observer();
    assert!(log.marks > 10, "{} marks", log.marks);
    let arrivals = |bytes: u32| log.received.iter().filter(move |(_, frame)| *frame == bytes);
    assert_eq!(arrivals(60).count(), 100);
    let back: Vec<u64> = arrivals(99).map(|(at, _)| at.as_nanos()).collect();
    assert_eq!(back, [999_000_000 + 5_000_000]);
    assert_eq!(forwarder.due(), None);
}
