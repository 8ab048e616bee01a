//! Captures as packets: pcap and pcapng, bytes in as they come, packets out.
//!
//! A [`Reader`] is fed with pieces of a file of any size and keeps no more than one record of it. What it cannot go on from is a
//! [`Fault`]; what it passes over is counted in [`Counts`].

mod bytes;
mod headers;
mod layers;
mod packet;
mod pcap;
mod pcapng;
mod ports;
mod scan;
mod tcp;
mod udp;

pub use layers::Layers;
pub use packet::{Address, Datagram, Other, Packet, Protocol};

use packet::Content;
use std::fmt;

/// The longest accepted record, bytes: a jumbogram's 65,575 and BIG TCP's 512 KiB are far below.
pub(crate) const RECORD_MAX: u32 = 16 << 20;

/// Why a capture cannot be read further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Offset in the (unpacked) file, bytes.
    pub at: u64,
    /// Description of the error.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "byte {}: {}", self.at, self.what)
    }
}

/// Counts of a file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of any kind.
    pub packets: u64,
    /// TCP segments that could be read.
    pub tcp: u64,
    /// Packets whose headers were cut off or contradict themselves.
    pub malformed: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// TCP segments of which the options were cut off.
    pub cut_options: u64,
    /// Packets of a link type that is not read, in a file with others.
    pub foreign_links: u64,
    /// Packets without a stamp (pcapng's simple blocks).
    pub unstamped: u64,
    /// Packets that the capturing program reports as lost.
    pub said_dropped: u64,
    /// Packets that the queue at the captured link dropped, by their comments ([`QUEUE_DROP`](crate::format::QUEUE_DROP)).
    pub queue_drops: u64,
    /// Blocks of pcapng that hold no packets.
    pub other_blocks: u64,
    /// The file ends inside a record.
    pub cut_short: bool,
}

/// Stamps are from 1970 to 2116, in nanoseconds: what lies beyond counts as the nearest, so that sums with them do not overflow.
pub const STAMP_MAX_NS: i64 = i64::MAX / 2;

/// A record of a file before its headers are read.
pub(crate) struct Record<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    pub link: u32,
    /// Length of the whole packet on the wire.
    pub original: u32,
    pub data: &'a [u8],
}

/// File format by the first bytes.
enum Form {
    /// Not known yet.
    Unread,
    Pcap(pcap::Pcap),
    Pcapng(Box<pcapng::Pcapng>),
}

/// Reads one file.
pub struct Reader {
    form: Form,
    /// Input that has not been parsed.
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are used.
    used: usize,
    /// Bytes used before those of `buffer`.
    before: u64,
    /// Bytes still to be passed over.
    skip: u64,
    counts: Counts,
}

/// Result of parsing the available bytes.
pub(crate) enum Step<'a> {
    /// More bytes are needed.
    Starved,
    /// A number of bytes is parsed, and a number of bytes after them is of no interest.
    Passed(usize, u64),
    /// A record that ends after so many bytes.
    Found(usize, Record<'a>),
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// For a file of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            form: Form::Unread,
            buffer: Vec::new(),
            used: 0,
            before: 0,
            skip: 0,
            counts: Counts::default(),
        }
    }

    /// Counts of the content so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes the next bytes of the file and hands out the TCP segments in them.
    ///
    /// # Errors
    /// An error in the file that ends its reading; no more bytes can be fed.
    pub fn feed(&mut self, piece: &[u8], sink: &mut impl FnMut(Packet)) -> Result<(), Fault> {
        self.feed_all(piece, &mut Segments(sink))
    }

    /// The same with all other packets too.
    ///
    /// # Errors
    /// As of [`Reader::feed`].
    pub fn feed_all(&mut self, piece: &[u8], sink: &mut impl Sink) -> Result<(), Fault> {
        let passed = self.skip.min(piece.len() as u64);
        self.skip -= passed;
        self.before += passed;
        self.buffer.drain(..self.used);
        self.before += self.used as u64;
        self.used = 0;
        self.buffer.extend_from_slice(&piece[passed as usize..]);
        if matches!(self.form, Form::Unread) && !self.recognise()? {
            return Ok(());
        }
        loop {
            let rest = &self.buffer[self.used..];
            let step = match &mut self.form {
                Form::Unread => return Ok(()),
                Form::Pcap(form) => form.step(rest),
                Form::Pcapng(form) => form.step(rest, &mut self.counts),
            };
            let at = self.before + self.used as u64;
            match step.map_err(|message| Fault { at, what: message })? {
                Step::Starved => return Ok(()),
                Step::Passed(used, skip) => {
                    self.used += used;
                    let skipped = skip.min((self.buffer.len() - self.used) as u64);
                    self.used += skipped as usize;
                    self.skip = skip - skipped;
                }
                Step::Found(used, record) => {
                    take(&mut self.counts, &record, sink);
                    self.used += used;
                }
            }
        }
    }

    /// The file ends here.
    ///
    /// # Errors
    /// The file is too short to be a capture.
    pub fn end(&mut self) -> Result<(), Fault> {
        let at = self.before + self.buffer.len() as u64;
        if matches!(self.form, Form::Unread) {
            let message = if at == 0 { "is empty" } else { "is too short to be a capture" };
            return Err(Fault { at, what: message.to_owned() });
        }
        self.counts.cut_short |= self.skip > 0 || self.used < self.buffer.len();
        Ok(())
    }

    /// True when the available bytes suffice to recognise the format.
    fn recognise(&mut self) -> Result<bool, Fault> {
        let Some(form) =
            recognised(&self.buffer).map_err(|message| Fault { at: 0, what: message })?
        else {
            return Ok(false);
        };
        if matches!(form, Form::Pcap(_)) {
            self.used = pcap::HEADER;
        }
        self.form = form;
        Ok(true)
    }
}

fn recognised(start: &[u8]) -> Result<Option<Form>, String> {
    let Some(magic) = start.first_chunk::<4>() else { return Ok(None) };
    if *magic == [0x0a, 0x0d, 0x0d, 0x0a] {
        return Ok(Some(Form::Pcapng(Box::default())));
    }
    if start.starts_with(b"snoo") {
        return Err("is a snoop capture, expected pcap or pcapng (editcap -F pcapng converts it)"
            .to_owned());
    }
    let Some(header) = start.first_chunk::<{ pcap::HEADER }>() else {
        return pcap::magic(*magic).map(|_| None);
    };
    Ok(Some(Form::Pcap(pcap::Pcap::new(header)?)))
}

/// Reads a record's headers and hands the packet on.
fn take(counts: &mut Counts, record: &Record<'_>, sink: &mut impl Sink) {
    counts.packets += 1;
    match headers::content(record) {
        Content::Tcp(packet) => {
            counts.tcp += 1;
            counts.cut_options += u64::from(packet.options_cut);
            sink.segment(packet);
        }
        Content::Other(other) => sink.non_tcp(&other),
        Content::Fragment => counts.fragments += 1,
        Content::Malformed => counts.malformed += 1,
        Content::Foreign => counts.foreign_links += 1,
    }
}

/// Takes what a file holds.
pub trait Sink {
    /// A TCP segment.
    fn segment(&mut self, packet: Packet);
    /// Another packet.
    fn non_tcp(&mut self, other: &Other);
}

/// Takes segments alone.
struct Segments<'a, F>(&'a mut F);

impl<F: FnMut(Packet)> Sink for Segments<'_, F> {
    fn segment(&mut self, packet: Packet) {
        (self.0)(packet);
    }

    fn non_tcp(&mut self, _: &Other) {}
}
