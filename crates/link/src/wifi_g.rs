//! 802.11g: OFDM in the 2.4 GHz band, frame by frame.
//!
//! Source: IEEE 802.11-2007, clauses 9 (DCF) and 19 (ERP-OFDM). One station's saturated cycle of a full frame at
//! 54 Mbit/s: DIFS 28 + 7.5 slots × 9 + data 254 + SIFS 10 + ACK 34 = 393.5 µs.

use crate::dcf::{Dcf, Timing};
use dragstrip_units::Duration;

/// The slot time: short only if every associated station is 802.11g (clause 19.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// 9 µs.
    Short,
    /// 20 µs: an 802.11b station is associated, or the network is ad hoc.
    Long,
}

/// CTS-to-self in front of every OFDM frame, for the sake of 802.11b stations (clause 9.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// None.
    Off,
    /// At 11 Mbit/s with the short preamble.
    ShortPreamble,
    /// At 11 Mbit/s with the long preamble.
    LongPreamble,
}

/// Mandatory rates, in which ACKs answer: the highest that is not above the data's (clause 9.6).
const BASIC_RATES_MBPS: [u64; 3] = [24, 12, 6];

const SIFS_NS: u64 = 10_000;
/// Training sequences and SIGNAL 20 µs, and the 6 µs of silence behind an ERP-OFDM frame.
const PREAMBLE_NS: u64 = 20_000 + 6_000;
const SYMBOL_NS: u64 = 4_000;
const ACK_BYTES: u64 = 14;
/// MAC header 24, LLC/SNAP 8, FCS 4.
const MAC_BYTES: u64 = 36;

/// A cell's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// One of ERP-OFDM's rates: 6, 9, 12, 18, 24, 36, 48, 54 (clause 17.3.2.2).
    pub rate_mbps: u64,
    /// Slot time.
    pub slot: Slot,
    /// CTS-to-self.
    pub protection: Protection,
    /// Probability that a frame arrives damaged.
    pub frame_error: f64,
}

fn ofdm(bytes: u64, rate_mbps: u64) -> Duration {
    let symbols = (22 + 8 * bytes).div_ceil(4 * rate_mbps);
    Duration::from_nanos(PREAMBLE_NS + symbols * SYMBOL_NS)
}

pub(crate) fn timing(config: &Config) -> Timing {
    let slot = match config.slot {
        Slot::Short => 9_000,
        Slot::Long => 20_000,
    };
    let sifs = Duration::from_nanos(SIFS_NS);
    let basic = BASIC_RATES_MBPS.into_iter().find(|basic| *basic <= config.rate_mbps).unwrap_or(6);
    // A CTS has 14 bytes: 10.18 µs at 11 Mbit/s, behind a DSSS preamble.
    let cts = |preamble_us: u64| Duration::from_nanos(preamble_us * 1_000 + 10_182 + SIFS_NS);
    Timing {
        slot: Duration::from_nanos(slot),
        inter_frame: Duration::from_nanos(SIFS_NS + 2 * slot),
        preamble: Duration::from_nanos(PREAMBLE_NS),
        symbol_ns: SYMBOL_NS,
        bits_per_symbol: 4 * config.rate_mbps,
        service_bits: 16 + 6,
        mac_bytes: MAC_BYTES,
        delimiter_bytes: 0,
        protection: match config.protection {
            Protection::Off => Duration::ZERO,
            Protection::ShortPreamble => cts(96),
            Protection::LongPreamble => cts(192),
        },
        response: sifs + ofdm(ACK_BYTES, basic),
        recovery: sifs + ofdm(ACK_BYTES, 6),
        frames_max: 1,
        bytes_max: u64::MAX,
        air_time_max: Duration::MAX,
    }
}

impl Dcf {
    /// An 802.11g cell of so many stations.
    #[must_use]
    pub fn wifi_g(config: &Config, stations: usize, seed: u64, name: &str) -> Self {
        Self::new(timing(config), stations, config.frame_error, seed, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rings, mean_cycle_ns};

    const FULL: u32 = 1514;
    const ACK: u32 = 66;

    fn config(rate_mbps: u64, slot: Slot, protection: Protection) -> Config {
        Config { rate_mbps, slot, protection, frame_error: 0.0 }
    }

    /// A lone station's mean cycle, in theory: 7.5 slots of backoff.
    fn cycle_us(config: &Config, len: u32) -> f64 {
        let timing = timing(config);
        let air = timing.air_time(timing.frame_bytes(len));
        let fixed = timing.inter_frame + timing.protection + air + timing.response;
        (fixed.as_nanos() as f64 + 7.5 * timing.slot.as_nanos() as f64) / 1e3
    }

    /// Payload of 1448 bytes a frame, `acks` TCP ACKs for each.
    fn goodput_mbps(config: &Config, acks: f64) -> f64 {
        1448.0 * 8.0 / (cycle_us(config, FULL) + acks * cycle_us(config, ACK))
    }

    #[test]
    fn frames_and_cycles_last_as_the_standard_adds_up() {
        let short = config(54, Slot::Short, Protection::Off);
        let timing = timing(&short);
        assert_eq!(timing.air_time(timing.frame_bytes(FULL)).as_nanos(), 254_000);
        assert_eq!(timing.air_time(timing.frame_bytes(ACK)).as_nanos(), 42_000);
        assert_eq!((cycle_us(&short, FULL), cycle_us(&short, ACK)), (393.5, 181.5));
        let long = config(54, Slot::Long, Protection::Off);
        assert_eq!((cycle_us(&long, FULL), cycle_us(&long, ACK)), (498.0, 286.0));
    }

    #[test]
    fn the_table_of_goodputs_without_collisions() {
        use Protection::{LongPreamble, Off, ShortPreamble};
        for (rate, slot, expected) in [
            (54, Slot::Short, [29.9, 23.9, 20.1, 17.6, 14.4]),
            (48, Slot::Short, [27.7, 22.4, 19.1, 16.8, 13.9]),
            (36, Slot::Short, [23.1, 19.2, 16.6, 14.9, 12.6]),
            (54, Slot::Long, [23.6, 18.1, 14.8, 14.2, 12.1]),
            (48, Slot::Long, [22.2, 17.2, 14.2, 13.7, 11.7]),
            (24, Slot::Short, [17.3, 14.8, 13.2, 12.1, 10.5]),
        ] {
            let goodputs = [
                goodput_mbps(&config(rate, slot, Off), 0.0),
                goodput_mbps(&config(rate, slot, Off), 0.5),
                goodput_mbps(&config(rate, slot, Off), 1.0),
                goodput_mbps(&config(rate, slot, ShortPreamble), 0.5),
                goodput_mbps(&config(rate, slot, LongPreamble), 0.5),
            ];
            for (goodput, expected) in goodputs.into_iter().zip(expected) {
                assert!(
                    (goodput / expected - 1.0).abs() < 0.02,
                    "{rate} {slot:?}: {goodput} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_saturated_station_cycles_as_computed() {
        let config = config(54, Slot::Short, Protection::Off);
        let mut cell = Dcf::wifi_g(&config, 1, 1, "cell");
        let cycle = mean_cycle_ns(&mut cell, &mut Rings::saturated(1, FULL, 1), 20_000);
        assert!((cycle / 393_500.0 - 1.0).abs() < 0.005, "{cycle}");
    }

    #[test]
    fn two_saturated_stations_share_evenly_and_collide_as_bianchi_says() {
        let config = config(54, Slot::Short, Protection::Off);
        let mut cell = Dcf::wifi_g(&config, 2, 1, "cell");
        let mut rings = Rings::saturated(2, FULL, 1);
        mean_cycle_ns(&mut cell, &mut rings, 40_000);
        let (one, two) = (rings.delivered[0] as f64, rings.delivered[1] as f64);
        assert!((one / two - 1.0).abs() < 0.03, "{one} {two}");
        // Bianchi (2000), eq. 7 and 9, for W = 16, m = 6 and two stations: p = tau = 0.105.
        let collisions = 40_000.0 - one - two;
        let share = 2.0 * collisions / (2.0 * collisions + one + two);
        assert!((share - 0.105).abs() < 0.01, "{share}");
    }

    #[test]
    fn noise_repeats_frames_and_seven_failures_give_one_up() {
        let noisy = Config { frame_error: 0.5, ..config(54, Slot::Short, Protection::Off) };
        let mut cell = Dcf::wifi_g(&noisy, 1, 1, "cell");
        let mut rings = Rings::saturated(1, FULL, 1);
        mean_cycle_ns(&mut cell, &mut rings, 50_000);
        let (through, lost) = (rings.delivered[0] as f64, rings.lost[0] as f64);
        assert!((through / 50_000.0 - 0.5).abs() < 0.01);
        assert!((lost / (through + lost) - 1.0 / 128.0).abs() < 0.002, "{lost} {through}");
    }
}
