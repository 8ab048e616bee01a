//! Blocks of a pcapng file, little-endian.

use super::frame::{Frame, HEADERS_MAX};
use crate::format::{BYTE_ORDER, ETHERNET, NANOSECONDS, TLS_KEY_LOG, VERSION, block, option};
use dragstrip_units::Instant;

/// The second at which simulated time begins: 2001-09-09T01:46:40Z. It is not 0, which programs treat as an unset
/// stamp (tcptrace's `trace.c`), and cannot be mistaken for the hour at which a file was made.
pub const EPOCH_S: u64 = 1_000_000_000;

/// A stamp: nanoseconds since 1970.
fn stamp(at: Instant) -> u64 {
    EPOCH_S * 1_000_000_000 + at.as_nanos()
}

/// The beginning of a file.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The program that writes it, with its version.
    pub program: &'a str,
    /// Comment on the run.
    pub comment: &'a str,
}

impl Section<'_> {
    /// Adds the block.
    pub fn write(&self, file: &mut Vec<u8>) {
        Block::begin(file, block::SECTION_HEADER)
            .u32(BYTE_ORDER)
            .u16(VERSION.0)
            .u16(VERSION.1)
            .u64(u64::MAX) // the length of the section is not known
            .option(option::COMMENT, self.comment.as_bytes())
            .option(option::USER_APPLICATION, self.program.as_bytes())
            .end();
    }
}

/// An Ethernet interface with stamps in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Description.
    pub description: &'a str,
    /// Bytes kept of each frame.
    pub snaplen: u32,
}

impl Interface<'_> {
    /// Adds the block.
    pub fn write(&self, file: &mut Vec<u8>) {
        Block::begin(file, block::INTERFACE)
            .u16(ETHERNET)
            .u16(0)
            .u32(self.snaplen)
            .option(option::NAME, self.name.as_bytes())
            .option(option::DESCRIPTION, self.description.as_bytes())
            .option(option::RESOLUTION, &[NANOSECONDS])
            .end();
    }
}

/// Adds a log of TLS's keys with which the packets behind it can be decrypted.
pub fn write_key_log(file: &mut Vec<u8>, text: &str) {
    Block::begin(file, block::SECRETS)
        .u32(TLS_KEY_LOG)
        .u32(text.len() as u32)
        .padded(text.as_bytes())
        .end();
}

/// A packet at the file's only interface.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Time.
    pub at: Instant,
    /// The frame; what follows its headers and its payload are zeros.
    pub frame: Frame<'a>,
    /// Bytes of its headers.
    pub headers: usize,
    /// Source and destination address on the link.
    pub macs: ([u8; 6], [u8; 6]),
    /// Bytes of the frame that are kept.
    pub len: usize,
    /// Its length on the wire.
    pub original_len: u32,
    /// [`crate::format::INBOUND`] or [`crate::format::OUTBOUND`].
    pub direction: u32,
    /// Its number; the same in other files of the run.
    pub id: u64,
    /// Comment on the packet's fate, if any.
    pub comment: Option<&'a str>,
}

/// Bytes of an enhanced packet block around the frame: six words and the length in front, flags, number, the end of
/// options and the length after it.
const AROUND: usize = 28 + 8 + 12 + 4 + 4;

impl Packet<'_> {
    /// Adds the block. Almost all of a file are these: room is made once, and everything laid out in it.
    #[inline]
    pub fn write(&self, file: &mut Vec<u8>) {
        let at = stamp(self.at);
        let padded_len = self.len.next_multiple_of(4);
        let comment = self.comment.map_or(0, |text| 4 + text.len().next_multiple_of(4));
        let total = AROUND + padded_len + comment;
        let start = file.len();
        file.resize(start + total, 0);
        let (front, rest) = file[start..].split_at_mut(28);
        let (data, behind) = rest.split_at_mut(padded_len);
        let total = total as u32;
        let (high, low) = ((at >> 32) as u32, at as u32);
        lay(front, [block::PACKET, total, 0, high, low, self.len as u32, self.original_len]);
        let headers = self.headers;
        if headers <= self.len {
            self.frame.write(self.macs, &mut data[..headers]);
            let payload_len = self.frame.payload.len().min(self.len - headers);
            data[headers..headers + payload_len]
                .copy_from_slice(&self.frame.payload[..payload_len]);
        } else {
            let mut whole = [0; HEADERS_MAX];
            self.frame.write(self.macs, &mut whole[..headers]);
            data[..self.len].copy_from_slice(&whole[..self.len]);
        }
        let (comment_bytes, options) = behind.split_at_mut(comment);
        if let Some(text) = self.comment {
            comment_bytes[..4]
                .copy_from_slice(&head(option::COMMENT, text.len() as u16).to_le_bytes());
            comment_bytes[4..4 + text.len()].copy_from_slice(text.as_bytes());
        }
        let (flags, number) = (head(option::FLAGS, 4), head(option::PACKET_ID, 8));
        let (low, high) = (self.id as u32, (self.id >> 32) as u32);
        lay(options, [flags, self.direction, number, low, high, head(option::END, 0), total]);
    }
}

/// A packet of which the first bytes are known, at the file's only interface.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// Time.
    pub at: Instant,
    /// The first bytes of the frame.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub original_len: u32,
    /// [`crate::format::INBOUND`] or [`crate::format::OUTBOUND`].
    pub direction: u32,
}

impl Heads<'_> {
    /// Adds the block.
    pub fn write(&self, file: &mut Vec<u8>) {
        let at = stamp(self.at);
        Block::begin(file, block::PACKET)
            .u32(0)
            .u32((at >> 32) as u32)
            .u32(at as u32)
            .u32(self.bytes.len() as u32)
            .u32(self.original_len)
            .padded(self.bytes)
            .option(option::FLAGS, &self.direction.to_le_bytes())
            .end();
    }
}

/// The first word of an option.
const fn head(code: u16, len: u16) -> u32 {
    code as u32 | (len as u32) << 16
}

/// Seven words, little-endian.
#[inline]
fn lay(to: &mut [u8], words: [u32; 7]) {
    to.copy_from_slice(words.map(u32::to_le_bytes).as_flattened());
}

/// Counters of the file's only interface.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// Start time.
    pub start: Instant,
    /// End time.
    pub end: Instant,
    /// Packets in the file.
    pub received: u64,
    /// Packets dropped by the queue in front of it.
    pub dropped: u64,
    /// Packets that should be here and are not, where that can be.
    pub missing: Option<u64>,
}

impl Statistics {
    /// Adds the block.
    pub fn write(&self, file: &mut Vec<u8>) {
        let halves = |at: Instant| {
            let at = stamp(at);
            let (high, low) = ((at >> 32) as u32, at as u32);
            [high.to_le_bytes(), low.to_le_bytes()].concat()
        };
        let at = stamp(self.end);
        let statistics = Block::begin(file, block::STATISTICS)
            .u32(0)
            .u32((at >> 32) as u32)
            .u32(at as u32)
            .option(option::START_TIME, &halves(self.start))
            .option(option::END_TIME, &halves(self.end))
            .option(option::RECEIVED, &self.received.to_le_bytes())
            .option(option::DROPPED, &self.dropped.to_le_bytes());
        match self.missing {
            Some(missing) => statistics.option(option::MISSING, &missing.to_le_bytes()).end(),
            None => statistics.end(),
        }
    }
}

/// A block that is being written.
struct Block<'a> {
    file: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Block<'a> {
    fn begin(file: &'a mut Vec<u8>, kind: u32) -> Self {
        let start = file.len();
        file.extend_from_slice(&kind.to_le_bytes());
        file.extend_from_slice(&[0; 4]);
        Self { file, start }
    }

    fn u16(self, value: u16) -> Self {
        self.file.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u32(self, value: u32) -> Self {
        self.file.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u64(self, value: u64) -> Self {
        self.file.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn padded(self, bytes: &[u8]) -> Self {
        self.file.extend_from_slice(bytes);
        let rest = bytes.len().next_multiple_of(4) - bytes.len();
        self.file.extend_from_slice(&[0; 3][..rest]);
        self
    }

    /// Text longer than an option may be is cut.
    fn option(self, code: u16, value: &[u8]) -> Self {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code).u16(value.len() as u16).padded(value)
    }

    fn end(self) {
        let Self { file, start } = self.u16(option::END).u16(0);
        let len = (file.len() - start + 4) as u32;
        file.extend_from_slice(&len.to_le_bytes());
        file[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{End, Numbers};
    use super::*;
    use dragstrip_packet::{Body, Datagram, TrafficClass};

    fn words(bytes: &[u8]) -> Vec<u32> {
        let word = |chunk: &[u8]| u32::from_le_bytes(chunk.try_into().expect("four bytes"));
        bytes.chunks(4).map(word).collect()
    }

    #[test]
    fn a_section_header_is_laid_out_as_the_draft_says() {
        let mut file = Vec::new();
        Section { program: "p", comment: "seed 7" }.write(&mut file);
        let comment = [1 | 6 << 16, u32::from_le_bytes(*b"seed"), u32::from_le_bytes(*b" 7\0\0")];
        let program = [4 | 1 << 16, u32::from_le_bytes(*b"p\0\0\0")];
        let mut expected = vec![0x0a0d_0d0a, 52, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX];
        expected.extend(comment.into_iter().chain(program).chain([0, 52]));
        assert_eq!(words(&file), expected);
    }

    #[test]
    fn a_packet_says_when_how_long_which_way_and_why() {
        let mut file = Vec::new();
        let body = Body::Udp(Datagram { number: 0, len: 1_472 });
        let end = End { address: [0; 4], port: 0 };
        let (class, numbers) = (TrafficClass::default(), Numbers::default());
        let packet = Packet {
            at: Instant::from_nanos(5),
            frame: Frame {
                from: end,
                to: end,
                ip_id: 1,
                class,
                body: &body,
                payload: &[],
                numbers,
                echo_id: 0,
            },
            headers: 42,
            macs: ([4; 6], [3, 2, 1, 0, 0, 0]),
            len: 3,
            original_len: 1_514,
            direction: crate::format::OUTBOUND,
            id: 9,
            comment: Some("lost"),
        };
        packet.write(&mut file);
        let at = 1_000_000_000_000_000_005_u64;
        let mut expected = vec![6, 68, 0, (at >> 32) as u32, at as u32, 3, 1_514, 0x0001_0203];
        expected.extend([1 | 4 << 16, u32::from_le_bytes(*b"lost")]);
        expected.extend([2 | 4 << 16, 2, 5 | 8 << 16, 9, 0, 0, 68]);
        assert_eq!(words(&file), expected);
    }

    #[test]
    fn secrets_have_their_type_and_their_length() {
        let mut file = Vec::new();
        write_key_log(&mut file, "A 1 2");
        let text = [u32::from_le_bytes(*b"A 1 "), u32::from(b'2')];
        let mut expected = vec![10, 32, 0x544c_534b, 5];
        expected.extend(text.into_iter().chain([0, 32]));
        assert_eq!(words(&file), expected);
    }

    #[test]
    fn an_interface_and_its_statistics_are_in_nanoseconds() {
        let mut file = Vec::new();
        Interface { name: "if", description: "d", snaplen: 96 }.write(&mut file);
        let name = [2 | 2 << 16, u32::from(u16::from_le_bytes(*b"if"))];
        let rest = [3 | 1 << 16, u32::from(b'd'), 9 | 1 << 16, 9, 0, 48];
        let mut expected = vec![1, 48, 1, 96];
        expected.extend(name.into_iter().chain(rest));
        assert_eq!(words(&file), expected);
        file.clear();
        let end = Instant::from_nanos(1_000_000_000);
        Statistics { start: Instant::ZERO, end, received: 3, dropped: 1, missing: None }
            .write(&mut file);
        let (zero, one) = (stamp(Instant::ZERO), stamp(end));
        let halves = |at: u64| [(at >> 32) as u32, at as u32];
        let mut expected = vec![5, 76, 0];
        expected.extend(halves(one));
        expected.push(2 | 8 << 16);
        expected.extend(halves(zero));
        expected.push(3 | 8 << 16);
        expected.extend(halves(one));
        expected.extend([4 | 8 << 16, 3, 0, 5 | 8 << 16, 1, 0, 0, 76]);
        assert_eq!(words(&file), expected);
    }
}
