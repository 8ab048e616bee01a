//! A script: its header, and the lines of its time line.

use crate::line::{self, Action, Base, Line, Position, REPLY_SEGMENTS_MAX, STREAM_BYTES_MAX};
use std::fmt;
use std::ops::RangeInclusive;

/// Most lines of a time line.
const LINES_MAX: usize = 10_000;
/// As a scenario's hosts.
const MTU_BYTES: RangeInclusive<u32> = 68..=65_535;
/// The least that Linux takes (`tcp_min_snd_mss`), and what fits into the largest packet.
const MSS_BYTES: RangeInclusive<u32> = 48..=65_495;
/// Sysctls are signed and have 32 bits.
const SYSCTL_MAX: u64 = i32::MAX as u64;

/// An error in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line number, from 1.
    pub line: usize,
    /// Description with the accepted form.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A handshake that the player performs, with everything granted on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opening {
    /// The script contains every segment.
    Written,
    /// The endpoint connects at 0 and is answered after this many ms.
    Client(f64),
    /// The peer connects at 0 and confirms after this many ms.
    Server(f64),
}

/// Options that the peer offers in its SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerOptions {
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// Window scaling (by 2^7).
    pub scaling: bool,
    /// ECN: requested by a client, granted by a server.
    pub ecn: bool,
    /// The same of accurate ECN; its segments have a counter for flags then.
    pub accurate: bool,
    /// Its part of the handshake has the AccECN option too.
    pub bytes: bool,
    /// Maximum segment size, bytes.
    pub mss: u32,
}

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The first comment: what it shows.
    pub title: String,
    /// The endpoint's congestion control.
    pub cc: String,
    /// Settings of the endpoint's host, name and value: one without a dot is of `net.ipv4`.
    pub sysctls: Vec<(String, String)>,
    /// IP packet size limit, bytes.
    pub mtu_bytes: u32,
    /// Bytes that the peer offers after the handshake.
    pub window_bytes: u32,
    /// Opening of the connection.
    pub opening: Opening,
    /// Options that the peer offers.
    pub peer: PeerOptions,
    /// It concerns accurate ECN, which not every kernel has.
    pub needs_accurate_ecn: bool,
    /// Why the simulator is known to fail it.
    pub known_gap: Option<String>,
    /// The time line.
    pub lines: Vec<Line>,
}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let mut script = Self {
            title: String::new(),
            cc: "reno".to_owned(),
            sysctls: Vec::new(),
            mtu_bytes: 1500,
            window_bytes: 4_000_000,
            opening: Opening::Written,
            peer: PeerOptions {
                sack: true,
                timestamps: true,
                scaling: true,
                ecn: false,
                accurate: false,
                bytes: false,
                mss: 1460,
            },
            needs_accurate_ecn: false,
            known_gap: None,
            lines: Vec::new(),
        };
        for (index, raw) in text.lines().enumerate() {
            let (content, comment) = raw.split_once('#').unwrap_or((raw, ""));
            if script.title.is_empty() {
                comment.trim().clone_into(&mut script.title);
            }
            let words: Vec<&str> = content.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            script.take(&words).map_err(|message| Fault { line: index + 1, message })?;
            if let Some(last) = script.lines.last_mut()
                && last.number == 0
            {
                last.number = index + 1;
                content.split_whitespace().collect::<Vec<_>>().join(" ").clone_into(&mut last.text);
            }
        }
        script.reach()?;
        if script.title.is_empty() || script.lines.is_empty() {
            let message = "a title in a comment, and lines with times, are needed".to_owned();
            return Err(Fault { line: 1, message });
        }
        if let Some(line) = script.lines.iter().find(|line| line.is_accurate())
            && !script.needs_accurate_ecn
        {
            let message = "ace, bytes0, bytes1 and ect1 need a line: needs accurate ecn".to_owned();
            return Err(Fault { line: line.number, message });
        }
        let crowded =
            |line: &&Line| matches!(&line.action, Action::Reply(reply) if reply.sack.len() > 3);
        if let Some(line) = script.lines.iter().find(crowded)
            && script.timestamps()
        {
            let message = "sack: at most three blocks beside timestamps".to_owned();
            return Err(Fault { line: line.number, message });
        }
        let full = |line: &&Line| matches!(&line.action, Action::Reply(reply) if reply.bytes.is_some() && reply.sack.len() > 1);
        if let Some(line) = script.lines.iter().find(full) {
            let message = "sack: at most one block beside bytes0 or bytes1".to_owned();
            return Err(Fault { line: line.number, message });
        }
        Ok(script)
    }

    fn take(&mut self, words: &[&str]) -> Result<(), String> {
        let first = words[0];
        if first.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '@') {
            if self.lines.len() == LINES_MAX {
                return Err(format!("more than {LINES_MAX} lines with a time"));
            }
            let before =
                self.lines.last().map_or((Base::Start, 0.0), |line| (line.base, line.from_ms));
            self.lines.push(line::parse(words, before)?);
            return Ok(());
        }
        if !self.lines.is_empty() {
            return Err(format!("{first}: settings come before the first line with a time"));
        }
        match words {
            ["cc", name] => (*name).clone_into(&mut self.cc),
            ["sysctl", name, values @ ..] if !values.is_empty() => {
                let part =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
                if !name.chars().all(part) {
                    return Err(format!(
                        "sysctl {name}: a name such as tcp_sack or net.ipv4.tcp_sack"
                    ));
                }
                let large = |word: &&&str| word.parse().is_ok_and(|value: u64| value > SYSCTL_MAX);
                if let Some(value) = values.iter().find(large) {
                    return Err(format!("{name} {value}: at most {SYSCTL_MAX}"));
                }
                self.sysctls.push(((*name).to_owned(), values.join(" ")));
            }
            ["mtu", bytes] => self.mtu_bytes = parse_in_range("mtu", bytes, MTU_BYTES)?,
            ["window", bytes] => self.window_bytes = line::window("window", bytes)?,
            ["open", role, rtt] => {
                let rtt = line::span(rtt, "open")?;
                self.opening = match *role {
                    "client" => Opening::Client(rtt),
                    "server" => Opening::Server(rtt),
                    _ => return Err(format!("{role}: client or server")),
                };
            }
            ["needs", "accurate", "ecn"] => self.needs_accurate_ecn = true,
            ["peer", options @ ..] => self.peer_options(options)?,
            ["known", "gap", why @ ..] if !why.is_empty() => self.known_gap = Some(why.join(" ")),
            _ => {
                return Err(format!(
                    "{first}: cc, sysctl, mtu, window, open, peer, needs, known gap, or a time"
                ));
            }
        }
        Ok(())
    }

    fn peer_options(&mut self, words: &[&str]) -> Result<(), String> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "nosack" => self.peer.sack = false,
                "nots" => self.peer.timestamps = false,
                "noscale" => self.peer.scaling = false,
                "ecn" => self.peer.ecn = true,
                "accecn" => self.peer.accurate = true,
                "bytes" if self.peer.accurate => self.peer.bytes = true,
                "mss" => {
                    let bytes = words.next().ok_or("mss BYTES")?;
                    self.peer.mss = parse_in_range("mss", bytes, MSS_BYTES)?;
                }
                other => {
                    let options = "nosack, nots, noscale, ecn, accecn [bytes], mss BYTES";
                    return Err(format!("{other}: {options}"));
                }
            }
        }
        Ok(())
    }

    /// Positions stay within a stream, and data of the peer's in one line are not too many segments.
    fn reach(&self) -> Result<(), Fault> {
        for line in &self.lines {
            let fault = |message: String| Fault { line: line.number, message };
            for position in line.positions() {
                if self.bytes(position) > STREAM_BYTES_MAX {
                    let Position { segments, bytes } = position;
                    let limit_text =
                        format!("{segments}+{bytes}b: at most {STREAM_BYTES_MAX} bytes");
                    return Err(fault(limit_text));
                }
            }
            let (data, of) = if let Action::Reply(reply) = &line.action {
                (reply.data, reply.of)
            } else if let Action::Expect(wanted) = &line.action {
                (None, wanted.of)
            } else {
                continue;
            };
            let segment_bytes = of.map_or(self.segment_bytes(), |of| self.bytes(of));
            if segment_bytes > i64::from(*MSS_BYTES.end()) {
                return Err(fault(format!("of: segments of at most {} bytes", MSS_BYTES.end())));
            }
            if let Some((from, to)) = data
                && self.bytes(to) - self.bytes(from) > REPLY_SEGMENTS_MAX * segment_bytes
            {
                return Err(fault(format!("data: at most {REPLY_SEGMENTS_MAX} segments at once")));
            }
        }
        Ok(())
    }

    /// A setting of the endpoint's host, if the script has one.
    #[must_use]
    pub fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// True when timestamps are used: both ends must have them.
    #[must_use]
    pub fn timestamps(&self) -> bool {
        self.peer.timestamps && self.sysctl("tcp_timestamps") != Some("0")
    }

    /// Payload of a full segment, bytes: what positions without a unit count in.
    #[must_use]
    pub fn segment_bytes(&self) -> i64 {
        let whole = i64::from(self.mtu_bytes - 40).min(i64::from(self.peer.mss));
        whole - if self.timestamps() { 12 } else { 0 } - if self.peer.bytes { 12 } else { 0 }
    }

    /// A position in bytes from the start of the data.
    #[must_use]
    pub fn bytes(&self, position: Position) -> i64 {
        position.segments * self.segment_bytes() + position.bytes
    }
}

fn parse_in_range(name: &str, word: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let number = word.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("{name} {word}: from {} to {}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_say_where_and_what_would_be_right() {
        let fault = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert_eq!(
            fault("# t\n\nopne client 100"),
            "line 3: opne: cc, sysctl, mtu, window, open, peer, needs, known gap, or a time"
        );
        assert_eq!(fault("# t\nopen both 100"), "line 2: both: client or server");
        assert_eq!(
            fault("# t\n0 write\n"),
            "line 2: write: write N, write Nb, write endless or write by N"
        );
        assert_eq!(
            fault("# t\n0 connect\ncc cubic"),
            "line 3: cc: settings come before the first line with a time"
        );
        assert_eq!(
            fault("# t\n"),
            "line 1: a title in a comment, and lines with times, are needed"
        );
        assert_eq!(
            fault("# t\n0 < ack 0 sack 3-3"),
            "line 2: sack: a block from one position to a later one"
        );
        assert_eq!(
            fault("# t\n0 < ack 0 sack 1-2,3-4,5-6,7-8"),
            "line 2: sack: at most three blocks beside timestamps"
        );
        assert_eq!(fault("# t\n5 connect\n4 quiet"), "line 3: 4: goes back in time");
        assert_eq!(
            fault("# t\n@5 > 0..1\n+1 quiet"),
            "line 3: +1: below a line with @, @ again or a time"
        );
        assert_eq!(fault("# t\n0 read"), "line 2: read: read on, read off, read N or read Nb");
        assert_eq!(fault("# t\n0 read 0"), "line 2: read: at least a byte");
        assert_eq!(
            fault("# t\n0 < data 0..1 seq 4"),
            "line 2: seq: data say themselves where they begin"
        );
        assert_eq!(
            fault("# t\nsysctl ../../x 1\n0 connect"),
            "line 2: sysctl ../../x: a name such as tcp_sack or net.ipv4.tcp_sack"
        );
    }

    #[test]
    fn scripts_for_accurate_ecn_are_marked() {
        let fault = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert_eq!(
            fault("# t\n0 connect\n1 < syn ace 2"),
            "line 3: ace, bytes0, bytes1 and ect1 need a line: needs accurate ecn"
        );
        assert!(Script::parse("# t\nneeds accurate ecn\n0 connect\n1 < syn ace 2").is_ok());
        assert_eq!(fault("# t\n0 > ack 0 ace 8"), "line 2: ace 8: from 0 to 7");
        assert_eq!(
            fault("# t\n0 > ack 0 bytes1 1,2,16777216"),
            "line 2: bytes1 1,2,16777216: up to three counters below 2^24, or none"
        );
    }

    #[test]
    fn numbers_have_bounds_and_the_fault_names_them() {
        let fault = |text: &str| Script::parse(text).unwrap_err().to_string();
        let time = "a time from 0 to 3600000 ms";
        assert_eq!(fault("# t\n1e30 connect"), format!("line 2: 1e30: {time}"));
        assert_eq!(fault("# t\n0 connect\n+nan quiet"), format!("line 3: +nan: {time}"));
        assert_eq!(fault("# t\n0..1e999 > syn"), format!("line 2: 0..1e999: {time}"));
        assert_eq!(
            fault("# t\n5..4 > syn"),
            "line 2: 5..4: a time window from one time to a later one"
        );
        assert_eq!(fault("# t\n0 < ack 0 age 1e30"), "line 2: age 1e30: from 0 to 3600000 ms");
        assert_eq!(fault("# t\n0 < ack 0 late -1"), "line 2: late -1: from 0 to 3600000 ms");
        assert_eq!(fault("# t\nopen client inf"), "line 2: open inf: from 0 to 3600000 ms");
        assert_eq!(fault("# t\nmtu 39"), "line 2: mtu 39: from 68 to 65535");
        assert_eq!(fault("# t\npeer mss 12"), "line 2: mss 12: from 48 to 65495");
        assert_eq!(
            fault("# t\nwindow 4294967295"),
            "line 2: window 4294967295: from 0 to 1073725440 bytes"
        );
        assert_eq!(
            fault("# t\nsysctl tcp_wmem 1 1 2147483648"),
            "line 2: tcp_wmem 2147483648: at most 2147483647"
        );
        assert_eq!(
            fault("# t\n0 < ack 0 sack 1-99999999999"),
            "line 2: 99999999999: a position from 0 to 1073741824 bytes"
        );
        assert_eq!(fault("# t\n0 write 1000000"), "line 2: 1000000+0b: at most 1073741824 bytes");
        assert_eq!(fault("# t\n0 < data 0..10001"), "line 2: data: at most 10000 segments at once");
        assert_eq!(fault("# t\n@1e9 > 0..1"), "line 2: @1e9: a time from 0 to 3600000 ms");
        assert_eq!(fault("# t\n0 < toobig 67"), "line 2: toobig 67: an MTU from 68 to 65535 bytes");
        assert_eq!(fault("# t\n0 < ack 0 val -1"), "line 2: val -1: from 0 to 4294967295");
        assert_eq!(fault("# t\n0 > 0..1 of 0"), "line 2: of: at least a byte");
        assert_eq!(
            fault("# t\n0 < data 0..1 of 70000b"),
            "line 2: of: segments of at most 65495 bytes"
        );
        assert_eq!(
            fault("# t\n0 < data 0..10001b of 1b"),
            "line 2: data: at most 10000 segments at once"
        );
        let long = format!("# t\n{}", "0 quiet\n".repeat(10_001));
        assert_eq!(fault(&long), "line 10002: more than 10000 lines with a time");
    }

    #[test]
    fn segments_shrink_with_options_and_with_the_peers_announcement() {
        let size = |header: &str| {
            Script::parse(&format!("# t\n{header}\n0 connect")).unwrap().segment_bytes()
        };
        assert_eq!(size(""), 1448);
        assert_eq!(size("peer nots"), 1460);
        assert_eq!(size("sysctl tcp_timestamps 0"), 1460);
        assert_eq!(size("peer mss 536"), 524);
        assert_eq!(size("mtu 500"), 448);
    }
}
