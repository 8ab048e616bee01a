//! Disciplines that Linux has no longer (cbq, until 6.3) or has never had (CeroWrt's nfq_codel), in the words of one that it has.
//!
//! cbq becomes htb (docs/decisions/0024-cbq-is-read-as-htb.md): a class keeps its rate, its priority and its share by weight; a class that is
//! `bounded` has its rate as ceiling, any other that of the class above it, up to the `bandwidth` of the discipline.
//!
//! nfq_codel becomes fq_codel with its own defaults (`fq_codel_init` in its file).

use super::Wrong;
use super::lines::Word;
use super::tree::{ClassOf, Id, Interface, Standing};
use super::words::{Rest, refused};
use crate::tc::{rate, wrong};
use dragstrip_units::Rate;
use dragstrip_units::tc::text::parse_rate;

/// Priorities of cbq, from 1 on (`TC_CBQ_MAXPRIO`).
const PRIORITIES: u8 = 8;
/// Most bytes of a turn, and those of a class that would have more or none (`cbq_normalize_quanta`, on Ethernet).
const QUANTUM_MAX: u64 = 32 * 1500;
const QUANTUM_ELSE: u64 = 1500 / 2 + 1;
/// Bytes of `allot` where no word says.
const ALLOT: u64 = 1514;
/// Words of nfq_codel with their defaults, where they are not fq_codel's.
const NFQ_CODEL: [(&str, &str); 2] = [("limit", "1024"), ("quantum", "300")];

/// Parameters of a class of cbq.
struct Cbq {
    rate_bps: u64,
    bounded: bool,
    priority: u8,
    weight_bps: u64,
    allot_bytes: u64,
}

/// The interface in words of today, and the notes for the reader.
pub(super) fn current(interface: &Interface) -> Result<(Interface, Vec<String>), Wrong> {
    let (mut interface, mut notes) = (interface.clone(), Vec::new());
    for class in interface.classes.iter_mut().filter(|class| class.kind.text == "hfsc") {
        notes.extend(microseconds(&mut class.words));
    }
    let mut roots = Vec::new();
    for standing in &mut interface.disciplines {
        match standing.kind.text.as_str() {
            "cbq" => roots.extend(root(standing)?),
            "nfq_codel" => {
                fair_codel(standing);
                let line = standing.kind.line;
                notes.push(format!(
                    "nfq_codel (line {line}) is read as fq_codel with its limit and quantum: it served one packet in turn, took \
                     flows that begin with a longer packet than a quantum for old ones, and had an earlier CoDel"
                ));
            }
            _ => {}
        }
    }
    for (major, bandwidth_bps, line) in roots {
        classes(&mut interface, major, bandwidth_bps, line)?;
        notes.push(format!(
            "cbq (line {line}) is read as htb with its rates, priorities and weights: cbq served a class of a higher priority \
             first even while it borrowed, measured idle times in place of tokens, and left Linux with 6.3"
        ));
    }
    Ok((interface, notes))
}

/// Gives times of curves without a unit the one that tc takes them in (`get_time`), and the notes.
fn microseconds(words: &mut [Word]) -> Vec<String> {
    let mut notes = Vec::new();
    for at in 1..words.len() {
        let name = words[at - 1].text.clone();
        let word = &mut words[at];
        let is_plain = word.text.parse::<u64>().is_ok_and(|number| number > 0);
        if is_plain && ["d", "dmax"].contains(&name.as_str()) {
            let line = word.line;
            notes.push(format!(
                "{name} {} (line {line}) is in microseconds, as tc takes it",
                word.text
            ));
            word.text.push_str("us");
        }
    }
    notes
}

/// nfq_codel's words as fq_codel has them.
fn fair_codel(standing: &mut Standing) {
    standing.kind.text = "fq_codel".to_owned();
    for (name, value) in NFQ_CODEL {
        if !standing.words.iter().any(|word| word.text == name) {
            let words = [name, value].map(|text| at(text, &standing.kind));
            standing.words.extend(words);
        }
    }
}

fn at(text: &str, word: &Word) -> Word {
    Word { text: text.to_owned(), line: word.line }
}

/// Turns a cbq into an htb without a default; its number, its bandwidth and its line. One that nobody can refer to has no classes.
fn root(standing: &mut Standing) -> Result<Option<(u16, u64, usize)>, Wrong> {
    let words = std::mem::take(&mut standing.words);
    let mut rest = Rest::of(&words);
    let mut bandwidth_bps = None;
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "bandwidth" => bandwidth_bps = Some(read_rate(word, &mut rest)?),
            "avpkt" | "cell" | "mpu" | "ewma" | "allot" => {
                let _ = rest.value(word)?;
            }
            _ => return refused(word, "bandwidth, avpkt, cell, mpu, ewma or allot of cbq"),
        }
    }
    let line = standing.kind.line;
    let Some(bandwidth_bps) = bandwidth_bps else {
        let problem = wrong("\"cbq\" without \"bandwidth\"", "the rate of the line");
        return Err(Wrong { line, problem });
    };
    standing.kind.text = "htb".to_owned();
    Ok(standing.handle.map(|major| (major, bandwidth_bps, line)))
}

/// Turns the classes of a cbq into those of htb.
fn classes(
    interface: &mut Interface,
    major: u16,
    bandwidth_bps: u64,
    line: usize,
) -> Result<(), Wrong> {
    let read = |class: &ClassOf| Ok((class.id, class.parent, cbq(class)?));
    let own = |class: &&ClassOf| class.id.major == major;
    let all = interface.classes.iter().filter(own).map(read).collect::<Result<Vec<_>, Wrong>>()?;
    let of = |id: Id| all.iter().find(|(other, ..)| *other == id);
    // How fast a class may send: its own rate, or that of the nearest one above that borrows from nobody.
    let reach_bps = |id: Id| {
        let (mut id, mut steps) = (id, all.len());
        while let Some((_, parent, class)) = of(id) {
            if class.bounded || steps == 0 {
                return class.rate_bps;
            }
            (id, steps) = (*parent, steps - 1);
        }
        bandwidth_bps
    };
    let quantum = |class: &Cbq| {
        let beside = all.iter().filter(|(_, _, other)| other.priority == class.priority);
        let (count, weights) = beside.fold((0_u128, 0_u128), |(count, sum), (_, _, other)| {
            (count + 1, sum + u128::from(other.weight_bps))
        });
        let share = u128::from(class.weight_bps) * u128::from(class.allot_bytes) * count;
        let quantum = u64::try_from(share / weights.max(1)).unwrap_or(u64::MAX);
        if (1..=QUANTUM_MAX).contains(&quantum) { quantum } else { QUANTUM_ELSE }
    };
    // In htb a class of the root borrows from nobody; cbq's discipline is itself a class that lends.
    let lends = all.iter().any(|(_, parent, class)| parent.minor == 0 && !class.bounded);
    let free = (1..u16::MAX).rev().map(|minor| Id { major, minor }).find(|&id| of(id).is_none());
    let top = free.filter(|_| lends);
    for class in interface.classes.iter_mut().filter(|class| class.id.major == major) {
        let Some((_, parent, read)) = of(class.id) else { continue };
        let texts = [
            "rate".to_owned(),
            rate(read.rate_bps),
            "ceil".to_owned(),
            rate(reach_bps(class.id)),
            "prio".to_owned(),
            (read.priority - 1).to_string(),
            "quantum".to_owned(),
            quantum(read).to_string(),
        ];
        class.words = texts.map(|text| at(&text, &class.kind)).to_vec();
        class.kind.text = "htb".to_owned();
        if let (0, Some(top)) = (parent.minor, top) {
            class.parent = top;
        }
    }
    if let Some(id) = top {
        let kind = Word { text: "htb".to_owned(), line };
        let texts = ["rate".to_owned(), rate(bandwidth_bps)];
        let words = texts.map(|text| at(&text, &kind)).to_vec();
        interface.classes.insert(0, ClassOf { id, parent: Id { major, minor: 0 }, kind, words });
    }
    Ok(())
}

fn read_rate(word: &Word, rest: &mut Rest<'_>) -> Result<u64, Wrong> {
    let value = rest.value(word)?;
    match parse_rate(&value.text).map(Rate::bits_per_second) {
        Ok(bps) if bps > 0 => Ok(bps),
        Ok(_) | Err(_) => refused(value, format!("a rate after {:?}, such as 10mbit", word.text)),
    }
}

/// The words of a class (q_cbq.c of iproute2).
fn cbq(class: &ClassOf) -> Result<Cbq, Wrong> {
    let mut rest = Rest::of(&class.words);
    let (mut rate_bps, mut weight_bps, mut allot_bytes) = (None, None, ALLOT);
    let (mut bounded, mut priority) = (false, PRIORITIES);
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "rate" => rate_bps = Some(read_rate(word, &mut rest)?),
            // Only the ratio counts: a number will do.
            "weight"
                if rest.peek().is_some_and(|text| text.parse::<u64>().is_ok_and(|n| n > 0)) =>
            {
                weight_bps = rest.value(word)?.text.parse().ok();
            }
            "weight" => weight_bps = Some(read_rate(word, &mut rest)?),
            "bounded" => bounded = true,
            "borrow" => bounded = false,
            "isolated" | "sharing" => {}
            "prio" => {
                let value = rest.value(word)?;
                match value.text.parse::<u8>() {
                    Ok(number) if (1..=PRIORITIES).contains(&number) => priority = number,
                    Ok(_) | Err(_) => {
                        return refused(value, format!("a priority from 1 to {PRIORITIES}"));
                    }
                }
            }
            "allot" => {
                let value = rest.value(word)?;
                match value.text.strip_suffix('b').unwrap_or(&value.text).parse() {
                    Ok(bytes) if bytes > 0 => allot_bytes = bytes,
                    Ok(_) | Err(_) => return refused(value, "bytes of a turn, above 0"),
                }
            }
            "bandwidth" | "avpkt" | "cell" | "mpu" | "ewma" | "maxburst" | "minburst"
            | "minidle" => {
                let _ = rest.value(word)?;
            }
            "split" | "defmap" => {
                return refused(
                    word,
                    "filters: classes by priority (split, defmap) are not modelled",
                );
            }
            _ => {
                return refused(
                    word,
                    "rate, bounded, prio, weight, allot or another word of a class of cbq",
                );
            }
        }
    }
    let Some(rate_bps) = rate_bps else {
        let problem = wrong(format!("class {} without \"rate\"", class.id), "its rate");
        return Err(Wrong { line: class.kind.line, problem });
    };
    let weight_bps = weight_bps.unwrap_or(rate_bps);
    Ok(Cbq { rate_bps, bounded, priority, weight_bps, allot_bytes })
}
