//! pcap files (pcap-savefile(5)): stamps in microseconds or nanoseconds, in either byte order.

use super::bytes::Order;
use super::{RECORD_MAX, Record, Step, headers};

/// The file's header, bytes.
pub const HEADER: usize = 24;
/// A record's header, bytes; Kuznetzov's has eight more.
const RECORD: usize = 16;

/// Contents of a file's header.
pub struct Pcap {
    order: Order,
    /// Nanoseconds per unit of a stamp's fraction.
    unit_ns: i64,
    record: usize,
    link: u32,
    /// Captured and original length may be swapped (versions up to 2.3).
    old: bool,
}

/// Byte order, unit of the fraction and length of a record's header, of a file that begins with these bytes.
pub fn magic(bytes: [u8; 4]) -> Result<(Order, i64, usize), String> {
    let kind = |number: u32| match number {
        0xa1b2_c3d4 => Some((1_000, RECORD)),
        0xa1b2_3c4d => Some((1, RECORD)),
        0xa1b2_cd34 => Some((1_000, RECORD + 8)),
        _ => None,
    };
    let (big, little) = (u32::from_be_bytes(bytes), u32::from_le_bytes(bytes));
    for (order, number) in [(Order::Big, big), (Order::Little, little)] {
        if let Some((unit_ns, record)) = kind(number) {
            return Ok((order, unit_ns, record));
        }
        if matches!(number, 0xa1b2_34cd | 0xa12b_3c4d | 0xa1b2_c3cb) {
            return Err(format!(
                "is a variant of pcap that is not read (magic number {number:08x}), expected pcap or pcapng"
            ));
        }
    }
    Err(format!("is no capture: it begins with {big:08x}, expected pcap or pcapng"))
}

impl Pcap {
    pub fn new(header: &[u8; HEADER]) -> Result<Self, String> {
        let start = [header[0], header[1], header[2], header[3]];
        let (order, unit_ns, record) = magic(start)?;
        let version = (order.u16(header, 4), order.u16(header, 6));
        if version.0 != 2 {
            return Err(format!(
                "says it is of pcap's version {}.{}, expected 2.4",
                version.0, version.1
            ));
        }
        let link = order.u32(header, 20) & 0xffff;
        headers::expect_known(link)?;
        Ok(Self { order, unit_ns, record, link, old: version.1 < 4 })
    }

    pub fn step<'a>(&mut self, rest: &'a [u8]) -> Result<Step<'a>, String> {
        if rest.len() < self.record {
            return Ok(Step::Starved);
        }
        let word = |at| self.order.u32(rest, at);
        let (mut captured, mut original) = (word(8), word(12));
        if self.old && captured > original {
            (captured, original) = (original, captured);
        }
        if captured > RECORD_MAX {
            return Err(format!(
                "a packet claims {captured} captured bytes, expected at most {RECORD_MAX}"
            ));
        }
        let end = self.record + captured as usize;
        let Some(data) = rest.get(self.record..end) else { return Ok(Step::Starved) };
        let time_ns = i64::from(word(0)) * 1_000_000_000 + i64::from(word(4)) * self.unit_ns;
        Ok(Step::Found(
            end,
            Record { time_ns, link: self.link, original: original.max(captured), data },
        ))
    }
}
