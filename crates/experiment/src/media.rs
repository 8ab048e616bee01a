//! Media of links that are not plain wires, as the user writes them. Omitted fields have the scenario's defaults.

use crate::quantity::{RateText, ShareText, SizeText, TimeText};
use crate::tables::Tagged;
use dragstrip_scenario::{
    AdslEncapsulation, MediumSpec, ModemProtocol, Problem, WifiBand, WifiProtection, WifiSlot,
    json_problem,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The medium of a link that is not a plain wire. Propagation delay is added. On `wifi_g`, `wifi_n`, `homeplug_av` and
/// `ethernet_hub` all links that name the medium contend for it, and links that leave the same node are one station.
/// `adsl`, `modem` and `trace` are one direction of a line, and each link that names one has its own line. In front of
/// each station is the link's queue, then the driver's ring.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum MediumForm {
    /// ADSL over ATM, one direction: whole cells at the synchronisation rate.
    Adsl {
        /// The synchronisation rate, which counts the bits of cells.
        rate: RateText,
        /// The encapsulation of a packet, `pppoe_llc` by default.
        #[serde(default)]
        encapsulation: Option<AdslEncapsulation>,
        /// The end-to-end delay of interleaving, 12 ms by default.
        #[serde(default)]
        interleaving: Option<TimeText>,
    },
    /// 802.11g, frame by frame.
    WifiG {
        /// The PHY rate: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s.
        rate: RateText,
        /// The slot time, `short` by default.
        #[serde(default)]
        slot: Option<WifiSlot>,
        /// CTS-to-self for the sake of 802.11b stations, `off` by default.
        #[serde(default)]
        protection: Option<WifiProtection>,
        /// The probability that a frame arrives damaged, 0 by default.
        #[serde(default)]
        frame_error: Option<ShareText>,
        /// Frames in each station's driver, 1 by default.
        #[serde(default)]
        ring: Option<u32>,
    },
    /// 802.11n with aggregation: what waits in the driver goes out as one aggregate.
    WifiN {
        /// The modulation and coding scheme, 0 to 15.
        mcs: u32,
        /// The channel's width in MHz, 20 (the default) or 40.
        #[serde(default)]
        width_mhz: Option<u32>,
        /// Uses a guard interval of 400 instead of 800 ns.
        #[serde(default)]
        short_guard: Option<bool>,
        /// The band, `5ghz` by default.
        #[serde(default)]
        band: Option<WifiBand>,
        /// Frames in an aggregate, up to 64; 32 by default.
        #[serde(default)]
        aggregate: Option<u32>,
        /// Bytes in an aggregate, up to 65535.
        #[serde(default)]
        aggregate_bytes: Option<SizeText>,
        /// The longest air time of an aggregate, 4 ms by default.
        #[serde(default)]
        air_time: Option<TimeText>,
        /// The probability that a subframe arrives damaged, 0 by default.
        #[serde(default)]
        frame_error: Option<ShareText>,
        /// Frames in each station's driver, 64 by default.
        #[serde(default)]
        ring: Option<u32>,
    },
    /// HomePlug AV powerline.
    HomeplugAv {
        /// The raw rate as adapters report it, up to 200 Mbit/s.
        phy: RateText,
        /// The share of the information rate that tone maps and repeated blocks leave, 1 by default.
        #[serde(default)]
        efficiency: Option<f64>,
        /// The longest payload of a burst, 2.05 ms by default.
        #[serde(default)]
        burst: Option<TimeText>,
        /// The beacon region of each beacon period, 1.5 ms by default.
        #[serde(default)]
        beacon: Option<TimeText>,
        /// Two cycles of the mains, 40 ms by default.
        #[serde(default)]
        beacon_period: Option<TimeText>,
        /// Frames in each adapter, 64 by default.
        #[serde(default)]
        ring: Option<u32>,
    },
    /// A pair of telephone modems, one direction: PPP over a serial port, error control, compression.
    Modem {
        /// The rate of the line: V.34's 2400 to 33600 bit/s in steps of 2400.
        rate: RateText,
        /// Error control and compression, `v42` by default.
        #[serde(default)]
        protocol: Option<ModemProtocol>,
        /// The size of an error-control block, `128b` by default.
        #[serde(default)]
        block: Option<SizeText>,
        /// The factor by which compression shrinks the data; 1, the default, is incompressible.
        #[serde(default)]
        compression_ratio: Option<f64>,
        /// Compresses headers (RFC 1144).
        #[serde(default)]
        van_jacobson: Option<bool>,
        /// The rate of the serial ports at both ends, 115200 bit/s by default.
        #[serde(default)]
        dte: Option<RateText>,
        /// The sending modem's buffer, `2kb` by default; when it is full, packets wait in the queue.
        #[serde(default)]
        buffer: Option<SizeText>,
        /// The processing delay of both modems together, 30 ms by default.
        #[serde(default)]
        processing: Option<TimeText>,
    },
    /// Half-duplex Ethernet at 100 Mbit/s: stations on a hub (CSMA/CD).
    EthernetHub {
        /// Stations that talk among themselves, none by default.
        #[serde(default)]
        background_stations: Option<u32>,
        /// The offered load of these stations together, as a share of the 100 Mbit/s; above 1 they never pause.
        #[serde(default)]
        background_load: Option<f64>,
        /// The node that sends without listening: a duplex mismatch.
        #[serde(default)]
        full_duplex: Option<String>,
        /// Frames in each station's interface, 16 by default.
        #[serde(default)]
        ring: Option<u32>,
    },
    /// A recorded link, one direction, in mahimahi's format.
    Trace {
        /// The file: times in milliseconds, one a line, at which 1500 bytes may leave, over and over. A relative path
        /// starts at the experiment's file.
        file: String,
        /// The file's times; the reader of the file puts them here.
        #[serde(default)]
        #[schemars(skip)]
        opportunities_ms: Vec<u64>,
    },
    /// IP over TCP: two links, one each way, carried by a flow. Nothing is taken from a link's queue while the flow's
    /// send buffer is full.
    Tunnel {
        /// The label of the flow whose application is the tunnel.
        flow: String,
        /// The node whose packets that flow's sender takes.
        near: String,
    },
}

/// The fields of [`MediumForm`] with other names in the scenario, in any kind.
pub(crate) const RENAMED: &[(&str, &str)] = &[
    ("rate", "rate_bps"),
    ("phy", "phy_bps"),
    ("dte", "dte_bps"),
    ("interleaving", "interleaving_ns"),
    ("air_time", "air_time_ns"),
    ("burst", "burst_ns"),
    ("beacon", "beacon_ns"),
    ("beacon_period", "beacon_period_ns"),
    ("processing", "processing_ns"),
    ("block", "block_bytes"),
    ("buffer", "buffer_bytes"),
    ("ring", "ring_packets"),
    ("aggregate", "aggregate_packets"),
    ("file", "opportunities_ms"),
];

/// The scenario's medium that an entry of `media` means.
pub(crate) fn medium(form: &MediumForm) -> Result<MediumSpec, Problem> {
    let mut core = Map::new();
    let mut set_field = |name: &str, value: Option<Value>| {
        core.extend(value.map(|value| (name.to_owned(), value)));
    };
    let whole = |number: &Option<u32>| number.map(Value::from);
    let rate = |field: &Option<RateText>| field.map(|field| Value::from(field.0));
    let time = |field: &Option<TimeText>| field.map(|field| Value::from(field.0));
    let size = |field: &Option<SizeText>| field.map(|field| Value::from(field.0));
    let share = |field: &Option<ShareText>| field.map(|field| Value::from(field.0));
    let kind = match form {
        MediumForm::Adsl { rate, encapsulation, interleaving } => {
            set_field("rate_bps", Some(Value::from(rate.0)));
            set_field("encapsulation", word(encapsulation.as_ref()));
            set_field("interleaving_ns", time(interleaving));
            "adsl"
        }
        MediumForm::WifiG { rate, slot, protection, frame_error, ring } => {
            set_field("rate_bps", Some(Value::from(rate.0)));
            set_field("slot", word(slot.as_ref()));
            set_field("protection", word(protection.as_ref()));
            set_field("frame_error", share(frame_error));
            set_field("ring_packets", whole(ring));
            "wifi_g"
        }
        MediumForm::WifiN {
            mcs,
            width_mhz,
            short_guard,
            band,
            aggregate,
            aggregate_bytes,
            air_time,
            frame_error,
            ring,
        } => {
            set_field("mcs", Some(Value::from(*mcs)));
            set_field("width_mhz", whole(width_mhz));
            set_field("short_guard", short_guard.map(Value::from));
            set_field("band", word(band.as_ref()));
            set_field("aggregate_packets", whole(aggregate));
            set_field("aggregate_bytes", size(aggregate_bytes));
            set_field("air_time_ns", time(air_time));
            set_field("frame_error", share(frame_error));
            set_field("ring_packets", whole(ring));
            "wifi_n"
        }
        MediumForm::HomeplugAv { phy, efficiency, burst, beacon, beacon_period, ring } => {
            set_field("phy_bps", Some(Value::from(phy.0)));
            set_field("efficiency", efficiency.map(Value::from));
            set_field("burst_ns", time(burst));
            set_field("beacon_ns", time(beacon));
            set_field("beacon_period_ns", time(beacon_period));
            set_field("ring_packets", whole(ring));
            "homeplug_av"
        }
        MediumForm::Modem {
            rate: line,
            protocol,
            block,
            compression_ratio,
            van_jacobson,
            dte,
            buffer,
            processing,
        } => {
            set_field("rate_bps", Some(Value::from(line.0)));
            set_field("protocol", word(protocol.as_ref()));
            set_field("block_bytes", size(block));
            set_field("compression_ratio", compression_ratio.map(Value::from));
            set_field("van_jacobson", van_jacobson.map(Value::from));
            set_field("dte_bps", rate(dte));
            set_field("buffer_bytes", size(buffer));
            set_field("processing_ns", time(processing));
            "modem"
        }
        MediumForm::EthernetHub { background_stations, background_load, full_duplex, ring } => {
            set_field("background_stations", whole(background_stations));
            set_field("background_load", background_load.map(Value::from));
            set_field("full_duplex", full_duplex.clone().map(Value::from));
            set_field("ring_packets", whole(ring));
            "ethernet_hub"
        }
        MediumForm::Trace { file: _, opportunities_ms } => {
            set_field("opportunities_ms", Some(Value::from(opportunities_ms.clone())));
            "trace"
        }
        MediumForm::Tunnel { flow, near } => {
            set_field("flow", Some(Value::from(flow.clone())));
            set_field("near", Some(Value::from(near.clone())));
            "tunnel"
        }
    };
    core.insert("kind".to_owned(), Value::from(kind));
    serde_json::from_value(Value::Object(core)).map_err(|error| json_problem(String::new(), &error))
}

/// A word of an enum.
fn word(value: Option<&impl Serialize>) -> Option<Value> {
    value.and_then(|value| serde_json::to_value(value).ok())
}

/// True when stations share the medium, so that it carries both directions; with other media each link has its own.
pub(crate) fn shared(form: &Tagged<MediumForm>) -> bool {
    !matches!(**form, MediumForm::Adsl { .. } | MediumForm::Modem { .. } | MediumForm::Trace { .. })
}
