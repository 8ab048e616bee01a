//! One line of a time line.
//!
//! Every number has a bound, so that a script can be played in a moment and in little memory: an hour, a stream of
//! 2^30 bytes (half of what sequence numbers tell apart), windows as far as scaling goes.

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

/// A segment of the peer's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// A SYN; with an acknowledgement if the endpoint was the one to connect.
    pub syn: bool,
    /// Data that it carries, in full segments; `None`: a pure acknowledgement.
    pub data: Option<Range>,
    /// What it acknowledges; without: as far as before.
    pub ack: Option<Position>,
    /// SACK blocks, a duplicate first.
    pub sack: Vec<Range>,
    /// The window it offers from now on, bytes.
    pub window_bytes: Option<u32>,
    /// It echoes the timestamp of the first transmission, not of the last.
    pub of_original: bool,
    /// It echoes a timestamp this many ms old.
    pub echo_age_ms: Option<f64>,
    /// It left the peer so many ms ago, as its timestamp says.
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
}

/// What the endpoint should send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// A SYN.
    pub syn: bool,
    /// Data, in full segments and at most one shorter at the end; `None`: a pure acknowledgement.
    pub data: Option<Range>,
    /// What it acknowledges.
    pub ack: Option<Position>,
    /// The SACK blocks, all of them, in this order.
    pub sack: Option<Vec<Range>>,
    /// Bytes offered: at least, at most.
    pub window_bytes: Option<(i64, i64)>,
    /// Push on the last segment and on no other, or on none.
    pub psh: Option<bool>,
    /// ECN echo on all, or on none.
    pub ece: Option<bool>,
    /// Window reduced: on the first and on no other, or on none.
    pub cwr: Option<bool>,
    /// ECN-capable: all, or none.
    pub ect: Option<bool>,
    /// Timestamps: on all, or on none.
    pub timestamps: Option<bool>,
}

/// What happens on a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The application connects.
    Connect,
    /// The application writes so much more; `None`: without end.
    Write(Option<Position>),
    /// The peer sends.
    Reply(Reply),
    /// The endpoint should have sent.
    Expect(Expected),
    /// The endpoint should not have sent anything else until now.
    Quiet,
    /// What the endpoint has sent until now does not matter.
    Forget,
    /// What the endpoint should say about itself: name, at least, at most (`state`: its name).
    Ask(Vec<(String, String)>),
}

/// A line of a time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// In the file, from 1.
    pub number: usize,
    /// As written.
    pub text: String,
    /// When, in ms: the earliest and the latest.
    pub from_ms: f64,
    /// See `from_ms`.
    pub to_ms: f64,
    /// What.
    pub action: Action,
}

impl Line {
    /// Every position that it names.
    pub(crate) fn positions(&self) -> Vec<Position> {
        let both = |ranges: &[Range]| -> Vec<Position> {
            ranges.iter().flat_map(|(from, to)| [*from, *to]).collect()
        };
        let (data, ack, sack) = match &self.action {
            Action::Write(amount) => return amount.iter().copied().collect(),
            Action::Reply(reply) => (reply.data, reply.ack, both(&reply.sack)),
            Action::Expect(wanted) => {
                (wanted.data, wanted.ack, both(wanted.sack.as_deref().unwrap_or_default()))
            }
            Action::Connect | Action::Quiet | Action::Forget | Action::Ask(_) => return Vec::new(),
        };
        [both(data.as_slice()), ack.into_iter().collect(), sack].concat()
    }
}

/// Reads a line; `before_ms` is the time of the one above.
pub(crate) fn parse(words: &[&str], before_ms: f64) -> Result<Line, String> {
    let (from_ms, to_ms) = times(words[0], before_ms)?;
    for ms in [from_ms, to_ms] {
        if !(0.0..=TIME_MS_MAX).contains(&ms) {
            return Err(format!("{}: a time from 0 to {TIME_MS_MAX} ms", words[0]));
        }
    }
    if to_ms < from_ms {
        return Err(format!("{}: a time window from one time to a later one", words[0]));
    }
    if from_ms < before_ms {
        return Err(format!("{}: goes back in time", words[0]));
    }
    let action = match &words[1..] {
        ["connect"] => Action::Connect,
        ["write", "endless"] => Action::Write(None),
        ["write", amount] => Action::Write(Some(position(amount)?)),
        ["write", ..] => return Err("write: write N, write Nb or write endless".to_owned()),
        ["<", rest @ ..] => Action::Reply(reply(rest)?),
        [">", rest @ ..] => Action::Expect(expected(rest)?),
        ["?", rest @ ..] => Action::Ask(questions(rest)?),
        ["quiet"] => Action::Quiet,
        ["forget"] => Action::Forget,
        other => {
            let found = other.first().unwrap_or(&"nothing");
            return Err(format!("{found}: connect, write, <, >, ?, quiet or forget"));
        }
    };
    if from_ms != to_ms && !matches!(action, Action::Expect(_)) {
        return Err(format!("{}: only what is expected can have a time window", words[0]));
    }
    Ok(Line { number: 0, text: String::new(), from_ms, to_ms, action })
}

fn times(word: &str, before_ms: f64) -> Result<(f64, f64), String> {
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("{word}: a time in ms"));
    if let Some(later) = word.strip_prefix('+') {
        let at = before_ms + number(later)?;
        return Ok((at, at));
    }
    match word.split_once("..") {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(word).map(|at| (at, at)),
    }
}

/// A time in ms that is no time of its own but an age.
pub(crate) fn span(word: &str, what: &str) -> Result<f64, String> {
    let ms = word.parse().ok().filter(|ms| (0.0..=TIME_MS_MAX).contains(ms));
    ms.ok_or_else(|| format!("{what} {word}: from 0 to {TIME_MS_MAX} ms"))
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

fn range(word: &str, between: &str) -> Result<Range, String> {
    let expects = || format!("{word}: a range such as 3{between}7");
    let (from, to) = word.split_once(between).ok_or_else(expects)?;
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

pub(crate) fn window(what: &str, word: &str) -> Result<u32, String> {
    let bytes = word.parse().ok().filter(|bytes| *bytes <= WINDOW_BYTES_MAX);
    bytes.ok_or_else(|| format!("{what} {word}: from 0 to {WINDOW_BYTES_MAX} bytes"))
}

fn reply(words: &[&str]) -> Result<Reply, String> {
    let mut reply = Reply::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("{word}: needs a value"));
        match *word {
            "syn" => reply.syn = true,
            "data" => reply.data = Some(range(value()?, "..")?),
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
            other => {
                return Err(format!(
                    "{other}: syn, data, ack, sack, win, age, late, orig or a flag"
                ));
            }
        }
    }
    Ok(reply)
}

fn expected(words: &[&str]) -> Result<Expected, String> {
    let mut wanted = Expected::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("{word}: needs a value"));
        match *word {
            "syn" => wanted.syn = true,
            "ack" => wanted.ack = Some(position(value()?)?),
            "sack" => wanted.sack = Some(blocks(value()?)?),
            "win" => wanted.window_bytes = Some(bounds(value()?)?),
            "psh" | "nopsh" => wanted.psh = Some(*word == "psh"),
            "ece" | "noece" => wanted.ece = Some(*word == "ece"),
            "cwr" | "nocwr" => wanted.cwr = Some(*word == "cwr"),
            "ect" | "noect" => wanted.ect = Some(*word == "ect"),
            "ts" | "nots" => wanted.timestamps = Some(*word == "ts"),
            other if other.contains("..") => wanted.data = Some(range(other, "..")?),
            other => return Err(format!("{other}: A..B, syn, ack, sack, win or a flag")),
        }
    }
    Ok(wanted)
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

/// What can be asked: `tcp_info` in segments, microseconds and bytes.
const NAMES: [&str; 8] =
    ["state", "cwnd", "ssthresh", "flight", "retrans", "srtt_us", "min_rtt_us", "acked"];

fn questions(words: &[&str]) -> Result<Vec<(String, String)>, String> {
    let mut asked = Vec::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else { return Err(format!("{}: needs a value", pair[0])) };
        if !NAMES.contains(name) {
            return Err(format!("{name}: one of {}", NAMES.join(", ")));
        }
        if *name != "state" && *value != "inf" {
            bounds(value)?;
        }
        asked.push(((*name).to_owned(), (*value).to_owned()));
    }
    Ok(asked)
}
