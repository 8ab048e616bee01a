//! ADSL over ATM: packets cut into cells, cells carried by symbols, symbols interleaved. One direction.
//!
//! Sources: ITU-T G.992.1 (symbols of 250 µs, interleaving), RFC 2684 (AAL5), RFC 2516 (PPPoE), RFC 1661 (PPP).
//! `cells = ceil((IP packet + encapsulation) / 48)`, 53 bytes each at the synchronisation rate.

use dragstrip_qdisc::Line;
use dragstrip_units::{Duration, Instant, Rate};

/// Encapsulation of an IP packet, in bytes, AAL5's trailer included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// PPP 2, PPPoE 6, Ethernet 14, LLC/SNAP and padding 10, AAL5 8.
    PppoeLlc,
    /// PPP 2, PPPoE 6, Ethernet 14, padding 2, AAL5 8.
    PppoeVcMux,
    /// PPP 2, AAL5 8.
    PppoaVcMux,
}

impl Encapsulation {
    const fn bytes(self) -> u32 {
        match self {
            Self::PppoeLlc => 40,
            Self::PppoeVcMux => 32,
            Self::PppoaVcMux => 10,
        }
    }
}

/// A direction's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Synchronisation rate: counts the bits of cells.
    pub rate: Rate,
    /// Around the IP packet.
    pub encapsulation: Encapsulation,
    /// End-to-end delay of interleaving (or, without it, the fast path).
    pub interleaving: Duration,
}

const CELL_PAYLOAD_BYTES: u32 = 48;
const CELL_BYTES: u32 = 53;
const SYMBOL_NS: u64 = 250_000;
/// Ethernet's header, which a frame's length counts.
const ETHERNET_BYTES: u32 = 14;

/// One direction of a line.
#[derive(Clone, Debug)]
pub struct Adsl {
    line: Line,
    encapsulation_bytes: u32,
    interleaving: Duration,
}

impl Adsl {
    /// An idle line.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            line: Line::new(config.rate, 0),
            encapsulation_bytes: config.encapsulation.bytes(),
            interleaving: config.interleaving,
        }
    }

    /// Returns the bytes that a frame occupies on the line.
    fn wire_bytes(&self, len: u32) -> u32 {
        let packet = len.saturating_sub(ETHERNET_BYTES) + self.encapsulation_bytes;
        packet.div_ceil(CELL_PAYLOAD_BYTES) * CELL_BYTES
    }

    /// The instant from which the next frame may be sent.
    #[must_use]
    pub fn free(&self) -> Instant {
        self.line.free()
    }

    /// Sends a frame; returns when the other end has it: at the end of the symbol that carries its last bit, and the interleaver later.
    pub fn send(&mut self, len: u32, now: Instant) -> Instant {
        let end = self.line.send(self.wire_bytes(len), now).as_nanos();
        Instant::from_nanos(end.next_multiple_of(SYMBOL_NS)) + self.interleaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kbps: u64, encapsulation: Encapsulation) -> Adsl {
        let rate = Rate::from_bits_per_second(kbps * 1000).unwrap();
        Adsl::new(&Config { rate, encapsulation, interleaving: Duration::ZERO })
    }

    /// Time on the line in µs of an IP packet, before it is rounded up to a symbol.
    fn time_us(kbps: u64, encapsulation: Encapsulation, ip_bytes: u32) -> f64 {
        let mut line = line(kbps, encapsulation);
        line.send(ip_bytes + ETHERNET_BYTES, Instant::ZERO);
        line.free().as_nanos() as f64 / 1e3
    }

    #[test]
    fn packets_cost_whole_cells() {
        use Encapsulation::{PppoaVcMux, PppoeLlc, PppoeVcMux};
        for (ip_bytes, encapsulation, down_us, up_us) in [
            (1492, PppoeLlc, 8833.3, 53_000.0),
            (1492, PppoeVcMux, 8833.3, 53_000.0),
            (1500, PppoaVcMux, 8833.3, 53_000.0),
            (106, PppoeLlc, 1104.2, 6625.0),
            (106, PppoeVcMux, 828.1, 4968.75),
            (52, PppoeLlc, 552.1, 3312.5),
        ] {
            assert!((time_us(1536, encapsulation, ip_bytes) - down_us).abs() < 0.1, "{ip_bytes}");
            assert!((time_us(256, encapsulation, ip_bytes) - up_us).abs() < 0.1, "{ip_bytes}");
        }
        assert_eq!((1440.0 * 8.0 / time_us(1536, PppoeLlc, 1492) * 1e3).round(), 1304.0);
    }

    #[test]
    fn frames_arrive_with_symbols_and_the_line_itself_loses_nothing_by_it() {
        let mut line = line(1536, Encapsulation::PppoeLlc);
        let arrivals: Vec<u64> =
            (0..3).map(|_| line.send(1506, Instant::ZERO).as_micros_floor()).collect();
        assert_eq!(arrivals, [9000, 17_750, 26_500]);
        assert_eq!(line.free().as_micros_floor(), 26_500);
    }

    #[test]
    fn interleaving_delays_and_takes_no_capacity() {
        let rate = Rate::from_bits_per_second(1_536_000).unwrap();
        let encapsulation = Encapsulation::PppoeLlc;
        let interleaving = Duration::from_millis(12);
        let mut line = Adsl::new(&Config { rate, encapsulation, interleaving });
        assert_eq!(line.send(1506, Instant::ZERO).as_micros_floor(), 21_000);
        assert_eq!(line.free().as_micros_floor(), 8833);
    }
}
