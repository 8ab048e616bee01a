//! ets in words, checks and the kernel's form (`q_ets.c`).

use super::Ets;
use crate::disciplines::prio::spec::{check_priomap, octets, printed, priomap};
use crate::disciplines::prio::{PRIORITIES, Priomap};
use crate::disciplines::{Buffer, Configuration, Confirmation, FRAME, Facts, Streams, TXQUEUELEN};
use crate::netlink::{Attributes, Writer};
use crate::tc::{Text, Words, wrong};
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Enhanced transmission selection: strict bands, then shares between the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EtsSpec {
    /// Number of bands that are served first, in their order.
    pub strict: u32,
    /// Bytes that each band behind them may send in turn.
    pub quanta_bytes: Vec<u32>,
    /// The band of each priority.
    pub priomap: [u32; PRIORITIES],
}

/// `TCQ_ETS_MAX_BANDS`.
const BANDS_MAX: usize = 16;

impl EtsSpec {
    fn bands(&self) -> usize {
        self.strict as usize + self.quanta_bytes.len()
    }
}

impl Configuration for EtsSpec {
    type Model = Box<Ets>;

    const KIND: &'static str = "ets";
    const WORDS: &'static [&'static str] = &["bands", "strict", "quanta", "priomap"];
    const UNMODELLED: &'static [&'static str] = &["leaf"];
    const LEAST: &'static str = "ets bands 3";
    const NESTED: bool = true;

    /// The number of bands follows from `strict` and `quanta` unless it is given; a band without a quantum has a frame.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let (mut bands, mut strict, mut quanta) = (None, 0, Vec::new());
        let mut given = [u32::MAX; PRIORITIES];
        while let Some(word) = words.next() {
            match word {
                "bands" => bands = Some(words.whole::<u8>(word)?),
                "strict" => strict = words.whole::<u32>(word)?,
                "quanta" => {
                    while words.number_follows() {
                        quanta.push(words.whole::<u32>(word)?);
                    }
                }
                "priomap" => priomap(words, word, &mut given)?,
                _ => return Err(Self::unknown(word)),
            }
        }
        let named = strict as usize + quanta.len();
        let bands = bands.map_or(named, |bands| bands as usize);
        if bands == 0 {
            let expected = "at least one band, such as \"bands 3\"";
            return Err(wrong("none of \"bands\", \"strict\" and \"quanta\"", expected));
        }
        if named > bands {
            return Err(wrong(
                format!("\"bands {bands}\""),
                format!("at least {named}: so many are strict or have a quantum"),
            ));
        }
        quanta.resize(bands - strict as usize, FRAME);
        let last = u32::try_from(bands - 1).unwrap_or(u32::MAX);
        let priomap = given.map(|band| if band == u32::MAX { last } else { band });
        Ok(Self { strict, quanta_bytes: quanta, priomap })
    }

    fn print(&self) -> Text {
        let quanta: Vec<String> = self.quanta_bytes.iter().map(u32::to_string).collect();
        let quanta = (!quanta.is_empty()).then(|| quanta.join(" "));
        Text::new(Self::KIND)
            .pair("bands", self.bands())
            .pair("strict", self.strict)
            .optional("quanta", quanta)
            .pair("priomap", printed(&self.priomap))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self { strict, quanta_bytes, priomap } = self;
        report.at_most(format!("{at}.strict"), *strict as usize, BANDS_MAX);
        let most = BANDS_MAX.saturating_sub(*strict as usize);
        if quanta_bytes.len() > most || self.bands() == 0 {
            let expected =
                format!("one for each band that is not strict: 1 to {BANDS_MAX} bands in all");
            report.add(format!("{at}.quanta_bytes"), quanta_bytes.len(), expected);
        }
        for (band, &quantum) in quanta_bytes.iter().enumerate() {
            report.at_least(format!("{at}.quanta_bytes[{band}]"), quantum, 1);
        }
        let bands = u32::try_from(self.bands()).unwrap_or(u32::MAX);
        check_priomap(bands, priomap, at, report);
    }

    /// Packets of a flow that differ in DSCP overtake each other.
    fn facts(&self) -> Facts {
        let bands = u32::try_from(self.bands()).unwrap_or(u32::MAX);
        let packets = bands.saturating_mul(TXQUEUELEN);
        Facts { reorders: true, ..Facts::queue(Buffer::packets(packets)) }
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Ets> {
        let quanta = self.quanta_bytes.iter().map(|&quantum| quantum.max(1)).collect();
        Box::new(Ets::new(self.strict, quanta, Priomap(self.priomap)))
    }

    fn options(&self) -> Option<Vec<u8>> {
        const NESTED: u16 = 0x8000;
        Some(Writer::value(|inside| {
            // TCA_ETS_NBANDS, TCA_ETS_NSTRICT
            let bands = u8::try_from(self.bands()).unwrap_or(u8::MAX);
            inside.bytes(1, &[bands]).bytes(2, &[u8::try_from(self.strict).unwrap_or(u8::MAX)]);
            if !self.quanta_bytes.is_empty() {
                // TCA_ETS_QUANTA of TCA_ETS_QUANTA_BAND
                inside.nest(3 | NESTED, |inside| {
                    for &quantum in &self.quanta_bytes {
                        inside.u32(4, quantum);
                    }
                });
            }
            // TCA_ETS_PRIOMAP of TCA_ETS_PRIOMAP_BAND
            inside.nest(5 | NESTED, |inside| {
                for band in octets(&self.priomap) {
                    inside.bytes(6, &[band]);
                }
            });
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        let first = |kind| inside.get(kind).and_then(<[u8]>::first).map(|&byte| u32::from(byte));
        let bands = u32::try_from(self.bands()).unwrap_or(u32::MAX);
        vec![
            Confirmation::new("bands", first(1), bands),
            // The kernel leaves out a zero.
            Confirmation::new("strict", Some(first(2).unwrap_or(0)), self.strict),
        ]
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let quanta = prop::collection::vec(scope.quantum_bytes(), 1..9);
        (0_u32..7, any::<[u32; PRIORITIES]>(), quanta)
            .prop_map(|(strict, map, quanta_bytes)| {
                let bands = strict + quanta_bytes.len() as u32;
                Self { strict, quanta_bytes, priomap: map.map(|band| band % bands) }
            })
            .boxed()
    }
}
