//! skbprio in words, checks and the kernel's form (`q_skbprio.c`).

use super::Skbprio;
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::table::{Layout, packets, table};

// struct tc_skbprio_qopt. The default is the kernel's (`skbprio_init`).
table! {
    /// Strict priority by the TOS bits, where the newest packet of the lowest priority makes room.
    #[derive(Copy, Eq)]
    pub struct SkbprioSpec {
        /// Packets that may wait.
        limit_packets: u32 = 64 => packets("limit").at_least(1).at(0).confirmed(),
    }
}

impl Configuration for SkbprioSpec {
    type Model = Box<Skbprio>;

    const KIND: &'static str = "skbprio";
    const SINCE: Option<(u32, u32)> = Some((4, 20));
    const MODULES: &'static [&'static str] = &["sch_skbprio"];
    const EXAMPLES: &'static [&'static str] = &["skbprio", "skbprio limit 100"];
    const EXTREMES: &'static [&'static str] = &["skbprio limit 1", "skbprio limit 4294967295"];
    const LAYOUT: Layout = Layout::Structure(4);

    /// Packets of a flow that differ in DSCP overtake each other.
    fn facts(&self) -> Facts {
        Facts { reorders: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Skbprio> {
        Box::new(Skbprio::new(self))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets })
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        scope.packets().prop_map(|limit_packets| Self { limit_packets }).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QdiscSpec;

    #[test]
    fn words_have_the_kernels_defaults() {
        let spec = |limit_packets| Ok(QdiscSpec::from(SkbprioSpec { limit_packets }));
        assert_eq!(QdiscSpec::parse("skbprio"), spec(64));
        assert_eq!(QdiscSpec::parse("skbprio limit 1k"), spec(1024));
        assert!(QdiscSpec::parse("skbprio bands 7").is_err());
        let options = SkbprioSpec { limit_packets: 7 }.options();
        assert_eq!(options.as_deref(), Some(&7_u32.to_ne_bytes()[..]));
    }
}
