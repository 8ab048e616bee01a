//! Random trees for property tests.

use super::types::{
    ClassId, ClassParameters, ClassSpec, Condition, CurveSpec, Exceeds, Field, FilterSpec, FlowKey,
    HfscClass, HtbClass, Key, Matching, Operand, PolicerSpec, SchedulerSpec, TreeSpec,
};
use crate::arbitrary::Scope;
use crate::disciplines::QdiscSpec;
use crate::disciplines::netem::NetemSpec;
use crate::disciplines::prio::PrioSpec;
use proptest::prelude::*;

/// A discipline with up to four leaves, some of them in a class of two.
pub(super) fn trees(scope: Scope) -> BoxedStrategy<TreeSpec> {
    let leaves = prop::collection::vec(QdiscSpec::arbitrary_classless(scope), 4);
    let rates = prop::collection::vec(scope.rate_bps(), 6);
    let quanta = prop::collection::vec(scope.quantum_bytes(), 6);
    let filters = prop::collection::vec(filters(scope), 0..5);
    (0_usize..5, leaves, rates, quanta, filters, any::<bool>(), 0_u16..5)
        .prop_map(|(kind, leaves, rates, quanta, filters, nested, default_minor)| {
            // A netem in a netem makes copies as packets move into it, which no book here expects.
            let copies = |leaf: &QdiscSpec| kind == 4 && matches!(leaf, QdiscSpec::Netem(_));
            let queues = |leaf: QdiscSpec| {
                if leaf == QdiscSpec::NOQUEUE || copies(&leaf) {
                    QdiscSpec::parse("pfifo limit 20").expect("tc's words")
                } else {
                    leaf
                }
            };
            let mut leaves = leaves.into_iter().map(queues);
            let scheduler = match kind {
                0 => SchedulerSpec::Htb { default_minor, direct_packets: 20 },
                1 => SchedulerSpec::Hfsc { default_minor },
                2 => SchedulerSpec::Drr {},
                3 => SchedulerSpec::Prio(PrioSpec { bands: 4, ..PrioSpec::default() }),
                _ => SchedulerSpec::Netem(Box::new(NetemSpec {
                    delay_ns: 3_000_000,
                    ..NetemSpec::default()
                })),
            };
            let nested = nested && kind < 2;
            let count = if kind == 4 { 1 } else { 4 };
            let mut classes = Vec::new();
            if nested {
                let parameters = parameters(&scheduler, rates[4], rates[5], quanta[4]);
                classes.push(ClassSpec { minor: 9, parent: 0, parameters, leaf: None });
            }
            for at in 0..count {
                let parameters = parameters(&scheduler, rates[at], rates[at + 1], quanta[at]);
                let parent = if nested && at < 2 { 9 } else { 0 };
                let leaf = leaves.next().map(Box::new);
                classes.push(ClassSpec { minor: at as u16 + 1, parent, parameters, leaf });
            }
            let filters = if kind == 4 { Vec::new() } else { filters };
            TreeSpec { handle: 1, scheduler, classes, filters }
        })
        .boxed()
}

fn parameters(scheduler: &SchedulerSpec, rate: u64, other: u64, quantum: u32) -> ClassParameters {
    match scheduler {
        SchedulerSpec::Htb { .. } => ClassParameters::Htb(HtbClass {
            rate_bps: rate,
            ceil_bps: rate.max(other),
            burst_bytes: 1_600,
            cburst_bytes: 1_600 + u64::from(quantum),
            quantum_bytes: quantum,
            priority: (quantum % 8) as u8,
            overhead_bytes: 0,
            mpu_bytes: 0,
            linklayer_atm: quantum.is_multiple_of(2),
        }),
        SchedulerSpec::Hfsc { .. } => {
            let curve = |m1_bps, m2_bps| Some(CurveSpec { m1_bps, d_ns: 10_000_000, m2_bps });
            ClassParameters::Hfsc(HfscClass {
                real_time: if quantum.is_multiple_of(2) { curve(other, rate) } else { None },
                link_share: curve(rate, other),
                upper_limit: if quantum.is_multiple_of(3) {
                    curve(0, rate.max(other))
                } else {
                    None
                },
            })
        }
        SchedulerSpec::Drr {} => ClassParameters::Drr { quantum_bytes: quantum },
        SchedulerSpec::Prio(_)
        | SchedulerSpec::Ets(_)
        | SchedulerSpec::Netem(_)
        | SchedulerSpec::Tbf(_) => ClassParameters::Band {},
    }
}

fn filters(scope: Scope) -> impl Strategy<Value = FilterSpec> {
    let matching = prop_oneof![
        Just(Matching::U32 { keys: vec![Key { offset: 0, value: 46 << 18, mask: 0xfc << 16 }] }),
        Just(Matching::U32 { keys: vec![Key { offset: 20, value: 1, mask: 1 }] }),
        Just(Matching::Fw { mark: Some(1), mask: 3 }),
        Just(Matching::Basic {
            condition: Condition::Any {
                of: vec![
                    Condition::equal(Field::Priority {}, u32::MAX, 6),
                    Condition::Not {
                        of: Box::new(Condition::Compare {
                            field: Field::Octets { offset: 2, width: 16 },
                            mask: 0xffff,
                            operand: Operand::Greater,
                            value: 100,
                        }),
                    },
                ],
            },
        }),
        Just(Matching::Flow { keys: vec![FlowKey::Src, FlowKey::Dst], divisor: 3, base: 1 }),
    ];
    (matching, 0_u16..6, 1_u16..9, any::<bool>(), scope.rate_bps()).prop_map(
        |(matching, minor, priority, polices, rate_bps)| FilterSpec {
            parent: 0,
            priority,
            class: (!matches!(matching, Matching::Flow { .. }))
                .then_some(ClassId { major: 1, minor }),
            matching,
            drop: false,
            police: polices.then_some(PolicerSpec {
                rate_bps,
                burst_bytes: 20_000,
                mtu_bytes: 2_040,
                peakrate_bps: None,
                exceeds: Exceeds::Continue,
            }),
        },
    )
}
