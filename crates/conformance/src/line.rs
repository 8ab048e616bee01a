//! One line of a time line.
//!
//! Every number has a bound, so that a script runs in a moment and in little memory: an hour, a stream of 2^30 bytes
//! (half of the sequence space), windows up to the scaling limit.

/// The latest time, ms: an hour.
pub(crate) const TIME_MS_MAX: f64 = 3_600_000.0;
/// The last position in a stream, bytes.
pub(crate) const STREAM_BYTES_MAX: i64 = 1 << 30;
/// Most segments of data in one line of the peer's.
pub(crate) const REPLY_SEGMENTS_MAX: i64 = 10_000;
/// The largest window (RFC 7323 §2.3).
pub(crate) const WINDOW_BYTES_MAX: u32 = 65_535 << 14;

/// A place in a stream: full segments, and bytes on top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Full segments.
    pub segments: i64,
    /// Bytes on top.
    pub bytes: i64,
}

/// From one position up to another, without it.
pub type Range = (Position, Position);

/// Origin of a line's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// The start.
    #[default]
    Start,
    /// The last segment that was expected and came, when it really left (`@`).
    Departure,
}

/// Reading by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Whatever comes, at once.
    On,
    /// Nothing.
    Off,
    /// A number of available bytes, and then nothing.
    Some(Position),
}

/// Segments of a line that carry PSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// None.
    None,
    /// The last and no other.
    Last,
    /// The last; the others either way.
    End,
}

/// A segment of the peer's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// A SYN; with an acknowledgement if the endpoint was the one to connect.
    pub syn: bool,
    /// The end of the peer's data, after them if there are any.
    pub fin: bool,
    /// A reset.
    pub rst: bool,
    /// The segment acknowledges nothing: the flag is off.
    pub no_ack: bool,
    /// Data that it carries, in full segments; `None`: a pure acknowledgement.
    pub data: Option<Range>,
    /// Payload of its segments, where they are not full ones.
    pub of: Option<Position>,
    /// Its sequence number, if not the next.
    pub seq: Option<Position>,
    /// Its timestamp and echo, as in the header.
    pub stamp: Option<u32>,
    /// See `stamp`.
    pub echo: Option<u32>,
    /// Its acknowledgement; without: as before.
    pub ack: Option<Position>,
    /// SACK blocks, a duplicate first.
    pub sack: Vec<Range>,
    /// The window it offers from now on, bytes.
    pub window_bytes: Option<u32>,
    /// The segment echoes the timestamp of the first transmission, not of the last.
    pub of_original: bool,
    /// The segment echoes a timestamp this many ms old.
    pub echo_age_ms: Option<f64>,
    /// Its age in ms on arrival, according to its timestamp.
    pub late_ms: f64,
    /// ECN echo.
    pub ece: bool,
    /// Window reduced.
    pub cwr: bool,
    /// Push, on the last segment.
    pub psh: bool,
    /// ECN-capable, in the IP header.
    pub ect: bool,
    /// Congestion experienced, in the IP header.
    pub ce: bool,
    /// ECT(1), in the IP header.
    pub ect1: bool,
    /// The three flags AE, CWR and ECE as a number (RFC 9768).
    pub ace: Option<u8>,
    /// The AccECN option.
    pub bytes: Option<EcnBytes>,
}

/// The AccECN option: whether it begins with ECT(1) (kind 174), and its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes {
    /// Kind 174; otherwise 172.
    pub ect1_first: bool,
    /// As in the header: three at most, of 24 bits.
    pub counters: Vec<u32>,
}

/// Segments that the endpoint should send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// A SYN.
    pub syn: bool,
    /// The end of its data.
    pub fin: bool,
    /// A reset.
    pub rst: bool,
    /// Data, in full segments and at most one shorter at the end; `None`: a pure acknowledgement.
    pub data: Option<Range>,
    /// Payload of its segments, where they are not full ones.
    pub of: Option<Position>,
    /// Its sequence number.
    pub seq: Option<Position>,
    /// A probe: its sequence number is one below what the peer has acknowledged.
    pub probe: bool,
    /// The timestamp that it echoes, as in the header.
    pub echo: Option<u32>,
    /// Its acknowledgement.
    pub ack: Option<Position>,
    /// The SACK blocks, all of them, in this order.
    pub sack: Option<Vec<Range>>,
    /// Bytes offered: at least, at most.
    pub window_bytes: Option<(i64, i64)>,
    /// Segments that carry PSH.
    pub psh: Option<Pushed>,
    /// ECN echo on all, or on none.
    pub ece: Option<bool>,
    /// Window reduced: on the first and on no other, or on none.
    pub cwr: Option<bool>,
    /// ECN-capable: all, or none.
    pub ect: Option<bool>,
    /// ECT(1): all, or none.
    pub ect1: Option<bool>,
    /// The three flags AE, CWR and ECE as a number, on all.
    pub ace: Option<u8>,
    /// The AccECN option: this one on all, or none on any.
    pub bytes: Option<Option<EcnBytes>>,
    /// Timestamps: on all, or on none.
    pub timestamps: Option<bool>,
}

/// Action of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The application connects.
    Connect,
    /// The application writes so much more; `None`: without end.
    Write(Option<Position>),
    /// From now on each of its writes is of so many bytes.
    WriteSize(Position),
    /// The application reads.
    Read(Reading),
    /// The application has nothing more to send, ever (shutdown(2)).
    Shutdown,
    /// A router on the path reports that the oldest unacknowledged segment is too long (RFC 1191): the MTU there,
    /// bytes.
    TooBig(u32),
    /// The peer sends.
    Reply(Reply),
    /// The endpoint should have sent.
    Expect(Expected),
    /// The endpoint should not have sent anything else until now.
    Quiet,
    /// Ignores the segments that the endpoint has sent so far.
    Forget,
    /// Checks values that the endpoint reports: name, at least, at most (`state`: its name).
    Ask(Vec<(String, String)>),
}

/// A line of a time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// In the file, from 1.
    pub number: usize,
    /// As written.
    pub text: String,
    /// Origin of its times.
    pub base: Base,
    /// Time in ms: the earliest and the latest.
    pub from_ms: f64,
    /// See `from_ms`.
    pub to_ms: f64,
    /// Action.
    pub action: Action,
}

impl Line {
    /// True when the line concerns accurate ECN.
    pub(crate) fn is_accurate(&self) -> bool {
        match &self.action {
            Action::Reply(reply) => reply.ect1 || reply.ace.is_some() || reply.bytes.is_some(),
            Action::Expect(expected) => {
                expected.ect1.is_some() || expected.ace.is_some() || expected.bytes.is_some()
            }
            Action::Connect
            | Action::Write(_)
            | Action::WriteSize(_)
            | Action::Read(_)
            | Action::Shutdown
            | Action::TooBig(_)
            | Action::Quiet
            | Action::Forget
            | Action::Ask(_) => false,
        }
    }

    /// Every position that it names.
    pub(crate) fn positions(&self) -> Vec<Position> {
        let bounds = |ranges: &[Range]| -> Vec<Position> {
            ranges.iter().flat_map(|(from, to)| [*from, *to]).collect()
        };
        let (data, alone, sack) = match &self.action {
            Action::Write(amount) => return amount.iter().copied().collect(),
            Action::WriteSize(amount) | Action::Read(Reading::Some(amount)) => {
                return vec![*amount];
            }
            Action::Reply(reply) => {
                (reply.data, [reply.ack, reply.of, reply.seq], bounds(&reply.sack))
            }
            Action::Expect(wanted) => (
                wanted.data,
                [wanted.ack, wanted.of, wanted.seq],
                bounds(wanted.sack.as_deref().unwrap_or_default()),
            ),
            Action::Connect
            | Action::Read(Reading::On | Reading::Off)
            | Action::Shutdown
            | Action::TooBig(_)
            | Action::Quiet
            | Action::Forget
            | Action::Ask(_) => return Vec::new(),
        };
        [bounds(data.as_slice()), alone.into_iter().flatten().collect(), sack].concat()
    }
}

/// Reads a line; `before` is what the times of the one above count from, and the earliest of them.
pub(crate) fn parse(words: &[&str], before: (Base, f64)) -> Result<Line, String> {
    let (base, from_ms, to_ms) = times(words[0], before)?;
    for ms in [from_ms, to_ms] {
        if !(0.0..=TIME_MS_MAX).contains(&ms) {
            return Err(format!("{}: a time from 0 to {TIME_MS_MAX} ms", words[0]));
        }
    }
    if to_ms < from_ms {
        return Err(format!("{}: a time window from one time to a later one", words[0]));
    }
    if base == before.0 && base == Base::Start && from_ms < before.1 {
        return Err(format!("{}: goes back in time", words[0]));
    }
    let action = match &words[1..] {
        ["connect"] => Action::Connect,
        ["write", "endless"] => Action::Write(None),
        ["write", amount] => Action::Write(Some(position(amount)?)),
        ["write", "by", size] => Action::WriteSize(positive(position(size)?, "write by")?),
        ["write", ..] => {
            return Err("write: write N, write Nb, write endless or write by N".to_owned());
        }
        ["read", "on"] => Action::Read(Reading::On),
        ["read", "off"] => Action::Read(Reading::Off),
        ["read", amount] => Action::Read(Reading::Some(positive(position(amount)?, "read")?)),
        ["read", ..] => return Err("read: read on, read off, read N or read Nb".to_owned()),
        ["shutdown"] => Action::Shutdown,
        ["<", "toobig", mtu] => Action::TooBig(too_big(mtu)?),
        ["<", rest @ ..] => Action::Reply(reply(rest)?),
        [">", rest @ ..] => Action::Expect(expected(rest)?),
        ["?", rest @ ..] => Action::Ask(questions(rest)?),
        ["quiet"] => Action::Quiet,
        ["forget"] => Action::Forget,
        other => {
            let first_word = other.first().unwrap_or(&"nothing");
            let actions = "connect, write, read, shutdown, <, >, ?, quiet or forget";
            return Err(format!("{first_word}: {actions}"));
        }
    };
    if from_ms != to_ms && !matches!(action, Action::Expect(_)) {
        return Err(format!("{}: only what is expected can have a time window", words[0]));
    }
    Ok(Line { number: 0, text: String::new(), base, from_ms, to_ms, action })
}

fn times(word: &str, before: (Base, f64)) -> Result<(Base, f64, f64), String> {
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("{word}: a time in ms"));
    if let Some(later) = word.strip_prefix('+') {
        if before.0 == Base::Departure {
            return Err(format!("{word}: below a line with @, @ again or a time"));
        }
        let at = before.1 + number(later)?;
        return Ok((Base::Start, at, at));
    }
    let (base, times) = match word.strip_prefix('@') {
        Some(times) => (Base::Departure, times),
        None => (Base::Start, word),
    };
    match times.split_once("..") {
        Some((from, to)) => Ok((base, number(from)?, number(to)?)),
        None => number(times).map(|at| (base, at, at)),
    }
}

/// A time in ms that is an age instead of a point in time.
pub(crate) fn span(word: &str, name: &str) -> Result<f64, String> {
    let ms = word.parse().ok().filter(|ms| (0.0..=TIME_MS_MAX).contains(ms));
    ms.ok_or_else(|| format!("{name} {word}: from 0 to {TIME_MS_MAX} ms"))
}

fn position(whole: &str) -> Result<Position, String> {
    let number = |word: &str| {
        let expected = || format!("{whole}: a position such as 10, 300b or 10+300b");
        let number = word.parse::<i64>().map_err(|_| expected())?;
        if (0..=STREAM_BYTES_MAX).contains(&number) {
            Ok(number)
        } else {
            Err(format!("{whole}: a position from 0 to {STREAM_BYTES_MAX} bytes"))
        }
    };
    let word = whole;
    let (segments, bytes) = match word.split_once('+') {
        Some((segments, bytes)) => (number(segments)?, bytes),
        None if word.ends_with('b') => (0, word),
        None => (number(word)?, "0"),
    };
    Ok(Position { segments, bytes: number(bytes.strip_suffix('b').unwrap_or(bytes))? })
}

/// A length that is not 0.
fn positive(position: Position, name: &str) -> Result<Position, String> {
    if position == Position::default() {
        return Err(format!("{name}: at least a byte"));
    }
    Ok(position)
}

/// An MTU that a router may name: the least is IPv4's own.
fn too_big(word: &str) -> Result<u32, String> {
    let mtu = word.parse().ok().filter(|mtu| (68..=65_535).contains(mtu));
    mtu.ok_or_else(|| format!("toobig {word}: an MTU from 68 to 65535 bytes"))
}

fn stamp(name: &str, word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("{name} {word}: from 0 to {}", u32::MAX))
}

fn range(word: &str, separator: &str) -> Result<Range, String> {
    let expects = || format!("{word}: a range such as 3{separator}7");
    let (from, to) = word.split_once(separator).ok_or_else(expects)?;
    Ok((position(from)?, position(to)?))
}

fn blocks(word: &str) -> Result<Vec<Range>, String> {
    if word == "none" {
        return Ok(Vec::new());
    }
    word.split(',').map(|block| range(block, "-")).collect()
}

/// Blocks that a peer can report.
fn option(blocks: Vec<Range>) -> Result<Vec<Range>, String> {
    match blocks.iter().find(|(from, to)| from == to) {
        Some(_) => Err("sack: a block from one position to a later one".to_owned()),
        None if blocks.len() > 4 => Err("sack: at most four blocks".to_owned()),
        None => Ok(blocks),
    }
}

fn ace(word: &str) -> Result<u8, String> {
    word.parse().ok().filter(|ace| *ace < 8).ok_or_else(|| format!("ace {word}: from 0 to 7"))
}

/// `bytes0 A,B,C` and `bytes1 A,B,C`, or fewer counters; `none`: without any.
fn ecn_bytes(name: &str, word: &str) -> Result<EcnBytes, String> {
    let counter = |word: &str| word.parse().ok().filter(|count: &u32| *count < 1 << 24);
    let counters: Option<Vec<u32>> =
        if word == "none" { Some(Vec::new()) } else { word.split(',').map(counter).collect() };
    let counters = counters.filter(|counters| counters.len() <= 3);
    let expected = || format!("{name} {word}: up to three counters below 2^24, or none");
    Ok(EcnBytes { ect1_first: name == "bytes1", counters: counters.ok_or_else(expected)? })
}

pub(crate) fn window(name: &str, word: &str) -> Result<u32, String> {
    let bytes = word.parse().ok().filter(|bytes| *bytes <= WINDOW_BYTES_MAX);
    bytes.ok_or_else(|| format!("{name} {word}: from 0 to {WINDOW_BYTES_MAX} bytes"))
}

fn reply(words: &[&str]) -> Result<Reply, String> {
    let mut reply = Reply::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("{word}: needs a value"));
        match *word {
            "syn" => reply.syn = true,
            "fin" => reply.fin = true,
            "rst" => reply.rst = true,
            "noack" => reply.no_ack = true,
            "data" => reply.data = Some(range(value()?, "..")?),
            "of" => reply.of = Some(positive(position(value()?)?, "of")?),
            "seq" => reply.seq = Some(position(value()?)?),
            "val" => reply.stamp = Some(stamp("val", value()?)?),
            "ecr" => reply.echo = Some(stamp("ecr", value()?)?),
            "ack" => reply.ack = Some(position(value()?)?),
            "sack" => reply.sack = option(blocks(value()?)?)?,
            "win" => reply.window_bytes = Some(window("win", value()?)?),
            "age" => reply.echo_age_ms = Some(span(value()?, "age")?),
            "late" => reply.late_ms = span(value()?, "late")?,
            "orig" => reply.of_original = true,
            "ece" => reply.ece = true,
            "cwr" => reply.cwr = true,
            "psh" => reply.psh = true,
            "ect" => reply.ect = true,
            "ce" => reply.ce = true,
            "ect1" => reply.ect1 = true,
            "ace" => reply.ace = Some(ace(value()?)?),
            "bytes0" | "bytes1" => reply.bytes = Some(ecn_bytes(word, value()?)?),
            other => {
                return Err(format!(
                    "{other}: data, of, seq, ack, sack, win, age, late, orig, val, ecr, ace, bytes0, bytes1 or a flag"
                ));
            }
        }
    }
    if reply.data.is_some() && reply.seq.is_some() {
        return Err("seq: data say themselves where they begin".to_owned());
    }
    Ok(reply)
}

fn expected(words: &[&str]) -> Result<Expected, String> {
    let mut segment = Expected::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("{word}: needs a value"));
        match *word {
            "syn" => segment.syn = true,
            "fin" => segment.fin = true,
            "rst" => segment.rst = true,
            "probe" => segment.probe = true,
            "of" => segment.of = Some(positive(position(value()?)?, "of")?),
            "seq" => segment.seq = Some(position(value()?)?),
            "ecr" => segment.echo = Some(stamp("ecr", value()?)?),
            "ack" => segment.ack = Some(position(value()?)?),
            "sack" => segment.sack = Some(blocks(value()?)?),
            "win" => segment.window_bytes = Some(bounds(value()?)?),
            "psh" => segment.psh = Some(Pushed::Last),
            "pshend" => segment.psh = Some(Pushed::End),
            "nopsh" => segment.psh = Some(Pushed::None),
            "ece" | "noece" => segment.ece = Some(*word == "ece"),
            "cwr" | "nocwr" => segment.cwr = Some(*word == "cwr"),
            "ect" | "noect" => segment.ect = Some(*word == "ect"),
            "ect1" | "noect1" => segment.ect1 = Some(*word == "ect1"),
            "ace" => segment.ace = Some(ace(value()?)?),
            "bytes0" | "bytes1" => segment.bytes = Some(Some(ecn_bytes(word, value()?)?)),
            "nobytes" => segment.bytes = Some(None),
            "ts" | "nots" => segment.timestamps = Some(*word == "ts"),
            other if other.contains("..") => segment.data = Some(range(other, "..")?),
            other => {
                return Err(format!(
                    "{other}: A..B, of, seq, ack, sack, win, ecr, probe, ace, bytes0, bytes1 or a flag"
                ));
            }
        }
    }
    Ok(segment)
}

/// `N`, `A..B` or `A..` as at least and at most.
pub(crate) fn bounds(word: &str) -> Result<(i64, i64), String> {
    let number = |word: &str| word.parse::<i64>().map_err(|_| format!("{word}: a whole number"));
    match word.split_once("..") {
        Some((from, "")) => Ok((number(from)?, i64::MAX)),
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(word).map(|value| (value, value)),
    }
}

/// Names of the values that can be checked: `tcp_info` in segments, microseconds and bytes.
const NAMES: [&str; 14] = [
    "state",
    "cwnd",
    "ssthresh",
    "flight",
    "retrans",
    "srtt_us",
    "min_rtt_us",
    "acked",
    "reordering",
    "lost",
    "notsent",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
];

fn questions(words: &[&str]) -> Result<Vec<(String, String)>, String> {
    let mut questions = Vec::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else { return Err(format!("{}: needs a value", pair[0])) };
        if !NAMES.contains(name) {
            return Err(format!("{name}: one of {}", NAMES.join(", ")));
        }
        if *name != "state" && *value != "inf" {
            bounds(value)?;
        }
        questions.push(((*name).to_owned(), (*value).to_owned()));
    }
    Ok(questions)
}
