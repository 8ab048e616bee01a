//! Shares of classes that always have packets, against closed forms and against a kernel; filters; texts.

use crate::contract::{
    Dequeue, DropReason, Dscp, Ecn, Headers, Item, PacketId, Qdisc, Sink, Verdict,
};
use crate::disciplines::{Discipline, QdiscSpec, Streams};
use crate::testing::Log;
use dragstrip_packet::{Flags, Segment};
use dragstrip_units::{Duration, Instant, Rate, Report};

/// A sender that always has packets waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    len: u32,
    headers: Headers,
    dscp: Dscp,
}

/// Packets whose mark is the class's number, in full frames.
fn of_class(mark: u32) -> Sender {
    Sender { len: 1514, headers: Headers { mark, ..Headers::default() }, dscp: Dscp::DEFAULT }
}

/// Packets by number: who sent each.
#[derive(Debug, Default)]
struct Senders {
    list: Vec<Sender>,
    of_packet: Vec<usize>,
    waiting: Vec<u32>,
    dropped: Vec<u32>,
    segment: Segment,
}

impl Sink for Senders {
    fn dropped(&mut self, item: Item, _reason: DropReason) {
        let sender = self.of_packet[item.packet.0 as usize];
        self.waiting[sender] -= 1;
        self.dropped[sender] += 1;
    }

    fn marked(&mut self, _packet: PacketId) {}

    fn duplicated(&mut self, item: Item) -> Item {
        item
    }

    fn headers(&self, packet: PacketId) -> Headers {
        self.list[self.of_packet[packet.0 as usize]].headers
    }

    fn segment(&self, _packet: PacketId) -> Option<&Segment> {
        Some(&self.segment)
    }
}

#[track_caller]
fn spec(text: &str) -> QdiscSpec {
    let spec = QdiscSpec::parse(text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let mut report = Report::default();
    spec.check("qdisc", &mut report);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    spec
}

fn built(text: &str) -> Discipline {
    spec(text).build(&Streams::of_link(1, "test"))
}

/// Mbit/s of each sender over `seconds` behind a line of 1 Gbit/s; each keeps ten packets in the queue.
fn rates(text: &str, senders: &[Sender], seconds: u64) -> Vec<f64> {
    let mut tree = built(text);
    let line = Rate::from_bits_per_second(1_000_000_000).unwrap();
    let mut sink = Senders {
        list: senders.to_vec(),
        waiting: vec![0; senders.len()],
        dropped: vec![0; senders.len()],
        ..Senders::default()
    };
    let mut sent = vec![0_u64; senders.len()];
    let (mut now, end) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(seconds));
    while now < end {
        for (number, sender) in senders.iter().enumerate() {
            let mut tries = 0;
            while sink.waiting[number] < 10 && tries < 10 {
                tries += 1;
                let packet = PacketId(sink.of_packet.len() as u32);
                sink.of_packet.push(number);
                sink.waiting[number] += 1;
                let item = Item {
                    packet,
                    len: sender.len,
                    flow: number as u32,
                    ecn: Ecn::NotEct,
                    dscp: sender.dscp,
                };
                let _ = tree.enqueue(item, now, &mut sink);
            }
        }
        match tree.dequeue(now, &mut sink) {
            Dequeue::Packet(item) => {
                let sender = sink.of_packet[item.packet.0 as usize];
                sink.waiting[sender] -= 1;
                sent[sender] += u64::from(item.len);
                now += line.time_for_floor(u64::from(item.len), 0).0;
            }
            Dequeue::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            Dequeue::Empty => now += Duration::from_millis(1),
        }
    }
    let per_second = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds as f64;
    sent.into_iter().map(per_second).collect()
}

#[track_caller]
fn near(measured: &[f64], expected: &[f64], share: f64) {
    assert_eq!(measured.len(), expected.len());
    for (one, other) in measured.iter().zip(expected) {
        assert!((one - other).abs() <= other * share + 1e-3, "{measured:.3?}, not {expected:.3?}");
    }
}

/// Classes of one inner class of 10 Mbit/s, and the filter that takes marks for classes.
fn htb(classes: &[&str]) -> String {
    let mut text = String::from(
        "tc qdisc add root handle 1: htb\n\
         tc class add parent 1: classid 1:1 htb rate 10mbit\n\
         tc filter add parent 1: prio 1 fw\n",
    );
    for class in classes {
        text.push_str(&format!("tc class add parent {class}\n"));
    }
    text
}

/// Measured on Linux 6.18 between two ends of a veth pair, senders that always had frames of 1514 bytes: what each class
/// passed over 4 s, in Mbit/s. The model is within 0.3 % of it.
#[test]
fn htb_shares_as_a_kernel_does() {
    let three = htb(&[
        "1:1 classid 1:10 htb rate 3mbit ceil 10mbit",
        "1:1 classid 1:20 htb rate 1mbit ceil 10mbit",
        "1:1 classid 1:30 htb rate 6mbit ceil 10mbit",
    ]);
    let [ten, twenty, thirty] = [0x10, 0x20, 0x30].map(of_class);
    near(&rates(&three, &[ten, twenty, thirty], 20), &[3.000, 1.000, 5.997], 0.003);
    // The third is idle: the two share by their quanta, which are as their rates.
    near(&rates(&three, &[ten, twenty], 20), &[7.507, 2.496], 0.003);
    let small = Sender { len: 214, ..twenty };
    near(&rates(&three, &[ten, small], 20), &[7.502, 2.497], 0.003);
    let by_priority = htb(&[
        "1:1 classid 1:10 htb rate 3mbit ceil 10mbit prio 0",
        "1:1 classid 1:20 htb rate 1mbit ceil 10mbit prio 1",
    ]);
    near(&rates(&by_priority, &[ten, twenty], 20), &[9.012, 1.002], 0.003);
    // Guaranteed rates pass whatever the class above says.
    let over = htb(&["1:1 classid 1:10 htb rate 8mbit", "1:1 classid 1:20 htb rate 8mbit"]);
    near(&rates(&over, &[ten, twenty], 20), &[8.001, 8.004], 0.003);
    // What two inner classes share follows from the turns of their leaves, not from their rates.
    let inner = htb(&[
        "1:1 classid 1:2 htb rate 4mbit ceil 10mbit",
        "1:1 classid 1:3 htb rate 4mbit ceil 10mbit",
        "1:2 classid 1:10 htb rate 1mbit ceil 10mbit",
        "1:2 classid 1:20 htb rate 1mbit ceil 10mbit",
        "1:3 classid 1:30 htb rate 1mbit ceil 10mbit",
    ]);
    near(&rates(&inner, &[ten, twenty, thirty], 20), &[2.763, 2.760, 4.475], 0.003);
    // A class of the root borrows from nobody; a leaf goes up to its ceiling.
    let alone = "tc qdisc add root handle 1: htb default 10; tc class add parent 1: classid 1:10 htb rate 5mbit ceil 10mbit";
    near(&rates(alone, &[of_class(0)], 20), &[4.998], 0.003);
    let ceiling = htb(&["1:1 classid 1:10 htb rate 1mbit ceil 4mbit"]);
    near(&rates(&ceiling, &[ten], 20), &[3.999], 0.003);
}

/// Commands that a script would make, one a line, in place of names: `Q` a discipline, `C` a class, `F` a filter.
fn script(lines: &str) -> String {
    let command = |line: &str| {
        let (kind, rest) = line.trim().split_once(' ').expect("a kind and words");
        let object = match kind {
            "Q" => "qdisc",
            "C" => "class",
            _ => "filter",
        };
        format!("tc {object} add dev eth0 {rest}\n")
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(command).collect()
}

/// A router's script, who sends through it, and what each gets (Mbit/s).
struct Case {
    name: &'static str,
    script: String,
    senders: Vec<Sender>,
    shares: Vec<f64>,
}

fn case(name: &'static str, script: &str, senders: &[Sender], shares: &[f64]) -> Case {
    Case { name, script: self::script(script), senders: senders.to_vec(), shares: shares.to_vec() }
}

/// In the manner of sqm-scripts' simple.qos at 10 Mbit/s: three classes by priority, marks choose.
const SIMPLE: &str = "
    Q root handle 1: htb default 12
    C parent 1: classid 1:1 htb quantum 1500 rate 10000kbit ceil 10000kbit burst 1749 cburst 1749
    C parent 1:1 classid 1:10 htb quantum 1500 rate 10000kbit ceil 10000kbit burst 1749 cburst 1749 prio 0
    C parent 1:1 classid 1:11 htb quantum 1500 rate 128kbit ceil 3333kbit prio 1
    C parent 1:1 classid 1:12 htb quantum 1500 rate 1666kbit ceil 9984kbit burst 1749 cburst 1749 prio 2
    C parent 1:1 classid 1:13 htb quantum 1500 rate 1666kbit ceil 9984kbit burst 1749 cburst 1749 prio 3
    Q parent 1:11 handle 110: fq_codel limit 1001 quantum 300 target 5ms
    Q parent 1:12 handle 120: fq_codel limit 1001 quantum 300 target 5ms
    Q parent 1:13 handle 130: fq_codel limit 1001 quantum 300 target 5ms
    F parent 1:0 protocol ip prio 1 handle 1 fw classid 1:11
    F parent 1:0 protocol ip prio 2 handle 2 fw classid 1:12
    F parent 1:0 protocol ip prio 3 handle 3 fw classid 1:13";

/// In the manner of wondershaper at 10 Mbit/s.
const WONDER: &str = "
    Q root handle 1: htb default 20
    C parent 1: classid 1:1 htb rate 10000kbit prio 5
    C parent 1:1 classid 1:10 htb rate 2000kbit ceil 9500kbit prio 1
    C parent 1:1 classid 1:20 htb rate 4000kbit ceil 9500kbit prio 2
    C parent 1:1 classid 1:30 htb rate 2000kbit ceil 9000kbit prio 3
    Q parent 1:10 handle 10: sfq perturb 10 quantum 6000
    Q parent 1:20 handle 20: sfq perturb 10 quantum 6000
    Q parent 1:30 handle 30: sfq perturb 10 quantum 6000
    F parent 1: protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10
    F parent 1: protocol ip prio 11 u32 match ip protocol 1 0xff flowid 1:10
    F parent 1: protocol ip prio 18 u32 match ip dst 10.0.0.9/32 flowid 1:30";

/// In the manner of FireQOS at 20 Mbit/s: three classes by name, each with a commitment.
fn fireqos(priorities: [u8; 3]) -> String {
    let [first, second, third] = priorities;
    format!(
        "Q root handle 1: stab-less
         C parent 1: classid 1:1 htb rate 20mbit
         C parent 1:1 classid 1:10 htb rate 1mbit ceil 20mbit prio {first}
         C parent 1:1 classid 1:11 htb rate 5mbit ceil 20mbit prio {second}
         C parent 1:1 classid 1:12 htb rate 200kbit ceil 20mbit prio {third}
         F parent 1: protocol ip prio 100 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
         F parent 1: protocol ip prio 200 u32 match ip protocol 6 0xff match ip dport 443 0xffff flowid 1:11"
    )
    .replace("stab-less", "htb default 12 r2q 16")
}

/// In the manner of QoSmate's hfsc at 10 Mbit/s: a real-time class without a share, four that share what is left.
const QOSMATE: &str = "
    Q root handle 1: hfsc default 13
    C parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit
    C parent 1:1 classid 1:11 hfsc rt m1 9700kbit d 25ms m2 1900kbit
    C parent 1:1 classid 1:12 hfsc ls m1 7mbit d 25ms m2 3mbit
    C parent 1:1 classid 1:13 hfsc ls m1 2mbit d 25ms m2 4500kbit
    C parent 1:1 classid 1:14 hfsc ls m1 700kbit d 25ms m2 1500kbit
    C parent 1:1 classid 1:15 hfsc ls m1 300kbit d 25ms m2 1mbit
    Q parent 1:11 handle 10: bfifo limit 60kb
    Q parent 1:12 fq_codel
    Q parent 1:13 fq_codel
    Q parent 1:14 fq_codel
    Q parent 1:15 cake besteffort
    F parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc classid 1:11
    F parent 1: protocol ip prio 2 u32 match ip dsfield 0x88 0xfc classid 1:12
    F parent 1: protocol ip prio 3 flower ip_tos 0x28/0xfc classid 1:14
    F parent 1: protocol ip prio 4 u32 match ip dsfield 0x20 0xfc classid 1:15";

fn of_dscp(name: &str) -> Sender {
    Sender { dscp: Dscp::named(name).expect("a DSCP"), ..of_class(0) }
}

fn to_port(protocol: u8, destination_port: u16) -> Sender {
    let headers = Headers { protocol, destination_port, ..Headers::default() };
    Sender { headers, ..of_class(0) }
}

fn to_address(last: u8) -> Sender {
    let headers = Headers { destination: 0x0a00_0000 | u32::from(last), ..Headers::default() };
    Sender { headers, ..of_class(0) }
}

fn htb_cases() -> Vec<Case> {
    let [one, two, three] = [1, 2, 3].map(of_class);
    let deep = "
        Q root handle 1: htb default 70
        C parent 1: classid 1:1 htb rate 16mbit
        C parent 1:1 classid 1:2 htb rate 8mbit ceil 16mbit
        C parent 1:2 classid 1:3 htb rate 4mbit ceil 16mbit
        C parent 1:3 classid 1:4 htb rate 2mbit ceil 16mbit
        C parent 1:4 classid 1:5 htb rate 1mbit ceil 12mbit
        C parent 1:5 classid 1:70 htb rate 500kbit ceil 16mbit";
    let libreqos = "
        Q root handle 1: htb default 2
        C parent 1: classid 1:1 htb rate 100mbit ceil 100mbit
        C parent 1:1 classid 1:2 htb rate 24mbit ceil 99mbit prio 5
        C parent 1:1 classid 1:3 htb rate 58800kbit ceil 60mbit prio 3
        C parent 1:1 classid 1:4 htb rate 39200kbit ceil 40mbit prio 3
        C parent 1:3 classid 1:5 htb rate 10mbit ceil 50mbit prio 3 quantum 3028
        C parent 1:3 classid 1:6 htb rate 10mbit ceil 50mbit prio 3 quantum 3028
        C parent 1:4 classid 1:7 htb rate 10mbit ceil 30mbit prio 3
        Q parent 1:5 cake diffserv4
        Q parent 1:6 cake diffserv4
        Q parent 1:7 fq_codel
        F parent 1: prio 1 fw";
    let ovs = "
        Q root handle 1: htb default 1
        C parent 1: classid 1:fffe htb rate 10mbit ceil 10mbit
        C parent 1:fffe classid 1:1 htb rate 12kbit ceil 10mbit
        C parent 1:fffe classid 1:2 htb rate 6mbit ceil 6mbit
        F parent 1: prio 1 fw";
    let netlab = "
        Q root handle 1: htb default 10
        C parent 1: classid 1:10 htb rate 5mbit
        Q parent 1:10 handle 10: netem delay 20ms limit 200
        Q parent 10:1 pfifo limit 50";
    let tcconfig = "
        Q root handle 1a1a: htb default 1
        C parent 1a1a: classid 1a1a:1 htb rate 800mbit
        C parent 1a1a: classid 1a1a:20 htb rate 4mbit ceil 4mbit burst 50kb cburst 50kb
        Q parent 1a1a:20 handle 2a2a: netem delay 10ms
        F protocol ip parent 1a1a: prio 5 u32 match ip dst 10.0.0.2/32 match ip src 0.0.0.0/0 flowid 1a1a:20";
    let users = "
        Q root handle 1: htb default 12
        C parent 1: classid 1:1 htb rate 100mbit ceil 100mbit
        C parent 1:1 classid 1:10 htb rate 30mbit ceil 100mbit
        C parent 1:1 classid 1:11 htb rate 10mbit ceil 100mbit
        C parent 1:1 classid 1:12 htb rate 60mbit ceil 100mbit
        F parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.3 match ip dport 80 0xffff flowid 1:10
        F parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.3 flowid 1:11";
    let web = Sender { headers: Headers { destination_port: 80, ..to_address(3).headers }, ..one };
    let inner_filter = "
        Q root handle 1: htb default 30
        C parent 1: classid 1:1 htb rate 9mbit
        C parent 1:1 classid 1:2 htb rate 6mbit
        C parent 1:2 classid 1:20 htb rate 2mbit ceil 6mbit prio 1
        C parent 1:2 classid 1:21 htb rate 4mbit ceil 6mbit
        C parent 1:1 classid 1:30 htb rate 3mbit
        F parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff flowid 1:2
        F parent 1:2 protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:20
        F parent 1:2 protocol ip prio 2 matchall classid 1:21";
    let atm = "
        Q root handle 1: htb default 1
        C parent 1: classid 1:1 htb rate 8mbit overhead 40 linklayer atm";
    let policed = "
        Q root handle 1: htb default 1
        C parent 1: classid 1:1 htb rate 8mbit
        F parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc police rate 1mbit burst 15kb drop flowid 1:1";
    let nested = "
        Q root handle 1: htb default 10
        C parent 1: classid 1:10 htb rate 6mbit
        Q parent 1:10 handle 10: prio bands 3
        Q parent 10:1 tbf rate 2mbit burst 5kb limit 60kb
        Q parent 10:2 handle 20: drr
        C parent 20: classid 20:1 drr quantum 3028
        C parent 20: classid 20:2 drr quantum 1514
        F parent 10: prio 1 handle 1 fw classid 10:1
        F parent 10: prio 2 matchall classid 10:2
        F parent 20: prio 1 handle 2 fw classid 20:1
        F parent 20: prio 1 handle 3 fw classid 20:2";
    vec![
        // The first at its ceiling, the third at its rate, the second what is left.
        case("simple.qos", SIMPLE, &[one, two, three], &[3.333, 5.001, 1.666]),
        case("simple.qos, two", SIMPLE, &[two, three], &[8.334, 1.666]),
        case("simple.qos, one", SIMPLE, &[two], &[9.984]),
        case("simple.qos, first", SIMPLE, &[one], &[3.333]),
        case("simple.qos, default", SIMPLE, &[of_class(0)], &[9.984]),
        case(
            "wondershaper",
            WONDER,
            &[Sender { dscp: Dscp::new(4).unwrap(), ..one }, one, to_address(9)],
            &[4.0, 4.0, 2.0],
        ),
        case("wondershaper, two", WONDER, &[one, to_address(9)], &[8.0, 2.0]),
        case("wondershaper, ICMP", WONDER, &[to_port(1, 0)], &[9.5]),
        // The first takes all that is free; when all have one priority quanta of 7812, 39062 and 1562 share it.
        case(
            "fireqos",
            &fireqos([0, 1, 2]),
            &[to_port(17, 5060), to_port(6, 443), one],
            &[14.8, 5.0, 0.2],
        ),
        case(
            "fireqos, balanced",
            &fireqos([0, 0, 0]),
            &[to_port(17, 5060), to_port(6, 443), one],
            &[3.226, 16.129, 0.645],
        ),
        case(
            "fireqos, without the first",
            &fireqos([0, 1, 2]),
            &[to_port(6, 443), to_port(6, 80)],
            &[19.8, 0.2],
        ),
        case("libreqos", libreqos, &[of_class(5), of_class(6), of_class(7)], &[30.0, 30.0, 30.0]),
        case("libreqos, one", libreqos, &[of_class(5)], &[50.0]),
        case("ovs, min and max", ovs, &[of_class(1), of_class(2)], &[4.0, 6.0]),
        case("netlab", netlab, &[one], &[5.0]),
        case("tcconfig", tcconfig, &[to_address(2), to_address(3)], &[4.05, 800.0]),
        case("devik's guide", users, &[web, to_address(3), to_address(4)], &[30.0, 10.0, 60.0]),
        // 60 is free, by quanta of 200000 (at most) and 125000.
        case(
            "devik's guide, two",
            users,
            &[web, to_address(3)],
            &[30.0 + 60.0 * 200.0 / 325.0, 10.0 + 60.0 * 125.0 / 325.0],
        ),
        case(
            "filters of an inner class",
            inner_filter,
            &[to_port(6, 22), to_port(6, 80), one],
            &[2.0, 4.0, 3.0],
        ),
        case("filters of an inner class, two", inner_filter, &[to_port(6, 22), one], &[6.0, 3.0]),
        case("seven levels", deep, &[one], &[12.0]),
        // 1554 bytes are 33 cells of 53 bytes.
        case("cells", atm, &[one], &[8.0 * 1514.0 / (33.0 * 53.0)]),
        // Its bucket of 15 kB is full at first.
        case("a policed class", policed, &[of_dscp("EF")], &[1.0 + 15_360.0 * 8.0 / 8e6]),
        case(
            "prio and drr in a class",
            nested,
            &[one, two, three],
            &[2.0, 4.0 * 2.0 / 3.0, 4.0 / 3.0],
        ),
    ]
}

fn other_cases() -> Vec<Case> {
    let [one, two, three] = [1, 2, 3].map(of_class);
    let openwrt = "
        Q root handle 1: hfsc default 30
        C parent 1: classid 1:1 hfsc sc rate 5mbit ul rate 5mbit
        C parent 1:1 classid 1:10 hfsc rt m1 800kbit d 10ms m2 500kbit ls m2 1mbit ul rate 4500kbit
        C parent 1:1 classid 1:20 hfsc ls m2 2mbit ul rate 4500kbit
        C parent 1:1 classid 1:30 hfsc ls m2 1mbit ul rate 4500kbit
        Q parent 1:10 fq_codel limit 800 quantum 300
        F parent 1: prio 1 protocol ip handle 0x10/0xf0 fw flowid 1:10
        F parent 1: prio 2 protocol ip handle 0x20/0xf0 fw flowid 1:20";
    let mininet = "
        Q root handle 5: hfsc default 1
        C parent 5: classid 5:1 hfsc sc rate 7mbit ul rate 7mbit
        Q parent 5:1 handle 10: netem delay 5ms limit 300";
    let promised = "
        Q root handle 1: hfsc default 2
        C parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit
        C parent 1:1 classid 1:3 hfsc rt m2 8mbit
        C parent 1:1 classid 1:2 hfsc sc m2 8mbit
        F parent 1: prio 1 handle 1 fw classid 1:3";
    let two_levels = "
        Q root handle 1: hfsc
        C parent 1: classid 1:1 hfsc ls m2 9mbit ul m2 9mbit
        C parent 1:1 classid 1:2 hfsc ls m2 6mbit
        C parent 1:1 classid 1:3 hfsc ls m2 3mbit
        C parent 1:2 classid 1:20 hfsc ls m2 1mbit
        C parent 1:2 classid 1:21 hfsc ls m2 2mbit
        C parent 1:3 classid 1:30 hfsc ls m2 1mbit
        F parent 1: prio 1 handle 1 fw classid 1:20
        F parent 1: prio 1 handle 2 fw classid 1:21
        F parent 1: prio 1 handle 3 fw classid 1:30";
    let drr = "
        Q root handle 1: tbf rate 12mbit burst 5kb limit 100kb
        Q parent 1:1 handle 10: drr
        C parent 10: classid 10:1 drr quantum 1000
        C parent 10: classid 10:2 drr quantum 3000
        F parent 10: prio 1 handle 1 fw classid 10:1
        F parent 10: prio 2 handle 2 fw classid 10:2";
    let prio = "
        Q root handle 1: prio
        Q parent 1:1 handle 10: tbf rate 3mbit burst 5kb limit 60kb
        Q parent 1:2 handle 20: tbf rate 2mbit burst 5kb limit 60kb
        Q parent 1:3 handle 30: tbf rate 1mbit burst 5kb limit 60kb
        F parent 1: prio 1 protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:1
        F parent 1: prio 2 protocol ip u32 match ip dsfield 0x20 0xfc flowid :3";
    let ets = "
        Q root handle 1: tbf rate 10mbit burst 5kb limit 100kb
        Q parent 1:1 handle 10: ets bands 3 strict 1 quanta 4542 1514
        Q parent 10:1 tbf rate 2mbit burst 5kb limit 60kb
        F parent 10: prio 1 handle 1 fw classid 10:1
        F parent 10: prio 2 handle 2 fw classid 10:2
        F parent 10: prio 3 handle 3 fw classid 10:3";
    // For 25 ms of the 8 s the real-time class has 9.7.
    let voice = 1.9 + (9.7 - 1.9) * 0.025 / 8.0;
    let spare = 10.0 - voice;
    let shared = [0.30, 0.45, 0.15, 0.10].map(|share| share * spare);
    vec![
        case(
            "qosmate hfsc",
            QOSMATE,
            &[of_dscp("EF"), of_dscp("AF41"), one, of_dscp("AF11"), of_dscp("CS1")],
            &[voice, shared[0], shared[1], shared[2], shared[3]],
        ),
        case(
            "qosmate hfsc, two",
            QOSMATE,
            &[one, of_dscp("CS1")],
            &[10.0 * 45.0 / 55.0, 10.0 * 10.0 / 55.0],
        ),
        case(
            "openwrt qos-scripts",
            openwrt,
            &[of_class(0x10), of_class(0x25), one],
            &[1.25, 2.5, 1.25],
        ),
        case("openwrt qos-scripts, one", openwrt, &[of_class(0x20)], &[4.5]),
        case("mininet use_hfsc", mininet, &[one], &[7.0]),
        // What is promised passes whatever the limit above.
        case("hfsc, promises above the limit", promised, &[one, two], &[8.0, 8.0]),
        case("hfsc, two levels", two_levels, &[one, two, three], &[2.0, 4.0, 3.0]),
        case("hfsc, two levels, one idle", two_levels, &[one, three], &[6.0, 3.0]),
        case("hfsc without a default", two_levels, &[of_class(7)], &[0.0]),
        case("drr in tbf", drr, &[one, two], &[3.0, 9.0]),
        case("drr without a class", drr, &[three], &[0.0]),
        case("prio with shapers", prio, &[of_dscp("EF"), one, of_dscp("CS1")], &[3.0, 2.0, 1.0]),
        case("ets in tbf", ets, &[one, two, three], &[2.0, 6.0, 2.0]),
    ]
}

#[track_caller]
fn share_as_computed(cases: Vec<Case>, tolerance: f64) {
    for Case { name, script, senders, shares } in cases {
        let measured = rates(&script, &senders, 8);
        for (one, other) in measured.iter().zip(&shares) {
            let off = (one - other).abs();
            // A full bucket at first, and a packet in debt at the end.
            let two_frames = 2.0 * 1_514.0 * 8.0 / 8e6;
            assert!(
                off <= other * tolerance + two_frames,
                "{name}: {measured:.3?}, not {shares:.3?}"
            );
        }
    }
}

/// Shares of classes that always have packets: guaranteed rates, borrowing by priority and quantum, ceilings.
#[test]
fn trees_of_htb_share_as_computed() {
    share_as_computed(htb_cases(), 0.005);
}

/// Curves, quanta, strict bands. First slopes of curves, which last 25 ms, are 1 % of what a class has.
#[test]
fn other_trees_share_as_computed() {
    share_as_computed(other_cases(), 0.01);
}

/// Written and read again it is the same tree.
#[test]
fn trees_read_back_as_they_are_written() {
    for Case { name, script, .. } in htb_cases().into_iter().chain(other_cases()) {
        let tree = spec(&script);
        assert_eq!(QdiscSpec::parse(&tree.print()), Ok(tree.clone()), "{name}: {}", tree.print());
    }
}

/// The greatest rate of a tree, where that is known.
#[test]
fn the_rate_of_a_tree_is_that_of_its_root_classes() {
    for (text, expected) in [
        // What is guaranteed in all.
        (SIMPLE, Some(13_460_000)),
        (QOSMATE, Some(10_000_000)),
        ("Q root handle 1: htb\nC parent 1: classid 1:1 htb rate 1mbit", None),
        (
            "Q root handle 1: htb default 1\nC parent 1: classid 1:1 htb rate 1mbit ceil 2mbit",
            Some(1_000_000),
        ),
        (
            "Q root handle 1: htb default 2\nC parent 1: classid 1:1 htb rate 1mbit\n\
             C parent 1:1 classid 1:2 htb rate 3mbit\nC parent 1:1 classid 1:3 htb rate 1mbit",
            Some(4_000_000),
        ),
        ("Q root handle 1: prio\nQ parent 1:1 tbf rate 1mbit burst 3kb limit 9kb", None),
    ] {
        assert_eq!(spec(&script(text)).facts().rate_bps, expected, "{text}");
    }
}

/// True when filters lead a packet to class 1:1.
fn taken(filters: &str, sender: &Sender, len: u32) -> bool {
    let text = format!("tc qdisc add root handle 1: drr\ntc class add classid 1:1 drr\n{filters}");
    let mut tree = built(&text);
    let segment = Segment::new(1, 0, Flags::ACK);
    let mut sink = Senders {
        list: vec![*sender],
        of_packet: vec![0],
        waiting: vec![1],
        dropped: vec![0],
        segment,
    };
    let item = Item { len, dscp: sender.dscp, ..Item::default() };
    tree.enqueue(item, Instant::ZERO, &mut sink) == Verdict::Queued
}

/// A packet of these fields is taken, or not, by the matches of a filter.
#[test]
fn filters_compare_fields_of_headers() {
    let takes = |matches: &str, sender: &Sender, len: u32| {
        let filter = format!("tc filter add parent 1: protocol ip prio 1 {matches} classid 1:1");
        taken(&filter, sender, len)
    };
    let headers = Headers {
        protocol: 6,
        source: 0x0a00_0001,
        destination: 0xc0a8_0102,
        source_port: 30_001,
        destination_port: 5_001,
        mark: 0x12,
    };
    let sender = Sender { len: 1514, headers, dscp: Dscp::EF };
    for (matches, expected) in [
        ("u32 match ip src 10.0.0.0/8", true),
        ("u32 match ip src 10.0.0.2", false),
        ("u32 match ip dst 192.168.1.0/24 match ip dport 5001 0xffff", true),
        ("u32 match ip dst 192.168.1.0/24 match ip dport 5002 0xffff", false),
        ("u32 match ip sport 30001 0xffff", true),
        ("u32 match ip protocol 17 0xff", false),
        ("u32 match ip dsfield 0xb8 0xfc", true),
        ("u32 match ip tos 0x10 0xff", false),
        ("u32 match tcp dst 0x1389 0xffff", true),
        ("u32 match u16 0x1389 0xffff at nexthdr+2", true),
        ("u32 match u32 0 0", true),
        ("u32 match u16 0x0000 0xffc0 at 2", false),
        ("u32 match ip df", true),
        ("u32 match u8 0x05 0x0f at 0", true),
        ("handle 0x2/0xf fw", true),
        ("handle 2 fw", false),
        ("flower ip_proto tcp dst_port 5000-6000 src_ip 10.0.0.1", true),
        ("flower ip_proto udp dst_port 5000-6000", false),
        ("flower ip_tos 0xb8/0xfc", true),
        ("flower tcp_flags 0x10/0xff", true),
        ("flower tcp_flags 0x02/0x02", false),
        ("matchall", true),
    ] {
        assert_eq!(takes(matches, &sender, 1514), expected, "{matches}");
    }
    // A pure ACK: TCP, shorter than 64 bytes.
    let small = "u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 \
                 match u8 0x10 0xff at 33";
    assert!(takes(small, &sender, 66) && !takes(small, &sender, 1514));
}

/// A table's bucket is the word under the hash key, shifted down and cut to the number of buckets (`u32_hash_fold`).
#[test]
fn a_hash_key_leads_to_the_bucket_of_its_word() {
    let tables = "tc filter add parent 1: prio 5 handle 2: u32 divisor 256\n\
                  tc filter add parent 1: prio 5 handle 3: u32 divisor 4\n\
                  tc filter add parent 1: prio 5 u32 ht 2:7f: match ip protocol 6 0xff classid 1:1\n\
                  tc filter add parent 1: prio 5 u32 ht 3:2: match u32 0 0 classid 1:1\n";
    let to = |destination: u32, protocol: u8| Sender {
        headers: Headers { destination, protocol, ..Headers::default() },
        ..Sender::default()
    };
    let link = |words: &str| {
        format!("{tables}tc filter add parent 1: prio 5 u32 match ip dst 10.0.0.0/8 {words}")
    };
    for (words, destination, protocol, expected) in [
        ("link 2: hashkey mask 0x000000ff at 16", 0x0a00_007f, 6, true),
        ("link 2: hashkey mask 0x000000ff at 16", 0x0a00_007f, 17, false),
        ("link 2: hashkey mask 0x000000ff at 16", 0x0a00_007e, 6, false),
        // The link's own keys count too.
        ("link 2: hashkey mask 0x000000ff at 16", 0x0b00_007f, 6, false),
        // Its class is that of what the bucket does not take.
        ("link 2: hashkey mask 0x000000ff at 16 classid 1:1", 0x0a00_007e, 6, true),
        // The mask is hexadecimal without 0x too.
        ("link 2: hashkey mask 0000ff00 at 16", 0x0a00_7f00, 6, true),
        ("link 2: hashkey mask 0000ff00 at 16", 0x0a00_007f, 6, false),
        // Four buckets: the two lowest bits of the octet.
        ("link 3: hashkey mask 0x000000ff at 16", 0x0a00_00f2, 17, true),
        ("link 3: hashkey mask 0x000000ff at 16", 0x0a00_00f3, 17, false),
        // Bucket 7f has bits that the mask leaves out: nothing gets there.
        ("link 2: hashkey mask 0x0000000f at 16", 0x0a00_007f, 6, false),
        // The table of the priority has all filters that name it.
        ("ht 800:: link 2: hashkey mask 0x000000ff at 16", 0x0a00_007f, 6, true),
        // Without a hash key it is bucket 0.
        ("link 2:", 0x0a00_007f, 6, false),
    ] {
        let filters = link(words);
        assert_eq!(taken(&filters, &to(destination, protocol), 100), expected, "{filters}");
    }
}

/// The bucket of a sample is that of its octets; masks are hexadecimal; a table of the priority may be made alone.
#[test]
fn words_of_u32_are_read_as_tc_reads_them() {
    let to = |destination: u32| Sender {
        headers: Headers { destination, ..Headers::default() },
        ..Sender::default()
    };
    let filters = "tc filter add parent 1: protocol ip prio 5 u32\n\
        tc filter add parent 1: protocol ip prio 5 handle 8: u32 divisor 256\n\
        tc filter add parent 1: prio 5 u32 ht 800:: match ip dst 10.0.0.0/8 hashkey mask ff at 16 link 8:\n\
        tc filter add parent 1: prio 5 handle 0x65 u32 ht 8: sample u32 0x65 ff at 16 match u8 0x0a ff at 16 \
        classid 0x1:0x1";
    assert!(taken(filters, &to(0x0a00_0065), 100));
    assert!(!taken(filters, &to(0x0a00_0064), 100));
    // Decimal 10, under a mask of 16.
    let sixteen = "tc filter add parent 1: u32 match u8 0 10 at 19 classid 1:1";
    assert!(!taken(sixteen, &to(0x10), 100));
    assert!(taken(sixteen, &to(0x0a), 100));
    // Of the same bucket the lower number is asked first.
    let ordered = "tc filter add parent 1: prio 5 u32 match u32 0 0 action drop\n\
        tc filter add parent 1: prio 5 u32 order 7 match u32 0 0 classid 1:1";
    assert!(taken(ordered, &to(1), 100));
}

/// A packet that a table does not take goes on behind its link; filters stand in the order of their numbers, then as they were added.
#[test]
fn linked_tables_stand_in_the_place_of_their_links() {
    let filters = |order: &str| {
        format!(
            "tc filter add parent 1: prio 1 handle 1: u32 divisor 1\n\
             tc filter add parent 1: prio 1 handle 2: u32 divisor 1\n\
             tc filter add parent 1: prio 1 u32 match ip protocol 6 0xff link 1:0: \
             offset at 0 mask 0x0f00 shift 6 plus 0 eat\n\
             tc filter add parent 1: prio 1 u32 match u32 0 0 classid 1:1\n\
             tc filter add parent 1: prio 1 u32 ht 1: match tcp dst 22 0xffff link 2:\n\
             tc filter add parent 1: prio 1 u32 ht 2: match tcp src 80 0xffff action drop\n\
             tc filter add parent 1: prio 1 {order}u32 ht 1: match u16 443 0xffff at 2 action drop\n\
             tc filter add parent 1: prio 1 handle ::2 u32 ht 1: match u16 443 0xffff at 2 classid 1:1"
        )
    };
    for (order, source_port, destination_port, expected) in [
        ("", 80, 22, false),
        ("", 81, 22, true),
        ("", 80, 23, true),
        ("", 1, 443, true),
        ("handle ::1 ", 1, 443, false),
    ] {
        let headers = Headers { protocol: 6, source_port, destination_port, ..Headers::default() };
        let sender = Sender { headers, ..Sender::default() };
        let text = filters(order);
        assert_eq!(taken(&text, &sender, 100), expected, "{source_port} {destination_port}");
    }
}

/// Signs of basic: numbers compare as such, `A and B or C` is `A and (B or C)`, and a bracket is a condition.
#[test]
fn basic_combines_conditions_as_the_kernel_does() {
    let headers =
        Headers { protocol: 6, destination_port: 0x4142, mark: 0x50, ..Headers::default() };
    let interactive = Sender { headers, dscp: Dscp::new(4).unwrap_or_default(), len: 0 };
    for (expression, expected) in [
        ("'meta(priority eq 6)'", true),
        ("meta(priority eq 2)", false),
        ("'meta( priority lt 7 )'", true),
        ("'not meta(priority eq 6)'", false),
        ("'meta(nf_mark mask 0xf0 eq 0x50)'", true),
        ("'meta(nf_mark shift 4 eq 5)'", true),
        ("'meta(pkt_len gt 199)'", true),
        ("'meta(pkt_len gt 200)'", false),
        ("'cmp(u16 at 2 layer 1 gt 185)'", true),
        ("'cmp(u16 at 2 layer 1 gt 186)'", false),
        ("'cmp(u16 at 2 layer 2 mask 0xff00 eq 0x4100)'", true),
        ("'cmp(u16 at 16 layer link lt 187)'", true),
        ("'u32(u8 0x06 0xff at 9)'", true),
        ("'u32(u16 0x4142 0xffff at 22)'", true),
        ("'nbyte(\"AB\" at 2 layer 2)'", true),
        ("'nbyte(\"AC\" at 2 layer 2)'", false),
        ("'meta(priority eq 2) and meta(priority eq 6) or u32(u8 6 0xff at 9)'", false),
        ("'meta(priority eq 6) or meta(priority eq 6) and meta(priority eq 2)'", true),
        ("'(meta(priority eq 6) or meta(priority eq 6)) and meta(priority eq 2)'", false),
        ("'not (meta(priority eq 2) or meta(priority eq 3))'", true),
    ] {
        let filter = format!("tc filter add parent 1: basic match {expression} classid 1:1");
        assert_eq!(taken(&filter, &interactive, 200), expected, "{expression}");
        let tree = spec(&format!(
            "tc qdisc add root handle 1: drr\ntc class add classid 1:1 drr\n{filter}"
        ));
        assert_eq!(QdiscSpec::parse(&tree.print()), Ok(tree.clone()), "{}", tree.print());
    }
    // Without a match it takes every packet; so do u32's marks with their words.
    assert!(taken("tc filter add parent 1: basic classid 1:1", &interactive, 200));
    for (mark, expected) in [("0x10 0xf0", false), ("0x50 0xf0", true)] {
        let filter = format!(
            "tc filter add parent 1: u32 match mark {mark} match ip protocol 6 0xff classid 1:1"
        );
        assert_eq!(taken(&filter, &interactive, 200), expected, "{mark}");
    }
}

/// Mistakes in tables and conditions.
#[test]
fn wrong_tables_and_conditions_are_refused() {
    let root = "tc qdisc add root handle 1: drr\ntc class add classid 1:1 drr\n\
                tc filter add parent 1: prio 1 handle 2: u32 divisor 4\n";
    for (filter, value, hint) in [
        ("handle 3: u32 divisor 3", "\"divisor 3\"", "power of two"),
        ("handle 3: u32 divisor 512", "\"divisor 512\"", "256"),
        ("u32 divisor 4", "\"divisor\" without", "handle 2:"),
        ("u32 ht 3: match u32 0 0 classid 1:1", "\"ht 3:\"", "a command before"),
        ("u32 ht 2:4: match u32 0 0 classid 1:1", "\"ht 2:4:\"", "below 4"),
        ("u32 match u32 0 0 link 3:", "\"link 3:\"", "a command before"),
        ("u32 match u32 0 0 link 2: hashkey at 12", "\"hashkey mask 0x0", "a mask"),
        ("u32 match u32 0 0 hashkey mask 1 at 12 classid 1:1", "\"hashkey\" without", "table"),
        ("u32 match mark 2 1 classid 1:1", "\"match mark 0x2 0x1\"", "within its mask"),
        ("basic match 'cmp(u16 at 4 gt 1)' classid 1:1", "\"u16 at 4\"", "modelled"),
        ("basic match 'meta(random eq 1)' classid 1:1", "\"random\"", "priority"),
        ("basic match 'meta(priority is 1)' classid 1:1", "\"is\"", "eq"),
        ("basic match 'ipset(x src)' classid 1:1", "\"ipset\"", "cmp"),
        ("basic match '(meta(priority eq 1)' classid 1:1", "\"classid\"", "behind the match"),
        ("basic match 'meta(priority eq 1)'", "no class", "classid"),
    ] {
        let text = format!("{root}tc filter add parent 1: prio 1 {filter}");
        let problem = QdiscSpec::parse(&text).expect_err(&text);
        assert!(problem.value.starts_with(value), "{filter}: {problem}");
        assert!(problem.expected.contains(hint), "{filter}: {problem}");
    }
    // Brackets have a bound, those that words in turn stand for too; what is within it is read back.
    let term = "meta(priority eq 1)";
    let in_turn = |turns: usize| {
        let words = (0..turns).map(|turn| [" and ", " or "][turn % 2].to_owned() + term);
        format!("basic match '{term}{}' classid 1:1", words.collect::<String>())
    };
    for (filter, value) in [
        (format!("basic match '{}{term}' classid 1:1", "not ".repeat(2_000)), "\"not\""),
        (in_turn(18), "\"and\" and \"or\" in turn"),
    ] {
        let text = format!("{root}tc filter add parent 1: prio 1 {filter}");
        let problem = QdiscSpec::parse(&text).expect_err(&text);
        assert!(problem.value.starts_with(value), "{problem}");
        assert!(problem.expected.contains("at most 16"), "{problem}");
    }
    let text = format!("{root}tc filter add parent 1: prio 1 {}", in_turn(16));
    let tree = QdiscSpec::parse(&text).expect("16 turns");
    assert_eq!(QdiscSpec::parse(&tree.print()), Ok(tree.clone()), "{}", tree.print());
    // A circle ends.
    let circle = format!(
        "{root}tc filter add parent 1: prio 1 u32 match u32 0 0 link 2:\n\
         tc filter add parent 1: prio 1 u32 ht 2: match u32 0 0 link 2:"
    );
    let problem = QdiscSpec::parse(&circle).expect_err("a circle");
    assert!(problem.expected.contains("none of which leads to itself"), "{problem}");
}

/// A hash spreads flows over classes, always the same way.
#[test]
fn a_flow_filter_spreads_addresses_over_classes() {
    let mut text = String::from("tc qdisc add root handle 1: drr\n");
    for minor in 1..=8 {
        text.push_str(&format!("tc class add classid 1:{minor} drr\n"));
    }
    text.push_str("tc filter add parent 1: prio 1 flow hash keys src,dst divisor 8\n");
    let senders: Vec<Sender> = (0..64).map(to_address).collect();
    let shares = rates(&text, &senders, 1);
    assert!(shares.iter().all(|&share| share > 1.0), "{shares:?}");
    assert_eq!(shares, rates(&text, &senders, 1));
}

#[test]
fn mistakes_name_the_command_and_what_would_be_right() {
    let root = "tc qdisc add root handle 1: htb default 10\n";
    for (text, value, hint) in [
        ("tc", "no discipline at the root", "tc qdisc add root"),
        ("tc qdisc add root fq_codel", "\"tc ... fq_codel\" alone", "\"fq_codel"),
        ("tc link add", "\"link\"", "qdisc, class, filter"),
        ("tc qdisc del root", "\"del\"", "add"),
        ("tc qdisc add handle 1: htb", "no place", "\"root\""),
        (
            &format!("{root}tc class add parent 1: classid 1:10 htb ceil 1mbit"),
            "no \"rate\"",
            "a class",
        ),
        (
            &format!("{root}tc class add parent 1: classid 1:10 htb rate 1mbit quantum x"),
            "\"quantum x\"",
            "a number",
        ),
        (
            &format!("{root}tc class add parent 1: classid 1:10 hfsc ls m2 1mbit"),
            "\"hfsc\"",
            "\"htb\"",
        ),
        (
            &format!("{root}tc class add parent 1:7 classid 1:10 htb rate 1mbit"),
            "\"parent 1:7\"",
            "before",
        ),
        (
            &format!("{root}tc class add parent 1: classid 1:xyz htb rate 1mbit"),
            "\"classid 1:xyz\"",
            "hexadecimal",
        ),
        (root, "no class", "at least one"),
        (
            &format!(
                "{root}tc class add parent 1: classid 1:10 htb rate 1mbit\ntc qdisc add parent 1:20 sfq"
            ),
            "\"parent 1:20\"",
            "before",
        ),
        (
            &format!(
                "{root}tc class add parent 1: classid 1:10 htb rate 1mbit\ntc qdisc add parent 1:10 fq_codle"
            ),
            "\"fq_codle\"",
            "fq_codel",
        ),
        (
            &format!(
                "{root}tc class add parent 1: classid 1:10 htb rate 1mbit\ntc filter add parent 1: u32 match ip ttl 1 0xff classid 1:10"
            ),
            "\"ttl\"",
            "dport",
        ),
        (
            &format!(
                "{root}tc class add parent 1: classid 1:10 htb rate 1mbit\ntc filter add parent 1: u32 match u32 1 1 at 24 classid 1:10"
            ),
            "\"match u32\"",
            "ports",
        ),
        (
            &format!(
                "{root}tc class add parent 1: classid 1:10 htb rate 1mbit\ntc filter add parent 1: basic match x"
            ),
            "\"x\"",
            "a match with brackets",
        ),
        (
            &format!(
                "{root}tc class add parent 1: classid 1:10 htb rate 1mbit\ntc filter add parent 2: matchall classid 1:10"
            ),
            "\"parent 2:\"",
            "a discipline",
        ),
        (
            "tc qdisc add root handle 1: hfsc\ntc class add parent 1: classid 1:1 hfsc ul m2 1mbit",
            "no curve",
            "\"rt\"",
        ),
        (
            "tc qdisc add root handle 1: prio\ntc qdisc add parent 1:4 sfq",
            "the parent",
            "1:1 to 1:3",
        ),
        (
            "tc qdisc add root handle 1: sfq\ntc qdisc add parent 1:1 sfq",
            "\"sfq\" in \"sfq\"",
            "htb, hfsc",
        ),
    ] {
        let problem = QdiscSpec::parse(text).expect_err(text);
        assert!(problem.value.starts_with(value), "{text}: {problem}");
        assert!(problem.expected.contains(hint), "{text}: {problem}");
    }
}

/// A leaf may decide when hfsc looks at its head (`hfsc_enqueue`): the answer says what became of the packet that came.
#[test]
fn the_answer_knows_what_hfsc_saw_when_it_looked() {
    let tree = |leaf: &str| {
        built(&script(&format!(
            "Q root handle 1: hfsc default 10
             C parent 1: classid 1:10 hfsc rt m2 1mbit
             Q parent 1:10 handle 10: {leaf}"
        )))
    };
    let item = Item { len: 1514, ..Item::default() };
    for (leaf, verdict, packets) in [
        ("netem corrupt 100%", Verdict::Dropped(DropReason::Corrupt), 0),
        ("pfifo", Verdict::Queued, 1),
    ] {
        let (mut tree, mut log) = (tree(leaf), Log::default());
        assert_eq!(tree.enqueue(item, Instant::ZERO, &mut log), verdict, "{leaf}");
        assert_eq!(tree.backlog().packets, packets, "{leaf}");
        assert_eq!(log.drops.len() as u32, 1 - packets, "{leaf}");
    }
}
