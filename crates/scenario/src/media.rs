//! Media of links that are not plain wires. A part of the types, in a separate file.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The medium of links that are not plain wires. The links' delay is added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MediumSpec {
    /// ADSL over ATM, one direction (ITU-T G.992.1, RFC 2684): whole cells, handed over with symbols of 250 µs.
    Adsl {
        /// Synchronisation rate; counts the bits of cells.
        rate_bps: u64,
        /// Encapsulation of a packet.
        #[serde(default)]
        encapsulation: AdslEncapsulation,
        /// End-to-end delay of interleaving (G.992.1: 12 ms at depth 32, 20 ms at 64, about 2 ms on the fast path).
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
        /// Frames in each station's driver, after the queue discipline.
        #[serde(default = "default_one")]
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
        /// Frames in each station's driver, after the queue discipline.
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
        /// Frames in each adapter, after the queue discipline. With 802.3x PAUSE the queue discipline is the sender's
        /// own, without it the adapter's.
        #[serde(default = "default_ring")]
        ring_packets: u32,
    },
    /// A pair of telephone modems, one direction: PPP over a serial port, error control, compression.
    Modem {
        /// Rate of the line: V.34's 2400 to 33600 bit/s in steps of 2400.
        rate_bps: u64,
        /// Error control and compression.
        #[serde(default)]
        protocol: ModemProtocol,
        /// Bytes in an error-control block (V.42: 128, MNP: 256).
        #[serde(default = "default_block")]
        block_bytes: u32,
        /// Factor by which compression shrinks the data: 1 is incompressible (MNP 5 makes such data 13 % longer), text
        /// about 3.
        #[serde(default = "all")]
        compression_ratio: f64,
        /// TCP/IP header compression (RFC 1144).
        #[serde(default)]
        van_jacobson: bool,
        /// Rate of the serial ports at both ends.
        #[serde(default = "default_dte")]
        dte_bps: u64,
        /// Bytes that the sending modem holds; when it is full, packets wait in the queue.
        #[serde(default = "default_modem_buffer")]
        buffer_bytes: u32,
        /// Processing delay of both modems together.
        #[serde(default = "default_processing")]
        processing_ns: u64,
    },
    /// Half-duplex Ethernet at 100 Mbit/s: stations on a hub, CSMA/CD (IEEE 802.3, clause 4).
    EthernetHub {
        /// Stations that talk among themselves.
        #[serde(default)]
        background_stations: u32,
        /// Their offered load together, as a share of the 100 Mbit/s; above 1 they never pause.
        #[serde(default)]
        background_load: f64,
        /// The node whose interface is configured for full duplex on a half-duplex link: it sends without listening.
        #[serde(default)]
        full_duplex: Option<String>,
        /// Frames in each station's interface, after the queue discipline.
        #[serde(default = "default_ethernet_ring")]
        ring_packets: u32,
    },
    /// A recorded link, one direction: instants at which 1500 bytes may leave, over and over (mahimahi's format).
    Trace {
        /// Milliseconds since the beginning, never decreasing; the last one, above 0, is also where the trace begins again.
        opportunities_ms: Vec<u64>,
    },
    /// IP over TCP: what the link's queue lets go is written into a TCP connection, and leaves at its other end in order. Nothing is
    /// taken from the queue while the socket's send buffer is full.
    Tunnel {
        /// The flow whose connection it is; its application is `tunnel`.
        flow: String,
        /// The node, among those the link joins, whose packets the flow's sender takes; the other one's take the return path.
        near: String,
    },
}

fn default_block() -> u32 {
    128
}

fn default_dte() -> u64 {
    115_200
}

fn default_modem_buffer() -> u32 {
    2048
}

fn default_processing() -> u64 {
    30_000_000
}

fn default_ethernet_ring() -> u32 {
    16
}

fn default_interleaving() -> u64 {
    12_000_000
}

fn default_one() -> u32 {
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

/// Encapsulation of an IP packet on an ADSL line, bytes with AAL5's trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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

/// Protocol of a pair of modems between its serial ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModemProtocol {
    /// Characters with start and stop bits: 10 bits a byte.
    Async,
    /// MNP 4: blocks with 8 bytes around them.
    Mnp4,
    /// MNP 4 and MNP 5's compression.
    Mnp5,
    /// V.42 (LAPM): blocks with 6 bytes around them.
    #[default]
    V42,
    /// V.42 and V.42 bis's compression.
    V42bis,
}

/// 802.11g's slot time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WifiSlot {
    /// 9 µs.
    #[default]
    Short,
    /// 20 µs: an 802.11b station is associated.
    Long,
}

/// CTS-to-self in front of 802.11g frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WifiBand {
    /// 2.4 GHz: SIFS 10 µs and 6 µs of silence after each frame.
    #[serde(rename = "2.4ghz")]
    Ghz2,
    /// 5 GHz: SIFS 16 µs.
    #[default]
    #[serde(rename = "5ghz")]
    Ghz5,
}
