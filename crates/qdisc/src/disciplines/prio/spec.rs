//! prio in words, checks and the kernel's form (`q_prio.c`).

use super::{PRIORITIES, Prio, Priomap};
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams, TXQUEUELEN};
use crate::netlink::word;
use crate::tc::{Text, Words, wrong};
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Strict priority between bands that the TOS bits choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrioSpec {
    /// Number of bands.
    pub bands: u32,
    /// The band of each priority.
    pub priomap: [u32; PRIORITIES],
}

/// `TCQ_MIN_PRIO_BANDS` and `TCQ_PRIO_BANDS`.
const BANDS: (u32, u32) = (2, 16);

impl Default for PrioSpec {
    /// tc's.
    fn default() -> Self {
        Self { bands: 3, priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1] }
    }
}

/// The numbers behind `priomap`, one per priority from 0 on; what is not given stays.
pub(crate) fn priomap(
    words: &mut Words<'_>,
    word: &str,
    map: &mut [u32; PRIORITIES],
) -> Result<(), Problem> {
    let mut places = map.iter_mut();
    while words.number_follows() {
        let band = words.whole(word)?;
        let too_many =
            || wrong(format!("{word:?} with more"), "at most 16 numbers, one per priority");
        *places.next().ok_or_else(too_many)? = band;
    }
    Ok(())
}

/// The map in tc's words.
pub(crate) fn printed(map: &[u32; PRIORITIES]) -> String {
    map.map(|band| band.to_string()).join(" ")
}

/// The map as the kernel has it.
pub(crate) fn octets(map: &[u32; PRIORITIES]) -> [u8; PRIORITIES] {
    map.map(|band| u8::try_from(band).unwrap_or(u8::MAX))
}

/// Every priority has a band.
pub(crate) fn check_priomap(bands: u32, map: &[u32; PRIORITIES], at: &str, report: &mut Report) {
    for (priority, &band) in map.iter().enumerate() {
        if band >= bands {
            let expected = format!("a band below {bands}");
            report.add(format!("{at}.priomap[{priority}]"), band, expected);
        }
    }
}

impl Configuration for PrioSpec {
    type Model = Box<Prio>;

    const KIND: &'static str = "prio";
    const WORDS: &'static [&'static str] = &["bands", "priomap"];
    const UNMODELLED: &'static [&'static str] = &["multiqueue", "leaf"];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "bands" => spec.bands = words.whole(word)?,
                "priomap" => priomap(words, word, &mut spec.priomap)?,
                _ => return Err(Self::unknown(word)),
            }
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND).pair("bands", self.bands).pair("priomap", printed(&self.priomap))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self { bands, priomap } = self;
        report.at_least(format!("{at}.bands"), *bands, BANDS.0);
        report.at_most(format!("{at}.bands"), *bands, BANDS.1);
        check_priomap(*bands, priomap, at, report);
    }

    /// Packets of a flow that differ in DSCP overtake each other.
    fn facts(&self) -> Facts {
        let packets = self.bands.saturating_mul(TXQUEUELEN);
        Facts { reorders: true, ..Facts::queue(Buffer::packets(packets)) }
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Prio> {
        Box::new(Prio::new(self.bands, Priomap(self.priomap)))
    }

    /// struct tc_prio_qopt
    fn options(&self) -> Option<Vec<u8>> {
        let mut bytes = self.bands.to_ne_bytes().to_vec();
        bytes.extend(octets(&self.priomap));
        Some(bytes)
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let map = octets(&self.priomap);
        let four = |at| word(&map, at).unwrap_or_default();
        vec![
            Confirmation::new("bands", word(options, 0), self.bands),
            Confirmation::new("priomap", word(options, 4), four(0)),
            Confirmation::new("priomap", word(options, 8), four(4)),
        ]
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let bands = scope.choose(0_u32..20, 2..=16_u32);
        (bands, any::<[u32; PRIORITIES]>(), any::<bool>())
            .prop_map(move |(bands, map, wild)| {
                let wild = wild && scope == crate::arbitrary::Scope::Anything;
                let within = |band: u32| if wild { band } else { band % bands.max(1) };
                Self { bands, priomap: map.map(within) }
            })
            .boxed()
    }
}
