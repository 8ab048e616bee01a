//! A policer in words, checks and the kernel's form (`m_police.c`).

use super::{Config, Police};
use crate::contract::Change;
use crate::disciplines::fifo::PfifoSpec;
use crate::disciplines::{
    Class, Configuration, Confirmation, Discipline, Facts, QdiscSpec, Streams,
};
use crate::netlink::{Attributes, Writer, ratespec, saturated, ticks, word, words};
use crate::table::{self, GivenWords, Word, packets, size, table};
use crate::tc::{self, wrong};
use crate::token_rate::rate;
use dragstrip_units::{Problem, Report};

/// `tcf_police_init` without an mtu: 255 cells of the smallest table that tc makes, which are 8 bytes each.
const MTU_BYTES: u32 = 255 << 3;
/// `TC_ACT_SHOT`.
const SHOT: u32 = 2;
/// `TC_RTAB_SIZE`.
const TABLE_BYTES: usize = 1024;

// What exceeds is dropped, whether `drop` says so or not. Behind it waits a pfifo of `txqueuelen` packets.
table! {
    /// A policer, which drops what comes faster than its rate, and the queue behind it.
    pub struct PoliceSpec {
        /// Token rate.
        rate_bps: u64 = 0 => table::rate("rate").mandatory("1mbit"),
        /// Bucket.
        burst_bytes: u64 = 0 =>
            size("burst").or(&["buffer", "maxburst"]).mandatory("15kb").at_least(1),
        /// The longest frame that may pass; with a peak rate also the second bucket.
        mtu_bytes: u32 = MTU_BYTES =>
            packets("mtu").called("SIZE").or(&["minburst"]).written(size_of_mtu).at_least(1),
        /// Second bucket's rate.
        #[serde(default)]
        peakrate_bps: Option<u64> = None =>
            table::rate("peakrate").at_least_of("rate", |spec: &PoliceSpec| spec.rate_bps),
        /// Queue discipline behind it.
        leaf: Box<QdiscSpec> = Box::new(QdiscSpec::from(PfifoSpec::default())) =>
            Word::new(&["leaf"], "DISCIPLINE", |draft: &mut table::Draft<'_, PoliceSpec>, words, _| {
                *draft.spec.leaf = QdiscSpec::parse_words(words)?;
                Ok(())
            })
            .printed(|spec| Some(format!("leaf {}", spec.leaf.print())))
            .checked(check_leaf),
    }
    words {
        "drop" => Word::new(&["drop"], "", |_, _, _| Ok(()))
            .about(|| "What happens to what exceeds, said or not.".into())
            .after("peakrate_bps"),
    }
}

fn size_of_mtu(bytes: u32) -> String {
    tc::size(u64::from(bytes))
}

fn check_leaf(spec: &PoliceSpec, field: &str, report: &mut Report) {
    let leaf = &spec.leaf;
    if leaf.policer().is_some() || **leaf == QdiscSpec::NOQUEUE {
        let expected = "a queue, such as pfifo limit 1000, without a policer of its own";
        report.add(field, leaf.kind(), expected);
    }
    leaf.check(field, report);
}

impl PoliceSpec {
    fn ratespec(&self, rate_bps: Option<u64>) -> Vec<u8> {
        let Some(rate_bps) = rate_bps else { return vec![0; 12] };
        let mut bytes = ratespec(rate_bps, 0, 0, false);
        // cell_log, which the kernel wants with its table.
        bytes[0] = 3;
        bytes
    }
}

impl Configuration for PoliceSpec {
    type Model = Box<Police<Discipline>>;

    const KIND: &'static str = "police";
    const MODULES: &'static [&'static str] = &["sch_ingress", "cls_matchall", "act_police"];
    const EXAMPLES: &'static [&'static str] = &[
        "police rate 1mbit burst 15kb",
        "police rate 1mbit burst 15kb drop mtu 1514 peakrate 2mbit leaf fq_codel",
    ];
    const UNMODELLED: &'static [&'static str] =
        &["avrate", "overhead", "linklayer", "pkts_rate", "pkts_burst", "conform-exceed", "index"];
    const LEAST: &'static str = "police rate 1mbit burst 15kb";
    const CLASSFUL: bool = true;
    const NESTED: bool = true;
    const KEEPS: bool = false;
    const CUTS_BURSTS: bool = true;

    fn complete(self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        if self.peakrate_bps.is_some() && !given.has("mtu_bytes") {
            return Err(wrong("\"peakrate\" without \"mtu\"", "both: the mtu is its bucket"));
        }
        Ok(self)
    }

    /// A packet longer than the bucket, or than the mtu, can never pass.
    fn facts(&self) -> Facts {
        let leaf = self.leaf.facts();
        let rates = [Some(self.rate_bps), self.peakrate_bps, leaf.rate_bps];
        let inside =
            leaf.holds_packet.into_iter().map(|(field, bytes)| (format!("leaf.{field}"), bytes));
        let limits = [("burst_bytes", self.burst_bytes), ("mtu_bytes", u64::from(self.mtu_bytes))];
        Facts {
            rate_bps: rates.into_iter().flatten().min(),
            holds_packet: limits
                .into_iter()
                .map(|(field, bytes)| (field.to_owned(), bytes))
                .chain(inside)
                .collect(),
            pays: leaf
                .pays
                .into_iter()
                .map(|(field, pays)| (format!("leaf.{field}"), pays))
                .collect(),
            ..leaf
        }
    }

    fn build(&self, streams: &Streams<'_>) -> Self::Model {
        let config = Config {
            rate: rate(self.rate_bps),
            burst: self.burst_bytes,
            mtu: self.mtu_bytes,
            peak: self.peakrate_bps.map(rate),
        };
        Box::new(Police::new(config, self.leaf.build(streams)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        if let Change::RateBps(rate_bps) = change {
            return Some(Self { rate_bps, ..self.clone() });
        }
        let leaf = Box::new(self.leaf.changed(change)?);
        Some(Self { leaf, ..self.clone() })
    }

    /// Returns the options of the action: `TCA_ACT_OPTIONS` with struct tc_police. The tables are empty: a link layer
    /// is named, and the kernel computes costs itself.
    fn options(&self) -> Option<Vec<u8>> {
        let burst = ticks(self.rate_bps, self.burst_bytes);
        let mut parameters = words(&[0, SHOT, 0, burst, self.mtu_bytes]);
        parameters.extend(self.ratespec(Some(self.rate_bps)));
        parameters.extend(self.ratespec(self.peakrate_bps));
        parameters.extend(words(&[0, 0, 0]));
        Some(Writer::value(|inside| {
            inside.bytes(1, &parameters).bytes(2, &[0; TABLE_BYTES]); // TCA_POLICE_TBF, TCA_POLICE_RATE
            inside.u64(8, self.rate_bps / 8); // TCA_POLICE_RATE64
            if let Some(peak) = self.peakrate_bps {
                inside.bytes(3, &[0; TABLE_BYTES]).u64(9, peak / 8); // TCA_POLICE_PEAKRATE, TCA_POLICE_PEAKRATE64
            }
        }))
    }

    /// The queue behind it; nothing is set up for it but that queue.
    fn classes(&self) -> Vec<Class<'_>> {
        vec![Class { options: Vec::new(), child: &self.leaf }]
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let parameters = Attributes(options).get(1).unwrap_or_default();
        let burst = ticks(self.rate_bps, self.burst_bytes);
        vec![
            Confirmation::new("action", word(parameters, 4), SHOT),
            Confirmation::new("burst in ticks", word(parameters, 12), burst),
            Confirmation::new("mtu", word(parameters, 16), self.mtu_bytes),
            Confirmation::new(
                "rate in bytes per second",
                word(parameters, 28),
                saturated(self.rate_bps / 8),
            ),
        ]
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let mtu = scope.choose(0_u32..3_000, 1514..3_000_u32);
        let peak_tenths = prop::option::of(scope.choose(1_u64..40, 10..40_u64));
        (scope.rate_bps(), scope.bytes(), mtu, peak_tenths, QdiscSpec::arbitrary_classless(scope))
            .prop_map(|(rate_bps, burst_bytes, mtu_bytes, peak_tenths, leaf)| Self {
                rate_bps,
                burst_bytes,
                mtu_bytes,
                peakrate_bps: peak_tenths.map(|tenths| rate_bps * tenths / 10),
                leaf: Box::new(if leaf == QdiscSpec::NOQUEUE {
                    PfifoSpec::default().into()
                } else {
                    leaf
                }),
            })
            .boxed()
    }
}
