//! A telephone modem pair: PPP over a serial port, error control, compression, a line of some kilobits. One direction.
//!
//! Sources: ITU-T V.34 (rates), V.42 (LAPM), V.42 bis; MNP 4 and 5 as Microcom published them (G. Held, The Complete Modem
//! Reference; the lengths of MNP 5's code words as in UNB's ECE4253 notes); RFC 1662 (PPP framing), RFC 1144.
//!
//! ```text
//! queue ─▶ serial port ─▶ buffer ─▶ compressor ─▶ blocks ─▶ line ─▶ serial port
//!          10 bits a byte  RTS/CTS                8 bits a byte     10 bits a byte
//! ```
//!
//! Bytes flow through: the line begins when the first block has come over the serial port, and while the line is busy with other
//! packets blocks are filled across packets. When the buffer is full the modem stops the host: what waits, waits in the queue.
//! Left out: blocks that have to be repeated, retrains, PPP's escaped bytes (0.8 % of random data).

use crate::van_jacobson::{Compressor, Header};
use dragstrip_qdisc::Line;
use dragstrip_units::{Duration, Instant, Rate};

/// Protocol between the modems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing: characters with start and stop bits.
    Async,
    /// Error control by MNP 4: 8 bytes around each block.
    Mnp4,
    /// And compression by MNP 5.
    Mnp5,
    /// Error control by V.42 (LAPM): 6 bytes around each block.
    V42,
    /// And compression by V.42 bis.
    V42bis,
}

impl Protocol {
    /// Returns the bytes that surround a block.
    const fn block_overhead(self) -> u32 {
        match self {
            Self::Async => 0,
            Self::Mnp4 | Self::Mnp5 => 8,
            Self::V42 | Self::V42bis => 6,
        }
    }

    /// Bits that a byte becomes, in 256ths, when the data shrink to 1/`ratio`.
    ///
    /// MNP 5 codes every byte by its rank among the recent ones: 4 code words of 4 bits, 4 of 5, 8, 16, 32, 64 of 6 to
    /// 9, 127 of 10, one of 11. Data without structure use all alike, 9.02 bits each. V.42 bis notices and sends them as they are.
    fn bits_per_byte_256(self, ratio: f64) -> u64 {
        let incompressible = ratio <= 1.0;
        match self {
            Self::Mnp5 if incompressible => {
                4 * 4 + 4 * 5 + 8 * 6 + 16 * 7 + 32 * 8 + 64 * 9 + 127 * 10 + 11
            }
            Self::Mnp5 | Self::V42bis if !incompressible => (8.0 * 256.0 / ratio) as u64,
            Self::Async | Self::Mnp4 | Self::Mnp5 | Self::V42 | Self::V42bis => 8 * 256,
        }
    }
}

/// A direction's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Rate of the line.
    pub rate: Rate,
    /// Rate of both serial ports.
    pub dte: Rate,
    /// Error control and compression.
    pub protocol: Protocol,
    /// Bytes in an error-control block.
    pub block_bytes: u32,
    /// Compression ratio: uncompressed to compressed size; 1: no compression.
    pub compression_ratio: f64,
    /// RFC 1144.
    pub van_jacobson: bool,
    /// Bytes that the sending modem holds.
    pub buffer_bytes: u32,
    /// Processing time of both modems together.
    pub processing: Duration,
}

/// PPP: flag, address, control, two bytes of protocol, two of check sequence, flag.
const PPP_BYTES: u32 = 8;
/// Ethernet's header, which a frame's length counts.
const ETHERNET_BYTES: u32 = 14;

/// One direction of a modem connection.
#[derive(Clone, Debug)]
pub struct Modem {
    protocol: Protocol,
    block_bytes: u32,
    bits_per_byte_256: u64,
    buffer_bytes: u32,
    processing: Duration,
    compressor: Option<Compressor>,
    /// Eight bits on these are a byte, whatever it has around it.
    near_port: Line,
    line: Line,
    far_port: Line,
    port_rate: Rate,
    line_rate: Rate,
    /// Bytes in the block that is being filled.
    filled: u32,
    /// From here on the host may send.
    clear_to_send: Instant,
}

/// Start and stop bits: eight of ten bits are data's.
fn with_start_and_stop(rate: Rate) -> Rate {
    Rate::from_bits_per_second((rate.bits_per_second() * 8 / 10).max(1)).unwrap_or(rate)
}

impl Modem {
    /// An idle connection.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let port_rate = with_start_and_stop(config.dte);
        let line_rate = match config.protocol {
            Protocol::Async => with_start_and_stop(config.rate),
            Protocol::Mnp4 | Protocol::Mnp5 | Protocol::V42 | Protocol::V42bis => config.rate,
        };
        Self {
            protocol: config.protocol,
            block_bytes: config.block_bytes,
            bits_per_byte_256: config.protocol.bits_per_byte_256(config.compression_ratio),
            buffer_bytes: config.buffer_bytes,
            processing: config.processing,
            compressor: config.van_jacobson.then(Compressor::new),
            near_port: Line::new(port_rate, 0),
            line: Line::new(line_rate, 0),
            far_port: Line::new(port_rate, 0),
            port_rate,
            line_rate,
            filled: 0,
            clear_to_send: Instant::ZERO,
        }
    }

    /// The instant from which the next frame may be sent.
    #[must_use]
    pub fn free(&self) -> Instant {
        self.clear_to_send
    }

    /// Returns the bytes that a packet takes on the line; `idle`: with no block to share with the packet before.
    fn line_bytes(&mut self, bytes: u32, idle: bool) -> u32 {
        let coded = (u64::from(bytes) * self.bits_per_byte_256).div_ceil(8 * 256) as u32;
        if self.protocol == Protocol::Async {
            return coded;
        }
        if idle {
            self.filled = 0;
        }
        let before = self.filled.div_ceil(self.block_bytes);
        let blocks = (self.filled + coded).div_ceil(self.block_bytes) - before;
        self.filled = (self.filled + coded) % self.block_bytes;
        coded + blocks * self.protocol.block_overhead()
    }

    /// Sends a frame whose TCP header is `header`; returns when the other end has it.
    pub fn send(&mut self, len: u32, now: Instant, header: Option<Header>) -> Instant {
        let saved = match (&mut self.compressor, &header) {
            (Some(compressor), Some(header)) => {
                header.segment.header_len() - compressor.compress(header)
            }
            _ => 0,
        };
        let bytes = len.saturating_sub(ETHERNET_BYTES) - saved + PPP_BYTES;
        let in_modem = self.near_port.send(bytes, now);
        let line_bytes = self.line_bytes(bytes, now > self.line.free());
        let time = |rate: Rate, bytes: u32| {
            let (time, _) = rate.time_for_floor(u64::from(bytes), 0);
            time
        };
        // A block is sent when it is complete, and the last one not before the host has sent it.
        let block = self.block_bytes.min(bytes);
        let first = now + time(self.port_rate, block);
        let line_time = time(self.line_rate, line_bytes);
        let last = in_modem + line_time * u64::from(block) / u64::from(bytes);
        let begin = first.max(earlier(last, line_time));
        let line_end = self.line.send(line_bytes, begin);
        let buffered = line_time * u64::from(self.buffer_bytes) / u64::from(bytes);
        self.clear_to_send = in_modem.max(earlier(line_end, buffered));
        // The far port hands on block by block what the line brings.
        let last = line_end + time(self.port_rate, block);
        let begin = earlier(last, time(self.port_rate, bytes));
        self.far_port.send(bytes, begin) + self.processing
    }
}

fn earlier(at: Instant, span: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(span.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_packet::{Flags, Segment};

    fn config(bps: u64, protocol: Protocol) -> Config {
        Config {
            rate: Rate::from_bits_per_second(bps).unwrap(),
            dte: Rate::from_bits_per_second(115_200).unwrap(),
            protocol,
            block_bytes: if protocol.block_overhead() == 8 { 256 } else { 128 },
            compression_ratio: 1.0,
            van_jacobson: false,
            buffer_bytes: 2048,
            processing: Duration::from_millis(30),
        }
    }

    /// Bytes of PPP a second, of a connection that never waits for the host.
    fn bytes_per_second(config: &Config) -> f64 {
        let mut modem = Modem::new(config);
        let (packets, len) = (400, 1492 + ETHERNET_BYTES);
        let mut now = Instant::ZERO;
        let mut arrived = Vec::new();
        for _ in 0..packets {
            arrived.push(modem.send(len, now, None));
            now = modem.free();
        }
        let seconds = (arrived[packets - 1].as_nanos() - arrived[0].as_nanos()) as f64 / 1e9;
        (packets - 1) as f64 * 1500.0 / seconds
    }

    #[test]
    fn error_control_gains_what_start_and_stop_bits_cost() {
        for (bps, plain, lapm, mnp4) in [
            (28_800, 2880.0, 3439.0, 3491.0),
            (26_400, 2640.0, 3152.0, 3200.0),
            (24_000, 2400.0, 2866.0, 2909.0),
        ] {
            for (protocol, expected) in
                [(Protocol::Async, plain), (Protocol::V42, lapm), (Protocol::Mnp4, mnp4)]
            {
                let throughput = bytes_per_second(&config(bps, protocol));
                assert!((throughput - expected).abs() < 1.0, "{bps} {protocol:?}: {throughput}");
            }
        }
    }

    #[test]
    fn small_blocks_cost_what_surrounds_them() {
        let small = Config { block_bytes: 64, ..config(28_800, Protocol::Mnp4) };
        assert!((bytes_per_second(&small) - 3600.0 * 64.0 / 72.0).abs() < 1.0);
    }

    #[test]
    fn text_is_limited_by_the_serial_port_and_compressed_data_by_the_line() {
        let of = |protocol, compression_ratio| {
            bytes_per_second(&Config { compression_ratio, ..config(28_800, protocol) })
        };
        // Three to one: 3439 and 3491 bytes a second carry three times as many.
        assert!((of(Protocol::V42bis, 3.0) - 3.0 * 3439.0).abs() < 15.0);
        assert!((of(Protocol::V42bis, 4.0) - 11_520.0).abs() < 15.0);
        assert!((of(Protocol::V42bis, 1.0) - 3439.0).abs() < 1.0);
        // MNP 5 makes 2309 bits of 2048.
        assert!((of(Protocol::Mnp5, 1.0) - 3490.9 * 2048.0 / 2309.0).abs() < 2.0);
        assert!((of(Protocol::Mnp5, 2.0) - 2.0 * 3490.9).abs() < 10.0);
    }

    #[test]
    fn a_large_packet_takes_436_ms_on_the_line_and_a_ping_110_to_160_there_and_back() {
        let mut modem = Modem::new(&config(28_800, Protocol::V42));
        modem.send(1492 + ETHERNET_BYTES, Instant::ZERO, None);
        // The first block's 11 ms over the serial port come before.
        let line_ms = modem.line.free().as_nanos() as f64 / 1e6 - 128.0 / 11.52;
        assert!((line_ms - 436.7).abs() < 0.5, "{line_ms}");
        let mut idle = Modem::new(&config(28_800, Protocol::V42));
        let one_way = idle.send(64 + 20 + ETHERNET_BYTES, Instant::ZERO, None);
        let both_ms = 2.0 * one_way.as_nanos() as f64 / 1e6;
        assert!((110.0..160.0).contains(&both_ms), "{both_ms}");
    }

    #[test]
    fn the_host_may_send_as_far_ahead_as_the_buffer_goes() {
        let mut modem = Modem::new(&config(28_800, Protocol::V42));
        let mut now = Instant::ZERO;
        for _ in 0..20 {
            modem.send(1492 + ETHERNET_BYTES, now, None);
            now = modem.free();
            let ahead_s = modem.line.free().since(now).as_secs_f64();
            assert!(ahead_s * 3439.0 < 2048.0 + 150.0, "{ahead_s}");
        }
        let ahead_s = modem.line.free().since(now).as_secs_f64();
        assert!((ahead_s * 3439.0 - 2048.0).abs() < 20.0, "{ahead_s}");
    }

    #[test]
    fn header_compression_makes_an_ack_of_40_bytes_one_of_6() {
        let header = |ack| {
            let mut segment = Segment::new(1, 0, Flags::ACK);
            (segment.ack, segment.window) = (ack, 32_120);
            Header { connection: 1, segment }
        };
        let mut modem = Modem::new(&Config { van_jacobson: true, ..config(28_800, Protocol::V42) });
        let mut took = |ack, now| modem.send(54, now, Some(header(ack))).since(now);
        let whole = took(1, Instant::ZERO);
        let compressed = took(689, Instant::from_nanos(1_000_000_000));
        // 34 bytes less on two serial ports (whole blocks) and on the line.
        let saved_ms = (whole.as_nanos() - compressed.as_nanos()) as f64 / 1e6;
        assert!((saved_ms - 34.0 * (1.0 / 11.52 * 2.0 + 1.0 / 3.6)).abs() < 0.01, "{saved_ms}");
    }
}
