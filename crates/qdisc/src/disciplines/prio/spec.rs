//! prio in words, checks and the kernel's form (`q_prio.c`).

use super::{Prio, Priomap};
use crate::disciplines::{
    Buffer, Configuration, Confirmation, Facts, PRIORITIES, Streams, TXQUEUELEN,
};
use crate::netlink::word;
use crate::table::{self, Layout, Place, Word, table, whole};
use crate::tc::{Words, wrong};
use dragstrip_units::{Problem, Report};

/// `TCQ_MIN_PRIO_BANDS` and `TCQ_PRIO_BANDS`.
const BANDS: (u32, u32) = (2, 16);

// struct tc_prio_qopt
table! {
    /// Strict priority between bands that the TOS bits choose.
    #[derive(Copy, Eq)]
    pub struct PrioSpec {
        /// Number of bands.
        bands: u32 = 3 => whole("bands").at_least(BANDS.0).at_most(BANDS.1).at(0),
        /// The band of each priority.
        priomap: [u32; PRIORITIES] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1] =>
            Word::new(&["priomap"], "BAND...", |draft: &mut table::Draft<'_, PrioSpec>, words, word| {
                priomap(words, word, &mut draft.spec.priomap)
            })
            .printed(|spec| Some(format!("priomap {}", printed(&spec.priomap))))
            .checked(|spec, field, report| check_priomap(spec.bands, &spec.priomap, field, report))
            .sends(Place::At(4), |spec| Some(octets(&spec.priomap).to_vec())),
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
pub(crate) fn check_priomap(bands: u32, map: &[u32; PRIORITIES], field: &str, report: &mut Report) {
    for (priority, &band) in map.iter().enumerate() {
        if band >= bands {
            let expected = format!("a band below {bands}");
            report.add(format!("{field}[{priority}]"), band, expected);
        }
    }
}

impl Configuration for PrioSpec {
    type Model = Box<Prio>;

    const KIND: &'static str = "prio";
    const MODULES: &'static [&'static str] = &["sch_prio"];
    const EXAMPLES: &'static [&'static str] = &["prio", "prio bands 4 priomap 3 2 1 0"];
    const LAYOUT: Layout = Layout::Structure(20);
    const UNMODELLED: &'static [&'static str] = &["multiqueue", "leaf"];

    /// Packets of a flow that differ in DSCP overtake each other.
    fn facts(&self) -> Facts {
        let packets = self.bands.saturating_mul(TXQUEUELEN);
        Facts { reorders: true, ..Facts::queue(Buffer::packets(packets)) }
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Prio> {
        Box::new(Prio::new(self.bands, Priomap(self.priomap)))
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
                let clamp_band = |band: u32| if wild { band } else { band % bands.max(1) };
                Self { bands, priomap: map.map(clamp_band) }
            })
            .boxed()
    }
}
