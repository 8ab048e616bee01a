//! ECN feedback that an algorithm receives, from one that records every call: a guest
//! ([`dragstrip_cc::Guest`]) with the reduction of RFC 8257.

use crate::harness::{Host, at_ms, settings, stock};
use dragstrip_cc::algorithms::reno;
use dragstrip_cc::{
    About, AckEvent, Algorithm, CongestionControl, EcnMode, Event, Guest, Needs, RateSample,
    Response, Signal, View, Window,
};
use dragstrip_tcp::{Ecn, Endpoint, Flags, Outbox, Role, Segment, Settings};
use dragstrip_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

const CLASSIC: About = About {
    name: "toy-classic",
    file: file!(),
    models: "none",
    module: None,
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[],
    needs: Needs::NOTHING,
};
const DCTCP: About =
    About { name: "toy-dctcp", needs: Needs { ecn: EcnMode::Dctcp, ..Needs::NOTHING }, ..CLASSIC };
const L4S: About =
    About { name: "toy-l4s", needs: Needs { ecn: EcnMode::L4s, ..Needs::NOTHING }, ..CLASSIC };

/// α of RFC 8257 §3.3 and counts of every call.
#[derive(Clone, Debug)]
struct Toy {
    about: &'static About,
    /// It wants delivery-rate samples instead of `cong_avoid`.
    samples: bool,
    alpha: f64,
    round_ends: u64,
    /// `delivered` and `delivered_ce` when the round began.
    before: (u64, u64),
    reported: BTreeMap<&'static str, f64>,
}

impl Toy {
    fn new(about: &'static About) -> Self {
        let (alpha, round_ends, before) = (1.0, 0, (0, 0));
        Self { about, samples: false, alpha, round_ends, before, reported: BTreeMap::new() }
    }

    fn count(&mut self, name: &'static str, more: u32) {
        *self.reported.entry(name).or_default() += f64::from(more);
    }
}

impl CongestionControl for Toy {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.count("agreed", u32::from(view.ecn));
        self.before = (view.delivered, view.delivered_ce);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        ((f64::from(window.cwnd) * (1.0 - self.alpha / 2.0)) as u32).max(2)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        reno::grow(view, window, acked);
        Response::None
    }

    fn in_ack_event(&mut self, view: &View, _window: &mut Window, event: &AckEvent) {
        self.count("acks", 1);
        self.count("predicted", u32::from(!event.slow_path));
        self.count("window_updates", u32::from(event.window_update));
        self.count("echoes", u32::from(event.ece));
        self.count("delivered", event.newly_delivered);
        self.count("marked", event.newly_marked);
        if view.snd_una > self.round_ends {
            let (delivered, marked) = self.before;
            let share =
                (view.delivered_ce - marked) as f64 / (view.delivered - delivered).max(1) as f64;
            self.alpha += (share - self.alpha) / 16.0;
            self.before = (view.delivered, view.delivered_ce);
            self.round_ends = view.snd_nxt;
        }
    }

    fn cwnd_event(&mut self, _view: &View, _window: &mut Window, event: Event) {
        self.count("arrived_marked", u32::from(event == Event::EcnIsCe));
        self.count("arrived_unmarked", u32::from(event == Event::EcnNoCe));
    }

    fn has_cong_control(&self) -> bool {
        self.samples
    }

    fn cong_control(
        &mut self,
        _view: &View,
        _window: &mut Window,
        sample: &RateSample,
    ) -> Response {
        self.count("sampled_echoes", u32::from(sample.is_ece));
        self.count("sampled_newly_marked", sample.newly_marked);
        self.reported.insert("sample_delivered", f64::from(sample.delivered.unwrap_or(0)));
        self.reported.insert("sample_marked", f64::from(sample.delivered_ce));
        Response::None
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        self.reported.iter().for_each(|(name, value)| tell(name, *value));
    }
}

impl Guest for Toy {
    fn about(&self) -> &'static About {
        self.about
    }

    fn boxed(&self) -> Box<dyn Guest> {
        Box::new(self.clone())
    }
}

fn reported(endpoint: &Endpoint, name: &str) -> f64 {
    let mut found = 0.0;
    endpoint.variables(&mut |reported, value| {
        if reported == name {
            found = value;
        }
    });
    found
}

fn guest(toy: Toy, settings: &Settings) -> Host {
    Host::connected_with(Algorithm::Guest(Box::new(toy)), 100, settings)
}

fn asking() -> Settings {
    settings(|s| s.ecn_request = true)
}

#[test]
fn an_ack_says_what_it_delivers_and_what_of_it_is_marked() {
    let mut host = guest(Toy::new(&CLASSIC), &asking());
    let all = |host: &Host| -> Vec<f64> {
        let names = ["acks", "predicted", "echoes", "delivered", "marked"];
        names.iter().map(|name| reported(host.endpoint(), name)).collect()
    };
    assert_eq!(all(&host), [0.0; 5]);
    host.write_endless().until(200).ack(2);
    assert_eq!(all(&host), [1.0, 1.0, 0.0, 2.0, 0.0]);
    host.flags = Flags::ACK.with(Flags::ECE);
    host.ack(5);
    assert_eq!(all(&host), [2.0, 1.0, 1.0, 5.0, 3.0], "an echo is off the predicted path");
    host.flags = Flags::ACK;
    host.sack(5, &[(6, 8)]);
    assert_eq!(all(&host), [3.0, 1.0, 1.0, 7.0, 3.0], "so is a SACK");
    host.window /= 2;
    host.ack(8);
    assert_eq!(all(&host), [4.0, 1.0, 1.0, 8.0, 3.0], "and another window");
    assert_eq!(reported(host.endpoint(), "window_updates"), 3.0, "all but the duplicate");
}

/// With nothing outstanding nothing is delivered, and the hook runs all the same.
#[test]
fn an_ack_of_nothing_is_an_event_too() {
    let mut host = guest(Toy::new(&CLASSIC), &asking());
    host.write(2).until(200).ack(2);
    host.window += 1_000;
    host.ack(2);
    assert_eq!(
        (reported(host.endpoint(), "acks"), reported(host.endpoint(), "delivered")),
        (2.0, 2.0)
    );
}

/// Packets that a sample counts as marked belong to the interval since the sampled segment was sent, not to the
/// connection.
#[test]
fn a_rate_sample_counts_the_marks_of_its_own_interval() {
    let toy = Toy { samples: true, ..Toy::new(&CLASSIC) };
    let mut host = guest(toy, &asking());
    let sample = |host: &Host| {
        (reported(host.endpoint(), "sample_delivered"), reported(host.endpoint(), "sample_marked"))
    };
    host.write_endless().until(200);
    host.flags = Flags::ACK.with(Flags::ECE);
    host.ack(4);
    assert_eq!(sample(&host), (4.0, 4.0));
    host.flags = Flags::ACK;
    host.ack(10);
    assert_eq!(sample(&host), (10.0, 4.0), "all ten left before the mark was known");
    // Segments 10 to 13 left when the first ACK came, the others with the second.
    host.until(300).ack(14);
    assert_eq!(sample(&host), (10.0, 0.0));
    assert_eq!(reported(host.endpoint(), "sampled_echoes"), 1.0);
    assert_eq!(reported(host.endpoint(), "sampled_newly_marked"), 4.0);
}

/// Without ECN an echo says nothing.
#[test]
fn an_echo_without_agreement_marks_nothing() {
    let mut host = guest(Toy::new(&CLASSIC), &stock());
    host.write_endless().until(200);
    host.flags = Flags::ACK.with(Flags::ECE);
    host.ack(4);
    let reported = |name| reported(host.endpoint(), name);
    assert_eq!((reported("agreed"), reported("delivered"), reported("marked")), (0.0, 4.0, 0.0));
}

/// A path of 20 ms that marks two of seven data segments.
#[derive(Debug, Default)]
struct Path {
    on_the_way: VecDeque<(Instant, Segment, Ecn)>,
    data: u32,
    marked: u32,
    codepoints: Vec<(bool, Ecn)>,
}

impl Outbox for Path {
    fn send(&mut self, segment: &Segment, ecn: Ecn, now: Instant) -> Option<Instant> {
        self.codepoints.push((segment.len > 0, ecn));
        let mut arrives = ecn;
        if segment.len > 0 {
            self.data += 1;
            if ecn.is_capable() && self.data % 7 >= 5 {
                arrives = Ecn::Ce;
                self.marked += 1;
            }
        }
        self.on_the_way.push_back((now + Duration::from_millis(10), *segment, arrives));
        Some(now)
    }
}

/// Two endpoints with the same algorithm; the first sends `segments`. Both, and the ways to and from the second.
fn transfer(about: &'static About, segments: u64, settings: &Settings) -> [(Endpoint, Path); 2] {
    let settings = settings.clone().shared();
    let end = |role| {
        let cc = Algorithm::Guest(Box::new(Toy::new(about)));
        (Endpoint::new(role, &settings, cc), Path::default())
    };
    let [mut client, mut server] = [end(Role::Client), end(Role::Server)];
    client.0.open(Instant::ZERO, &mut client.1);
    client.0.write_until(segments * 1_448, Instant::ZERO, &mut client.1);
    loop {
        let arrival = |path: &Path| path.on_the_way.front().map_or(Instant::NEVER, |first| first.0);
        let (to_server, to_client) = (arrival(&client.1), arrival(&server.1));
        let timers = client.0.deadline().min(server.0.deadline());
        let now = to_server.min(to_client).min(timers);
        if now > at_ms(60_000) || client.0.is_drained() {
            return [client, server];
        }
        if to_server == now {
            let (_, segment, ecn) = client.1.on_the_way.pop_front().unwrap();
            server.0.on_segment(&segment, ecn, now, &mut server.1);
        } else if to_client == now {
            let (_, segment, ecn) = server.1.on_the_way.pop_front().unwrap();
            client.0.on_segment(&segment, ecn, now, &mut client.1);
        } else {
            for end in [&mut client, &mut server] {
                if end.0.deadline() <= now {
                    end.0.on_deadline(now, &mut end.1);
                }
            }
        }
    }
}

/// RFC 8257 §3.2: delayed ACKs and all, the sender counts every mark and nothing else.
#[test]
fn dctcp_s_feedback_counts_every_mark() {
    let [(client, there), (server, _)] = transfer(&DCTCP, 5_000, &stock());
    assert!(client.is_drained());
    assert!(client.ecn_negotiated(), "although no setting asks for it");
    assert_eq!((client.retransmits(), there.data), (0, 5_000));
    assert_eq!(there.marked, 5_000 / 7 * 2);
    assert_eq!(reported(&client, "marked"), f64::from(there.marked));
    assert_eq!(reported(&client, "delivered"), 5_000.0);
    assert_eq!(reported(&server, "arrived_marked"), f64::from(there.marked));
    assert_eq!(reported(&server, "arrived_unmarked"), f64::from(there.data - there.marked));
}

/// RFC 9768: so does that of accurate ECN, with a window in which an ACK covers more than seven packets now and then.
#[test]
fn accurate_feedback_counts_every_mark() {
    let accurate = settings(|s| (s.accurate_ecn_request, s.accurate_ecn_accept) = (true, true));
    // The option takes twelve bytes of each.
    let segments = (5_000_u32 * 1_448).div_ceil(1_448 - 12);
    for (about, settings) in [(&CLASSIC, &accurate), (&L4S, &stock())] {
        let [(client, there), (server, back)] = transfer(about, 5_000, settings);
        assert!(client.is_drained() && client.ecn_negotiated() && server.ecn_negotiated());
        assert_eq!((client.retransmits(), there.data), (0, segments));
        assert_eq!(there.marked, segments / 7 * 2);
        assert_eq!(reported(&client, "marked"), f64::from(there.marked), "{}", about.name);
        assert_eq!(reported(&client, "delivered"), f64::from(segments));
        assert_eq!(reported(&server, "arrived_marked"), 0.0, "no event of its algorithm");
        // RFC 9331 §4.1: ECT(1) says that the algorithm is one for L4S.
        let codepoint = if about.name == "toy-l4s" { Ecn::Ect1 } else { Ecn::Ect0 };
        let handshake = if about.name == "toy-l4s" { Ecn::Ect1 } else { Ecn::NotEct };
        for path in [&there, &back] {
            assert_eq!(path.codepoints[0].1, handshake);
            assert!(path.codepoints[1..].iter().all(|sent| sent.1 == codepoint));
        }
    }
}

/// An algorithm for L4S has accurate ECN or none: against a host that knows no other than RFC 3168 it has none, and no more than
/// the SYN says ECT(1).
#[test]
fn an_algorithm_for_l4s_takes_no_classic_ecn() {
    let cc = Algorithm::Guest(Box::new(Toy::new(&L4S)));
    let mut host = Host::connected_with(cc, 100, &stock());
    host.write_endless();
    let departures = host.departures();
    assert_eq!((departures[0].segment.flags.ace(), departures[0].ecn), (7, Ecn::Ect1), "it asks");
    assert!(!host.endpoint().ecn_negotiated(), "and is answered as RFC 3168 has it");
    assert!(departures[1..].iter().all(|departure| departure.ecn == Ecn::NotEct));
}

/// The classic echo lasts until CWR: more is counted than was marked, and arriving marks are no events.
#[test]
fn the_classic_echo_overcounts() {
    let [(client, there), (server, _)] = transfer(&CLASSIC, 2_000, &asking());
    assert!(client.is_drained() && there.marked > 0);
    let marked = reported(&client, "marked");
    assert!(marked > 1.2 * f64::from(there.marked), "{marked} of {}", there.marked);
    assert_eq!(reported(&server, "arrived_marked") + reported(&server, "arrived_unmarked"), 0.0);
}

/// RFC 3168 §6.1.1, §6.1.4: neither SYNs nor pure ACKs are ECN-capable. DCTCP's all are.
#[test]
fn the_mode_says_which_segments_are_capable() {
    let capable = |about, settings: &Settings| {
        transfer(about, 100, settings).map(|(_, path)| {
            let count = |data: bool| path.codepoints.iter().filter(move |sent| sent.0 == data);
            let all = |data| count(data).all(|sent| sent.1 == Ecn::Ect0);
            let none = |data| count(data).all(|sent| sent.1 == Ecn::NotEct);
            (all(true), all(false), none(false))
        })
    };
    // (all data, all others, none of the others); the server sends no data.
    assert_eq!(capable(&CLASSIC, &asking()), [(true, false, true), (true, false, true)]);
    assert_eq!(capable(&DCTCP, &stock()), [(true, true, false), (true, true, false)]);
}

/// A server that knows RFC 3168 only does not grant ECN to a SYN that is itself capable.
#[test]
fn a_classic_server_refuses_a_capable_syn() {
    for (about, granted) in [(&CLASSIC, false), (&DCTCP, true)] {
        let cc = Algorithm::Guest(Box::new(Toy::new(about)));
        let mut server = Endpoint::new(Role::Server, &stock().shared(), cc);
        let mut path = Path::default();
        server.open(Instant::ZERO, &mut path);
        let syn = Segment::new(0, 0, Flags::SYN.with(Flags::ECE).with(Flags::CWR));
        server.on_segment(&syn, Ecn::Ect0, at_ms(1), &mut path);
        let (_, answer, _) = path.on_the_way.pop_front().unwrap();
        assert_eq!(answer.flags.has(Flags::ECE), granted, "{}", about.name);
    }
}
