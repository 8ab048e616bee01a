//! The player: the endpoint's peer, its application, and the judge of what it does.

use crate::line::{Action, Expected, Line, Position, Range, Reply, bounds};
use crate::script::{Opening, Script};
use serde::{Deserialize, Serialize};

/// How far a time may be off, ms: an emulated kernel needs some of it for its instructions.
const SLACK_MS: f64 = 1.0;

/// What the SYN offers.
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
    /// When it left, ns since the start.
    pub at_ns: i64,
    pub seq: i64,
    /// Payload, bytes.
    pub len: u32,
    pub ack: i64,
    pub syn: bool,
    pub has_ack: bool,
    pub psh: bool,
    pub ece: bool,
    pub cwr: bool,
    pub ect: bool,
    pub ce: bool,
    /// Bytes, scale applied.
    pub window_bytes: u32,
    pub sack: Vec<(i64, i64)>,
    /// Value and echo.
    pub timestamps: Option<(u32, u32)>,
    pub options: Option<SynOptions>,
}

/// What the endpoint says about itself (`tcp_info`).
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
    /// A segment of the peer's arrives.
    fn inject(&mut self, packet: &Packet) -> Result<(), String>;
    /// What has left since the last call.
    fn departures(&mut self) -> Result<Vec<Packet>, String>;
    /// What it says about itself.
    fn info(&mut self) -> Result<Info, String>;
}

/// A line that was not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// In the file; 0: not a line of its own.
    pub line: usize,
    /// As written.
    pub expected: String,
    /// What happened instead.
    pub got: String,
}

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its lines that expect something.
    pub checks: usize,
    /// Those that were not met. After the first one on the wire the rest of the script is not played.
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
    /// As expected, but the script says that it is not: that line has to go.
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
    outcome.sent = player.seen.iter().map(|packet| player.describe(packet)).collect();
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

struct Player<'a> {
    script: &'a Script,
    stack: &'a mut dyn Stack,
    /// All that left, and how much of it the script has spoken of.
    seen: Vec<Packet>,
    spoken: usize,
    client: bool,
    acked: i64,
    echo: u32,
    sent: i64,
    window_bytes: u32,
}

fn ns(ms: f64) -> i64 {
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
                self.reply(&Reply { syn: true, ..Reply::default() })?;
                self.expect(&bare, rtt_ms, rtt_ms)
            }
            Opening::Server(rtt_ms) => {
                self.reply(&Reply { syn: true, ..Reply::default() })?;
                self.expect(&syn, 0.0, 0.0)?;
                self.advance(rtt_ms)?;
                self.reply(&Reply::default())
            }
        }
    }

    fn advance(&mut self, to_ms: f64) -> Result<(), String> {
        self.stack.until(ns(to_ms), false)?;
        self.listen()
    }

    fn listen(&mut self) -> Result<(), String> {
        self.seen.extend(self.stack.departures()?);
        Ok(())
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        if let Action::Expect(wanted) = &line.action {
            return self.expect(wanted, line.from_ms, line.to_ms);
        }
        self.advance(line.from_ms)?;
        match &line.action {
            Action::Connect => self.stack.connect(),
            Action::Write(amount) => {
                let bytes = amount.map(|amount| self.script.bytes(amount) as u64);
                self.stack.write(bytes)
            }
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
            if peer.timestamps {
                packet.timestamps = Some((self.clock(), self.seen.last().map_or(0, value)));
            }
            return self.inject(&packet);
        }
        let Some((from, to)) = reply.data.map(|data| self.bytes(data)) else {
            return self.inject(&packet);
        };
        let full = self.script.segment_bytes();
        for seq in (from..to).step_by(full as usize) {
            let len = full.min(to - seq);
            (packet.seq, packet.len) = (seq, len as u32);
            packet.psh = reply.psh && seq + len == to;
            self.sent = self.sent.max(seq + len);
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
        Packet {
            at_ns: self.stack.now_ns(),
            seq: self.sent,
            ack,
            has_ack: true,
            ece: reply.ece,
            cwr: reply.cwr,
            ect: reply.ect,
            ce: reply.ce,
            window_bytes: self.window_bytes,
            sack: reply.sack.iter().map(|block| self.bytes(*block)).collect(),
            timestamps: self.script.timestamps().then_some((stamp, self.echo)),
            ..Packet::default()
        }
    }

    /// The peer's timestamps tick once a millisecond and start beside zero, which means "none".
    fn clock(&self) -> u32 {
        1_000 + (self.stack.now_ns() / 1_000_000) as u32
    }

    /// RFC 7323 §4.3: the timestamp of the segment that advanced the peer's window, in its last transmission
    /// unless the script says otherwise. A peer that sends data echoes the newest it has.
    fn take_echo(&mut self, reply: &Reply, ack: i64) {
        let of_first = |packet: &&Packet| {
            packet.len > 0
                && packet.seq <= self.acked
                && packet.seq + i64::from(packet.len) > self.acked
        };
        let mut sent = self.seen.iter().filter(of_first);
        let newest = self.seen.last().map(value);
        if reply.of_original {
            self.echo = sent.next().map_or(self.echo, value);
        } else if ack > self.acked {
            self.echo = sent.next_back().map_or(self.echo, value);
        } else if reply.data.is_some() || self.echo == 0 {
            self.echo = newest.unwrap_or(self.echo);
        }
        if let (Some(age_ms), Some(last)) = (reply.echo_age_ms, self.seen.last()) {
            let since = (self.stack.now_ns() - last.at_ns) / 1_000_000 - ns(age_ms) / 1_000_000;
            self.echo = value(last).wrapping_add_signed(since as i32);
        }
        self.acked = self.acked.max(ack);
    }

    // ---- the judge ----

    fn bytes(&self, range: Range) -> (i64, i64) {
        (self.script.bytes(range.0), self.script.bytes(range.1))
    }

    /// The next departure, if there is one by then.
    fn next(&mut self, by_ms: f64) -> Result<Packet, String> {
        loop {
            self.listen()?;
            if let Some(packet) = self.seen.get(self.spoken) {
                self.spoken += 1;
                return Ok(packet.clone());
            }
            if self.stack.now_ns() >= ns(by_ms) {
                let now_ms = self.stack.now_ns() as f64 / 1e6;
                return Err(format!("nothing, until {now_ms:.2} ms"));
            }
            self.stack.until(ns(by_ms), true)?;
        }
    }

    fn expect(&mut self, wanted: &Expected, from_ms: f64, to_ms: f64) -> Result<(), String> {
        let ends = wanted.data.map(|data| self.bytes(data));
        let mut at = ends.map(|(from, _)| from);
        loop {
            let packet = self.next(to_ms + SLACK_MS)?;
            let first = ends.is_none_or(|(from, _)| at == Some(from));
            let length = at.zip(ends).map(|(at, (_, to))| self.script.segment_bytes().min(to - at));
            let last = at.zip(length).map(|(at, length)| at + length) == ends.map(|(_, to)| to);
            let here = Place { at, length, first, last };
            let early = (packet.at_ns as f64) / 1e6 < from_ms - SLACK_MS;
            let wrong = self.difference(wanted, &packet, here);
            if let Some(what) = wrong.or_else(|| early.then(|| "too early".to_owned())) {
                return Err(format!("{} ({what})", self.describe(&packet)));
            }
            if last {
                return Ok(());
            }
            at = at.zip(length).map(|(at, length)| at + length);
        }
    }

    /// What about a packet is not as wanted.
    fn difference(&self, wanted: &Expected, packet: &Packet, here: Place) -> Option<String> {
        let Expected { syn, data: _, ack, sack, window_bytes, psh, ece, cwr, ect, timestamps } =
            wanted;
        let Place { at, length, first, last } = here;
        if packet.syn != *syn {
            return Some(if *syn { "no SYN" } else { "a SYN" }.to_owned());
        }
        if at
            .map_or(packet.len != 0, |at| packet.seq != at || Some(i64::from(packet.len)) != length)
        {
            return Some("not that data".to_owned());
        }
        if ack.is_some_and(|ack| packet.ack != self.script.bytes(ack)) {
            return Some("acknowledges something else".to_owned());
        }
        let wanted_sack =
            sack.as_ref().map(|blocks| blocks.iter().map(|b| self.bytes(*b)).collect());
        if wanted_sack.is_some_and(|blocks: Vec<_>| packet.sack != blocks) {
            return Some("other SACK blocks".to_owned());
        }
        let window = i64::from(packet.window_bytes);
        if window_bytes.is_some_and(|(least, most)| window < least || window > most) {
            return Some(format!("window {window}"));
        }
        let flags = [
            ("PSH", psh.map(|psh| psh && last), packet.psh),
            ("ECE", *ece, packet.ece),
            ("CWR", cwr.map(|cwr| cwr && first), packet.cwr),
            ("ECT", *ect, packet.ect),
            ("timestamps", *timestamps, packet.timestamps.is_some()),
        ];
        let wrong =
            flags.into_iter().find(|(_, wanted, found)| wanted.is_some_and(|w| w != *found));
        wrong.map(|(name, _, found)| format!("{} {name}", if found { "has" } else { "lacks" }))
    }

    /// A position as scripts write it.
    fn position(&self, bytes: i64) -> String {
        let full = self.script.segment_bytes();
        match (bytes / full, bytes % full) {
            (segments, 0) => segments.to_string(),
            (0, rest) => format!("{rest}b"),
            (segments, rest) => format!("{segments}+{rest}b"),
        }
    }

    fn describe(&self, packet: &Packet) -> String {
        let mut text = format!("{:.2} >", packet.at_ns as f64 / 1e6);
        if packet.syn {
            text += " syn";
        }
        if packet.len > 0 {
            let end = packet.seq + i64::from(packet.len);
            text += &format!(" {}..{}", self.position(packet.seq), self.position(end));
        }
        text += &format!(" ack {}", self.position(packet.ack));
        if !packet.sack.is_empty() {
            let blocks: Vec<String> = (packet.sack.iter())
                .map(|(from, to)| format!("{}-{}", self.position(*from), self.position(*to)))
                .collect();
            text += &format!(" sack {}", blocks.join(","));
        }
        for (name, set) in
            [("psh", packet.psh), ("ece", packet.ece), ("cwr", packet.cwr), ("ect", packet.ect)]
        {
            if set {
                text += &format!(" {name}");
            }
        }
        text + &format!(" win {}", packet.window_bytes)
    }
}

/// Where in an expected range a packet should be.
#[derive(Clone, Copy)]
struct Place {
    at: Option<i64>,
    length: Option<i64>,
    first: bool,
    last: bool,
}

fn value(packet: &Packet) -> u32 {
    packet.timestamps.map_or(0, |(value, _)| value)
}

fn answer(questions: &[(String, String)], info: &Info) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (name, wanted) in questions {
        let Info { state, cwnd, ssthresh, flight, retrans, srtt_us, min_rtt_us, acked } = info;
        let found = match name.as_str() {
            "state" => {
                if state != wanted {
                    wrong.push(format!("state {state}"));
                }
                continue;
            }
            "cwnd" => *cwnd,
            "ssthresh" => ssthresh.unwrap_or(i64::MAX),
            "flight" => *flight,
            "retrans" => *retrans,
            "srtt_us" => *srtt_us,
            "min_rtt_us" => *min_rtt_us,
            "acked" => *acked,
            other => return Err(format!("no such figure: {other}")),
        };
        let (least, most) = if wanted == "inf" { (i64::MAX, i64::MAX) } else { bounds(wanted)? };
        if found < least || found > most {
            let found = if found == i64::MAX { "inf".to_owned() } else { found.to_string() };
            wrong.push(format!("{name} {found}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(" ")) }
}
