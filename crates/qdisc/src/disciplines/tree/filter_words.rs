//! A filter in tc's words, read (tc/f_u32.c, f_fw.c, f_flow.c, f_flower.c, f_matchall.c, m_police.c of iproute2).
//!
//! flower's matches are those of u32: a range of ports becomes several filters. What flows here is IPv4, so that a filter of
//! another protocol takes no packet and is left out.

use super::filter::{NEXT_HEADER, comparable};
use super::parse::{Id, id};
use super::spec::{ClassId, Exceeds, FilterSpec, FlowKey, Key, Matching, PolicerSpec};
use crate::disciplines::QdiscSpec;
use crate::tc::{Words, unknown, unreadable, wrong};
use dragstrip_units::{ParseError, Problem};

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

/// Effects of a filter.
#[derive(Default)]
struct Does {
    class: Option<ClassId>,
    drop: bool,
    police: Option<PolicerSpec>,
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

/// The word behind `word`.
fn following<'a>(words: &mut Words<'a>, word: &str) -> Result<&'a str, Problem> {
    words
        .next()
        .ok_or_else(|| wrong(format!("{word:?} at the end"), format!("a value after {word:?}")))
}

/// A number as tc reads it: decimal, hexadecimal behind 0x, octal behind 0.
fn number(text: &str) -> Result<u32, ParseError> {
    let read = if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        u32::from_str_radix(digits, 16)
    } else if text.len() > 1
        && let Some(digits) = text.strip_prefix('0')
    {
        u32::from_str_radix(digits, 8)
    } else {
        text.parse()
    };
    read.map_err(|_| unreadable(text, "a number of 32 bits, such as 0xff"))
}

/// Words behind the matches: the class, actions, a policer.
fn rest(words: &mut Words<'_>, major: u16, accepted: &[&str]) -> Result<Does, Problem> {
    let mut does = Does::default();
    while let Some(word) = words.next() {
        if !behind(word, words, major, &mut does)? {
            let mut list = vec!["classid", "police", "action"];
            list.extend(accepted);
            return Err(unknown(word, &list, &[]));
        }
    }
    Ok(does)
}

/// Takes a word that may stand behind any match; false: it is none.
fn behind(word: &str, words: &mut Words<'_>, major: u16, does: &mut Does) -> Result<bool, Problem> {
    match word {
        "classid" | "flowid" => {
            let Id { major: given, minor } = words.value(word, id)?;
            does.class = Some(ClassId { major: given, minor });
        }
        "police" => does.police = Some(police(words)?),
        "action" => match following(words, word)? {
            "police" => does.police = Some(police(words)?),
            "drop" | "shot" => does.drop = true,
            "ok" | "pass" => {}
            "skbedit" => {
                let field = following(words, "skbedit")?;
                if field != "priority" {
                    return Err(wrong(
                        format!("\"skbedit {field}\""),
                        "skbedit priority: the simulator does not model another",
                    ));
                }
                let Id { major: given, minor } = words.value(field, id)?;
                if given != major {
                    return Err(wrong(
                        format!("\"priority {given:x}:{minor:x}\""),
                        format!("a class of {major:x}:"),
                    ));
                }
                does.class = Some(ClassId { major: given, minor });
            }
            other => {
                return Err(unknown(
                    other,
                    &["police", "drop", "ok", "pass", "skbedit"],
                    &[
                        "mirred", "pedit", "connmark", "ctinfo", "gact", "xt", "csum", "continue",
                        "pipe",
                    ],
                ));
            }
        },
        _ => return Ok(false),
    }
    Ok(true)
}

/// The words of `police`, up to those that are the filter's again.
fn police(words: &mut Words<'_>) -> Result<PolicerSpec, Problem> {
    let (mut kept, mut exceeds) = (vec!["police".to_owned()], Exceeds::Ok);
    let verdict = |text: &str| match text {
        "drop" | "shot" => Ok(Exceeds::Drop),
        "continue" | "unspec" => Ok(Exceeds::Continue),
        "ok" | "pass" => Ok(Exceeds::Ok),
        _ => Err(unreadable(text, "drop, continue or ok: the simulator does not model another")),
    };
    while let Some(word) = words.peek() {
        if ["classid", "flowid", "action", "match"].contains(&word) {
            break;
        }
        let _ = words.next();
        match word {
            "drop" | "continue" | "ok" | "pass" => {
                exceeds = verdict(word).unwrap_or(Exceeds::Drop);
            }
            // What conforms goes to the class of the filter.
            "conform-exceed" => {
                exceeds = words.value(word, |text| {
                    let (exceed, conform) = text.split_once('/').unwrap_or((text, "ok"));
                    match conform {
                        "ok" | "pass" => verdict(exceed),
                        _ => Err(unreadable(text, "drop/ok: what conforms passes")),
                    }
                })?;
            }
            "leaf" => {
                return Err(unknown(word, &["rate", "burst", "mtu", "peakrate", "drop"], &[]));
            }
            _ => kept.push(word.to_owned()),
        }
    }
    match QdiscSpec::parse(&kept.join(" "))? {
        QdiscSpec::Police(spec) => Ok(PolicerSpec {
            rate_bps: spec.rate_bps,
            burst_bytes: spec.burst_bytes,
            mtu_bytes: spec.mtu_bytes,
            peakrate_bps: spec.peakrate_bps,
            exceeds,
        }),
        other => Err(wrong(other.kind(), "police")),
    }
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

fn prefix_mask(bits: u32) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits) }
}

/// `ADDRESS[/BITS]`.
fn address(text: &str) -> Result<(u32, u32), ParseError> {
    const EXPECTED: &str = "an address of IPv4, such as 10.0.0.1 or 10.0.0.0/24";
    if ["any", "all", "default"].contains(&text) {
        return Ok((0, 0));
    }
    let (host, bits) = text.split_once('/').unwrap_or((text, "32"));
    let bits = bits.parse::<u32>().ok().filter(|&bits| bits <= 32);
    // tc fills an address of fewer than four numbers with zeros: 10/8.
    let mut octets = [0_u8; 4];
    let mut parts = host.split('.');
    for octet in &mut octets {
        let Some(part) = parts.next() else { break };
        *octet = part.parse().map_err(|_| unreadable(text, EXPECTED))?;
    }
    match (bits, parts.next()) {
        (Some(bits), None) => {
            let mask = prefix_mask(bits);
            Ok((u32::from_be_bytes(octets) & mask, mask))
        }
        _ => Err(unreadable(text, EXPECTED)),
    }
}

/// A value of `width` bits at a position in octets, as a key of whole words.
fn key(value: u32, mask: u32, at: u16, width: u32) -> Key {
    let (offset, within) = (at & !3, u32::from(at & 3));
    let shift = 32_u32.saturating_sub(within * 8 + width);
    let ones = if width == 32 { u32::MAX } else { (1 << width) - 1 };
    let mask = (mask & ones) << shift;
    Key { offset, value: (value & ones) << shift & mask, mask }
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

/// Values and masks that together are the ports of a range, as few as there can be.
fn port_range(first: u32, last: u32) -> Vec<(u32, u32)> {
    let (mut at, mut parts) = (first, Vec::new());
    while at <= last {
        let mut size = if at == 0 { 1 << 16 } else { 1 << at.trailing_zeros() };
        while size > last - at + 1 {
            size >>= 1;
        }
        parts.push((at, 0xffff & !(size - 1)));
        at += size;
    }
    parts
}

/// `flower ip_proto tcp dst_port 80 ip_tos 0xb8/0xfc ...`.
fn flower(words: &mut Words<'_>, major: u16) -> Result<(Vec<Matching>, Does), Problem> {
    let mut alternatives: Vec<Vec<Key>> = vec![Vec::new()];
    let mut does = Does::default();
    while let Some(word) = words.next() {
        let masked = |width: u32| {
            move |text: &str| {
                let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
                Ok::<_, ParseError>((number(value)?, number(mask)? & ((1 << width) - 1)))
            }
        };
        match word {
            "ip_proto" => {
                let protocol = words.value(word, |text| match text {
                    "tcp" => Ok(6),
                    "udp" => Ok(17),
                    "icmp" => Ok(1),
                    _ => number(text),
                })?;
                with(&mut alternatives, &[key(protocol, 0xff, 9, 8)]);
            }
            "src_ip" | "dst_ip" => {
                let (value, mask) = words.value(word, address)?;
                with(
                    &mut alternatives,
                    &[key(value, mask, if word == "src_ip" { 12 } else { 16 }, 32)],
                );
            }
            "ip_tos" => {
                let (value, mask) = words.value(word, masked(8))?;
                with(&mut alternatives, &[key(value, mask, 1, 8)]);
            }
            "tcp_flags" => {
                let (value, mask) = words.value(word, masked(12))?;
                with(&mut alternatives, &[key(value, mask, NEXT_HEADER + 12, 16)]);
            }
            "src_port" | "dst_port" => {
                let ports = words.value(word, |text| {
                    let (first, last) = text.split_once('-').unwrap_or((text, text));
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last || last > 0xffff {
                        return Err(unreadable(text, "a port, or a range such as 1000-2000"));
                    }
                    Ok(port_range(first, last))
                })?;
                let at = if word == "src_port" { NEXT_HEADER } else { NEXT_HEADER + 2 };
                let keys: Vec<Key> =
                    ports.into_iter().map(|(value, mask)| key(value, mask, at, 16)).collect();
                with(&mut alternatives, &keys);
            }
            _ => {
                if !behind(word, words, major, &mut does)? {
                    return Err(unknown(
                        word,
                        &[
                            "ip_proto",
                            "src_ip",
                            "dst_ip",
                            "src_port",
                            "dst_port",
                            "ip_tos",
                            "tcp_flags",
                            "classid",
                            "action",
                        ],
                        &["ip_ttl", "src_mac", "dst_mac", "vlan_id", "skip_hw", "skip_sw", "indev"],
                    ));
                }
            }
        }
    }
    let matching = |mut keys: Vec<Key>| {
        keys.retain(|key| key.mask != 0);
        if keys.is_empty() { Matching::Everything {} } else { Matching::U32 { keys } }
    };
    Ok((alternatives.into_iter().map(matching).collect(), does))
}

/// Each alternative once with each of the keys.
fn with(alternatives: &mut Vec<Vec<Key>>, keys: &[Key]) {
    let each = alternatives.iter().flat_map(|before| {
        keys.iter().map(move |&key| before.iter().copied().chain([key]).collect::<Vec<_>>())
    });
    *alternatives = each.collect();
}
