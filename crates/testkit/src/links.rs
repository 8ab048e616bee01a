//! Random links: every queue discipline and impairment that a scenario can name.

use dragstrip_scenario::{
    DelayDistribution, LinkSpec, LossModel, MediumSpec, ModemProtocol, NetemSpec, QdiscSpec,
};
use proptest::prelude::*;
use proptest::sample::select;

/// The largest frame any generated host sends.
pub(crate) const FRAME_BYTES_MAX: u64 = 1514;

const MS: u64 = 1_000_000;

/// Log-uniform from 100 kbit/s to 30 Mbit/s.
pub(crate) fn rate_bps() -> impl Strategy<Value = u64> {
    (0_u32..=990, 0_u64..1000).prop_map(|(thousandths, rest)| {
        // 100 kbit/s · 2^(8.25 · share), by squaring: no float decides.
        let mut rate = 100_000_u64 << (thousandths / 120);
        rate += rate * u64::from(thousandths % 120) / 120;
        rate + rest
    })
}

/// No delay at all in one of four, up to 30 ms otherwise.
fn delay_ns() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 3 => 1..30 * MS]
}

fn share(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![2 => Just(0.0), 1 => 0.0..most]
}

fn loss() -> impl Strategy<Value = LossModel> {
    let correlated = (0.0..0.2, share(0.9));
    let bursts = (0.0..0.05, 0.1..1.0, 0.0..1.0, 0.0..0.02);
    prop_oneof![
        3 => Just(LossModel::None),
        2 => correlated.prop_map(|(probability, correlation)| LossModel::Random { probability, correlation }),
        1 => bursts.prop_map(|(p, r, one_minus_h, one_minus_k)| {
            LossModel::Gemodel { p, r, one_minus_h, one_minus_k }
        }),
    ]
}

/// Everything netem does, each thing now and then.
pub(crate) fn netem() -> impl Strategy<Value = NetemSpec> {
    let delays = (
        delay_ns(),
        prop_oneof![Just(0), 0..20 * MS],
        share(0.9),
        select(vec![
            DelayDistribution::Uniform,
            DelayDistribution::Normal,
            DelayDistribution::Pareto,
            DelayDistribution::Paretonormal,
        ]),
    );
    let harms = (loss(), share(0.1), share(0.5), share(0.05));
    let order = (share(0.3), share(0.5), prop_oneof![Just(0), 1..5_u32]);
    let rest = (1..1000_u32, proptest::option::weighted(0.2, rate_bps()), any::<bool>());
    (delays, harms, order, rest).prop_map(|(delays, harms, order, rest)| NetemSpec {
        limit_packets: rest.0,
        delay_ns: delays.0,
        jitter_ns: delays.1,
        delay_correlation: delays.2,
        distribution: delays.3,
        loss: harms.0,
        duplicate: harms.1,
        duplicate_correlation: harms.2,
        corrupt: harms.3,
        reorder: order.0,
        reorder_correlation: order.1,
        gap: order.2,
        rate_bps: rest.1,
        ecn: rest.2,
    })
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(FRAME_BYTES_MAX), FRAME_BYTES_MAX..100_000]
}

fn packets() -> impl Strategy<Value = u32> {
    prop_oneof![1..5_u32, 5..300_u32]
}

/// A queue that only queues.
fn leaf() -> impl Strategy<Value = QdiscSpec> {
    prop_oneof![
        1 => Just(QdiscSpec::Noqueue),
        3 => bytes().prop_map(|limit_bytes| QdiscSpec::Bfifo { limit_bytes }),
        3 => packets().prop_map(|limit_packets| QdiscSpec::Pfifo { limit_packets }),
        2 => codel(),
        2 => fq_codel(),
        2 => sfq(),
    ]
}

fn codel() -> impl Strategy<Value = QdiscSpec> {
    (packets(), MS..20 * MS, 10 * MS..200 * MS, any::<bool>()).prop_map(
        |(limit_packets, target_ns, interval_ns, ecn)| QdiscSpec::Codel {
            limit_packets,
            target_ns,
            interval_ns,
            ecn,
        },
    )
}

fn fq_codel() -> impl Strategy<Value = QdiscSpec> {
    let sizes = (packets(), 5_000..1_000_000_u64, 1..2000_u32, 300..3028_u32, 1..65_u32);
    (sizes, MS..20 * MS, 10 * MS..200 * MS, any::<bool>()).prop_map(
        |(sizes, target_ns, interval_ns, ecn)| QdiscSpec::FqCodel {
            limit_packets: sizes.0,
            memory_limit_bytes: sizes.1,
            flows: sizes.2,
            target_ns,
            interval_ns,
            quantum_bytes: sizes.3,
            drop_batch_packets: sizes.4,
            ecn,
        },
    )
}

fn sfq() -> impl Strategy<Value = QdiscSpec> {
    let sizes = (packets(), 1..200_u32, 0..11_u32, 1..128_u32);
    (sizes, 300..3028_u32, 0..3_u64).prop_map(|(sizes, quantum_bytes, perturb_s)| QdiscSpec::Sfq {
        limit_packets: sizes.0,
        flows: sizes.1,
        divisor: 1 << sizes.2,
        depth_packets: sizes.3,
        quantum_bytes,
        perturb_ns: perturb_s * 1_000_000_000,
    })
}

fn tbf() -> impl Strategy<Value = QdiscSpec> {
    (rate_bps(), bytes(), bytes(), proptest::option::weighted(0.3, bytes())).prop_map(
        |(rate_bps, burst_bytes, limit_bytes, mtu_bytes)| QdiscSpec::Tbf {
            rate_bps,
            burst_bytes,
            limit_bytes,
            peakrate_bps: mtu_bytes.map(|_| rate_bps * 2),
            mtu_bytes,
        },
    )
}

fn htb() -> impl Strategy<Value = QdiscSpec> {
    let buckets = (1..10_000_u64, 1..10_000_u64);
    let framing = (-20..60_i32, 0..200_u32, any::<bool>());
    (rate_bps(), any::<bool>(), buckets, framing, leaf()).prop_map(
        |(rate_bps, ceiling, buckets, framing, leaf)| QdiscSpec::Htb {
            rate_bps,
            ceil_bps: ceiling.then_some(rate_bps * 3 / 2),
            burst_bytes: buckets.0,
            cburst_bytes: buckets.1,
            overhead_bytes: framing.0,
            mpu_bytes: framing.1,
            linklayer_atm: framing.2,
            leaf: Box::new(leaf),
        },
    )
}

/// A link whose names and ends are still missing. It has a rate of its own, or a shaper's, or (`free`)
/// none at all.
pub(crate) fn link(free: bool) -> impl Strategy<Value = LinkSpec> {
    let qdisc = prop_oneof![
        5 => leaf(),
        2 => tbf(),
        2 => htb(),
        1 => netem().prop_map(|spec| QdiscSpec::Netem(Box::new(spec))),
    ];
    let without = if free { 2 } else { 0 };
    let rate = prop_oneof![3 => rate_bps().prop_map(Some), without => Just(None)];
    (
        rate,
        delay_ns(),
        prop_oneof![Just(0), Just(24)],
        qdisc,
        proptest::option::weighted(0.25, netem().prop_map(Box::new)),
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
