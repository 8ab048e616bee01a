//! cake in words, checks and the kernel's form (`q_cake.c`).

use super::tins::terms;
use super::{AckFilter, Cake, Charge, Config, Diffserv, Isolation, LinkLayer};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, FRAME, Facts, Streams};
use crate::netlink::{Attributes, Writer, micros, saturated};
use crate::tc::{self, Text, Words, unless, wrong};
use crate::truesize::truesize;
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Common Applications Kept Enhanced: shaper, priorities by DSCP, fairness between hosts and flows, and an AQM in each queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CakeSpec {
    /// Rate of the shaper; none: it lets go what the line takes.
    #[serde(default)]
    pub bandwidth_bps: Option<u64>,
    /// Tins by DSCP.
    pub diffserv: Diffserv,
    /// Whom a queue is for, and between whom the rate is shared.
    pub isolation: Isolation,
    /// Round-trip time of the paths behind it: the AQM's interval; its target is a twentieth.
    pub rtt_ns: u64,
    /// Memory of waiting packets, with what the kernel adds to each; none: four round trips at the rate, from 4 MiB to 15 MB.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Which acknowledgements a newer one removes from the queue.
    pub ack_filter: AckFilter,
    /// Count frames with Ethernet's header; false: IP packets, as tc does wherever it is told an overhead.
    pub raw: bool,
    /// Added to every packet's charge; may be negative.
    pub overhead_bytes: i32,
    /// Least charge per packet.
    pub mpu_bytes: u32,
    /// What the line makes of a packet.
    pub link_layer: LinkLayer,
    /// What it drops has used the line already, and is charged for.
    pub ingress: bool,
    /// Clear the DSCP of what leaves.
    pub wash: bool,
}

impl Default for CakeSpec {
    /// What tc and the kernel fill in.
    fn default() -> Self {
        Self {
            bandwidth_bps: None,
            diffserv: Diffserv::default(),
            isolation: Isolation::default(),
            rtt_ns: 100_000_000,
            memory_limit_bytes: None,
            ack_filter: AckFilter::default(),
            raw: true,
            overhead_bytes: 0,
            mpu_bytes: 0,
            link_layer: LinkLayer::default(),
            ingress: false,
            wash: false,
        }
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

/// The lists above are in the order of the kernel's numbers, `DIFFSERV` to `LINK_LAYER`.
fn number<T: PartialEq>(list: &[(&str, T)], value: &T) -> u32 {
    list.iter().position(|(_, one)| one == value).unwrap_or_default() as u32
}

fn name<'a, T: PartialEq>(list: &[(&'a str, T)], value: &T) -> &'a str {
    list.iter().find(|(_, one)| one == value).map_or("", |(word, _)| word)
}

fn named<T: Copy>(list: &[(&str, T)], word: &str) -> Option<T> {
    list.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

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

    /// Takes one of the words that need no value; whether it is one.
    fn take(&mut self, word: &str, raw: &mut bool) -> bool {
        if let Some(diffserv) = named(DIFFSERV, word) {
            self.diffserv = diffserv;
        } else if let Some(isolation) = named(ISOLATION, word) {
            self.isolation = isolation;
        } else if let Some(ack_filter) = named(ACK_FILTER, word) {
            self.ack_filter = ack_filter;
        } else if let Some(link_layer) = named(LINK_LAYER, word) {
            self.link_layer = link_layer;
        } else if let Some((_, layer, more, mpu)) = FRAMINGS.iter().find(|one| one.0 == word) {
            self.link_layer = layer.unwrap_or(self.link_layer);
            self.overhead_bytes = self.overhead_bytes.saturating_add(*more);
            self.mpu_bytes = mpu.unwrap_or(self.mpu_bytes);
            self.raw = false;
        } else {
            match word {
                "unlimited" => self.bandwidth_bps = None,
                "diffserv" => self.diffserv = Diffserv::Diffserv4,
                "ingress" => self.ingress = true,
                "egress" => self.ingress = false,
                "wash" => self.wash = true,
                "nowash" => self.wash = false,
                "conservative" => {
                    (self.link_layer, self.overhead_bytes, self.raw) = (LinkLayer::Atm, 48, false);
                }
                "raw" => {
                    (self.link_layer, self.overhead_bytes) = (LinkLayer::Noatm, 0);
                    *raw = true;
                }
                // What the simulator has anyway, and what tc takes and ignores.
                "nonat" | "split-gso" | "via-ethernet" => {}
                _ => return false,
            }
        }
        true
    }
}

impl Configuration for CakeSpec {
    type Model = Box<Cake>;

    const KIND: &'static str = "cake";
    const WORDS: &'static [&'static str] = &[
        "bandwidth",
        "unlimited",
        "besteffort",
        "precedence",
        "diffserv3",
        "diffserv4",
        "diffserv8",
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
        "rtt",
        "datacentre",
        "lan",
        "metro",
        "regional",
        "internet",
        "oceanic",
        "satellite",
        "interplanetary",
        "memlimit",
        "no-ack-filter",
        "ack-filter",
        "ack-filter-aggressive",
        "raw",
        "overhead",
        "mpu",
        "noatm",
        "atm",
        "ptm",
        "conservative",
        "docsis",
        "ethernet",
        "ether-vlan",
        "ipoa-vcmux",
        "ipoa-llcsnap",
        "bridged-vcmux",
        "bridged-llcsnap",
        "pppoa-vcmux",
        "pppoa-llc",
        "pppoe-vcmux",
        "pppoe-llcsnap",
        "pppoe-ptm",
        "bridged-ptm",
        "ingress",
        "egress",
        "wash",
        "nowash",
        "nonat",
        "split-gso",
    ];
    const UNMODELLED: &'static [&'static str] =
        &["nat", "fwmark", "autorate-ingress", "no-split-gso"];
    const GRAMMAR: &'static str = "\
- `bandwidth RATE` or `unlimited`; `rtt TIME`, or one by name: `datacentre` (100 us), `lan` (1 ms), `metro` (10 ms), `regional` (30 ms),
  `internet` (100 ms), `oceanic` (300 ms), `satellite` (1 s), `interplanetary` (1000 s); `memlimit SIZE`
- `besteffort`, `precedence`, `diffserv3`, `diffserv4` or `diffserv8`
- `flowblind`, `srchost`, `dsthost`, `hosts`, `flows`, `dual-srchost`, `dual-dsthost` or `triple-isolate`
- `no-ack-filter`, `ack-filter` or `ack-filter-aggressive`; `ingress` or `egress`; `wash` or `nowash`
- `raw`, or `overhead BYTES`, `mpu BYTES` and `noatm`, `atm` or `ptm`, or by name: `conservative`, `docsis`, `ethernet`, `ether-vlan`,
  `pppoe-vcmux`, `pppoe-ptm` and tc's others
- refused, for the simulator has nothing like it: `nat`, `fwmark`, `autorate-ingress`, `no-split-gso`
";

    /// The last of several words for one thing counts; named framings add up. `raw` anywhere means that frames are counted.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        let (mut raw, mut preset) = (false, None);
        while let Some(word) = words.next() {
            if spec.take(word, &mut raw) {
                continue;
            }
            if let Some(us) = named(PRESETS, word) {
                if let Some(earlier) = preset.replace(word) {
                    let value = format!("\"{earlier}\" and \"{word}\"");
                    return Err(wrong(value, "one of them"));
                }
                spec.rtt_ns = us * 1_000;
                continue;
            }
            match word {
                "bandwidth" => spec.bandwidth_bps = Some(words.rate(word)?),
                "rtt" => spec.rtt_ns = words.time(word)? / 1_000 * 1_000,
                "memlimit" => spec.memory_limit_bytes = Some(words.size(word)?),
                "overhead" => (spec.overhead_bytes, spec.raw) = (words.whole(word)?, false),
                "mpu" => spec.mpu_bytes = words.whole(word)?,
                _ => {
                    let refused = named(REFUSED, word);
                    return Err(refused.map_or_else(
                        || Self::unknown(word),
                        |right| wrong(format!("{word:?}"), right),
                    ));
                }
            }
        }
        spec.raw |= raw;
        Ok(spec)
    }

    fn print(&self) -> Text {
        let Self { bandwidth_bps, raw, overhead_bytes, mpu_bytes, .. } = *self;
        let text = Text::new(Self::KIND);
        let text = match bandwidth_bps {
            Some(bps) => text.pair("bandwidth", tc::rate(bps)),
            None => text.word("unlimited"),
        };
        text.word(name(DIFFSERV, &self.diffserv))
            .word(name(ISOLATION, &self.isolation))
            .word(if self.wash { "wash" } else { "nowash" })
            .word(if self.ingress { "ingress" } else { "" })
            .word(name(ACK_FILTER, &self.ack_filter))
            .pair("rtt", tc::time(self.rtt_ns))
            .word(if raw { "raw" } else { "" })
            .word(name(LINK_LAYER, &self.link_layer))
            .optional("overhead", unless(raw && overhead_bytes == 0, overhead_bytes))
            .optional("mpu", unless(mpu_bytes == 0, mpu_bytes))
            .optional("memlimit", self.memory_limit_bytes.map(tc::size))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            bandwidth_bps,
            diffserv: _,
            isolation: _,
            rtt_ns,
            memory_limit_bytes,
            ack_filter: _,
            raw: _,
            overhead_bytes,
            mpu_bytes,
            link_layer: _,
            ingress: _,
            wash: _,
        } = *self;
        if let Some(bps) = bandwidth_bps {
            report.shaper_rate(format!("{at}.bandwidth_bps"), bps);
            report.at_least(format!("{at}.bandwidth_bps"), bps, BANDWIDTH_LEAST);
        }
        report.at_least(format!("{at}.rtt_ns"), rtt_ns, RTT_LEAST);
        report.at_most(format!("{at}.rtt_ns"), rtt_ns, RTT_MOST);
        if let Some(limit) = memory_limit_bytes {
            report.at_least(format!("{at}.memory_limit_bytes"), limit, truesize(FRAME));
            report.at_most(format!("{at}.memory_limit_bytes"), limit, u32::MAX.into());
        }
        report.at_least(format!("{at}.overhead_bytes"), overhead_bytes, OVERHEAD_LEAST);
        report.at_most(format!("{at}.overhead_bytes"), overhead_bytes, OVERHEAD_MOST);
        report.at_most(format!("{at}.mpu_bytes"), mpu_bytes, MPU_MOST);
    }

    fn facts(&self) -> Facts {
        let frames = u64::from(self.config().memory_limit()) / truesize(FRAME);
        Facts {
            rate_bps: self.bandwidth_bps,
            shapes: self.bandwidth_bps.is_some(),
            draws: true,
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

    fn options(&self) -> Option<Vec<u8>> {
        let config = self.config();
        Some(Writer::value(|inside| {
            inside.u64(2, config.rate); // TCA_CAKE_BASE_RATE64
            inside.u32(3, number(DIFFSERV, &self.diffserv)); // TCA_CAKE_DIFFSERV_MODE
            inside.u32(4, number(LINK_LAYER, &self.link_layer)); // TCA_CAKE_ATM
            inside.u32(5, number(ISOLATION, &self.isolation)); // TCA_CAKE_FLOW_MODE
            inside.u32(6, self.overhead_bytes as u32); // TCA_CAKE_OVERHEAD
            // TCA_CAKE_RTT, TCA_CAKE_TARGET
            inside.u32(7, saturated(config.rtt_us)).u32(8, saturated(config.target_us()));
            inside.u32(10, config.memory.unwrap_or_default()); // TCA_CAKE_MEMORY
            if self.raw {
                inside.u32(12, 0); // TCA_CAKE_RAW
            }
            inside.u32(13, u32::from(self.wash)); // TCA_CAKE_WASH
            inside.u32(14, self.mpu_bytes); // TCA_CAKE_MPU
            inside.u32(15, u32::from(self.ingress)); // TCA_CAKE_INGRESS
            inside.u32(16, number(ACK_FILTER, &self.ack_filter)); // TCA_CAKE_ACK_FILTER
            inside.u32(17, 1); // TCA_CAKE_SPLIT_GSO
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let (inside, config) = (Attributes(options), self.config());
        let one = |what, kind, wanted| Confirmation::new(what, inside.number(kind), wanted);
        vec![
            // The lower half of 64 bits.
            one("bandwidth in bytes per second", 2, config.rate as u32),
            one("diffserv mode", 3, number(DIFFSERV, &self.diffserv)),
            one("link layer", 4, number(LINK_LAYER, &self.link_layer)),
            one("flow mode", 5, number(ISOLATION, &self.isolation)),
            one("overhead", 6, self.overhead_bytes as u32),
            one("rtt in microseconds", 7, saturated(config.rtt_us)),
            one("target in microseconds", 8, saturated(config.target_us())),
            one("memlimit", 10, config.memory.unwrap_or_default()),
            Confirmation::new("raw", Some(u32::from(inside.get(12).is_some())), self.raw.into()),
            one("wash", 13, u32::from(self.wash)),
            one("mpu", 14, self.mpu_bytes),
            one("ingress", 15, u32::from(self.ingress)),
            one("ack-filter", 16, number(ACK_FILTER, &self.ack_filter)),
        ]
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
