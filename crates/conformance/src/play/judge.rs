//! The judge: what the endpoint sent and said, held against what a line expects.

use super::{Info, Packet, Player, ns};
use crate::line::{EcnBytes, Expected, Pushed, Range, bounds};

/// Tolerance of a time, ms: an emulated kernel needs some of it for its instructions.
pub(crate) const SLACK_MS: f64 = 1.0;

impl Player<'_> {
    pub(crate) fn bytes(&self, range: Range) -> (i64, i64) {
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

    pub(crate) fn expect(
        &mut self,
        expected: &Expected,
        from_ms: f64,
        to_ms: f64,
    ) -> Result<(), String> {
        let ends = expected.data.map(|data| self.bytes(data));
        let segment_bytes =
            expected.of.map_or(self.script.segment_bytes(), |of| self.script.bytes(of));
        let mut at = ends.map(|(from, _)| from);
        loop {
            let packet = self.next(to_ms + SLACK_MS)?;
            let first = ends.is_none_or(|(from, _)| at == Some(from));
            let length = at.zip(ends).map(|(at, (_, to))| segment_bytes.min(to - at));
            let last = at.zip(length).map(|(at, length)| at + length) == ends.map(|(_, to)| to);
            let place = Place { at, length, first, last };
            let early = (packet.at_ns as f64) / 1e6 < from_ms - SLACK_MS;
            let wrong = self.difference(expected, &packet, place);
            if let Some(difference) = wrong.or_else(|| early.then(|| "too early".to_owned())) {
                return Err(format!("{} ({difference})", self.describe(&packet)));
            }
            if last {
                return Ok(());
            }
            at = at.zip(length).map(|(at, length)| at + length);
        }
    }

    /// Describes the first difference between a packet and the expected one.
    fn difference(&self, expected: &Expected, packet: &Packet, place: Place) -> Option<String> {
        let Expected { syn, fin, rst, data: _, of: _, seq, probe, echo, ack, .. } = expected;
        let Expected { sack, window_bytes, psh, ece, cwr, ect, timestamps, .. } = expected;
        let Expected { ect1, ace, bytes, .. } = expected;
        let Place { at, length, first, last } = place;
        let kinds = [
            ("SYN", *syn, packet.syn),
            ("FIN", *fin && last, packet.fin),
            ("RST", *rst, packet.rst),
        ];
        if let Some((name, _, actual)) =
            kinds.into_iter().find(|(_, expected, actual)| expected != actual)
        {
            return Some(format!("{} {name}", if actual { "a" } else { "no" }));
        }
        let seq = seq.map(|seq| self.script.bytes(seq)).or(probe.then_some(self.acked - 1));
        if seq.is_some_and(|seq| packet.seq != seq) {
            return Some(format!("sequence number {}", packet.seq));
        }
        if let (Some(echo), Some((_, actual))) = (echo, packet.timestamps)
            && *echo != actual
        {
            return Some(format!("echoes {actual}"));
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
        if ace.is_some_and(|ace| ace != packet.ace()) {
            return Some(format!("ACE {}", packet.ace()));
        }
        if bytes.as_ref().is_some_and(|bytes| *bytes != packet.bytes) {
            return Some("another AccECN option, or none".to_owned());
        }
        let flags = [
            ("PSH", psh.and_then(|psh| pushed(psh, last)), packet.psh),
            ("ECE", *ece, packet.ece),
            ("CWR", cwr.map(|cwr| cwr && first), packet.cwr),
            ("ECT", *ect, packet.ect),
            ("ECT(1)", *ect1, packet.ect1),
            ("timestamps", *timestamps, packet.timestamps.is_some()),
        ];
        let wrong =
            flags.into_iter().find(|(_, expected, actual)| expected.is_some_and(|w| w != *actual));
        wrong.map(|(name, _, actual)| format!("{} {name}", if actual { "has" } else { "lacks" }))
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

    /// All that left, a line each.
    pub(crate) fn trace(&self) -> Vec<String> {
        let mut next = 0;
        let mut line_of = |packet| {
            let text = self.describe_after(packet, next);
            next = next.max(packet.seq + i64::from(packet.len));
            text
        };
        self.seen.iter().map(&mut line_of).collect()
    }

    pub(crate) fn describe(&self, packet: &Packet) -> String {
        let before = self.seen.iter().take_while(|earlier| earlier.at_ns < packet.at_ns);
        let next = before.map(|earlier| earlier.seq + i64::from(earlier.len)).max();
        self.describe_after(packet, next.unwrap_or(0))
    }

    /// `next`: the byte after the last that has left, which pure acknowledgements have for their sequence number.
    fn describe_after(&self, packet: &Packet, next: i64) -> String {
        let mut text = format!("{:.2} >", packet.at_ns as f64 / 1e6);
        for (name, set) in [("syn", packet.syn), ("fin", packet.fin), ("rst", packet.rst)] {
            if set {
                text += &format!(" {name}");
            }
        }
        if packet.len > 0 {
            let end = packet.seq + i64::from(packet.len);
            text += &format!(" {}..{}", self.position(packet.seq), self.position(end));
        }
        if packet.len == 0 && packet.seq != next && !packet.syn {
            text += &format!(" seq {}", self.position(packet.seq));
        }
        text += &format!(" ack {}", self.position(packet.ack));
        if !packet.sack.is_empty() {
            let blocks: Vec<String> = (packet.sack.iter())
                .map(|(from, to)| format!("{}-{}", self.position(*from), self.position(*to)))
                .collect();
            text += &format!(" sack {}", blocks.join(","));
        }
        let accurate = self.script.needs_accurate_ecn;
        for (name, set) in [
            ("psh", packet.psh),
            ("ece", packet.ece && !accurate),
            ("cwr", packet.cwr && !accurate),
            ("ect", packet.ect && !packet.ect1),
            ("ect1", packet.ect1),
        ] {
            if set {
                text += &format!(" {name}");
            }
        }
        if accurate {
            text += &format!(" ace {}", packet.ace());
        }
        if let Some(EcnBytes { ect1_first, counters }) = &packet.bytes {
            let counters: Vec<String> = counters.iter().map(u32::to_string).collect();
            let counters = if counters.is_empty() { "none".to_owned() } else { counters.join(",") };
            text += &format!(" bytes{} {counters}", u8::from(*ect1_first));
        }
        text + &format!(" win {}", packet.window_bytes)
    }
}

/// Expected position of a packet within a range.
#[derive(Clone, Copy)]
struct Place {
    at: Option<i64>,
    length: Option<i64>,
    first: bool,
    last: bool,
}

/// True when a segment should carry PSH; `None`: either.
fn pushed(psh: Pushed, last: bool) -> Option<bool> {
    match psh {
        Pushed::None => Some(false),
        Pushed::Last => Some(last),
        Pushed::End => last.then_some(true),
    }
}

pub(crate) fn answer(questions: &[(String, String)], info: &Info) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (name, bounds_text) in questions {
        let required = |figure: Option<i64>| figure.ok_or_else(|| format!("{name}: not kept here"));
        let actual = match name.as_str() {
            "state" => {
                if info.state != *bounds_text {
                    wrong.push(format!("state {}", info.state));
                }
                continue;
            }
            "cwnd" => info.cwnd,
            "ssthresh" => info.ssthresh.unwrap_or(i64::MAX),
            "flight" => info.flight,
            "retrans" => info.retrans,
            "srtt_us" => info.srtt_us,
            "min_rtt_us" => info.min_rtt_us,
            "acked" => info.acked,
            "reordering" => info.reordering,
            "lost" => info.lost,
            "notsent" => info.notsent,
            "busy_us" => required(info.busy_us)?,
            "rwnd_limited_us" => required(info.rwnd_limited_us)?,
            "sndbuf_limited_us" => required(info.sndbuf_limited_us)?,
            other => return Err(format!("no such figure: {other}")),
        };
        let (least, most) =
            if bounds_text == "inf" { (i64::MAX, i64::MAX) } else { bounds(bounds_text)? };
        if actual < least || actual > most {
            let actual = if actual == i64::MAX { "inf".to_owned() } else { actual.to_string() };
            wrong.push(format!("{name} {actual}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(" ")) }
}
