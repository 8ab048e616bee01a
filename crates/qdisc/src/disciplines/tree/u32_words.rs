//! A filter of u32 in tc's words, and its hash tables (f_u32.c of iproute2, `u32_change`).

use super::actions::{Does, behind};
use super::filter::NEXT_HEADER;
use super::types::Key;
use super::words::{address, following, key, number};
use crate::tc::{Words, unknown, unreadable, wrong};
use dragstrip_units::{ParseError, Problem};

/// Most buckets of a table (`u32_change`).
const DIVISOR_MAX: u32 = 256;
/// Number of a filter that no handle numbers, the first of them (`gen_new_kid`).
const FIRST_NODE: u16 = 0x800;
/// The table of the filters that are not put into another; that of a further priority is `801` and on.
const ROOT_TABLE: u16 = 0x800;

/// A filter or a table.
#[derive(Clone, Debug)]
pub(super) enum U32 {
    Node(Node),
    /// Nothing: the command only makes the table of the priority.
    Nothing,
    /// A hash table with so many buckets.
    Table {
        number: u16,
        divisor: u32,
    },
}

/// A filter, which may stand in a bucket of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The table and its bucket; none: the table of the priority.
    pub(super) place: Option<(u16, u16)>,
    /// Place within the bucket: the lowest is asked first, and of the same the first one that was added.
    pub(super) order: u16,
    pub(super) keys: Vec<NodeKey>,
    /// Value and mask of the firewall's mark.
    pub(super) mark: Option<(u32, u32)>,
    /// The table that is asked if the keys hold.
    pub(super) link: Option<u16>,
    /// The word that chooses the bucket there: mask and position.
    pub(super) hash: Option<(u32, u16)>,
    pub(super) offset: Option<Offset>,
}

/// A word that is compared; its position is behind IP's header, or from the beginning of it.
#[derive(Clone, Debug)]
pub(super) struct NodeKey {
    pub(super) key: Key,
    pub(super) behind_header: bool,
    pub(super) quoted: String,
}

/// Position of the next header in the linked table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// Two octets that hold it: position, mask, and the shift to the right.
    pub(super) variable: Option<(u16, u16, u8)>,
    pub(super) plus: u16,
    /// Positions in the linked table begin there.
    pub(super) eats: bool,
}

/// `TABLE:[BUCKET:[NODE]]`, or all of it in one number behind 0x, hexadecimal (`get_u32_handle`).
fn place(text: &str) -> Result<(u16, u16, u16), ParseError> {
    if let Some(number) =
        text.strip_prefix("0x").and_then(|text| u32::from_str_radix(text, 16).ok())
    {
        let part = |shift: u32, bits: u32| (number >> shift & bits) as u16;
        return Ok((part(20, 0xfff), part(12, 0xff), part(0, 0xfff)));
    }
    let expected =
        "a table and its bucket, hexadecimal, such as 2:7f: (tables up to fff, buckets up to ff)";
    let mut parts = [0_u16; 3];
    let words: Vec<&str> = text.split(':').collect();
    if words.len() < 2 || words.len() > 3 {
        return Err(unreadable(text, expected));
    }
    for ((part, word), most) in parts.iter_mut().zip(words).zip([0xfff, 0xff, 0xfff]) {
        if !word.is_empty() {
            *part = u16::from_str_radix(word.trim_start_matches("0x"), 16)
                .ok()
                .filter(|&number| number <= most)
                .ok_or_else(|| unreadable(text, expected))?;
        }
    }
    Ok((parts[0], parts[1], parts[2]))
}

fn octets(text: &str) -> Result<u16, ParseError> {
    let expected = "a position in octets below 4096";
    number(text)?.try_into().ok().filter(|&at| at < 4096).ok_or_else(|| unreadable(text, expected))
}

/// A mask, hexadecimal with or without 0x (`get_u16`, `get_u32` with base 16).
fn hexadecimal(text: &str) -> Result<u32, ParseError> {
    u32::from_str_radix(text.trim_start_matches("0x"), 16)
        .map_err(|_| unreadable(text, "a mask, hexadecimal"))
}

/// `hashkey mask MASK at N`.
fn hashkey(words: &mut Words<'_>) -> Result<(u32, u16), Problem> {
    let (mut mask, mut at) = (0, 0);
    while let Some(word @ ("mask" | "at")) = words.peek() {
        let _ = words.next();
        match word {
            "mask" => mask = words.value(word, hexadecimal)?,
            _ => at = words.value(word, octets)?,
        }
    }
    if mask == 0 || at % 4 != 0 {
        let expected = "a mask and a multiple of four, such as \"hashkey mask 0x000000ff at 12\"";
        return Err(wrong(format!("\"hashkey mask {mask:#x} at {at}\""), expected));
    }
    Ok((mask, at))
}

/// `offset [plus N] [at N] [mask MASK] [shift N] [eat]`.
fn offset(words: &mut Words<'_>) -> Result<Offset, Problem> {
    let (mut at, mut mask, mut shift, mut plus, mut eats) = (None, None, 0_u8, 0, false);
    while let Some(word @ ("plus" | "at" | "mask" | "shift" | "eat")) = words.peek() {
        let _ = words.next();
        match word {
            "plus" => plus = words.value(word, octets)?,
            "at" => at = Some(words.value(word, octets)?),
            "mask" => {
                let value = words.value(word, hexadecimal)?;
                mask = Some(u16::try_from(value).map_err(|_| {
                    wrong(format!("\"mask {value:#x}\""), "a mask of 16 bits, hexadecimal")
                })?);
            }
            "shift" => {
                shift = words.whole(word)?;
                if shift > 15 {
                    return Err(wrong(format!("\"shift {shift}\""), "from 0 to 15"));
                }
            }
            _ => eats = true,
        }
    }
    let variable = match (at, mask) {
        (None, None) => None,
        (at, mask) => Some((at.unwrap_or(0), mask.unwrap_or(0), shift)),
    };
    Ok(Offset { variable, plus, eats })
}

/// `u32 match ... [match ...]`, `u32 divisor N`, `u32 ht T: ... link T: hashkey ... offset ...`.
pub(super) fn u32_words(
    words: &mut Words<'_>,
    handle: Option<&str>,
    major: u16,
) -> Result<(U32, Does), Problem> {
    let (mut node, mut does, mut any) = (Node::default(), Does::default(), false);
    let of_handle = handle
        .map(|text| {
            place(text).map_err(|error| wrong(format!("\"handle {text}\""), error.expected))
        })
        .transpose()?;
    node.order = of_handle.map_or(0, |(.., number)| number);
    if words.peek().is_none() {
        return Ok((U32::Nothing, does));
    }
    while let Some(word) = words.next() {
        match word {
            "match" => {
                any = true;
                matched(words, &mut node)?;
            }
            "ht" => {
                let (table, bucket, _) = words.value(word, place)?;
                // The table that all filters are in.
                node.place = (table != ROOT_TABLE).then_some((table, bucket));
            }
            "sample" => {
                let bucket = sample(words)?;
                node.place = node.place.map(|(table, _)| (table, bucket));
            }
            "order" => node.order = words.whole(word)?,
            "link" => node.link = Some(words.value(word, place)?.0),
            "hashkey" => node.hash = Some(hashkey(words)?),
            "offset" => node.offset = Some(offset(words)?),
            "divisor" => return Ok((table(words, of_handle)?, does)),
            _ => {
                if !behind(word, words, major, &mut does)? {
                    return Err(unknown(
                        word,
                        &[
                            "match", "ht", "sample", "link", "hashkey", "offset", "divisor",
                            "classid", "police", "action",
                        ],
                        &["indev"],
                    ));
                }
            }
        }
    }
    if !any && node.link.is_none() {
        return Err(wrong(
            "\"u32\" without \"match\"",
            "one, such as \"match ip dsfield 0xb8 0xfc\"",
        ));
    }
    if node.link.is_none() && (node.hash.is_some() || node.offset.is_some()) {
        let quoted = if node.hash.is_some() { "hashkey" } else { "offset" };
        return Err(wrong(format!("{quoted:?} without \"link\""), "the table that it leads to"));
    }
    if node.order == 0 {
        node.order = FIRST_NODE;
    }
    Ok((U32::Node(node), does))
}

/// `sample MATCH [divisor N]`: the bucket that a packet of this word is in.
fn sample(words: &mut Words<'_>) -> Result<u16, Problem> {
    let mut sampled = Node::default();
    matched(words, &mut sampled)?;
    let divisor = if words.peek() == Some("divisor") {
        let _ = words.next();
        words.value("divisor", number)?.max(1)
    } else {
        DIVISOR_MAX
    };
    let [NodeKey { key, .. }] = sampled.keys.as_slice() else {
        return Err(wrong("\"sample\"", "one word of the packet, such as: sample ip src 10.0.0.7"));
    };
    let octets = (key.value & key.mask).to_be_bytes();
    Ok((octets.iter().fold(0, |all, octet| all ^ u32::from(*octet)) % divisor) as u16)
}

/// `handle T: u32 divisor N`.
fn table(words: &mut Words<'_>, handle: Option<(u16, u16, u16)>) -> Result<U32, Problem> {
    let divisor = words.value("divisor", number)?;
    if !divisor.is_power_of_two() || divisor > DIVISOR_MAX {
        let expected = format!("a power of two up to {DIVISOR_MAX}");
        return Err(wrong(format!("\"divisor {divisor}\""), expected));
    }
    if let Some(word) = words.next() {
        return Err(wrong(
            format!("{word:?} behind \"divisor\""),
            "nothing more: it makes a table",
        ));
    }
    match handle {
        Some((number, 0, 0)) if number > 0 && number < ROOT_TABLE => {
            Ok(U32::Table { number, divisor })
        }
        Some(_) | None => Err(wrong(
            "\"divisor\" without a table's handle",
            "one from 1: to 7ff:, such as \"handle 2: u32 divisor 256\"",
        )),
    }
}

/// The words behind `match`.
fn matched(words: &mut Words<'_>, node: &mut Node) -> Result<(), Problem> {
    let selector = following(words, "match")?;
    let mut quoted = selector.to_owned();
    let mut behind_header = false;
    let pair = |words: &mut Words<'_>, of: &str| {
        let value = words.value(of, number)?;
        let mask = words.value(of, hexadecimal)?;
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
                    let rest = text.strip_prefix("nexthdr+");
                    behind_header = rest.is_some();
                    octets(rest.unwrap_or(text)).map_err(|_| {
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
                "src" => 0,
                "dst" => 2,
                _ => return Err(unknown(field, &["src", "dst"], &[])),
            };
            behind_header = true;
            let (value, mask) = pair(words, field)?;
            key(value, mask, at, 16)
        }
        "mark" => {
            let value = words.value(selector, number)?;
            let mask = words.value(selector, hexadecimal)?;
            if value & !mask != 0 {
                let quoted = format!("\"match mark {value:#x} {mask:#x}\"");
                return Err(wrong(quoted, "a mark within its mask: no packet has another"));
            }
            node.mark = Some((value, mask));
            return Ok(());
        }
        _ => {
            return Err(unknown(
                selector,
                &["ip", "u8", "u16", "u32", "tcp", "udp", "mark"],
                &["ip6", "ether", "icmp"],
            ));
        }
    };
    node.keys.push(NodeKey { key, behind_header, quoted });
    Ok(())
}
