//! Random links: every queue discipline and impairment that a scenario can name.

use dragstrip_qdisc::arbitrary::Scope;
use dragstrip_qdisc::{Configuration as _, NetemSpec, QdiscSpec};
use dragstrip_scenario::{LinkSpec, MediumSpec, ModemProtocol};
use proptest::prelude::*;
use proptest::sample::select;

/// The largest frame any generated host sends.
pub(crate) const FRAME_BYTES_MAX: u64 = 1514;

const MS: u64 = 1_000_000;

/// Range of queue disciplines on these links.
const QUEUES: Scope = Scope::Valid { frame_bytes: FRAME_BYTES_MAX };

/// Log-uniform from 100 kbit/s to 30 Mbit/s.
pub(crate) fn rate_bps() -> impl Strategy<Value = u64> {
    QUEUES.rate_bps()
}

/// No delay at all in one of four, up to 30 ms otherwise.
fn delay_ns() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 3 => 1..30 * MS]
}

/// A link whose names and ends are still missing. It has a rate of its own, or a shaper's, or (`free`)
/// none at all.
pub(crate) fn link(free: bool) -> impl Strategy<Value = LinkSpec> {
    let without = if free { 2 } else { 0 };
    let rate = prop_oneof![3 => rate_bps().prop_map(Some), without => Just(None)];
    (
        rate,
        delay_ns(),
        prop_oneof![Just(0), Just(24)],
        QdiscSpec::arbitrary(QUEUES),
        proptest::option::weighted(0.25, Box::<NetemSpec>::arbitrary(QUEUES)),
    )
        .prop_map(|(rate_bps, delay_ns, overhead_bytes, qdisc, netem)| LinkSpec {
            name: String::new(),
            from: String::new(),
            to: String::new(),
            rate_bps,
            delay_ns,
            overhead_bytes,
            medium: None,
            qdisc,
            netem,
        })
        // Some forty of them make a scenario: the strategies themselves would fill a test's stack.
        .boxed()
}

/// Any medium; a hub knows no node by name.
pub(crate) fn medium() -> impl Strategy<Value = MediumSpec> {
    let json = |text: &str| Just(serde_json::from_str::<MediumSpec>(text).expect(text));
    prop_oneof![
        1 => json(r#"{"kind": "adsl", "rate_bps": 1536000}"#),
        1 => json(r#"{"kind": "wifi_g", "rate_bps": 54000000, "frame_error": 0.1}"#),
        1 => json(r#"{"kind": "wifi_n", "mcs": 7, "frame_error": 0.1}"#),
        1 => json(r#"{"kind": "homeplug_av", "phy_bps": 107000000}"#),
        2 => modem(),
        2 => hub(),
        2 => trace(),
    ]
    .boxed()
}

fn modem() -> impl Strategy<Value = MediumSpec> {
    let protocols = vec![
        ModemProtocol::Async,
        ModemProtocol::Mnp4,
        ModemProtocol::Mnp5,
        ModemProtocol::V42,
        ModemProtocol::V42bis,
    ];
    (1..=14_u64, select(protocols), 8..=256_u32, any::<bool>(), 1..10_000_u32).prop_map(
        |(step, protocol, block_bytes, van_jacobson, buffer_bytes)| MediumSpec::Modem {
            rate_bps: step * 2_400,
            protocol,
            block_bytes,
            compression_ratio: 1.0,
            van_jacobson,
            dte_bps: 115_200,
            buffer_bytes,
            processing_ns: 30 * MS,
        },
    )
}

fn hub() -> impl Strategy<Value = MediumSpec> {
    (0..20_u32, 0.05..0.5, 1..20_u32).prop_map(|(background_stations, load, ring_packets)| {
        MediumSpec::EthernetHub {
            background_stations,
            background_load: if background_stations > 0 { load } else { 0.0 },
            full_duplex: None,
            ring_packets,
        }
    })
}

fn trace() -> impl Strategy<Value = MediumSpec> {
    proptest::collection::vec(0..2_000_u64, 1..200).prop_map(|mut opportunities_ms| {
        opportunities_ms.sort_unstable();
        if let Some(last) = opportunities_ms.last_mut() {
            *last += 1;
        }
        MediumSpec::Trace { opportunities_ms }
    })
}
