//! Captures, decoded by Wireshark's dissector and compared field by field with the events that an observer of the same
//! run saw.

use dragstrip_packet::{Body, EchoKind, Flags, SackBlock};
use dragstrip_scenario::Scenario;
use dragstrip_sim::{
    Capture, CaptureSettings, Event, Loss, Observer, Sighting, Vantage, run, run_observed,
};
use dragstrip_units::Instant;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Every algorithm, queue discipline, impairment and application in one run of ten seconds.
const EVERYTHING: &str = include_str!("../../../tests/golden/recording.scenario.json");

const SETTINGS: CaptureSettings<'_> =
    CaptureSettings { snaplen: 96, datagram_snaplen: 0, program: "test", comment: "a comment" };

const EPOCH_NS: u64 = 1_000_000_000_000_000_000;

/// The first seconds of it.
fn everything() -> Scenario {
    let scenario = Scenario::from_json(EVERYTHING).expect("a scenario");
    Scenario { duration_ns: 5_000_000_000, ..scenario }
}

/// Captures at these points.
fn captured(scenario: &Scenario, points: &[&str], snaplen: u32) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = points.iter().map(|_| Vec::new()).collect();
    let to = points.iter().map(|point| (*point).to_owned()).zip(&mut files).collect();
    let settings = CaptureSettings { snaplen, ..SETTINGS };
    let mut capture = Capture::new(scenario, to, &settings).expect("known points");
    run_observed(scenario, &mut capture, &mut |_| true).expect("a valid scenario");
    capture.finish(Instant::from_nanos(scenario.duration_ns)).expect("memory takes it all");
    files
}

#[test]
fn a_capture_changes_nothing_and_is_the_same_every_time() {
    let scenario = everything();
    let mut nobody = Vec::new();
    let to = vec![(scenario.links[0].name.clone(), &mut nobody)];
    let mut capture = Capture::new(&scenario, to, &SETTINGS).expect("a known point");
    let watched = run_observed(&scenario, &mut capture, &mut |_| true).expect("a valid scenario");
    let unwatched = run(&scenario, &mut |_| true).expect("a valid scenario");
    assert_eq!(watched.sha256(), unwatched.sha256());
    capture.finish(Instant::from_nanos(scenario.duration_ns)).expect("memory takes it all");
    let again = captured(&scenario, &[&scenario.links[0].name], 96);
    assert_eq!(nobody, again[0]);
}

#[test]
fn a_name_of_neither_a_host_nor_a_link_is_refused() {
    let scenario = everything();
    let points = vec![("nowhere".to_owned(), Vec::new())];
    let error = Capture::new(&scenario, points, &SETTINGS).expect_err("nothing is called so");
    assert_eq!(error.field, "--capture");
    assert!(error.message.contains(&scenario.links[0].name), "{}", error.message);
}

/// Expected packets at a host or the near end of a link, a line each, from the simulation's own events.
struct Teller<'a> {
    scenario: &'a Scenario,
    point: &'a str,
    numbers: BTreeMap<u32, u64>,
    next: u64,
    lines: Vec<String>,
}

impl Teller<'_> {
    fn number(&mut self, packet: u32) {
        self.numbers.insert(packet, self.next);
        self.next += 1;
    }

    /// None for a sighting that the file does not contain; otherwise true when the queue dropped the packet.
    fn is_drop(&self, link: usize, netem: bool, event: Event) -> Option<bool> {
        let of = &self.scenario.links[link];
        let captured_link = self.scenario.links.iter().find(|link| link.name == self.point);
        let leaves = captured_link
            .map_or(of.from == self.point, |captured_link| captured_link.name == of.name);
        let arrives = captured_link.map_or(of.to == self.point, |captured_link| {
            (&of.from, &of.to) == (&captured_link.to, &captured_link.from)
        });
        let passes = (event == Event::Dequeued && leaves && !netem)
            || (event == Event::Arrived && arrives && netem == of.netem.is_some());
        let drops =
            matches!(event, Event::Dropped(Loss::Queue(_))) && captured_link.is_some() && leaves;
        (passes || (drops && !netem)).then_some(drops)
    }
}

impl Observer for Teller<'_> {
    fn saw(&mut self, sighting: &Sighting<'_>) {
        if matches!(sighting.event, Event::Sent { .. } | Event::Duplicated { .. }) {
            self.number(sighting.packet.0);
        }
        let Vantage::Link { link, netem } = sighting.vantage else { return };
        let Some(dropped) = self.is_drop(link as usize, netem, sighting.event) else { return };
        if sighting.at.as_nanos() > self.scenario.duration_ns {
            return;
        }
        let mut line = String::new();
        let (number, at) = (self.numbers[&sighting.packet.0], sighting.at.as_nanos() + EPOCH_NS);
        let (seconds, rest) = (at / 1_000_000_000, at % 1_000_000_000);
        let (class, len) = (sighting.class.octet(), sighting.body.frame_len());
        write!(line, "{number} {seconds}.{rest:09} {len} {class:#04x} {dropped} ").expect("text");
        match sighting.body {
            Body::Tcp(segment) => {
                let acks = segment.flags.has(Flags::ACK);
                let (flags, ack) = (segment.flags.wire(), if acks { segment.ack } else { 0 });
                let (seq, len, window) = (segment.seq, segment.len, segment.window);
                write!(line, "tcp {flags:#06x} {seq} {ack} {len} {window}").expect("text");
                if let Some(stamps) = segment.timestamps() {
                    write!(line, " stamps {} {}", stamps.val, stamps.ecr).expect("text");
                }
                let edges = |block: SackBlock| block.range(segment.ack);
                for (start, end) in segment.sack().map(edges) {
                    write!(line, " sack {start} {end}").expect("text");
                }
                if let Some(syn) = segment.syn_options() {
                    let (mss, sack) = (syn.mss, syn.sack_permitted);
                    write!(line, " mss {mss} {:?} {sack}", syn.window_scale).expect("text");
                }
            }
            Body::Udp(datagram) => write!(line, "udp {}", datagram.len + 8).expect("text"),
            Body::Quic(datagram) => write!(line, "udp {}", datagram.len + 8).expect("text"),
            Body::Icmp(echo) => {
                let kind = if echo.kind == EchoKind::Request { 8 } else { 0 };
                write!(line, "icmp {kind} {}", echo.sequence as u16).expect("text");
            }
        }
        self.lines.push(line);
    }
}

/// Fields requested from tshark.
const FIELDS: &[&str] = &[
    "frame.packet_id",
    "frame.time_epoch",
    "frame.len",
    "ip.dsfield",
    "frame.comment",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmp.checksum.status",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.window_size_value",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.sack_perm",
    "udp.length",
    "icmp.type",
    "icmp.seq",
];

/// Its answer, a line for each packet; none where it is not installed.
fn tshark(file: &[u8]) -> Option<Vec<BTreeMap<&'static str, String>>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-n", "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]);
    for preference in [
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.relative_sequence_numbers:FALSE",
        "tcp.analyze_sequence_numbers:FALSE",
    ] {
        command.args(["-o", preference]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().expect("a pipe");
    let answer = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(file).expect("tshark reads it"));
        child.wait_with_output().expect("tshark ends")
    });
    assert!(answer.status.success());
    let text = String::from_utf8(answer.stdout).expect("text");
    let fields =
        |line: &str| FIELDS.iter().copied().zip(line.split(';').map(ToOwned::to_owned)).collect();
    Some(text.lines().map(fields).collect())
}

/// The initial sequence number and window scale of each side of each connection, by its ports.
type Sides = BTreeMap<(String, String), (u32, Option<u32>)>;

fn sides(packets: &[BTreeMap<&'static str, String>]) -> Sides {
    let syn = |flags: &str| {
        flags
            .strip_prefix("0x")
            .is_some_and(|hex| u16::from_str_radix(hex, 16).expect("hex") & 2 != 0)
    };
    let client_ports = packets.iter().filter(|packet| syn(&packet["tcp.flags"])).map(|packet| {
        let ports = (packet["tcp.srcport"].clone(), packet["tcp.dstport"].clone());
        (ports, (number(packet, "tcp.seq_raw"), packet["tcp.options.wscale.shift"].parse().ok()))
    });
    client_ports.collect()
}

fn number(packet: &BTreeMap<&'static str, String>, field: &str) -> u32 {
    packet[field].parse().expect("a number")
}

/// The line of [`Teller`] that corresponds to tshark's fields of a packet.
fn line_of(packet: &BTreeMap<&'static str, String>, sides: &Sides) -> String {
    let get = |field: &str| packet[field].as_str();
    let dropped = !get("frame.comment").is_empty();
    let mut line = format!(
        "{} {} {} {} {dropped} ",
        get("frame.packet_id"),
        get("frame.time_epoch"),
        get("frame.len"),
        get("ip.dsfield")
    );
    assert_eq!(get("ip.checksum.status"), "1", "{packet:?}");
    if !get("icmp.type").is_empty() {
        write!(line, "icmp {} {}", get("icmp.type"), get("icmp.seq")).expect("text");
    } else if !get("udp.length").is_empty() {
        write!(line, "udp {}", get("udp.length")).expect("text");
    } else {
        line += &told_of_tcp(packet, sides);
    }
    line
}

fn told_of_tcp(packet: &BTreeMap<&'static str, String>, sides: &Sides) -> String {
    let get = |field: &str| packet[field].as_str();
    let (source, target) = (get("tcp.srcport").to_owned(), get("tcp.dstport").to_owned());
    let flags = u16::from_str_radix(&get("tcp.flags")[2..], 16).expect("hex");
    let (syn, acks) = (flags & 2 != 0, flags & 16 != 0);
    let peer = sides.get(&(target.clone(), source.clone()));
    let (isn, scale) = sides[&(source, target)];
    let behind = |isn: u32, raw: u32| raw.wrapping_sub(isn).wrapping_sub(1);
    let seq = if syn { 0 } else { behind(isn, number(packet, "tcp.seq_raw")) };
    let base = peer.map_or(0, |peer| peer.0);
    let ack = if acks { behind(base, number(packet, "tcp.ack_raw")) } else { 0 };
    let shift = scale.filter(|_| !syn && peer.is_some_and(|peer| peer.1.is_some())).unwrap_or(0);
    let window = number(packet, "tcp.window_size_value") << shift;
    let mut line = format!("tcp {flags:#06x} {seq} {ack} {} {window}", get("tcp.len"));
    if !get("tcp.options.timestamp.tsval").is_empty() {
        let (val, ecr) = (get("tcp.options.timestamp.tsval"), get("tcp.options.timestamp.tsecr"));
        write!(line, " stamps {val} {ecr}").expect("text");
    }
    let edges = |field: &str| -> Vec<u32> {
        let raw = get(field).split(',').filter(|edge| !edge.is_empty());
        raw.map(|edge| behind(base, edge.parse().expect("a number"))).collect()
    };
    for (start, end) in edges("tcp.options.sack_le").iter().zip(edges("tcp.options.sack_re")) {
        write!(line, " sack {start} {end}").expect("text");
    }
    if syn {
        let scale: Option<u8> = get("tcp.options.wscale.shift").parse().ok();
        let permitted = !get("tcp.options.sack_perm").is_empty();
        write!(line, " mss {} {scale:?} {permitted}", get("tcp.options.mss_val")).expect("text");
    }
    line
}

/// Segments, options, windows, codepoints, stamps, lengths, drops: nothing is in the file that was not seen, and nothing is
/// missing. Checksums are tshark's own.
#[test]
fn wireshark_reads_what_the_simulation_sent() {
    let scenario = everything();
    let host = scenario.flows[0].receiver.as_str();
    let link = scenario.links.iter().find(|link| link.netem.is_some()).expect("a netem");
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for point in [host, link.name.as_str()] {
        let file = captured(&scenario, &[point], 2_000).remove(0);
        let Some(packets) = tshark(&file) else {
            eprintln!("skipped: tshark is not installed");
            return;
        };
        let (numbers, lines) = (BTreeMap::new(), Vec::new());
        let mut teller = Teller { scenario: &scenario, point, numbers, next: 0, lines };
        run_observed(&scenario, &mut teller, &mut |_| true).expect("a valid scenario");
        let sides = sides(&packets);
        let mut dissected: Vec<String> =
            packets.iter().map(|packet| line_of(packet, &sides)).collect();
        for status in ["tcp.checksum.status", "udp.checksum.status", "icmp.checksum.status"] {
            let wrong = packets.iter().find(|packet| !["", "1"].contains(&packet[status].as_str()));
            assert_eq!(wrong, None, "{status}");
        }
        let at = |packet: &BTreeMap<&'static str, String>| packet["frame.time_epoch"].clone();
        assert!(packets.is_sorted_by_key(at), "in the order of time");
        dissected.sort();
        teller.lines.sort();
        let differs =
            dissected.iter().zip(&teller.lines).find(|(dissected, expected)| dissected != expected);
        assert_eq!(differs, None, "at {point}");
        assert_eq!(dissected.len(), teller.lines.len(), "at {point}");
        for kind in [" sack ", " mss ", " true ", " udp ", " icmp ", " 0x03 ", " 0x02 "] {
            let count = dissected.iter().filter(|line| line.contains(kind)).count();
            *kinds.entry(kind).or_default() += count;
        }
    }
    assert!(kinds.values().all(|count| *count > 0), "{kinds:?}");
}
