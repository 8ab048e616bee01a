//! One endpoint on a virtual clock, its peer played by a script.
//!
//! Positions are counted in full segments, times in milliseconds since the start of the run. The peer
//! echoes timestamps as RFC 7323 §4.3 asks: of the segment that advanced the window, in its
//! last transmission unless the script says otherwise.

use dragstrip_cc::{Algorithm, Options};
use dragstrip_tcp::{
    Ecn, Endpoint, Flags, Metrics, Outbox, Role, SackBlock, Segment, Settings, Snapshot,
    SynOptions, Timestamps,
};
use dragstrip_units::{Duration, Instant, Stream};

/// Options that a script's SYN offers: SACK, timestamps, window scaling.
pub const SACK: i32 = 1;
pub const TIMESTAMPS: i32 = 2;
pub const SCALING: i32 = 4;

/// A segment that left the endpoint.
#[derive(Clone, Debug)]
pub struct Departure {
    pub at: Instant,
    pub segment: Segment,
    pub ecn: Ecn,
}

impl Departure {
    /// The timestamps option, if it has to be there.
    pub fn stamps(&self) -> Timestamps {
        self.segment.timestamps().expect("timestamps")
    }
}

/// The options of a SYN with these bits.
fn syn_options(bits: i32, mss: u16) -> SynOptions {
    SynOptions {
        mss,
        window_scale: (bits & SCALING != 0).then_some(7),
        sack_permitted: bits & SACK != 0,
    }
}

/// The endpoint's own interface: every segment is written down, and leaves `per_segment` after the
/// one before it.
#[derive(Debug, Default)]
struct Wire {
    log: Vec<Departure>,
    per_segment: Duration,
    free: Instant,
    /// Segments that it still has room for.
    room: Option<u64>,
}

impl Outbox for Wire {
    fn send(&mut self, segment: &Segment, ecn: Ecn, now: Instant) -> Option<Instant> {
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(1)?;
        }
        self.log.push(Departure { at: now, segment: *segment, ecn });
        if self.per_segment == Duration::ZERO {
            return Some(now);
        }
        self.free = self.free.max(now) + self.per_segment;
        Some(self.free)
    }
}

/// A pure ACK: ms, acknowledged segments, SACK blocks in segments.
pub type SeenAck = (u64, u64, Vec<(u64, u64)>);

pub fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

pub fn ms(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

/// An endpoint and the script that plays its peer.
pub struct Host {
    endpoint: Endpoint,
    wire: Wire,
    now: Instant,
    mss: u64,
    /// Position up to which the log has been read.
    read: usize,
    /// The peer's cumulative ACK, the timestamp it echoes, the window it offers, the flags of
    /// its ACKs.
    acked: u64,
    echo: u32,
    /// Age of arriving segments since they left the peer, ms.
    late: u64,
    pub window: u32,
    pub flags: Flags,
    timestamps: bool,
}

impl Host {
    fn new(role: Role, cc: &str, settings: &Settings) -> Self {
        let stream = Stream::named(1, "timeline");
        let rules = &settings.profile.congestion;
        let cc = Algorithm::new(cc, &Options::new(), rules, stream).expect("a known algorithm");
        Self::with(role, cc, settings)
    }

    fn with(role: Role, cc: Algorithm, settings: &Settings) -> Self {
        Self {
            endpoint: Endpoint::new(role, &settings.clone().shared(), cc),
            wire: Wire::default(),
            now: Instant::ZERO,
            mss: u64::from(settings.mss()),
            read: 0,
            acked: 0,
            echo: 0,
            late: 0,
            window: 4_000_000,
            flags: Flags::ACK,
            timestamps: settings.timestamps,
        }
    }

    /// A client that sends its SYN at 0.
    pub fn client(cc: &str, settings: &Settings) -> Self {
        let mut host = Self::new(Role::Client, cc, settings);
        host.endpoint.open(host.now, &mut host.wire);
        host
    }

    /// A client whose SYN is answered after `rtt_ms`, by a peer that grants all it asks for.
    pub fn connected(cc: &str, rtt_ms: u64, settings: &Settings) -> Self {
        let mut host = Self::client(cc, settings);
        host.until(rtt_ms);
        host.answer_syn(SACK | TIMESTAMPS | SCALING);
        host
    }

    /// The same with an algorithm that has no name.
    pub fn connected_with(cc: Algorithm, rtt_ms: u64, settings: &Settings) -> Self {
        let mut host = Self::with(Role::Client, cc, settings);
        host.endpoint.open(host.now, &mut host.wire);
        host.until(rtt_ms);
        host.answer_syn(SACK | TIMESTAMPS | SCALING);
        host
    }

    /// The same, of a host that remembers `metrics` of the peer.
    pub fn recalling(cc: &str, rtt_ms: u64, metrics: Metrics, settings: &Settings) -> Self {
        let mut host = Self::new(Role::Client, cc, settings);
        host.endpoint.recall(metrics);
        host.endpoint.open(host.now, &mut host.wire);
        host.until(rtt_ms);
        host.answer_syn(SACK | TIMESTAMPS | SCALING);
        host
    }

    /// A server that has finished the handshake at `rtt_ms`; its client sends the data.
    pub fn receiver(rtt_ms: u64, settings: &Settings) -> Self {
        let mut host = Self::new(Role::Server, "reno", settings);
        host.endpoint.open(host.now, &mut host.wire);
        let ecn = Flags::ECE.with(Flags::CWR);
        let mut syn = Segment::new(0, 0, Flags::SYN.with_if(ecn, settings.ecn_accept));
        syn.window = 65_535;
        syn.set_syn_options(syn_options(SACK | SCALING, settings.advmss() as u16));
        syn.set_timestamps(Timestamps::default());
        host.deliver(&syn);
        host.until(rtt_ms);
        let ack = host.segment_of_peer(0, 0);
        host.deliver(&ack);
        host.forget();
        host
    }

    /// The peer's SYN-ACK with these option bits.
    pub fn answer_syn(&mut self, bits: i32) {
        self.answer_syn_with_mss(bits, 65_535);
    }

    /// ... and this announced MSS.
    pub fn answer_syn_with_mss(&mut self, bits: i32, mss: u16) {
        let grant = self.wire.log[0].segment.flags.has(Flags::ECE);
        let flags = Flags::SYN.with(Flags::ACK).with_if(Flags::ECE, grant);
        let mut segment = Segment::new(0, 0, flags);
        segment.window = self.window;
        segment.set_syn_options(syn_options(bits, mss));
        if bits & TIMESTAMPS != 0 {
            let syn = self.wire.log.last().and_then(|syn| syn.segment.timestamps());
            let ecr = syn.unwrap_or_default().val;
            segment.set_timestamps(Timestamps { val: 0, ecr });
        }
        if bits & TIMESTAMPS == 0 && self.timestamps {
            self.timestamps = false;
            self.mss += 12;
        }
        self.deliver(&segment);
    }

    fn deliver(&mut self, segment: &Segment) {
        self.deliver_marked(segment, Ecn::NotEct);
    }

    fn deliver_marked(&mut self, segment: &Segment, ecn: Ecn) {
        self.endpoint.on_segment(segment, ecn, self.now, &mut self.wire);
    }

    fn segment_of_peer(&self, seq: u64, len: u16) -> Segment {
        let mut segment = Segment::new(seq, len, self.flags);
        segment.window = self.window;
        if self.timestamps {
            let val = (ms(self.now) - self.late) as u32;
            segment.set_timestamps(Timestamps { val, ecr: self.echo });
        }
        segment
    }

    // ---- the clock ----

    /// Lets time pass until `at` ms; whatever timers are due until then go off at their instants.
    pub fn until(&mut self, at: u64) -> &mut Self {
        self.until_instant(at_ms(at))
    }

    pub fn until_instant(&mut self, end: Instant) -> &mut Self {
        assert!(ms(end) >= ms(self.now), "the script goes back in time");
        let end = end.max(self.now);
        while self.endpoint.deadline() <= end {
            let due = self.endpoint.deadline().max(self.now);
            self.now = due;
            self.endpoint.on_deadline(due, &mut self.wire);
        }
        self.now = end;
        self
    }

    pub fn now_ms(&self) -> u64 {
        ms(self.now)
    }

    /// Lets `span` ms pass.
    pub fn wait(&mut self, span: u64) -> &mut Self {
        self.until_instant(self.now + Duration::from_millis(span))
    }

    // ---- the application ----

    pub fn write_endless(&mut self) -> &mut Self {
        self.endpoint.write_endless(self.now, &mut self.wire);
        self
    }

    /// The application's stream now ends after `segments` full segments.
    pub fn write(&mut self, segments: u64) -> &mut Self {
        self.write_bytes(segments * self.mss)
    }

    pub fn write_bytes(&mut self, total: u64) -> &mut Self {
        self.endpoint.write_until(total, self.now, &mut self.wire);
        self
    }

    // ---- the peer as a receiver ----

    /// The peer acknowledges everything below segment `upto`.
    pub fn ack(&mut self, upto: u64) -> &mut Self {
        self.sack(upto, &[])
    }

    /// The peer acknowledges everything sent so far.
    pub fn ack_all(&mut self) -> &mut Self {
        self.ack(self.total())
    }

    /// ... and reports `blocks` of segments, a duplicate first if there is one.
    pub fn sack(&mut self, upto: u64, blocks: &[(u64, u64)]) -> &mut Self {
        let advanced_by = self.acked;
        if upto > self.acked {
            self.echo = self.stamp_of(advanced_by, true);
        }
        self.raw_ack(upto, blocks)
    }

    /// The same, by the original of a segment that has been retransmitted meanwhile.
    pub fn ack_of_original(&mut self, upto: u64, blocks: &[(u64, u64)]) -> &mut Self {
        self.echo = self.stamp_of(self.acked, false);
        self.raw_ack(upto, blocks)
    }

    /// An ACK's own clock is a tick behind that of the segments it releases: one that comes a tick late has an RTT in whole milliseconds.
    fn comes_a_tick_late(&mut self) {
        self.now += Duration::from_micros(1);
    }

    fn raw_ack(&mut self, upto: u64, blocks: &[(u64, u64)]) -> &mut Self {
        self.comes_a_tick_late();
        self.acknowledge(upto, blocks)
    }

    /// In the very instant.
    pub fn ack_at_once(&mut self, upto: u64) -> &mut Self {
        self.acknowledge(upto, &[])
    }

    fn acknowledge(&mut self, upto: u64, blocks: &[(u64, u64)]) -> &mut Self {
        let mut segment = self.segment_of_peer(0, 0);
        segment.ack = upto * self.mss;
        let [upto_byte, mss] = [segment.ack, self.mss];
        let relative =
            |block: &(u64, u64)| SackBlock::relative(upto_byte, block.0 * mss, block.1 * mss);
        segment.set_sack(&blocks.iter().map(relative).collect::<Vec<_>>());
        self.acked = self.acked.max(upto);
        self.deliver(&segment);
        self
    }

    /// The peer acknowledges everything below byte `upto`.
    pub fn ack_bytes(&mut self, upto: u64) -> &mut Self {
        self.comes_a_tick_late();
        let mut segment = self.segment_of_peer(0, 0);
        segment.ack = upto;
        self.deliver(&segment);
        self
    }

    /// Timestamp of the last (or first) transmission of segment `number`.
    fn stamp_of(&self, number: u64, last: bool) -> u32 {
        let seq = number * self.mss;
        let mut of_it = self.wire.log.iter().filter(|sent| {
            sent.segment.len > 0 && sent.segment.seq <= seq && sent.segment.end_seq() > seq
        });
        let departure = if last { of_it.next_back() } else { of_it.next() };
        departure.and_then(|sent| sent.segment.timestamps()).map_or(self.echo, |stamps| stamps.val)
    }

    // ---- the peer as a sender ----

    /// Full segment `number` arrives.
    pub fn data(&mut self, number: u64) -> &mut Self {
        self.data_with(number, Flags::ACK)
    }

    pub fn data_with(&mut self, number: u64, flags: Flags) -> &mut Self {
        self.data_marked(number, Ecn::NotEct, flags)
    }

    /// The same with this codepoint in its IP header.
    pub fn data_marked(&mut self, number: u64, ecn: Ecn, flags: Flags) -> &mut Self {
        let mut segment = self.segment_of_peer(number * self.mss, self.mss as u16);
        segment.flags = segment.flags.with(flags);
        self.deliver_marked(&segment, ecn);
        self
    }

    /// `len` bytes from byte `seq` on arrive.
    pub fn bytes(&mut self, seq: u64, len: u16) -> &mut Self {
        let segment = self.segment_of_peer(seq, len);
        self.deliver(&segment);
        self
    }

    /// The peer's data answer what was sent `age` ms ago.
    pub fn echoing(&mut self, age: u64) -> &mut Self {
        self.echo = (self.now_ms() - age) as u32;
        self
    }

    /// Sets the age of all later arrivals to `span` ms since they left the peer.
    pub fn late(&mut self, span: u64) -> &mut Self {
        self.late = span;
        self
    }

    // ---- what was seen ----

    /// Returns the number of different segments sent.
    pub fn total(&self) -> u64 {
        self.endpoint.segments_sent() - self.endpoint.retransmits()
    }

    /// Every departure since the last look.
    pub fn departures(&mut self) -> Vec<Departure> {
        let departures = self.wire.log[self.read..].to_vec();
        self.read = self.wire.log.len();
        departures
    }

    pub fn forget(&mut self) -> &mut Self {
        self.read = self.wire.log.len();
        self
    }

    /// The numbers of the data segments sent since the last look.
    pub fn sent(&mut self) -> Vec<u64> {
        self.sent_at().into_iter().map(|sent| sent.1).collect()
    }

    /// (ms, number) of the data segments sent since the last look.
    pub fn sent_at(&mut self) -> Vec<(u64, u64)> {
        let mss = self.mss;
        let data = self.departures().into_iter().filter(|sent| sent.segment.len > 0);
        data.map(|sent| (ms(sent.at), sent.segment.seq / mss)).collect()
    }

    /// The pure ACKs since the last look.
    pub fn acks(&mut self) -> Vec<SeenAck> {
        let mss = self.mss;
        let pure = self.departures().into_iter().filter(|sent| sent.segment.len == 0);
        pure.map(|Departure { at, segment, .. }| {
            let edges = segment.sack().map(|block| block.range(segment.ack));
            let blocks = edges.map(|(start, end)| (start / mss, end / mss)).collect();
            (ms(at), segment.ack / mss, blocks)
        })
        .collect()
    }

    /// Congestion window and threshold in segments; no threshold: `u64::MAX`.
    pub fn window(&self) -> (u64, u64) {
        let Snapshot { cwnd_bytes, ssthresh_bytes, .. } = self.endpoint.snapshot();
        (cwnd_bytes / self.mss, ssthresh_bytes.map_or(u64::MAX, |bytes| bytes / self.mss))
    }

    pub fn cwnd(&self) -> u64 {
        self.window().0
    }

    pub fn state(&self) -> &'static str {
        self.snapshot().state
    }

    pub fn snapshot(&self) -> Snapshot {
        self.endpoint.snapshot()
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub fn reset(&mut self) {
        self.endpoint.reset();
    }

    /// The host's own queue takes `segments` more, and no others until set again.
    pub fn queue_has_room(&mut self, segments: u64) -> &mut Self {
        self.wire.room = Some(segments);
        self
    }

    /// The host's interface takes this long for each segment.
    pub fn interface(&mut self, per_segment: Duration) -> &mut Self {
        self.wire.per_segment = per_segment;
        self
    }
}

/// Numbers `from` to `to`, without the last.
pub fn run(from: u64, to: u64) -> Vec<u64> {
    (from..to).collect()
}

/// A stock Linux 6.1 with changes.
pub fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = stock();
    change(&mut settings);
    settings
}

/// Linux 6.1, and an application that writes whole segments: 90 at a time, where 128 KiB would end
/// in a short one.
pub fn stock() -> Settings {
    Settings { write_bytes: 90 * 1448, ..Settings::linux_6() }
}
