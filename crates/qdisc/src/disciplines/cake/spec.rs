//! cake in words, checks and the kernel's form (`q_cake.c`).

use super::tins::terms;
use super::{AckFilter, Cake, Charge, Config, Diffserv, Isolation, LinkLayer};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, FRAME, Facts, Streams};
use crate::netlink::{Attributes, micros, saturated};
use crate::table::{
    self, Draft, GivenWords, Place, Plain, Word, one_of, size, switch, table, text, whole,
};
use crate::tc::{self, Words, wrong};
use crate::truesize::truesize;
use dragstrip_units::Problem;

// Attributes: TCA_CAKE_BASE_RATE64 and on. The last of several words for one thing counts; named framings add up. `raw`
// anywhere means that frames are counted (`complete`).
table! {
    /// Common Applications Kept Enhanced: shaper, priorities by DSCP, fairness between hosts and flows, and an AQM in each queue.
    #[derive(Copy, Eq)]
    pub struct CakeSpec {
        /// Rate of the shaper; none: it lets go what the line takes.
        #[serde(default)]
        bandwidth_bps: Option<u64> = None => table::rate("bandwidth")
            .or_none("unlimited")
            .at_least(BANDWIDTH_LEAST)
            .long(2)
            .or_zero()
            .confirmed_as("bandwidth in bytes per second"),
        /// Tins by DSCP.
        diffserv: Diffserv = Diffserv::default() => one_of(DIFFSERV)
            .also(&[("diffserv", Diffserv::Diffserv4)])
            .attribute(3)
            .confirmed_as("diffserv mode"),
        /// Whom a queue is for, and between whom the rate is shared.
        isolation: Isolation = Isolation::default() =>
            one_of(ISOLATION).attribute(5).confirmed_as("flow mode"),
        /// Round-trip time of the paths behind it: the AQM's interval; its target is a twentieth.
        rtt_ns: u64 = 100_000_000 => text("rtt", "TIME", whole_microseconds, tc::time)
            .at_least(RTT_LEAST)
            .at_most(RTT_MOST)
            .encoded(|ns| u64::from(micros(ns)))
            .attribute(7)
            .confirmed_as("rtt in microseconds")
            .after("ack_filter"),
        /// Memory of waiting packets, with what the kernel adds to each; none: four round trips at the rate, from 4 MiB to 15 MB.
        #[serde(default)]
        memory_limit_bytes: Option<u64> = None => size("memlimit")
            .at_least(truesize(FRAME))
            .at_most(u32::MAX as u64)
            .attribute(10)
            .or_zero()
            .confirmed()
            .after("mpu_bytes"),
        /// Acknowledgements in the queue that a newer one removes.
        ack_filter: AckFilter = AckFilter::default() =>
            one_of(ACK_FILTER).attribute(16).confirmed_as("ack-filter"),
        /// Count frames with Ethernet's header; false: IP packets, as tc does wherever it is told an overhead.
        raw: bool = true => switch(&[("raw", true)]).then(|spec: &mut CakeSpec| {
            (spec.link_layer, spec.overhead_bytes) = (LinkLayer::Noatm, 0);
        }),
        /// Added to every packet's charge; may be negative.
        overhead_bytes: i32 = 0 => whole("overhead")
            .then(|spec: &mut CakeSpec| spec.raw = false)
            .shown_if(|spec| !(spec.raw && spec.overhead_bytes == 0))
            .at_least(OVERHEAD_LEAST)
            .at_most(OVERHEAD_MOST)
            .attribute(6)
            .confirmed(),
        /// Least charge per packet.
        mpu_bytes: u32 = 0 => whole("mpu").unless_usual().at_most(MPU_MOST).attribute(14).confirmed(),
        /// Framing of a packet on the line.
        link_layer: LinkLayer = LinkLayer::default() =>
            one_of(LINK_LAYER).attribute(4).confirmed_as("link layer").after("raw"),
        /// Dropped packets have used the line already, and are charged for.
        ingress: bool = false => switch(&[("ingress", true), ("egress", false)])
            .unless_usual()
            .attribute(15)
            .confirmed()
            .after("isolation"),
        /// Clear the DSCP of what leaves.
        wash: bool = false => switch(&[("wash", true), ("nowash", false)])
            .attribute(13)
            .confirmed()
            .after("isolation"),
    }
    words {
        "preset" => Word::new(&[], "", preset)
            .and(|| PRESETS.iter().map(|(word, _)| *word).collect())
            .about(|| {
                let describe = |(word, us): &(&str, u64)| format!("{word} is {}", tc::time(us * 1_000));
                let presets: Vec<String> = PRESETS.iter().map(describe).collect();
                format!("`rtt` by name: {}.", presets.join(", "))
            })
            .after("rtt_ns"),
        "framing" => Word::new(&["conservative"], "", framing)
            .and(|| FRAMINGS.iter().map(|(word, ..)| *word).collect())
            .about(|| {
                "`overhead`, `mpu` and what the line makes of a packet by name; the overheads add up.".into()
            })
            .after("link_layer"),
        "usual" => Word::new(&["nonat", "split-gso"], "", |_, _, _| Ok(()))
            // tc takes it and ignores it.
            .or(&["via-ethernet"])
            .about(|| "What the simulator does anyway.".into())
            // TCA_CAKE_SPLIT_GSO
            .sends(Place::Attribute(17), |_| Some(1_u32.to_ne_bytes().to_vec())),
        // TCA_CAKE_TARGET
        "target" => Word::sent(Place::Attribute(8), |spec: &CakeSpec| {
            Some(saturated(spec.config().target_us()).to_ne_bytes().to_vec())
        })
        .confirmed_as("target in microseconds"),
        // TCA_CAKE_RAW, which is there or not
        "counted" => Word::sent(Place::Attribute(12), |spec: &CakeSpec| spec.raw.then(|| vec![0; 4])),
    }
}

/// tc's round-trip times by name, in microseconds.
const PRESETS: &[(&str, u64)] = &[
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 1_000_000_000),
];

/// tc's framings by name: what the line makes of a packet, bytes added, and the least if it sets one.
const FRAMINGS: &[(&str, Option<LinkLayer>, i32, Option<u32>)] = &[
    ("ipoa-vcmux", Some(LinkLayer::Atm), 8, None),
    ("ipoa-llcsnap", Some(LinkLayer::Atm), 16, None),
    ("bridged-vcmux", Some(LinkLayer::Atm), 24, None),
    ("bridged-llcsnap", Some(LinkLayer::Atm), 32, None),
    ("pppoa-vcmux", Some(LinkLayer::Atm), 10, None),
    ("pppoa-llc", Some(LinkLayer::Atm), 14, None),
    ("pppoe-vcmux", Some(LinkLayer::Atm), 32, None),
    ("pppoe-llcsnap", Some(LinkLayer::Atm), 40, None),
    ("pppoe-ptm", Some(LinkLayer::Ptm), 30, None),
    ("bridged-ptm", Some(LinkLayer::Ptm), 22, None),
    ("docsis", Some(LinkLayer::Noatm), 18, Some(64)),
    ("ethernet", None, 38, Some(84)),
    ("ether-vlan", None, 4, None),
];

/// In the order of the kernel's numbers, as the three lists below.
const DIFFSERV: &[(&str, Diffserv)] = &[
    ("diffserv3", Diffserv::Diffserv3),
    ("diffserv4", Diffserv::Diffserv4),
    ("diffserv8", Diffserv::Diffserv8),
    ("besteffort", Diffserv::Besteffort),
    ("precedence", Diffserv::Precedence),
];

const ISOLATION: &[(&str, Isolation)] = &[
    ("flowblind", Isolation::Flowblind),
    ("srchost", Isolation::Srchost),
    ("dsthost", Isolation::Dsthost),
    ("hosts", Isolation::Hosts),
    ("flows", Isolation::Flows),
    ("dual-srchost", Isolation::DualSrchost),
    ("dual-dsthost", Isolation::DualDsthost),
    ("triple-isolate", Isolation::TripleIsolate),
];

const ACK_FILTER: &[(&str, AckFilter)] = &[
    ("no-ack-filter", AckFilter::NoAckFilter),
    ("ack-filter", AckFilter::AckFilter),
    ("ack-filter-aggressive", AckFilter::AckFilterAggressive),
];

const LINK_LAYER: &[(&str, LinkLayer)] =
    &[("noatm", LinkLayer::Noatm), ("atm", LinkLayer::Atm), ("ptm", LinkLayer::Ptm)];

/// tc's words that the simulator has nothing for, and what would be right.
const REFUSED: &[(&str, &str)] = &[
    ("nat", "nonat: the simulator does not model address translation"),
    ("fwmark", "a diffserv mode: the simulator does not model a firewall's marks"),
    (
        "autorate-ingress",
        "\"bandwidth RATE\": the simulator does not model a rate that is estimated",
    ),
    ("no-split-gso", "split-gso: the simulator does not model bursts in cake's queues"),
];

/// The range of tc for `overhead` and `mpu`; what is below -20 might make a pure acknowledgement (40 bytes at least) cost nothing.
const OVERHEAD_LEAST: i32 = -20;
const OVERHEAD_MOST: i32 = 256;
const MPU_MOST: u32 = 256;
/// The kernel never shapes to less than 64 bytes a second.
const BANDWIDTH_LEAST: u64 = 512;
/// The kernel counts microseconds in 32 bits.
const RTT_LEAST: u64 = 1_000;
const RTT_MOST: u64 = u32::MAX as u64 * 1_000;

impl Plain for Diffserv {}
impl Plain for Isolation {}
impl Plain for AckFilter {}
impl Plain for LinkLayer {}

fn whole_microseconds(words: &mut Words<'_>, word: &str) -> Result<u64, Problem> {
    Ok(words.time(word)? / 1_000 * 1_000)
}

fn preset(draft: &mut Draft<'_, CakeSpec>, _: &mut Words<'_>, word: &str) -> Result<(), Problem> {
    if let Some(earlier) = draft.given.of("preset").next() {
        return Err(wrong(format!("\"{earlier}\" and \"{word}\""), "one of them"));
    }
    if let Some((_, us)) = PRESETS.iter().find(|(name, _)| *name == word) {
        draft.spec.rtt_ns = us * 1_000;
    }
    Ok(())
}

fn framing(draft: &mut Draft<'_, CakeSpec>, _: &mut Words<'_>, word: &str) -> Result<(), Problem> {
    let spec = &mut draft.spec;
    spec.raw = false;
    if let Some((_, layer, more, mpu)) = FRAMINGS.iter().find(|one| one.0 == word) {
        spec.link_layer = layer.unwrap_or(spec.link_layer);
        spec.overhead_bytes = spec.overhead_bytes.saturating_add(*more);
        spec.mpu_bytes = mpu.unwrap_or(spec.mpu_bytes);
    } else {
        // The word beside the list, `conservative`, sets and does not add.
        (spec.link_layer, spec.overhead_bytes) = (LinkLayer::Atm, 48);
    }
    Ok(())
}

impl CakeSpec {
    fn charge(&self) -> Charge {
        let Self { raw, overhead_bytes: overhead, mpu_bytes: mpu, link_layer, .. } = *self;
        Charge { raw, overhead, mpu, link_layer }
    }

    fn config(&self) -> Config {
        Config {
            rate: self.bandwidth_bps.unwrap_or_default() / 8,
            diffserv: self.diffserv,
            isolation: self.isolation,
            rtt_us: u64::from(micros(self.rtt_ns)),
            memory: self.memory_limit_bytes.map(saturated),
            charge: self.charge(),
            ack_filter: self.ack_filter,
            ingress: self.ingress,
            wash: self.wash,
        }
    }

    /// The delay above which best effort is marked or dropped: a twentieth of the round trip, but one and a half frames at the rate.
    #[must_use]
    pub fn target_ns(&self) -> u64 {
        let config = self.config();
        terms(config.rate, &config).cobalt.target
    }
}

impl Configuration for CakeSpec {
    type Model = Box<Cake>;

    const KIND: &'static str = "cake";
    const SINCE: Option<(u32, u32)> = Some((4, 19));
    const AQM: bool = true;
    const MODULES: &'static [&'static str] = &["sch_cake"];
    const EXAMPLES: &'static [&'static str] = &[
        "cake",
        "cake bandwidth 8mbit flows ack-filter",
        "cake bandwidth 20mbit besteffort dual-srchost ack-filter pppoe-ptm ether-vlan rtt 50ms memlimit 1mb ingress wash",
        "cake bandwidth 20mbit diffserv4 dual-dsthost wash ingress ack-filter-aggressive oceanic conservative memlimit 8mb",
        "cake raw ptm overhead -4 mpu 64 flowblind precedence no-ack-filter",
        "cake overhead 0 noatm hosts diffserv8",
    ];
    const EXTREMES: &'static [&'static str] = &[
        "cake memlimit 1mb ack-filter-aggressive interplanetary ingress",
        "cake bandwidth {}bit rtt 1us conservative",
    ];
    const UNMODELLED: &'static [&'static str] =
        &[REFUSED[0].0, REFUSED[1].0, REFUSED[2].0, REFUSED[3].0];
    const CUTS_BURSTS: bool = true;

    fn complete(mut self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        self.raw |= given.has("raw");
        Ok(self)
    }

    fn unknown(word: &str) -> Problem {
        match REFUSED.iter().find(|(refused, _)| *refused == word) {
            Some((_, right)) => wrong(format!("{word:?}"), *right),
            None => tc::unknown(word, &Self::words(), &[]),
        }
    }

    fn facts(&self) -> Facts {
        let frames = u64::from(self.config().memory_limit()) / truesize(FRAME);
        Facts {
            rate_bps: self.bandwidth_bps,
            shapes: self.bandwidth_bps.is_some(),
            draws: true,
            marks: true,
            // A flow's packets with different DSCPs are in different tins.
            reorders: self.diffserv != Diffserv::Besteffort,
            ..Facts::queue(Buffer::packets(saturated(frames)))
        }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Cake> {
        Box::new(Cake::new(self.config(), streams.named(Self::KIND)))
    }

    /// tc could give an unlimited one a rate; here a link's rate is its line's or that of a shaper that is there.
    fn changed(&self, change: Change) -> Option<Self> {
        match change {
            Change::RateBps(bps) => {
                self.bandwidth_bps.map(|_| Self { bandwidth_bps: Some(bps), ..*self })
            }
            Change::LimitBytes(bytes) => Some(Self { memory_limit_bytes: Some(bytes), ..*self }),
            Change::LimitPackets(_) | Change::DelayNs(_) | Change::Loss(_) => None,
        }
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let is_raw = Attributes(options).get(12).is_some();
        let mut all: Vec<Confirmation> = table::expected(self, Self::LAYOUT, options)
            .into_iter()
            .map(|(expected, found)| Confirmation::new(expected.what, found, expected.number))
            .collect();
        all.push(Confirmation::new("raw", Some(u32::from(is_raw)), self.raw.into()));
        all
    }

    /// `TCA_CAKE_STATS_TIN_STATS`, and in each tin `TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS`.
    fn marked(&self, statistics: &[u8]) -> u64 {
        let Some(tins) = Attributes(statistics).inside(10) else { return 0 };
        let of_tin = |tin| tins.inside(tin).and_then(|tin| tin.number(8)).unwrap_or_default();
        (1..=8).map(|tin| u64::from(of_tin(tin))).sum()
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use crate::arbitrary::Scope;
        use proptest::prelude::*;
        use proptest::sample::select;
        fn any_of<T: Copy + std::fmt::Debug + 'static>(
            list: &'static [(&'static str, T)],
        ) -> impl Strategy<Value = T> {
            select(list).prop_map(|(_, value)| value)
        }
        let memory = match scope {
            Scope::Anything => (0_u64..200_000).boxed(),
            Scope::Valid { frame_bytes } => {
                let least = truesize(saturated(frame_bytes).max(FRAME));
                (least..least + 500_000).boxed()
            }
        };
        let modes = (any_of(DIFFSERV), any_of(ISOLATION), any_of(ACK_FILTER), any_of(LINK_LAYER));
        let rtt = prop_oneof![2 => Just(100_000_000), 1 => scope.time_ns(300)];
        let rtt = rtt.prop_map(|ns| ns / 1_000 * 1_000);
        let sizes = (prop::option::of(scope.rate_bps()), rtt, prop::option::of(memory));
        let framing = (any::<bool>(), -20..=256_i32, 0..=256_u32);
        (sizes, modes, framing, any::<(bool, bool)>())
            .prop_map(|(sizes, modes, framing, (ingress, wash))| Self {
                bandwidth_bps: sizes.0,
                diffserv: modes.0,
                isolation: modes.1,
                rtt_ns: sizes.1,
                memory_limit_bytes: sizes.2,
                ack_filter: modes.2,
                raw: framing.0,
                overhead_bytes: framing.1,
                mpu_bytes: framing.2,
                link_layer: modes.3,
                ingress,
                wash,
            })
            .boxed()
    }
}
