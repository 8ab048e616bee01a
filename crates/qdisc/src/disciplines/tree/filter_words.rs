//! A filter in tc's words, read (tc/f_u32.c, f_fw.c, f_flow.c, f_flower.c, f_basic.c, f_matchall.c of iproute2).
//!
//! All packets here are IPv4: a filter of another protocol takes none and is left out.

use super::actions::{Does, behind, rest};
use super::condition_words::basic;
use super::filter_content::{Content, FilterWords};
use super::flower_words::flower;
use super::types::{FlowKey, Matching};
use super::u32_tables;
use super::u32_words::{U32, u32_words};
use super::words::{Id, following, id, number};
use crate::tc::{Words, unknown, unreadable, wrong};
use dragstrip_units::Problem;

/// Priority that the kernel gives to the first filter without one (`tcf_auto_prio`); each further one gets the least so far,
/// less one.
const PRIORITY: u16 = 0xc000;

/// The filters that a command adds to those `before` it.
pub(super) fn read(
    command: &[&str],
    root: Option<u16>,
    before: &[FilterWords],
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
    let plain = |(matchings, does): (Vec<Matching>, Does)| {
        (matchings.into_iter().map(Content::Plain).collect::<Vec<_>>(), does)
    };
    let (contents, does) = match kind {
        "u32" => {
            let (u32, does) = u32_words(&mut words, handle, parent.major)?;
            (vec![Content::U32(u32)], does)
        }
        "fw" => plain(fw(&mut words, handle, parent.major)?),
        "flower" => plain(flower(&mut words, parent.major)?),
        "basic" => plain(basic(&mut words, parent.major)?),
        "matchall" => plain((vec![Matching::Everything {}], rest(&mut words, parent.major, &[])?)),
        "flow" => plain(flow(&mut words, parent)?),
        _ => {
            return Err(unknown(
                kind,
                &["u32", "fw", "flower", "flow", "basic", "matchall"],
                &["bpf", "route", "rsvp", "tcindex", "cgroup"],
            ));
        }
    };
    if !["ip", "all", "0x0800", "0x800", "ipv4"].contains(&protocol) {
        return Ok(Vec::new());
    }
    let needs_no_class = |content: &Content| match content {
        Content::Plain(Matching::Flow { .. } | Matching::Fw { mark: None, .. })
        | Content::U32(U32::Table { .. } | U32::Nothing) => true,
        Content::U32(U32::Node(node)) => node.link.is_some(),
        Content::Plain(_) => false,
    };
    if does.class.is_none() && !does.drop && !contents.iter().any(needs_no_class) {
        return Err(wrong("no class", "\"classid\" with one, such as \"classid 1:10\""));
    }
    let same = before.iter().filter(|other| other.parent == parent);
    let least = same.map(|other| other.priority).min();
    let automatic = || least.map_or(PRIORITY, |least| least.saturating_sub(1).max(1));
    let priority = priority.unwrap_or_else(automatic);
    let Does { class, drop, police } = does;
    let filter = |content| FilterWords { parent, priority, content, class, drop, police };
    let filters: Vec<FilterWords> = contents.into_iter().map(filter).collect();
    for filter in &filters {
        if let Content::U32(U32::Node(node)) = &filter.content {
            u32_tables::expect_table(before, filter, node)?;
        }
    }
    // A key of what is not modelled is refused here, where its command is known, unless a link places it elsewhere.
    if let [filter] = filters.as_slice()
        && let Content::U32(U32::Node(node)) = &filter.content
        && node.place.is_none()
    {
        let _ = u32_tables::resolved(filter, node, before)?;
    }
    Ok(filters)
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
