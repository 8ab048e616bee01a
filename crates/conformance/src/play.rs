//! The player: the endpoint's peer and its application. `judge.rs` compares the endpoint's behaviour with the script.

mod judge;

use crate::line::{Action, Base, EcnBytes, Expected, Line, Position, Reading, Reply};
use crate::script::{Opening, Script};
use judge::{SLACK_MS, answer};
use serde::{Deserialize, Serialize};

/// Options offered in the SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size, bytes.
    pub mss: u32,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// Window scaling.
    pub scaling: bool,
}

/// A segment, either way. Sequence numbers count bytes from the first byte of data; a SYN has −1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of a TCP header under their own names")]
pub struct Packet {
    /// Departure time, ns since the start.
    pub at_ns: i64,
    pub seq: i64,
    /// Payload, bytes.
    pub len: u32,
    pub ack: i64,
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    pub has_ack: bool,
    pub psh: bool,
    pub ece: bool,
    pub cwr: bool,
    pub ae: bool,
    pub ect: bool,
    pub ect1: bool,
    pub ce: bool,
    pub bytes: Option<EcnBytes>,
    /// Bytes, scale applied.
    pub window_bytes: u32,
    pub sack: Vec<(i64, i64)>,
    /// Value and echo.
    pub timestamps: Option<(u32, u32)>,
    pub options: Option<SynOptions>,
}

impl Packet {
    /// The flags AE, CWR and ECE as a number.
    #[must_use]
    pub fn ace(&self) -> u8 {
        u8::from(self.ae) << 2 | u8::from(self.cwr) << 1 | u8::from(self.ece)
    }

    fn set_ace(&mut self, ace: u8) {
        (self.ae, self.cwr, self.ece) = (ace & 4 != 0, ace & 2 != 0, ace & 1 != 0);
    }
}

/// State that the endpoint reports (`tcp_info`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "tcp_info's own names, in segments, µs and bytes")]
pub struct Info {
    /// open, disorder, cwr, recovery or loss.
    pub state: String,
    pub cwnd: i64,
    pub ssthresh: Option<i64>,
    pub flight: i64,
    pub retrans: i64,
    pub srtt_us: i64,
    pub min_rtt_us: i64,
    pub acked: i64,
    pub reordering: i64,
    pub lost: i64,
    pub notsent: i64,
    /// Time with data to send, and the parts of it in which the peer's window and its own buffer were the limit;
    /// `None`: this stack does not count.
    pub busy_us: Option<i64>,
    pub rwnd_limited_us: Option<i64>,
    pub sndbuf_limited_us: Option<i64>,
}

/// Reading by an application from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Whatever comes, at once.
    On,
    /// Nothing.
    Off,
    /// A number of available bytes, and then nothing.
    Some(u64),
}

/// A TCP endpoint with a clock, and the wire before it.
pub trait Stack {
    /// Nanoseconds since the start.
    fn now_ns(&self) -> i64;
    /// Lets time pass; comes back early when something has left and `or_departure` is set.
    fn until(&mut self, at_ns: i64, or_departure: bool) -> Result<(), String>;
    /// Connects.
    fn connect(&mut self) -> Result<(), String>;
    /// Writes so many bytes more; `None`: without end.
    fn write(&mut self, bytes: Option<u64>) -> Result<(), String>;
    /// From now on each write is of so many bytes.
    fn write_by(&mut self, bytes: u64) -> Result<(), String>;
    /// Sets the application's reading: everything at once, nothing, or so many bytes and then nothing.
    fn read(&mut self, amount: Read) -> Result<(), String>;
    /// The application has nothing more to send, ever.
    fn shutdown(&mut self) -> Result<(), String>;
    /// A router reports that the segment that begins at `seq` is too long for an MTU.
    fn too_big(&mut self, seq: i64, mtu: u32) -> Result<(), String>;
    /// A segment of the peer's arrives.
    fn inject(&mut self, packet: &Packet) -> Result<(), String>;
    /// Returns the segments that have left since the last call.
    fn departures(&mut self) -> Result<Vec<Packet>, String>;
    /// Returns the state that it reports.
    fn info(&mut self) -> Result<Info, String>;
}

/// A line that was not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Line number in the file; 0: no particular line.
    pub line: usize,
    /// As written.
    pub expected: String,
    /// Observed event.
    pub got: String,
}

/// Result of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its lines that expect something.
    pub checks: usize,
    /// Expectations that were not met. After the first one on the wire the rest of the script is not run.
    pub failures: Vec<Failure>,
    /// All that left until then, a line each.
    pub sent: Vec<String>,
}

/// An outcome seen in the light of what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail,
    /// Not as expected, and known.
    KnownGap,
    /// As expected, but the script marks it as a known failure: that line has to go.
    GapClosed,
}

impl Outcome {
    /// The verdict, for a stack whose gap is known or not.
    #[must_use]
    pub fn verdict(&self, gap_is_known: bool) -> Verdict {
        match (self.failures.is_empty(), gap_is_known) {
            (true, false) => Verdict::Pass,
            (false, false) => Verdict::Fail,
            (false, true) => Verdict::KnownGap,
            (true, true) => Verdict::GapClosed,
        }
    }
}

/// Plays a script on a stack.
pub fn play(script: &Script, stack: &mut dyn Stack) -> Outcome {
    let mut player = Player::new(script, stack);
    let mut outcome = Outcome { checks: 0, failures: Vec::new(), sent: Vec::new() };
    judge(script, &mut player, &mut outcome);
    outcome.sent = player.trace();
    outcome
}

fn judge(script: &Script, player: &mut Player<'_>, outcome: &mut Outcome) {
    let mut failed = |line: usize, expected: &str, got: String| {
        outcome.failures.push(Failure { line, expected: expected.to_owned(), got });
    };
    if let Err(got) = player.open() {
        return failed(0, "the handshake", got);
    }
    for line in &script.lines {
        let asks = matches!(line.action, Action::Ask(_));
        outcome.checks +=
            usize::from(asks || matches!(line.action, Action::Expect(_) | Action::Quiet));
        if let Err(got) = player.line(line) {
            failed(line.number, &line.text, got);
            if !asks {
                return;
            }
        }
    }
    if let Err(got) = player.quiet() {
        failed(script.lines.last().map_or(0, |line| line.number), "nothing more", got);
    }
}

pub(crate) struct Player<'a> {
    pub(crate) script: &'a Script,
    pub(crate) stack: &'a mut dyn Stack,
    /// All that left, and how much of it the script has spoken of.
    pub(crate) seen: Vec<Packet>,
    pub(crate) spoken: usize,
    client: bool,
    /// Position that the peer has acknowledged.
    pub(crate) acked: i64,
    echo: u32,
    sent: i64,
    window_bytes: u32,
    /// Counter in the flags of its segments, with accurate ECN.
    ace: u8,
}

/// Initial value of a peer's counter of marks (RFC 9768 §3.2.1).
const ACE_BEGINS: u8 = 5;

/// Code by which a segment of the handshake reports the codepoint of the other end's segment (RFC 9768 §3.1.1).
fn handshake_code(packet: Option<&Packet>) -> u8 {
    match packet {
        Some(packet) if packet.ce => 0b110,
        Some(packet) if packet.ect1 => 0b011,
        Some(packet) if packet.ect => 0b100,
        Some(_) | None => 0b010,
    }
}

pub(crate) fn ns(ms: f64) -> i64 {
    (ms * 1e6) as i64
}

impl<'a> Player<'a> {
    fn new(script: &'a Script, stack: &'a mut dyn Stack) -> Self {
        let client = match script.opening {
            Opening::Client(_) => true,
            Opening::Server(_) => false,
            Opening::Written => script.lines.iter().any(|line| line.action == Action::Connect),
        };
        let window_bytes = script.window_bytes;
        Self {
            script,
            stack,
            seen: Vec::new(),
            spoken: 0,
            client,
            acked: 0,
            echo: 0,
            sent: 0,
            window_bytes,
            ace: ACE_BEGINS,
        }
    }

    fn open(&mut self) -> Result<(), String> {
        let syn = Expected { syn: true, ..Expected::default() };
        let bare = Expected { ack: Some(Position::default()), ..Expected::default() };
        match self.script.opening {
            Opening::Written => Ok(()),
            Opening::Client(rtt_ms) => {
                self.stack.connect()?;
                self.expect(&syn, 0.0, 0.0)?;
                self.advance(rtt_ms)?;
                let bytes = self.handshake_bytes();
                self.reply(&Reply { syn: true, bytes, ..Reply::default() })?;
                self.expect(&bare, rtt_ms, rtt_ms)
            }
            Opening::Server(rtt_ms) => {
                self.reply(&Reply { syn: true, ..Reply::default() })?;
                self.expect(&syn, 0.0, 0.0)?;
                self.advance(rtt_ms)?;
                let code = handshake_code(self.seen.last());
                let accurate = self.script.peer.accurate;
                let (ace, bytes) = (accurate.then_some(code), self.handshake_bytes());
                self.reply(&Reply { ace, bytes, ..Reply::default() })?;
                self.ace = ACE_BEGINS;
                Ok(())
            }
        }
    }

    /// The peer's AccECN option: nothing has come yet (RFC 9768 §3.2.1).
    fn handshake_bytes(&self) -> Option<EcnBytes> {
        self.script.peer.bytes.then(|| EcnBytes { ect1_first: true, counters: vec![1, 0, 1] })
    }

    fn advance(&mut self, to_ms: f64) -> Result<(), String> {
        self.stack.until(ns(to_ms), false)?;
        self.listen()
    }

    pub(crate) fn listen(&mut self) -> Result<(), String> {
        self.seen.extend(self.stack.departures()?);
        Ok(())
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        let base_ms = match line.base {
            Base::Start => 0.0,
            Base::Departure => self.departed_ms()?,
        };
        let (from_ms, to_ms) = (base_ms + line.from_ms, base_ms + line.to_ms);
        if let Action::Expect(wanted) = &line.action {
            return self.expect(wanted, from_ms, to_ms);
        }
        let late_ms = self.stack.now_ns() as f64 / 1e6 - from_ms;
        if line.base == Base::Departure && late_ms > SLACK_MS {
            return Err(format!("{late_ms:.2} ms too late: the lines above took longer"));
        }
        self.advance(from_ms)?;
        match &line.action {
            Action::Connect => self.stack.connect(),
            Action::Write(amount) => {
                let bytes = amount.map(|amount| self.script.bytes(amount) as u64);
                self.stack.write(bytes)
            }
            Action::WriteSize(amount) => self.stack.write_by(self.script.bytes(*amount) as u64),
            Action::Read(reading) => self.stack.read(match reading {
                Reading::On => Read::On,
                Reading::Off => Read::Off,
                Reading::Some(amount) => Read::Some(self.script.bytes(*amount) as u64),
            }),
            Action::Shutdown => self.stack.shutdown(),
            Action::TooBig(mtu) => self.stack.too_big(self.acked, *mtu),
            Action::Reply(reply) => self.reply(reply),
            Action::Ask(questions) => answer(questions, &self.stack.info()?),
            Action::Quiet => self.quiet(),
            Action::Forget => {
                self.spoken = self.seen.len();
                Ok(())
            }
            Action::Expect(_) => Ok(()), // dealt with above
        }
    }

    /// Departure time of the last segment that a line has expected, ms.
    fn departed_ms(&self) -> Result<f64, String> {
        let last = self.spoken.checked_sub(1).and_then(|last| self.seen.get(last));
        last.map(|packet| packet.at_ns as f64 / 1e6)
            .ok_or_else(|| "nothing has left yet".to_owned())
    }

    fn quiet(&mut self) -> Result<(), String> {
        self.listen()?;
        match self.seen.get(self.spoken) {
            None => Ok(()),
            Some(packet) => Err(format!("unexpected: {}", self.describe(packet))),
        }
    }

    // ---- the peer ----

    fn reply(&mut self, reply: &Reply) -> Result<(), String> {
        self.listen()?;
        if let Some(window_bytes) = reply.window_bytes {
            self.window_bytes = window_bytes;
        }
        if let Some(ace) = reply.ace
            && !reply.syn
        {
            self.ace = ace;
        }
        let ack = reply.ack.map_or(self.acked, |ack| self.script.bytes(ack));
        self.take_echo(reply, ack);
        let mut packet = self.header(reply, ack);
        if reply.syn {
            packet.seq = -1;
            packet.has_ack = self.client;
            packet.window_bytes = self.window_bytes.min(65_535);
            let peer = &self.script.peer;
            let (mss, sack, scaling) = (peer.mss, peer.sack, peer.scaling);
            packet.options = Some(SynOptions { mss, sack, timestamps: peer.timestamps, scaling });
            (packet.ece, packet.cwr) = (peer.ecn, peer.ecn && !self.client);
            if peer.accurate {
                let answer = handshake_code(self.seen.last());
                packet.set_ace(if self.client { answer } else { 0b111 });
            }
            if let Some(ace) = reply.ace {
                packet.set_ace(ace);
            }
            if peer.timestamps {
                packet.timestamps = Some((self.clock(), self.seen.last().map_or(0, value)));
            }
            return self.inject(&packet);
        }
        let Some((from, to)) = reply.data.map(|data| self.bytes(data)) else {
            packet.fin = reply.fin;
            self.sent = self.sent.max(packet.seq + i64::from(reply.fin));
            return self.inject(&packet);
        };
        let full = reply.of.map_or(self.script.segment_bytes(), |of| self.script.bytes(of));
        for seq in (from..to).step_by(full as usize) {
            let len = full.min(to - seq);
            (packet.seq, packet.len) = (seq, len as u32);
            packet.psh = reply.psh && seq + len == to;
            packet.fin = reply.fin && seq + len == to;
            self.sent = self.sent.max(seq + len + i64::from(packet.fin));
            self.inject(&packet)?;
        }
        Ok(())
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), String> {
        self.stack.inject(packet)?;
        self.listen()
    }

    fn header(&self, reply: &Reply, ack: i64) -> Packet {
        let stamp = self.clock().wrapping_sub((ns(reply.late_ms) / 1_000_000) as u32);
        let mut packet = Packet {
            at_ns: self.stack.now_ns(),
            seq: reply.seq.map_or(self.sent, |seq| self.script.bytes(seq)),
            ack,
            rst: reply.rst,
            has_ack: !reply.no_ack,
            ece: reply.ece,
            cwr: reply.cwr,
            ect: reply.ect || reply.ect1,
            ect1: reply.ect1,
            ce: reply.ce,
            bytes: reply.bytes.clone(),
            window_bytes: self.window_bytes,
            sack: reply.sack.iter().map(|block| self.bytes(*block)).collect(),
            timestamps: self
                .script
                .timestamps()
                .then_some((reply.stamp.unwrap_or(stamp), reply.echo.unwrap_or(self.echo))),
            ..Packet::default()
        };
        if self.script.peer.accurate || reply.ace.is_some() {
            packet.set_ace(reply.ace.unwrap_or(self.ace));
        }
        packet
    }

    /// The peer's timestamps tick once a millisecond and start next to zero, which means "none".
    fn clock(&self) -> u32 {
        1_000 + (self.stack.now_ns() / 1_000_000) as u32
    }

    /// RFC 7323 §4.3: the timestamp of the segment that advanced the peer's window, in its last transmission unless
    /// the script sets another. A peer that sends data echoes the newest it has.
    fn take_echo(&mut self, reply: &Reply, ack: i64) {
        let of_first = |packet: &&Packet| {
            packet.len > 0
                && packet.seq <= self.acked
                && packet.seq + i64::from(packet.len) > self.acked
        };
        let mut matching_segments = self.seen.iter().filter(of_first);
        let newest = self.seen.last().map(value);
        if reply.of_original {
            self.echo = matching_segments.next().map_or(self.echo, value);
        } else if ack > self.acked {
            self.echo = matching_segments.next_back().map_or(self.echo, value);
        } else if reply.data.is_some() || self.echo == 0 {
            self.echo = newest.unwrap_or(self.echo);
        }
        if let (Some(age_ms), Some(last)) = (reply.echo_age_ms, self.seen.last()) {
            let since = (self.stack.now_ns() - last.at_ns) / 1_000_000 - ns(age_ms) / 1_000_000;
            self.echo = value(last).wrapping_add_signed(since as i32);
        }
        self.acked = self.acked.max(ack);
    }
}

pub(crate) fn value(packet: &Packet) -> u32 {
    packet.timestamps.map_or(0, |(value, _)| value)
}
