//! The part of a scenario that is simulated in one world.

use super::Partition;
use crate::apps::{Flow, FlowKind};
use dragstrip_scenario::{Scenario, Topology};

/// Hosts' sockets, flows, probes and links that are active in this world: all of them, or those of one part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    /// Flag of each socket; empty: all.
    sockets: Vec<bool>,
    stages: Vec<bool>,
    probes: Vec<bool>,
    /// The hosts of each flow.
    senders: Vec<bool>,
    receivers: Vec<bool>,
    /// Rows of one instant are put in order at the end: parts do not know their order.
    pub in_order: bool,
}

fn has(of: &[bool], index: usize) -> bool {
    of.get(index).copied().unwrap_or(true)
}

impl Assignment {
    /// Everything.
    pub fn all(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// The elements of part `number`: a socket with its host, a stage of a link with the node where the link begins.
    pub fn of(
        scenario: &Scenario,
        topology: &Topology<'_>,
        of_link: &[Vec<u32>],
        flows: &[Flow],
        partition: &Partition,
        number: u8,
    ) -> Self {
        let mine =
            |node: &str| topology.node(node).is_some_and(|node| partition.part_of[node] == number);
        let mut assignment = Self { in_order: true, ..Self::default() };
        for (flow, spec) in flows.iter().zip(&scenario.flows) {
            let (sends, receives) = (mine(&spec.sender), mine(&spec.receiver));
            if let FlowKind::Tcp { .. } = flow.kind {
                assignment.sockets.extend([sends, receives]); // as build_flows numbers them: client, server
            }
            let back = matches!(flow.data_sender(), Some(sender) if flow.socket(true) == sender);
            assignment.senders.push(sends);
            assignment.receivers.push(if back { sends } else { receives });
        }
        for (link, stages) in of_link.iter().enumerate() {
            let mine = partition.part_of[topology.ends(link).0] == number;
            assignment.stages.extend(stages.iter().map(|_| mine));
        }
        assignment.probes.extend(scenario.probes.iter().map(|probe| mine(&probe.from)));
        assignment
    }

    /// True when a socket is in this world.
    pub fn has_socket(&self, socket: usize) -> bool {
        has(&self.sockets, socket)
    }

    /// True when a stage is in this world.
    pub fn has_stage(&self, stage: usize) -> bool {
        has(&self.stages, stage)
    }

    /// True when the host that opens a flow is in this world.
    pub fn sends(&self, flow: usize) -> bool {
        has(&self.senders, flow)
    }

    /// True when the host that receives a flow's data is in this world.
    pub fn receives(&self, flow: usize) -> bool {
        has(&self.receivers, flow)
    }

    /// True when a probe's sending node is in this world.
    pub fn asks(&self, probe: usize) -> bool {
        has(&self.probes, probe)
    }
}
