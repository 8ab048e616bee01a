//! A filter in tc's words, read (tc/f_u32.c, f_fw.c, f_flow.c, f_flower.c, f_matchall.c of iproute2).
//!
//! All packets here are IPv4: a filter of another protocol takes none and is left out.

use super::actions::{Does, behind, rest};
use super::filter::{NEXT_HEADER, comparable};
use super::flower_words::flower;
use super::types::{ClassId, FilterSpec, FlowKey, Key, Matching, PolicerSpec};
use super::words::{Id, address, following, id, key, number};
use crate::tc::{Words, unknown, unreadable, wrong};
use dragstrip_units::Problem;

/// Priority that the kernel gives to the first filter without one (`tcf_auto_prio`); each further one gets the least so far,
/// less one.
const PRIORITY: u16 = 0xc000;

/// A filter as a command adds it.
#[derive(Clone, Debug)]
pub(super) struct FilterWords {
    pub(super) parent: Id,
    pub(super) priority: u16,
    matching: Matching,
    class: Option<ClassId>,
    drop: bool,
    police: Option<PolicerSpec>,
}

impl FilterWords {
    pub(super) fn spec(&self) -> FilterSpec {
        let Self { parent, priority, matching, class, drop, police } = self.clone();
        FilterSpec { parent: parent.minor, priority, matching, class, drop, police }
    }
}

/// The filters that a command adds; `least` is the least priority at a place so far.
pub(super) fn read(
    command: &[&str],
    root: Option<u16>,
    least: impl Fn(Id) -> Option<u16>,
) -> Result<Vec<FilterWords>, Problem> {
    let text = command.join(" ");
    let mut words = Words::new(&text);
    let (mut parent, mut priority, mut handle, mut protocol) = (None, None, None, "all");
    let kind = loop {
        let Some(word) = words.next() else {
            return Err(wrong("no filter", "its kind, such as u32, fw, flower or matchall"));
        };
        match word {
            "dev" => {
                let _ = following(&mut words, word)?;
            }
            "parent" => parent = Some(words.value(word, id)?),
            "root" => {}
            "protocol" => protocol = following(&mut words, word)?,
            "prio" | "pref" | "priority" => {
                let number: u16 = words.whole(word)?;
                if number == 0 {
                    return Err(wrong("\"prio 0\"", "a number from 1 to 65535"));
                }
                priority = Some(number);
            }
            "handle" => handle = Some(following(&mut words, word)?),
            _ => break word,
        }
    };
    let Some(parent) = parent.or(root.map(|major| Id { major, minor: 0 })) else {
        return Err(wrong("no \"parent\"", "a discipline with a handle, such as \"parent 1:\""));
    };
    let (matchings, does) = match kind {
        "u32" => u32_words(&mut words, parent.major)?,
        "fw" => fw(&mut words, handle, parent.major)?,
        "flower" => flower(&mut words, parent.major)?,
        "matchall" => (vec![Matching::Everything {}], rest(&mut words, parent.major, &[])?),
        "flow" => flow(&mut words, parent)?,
        _ => {
            return Err(unknown(
                kind,
                &["u32", "fw", "flower", "flow", "matchall"],
                &["basic", "bpf", "route", "rsvp", "tcindex", "cgroup"],
            ));
        }
    };
    if !["ip", "all", "0x0800", "0x800", "ipv4"].contains(&protocol) {
        return Ok(Vec::new());
    }
    let computes = |matching: &Matching| {
        matches!(matching, Matching::Flow { .. } | Matching::Fw { mark: None, .. })
    };
    if does.class.is_none() && !does.drop && !matchings.iter().any(computes) {
        return Err(wrong("no class", "\"classid\" with one, such as \"classid 1:10\""));
    }
    let automatic = || least(parent).map_or(PRIORITY, |least| least.saturating_sub(1).max(1));
    let priority = priority.unwrap_or_else(automatic);
    let Does { class, drop, police } = does;
    let filter = |matching| FilterWords { parent, priority, matching, class, drop, police };
    Ok(matchings.into_iter().map(filter).collect())
}

/// `handle MARK[/MASK] fw`.
fn fw(
    words: &mut Words<'_>,
    handle: Option<&str>,
    major: u16,
) -> Result<(Vec<Matching>, Does), Problem> {
    let does = rest(words, major, &[])?;
    let (mark, mask) = match handle {
        None => (None, u32::MAX),
        Some(text) => {
            let (mark, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
            let read = |part| {
                number(part).map_err(|error| wrong(format!("\"handle {text}\""), error.expected))
            };
            (Some(read(mark)?), read(mask)?)
        }
    };
    if mark.is_some_and(|mark| mark & !mask != 0) {
        return Err(wrong(
            format!("\"handle {}\"", handle.unwrap_or_default()),
            "a mark within its mask: no packet has another",
        ));
    }
    Ok((vec![Matching::Fw { mark, mask }], does))
}

/// `flow hash keys KEYS divisor N [baseclass X:Y]`.
fn flow(words: &mut Words<'_>, parent: Id) -> Result<(Vec<Matching>, Does), Problem> {
    let (mut keys, mut divisor, mut base) = (Vec::new(), 0, 1);
    let mut does = Does::default();
    while let Some(word) = words.next() {
        match word {
            "hash" => {}
            "keys" => {
                keys = words.value(word, |text| {
                    let key = |name: &str| match name {
                        "src" => Ok(FlowKey::Src),
                        "dst" => Ok(FlowKey::Dst),
                        "proto" => Ok(FlowKey::Proto),
                        "proto-src" => Ok(FlowKey::ProtoSrc),
                        "proto-dst" => Ok(FlowKey::ProtoDst),
                        "priority" => Ok(FlowKey::Priority),
                        "mark" => Ok(FlowKey::Mark),
                        _ => Err(unreadable(text, "src, dst, proto, proto-src, proto-dst, priority and mark, with commas: the simulator does not model another key")),
                    };
                    text.split(',').map(key).collect::<Result<Vec<_>, _>>()
                })?;
            }
            "divisor" => divisor = words.value(word, number)?,
            "baseclass" => {
                let Id { major, minor } = words.value(word, id)?;
                if major != parent.major || minor == 0 {
                    return Err(wrong(
                        format!("\"baseclass {major:x}:{minor:x}\""),
                        format!("a class of {:x}:", parent.major),
                    ));
                }
                base = minor;
            }
            _ => {
                if !behind(word, words, parent.major, &mut does)? {
                    return Err(unknown(
                        word,
                        &["hash", "keys", "divisor", "baseclass"],
                        &["map", "perturb", "rshift", "addend", "xor", "mask"],
                    ));
                }
            }
        }
    }
    // The kernel hashes fields in its own order.
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() || divisor == 0 {
        return Err(wrong(
            "\"flow\" without \"keys\" or \"divisor\"",
            "both, such as: flow hash keys src,dst divisor 8",
        ));
    }
    Ok((vec![Matching::Flow { keys, divisor, base }], does))
}

/// Refuses what the simulation does not know of a packet.
fn comparable_key(key: Key, quoted: &str) -> Result<Key, Problem> {
    let bits = comparable(key.offset).unwrap_or(0);
    if key.mask & !bits == 0 {
        return Ok(key);
    }
    Err(wrong(
        format!("\"match {quoted}\""),
        "the length, the traffic class, the protocol, addresses, ports, or TCP's header length and flags: nothing else of a packet is modelled",
    ))
}

/// `u32 match ... [match ...]`.
fn u32_words(words: &mut Words<'_>, major: u16) -> Result<(Vec<Matching>, Does), Problem> {
    let (mut keys, mut does, mut any) = (Vec::new(), Does::default(), false);
    while let Some(word) = words.next() {
        match word {
            "match" => {
                any = true;
                if let Some(key) = u32_match(words)? {
                    keys.push(key);
                }
            }
            // The table that all filters are in, and the place of this one.
            "ht" if words.peek().is_some_and(|text| text == "800:" || text == "800::") => {
                let _ = words.next();
            }
            _ => {
                if !behind(word, words, major, &mut does)? {
                    return Err(unknown(
                        word,
                        &["match", "classid", "police", "action"],
                        &["ht", "divisor", "link", "hashkey", "offset", "order", "sample"],
                    ));
                }
            }
        }
    }
    if !any {
        return Err(wrong(
            "\"u32\" without \"match\"",
            "one, such as \"match ip dsfield 0xb8 0xfc\"",
        ));
    }
    let matching = if keys.is_empty() { Matching::Everything {} } else { Matching::U32 { keys } };
    Ok((vec![matching], does))
}

fn u32_match(words: &mut Words<'_>) -> Result<Option<Key>, Problem> {
    let selector = following(words, "match")?;
    let mut quoted = selector.to_owned();
    let pair = |words: &mut Words<'_>, of: &str| {
        let value = words.value(of, number)?;
        let mask = words.value(of, number)?;
        Ok::<_, Problem>((value, mask))
    };
    let key = match selector {
        "u8" | "u16" | "u32" => {
            let width = match selector {
                "u8" => 8,
                "u16" => 16,
                _ => 32,
            };
            let (value, mask) = pair(words, selector)?;
            let mut at = 0;
            if words.peek() == Some("at") {
                let _ = words.next();
                at = words.value("at", |text| {
                    let (base, rest) = match text.strip_prefix("nexthdr+") {
                        Some(rest) => (NEXT_HEADER, rest),
                        None => (0, text),
                    };
                    let offset = number(rest)?;
                    u16::try_from(offset)
                        .ok()
                        .filter(|&offset| offset < 4096)
                        .map(|offset| base + offset)
                        .ok_or_else(|| {
                            unreadable(text, "octets from IP's header, such as 20 or nexthdr+0")
                        })
                })?;
            }
            key(value, mask, at, width)
        }
        "ip" => {
            let field = following(words, "ip")?;
            quoted = format!("ip {field}");
            match field {
                "src" | "dst" => {
                    let (value, mask) = words.value(field, address)?;
                    key(value, mask, if field == "src" { 12 } else { 16 }, 32)
                }
                "tos" | "dsfield" | "precedence" => {
                    let (value, mask) = pair(words, field)?;
                    key(value, mask, 1, 8)
                }
                "protocol" => {
                    let (value, mask) = pair(words, field)?;
                    key(value, mask, 9, 8)
                }
                "sport" | "dport" => {
                    let (value, mask) = pair(words, field)?;
                    key(
                        value,
                        mask,
                        if field == "sport" { NEXT_HEADER } else { NEXT_HEADER + 2 },
                        16,
                    )
                }
                "ihl" => {
                    let (value, mask) = pair(words, field)?;
                    key(value, mask & 0x0f, 0, 8)
                }
                "df" => key(0x4000, 0x4000, 6, 16),
                "mf" => key(0x2000, 0x2000, 6, 16),
                "nofrag" => key(0, 0x3fff, 6, 16),
                "firstfrag" => key(0x2000, 0x3fff, 6, 16),
                _ => {
                    return Err(unknown(
                        field,
                        &[
                            "src",
                            "dst",
                            "sport",
                            "dport",
                            "protocol",
                            "tos",
                            "dsfield",
                            "precedence",
                            "ihl",
                            "df",
                            "mf",
                            "nofrag",
                            "firstfrag",
                        ],
                        &["icmp_type", "icmp_code"],
                    ));
                }
            }
        }
        "tcp" | "udp" => {
            let field = following(words, selector)?;
            quoted = format!("{selector} {field}");
            let at = match field {
                "src" => NEXT_HEADER,
                "dst" => NEXT_HEADER + 2,
                _ => return Err(unknown(field, &["src", "dst"], &[])),
            };
            let (value, mask) = pair(words, field)?;
            key(value, mask, at, 16)
        }
        _ => {
            return Err(unknown(
                selector,
                &["ip", "u8", "u16", "u32", "tcp", "udp"],
                &["ip6", "mark", "ether", "icmp"],
            ));
        }
    };
    Ok(Some(comparable_key(key, &quoted)?).filter(|key| key.mask != 0))
}
