//! ets in words, checks and the kernel's form (`q_ets.c`).

use super::Ets;
use crate::disciplines::prio::Priomap;
use crate::disciplines::prio::spec::{check_priomap, octets, printed, priomap};
use crate::disciplines::{
    Buffer, Configuration, Confirmation, FRAME, Facts, PRIORITIES, Streams, TXQUEUELEN,
};
use crate::netlink::{Attributes, Writer};
use crate::table::{Draft, GivenWords, Place, Word, table, whole};
use crate::tc::wrong;
use dragstrip_units::{Problem, Report};

/// `TCQ_ETS_MAX_BANDS`.
const BANDS_MAX: usize = 16;
/// A priority that `priomap` says nothing of: it has the last band.
const UNSAID: u32 = u32::MAX;
const NESTED: u16 = 0x8000;

// Attributes: TCA_ETS_NBANDS and on.
table! {
    /// Enhanced transmission selection: strict bands, then shares between the others.
    #[derive(Eq)]
    pub struct EtsSpec {
        /// Number of bands that are served first, in their order.
        strict: u32 = 0 => whole("strict").at_most(BANDS_MAX as u32).octet(2),
        /// Bytes that each band behind them may send in turn.
        quanta_bytes: Vec<u32> = Vec::new() =>
            Word::new(&["quanta"], "BYTES...", |draft: &mut Draft<'_, EtsSpec>, words, word| {
                while words.number_follows() {
                    draft.spec.quanta_bytes.push(words.whole(word)?);
                }
                Ok(())
            })
            .printed(|spec| {
                let quanta: Vec<String> = spec.quanta_bytes.iter().map(u32::to_string).collect();
                (!quanta.is_empty()).then(|| format!("quanta {}", quanta.join(" ")))
            })
            .checked(check_quanta)
            // TCA_ETS_QUANTA of TCA_ETS_QUANTA_BAND
            .sends(Place::Attribute(3 | NESTED), |spec| {
                let quanta = || Writer::value(|inside| {
                    for &quantum in &spec.quanta_bytes {
                        inside.u32(4, quantum);
                    }
                });
                (!spec.quanta_bytes.is_empty()).then(quanta)
            }),
        /// The band of each priority.
        priomap: [u32; PRIORITIES] = [UNSAID; PRIORITIES] =>
            Word::new(&["priomap"], "BAND...", |draft: &mut Draft<'_, EtsSpec>, words, word| {
                priomap(words, word, &mut draft.spec.priomap)
            })
            .printed(|spec| Some(format!("priomap {}", printed(&spec.priomap))))
            .checked(|spec, field, report| {
                let bands = u32::try_from(spec.bands()).unwrap_or(u32::MAX);
                check_priomap(bands, &spec.priomap, field, report);
            })
            // TCA_ETS_PRIOMAP of TCA_ETS_PRIOMAP_BAND
            .sends(Place::Attribute(5 | NESTED), |spec| {
                Some(Writer::value(|inside| {
                    for band in octets(&spec.priomap) {
                        inside.bytes(6, &[band]);
                    }
                }))
            }),
    }
    words {
        "bands" => Word::new(&["bands"], "NUMBER", |draft, words, word| {
            let bands = words.whole::<u8>(word)?;
            draft.given.keep(word, u64::from(bands));
            Ok(())
        })
        .about(|| "Number of bands; those that are not strict and have no quantum have a frame.".into())
        .printed(|spec: &EtsSpec| Some(format!("bands {}", spec.bands())))
        .sends(Place::Attribute(1), |spec| {
            Some(vec![u8::try_from(spec.bands()).unwrap_or(u8::MAX)])
        })
        .after(""),
    }
}

fn check_quanta(spec: &EtsSpec, field: &str, report: &mut Report) {
    let most = BANDS_MAX.saturating_sub(spec.strict as usize);
    if spec.quanta_bytes.len() > most || spec.bands() == 0 {
        let expected =
            format!("one for each band that is not strict: 1 to {BANDS_MAX} bands in all");
        report.add(field, spec.quanta_bytes.len(), expected);
    }
    for (band, &quantum) in spec.quanta_bytes.iter().enumerate() {
        report.at_least(format!("{field}[{band}]"), quantum, 1);
    }
}

impl EtsSpec {
    pub(crate) fn bands(&self) -> usize {
        self.strict as usize + self.quanta_bytes.len()
    }
}

impl Configuration for EtsSpec {
    type Model = Box<Ets>;

    const KIND: &'static str = "ets";
    const SINCE: Option<(u32, u32)> = Some((5, 6));
    const MODULES: &'static [&'static str] = &["sch_ets"];
    const EXAMPLES: &'static [&'static str] = &[
        "ets bands 3",
        "ets strict 2",
        "ets strict 1 quanta 3028 1514",
        "ets bands 8 strict 1 quanta 3028 1514 priomap 0 1 2",
    ];
    const UNMODELLED: &'static [&'static str] = &["leaf"];
    const LEAST: &'static str = "ets bands 3";
    const NESTED: bool = true;
    const KEEPS: bool = false;

    /// The number of bands follows from `strict` and `quanta` unless it is given; a band without a quantum has a frame.
    fn complete(mut self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        let configured_bands = self.bands();
        let bands = given.value("bands").map_or(configured_bands, |bands| bands as usize);
        if bands == 0 {
            let expected = "at least one band, such as \"bands 3\"";
            return Err(wrong("none of \"bands\", \"strict\" and \"quanta\"", expected));
        }
        if configured_bands > bands {
            return Err(wrong(
                format!("\"bands {bands}\""),
                format!("at least {configured_bands}: so many are strict or have a quantum"),
            ));
        }
        self.quanta_bytes.resize(bands - self.strict as usize, FRAME);
        let last = u32::try_from(bands - 1).unwrap_or(u32::MAX);
        self.priomap = self.priomap.map(|band| if band == UNSAID { last } else { band });
        Ok(self)
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
