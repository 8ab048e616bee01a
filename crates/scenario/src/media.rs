//! Media: what carries packets where it is not a plain wire. A part of the types, in a file of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries packets where it is not a plain wire. The links' delay comes on top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MediumSpec {
    /// ADSL over ATM, one direction (ITU-T G.992.1, RFC 2684): whole cells, handed over with symbols of 250 µs.
    Adsl {
        /// Synchronisation rate; counts the bits of cells.
        rate_bps: u64,
        /// What wraps a packet.
        #[serde(default)]
        encapsulation: AdslEncapsulation,
        /// What interleaving takes from end to end (G.992.1: 12 ms at depth 32, 20 ms at 64, about 2 ms on the fast path).
        #[serde(default = "default_interleaving")]
        interleaving_ns: u64,
    },
    /// 802.11g (IEEE 802.11-2007): frame by frame.
    WifiG {
        /// PHY rate: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s.
        rate_bps: u64,
        /// Slot time.
        #[serde(default)]
        slot: WifiSlot,
        /// CTS-to-self for the sake of 802.11b stations.
        #[serde(default)]
        protection: WifiProtection,
        /// Probability that a frame arrives damaged, 0 to below 1.
        #[serde(default)]
        frame_error: f64,
        /// Frames in each station's driver, behind the queue discipline.
        #[serde(default = "one")]
        ring_packets: u32,
    },
    /// 802.11n (IEEE 802.11n-2009): what waits in the driver goes out as one aggregate.
    WifiN {
        /// Modulation and coding scheme, 0 to 15; 15 is 130 Mbit/s at 20 MHz.
        mcs: u32,
        /// Channel width: 20 or 40.
        #[serde(default = "default_width")]
        width_mhz: u32,
        /// Guard interval of 400 instead of 800 ns.
        #[serde(default)]
        short_guard: bool,
        /// Band.
        #[serde(default)]
        band: WifiBand,
        /// Frames in an aggregate, at most 64.
        #[serde(default = "default_aggregate")]
        aggregate_packets: u32,
        /// Bytes in an aggregate, at most 65535.
        #[serde(default = "default_aggregate_bytes")]
        aggregate_bytes: u32,
        /// Air time of an aggregate (ath9k: 4 ms).
        #[serde(default = "default_air_time")]
        air_time_ns: u64,
        /// Probability that a subframe arrives damaged, 0 to below 1.
        #[serde(default)]
        frame_error: f64,
        /// Frames in each station's driver, behind the queue discipline.
        #[serde(default = "default_ring")]
        ring_packets: u32,
    },
    /// HomePlug AV (IEEE 1901-2010).
    HomeplugAv {
        /// Raw rate, as adapters report it; at most 200 Mbit/s.
        phy_bps: u64,
        /// Share of the information rate (16/21 of the raw rate) that tone maps and repeated blocks leave, above 0 up to 1.
        #[serde(default = "all")]
        efficiency: f64,
        /// Longest payload of a burst.
        #[serde(default = "default_burst")]
        burst_ns: u64,
        /// The beacon region at the beginning of each beacon period.
        #[serde(default = "default_beacon")]
        beacon_ns: u64,
        /// Two cycles of the mains: 40 ms at 50 Hz.
        #[serde(default = "default_beacon_period")]
        beacon_period_ns: u64,
        /// Frames in each adapter, behind the queue discipline. With 802.3x PAUSE the queue discipline is the sender's own,
        /// without it the adapter's.
        #[serde(default = "default_ring")]
        ring_packets: u32,
    },
}

fn default_interleaving() -> u64 {
    12_000_000
}

fn one() -> u32 {
    1
}

fn all() -> f64 {
    1.0
}

fn default_width() -> u32 {
    20
}

fn default_aggregate() -> u32 {
    32
}

fn default_aggregate_bytes() -> u32 {
    65_535
}

fn default_air_time() -> u64 {
    4_000_000
}

fn default_ring() -> u32 {
    64
}

fn default_burst() -> u64 {
    2_050_000
}

fn default_beacon() -> u64 {
    1_500_000
}

fn default_beacon_period() -> u64 {
    40_000_000
}

/// What wraps an IP packet on an ADSL line, bytes with AAL5's trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdslEncapsulation {
    /// PPPoE, LLC/SNAP: 40.
    #[default]
    PppoeLlc,
    /// PPPoE, VC multiplexing: 32.
    PppoeVcMux,
    /// PPPoA, VC multiplexing: 10.
    PppoaVcMux,
}

/// 802.11g's slot time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WifiSlot {
    /// 9 µs.
    #[default]
    Short,
    /// 20 µs: an 802.11b station is associated.
    Long,
}

/// CTS-to-self in front of 802.11g frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WifiProtection {
    /// None.
    #[default]
    Off,
    /// At 11 Mbit/s with the short preamble: 116 µs.
    ShortPreamble,
    /// At 11 Mbit/s with the long preamble: 212 µs.
    LongPreamble,
}

/// 802.11n's band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WifiBand {
    /// 2.4 GHz: SIFS 10 µs and 6 µs of silence behind each frame.
    #[serde(rename = "2.4ghz")]
    Ghz2,
    /// 5 GHz: SIFS 16 µs.
    #[default]
    #[serde(rename = "5ghz")]
    Ghz5,
}
