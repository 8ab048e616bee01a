//! Captures written by tests: A sends from sequence number 1 in segments of 1000 bytes, B acknowledges.

use dragstrip_inspect::{FlowSeries, Inspected, Session};

/// A capture in pcap's form with nanoseconds.
pub struct Trace {
    bytes: Vec<u8>,
    ids: [u16; 2],
    /// Added to every stamp, ms.
    pub clock_ms: f64,
    /// Time to live.
    pub ttl: u8,
    /// Write 0 for IP's total length.
    pub no_length: bool,
}

/// One packet's fields; the rest is as B or A have it.
#[derive(Clone, Default)]
pub struct Fields {
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    pub flags: u8,
    pub window: u16,
    pub value: u32,
    pub echo: u32,
    pub sacks: Vec<(u32, u32)>,
    pub ip_id: Option<u16>,
    pub opening: bool,
}

impl Trace {
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 262_144, 1] {
            bytes.extend(word.to_le_bytes());
        }
        Self { bytes, ids: [100, 5_000], clock_ms: 1e6, ttl: 64, no_length: false }
    }

    /// A handshake with these times of its three segments.
    pub fn opened(times: [f64; 3]) -> Self {
        Self::new().open(times)
    }

    pub fn open(mut self, times: [f64; 3]) -> Self {
        let opening = Fields { window: 512, opening: true, ..Fields::default() };
        self.add(times[0], 0, Fields { flags: 2, value: 1_000, ..opening.clone() });
        self.add(times[1], 1, Fields { flags: 18, ack: 1, value: 2_000, echo: 1_000, ..opening });
        self.add(
            times[2],
            0,
            Fields {
                seq: 1,
                ack: 1,
                flags: 16,
                window: 512,
                value: 1_040,
                echo: 2_000,
                ..Fields::default()
            },
        );
        self
    }

    /// A sends; its time stamp is 1000 plus the milliseconds.
    pub fn a(&mut self, ms: f64, seq: u32, len: u32) {
        let fields = Fields {
            seq,
            len,
            ack: 1,
            flags: 16,
            window: 512,
            value: 1_000 + ms as u32,
            echo: 2_000,
            ..Fields::default()
        };
        self.add(ms, 0, fields);
    }

    /// B acknowledges, with an echo and SACK blocks.
    pub fn b(&mut self, ms: f64, ack: u32, echo: u32, sacks: &[(u32, u32)]) {
        self.b_window(ms, ack, echo, sacks, 512);
    }

    pub fn b_window(&mut self, ms: f64, ack: u32, echo: u32, sacks: &[(u32, u32)], window: u16) {
        let fields = Fields {
            seq: 1,
            ack,
            flags: 16,
            window,
            value: 2_000 + ms as u32,
            echo,
            sacks: sacks.to_vec(),
            ..Fields::default()
        };
        self.add(ms, 1, fields);
    }

    pub fn add(&mut self, ms: f64, from: usize, fields: Fields) {
        let mut options = vec![1, 1, 8, 10];
        options.extend(fields.value.to_be_bytes());
        options.extend(fields.echo.to_be_bytes());
        if fields.opening {
            options.extend([2, 4, 0x03, 0xf4, 1, 3, 3, 7, 1, 1, 4, 2]); // MSS 1012: 1000 beside the stamps
        }
        if !fields.sacks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * fields.sacks.len() as u8]);
            for (left, right) in &fields.sacks {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        let header = 20 + options.len();
        let ip_bytes = 20 + header as u32 + fields.len;
        self.ids[from] = self.ids[from].wrapping_add(1);
        let id = fields.ip_id.unwrap_or(self.ids[from]);
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((if self.no_length { 0 } else { ip_bytes as u16 }).to_be_bytes());
        frame.extend(id.to_be_bytes());
        frame.extend([0x40, 0, self.ttl, 6, 0, 0]);
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        frame.extend(ends[from]);
        frame.extend(ends[1 - from]);
        let ports = [40_000_u16, 80];
        frame.extend(ports[from].to_be_bytes());
        frame.extend(ports[1 - from].to_be_bytes());
        frame.extend(fields.seq.to_be_bytes());
        frame.extend(fields.ack.to_be_bytes());
        frame.extend([(header as u8 / 4) << 4, fields.flags]);
        frame.extend(fields.window.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(options);
        frame.resize(14 + ip_bytes as usize, 0);
        let ns = ((ms + self.clock_ms) * 1e6).round() as u64;
        for word in [
            (ns / 1_000_000_000) as u32,
            (ns % 1_000_000_000) as u32,
            frame.len() as u32,
            frame.len() as u32,
        ] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(frame);
    }

    pub fn inspect(&self) -> Inspected {
        inspected(&[self])
    }
}

/// The columns of a capture's flows, a row per segment.
pub fn series(trace: &Trace) -> Vec<FlowSeries> {
    let mut session = Session::new(1, false).every_segment();
    session.feed(0, &trace.bytes).expect("a capture");
    session.end(0).expect("a capture");
    session.finish().2
}

/// Captures inspected together, fed in small pieces.
pub fn inspected(traces: &[&Trace]) -> Inspected {
    let mut session = Session::new(traces.len(), false);
    let mut pieces: Vec<_> = traces.iter().map(|trace| trace.bytes.chunks(333)).collect();
    while let Some(file) = session.hungry() {
        match pieces[file].next() {
            Some(piece) => session.feed(file, piece).expect("a capture"),
            None => session.end(file).expect("a capture"),
        }
    }
    session.finish().0
}
