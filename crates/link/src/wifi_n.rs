//! 802.11n: the same contention, but what waits goes out as one aggregate (A-MPDU).
//!
//! Source: IEEE 802.11n-2009, clauses 7.4A (A-MPDU), 9.10.7 (block ACK), 20 (HT PHY); air time limit of an aggregate from
//! Linux's ath9k (4 ms). A full frame takes 95 µs of air at 130 Mbit/s and one access costs 260 µs more whatever it carries, so the
//! link serves a long queue three times as fast as a queue of one packet.

use crate::dcf::{Dcf, Timing};
use dragstrip_units::Duration;

/// Data bits in an OFDM symbol of one stream, MCS 0–7, at 20 and at 40 MHz (clause 20.6).
const BITS_20MHZ: [u64; 8] = [26, 52, 78, 104, 156, 208, 234, 260];
const BITS_40MHZ: [u64; 8] = [54, 108, 162, 216, 324, 432, 486, 540];

/// The highest modulation and coding scheme of two streams.
pub const MCS_MAX: u8 = 15;

/// 2.4 or 5 GHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// SIFS 10 µs, and 6 µs of silence behind each frame.
    Ghz2,
    /// SIFS 16 µs.
    Ghz5,
}

/// A cell's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Modulation and coding scheme, 0 to [`MCS_MAX`]; above 7 with two streams. 15 is 130 Mbit/s at 20 MHz.
    pub mcs: u8,
    /// Two channels together.
    pub wide_40mhz: bool,
    /// Guard interval of 400 instead of 800 ns.
    pub short_guard: bool,
    /// Band.
    pub band: Band,
    /// Frames in an aggregate, at most 64 (the block ACK's bitmap).
    pub frames_max: usize,
    /// Bytes in an aggregate, at most 65,535.
    pub bytes_max: u64,
    /// Air time of an aggregate.
    pub air_time_max: Duration,
    /// Probability that a subframe arrives damaged.
    pub frame_error: f64,
}

const SLOT_NS: u64 = 9_000;
/// Mixed format: L-STF, L-LTF, L-SIG 20; HT-SIG 8, HT-STF 4; HT-LTF 4 for each stream.
const HT_PREAMBLE_NS: u64 = 32_000;
const HT_LTF_NS: u64 = 4_000;
/// MAC header 26 with QoS, LLC/SNAP 8, FCS 4.
const MAC_BYTES: u64 = 38;
const DELIMITER_BYTES: u64 = 4;
/// A compressed block ACK, 32 bytes, and an ACK, 14 bytes, at 24 and at 6 Mbit/s.
const BLOCK_ACK_NS: u64 = 32_000;
const ACK_6MBPS_NS: u64 = 44_000;

pub(crate) fn timing(config: &Config) -> Timing {
    let (sifs, extension) = match config.band {
        Band::Ghz2 => (10_000, 6_000),
        Band::Ghz5 => (16_000, 0),
    };
    let bits = if config.wide_40mhz { BITS_40MHZ } else { BITS_20MHZ };
    let streams = 1 + u64::from(config.mcs / 8);
    Timing {
        slot: Duration::from_nanos(SLOT_NS),
        // EDCA, best effort: AIFSN 3.
        inter_frame: Duration::from_nanos(sifs + 3 * SLOT_NS),
        preamble: Duration::from_nanos(HT_PREAMBLE_NS + streams * HT_LTF_NS + extension),
        symbol_ns: if config.short_guard { 3_600 } else { 4_000 },
        bits_per_symbol: bits[usize::from(config.mcs % 8)] * streams,
        service_bits: 16 + 6,
        mac_bytes: MAC_BYTES,
        delimiter_bytes: DELIMITER_BYTES,
        protection: Duration::ZERO,
        response: Duration::from_nanos(sifs + BLOCK_ACK_NS + extension),
        recovery: Duration::from_nanos(sifs + ACK_6MBPS_NS + extension),
        frames_max: config.frames_max,
        bytes_max: config.bytes_max,
        air_time_max: config.air_time_max,
    }
}

impl Dcf {
    /// An 802.11n cell of so many stations.
    #[must_use]
    pub fn wifi_n(config: &Config, stations: usize, seed: u64, name: &str) -> Self {
        Self::new(timing(config), stations, config.frame_error, seed, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::SharedMedium;
    use crate::testing::{Rings, mean_cycle_ns};
    use dragstrip_units::Instant;

    const FULL: u32 = 1514;

    fn config() -> Config {
        Config {
            mcs: 15,
            wide_40mhz: false,
            short_guard: false,
            band: Band::Ghz5,
            frames_max: 32,
            bytes_max: 65_535,
            air_time_max: Duration::from_millis(4),
            frame_error: 0.0,
        }
    }

    /// Goodput of a station whose ring always holds `waiting` frames.
    fn goodput_mbps(waiting: usize) -> f64 {
        let mut cell = Dcf::wifi_n(&config(), 1, 1, "cell");
        let mut rings = Rings::saturated(1, FULL, waiting);
        let cycle = mean_cycle_ns(&mut cell, &mut rings, 5_000);
        rings.delivered[0] as f64 / 5_000.0 * 1448.0 * 8.0 / cycle * 1e3
    }

    #[test]
    fn rates_are_the_standards() {
        let rate_mbps = |mcs, wide_40mhz, short_guard| {
            let timing = timing(&Config { mcs, wide_40mhz, short_guard, ..config() });
            timing.bits_per_symbol as f64 * 1e3 / timing.symbol_ns as f64
        };
        assert_eq!((rate_mbps(0, false, false), rate_mbps(15, false, false)), (6.5, 130.0));
        assert_eq!((rate_mbps(15, true, false), rate_mbps(15, true, true)), (270.0, 300.0));
    }

    /// AIFS 43, backoff 67.5, preamble 40, SIFS 16, block ACK 32: 198.5 µs whatever is sent; a subframe of 1544 bytes
    /// 95 µs at 130 Mbit/s.
    #[test]
    fn the_more_waits_the_faster_it_goes() {
        for (waiting, expected) in [(1, 39.5), (4, 80.1), (16, 107.8), (32, 114.4)] {
            let goodput = goodput_mbps(waiting);
            assert!((goodput / expected - 1.0).abs() < 0.01, "{waiting}: {goodput}");
        }
    }

    #[test]
    fn an_aggregate_is_bounded_by_frames_bytes_and_air_time() {
        let count = |config: Config| {
            let mut cell = Dcf::wifi_n(&config, 1, 1, "cell");
            let mut rings = Rings::saturated(1, FULL, 100);
            cell.offered(0, Instant::ZERO);
            cell.transmit(cell.due(), &mut rings);
            rings.delivered[0]
        };
        assert_eq!(count(config()), 32);
        let air_time_max = Duration::from_millis(10);
        assert_eq!(count(Config { frames_max: 64, air_time_max, ..config() }), 65_535 / 1544);
        assert_eq!(count(Config { frames_max: 64, ..config() }), 41);
        assert_eq!(count(Config { mcs: 0, ..config() }), 2);
    }

    #[test]
    fn a_damaged_subframe_holds_back_what_came_after_it_and_nothing_is_reordered() {
        let mut cell = Dcf::wifi_n(&Config { frame_error: 0.1, ..config() }, 1, 1, "cell");
        let mut rings = Rings::saturated(1, FULL, 32);
        mean_cycle_ns(&mut cell, &mut rings, 2_000);
        assert!(rings.order[0].is_sorted());
        assert_eq!(rings.lost[0], 0, "0.1^7 of 50,000");
        let per_access = rings.delivered[0] as f64 / 2_000.0;
        assert!((15.0..28.0).contains(&per_access), "{per_access}");
    }
}
