//! HomePlug AV: powerline adapters that send what waits in one burst, and contend as IEEE 1901 says.
//!
//! Sources: HomePlug AV white paper (2005); IEEE 1901-2010 with its timing as quoted by Latchman et al., "HomePlug AV and IEEE 1901"
//! (Wiley 2013); contention windows and deferral counters after Vlachou, Banchs, Herzen, Thiran (ICNP 2014), from memory.
//!
//! ```text
//! PRS0 PRS1 │ backoff │ delimiter │ payload │ RIFS │ SACK │ CIFS        658 µs and the payload
//! ```
//!
//! Frames become a stream of bytes that is cut into physical blocks of 512; a frame may end in the next burst. Damaged blocks are
//! repeated within milliseconds; that, and the mean of the tone maps, is one efficiency factor here. All traffic has
//! one priority (CA1). Left out: bursts of several MPDUs, bridging between priorities. 802.3x PAUSE is a question of what is in
//! front: with it the sender's own queue waits, without it the adapter's.

use crate::contention::{Contention, Rules, Window};
use crate::shared::{Air, SharedMedium};
use dragstrip_units::{Duration, Instant, Stream};

/// An adapter pair's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Raw rate as the adapters report it.
    pub phy_bps: u64,
    /// Share of the code's information rate (16/21 of the raw rate) that gets through: tone maps, repeated blocks.
    pub efficiency: f64,
    /// Longest payload of a burst.
    pub payload_max: Duration,
    /// The beacon region, at the beginning of each beacon period, in which nobody else transmits.
    pub beacon: Duration,
    /// Two cycles of the mains: 40 ms at 50 Hz.
    pub beacon_period: Duration,
}

const SLOT_NS: u64 = 35_840;
const CIFS_NS: u64 = 100_000;
const RIFS_NS: u64 = 140_000;
/// Preamble and frame control; a selective acknowledgement is nothing else.
const DELIMITER_NS: u64 = 110_480;
/// Everybody else's wait after a frame that nobody understood.
const EIFS_NS: u64 = 2_920_640;
const SYMBOL_NS: u64 = 46_520;
const BLOCK_BYTES: u64 = 512;
/// With header and check sequence.
const BLOCK_WIRE_BITS: u64 = 520 * 8;

const fn window(slots: u32, deferrals: u32) -> Window {
    Window { slots, deferrals: Some(deferrals) }
}

/// CA0 and CA1.
const WINDOWS: &[Window] = &[window(8, 0), window(16, 1), window(32, 3), window(64, 15)];

/// A powerline.
#[derive(Clone, Debug)]
pub struct HomePlug {
    contention: Contention,
    transmitting: Vec<usize>,
    bits_per_symbol: u64,
    symbols_max: u64,
    beacon: Duration,
    beacon_period: Duration,
    /// Offset of the start of the run in a beacon period: the phase of the mains.
    phase_ns: u64,
}

impl HomePlug {
    /// A powerline with so many adapters.
    #[must_use]
    pub fn new(config: &Config, stations: usize, seed: u64, name: &str) -> Self {
        let rules = Rules {
            // CIFS and the two priority resolution slots.
            inter_frame: Duration::from_nanos(CIFS_NS + 2 * SLOT_NS),
            slot: Duration::from_nanos(SLOT_NS),
            windows: WINDOWS,
            after_every_transmission: false,
        };
        let stream = Stream::named(seed, &format!("medium/{name}/backoff"));
        let mut mains = Stream::named(seed, &format!("medium/{name}/mains"));
        let raw_bits = config.phy_bps as f64 * SYMBOL_NS as f64 / 1e9;
        Self {
            contention: Contention::new(rules, stations, stream),
            transmitting: Vec::new(),
            bits_per_symbol: ((raw_bits * 16.0 / 21.0 * config.efficiency) as u64).max(1),
            symbols_max: (config.payload_max.as_nanos() / SYMBOL_NS).max(1),
            beacon: config.beacon,
            beacon_period: config.beacon_period,
            phase_ns: mains.next_u64() % config.beacon_period.as_nanos(),
        }
    }

    /// Payload bytes of the longest burst: whole blocks.
    fn burst_bytes_max(&self) -> u64 {
        (self.symbols_max * self.bits_per_symbol / BLOCK_WIRE_BITS).max(1) * BLOCK_BYTES
    }

    fn payload_time(&self, bytes: u64) -> Duration {
        let bits = bytes.div_ceil(BLOCK_BYTES) * BLOCK_WIRE_BITS;
        Duration::from_nanos(bits.div_ceil(self.bits_per_symbol) * SYMBOL_NS)
    }

    /// Bytes of the next burst.
    fn waiting_bytes<A: Air>(&self, station: usize, air: &mut A) -> u64 {
        let frames = air.ring(station).frames.iter();
        let bytes: u64 =
            frames.map(|frame| u64::from(frame.item.len) - u64::from(frame.sent_bytes)).sum();
        bytes.min(self.burst_bytes_max())
    }

    /// The end of the beacon region, if a burst of this length would reach into it.
    fn beacon_in_the_way(&self, now: Instant, length: Duration) -> Option<Instant> {
        let period = self.beacon_period.as_nanos();
        let into_period = (now.as_nanos() + self.phase_ns) % period;
        if into_period < self.beacon.as_nanos() {
            return Some(now + Duration::from_nanos(self.beacon.as_nanos() - into_period));
        }
        let reaches = self.beacon > Duration::ZERO && into_period + length.as_nanos() > period;
        reaches.then(|| now + Duration::from_nanos(period - into_period) + self.beacon)
    }

    fn burst<A: Air>(&mut self, station: usize, now: Instant, air: &mut A) -> Instant {
        let bytes = self.waiting_bytes(station, air);
        let end = now + Duration::from_nanos(DELIMITER_NS) + self.payload_time(bytes);
        let mut remaining_bytes = bytes;
        while let Some(head) = air.ring(station).frames.front_mut() {
            let rest = u64::from(head.item.len) - u64::from(head.sent_bytes);
            if rest > remaining_bytes {
                head.sent_bytes += remaining_bytes as u32;
                break;
            }
            remaining_bytes -= rest;
            if let Some(item) = air.ring(station).pop() {
                air.delivered(station, item, end);
            }
        }
        self.contention.finished(station);
        end + Duration::from_nanos(RIFS_NS + DELIMITER_NS)
    }
}

impl SharedMedium for HomePlug {
    fn offered(&mut self, station: usize, now: Instant) {
        self.contention.offered(station, now);
    }

    fn due(&self) -> Instant {
        self.contention.due()
    }

    fn transmit<A: Air>(&mut self, now: Instant, air: &mut A) {
        let mut stations = std::mem::take(&mut self.transmitting);
        self.contention.begin(now, &mut stations);
        let free = self.access(&stations, now, air);
        self.contention.busy_until(free);
        self.transmitting = stations;
    }
}

impl HomePlug {
    /// These stations begin at `now`; the answer is when the channel is free again.
    fn access<A: Air>(&mut self, stations: &[usize], now: Instant, air: &mut A) -> Instant {
        let longest = stations.iter().map(|&station| self.waiting_bytes(station, air)).max();
        let Some(longest) = longest else { return now };
        let length = self.payload_time(longest) + Duration::from_nanos(2 * DELIMITER_NS + RIFS_NS);
        if let Some(clear) = self.beacon_in_the_way(now, length) {
            // Everyone contends anew behind the beacons.
            return clear;
        }
        match stations[..] {
            [station] => self.burst(station, now, air),
            _ => {
                for &station in stations {
                    self.contention.failed(station);
                }
                now + Duration::from_nanos(EIFS_NS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rings, mean_cycle_ns};

    fn config(phy_mbps: u64) -> Config {
        Config {
            phy_bps: phy_mbps * 1_000_000,
            efficiency: 1.0,
            payload_max: Duration::from_micros(2050),
            beacon: Duration::ZERO,
            beacon_period: Duration::from_millis(40),
        }
    }

    fn line(config: &Config, stations: usize) -> HomePlug {
        HomePlug::new(config, stations, 1, "line")
    }

    #[test]
    fn an_access_costs_658_us_beside_its_payload() {
        let mut line = line(&config(107), 1);
        let payload = line.payload_time(line.burst_bytes_max());
        let cycle = mean_cycle_ns(&mut line, &mut Rings::saturated(1, 1514, 32), 20_000);
        let fixed_us = (cycle - payload.as_nanos() as f64) / 1e3;
        assert!((fixed_us - 658.1).abs() < 2.0, "{fixed_us}");
    }

    #[test]
    fn one_way_and_with_acks_as_the_fact_sheet_computes() {
        for (phy, expected) in [(107, 60.8), (143, 81.0)] {
            let mut line = line(&config(phy), 1);
            let mut rings = Rings::saturated(1, 1514, 32);
            let cycle = mean_cycle_ns(&mut line, &mut rings, 5_000);
            let throughput_mbps = rings.delivered[0] as f64 / 5_000.0 * 1500.0 * 8.0 / cycle * 1e3;
            assert!((throughput_mbps / expected - 1.0).abs() < 0.02, "{throughput_mbps}");
        }
        // 13.6 packets per data exchange and one of seven ACKs: 45.5 Mbit/s of payload.
        let line = line(&config(107), 2);
        let packets = line.burst_bytes_max() as f64 / 1514.0;
        let data = 658.08e3 + line.payload_time(line.burst_bytes_max()).as_nanos() as f64;
        let acks = 658.08e3 + line.payload_time(7 * 66).as_nanos() as f64;
        let payload_mbps = packets * 1448.0 * 8.0 / (data + acks) * 1e3;
        assert!((payload_mbps / 45.5 - 1.0).abs() < 0.02, "{payload_mbps}");
    }

    #[test]
    fn two_backlogged_adapters_collide_less_than_every_eighth_time_and_share() {
        let mut line = line(&config(107), 2);
        let mut rings = Rings::saturated(2, 1514, 32);
        mean_cycle_ns(&mut line, &mut rings, 20_000);
        let bursts = (rings.delivered[0] + rings.delivered[1]) as f64 / 13.5;
        let collisions = 1.0 - bursts / 20_000.0;
        // Without deferral it would be about 1/8; the counter spreads the two apart.
        assert!((0.03..0.125).contains(&collisions), "{collisions}");
        let ratio = rings.delivered[0] as f64 / rings.delivered[1] as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn nothing_reaches_into_the_beacon_region() {
        let quiet = Config { beacon: Duration::from_micros(1500), ..config(107) };
        let mut line = line(&quiet, 1);
        let mut rings = Rings::saturated(1, 1514, 32);
        let mut now = Instant::ZERO;
        for _ in 0..2_000 {
            line.offered(0, now);
            now = line.due();
            let before = rings.delivered[0];
            line.transmit(now, &mut rings);
            if rings.delivered[0] > before {
                assert!((now.as_nanos() + line.phase_ns) % 40_000_000 >= 1_500_000, "{now:?}");
            }
            while crate::shared::Air::ring(&mut rings, 0).has_room() {
                let item = dragstrip_qdisc::Item { len: 1514, ..Default::default() };
                crate::shared::Air::ring(&mut rings, 0).push(item);
            }
        }
    }
}
