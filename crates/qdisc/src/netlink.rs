//! netlink attributes as plain bytes: how a discipline is set up in the kernel, and what it reports back.
//!
//! This module knows no socket: `crates/agent` sends the messages composed here and hands over the replies it
//! receives.

/// Nanoseconds per tick of the packet scheduler (`PSCHED_SHIFT` in net/pkt_sched.h).
pub const TICK_NS: u64 = 64;

/// Attributes under construction, each padded to four bytes (`struct nlattr`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Attributes behind this fixed part.
    #[must_use]
    pub fn behind(fixed: &[u8]) -> Self {
        let mut writer = Self(fixed.to_vec());
        writer.pad();
        writer
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Adds an attribute of raw bytes.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.0.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.fixed(value)
    }

    /// Adds bytes that are no attribute (the fixed part of a message inside another).
    pub fn fixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// Adds a text, with its final zero.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Adds a 32-bit number.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a 64-bit number.
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that holds what `inside` adds.
    pub fn nest(&mut self, kind: u16, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.0.len();
        self.bytes(kind, &[]);
        inside(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Returns the bytes written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The value of an attribute that holds attributes, such as most disciplines' `TCA_OPTIONS`.
    #[must_use]
    pub fn value(inside: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut writer = Self::default();
        inside(&mut writer);
        writer.0
    }
}

/// Attributes that were received.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The first attribute of this kind.
    #[must_use]
    pub fn get(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.0;
        while rest.len() >= 4 {
            let length = u16::from_ne_bytes([rest[0], rest[1]]) as usize;
            let kind = u16::from_ne_bytes([rest[2], rest[3]]) & 0x3fff; // without the nesting flags
            if length < 4 || length > rest.len() {
                return None;
            }
            if kind == wanted {
                return Some(&rest[4..length]);
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
        None
    }

    /// The attributes inside the first one of this kind.
    #[must_use]
    pub fn inside(&self, wanted: u16) -> Option<Self> {
        self.get(wanted).map(Attributes)
    }

    /// The 32-bit number that is the first attribute of this kind.
    #[must_use]
    pub fn number(&self, wanted: u16) -> Option<u32> {
        word(self.get(wanted)?, 0)
    }
}

/// Attributes with those of one kind left out.
#[must_use]
pub fn without(attributes: &[u8], unwanted: u16) -> Vec<u8> {
    let Some(value) = Attributes(attributes).get(unwanted) else { return attributes.to_vec() };
    // The value lies inside the attributes, 4 bytes behind its own beginning.
    let at = value.as_ptr() as usize - attributes.as_ptr() as usize - 4;
    let end = (at + 4 + value.len()).next_multiple_of(4).min(attributes.len());
    [&attributes[..at], &attributes[end..]].concat()
}

/// A native-endian 32-bit number at an offset, if there is one.
#[must_use]
pub fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..offset + 4)?;
    Some(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

/// A native-endian 64-bit number at an offset, if there is one.
#[must_use]
pub fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    let eight = bytes.get(offset..offset + 8)?;
    eight.try_into().ok().map(u64::from_ne_bytes)
}

/// 32-bit numbers one behind the other, as in a C structure.
#[must_use]
pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// A number where the kernel's structure has 32 bits only.
#[must_use]
pub fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Whole microseconds.
#[must_use]
pub fn micros(ns: u64) -> u32 {
    saturated(ns / 1_000)
}

/// The time that `bytes` take at `rate_bps`, in ticks, as tc(8) computes it (tc_core.c, in doubles).
#[must_use]
pub fn ticks(rate_bps: u64, bytes: u64) -> u32 {
    let seconds = bytes as f64 / (rate_bps as f64 / 8.0);
    (seconds * 1e9 / TICK_NS as f64) as u32
}

/// struct tc_ratespec. A link layer that is named spares the kernel the old table of 256 sizes.
#[must_use]
pub fn ratespec(rate_bps: u64, overhead: i32, mpu: u32, atm: bool) -> Vec<u8> {
    let mut bytes = vec![0, if atm { 2 } else { 1 }];
    bytes.extend_from_slice(&(overhead as i16).to_ne_bytes());
    bytes.extend_from_slice(&(-1_i16).to_ne_bytes());
    bytes.extend_from_slice(&(mpu as u16).to_ne_bytes());
    bytes.extend_from_slice(&saturated(rate_bps / 8).to_ne_bytes());
    bytes
}

/// A probability as tc encodes it: 32-bit fixed point (tc_util.c, get_percent).
#[must_use]
pub fn share(probability: f64) -> u32 {
    (probability * f64::from(u32::MAX) + 0.5) as u32
}

#[cfg(test)]
mod tests {
    use super::{Attributes, Writer, long, without};

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::behind(&[9]);
        writer.u32(7, 1).nest(2, |inside| {
            inside.text(1, "htb").u64(9, u64::MAX - 1);
        });
        let bytes = writer.into_bytes();
        let attributes = Attributes(&bytes[4..]);
        assert_eq!(attributes.number(7), Some(1));
        let inside = attributes.inside(2).unwrap();
        assert_eq!(inside.get(1), Some(&b"htb\0"[..]));
        assert_eq!(inside.get(9).and_then(|value| long(value, 0)), Some(u64::MAX - 1));
        assert!(inside.get(3).is_none());
    }

    #[test]
    fn one_attribute_is_left_out() {
        let of = |kinds: &[u16]| {
            Writer::value(|inside| {
                for &kind in kinds {
                    inside.text(kind, "odd");
                }
            })
        };
        assert_eq!(without(&of(&[1, 2, 3]), 2), of(&[1, 3]));
        assert_eq!(without(&of(&[1, 3]), 2), of(&[1, 3]));
        assert_eq!(without(&of(&[1, 3]), 3), of(&[1]));
        assert_eq!(without(&of(&[1]), 1), of(&[]));
    }

    #[test]
    fn damaged_attributes_are_not_read() {
        assert!(Attributes(&[200, 0, 1, 0]).get(1).is_none());
        assert!(Attributes(&[0, 0, 1, 0]).get(1).is_none());
        assert!(Attributes(&[1]).get(1).is_none());
    }
}
