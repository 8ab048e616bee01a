//! noqueue, bfifo and pfifo in words, checks and the kernel's form (`q_fifo.c`).

use super::{Fifo, Limit};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, TXQUEUELEN};
use crate::table::{Layout, packets, size, table};

table! {
    /// Unlimited FIFO.
    #[derive(Copy, Eq)]
    pub struct NoqueueSpec {}
}

// struct tc_fifo_qopt. The kernel's default: `txqueuelen` full frames.
table! {
    /// FIFO limited in bytes.
    #[derive(Copy, Eq)]
    pub struct BfifoSpec {
        /// Bytes that may wait.
        limit_bytes: u64 = u64::from(TXQUEUELEN) * u64::from(FRAME) =>
            size("limit").at_least(1).at(0).confirmed(),
    }
}

table! {
    /// FIFO limited in packets.
    #[derive(Copy, Eq)]
    pub struct PfifoSpec {
        /// Packets that may wait.
        limit_packets: u32 = TXQUEUELEN => packets("limit").at_least(1).at(0).confirmed(),
    }
}

impl Configuration for NoqueueSpec {
    type Model = Fifo;

    const KIND: &'static str = "noqueue";
    const KEEPS: bool = false;
    const MODULES: &'static [&'static str] = &[];
    const EXAMPLES: &'static [&'static str] = &["noqueue"];

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
    const FIFO: bool = true;
    const MODULES: &'static [&'static str] = &[];
    const EXAMPLES: &'static [&'static str] = &["bfifo", "bfifo limit 100kb"];
    const EXTREMES: &'static [&'static str] = &["bfifo limit 65549b", "bfifo limit 1gb"];
    const LAYOUT: Layout = Layout::Structure(4);

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

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        scope.bytes().prop_map(|limit_bytes| Self { limit_bytes }).boxed()
    }
}

impl Configuration for PfifoSpec {
    type Model = Fifo;

    const KIND: &'static str = "pfifo";
    const FIFO: bool = true;
    const MODULES: &'static [&'static str] = &[];
    const EXAMPLES: &'static [&'static str] = &["pfifo", "pfifo limit 100"];
    const EXTREMES: &'static [&'static str] = &["pfifo limit 1", "pfifo limit 4294967295"];
    const LAYOUT: Layout = Layout::Structure(4);

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

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        scope.packets().prop_map(|limit_packets| Self { limit_packets }).boxed()
    }
}
