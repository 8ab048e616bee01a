//! noqueue, bfifo and pfifo in words, checks and the kernel's form (`q_fifo.c`).

use super::{Fifo, Limit};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::disciplines::{FRAME, TXQUEUELEN};
use crate::netlink::{saturated, word};
use crate::tc::{Text, Words, size};
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unlimited FIFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoqueueSpec {}

/// FIFO limited in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BfifoSpec {
    /// Bytes that may wait.
    pub limit_bytes: u64,
}

/// FIFO limited in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PfifoSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
}

impl Default for PfifoSpec {
    /// `txqueuelen` packets.
    fn default() -> Self {
        Self { limit_packets: TXQUEUELEN }
    }
}

impl Configuration for NoqueueSpec {
    type Model = Fifo;

    const KIND: &'static str = "noqueue";
    const WORDS: &'static [&'static str] = &[];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        words.next().map_or(Ok(Self {}), |word| Err(Self::unknown(word)))
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
    }

    fn check(&self, _at: &str, _report: &mut Report) {}

    fn facts(&self) -> Facts {
        Facts::default()
    }

    fn build(&self, _streams: &Streams<'_>) -> Fifo {
        Fifo::new(Limit::None)
    }

    fn options(&self) -> Option<Vec<u8>> {
        None
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(_scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        Just(Self {}).boxed()
    }
}

impl Configuration for BfifoSpec {
    type Model = Fifo;

    const KIND: &'static str = "bfifo";
    const WORDS: &'static [&'static str] = &["limit"];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        // The kernel's default: txqueuelen full frames.
        let mut limit_bytes = u64::from(TXQUEUELEN) * u64::from(FRAME);
        while let Some(word) = words.next() {
            match word {
                "limit" => limit_bytes = words.size(word)?,
                _ => return Err(Self::unknown(word)),
            }
        }
        Ok(Self { limit_bytes })
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND).pair("limit", size(self.limit_bytes))
    }

    fn check(&self, at: &str, report: &mut Report) {
        report.at_least(format!("{at}.limit_bytes"), self.limit_bytes, 1);
    }

    fn facts(&self) -> Facts {
        Facts::queue(Buffer::bytes(self.limit_bytes)).holding("limit_bytes", self.limit_bytes)
    }

    fn build(&self, _streams: &Streams<'_>) -> Fifo {
        Fifo::new(Limit::Bytes(self.limit_bytes))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitBytes(limit_bytes) = change else { return None };
        Some(Self { limit_bytes })
    }

    fn options(&self) -> Option<Vec<u8>> {
        Some(saturated(self.limit_bytes).to_ne_bytes().to_vec())
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        vec![Confirmation::new("limit", word(options, 0), saturated(self.limit_bytes))]
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        scope.bytes().prop_map(|limit_bytes| Self { limit_bytes }).boxed()
    }
}

impl Configuration for PfifoSpec {
    type Model = Fifo;

    const KIND: &'static str = "pfifo";
    const WORDS: &'static [&'static str] = &["limit"];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.packets(word)?,
                _ => return Err(Self::unknown(word)),
            }
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND).pair("limit", self.limit_packets)
    }

    fn check(&self, at: &str, report: &mut Report) {
        report.at_least(format!("{at}.limit_packets"), self.limit_packets, 1);
    }

    fn facts(&self) -> Facts {
        Facts::queue(Buffer::packets(self.limit_packets))
    }

    fn build(&self, _streams: &Streams<'_>) -> Fifo {
        Fifo::new(Limit::Packets(self.limit_packets))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets })
    }

    fn options(&self) -> Option<Vec<u8>> {
        Some(self.limit_packets.to_ne_bytes().to_vec())
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        vec![Confirmation::new("limit", word(options, 0), self.limit_packets)]
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        scope.packets().prop_map(|limit_packets| Self { limit_packets }).boxed()
    }
}
