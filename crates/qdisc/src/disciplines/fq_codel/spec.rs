//! fq_codel in words, checks and the kernel's form (`q_fq_codel.c`).

use super::{Config, FqCodel};
use crate::contract::Change;
use crate::disciplines::codel::spec::{INTERVAL_NS, TARGET_NS, control_law};
use crate::disciplines::codel::{Params, Selector};
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::word;
use crate::table::{Draft, Place, Word, size, switch, table, time, whole};
use crate::tc::unreadable;
use dragstrip_units::ParseError;

/// The kernel's bound (`fq_codel_init`).
const FLOWS_MAX: u32 = 65_536;

// Attributes: TCA_FQ_CODEL_TARGET and on. ECN is on unless it is switched off (`fq_codel_init`).
table! {
    /// Flow queueing with CoDel (RFC 8290).
    #[derive(Copy, Eq)]
    pub struct FqCodelSpec {
        /// Packets that may wait.
        limit_packets: u32 = 10_240 => whole("limit").at_least(1).attribute(2).confirmed(),
        /// Bytes of memory that may be used.
        memory_limit_bytes: u64 = 32 << 20 =>
            size("memory_limit").at_least(1).attribute(9).after("interval_ns"),
        /// Number of queues.
        flows: u32 = 1024 => whole("flows").at_least(1).at_most(FLOWS_MAX).attribute(5).confirmed(),
        /// Acceptable standing delay.
        target_ns: u64 = TARGET_NS => time("target").at_least(1).attribute(1),
        /// Sliding window.
        interval_ns: u64 = INTERVAL_NS => time("interval").at_least(1).attribute(3),
        /// Bytes a queue may send in turn.
        quantum_bytes: u32 = FRAME =>
            whole("quantum").at_least(1).at_most(QUANTUM_MAX).attribute(6).after("flows"),
        /// Most packets dropped at once on overflow.
        drop_batch_packets: u32 = 64 => whole("drop_batch").at_least(1).attribute(8),
        /// Mark instead of drop.
        ecn: bool = true => switch(&[("ecn", true), ("noecn", false)]).attribute(4).confirmed(),
        /// Mark every ECN-capable packet that has waited longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold_ns: Option<u64> = None => time("ce_threshold").at_least(1).attribute(7).last(),
        /// Mark only those whose traffic class (DSCP and ECN) has this value in these bits: `0x1/0x1` is ECT(1), and CE.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold_selector: Option<Selector> = None => SELECTOR,
    }
    words {
        "ce_threshold_mask" => Word::sent(Place::Attribute(11), |spec: &FqCodelSpec| {
            spec.ce_threshold_selector.map(|selector| vec![selector.mask])
        }),
    }
}

/// tc's `VALUE/MASK`; to the kernel a mask of nothing is none, and tc shows it so.
const SELECTOR: Word<FqCodelSpec> = Word::new(
    &["ce_threshold_selector"],
    "VALUE/MASK",
    |draft: &mut Draft<'_, FqCodelSpec>, words, word| {
        let selector = words.value(word, selector)?;
        draft.spec.ce_threshold_selector = (selector.mask != 0).then_some(selector);
        Ok(())
    },
)
.printed(|spec| {
    let Selector { value, mask } = spec.ce_threshold_selector?;
    Some(format!("ce_threshold_selector {value:#x}/{mask:#x}"))
})
.checked(|spec, field, report| {
    let Some(Selector { value, mask }) = spec.ce_threshold_selector else { return };
    let text = format!("{value:#x}/{mask:#x}");
    if value & !mask != 0 || mask == 0 {
        report.add(field, text, "a mask with the value's bits: no packet has others in it");
    } else if spec.ce_threshold_ns.is_none() {
        report.add(field, text, "a ce_threshold too, to which it applies");
    }
})
.sends(Place::Attribute(10), |spec| Some(vec![spec.ce_threshold_selector?.value]));

fn selector(text: &str) -> Result<Selector, ParseError> {
    let octets = text
        .split_once('/')
        .and_then(|(value, mask)| Some(Selector { value: octet(value)?, mask: octet(mask)? }));
    octets.ok_or_else(|| {
        unreadable(text, "a value and a mask of 8 bits each, such as 0x1/0x3 (ECT(1))")
    })
}

/// A number of 8 bits as C writes it: 0x1f, 037 or 31.
fn octet(text: &str) -> Option<u8> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match (hexadecimal, text.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        (None, _) => (text, 10),
    };
    u8::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

impl Configuration for FqCodelSpec {
    type Model = Box<FqCodel>;

    const KIND: &'static str = "fq_codel";
    const AQM: bool = true;
    const MODULES: &'static [&'static str] = &["sch_fq_codel"];
    const EXAMPLES: &'static [&'static str] = &[
        "fq_codel",
        "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x1",
        "fq_codel limit 600 memory_limit 1mb flows 64 target 8ms interval 60ms quantum 300 drop_batch 7 noecn ce_threshold 2ms",
    ];
    const EXTREMES: &'static [&'static str] = &["fq_codel"];
    /// TCA_FQ_CODEL_FLOWS: `fq_codel_change` refuses it.
    const FIXED: Option<u16> = Some(5);

    /// Memory is no limit of frames' bytes: it counts what the kernel allocates for them.
    fn facts(&self) -> Facts {
        Facts {
            draws: true,
            marks: self.ecn || self.ce_threshold_ns.is_some(),
            ..Facts::queue(Buffer::packets(self.limit_packets))
        }
        .holding("memory_limit_bytes", self.memory_limit_bytes)
    }

    fn build(&self, streams: &Streams<'_>) -> Box<FqCodel> {
        let config = Config {
            limit: self.limit_packets,
            memory_limit: self.memory_limit_bytes,
            flows: self.flows,
            quantum: self.quantum_bytes,
            drop_batch: self.drop_batch_packets,
            params: Params {
                ce_threshold_selector: self.ce_threshold_selector,
                ..control_law(self.target_ns, self.interval_ns, self.ecn, self.ce_threshold_ns)
            },
        };
        Box::new(FqCodel::new(config, &mut streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    /// struct tc_fq_codel_xstats: type (0: of the discipline), then maxpacket, drop_overlimit, ecn_mark, new_flow_count,
    /// new_flows_len, old_flows_len, ce_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        let whole = word(statistics, 0).unwrap_or_default() == 0;
        let number = |at| u64::from(word(statistics, at).unwrap_or_default());
        if whole { number(12) + number(28) } else { 0 }
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use crate::disciplines::codel::spec::ce_threshold;
        use proptest::prelude::*;
        let memory = scope.choose(2_000_u64..100_000, 5_000..1_000_000_u64);
        let flows = scope.choose(1_u32..8, 1..2000_u32);
        let sizes = (scope.packets(), memory, flows, scope.quantum_bytes(), 1_u32..70);
        let bits = prop_oneof![Just(1), 1_u8..=255];
        let selector =
            (bits, any::<u8>()).prop_map(|(mask, value)| Selector { value: value & mask, mask });
        let threshold = (ce_threshold(scope), proptest::option::of(selector));
        (sizes, scope.time_ns(20), scope.time_ns(200), any::<bool>(), threshold)
            .prop_map(|(sizes, target_ns, interval_ns, ecn, (ce_threshold_ns, selector))| Self {
                limit_packets: sizes.0,
                memory_limit_bytes: sizes.1,
                flows: sizes.2,
                target_ns,
                interval_ns,
                quantum_bytes: sizes.3,
                drop_batch_packets: sizes.4,
                ecn,
                ce_threshold_ns,
                ce_threshold_selector: selector.filter(|_| ce_threshold_ns.is_some()),
            })
            .boxed()
    }
}
