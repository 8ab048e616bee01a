//! Words that set several fields: a flow's congestion control with its options, count and RTT
//! (`bbr:probe_rtt_win_sec=5*4@20ms`), and a queue's size in terms of the path (`1bdp`, `300ms`, `bfifo limit
//! 0.5bdp`).

use crate::applications::ApplicationForm;
use crate::problem;
use crate::quantity::{TimeText, time};
use crate::tables::Tagged;
use crate::types::FlowForm;
use dragstrip_scenario::{Dscp, Problem, QDISC_KINDS, QdiscSpec};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A full Ethernet frame without FCS, as queues count it.
const FRAME_BYTES: u64 = 1514;
/// A queue counted in what the path holds has at least room for this many frames.
const FRAMES_MIN: u64 = 3;

/// A congestion control as `compare` and `[[flows]]` name it: `NAME[:OPTION=VALUE,...][*COUNT][@RTT][+START]`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowWord<'a> {
    /// The name and its options, as written in the word.
    pub head: &'a str,
    /// The algorithm's name.
    pub name: &'a str,
    /// Its module parameters.
    pub options: BTreeMap<String, f64>,
    /// DSCP of the flow's packets, an option that every algorithm has.
    pub dscp: Option<Dscp>,
    /// The firewall's mark of its packets, likewise.
    pub mark: Option<u32>,
    /// Number of flows for each that the entry counts.
    pub count: Option<u64>,
    /// Their base RTT.
    pub rtt: Option<TimeText>,
    /// Start time of the first flow.
    pub start: Option<TimeText>,
}

impl<'a> FlowWord<'a> {
    /// The parts of a word; `field` is for messages.
    ///
    /// # Errors
    /// An option other than `NAME=NUMBER`, a count that is not a whole number above 0, an RTT or a start that is not a
    /// time.
    pub fn parse(word: &'a str, field: &str) -> Result<Self, Problem> {
        let wrong = |expected: &str| problem(field, &format!("{word:?}"), expected);
        let end = first_sign(word);
        let (head, mut tail) = word.split_at(end);
        let (name, option_text) = head.split_once(':').unwrap_or((head, ""));
        let mut options = BTreeMap::new();
        let (mut dscp, mut mark) = (None, None);
        if head.contains(':') {
            for option in option_text.split(',') {
                if let Some(text) = option.strip_prefix("dscp=") {
                    let read = Dscp::named(text.trim()).filter(|_| dscp.is_none());
                    dscp = Some(read.ok_or_else(|| {
                        wrong("one DSCP: a name such as EF, AF41 or CS1, or a number from 0 to 63")
                    })?);
                    continue;
                }
                if let Some(text) = option.strip_prefix("mark=") {
                    let read = mark_of(text.trim()).filter(|_| mark.is_none());
                    mark = Some(read.ok_or_else(|| wrong("one mark: a number such as 1 or 0x10"))?);
                    continue;
                }
                let pair = option.split_once('=').and_then(|(key, value)| {
                    let number = value.trim().parse::<f64>().ok().filter(|value| value.is_finite());
                    Some((key.trim(), number?)).filter(|(key, _)| !key.is_empty())
                });
                let (key, value) = pair.ok_or_else(|| {
                    wrong("NAME:OPTION=NUMBER[,OPTION=NUMBER]..., such as cubic:beta=0.8")
                })?;
                let value = in_its_unit(name, key, value);
                if options.insert(key.to_owned(), value).is_some() {
                    return Err(wrong("every option once"));
                }
            }
        }
        let (mut count, mut rtt, mut start) = (None, None, None);
        while let Some(sign) = tail.chars().next() {
            let rest = &tail[1..];
            let (text, after) = rest.split_at(rest.find(SIGNS).unwrap_or(rest.len()));
            tail = after;
            if sign == '*' && count.is_none() {
                let number = text.parse().ok().filter(|count| *count > 0);
                count = Some(number.ok_or_else(|| wrong("a count behind *, such as bbr*4"))?);
            } else if sign == '@' && rtt.is_none() {
                let read = time(text).map_err(|_| wrong("an RTT behind @, such as bbr@20ms"))?;
                rtt = Some(TimeText(read));
            } else if sign == '+' && start.is_none() {
                let read = time(text).map_err(|_| wrong("a start behind +, such as bbr+5s"))?;
                start = Some(TimeText(read));
            } else {
                return Err(wrong("one count, one RTT and one start, such as bbr*4@20ms+5s"));
            }
        }
        Ok(Self { head, name, options, dscp, mark, count, rtt, start })
    }

    /// Their base RTT in nanoseconds.
    #[must_use]
    pub fn rtt_ns(&self) -> Option<u64> {
        self.rtt.map(|time| time.0)
    }

    /// The first one's start in nanoseconds.
    #[must_use]
    pub fn start_ns(&self) -> Option<u64> {
        self.start.map(|time| time.0)
    }

    /// Returns a word without the part that begins with `sign` (`*`, `@` or `+`), and that part's text.
    #[must_use]
    pub fn without(word: &str, sign: char) -> (String, Option<&str>) {
        let (head, mut tail) = word.split_at(first_sign(word));
        let (mut kept, mut removed) = (head.to_owned(), None);
        while !tail.is_empty() {
            let end = tail[1..].find(SIGNS).map_or(tail.len(), |at| at + 1);
            let (part, after) = tail.split_at(end);
            if part.starts_with(sign) {
                removed = Some(&part[1..])
            } else {
                kept.push_str(part)
            }
            tail = after;
        }
        (kept, removed)
    }

    /// True when the word is only a name.
    fn is_plain(word: &str) -> bool {
        !word.contains(':') && first_sign(word) == word.len()
    }
}

/// A firewall's mark: a number of 32 bits, hexadecimal behind 0x.
fn mark_of(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Signs that begin a count, an RTT and a start.
const SIGNS: [char; 3] = ['*', '@', '+'];

/// Position where a word's name and options end. An option's number may have a plus: `1e+3`.
fn first_sign(word: &str) -> usize {
    let bytes = word.as_bytes();
    let of_number = |at: usize| {
        at > 1 && bytes[at] == b'+' && bytes[at - 1] == b'e' && bytes[at - 2].is_ascii_digit()
    };
    word.match_indices(SIGNS).map(|(at, _)| at).find(|at| !of_number(*at)).unwrap_or(word.len())
}

/// Scales a fraction of a parameter that is counted in 1024ths: `beta=0.8` of CUBIC is 819.
fn in_its_unit(word: &str, option: &str, value: f64) -> f64 {
    let algorithm = &word[dragstrip_scenario::quic::own_start(word)..];
    let row = dragstrip_cc::about().iter().find(|row| row.name == algorithm);
    let parameter =
        row.and_then(|row| row.parameters.iter().find(|candidate| candidate.name == option));
    let fraction = 0.0 < value && value < 1.0;
    if fraction && parameter.is_some_and(|parameter| parameter.unit == dragstrip_cc::PARTS) {
        libm::round(value * 1024.0)
    } else {
        value
    }
}

/// Expands the words of flows into separate fields.
///
/// # Errors
/// The errors of [`FlowWord::parse`], and contradictions between a word and a field.
pub(crate) fn spelt_out(flows: &[FlowForm]) -> Result<Cow<'_, [FlowForm]>, Problem> {
    let plain =
        |flow: &FlowForm| flow.cc.as_deref().is_none_or(is_plain_algorithm) && !flow.reverse;
    if flows.iter().all(plain) {
        return Ok(Cow::Borrowed(flows));
    }
    let forms = flows.iter().enumerate().map(|(index, flow)| spell_out(flow, index));
    forms.collect::<Result<_, _>>().map(Cow::Owned)
}

/// Name that stands for a video over RTP in the place of a congestion control.
pub(crate) const SCREAM: &str = "scream";

fn is_plain_algorithm(word: &str) -> bool {
    FlowWord::is_plain(word) && word != SCREAM
}

/// True for the word `scream`, with or without a count, an RTT and a start.
pub(crate) fn is_scream(word: &str) -> bool {
    FlowWord::parse(word, "").is_ok_and(|word| word.name == SCREAM)
}

fn spell_out(flow: &FlowForm, index: usize) -> Result<FlowForm, Problem> {
    let mut form = flow.clone();
    let Some(text) = &flow.cc else { return Ok(form) };
    let FlowWord { head: _, name, options, dscp, mark, count, rtt, start } =
        FlowWord::parse(text, &format!("flows[{index}].cc"))?;
    let mut label = text.replacen(&format!("*{}", count.unwrap_or(0)), "", 1);
    // The data of a flow that asks go the other way: its receiver is the one that sends them.
    let asks = flow.application.is_asking();
    if flow.reverse && !asks {
        label.push_str("-reverse");
    }
    if flow.label.is_empty() {
        form.label = label;
    }
    if name == SCREAM {
        form.cc = None;
        if matches!(*flow.application, ApplicationForm::Bulk {}) {
            form.application = Tagged(ApplicationForm::rtp());
        }
    } else {
        form.cc = Some(name.to_owned());
    }
    form.cc_options.extend(options);
    form.dscp = dscp.map(|dscp| dscp.value().to_string()).or(form.dscp);
    form.mark = mark.unwrap_or(form.mark);
    form.count = flow.count.saturating_mul(count.unwrap_or(1));
    form.rtt = rtt.or(flow.rtt);
    form.start = start.unwrap_or(flow.start);
    Ok(form)
}

/// Rate and RTT in which a queue's size is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holds {
    /// Rate of the link after the queue.
    pub rate_bps: Option<u64>,
    /// RTT of the empty path.
    pub rtt_ns: Option<u64>,
}

/// A queue's words in tc's own: `1bdp` and `300ms` are a bfifo of that size; after `limit`, `1bdp` is counted as the
/// discipline counts, in bytes or packets.
///
/// # Errors
/// A size that needs a rate or an RTT that the path does not have.
pub(crate) fn queue_words<'a>(
    words: &'a str,
    holds: Holds,
    field: &str,
) -> Result<Cow<'a, str>, Problem> {
    let wrong = |expected: &str| problem(field, &format!("{words:?}"), expected);
    let bytes = |rate: Option<u64>, ns: Option<u64>, times: f64| {
        let rate =
            rate.ok_or_else(|| wrong("a size: no rate is configured here to count it by"))?;
        let ns = ns.ok_or_else(|| wrong("a size, or a path with an rtt to count it by"))?;
        let bytes_exact = rate as f64 * ns as f64 / 8e9 * times;
        Ok::<u64, Problem>((libm::round(bytes_exact) as u64).max(FRAMES_MIN * FRAME_BYTES))
    };
    if let Some(times) = multiple(words.trim()) {
        let limit = bytes(holds.rate_bps, holds.rtt_ns, times)?;
        return Ok(Cow::Owned(format!("bfifo limit {limit}b")));
    }
    if let Ok(depth) = time(words.trim()) {
        let limit = bytes(holds.rate_bps, Some(depth), 1.0)?;
        return Ok(Cow::Owned(format!("bfifo limit {limit}b")));
    }
    if !words.split_whitespace().any(|word| multiple(word).is_some()) {
        return Ok(Cow::Borrowed(words));
    }
    let kind = words.split_whitespace().next().unwrap_or_default();
    let kind = QDISC_KINDS.iter().find(|row| row.name == kind);
    let limit = kind.and_then(|kind| (kind.field)("limit"));
    let in_bytes = limit.is_some_and(|field| field.ends_with("_bytes"));
    let mut converted = Vec::new();
    for word in words.split_whitespace() {
        converted.push(match multiple(word) {
            None => word.to_owned(),
            Some(times) => {
                let size = bytes(holds.rate_bps, holds.rtt_ns, times)?;
                if in_bytes { format!("{size}b") } else { size.div_ceil(FRAME_BYTES).to_string() }
            }
        });
    }
    Ok(Cow::Owned(converted.join(" ")))
}

/// The number in front of `bdp`.
fn multiple(word: &str) -> Option<f64> {
    let digits = word.strip_suffix("bdp")?;
    let shaped = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    digits.parse().ok().filter(|times: &f64| shaped && *times > 0.0)
}

/// Checks a queue's words independently of their path.
///
/// # Errors
/// Words that are wrong on every path.
pub(crate) fn check_queue(words: &str) -> Result<(), Problem> {
    let nominal = Holds { rate_bps: Some(10_000_000), rtt_ns: Some(40_000_000) };
    let tc_words = queue_words(words, nominal, "")?;
    QdiscSpec::parse(&tc_words).map(|_| ()).map_err(|mut problem| {
        if let Some(completed) = limit_meant(words) {
            problem.expected = format!("\"{completed}\": a number has its word in front of it");
        }
        if !words.trim().contains(' ') && words.starts_with(|first: char| first.is_ascii_digit()) {
            problem.expected =
                "a size such as 1bdp or 100ms, or the words of tc, such as bfifo limit 200kb"
                    .to_owned();
        }
        problem
    })
}

/// `pfifo limit 100` for `pfifo 100`.
fn limit_meant(words: &str) -> Option<String> {
    let (kind, rest) = words.trim().split_once(' ')?;
    let rest = rest.trim();
    let discipline = QDISC_KINDS.iter().find(|row| row.name == kind)?;
    let number = rest.starts_with(|first: char| first.is_ascii_digit());
    let completed = format!("{kind} limit {rest}");
    let right =
        number && (discipline.field)("limit").is_some() && QdiscSpec::parse(&completed).is_ok();
    right.then_some(completed)
}

/// A time in the largest unit that holds it whole, as tc reads it.
pub(crate) fn time_text(ns: u64) -> String {
    for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if ns.is_multiple_of(size) {
            return format!("{}{unit}", ns / size);
        }
    }
    format!("{ns}ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_without_one_of_its_parts() {
        let word = "cubic:beta=8e+2*4@20ms+5s";
        assert_eq!(FlowWord::without(word, '@'), ("cubic:beta=8e+2*4+5s".to_owned(), Some("20ms")));
        assert_eq!(FlowWord::without(word, '+'), ("cubic:beta=8e+2*4@20ms".to_owned(), Some("5s")));
        assert_eq!(FlowWord::without("bbr", '*'), ("bbr".to_owned(), None));
    }

    #[test]
    fn a_word_has_options_count_rtt_and_start() {
        let word = FlowWord::parse("cubic:beta=0.8,fast_convergence=0*4@20ms", "cc").unwrap();
        assert_eq!(
            (word.name, word.count, word.rtt),
            ("cubic", Some(4), Some(TimeText(20_000_000)))
        );
        let options: Vec<_> = word.options.iter().map(|(key, value)| (&**key, *value)).collect();
        assert_eq!(options, [("beta", 819.0), ("fast_convergence", 0.0)]);
        let turned = FlowWord::parse("bbr@1s*2", "cc").unwrap();
        assert_eq!((turned.count, turned.rtt), (Some(2), Some(TimeText(1_000_000_000))));
        assert_eq!(FlowWord::parse("reno", "cc").unwrap().options.len(), 0);
        let late = FlowWord::parse("cubic:beta=1e+2+5s*2", "cc").unwrap();
        assert_eq!((late.count, late.start), (Some(2), Some(TimeText(5_000_000_000))));
        assert_eq!(late.options.get("beta"), Some(&100.0));
    }

    #[test]
    fn a_word_has_a_dscp_and_a_mark() {
        let word = FlowWord::parse("cubic:dscp=EF,beta=0.8,mark=0x10*2", "cc").unwrap();
        assert_eq!((word.dscp, word.mark, word.count), (Dscp::new(46), Some(16), Some(2)));
        assert_eq!(word.options.len(), 1);
        assert_eq!(FlowWord::parse("reno:dscp=8", "cc").unwrap().dscp, Dscp::new(8));
    }

    #[test]
    fn a_word_that_says_nothing_is_refused() {
        for word in [
            "cubic:",
            "cubic:beta",
            "cubic:beta=x",
            "cubic:=1",
            "cubic:a=1,a=2",
            "cubic:a=inf",
            "bbr*",
            "bbr*0",
            "bbr*-1",
            "bbr*1*2",
            "bbr@20",
            "bbr@",
            "bbr@1ms@2ms",
            "bbr+",
            "bbr+5",
            "bbr+1s+2s",
            "bbr:dscp=",
            "bbr:dscp=64",
            "bbr:dscp=EF,dscp=CS1",
            "bbr:mark=x",
        ] {
            let problem = FlowWord::parse(word, "flows[0].cc").unwrap_err();
            assert_eq!(
                (problem.field.as_str(), problem.value),
                ("flows[0].cc", format!("{word:?}"))
            );
        }
    }

    #[test]
    fn a_queue_is_counted_in_what_the_path_holds() {
        let holds = Holds { rate_bps: Some(10_000_000), rtt_ns: Some(40_000_000) };
        for (words, expected) in [
            ("1bdp", "bfifo limit 50000b"),
            ("0.5bdp", "bfifo limit 25000b"),
            ("300ms", "bfifo limit 375000b"),
            ("bfifo limit 2bdp", "bfifo limit 100000b"),
            ("pfifo limit 1bdp", "pfifo limit 34"),
            ("codel limit 1bdp target 10ms", "codel limit 34 target 10ms"),
            ("0.01bdp", "bfifo limit 4542b"),
            ("fq_codel", "fq_codel"),
            ("bfifo limit 200kb", "bfifo limit 200kb"),
        ] {
            assert_eq!(queue_words(words, holds, "path.queue").unwrap(), expected);
            check_queue(words).unwrap();
        }
        let unknown = Holds { rate_bps: Some(1), rtt_ns: None };
        assert!(queue_words("300ms", unknown, "").is_ok());
        assert_eq!(queue_words("1bdp", unknown, "path.queue").unwrap_err().field, "path.queue");
        for words in ["bdp", "-1bdp", "1e3bdp", "0bdp", "bfifo limit xbdp"] {
            check_queue(words).unwrap_err();
        }
    }

    #[test]
    fn a_time_has_the_unit_that_holds_it_whole() {
        let texts = [0, 5_000_000_000, 1_500_000_000, 250_000, 7].map(time_text);
        assert_eq!(texts, ["0s", "5s", "1500ms", "250us", "7ns"]);
    }
}
