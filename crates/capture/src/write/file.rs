//! A file of packets at one vantage point, written as they come.

use super::blocks::{Heads, Interface, Packet, Section, Statistics, write_key_log};
use super::frame::Frame;
use dragstrip_units::Instant;
use std::io::{self, Write};

/// Bytes gathered before they are written.
const CHUNK: usize = 256 << 10;

/// The largest `snaplen`: libpcap's own.
pub const SNAPLEN_MAX: u32 = 262_144;

/// A pcapng file with one Ethernet interface.
#[derive(Debug)]
pub struct File<W> {
    to: W,
    /// Bytes that are not written yet.
    waiting: Vec<u8>,
    /// Bytes kept of a frame.
    snaplen: usize,
    /// Bytes kept of a frame whose payload is zeros.
    headers_snaplen: usize,
    received: u64,
    dropped: u64,
    /// Packets that should be here and are not, where that can be.
    missing: Option<u64>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// Metadata of a record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Time.
    pub at: Instant,
    /// Source and destination address on the link.
    pub macs: ([u8; 6], [u8; 6]),
    /// [`crate::format::INBOUND`] or [`crate::format::OUTBOUND`].
    pub direction: u32,
    /// The packet's number, in all files of a run.
    pub id: u64,
    /// Why it went no further, if it was dropped here.
    pub dropped: Option<&'a str>,
}

impl<W: Write> File<W> {
    /// Begins a file; of each frame at most `snaplen` bytes are kept.
    pub fn new(to: W, section: &Section<'_>, name: &str, description: &str, snaplen: u32) -> Self {
        let snaplen = snaplen.min(SNAPLEN_MAX);
        let mut waiting = Vec::with_capacity(CHUNK + 4_096);
        section.write(&mut waiting);
        Interface { name, description, snaplen }.write(&mut waiting);
        let snaplen = snaplen as usize;
        Self {
            to,
            waiting,
            snaplen,
            headers_snaplen: snaplen,
            received: 0,
            dropped: 0,
            missing: None,
            failed: None,
        }
    }

    /// Keeps fewer bytes of frames whose payload is zeros.
    #[must_use]
    pub fn with_headers_snaplen(mut self, snaplen: u32) -> Self {
        self.headers_snaplen = self.snaplen.min(snaplen as usize);
        self
    }

    /// Adds a log of TLS's keys, in front of the packets that it decrypts.
    pub fn add_key_log(&mut self, text: &str) {
        write_key_log(&mut self.waiting, text);
    }

    /// Adds a packet.
    #[inline]
    pub fn add(&mut self, record: &Record<'_>, frame: Frame<'_>) {
        let Record { at, macs, direction, id, dropped } = *record;
        let headers = frame.headers_len();
        let original_len = headers as u32 + frame.payload_len();
        let snaplen = if frame.payload.is_empty() { self.headers_snaplen } else { self.snaplen };
        let len = snaplen.min(original_len as usize);
        let comment = dropped;
        let packet = Packet { at, frame, headers, macs, len, original_len, direction, id, comment };
        packet.write(&mut self.waiting);
        self.received += 1;
        self.dropped += u64::from(dropped.is_some());
        if self.waiting.len() >= CHUNK {
            self.write();
        }
    }

    /// Adds a packet that was seen somewhere, with the bytes that are known of it.
    pub fn add_bytes(&mut self, at: Instant, direction: u32, original_len: u32, bytes: &[u8]) {
        Heads { at, bytes, original_len, direction }.write(&mut self.waiting);
        self.received += 1;
        if self.waiting.len() >= CHUNK {
            self.write();
        }
    }

    /// The statistics will say that so many packets are not here.
    pub fn note_missing(&mut self, missing: u64) {
        self.missing = Some(missing);
    }

    fn write(&mut self) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(&self.waiting).err();
        }
        self.waiting.clear();
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self, end: Instant) -> io::Result<W> {
        let Self { received, dropped, missing, .. } = self;
        Statistics { start: Instant::ZERO, end, received, dropped, missing }
            .write(&mut self.waiting);
        self.write();
        match self.failed {
            Some(error) => Err(error),
            None => self.to.flush().map(|()| self.to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{End, Numbers};
    use super::*;
    use dragstrip_packet::{Body, Flags, Segment, TrafficClass};

    const SECTION: Section<'_> = Section { program: "p", comment: "c" };
    const RECORD: Record<'_> =
        Record { at: Instant::ZERO, macs: ([0; 6], [0; 6]), direction: 1, id: 1, dropped: None };
    const END: End = End { address: [10, 0, 0, 1], port: 1 };

    fn frame(body: &Body) -> Frame<'_> {
        let (class, numbers) = (TrafficClass::default(), Numbers::default());
        Frame { from: END, to: END, ip_id: 1, class, body, payload: &[], numbers, echo_id: 0 }
    }

    #[test]
    fn a_frame_is_cut_to_the_snaplen_and_never_lengthened() {
        for (snaplen, payload, kept_bytes) in [(80, 1_460, 80), (50, 1_460, 50), (96, 6, 60)] {
            let body = Body::Tcp(Segment::new(0, payload, Flags::ACK));
            let frame = frame(&body);
            let mut headers = vec![0; frame.headers_len()];
            frame.write(RECORD.macs, &mut headers);
            let mut file = File::new(Vec::new(), &SECTION, "i", "d", snaplen);
            let begin = file.waiting.len();
            file.add(&RECORD, frame);
            let block = &file.waiting[begin..];
            assert_eq!(u32::from(block[20]), kept_bytes);
            assert_eq!(u16::from_le_bytes([block[24], block[25]]), 54 + payload);
            let data = &block[28..28 + kept_bytes as usize];
            let common_len = headers.len().min(data.len());
            assert_eq!(data[..common_len], headers[..common_len]);
            assert!(data[common_len..].iter().all(|byte| *byte == 0));
            assert!(file.finish(Instant::ZERO).is_ok());
        }
    }

    /// A disk that takes so many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let accepted = bytes.len().min(self.0);
            self.0 -= accepted;
            if accepted == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(accepted) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end_and_memory_stays_bounded() {
        let mut file = File::new(Full(1_000_000), &SECTION, "i", "d", 96);
        let body = Body::Tcp(Segment::new(0, 1_460, Flags::ACK));
        for _ in 0..30_000 {
            file.add(&RECORD, frame(&body));
        }
        assert!(file.waiting.capacity() < 2 * CHUNK);
        let outcome = file.finish(Instant::ZERO).map(drop).map_err(|error| error.kind());
        assert_eq!(outcome, Err(io::ErrorKind::StorageFull));
    }
}
