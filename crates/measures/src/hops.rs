//! The queues on a flow's path, and which of them it stands in.

/// A queue on a flow's path.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// The link.
    pub link: String,
    /// Mean wait in its queue, ms, weighted by what of the flow arrived meanwhile.
    pub wait_ms: f64,
    /// Packets of the flow that it dropped, estimated: the flow's retransmissions by the drops that they follow; without these, of each
    /// interval's drops the flow's part in what the link sent.
    pub lost: f64,
}

/// The links where a flow queues and where it loses packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queueing {
    /// The queues on its path, in the order in which its data pass them.
    pub hops: Vec<Hop>,
    /// The link where it waits longest; where it waits nowhere, the one that drops most of its packets; where nothing
    /// is dropped either, the slowest link of its path.
    pub bottleneck: Option<String>,
    /// The link whose queue drops most of its packets; none where the recording does not tell.
    pub loss_link: Option<String>,
}

impl Queueing {
    /// The mean wait at the bottleneck, ms.
    #[must_use]
    pub fn wait_ms(&self) -> Option<f64> {
        let name = self.bottleneck.as_ref()?;
        self.hops.iter().find(|hop| hop.link == *name).map(|hop| hop.wait_ms)
    }
}
