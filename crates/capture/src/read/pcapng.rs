//! pcapng files (draft-ietf-opsawg-pcapng): sections in either byte order, several interfaces, blocks passed over by their length.

use super::bytes::Order;
use super::{Counts, RECORD_MAX, Record, Step, headers};
use crate::format::{QUEUE_DROP, option};

/// Type and both lengths.
const FRAME: usize = 12;
/// Bytes of an option before its value: code and length.
const OPTION_HEAD: usize = 4;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// More than any machine has; each costs a few bytes.
const INTERFACES_MAX: usize = 65_536;

/// An interface of the present section.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    snaplen: u32,
    resolution: Resolution,
    offset_s: i64,
}

/// The unit of stamps.
#[derive(Clone, Copy)]
enum Resolution {
    /// Nanoseconds per unit.
    Times(u64),
    /// Units per nanosecond.
    Divided(u64),
    /// Units are seconds divided by two to this power.
    Binary(u32),
}

impl Resolution {
    fn of(byte: u8) -> Result<Self, String> {
        let power = u32::from(byte & 0x7f);
        let resolution = match (byte & 0x80 != 0, power) {
            (false, 0..=9) => Some(Self::Times(10_u64.pow(9 - power))),
            (false, 10..=28) => Some(Self::Divided(10_u64.pow(power - 9))),
            (true, 0..=63) => Some(Self::Binary(power)),
            _ => None,
        };
        resolution.ok_or_else(|| {
            format!("an interface's resolution of stamps is {byte:#04x}, which no clock has")
        })
    }

    fn to_ns(self, units: u64) -> i64 {
        let ns = match self {
            Self::Times(factor) => u128::from(units) * u128::from(factor),
            Self::Divided(factor) => u128::from(units / factor),
            Self::Binary(power) => (u128::from(units) * 1_000_000_000) >> power,
        };
        i64::try_from(ns).unwrap_or(i64::MAX)
    }
}

/// The present section.
pub struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// The stamp of the last packet: simple blocks have no stamp.
    last_ns: i64,
}

impl Default for Pcapng {
    fn default() -> Self {
        Self { order: Order::Little, interfaces: Vec::new(), last_ns: 0 }
    }
}

impl Pcapng {
    pub fn step<'a>(&mut self, rest: &'a [u8], counts: &mut Counts) -> Result<Step<'a>, String> {
        if rest.len() < FRAME {
            return Ok(Step::Starved);
        }
        if rest[..4] == SECTION.to_be_bytes() {
            self.order = order_of(&rest[8..12])?;
        }
        let kind = self.order.u32(rest, 0);
        let length = self.order.u32(rest, 4);
        if length < FRAME as u32 || !length.is_multiple_of(4) {
            return Err(format!(
                "a block claims a length of {length}, expected a multiple of 4 from {FRAME}"
            ));
        }
        let ours = matches!(kind, SECTION | INTERFACE | OLD_PACKET | SIMPLE | STATISTICS | PACKET);
        if !ours {
            counts.other_blocks += 1;
            return Ok(Step::Passed(0, u64::from(length)));
        }
        if length > RECORD_MAX {
            return Err(format!(
                "a block claims a length of {length}, expected at most {RECORD_MAX}"
            ));
        }
        let length = length as usize;
        let Some(block) = rest.get(..length) else { return Ok(Step::Starved) };
        let again = self.order.u32(block, length - 4) as usize;
        if again != length {
            return Err(format!(
                "a block's length is {length} at its beginning and {again} at its end"
            ));
        }
        let body = &block[8..length - 4];
        let record = match kind {
            SECTION => self.section(body).map(|()| None),
            INTERFACE => self.interface(body).map(|()| None),
            STATISTICS => {
                self.statistics(body, counts);
                Ok(None)
            }
            SIMPLE => self.simple(body, counts).map(Some),
            _ => self.packet(body, kind == OLD_PACKET, counts).map(Some),
        }?;
        Ok(match record {
            None => Step::Passed(length, 0),
            Some(record) => {
                self.last_ns = record.time_ns;
                Step::Found(length, record)
            }
        })
    }

    fn section(&mut self, body: &[u8]) -> Result<(), String> {
        if body.len() < 16 {
            return Err("a section's header is too short".to_owned());
        }
        let version = (self.order.u16(body, 4), self.order.u16(body, 6));
        if version.0 != 1 {
            return Err(format!(
                "says it is of pcapng's version {}.{}, expected 1.0",
                version.0, version.1
            ));
        }
        self.interfaces.clear();
        Ok(())
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), String> {
        if body.len() < 8 {
            return Err("an interface's description is too short".to_owned());
        }
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(format!("a section has more than {INTERFACES_MAX} interfaces"));
        }
        let mut interface = Interface {
            link: u32::from(self.order.u16(body, 0)),
            snaplen: self.order.u32(body, 4),
            resolution: Resolution::Times(1_000),
            offset_s: 0,
        };
        for (code, value) in options(self.order, &body[8..]) {
            match (code, value.len()) {
                (9, 1..) => interface.resolution = Resolution::of(value[0])?,
                (14, 8) => {
                    let (first, second) = (self.order.u32(value, 0), self.order.u32(value, 4));
                    let (high, low) = match self.order {
                        Order::Big => (first, second),
                        Order::Little => (second, first),
                    };
                    interface.offset_s = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                }
                _ => {}
            }
        }
        if self.interfaces.is_empty() {
            headers::expect_known(interface.link)?;
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Adds the losses that the capturing program reports: `isb_ifdrop`, `isb_osdrop`.
    fn statistics(&self, body: &[u8], counts: &mut Counts) {
        for (code, value) in options(self.order, body.get(12..).unwrap_or_default()) {
            if matches!(code, 5 | 7) && value.len() == 8 {
                let (first, second) = (self.order.u32(value, 0), self.order.u32(value, 4));
                let low = if self.order == Order::Big { second } else { first };
                counts.said_dropped += u64::from(low);
            }
        }
    }

    fn simple<'a>(&self, body: &'a [u8], counts: &mut Counts) -> Result<Record<'a>, String> {
        let interface = self.interface_of(0)?;
        if body.len() < 4 {
            return Err("a simple packet block is too short".to_owned());
        }
        counts.unstamped += 1;
        let original = self.order.u32(body, 0);
        let most = if interface.snaplen == 0 { original } else { original.min(interface.snaplen) };
        let data = &body[4..];
        let data = &data[..data.len().min(most as usize)];
        Ok(Record { time_ns: self.last_ns, link: interface.link, original, data })
    }

    /// An enhanced packet block or its predecessor, whose interface is shorter.
    fn packet<'a>(
        &self,
        body: &'a [u8],
        old: bool,
        counts: &mut Counts,
    ) -> Result<Record<'a>, String> {
        if body.len() < 20 {
            return Err("a packet block is too short".to_owned());
        }
        let number = if old { u32::from(self.order.u16(body, 0)) } else { self.order.u32(body, 0) };
        let interface = self.interface_of(number)?;
        let word = |at| self.order.u32(body, at);
        let (captured, original) = (word(12), word(16));
        let Some(data) = body[20..].get(..captured as usize) else {
            let room = body.len() - 20;
            return Err(format!(
                "a packet claims {captured} captured bytes in a block with room for {room}"
            ));
        };
        let behind = body.get(20 + data.len().next_multiple_of(4)..).unwrap_or_default();
        // Most packets have no options, or too few bytes of them for the comment.
        if behind.len() >= OPTION_HEAD + QUEUE_DROP.len() {
            let is_queue_drop = options(self.order, behind).any(|(code, value)| {
                code == option::COMMENT && value.starts_with(QUEUE_DROP.as_bytes())
            });
            counts.queue_drops += u64::from(is_queue_drop);
        }
        let units = u64::from(word(4)) << 32 | u64::from(word(8));
        let offset_ns = interface.offset_s.saturating_mul(1_000_000_000);
        let time_ns = interface
            .resolution
            .to_ns(units)
            .saturating_add(offset_ns)
            .clamp(0, super::STAMP_MAX_NS);
        Ok(Record { time_ns, link: interface.link, original: original.max(captured), data })
    }

    fn interface_of(&self, number: u32) -> Result<Interface, String> {
        let interface_entry = self.interfaces.get(number as usize);
        interface_entry.copied().ok_or_else(|| {
            format!(
                "a packet is of interface {number}, and the section has {}",
                self.interfaces.len()
            )
        })
    }
}

fn order_of(magic: &[u8]) -> Result<Order, String> {
    match (Order::Little.u32(magic, 0), Order::Big.u32(magic, 0)) {
        (ORDER_MAGIC, _) => Ok(Order::Little),
        (_, ORDER_MAGIC) => Ok(Order::Big),
        (_, other) => {
            Err(format!("a section says its byte order by {other:08x}, expected 1a2b3c4d"))
        }
    }
}

/// Code and value of each option, as far as they fit.
fn options(order: Order, bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.len() < 4 {
            return None;
        }
        let (code, length) = (order.u16(rest, 0), usize::from(order.u16(rest, 2)));
        let value = rest.get(4..4 + length)?;
        if code == 0 {
            return None;
        }
        rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

#[cfg(test)]
mod tests {
    use crate::read::Reader;

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (body.len() + 12) as u32;
        let parts = [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &length.to_le_bytes()];
        parts.concat()
    }

    fn option(code: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// A packet of five bytes with these options.
    fn packet(data: [u8; 5], options: &[u8]) -> Vec<u8> {
        let words = [0_u32, 0, 0, 5, 5];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(data);
        body.resize(28, 0);
        body.extend(options);
        block(6, &body)
    }

    /// Two of five packets were dropped by the queue; the others have no comment, another one, or the text elsewhere.
    fn file() -> Vec<u8> {
        let section = [0x1a2b_3c4d_u32, 1, u32::MAX, u32::MAX];
        let section: Vec<u8> = section.iter().flat_map(|word| word.to_le_bytes()).collect();
        let drop = option(1, b"dropped by the queue: no room");
        let flags = option(2, &[1, 0, 0, 0]);
        let quote = option(1, b"not dropped by the queue: no room");
        let blocks = [
            block(0x0a0d_0d0a, &section),
            block(1, &[1, 0, 0, 0, 0, 0, 4, 0]),
            packet([0; 5], &[]),
            packet([1; 5], &drop),
            packet([2; 5], &quote),
            packet([3; 5], &option(4, b"dropped by the queue: no room")),
            packet([4; 5], &[flags, drop].concat()),
        ];
        blocks.concat()
    }

    fn queue_drops(pieces: &[&[u8]]) -> (u64, u64) {
        let mut reader = Reader::new();
        for piece in pieces {
            reader.feed(piece, &mut |_| {}).expect("a capture");
        }
        reader.end().expect("a capture");
        (reader.counts().packets, reader.counts().queue_drops)
    }

    #[test]
    fn queue_drops_do_not_depend_on_the_borders_of_pieces() {
        let file = file();
        assert_eq!(queue_drops(&[&file]), (5, 2));
        for border in 1..file.len() {
            let (head, tail) = file.split_at(border);
            assert_eq!(queue_drops(&[head, tail]), (5, 2), "border at byte {border}");
        }
        let bytes: Vec<&[u8]> = file.chunks(1).collect();
        assert_eq!(queue_drops(&bytes), (5, 2));
    }
}
