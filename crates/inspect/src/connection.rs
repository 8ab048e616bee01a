//! A connection in one capture: two directions, the handshake, and the capture's position.

use crate::copies::Recent;
use crate::feedback::{Feedback, ace};
use crate::full::{Ballot, FullSize};
use crate::half::{ACK, ETHERNETS, FIN, Half, Kind, PSH, RST, SYN, Sample};
use crate::labels::Labels;
use crate::limits::{Limits, Sending};
use crate::quantiles::Quantiles;
use dragstrip_capture::read::{Layers, Packet};

/// ECE, CWR and AE of a header's flags.
const ECE: u16 = 64;
const CWR: u16 = 128;
const AE: u16 = 256;

/// A capture's position on the path of a direction's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the sender.
    Sender,
    /// At the receiver.
    Receiver,
    /// Somewhere between.
    Between,
}

/// A direction with what is measured of it.
#[derive(Debug, Default)]
pub struct Direction {
    /// Ranges, acknowledgements, verdicts.
    pub half: Half,
    /// From data to their acknowledgement.
    pub onward: Quantiles,
    /// From an acknowledgement to the data that echo its stamp.
    pub backward: Quantiles,
    /// The sum of both where each is more than a sign of life.
    pub both: Quantiles,
    /// Limits of the sender over time, if the capture is the sender's.
    pub limits: Limits,
    /// Time of the first data.
    pub first_data_ns: Option<i64>,
    /// Time of the last data or acknowledgement.
    pub last_ns: i64,
    /// Packets by ECN codepoint.
    pub ecn: [u64; 4],
    /// Segments with ECE of this direction.
    pub ece: u64,
    /// Times to live: least and most.
    pub ttl: Option<(u8, u8)>,
    mss: Option<u16>,
    /// Largest segment that the other end's SYN allows this one to send.
    allowed: Option<u16>,
    sack: bool,
    scale: Option<u8>,
    /// The SYN's options are not all in the capture.
    syn_cut: bool,
    syn: Option<i64>,
    syn_flags: Option<u16>,
    /// A SYN offered accurate ECN.
    accurate: bool,
    /// SYNs or SYN-ACKs, and the retransmitted ones among them.
    pub syns: Syns,
    /// RSTs.
    pub resets: u64,
    /// Something other than SYN and RST was sent.
    pub past_opening: bool,
    /// The Multipath TCP option's subtype in the SYN, and in another segment.
    pub mptcp: [Option<u8>; 2],
    /// The Fast Open option in the SYN: bytes of its cookie.
    pub fast_open: Option<u8>,
    /// Bytes of data in the SYN.
    pub syn_bytes: u32,
    /// Marks reported to this direction by accurate ECN.
    pub feedback: Feedback,
    /// Marks that the last packet reported.
    pub newly_marked: u64,
    full_size: FullSize,
    backward_last_ns: Option<i64>,
    /// Due time of the next state record.
    pub state_due_ns: i64,
    recent: Recent,
}

/// Segments that open a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syns {
    /// Number of segments.
    pub total: u64,
    /// With the first one's sequence number.
    pub again: u64,
    /// The first one's time.
    pub first_ns: i64,
    /// The last one's.
    pub last_ns: i64,
}

/// Receiver's method of reporting CE marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// By the flag ECE (RFC 3168 §6.1).
    Classic,
    /// By counters (RFC 9768).
    Accurate,
}

/// Both directions; 0 goes from the first end of the key to the second.
#[derive(Debug, Default)]
pub struct Connection {
    /// Each direction.
    pub sides: [Direction; 2],
    /// Arrival time of the third segment of the handshake.
    third_ns: Option<i64>,
    /// The opening was seen once each way, so that its times can be used.
    clean_opening: bool,
    /// RST was seen.
    pub reset: bool,
    /// First packet.
    pub first_ns: i64,
    /// Last packet.
    last_ns: i64,
    /// Encapsulation of its last packet.
    pub layers: Layers,
    /// Both ends agreed on accurate ECN, or a segment beyond the handshake shows it.
    pub accurate: bool,
    /// The data in the SYN were acknowledged with it.
    pub syn_accepted: Option<bool>,
    /// Labels of other tools for the packets, if requested.
    pub labels: Option<Box<Labels>>,
}

/// Result of processing a packet.
#[derive(Clone, Copy, Debug)]
pub enum Taken {
    /// A frame that is there twice.
    Copy,
    /// A packet, with what its data were and an RTT sample of the other direction's data.
    Packet(Kind, Option<Sample>),
}

impl Connection {
    /// Creates a connection that begins with this packet.
    pub fn new(packet: &Packet, keep_slices: bool, labelled: bool, logged: bool) -> Self {
        let labels = labelled.then(Box::default);
        let mut connection = Self { first_ns: packet.time_ns, labels, ..Self::default() };
        for side in &mut connection.sides {
            side.limits.slices = keep_slices.then(Vec::new);
            side.half.verdicts.log = (labelled || logged).then(Vec::new);
        }
        connection
    }

    /// True when a packet opens another connection between the same ports.
    pub fn is_reopened_by(&self, packet: &Packet, side: usize) -> bool {
        let opening = packet.flags & (SYN | ACK) == SYN;
        let is_used = self.sides.iter().any(|side| side.half.segments > 0) || self.reset;
        opening && is_used && !self.sides[side].half.is_first(packet.seq)
    }

    /// Takes a packet of the direction `side`.
    pub fn take(&mut self, packet: &Packet, side: usize) -> Taken {
        if let Some(labels) = &mut self.labels {
            labels.take(packet, side);
        }
        if self.sides[side].recent.is_copy(packet) {
            return Taken::Copy;
        }
        self.reset |= packet.flags & RST != 0;
        self.last_ns = packet.time_ns;
        self.layers = packet.layers;
        self.handshake(packet, side);
        let path_ns = self.path_ns(side);
        let [first, second] = &mut self.sides;
        let (direction, reverse) = if side == 0 { (first, second) } else { (second, first) };
        direction.note_header(packet);
        // Classic ECN has no use for AE; who sends it counts.
        self.accurate |= packet.flags & (SYN | AE) == AE && direction.syn_flags.is_none();
        if packet.flags & RST != 0 {
            direction.half.open_window(packet.time_ns);
            reverse.half.open_window(packet.time_ns);
        }
        let outstanding = direction.half.outstanding();
        let kind = direction.half.on_segment(packet, path_ns);
        if packet.payload > 0 {
            direction.note_data(packet, kind, outstanding);
            if let Some(ns) = reverse.half.echoed(packet, kind) {
                direction.backward.add(ns);
                direction.backward_last_ns = Some(ns);
            }
        }
        direction.half.stamp(packet);
        let (acked, delivered) = (reverse.half.acked, reverse.half.delivered());
        let sample = reverse.half.answered(packet);
        let new_bytes = reverse.half.delivered() - delivered;
        reverse.newly_marked = if self.accurate && new_bytes > 0 && packet.flags & SYN == 0 {
            let full = reverse.full(packet.stamps.is_some());
            reverse.feedback.take(packet, new_bytes, full)
        } else {
            0
        };
        if let Some(sample) = sample {
            reverse.note_sample(sample);
        }
        if reverse.half.acked > acked {
            reverse.last_ns = packet.time_ns;
            reverse.limits.acknowledged(packet.time_ns);
        }
        if let Some(edge) = reverse.half.edge {
            let full = reverse.full(packet.stamps.is_some());
            reverse.limits.offered(packet.time_ns, edge - reverse.half.next, full);
        }
        Taken::Packet(kind, sample)
    }

    fn handshake(&mut self, packet: &Packet, side: usize) {
        if packet.flags & SYN != 0 {
            self.clean_opening =
                self.sides[side].syn.is_none() && (packet.flags & ACK == 0 || self.clean_opening);
            self.open(packet, side);
            let direction = &mut self.sides[side];
            direction.syn = Some(packet.time_ns);
            direction.syn_flags = Some(packet.flags);
            direction.mss = packet.mss;
            direction.sack = packet.sack_permitted;
            direction.scale = packet.window_scale;
            direction.syn_cut = packet.options_cut;
            if packet.flags & ACK != 0 {
                self.agree();
            }
        } else if self.third_ns.is_none()
            && packet.flags & (ACK | RST) == ACK
            && self.sides[1 - side].syn_flags.is_some_and(|flags| flags & ACK != 0)
        {
            self.third_ns = Some(packet.time_ns);
        }
    }

    /// Records the properties of a SYN or SYN-ACK that are not negotiated.
    fn open(&mut self, packet: &Packet, side: usize) {
        const ASKS: u8 = 7;
        let answers = packet.flags & ACK != 0;
        let direction = &mut self.sides[side];
        let Syns { total, again, first_ns, .. } = direction.syns;
        direction.syns = Syns {
            total: total + 1,
            again: again + u64::from(direction.half.is_first(packet.seq)),
            first_ns: if total == 0 { packet.time_ns } else { first_ns },
            last_ns: packet.time_ns,
        };
        direction.accurate |= !answers && ace(packet.flags) == ASKS;
        direction.mptcp[0] = direction.mptcp[0].or(packet.mptcp);
        direction.fast_open = direction.fast_open.or(packet.fast_open);
        direction.syn_bytes = direction.syn_bytes.max(packet.payload);
        if !answers {
            return;
        }
        let opener = &mut self.sides[1 - side];
        // Only these answers are of a server that counts (RFC 9768 §3.1.2, table 2).
        if opener.accurate && matches!(ace(packet.flags), 2 | 3 | 4 | 6) {
            self.accurate = true;
        }
        if let (Some(first), true) = (opener.half.opened_at(), opener.syn_bytes > 0) {
            let end = first.wrapping_add(1).wrapping_add(opener.syn_bytes);
            self.syn_accepted = Some(packet.ack == end);
            if packet.ack != end {
                opener.half.reject_opening();
            }
        }
        if self.accurate && self.sides[side].syns.total == 1 {
            for side in &mut self.sides {
                side.feedback = Feedback::begin();
            }
        }
    }

    /// Both ends have said what they can.
    fn agree(&mut self) {
        let scaled = self.sides.iter().all(|side| side.scale.is_some());
        let scales_known = scaled || self.sides.iter().all(|side| !side.syn_cut);
        let sack = self.sides.iter().all(|side| side.sack);
        let mss = [self.sides[0].mss, self.sides[1].mss];
        let scales = [self.sides[0].scale, self.sides[1].scale];
        for (index, side) in self.sides.iter_mut().enumerate() {
            side.half.scale =
                scales_known.then(|| if scaled { scales[1 - index].unwrap_or(0) } else { 0 });
            side.half.verdicts.sack = sack;
            side.allowed = mss[1 - index];
        }
    }

    /// The opening's two halves: from SYN to SYN-ACK, and on to what answers it; `side` is the one that opens.
    fn opening_ns(&self) -> Option<(usize, i64, i64)> {
        let opener = self
            .sides
            .iter()
            .position(|side| side.syn_flags.is_some_and(|flags| flags & ACK == 0))?;
        let (first, second) = (self.sides[opener].syn?, self.sides[1 - opener].syn?);
        let third = self.third_ns?;
        (self.clean_opening && first <= second && second <= third).then_some((
            opener,
            second - first,
            third - second,
        ))
    }

    /// The round trip of the opening.
    pub fn opening_rtt_ns(&self) -> Option<i64> {
        self.opening_ns().map(|(_, first, second)| first + second)
    }

    /// The least time in which a copy can be sent after a loss before this place: from here to the sender and back.
    fn path_ns(&self, side: usize) -> Option<i64> {
        let opening = self
            .opening_ns()
            .map(|(opener, first, second)| if opener == side { second } else { first });
        let echoes = self.sides[side].backward.least();
        opening.into_iter().chain(echoes).min()
    }

    /// Position of the capture on the path of a direction's data.
    pub fn place(&self, side: usize) -> Place {
        const NEAR: f64 = 0.1;
        let parts =
            self.opening_ns().map(
                |(opener, first, second)| {
                    if opener == side { (first, second) } else { (second, first) }
                },
            );
        let direction = &self.sides[side];
        let parts = parts.or_else(|| direction.onward.least().zip(direction.backward.least()));
        if let Some((onward, backward)) = parts.filter(|parts| parts.0 + parts.1 > 0) {
            let share = onward as f64 / (onward + backward) as f64;
            return if share >= 1.0 - NEAR {
                Place::Sender
            } else if share <= NEAR {
                Place::Receiver
            } else {
                Place::Between
            };
        }
        // As they leave a host, packets have one of these times to live.
        let fresh = [side, 1 - side].map(|side| {
            self.sides[side]
                .ttl
                .is_some_and(|(least, most)| least == most && matches!(most, 64 | 128 | 255))
        });
        match fresh {
            [true, false] => Place::Sender,
            [false, true] => Place::Receiver,
            _ => Place::Between,
        }
    }

    /// True when both ends agreed on ECN; `None` without the handshake and without a mark.
    pub fn ecn(&self) -> Option<bool> {
        if self.accurate
            || self.sides.iter().any(|side| side.ecn[1..].iter().any(|count| *count > 0))
        {
            return Some(true);
        }
        let flags = |acks: bool| {
            self.sides
                .iter()
                .filter_map(|side| side.syn_flags)
                .find(|flags| (flags & ACK != 0) == acks)
        };
        let (opener_flags, answered) = (flags(false)?, flags(true)?);
        let answer_flags = answered & (ECE | CWR | AE);
        Some(
            opener_flags & (ECE | CWR) == ECE | CWR
                && answer_flags != 0
                && answer_flags != ECE | CWR | AE,
        )
    }

    /// Method of reporting marks, if both ends agreed on ECN.
    pub fn echo(&self) -> Option<Echo> {
        if self.accurate {
            return Some(Echo::Accurate);
        }
        (self.ecn() == Some(true)).then_some(Echo::Classic)
    }

    /// The end that opened the connection without an answer: nothing, or only RST came back.
    pub fn unanswered(&self) -> Option<(usize, bool)> {
        let opener = self.sides.iter().position(|side| {
            side.syn_flags.is_some_and(|flags| flags & ACK == 0) && !side.past_opening
        })?;
        let peer = &self.sides[1 - opener];
        (peer.syns.total == 0 && !peer.past_opening).then_some((opener, peer.resets > 0))
    }

    /// The last moment of a direction.
    pub fn end(&mut self, side: usize) {
        let last_ns = self.last_ns;
        let direction = &mut self.sides[side];
        direction.half.open_window(last_ns);
        let closed = direction.half.closed();
        direction.limits.end(direction.last_ns, closed);
    }
}

impl Direction {
    /// True when this side answers the other's SYN; `None` without a SYN of its own.
    pub fn answers(&self) -> Option<bool> {
        self.syn_flags.map(|flags| flags & ACK != 0)
    }

    fn note_header(&mut self, packet: &Packet) {
        self.resets += u64::from(packet.flags & RST != 0);
        if packet.flags & SYN == 0 {
            self.past_opening |= packet.flags & RST == 0;
            self.mptcp[1] = self.mptcp[1].or(packet.mptcp);
            self.ecn[usize::from(packet.ecn)] += 1;
            self.ece += u64::from(packet.flags & ECE != 0);
        }
        let (least, most) = self.ttl.unwrap_or((packet.ttl, packet.ttl));
        self.ttl = Some((least.min(packet.ttl), most.max(packet.ttl)));
    }

    fn note_data(&mut self, packet: &Packet, kind: Kind, outstanding: i64) {
        self.first_data_ns.get_or_insert(packet.time_ns);
        self.last_ns = packet.time_ns;
        if kind == Kind::Probe {
            return;
        }
        let stamped = packet.stamps.is_some();
        if kind == Kind::New {
            self.full_size.note(&Ballot {
                payload: packet.payload,
                pushed: packet.flags & (PSH | FIN) != 0,
                released: outstanding > 0 && self.limits.releases(packet.time_ns),
                allowed: self.allowed(stamped),
            });
        }
        let full = self.full(stamped);
        let room = self.half.edge.map(|edge| edge - self.half.next);
        self.limits.on_sent(&Sending {
            at: packet.time_ns,
            pushed: packet.flags & (PSH | FIN) != 0,
            short: !packet.payload.is_multiple_of(full),
            again: kind == Kind::Again,
            room,
            full,
            outstanding,
            recovering: self.half.recovering(),
        });
    }

    /// The data of a full segment, as far as it shows.
    fn full(&self, stamped: bool) -> u32 {
        self.full_size.of(self.allowed(stamped))
    }

    /// The data that a segment may have: the MSS without the room of the time stamps, or the longest seen.
    fn allowed(&self, stamped: bool) -> u32 {
        let options = if stamped { 12 } else { 0 };
        let allowed_bytes = self.allowed.map(|mss| u32::from(mss).saturating_sub(options));
        allowed_bytes.unwrap_or(self.half.longest.min(ETHERNETS)).max(1)
    }

    /// The data of a full segment of this direction as a whole.
    pub fn full_bytes(&self) -> u32 {
        self.full(self.half.stamped())
    }

    /// Segments missing in the capture, at least.
    pub fn missing(&self) -> u64 {
        self.half.missing(self.allowed.map_or(ETHERNETS, u32::from))
    }

    fn note_sample(&mut self, sample: Sample) {
        self.onward.add(sample.ns);
        if !sample.echoed {
            self.half.note_rtt(sample.ns);
        }
        if let Some(backward) = self.backward_last_ns {
            self.both.add(sample.ns + backward);
        }
    }
}
