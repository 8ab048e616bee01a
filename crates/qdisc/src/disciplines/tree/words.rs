//! Values that commands of a tree have in common: numbers of classes, numbers, addresses, keys of u32.

use super::types::Key;
use crate::tc::{Words, unreadable, wrong};
use dragstrip_units::{ParseError, Problem};

/// A handle or class: `1:` has the minor number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) major: u16,
    pub(super) minor: u16,
}

/// `1:`, `1:10`, `:10`; both numbers are hexadecimal.
pub(super) fn id(text: &str) -> Result<Id, ParseError> {
    let number = |text: &str| match text {
        "" => Some(0),
        text => u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok(),
    };
    text.split_once(':')
        .and_then(|(major, minor)| Some(Id { major: number(major)?, minor: number(minor)? }))
        .ok_or_else(|| {
            unreadable(text, "a handle such as 1: or a class such as 1:10, hexadecimal up to ffff")
        })
}

/// The word behind `word`.
pub(super) fn following<'a>(words: &mut Words<'a>, word: &str) -> Result<&'a str, Problem> {
    words
        .next()
        .ok_or_else(|| wrong(format!("{word:?} at the end"), format!("a value after {word:?}")))
}

/// A number as tc reads it: decimal, hexadecimal behind 0x, octal behind 0.
pub(super) fn number(text: &str) -> Result<u32, ParseError> {
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

fn prefix_mask(bits: u32) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits) }
}

/// `ADDRESS[/BITS]`.
pub(super) fn address(text: &str) -> Result<(u32, u32), ParseError> {
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
pub(super) fn key(value: u32, mask: u32, at: u16, width: u32) -> Key {
    let (offset, within) = (at & !3, u32::from(at & 3));
    let shift = 32_u32.saturating_sub(within * 8 + width);
    let ones = if width == 32 { u32::MAX } else { (1 << width) - 1 };
    let mask = (mask & ones) << shift;
    Key { offset, value: (value & ones) << shift & mask, mask }
}
