//! Matches of flower, which are those of u32; a range of ports becomes several filters.

use super::actions::{Does, behind};
use super::filter::NEXT_HEADER;
use super::types::{Key, Matching};
use super::words::{address, key, number};
use crate::tc::{Words, unknown, unreadable};
use dragstrip_units::{ParseError, Problem};

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
pub(super) fn flower(words: &mut Words<'_>, major: u16) -> Result<(Vec<Matching>, Does), Problem> {
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
