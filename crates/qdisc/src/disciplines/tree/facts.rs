//! Facts about a tree that other code needs.

use super::types::{ClassParameters, ClassSpec, Matching, SchedulerSpec, TreeSpec};
use crate::disciplines::netem::NetemSpec;
use crate::disciplines::{Buffer, Configuration as _, Facts, Payment, QdiscSpec};

/// Debt that htb remembers, seconds (`mbuffer`).
const MBUFFER_SECONDS: u64 = 60;

impl TreeSpec {
    /// Bit/s that the classes below `parent` (0: all) let pass at most; none: no limit.
    fn limit_bps(&self, parent: u16) -> Option<u64> {
        let children = self.classes.iter().filter(|class| class.parent == parent);
        children.map(|class| self.class_limit_bps(class)).sum()
    }

    fn class_limit_bps(&self, class: &ClassSpec) -> Option<u64> {
        let inside = match &class.leaf {
            Some(leaf) => leaf.facts().rate_bps,
            None => self.limit_bps(class.minor),
        };
        // What is guaranteed below passes whatever the limits of this class.
        let own = match &class.parameters {
            ClassParameters::Htb(htb) if class.leaf.is_some() && class.parent == 0 => {
                Some(htb.rate_bps.min(htb.ceil_bps))
            }
            ClassParameters::Htb(htb) if class.leaf.is_some() => Some(htb.ceil_bps),
            ClassParameters::Htb(htb) => Some(
                if class.parent == 0 { htb.rate_bps.min(htb.ceil_bps) } else { htb.ceil_bps }
                    .max(self.guaranteed_bps(class.minor)),
            ),
            ClassParameters::Hfsc(hfsc) => {
                let limit = hfsc.upper_limit.map(|curve| curve.m2_bps);
                let limit = if hfsc.link_share.is_none() && class.leaf.is_some() {
                    hfsc.real_time.map(|curve| curve.m2_bps)
                } else {
                    limit
                };
                let promised = match (&class.leaf, hfsc.real_time) {
                    (Some(_), real_time) => real_time.map_or(0, |curve| curve.m2_bps),
                    (None, _) => self.guaranteed_bps(class.minor),
                };
                limit.map(|limit| limit.max(promised))
            }
            ClassParameters::Drr { .. } | ClassParameters::Band {} => None,
        };
        [own, inside].into_iter().flatten().min()
    }

    /// Sum of what the leaves below a class may send whatever it says.
    fn guaranteed_bps(&self, minor: u16) -> u64 {
        let children = self.classes.iter().filter(|class| class.parent == minor);
        children
            .map(|class| match (&class.parameters, &class.leaf) {
                (ClassParameters::Htb(htb), Some(_)) => htb.rate_bps.min(htb.ceil_bps),
                (ClassParameters::Hfsc(hfsc), Some(_)) => {
                    hfsc.real_time.map_or(0, |curve| curve.m2_bps)
                }
                _ => self.guaranteed_bps(class.minor),
            })
            .sum()
    }

    /// Packets pass that no class limits.
    fn has_direct_queue(&self) -> bool {
        let SchedulerSpec::Htb { default_minor, .. } = self.scheduler else { return false };
        !self.classes.iter().any(|class| class.minor == default_minor && class.leaf.is_some())
    }

    /// The delay of netem that every packet meets, and whether none meets more.
    #[must_use]
    pub fn least_delay_ns(&self) -> (u64, bool) {
        let of = |netem: &NetemSpec| {
            (
                netem.delay_ns,
                netem.jitter_ns == 0 && netem.reorder == 0.0 && netem.rate_bps.is_none(),
            )
        };
        let (own, own_same) =
            if let SchedulerSpec::Netem(netem) = &self.scheduler { of(netem) } else { (0, true) };
        let inside = self.leaves().map(|(_, leaf)| {
            if let QdiscSpec::Tc(inner) = leaf {
                inner.least_delay_ns()
            } else if let QdiscSpec::Netem(netem) = leaf {
                of(netem)
            } else {
                (0, true)
            }
        });
        let inside: Vec<(u64, bool)> = inside.collect();
        let least = inside.iter().map(|(delay_ns, _)| *delay_ns).min().unwrap_or(0);
        let same = inside.iter().all(|&(delay_ns, same)| same && delay_ns == least);
        (own + least, own_same && same)
    }

    /// Those of the leaves together, with what the schedulers add.
    pub(super) fn known_facts(&self) -> Facts {
        let mut facts = Facts::default();
        let mut delays = Vec::new();
        let (mut bytes, mut packets, mut in_bytes, mut in_packets) = (0_u64, 0_u32, true, true);
        for (at, leaf) in self.leaves() {
            let inside = leaf.facts();
            facts.shapes |= inside.shapes;
            facts.draws |= inside.draws;
            facts.marks |= inside.marks;
            facts.reorders |= inside.reorders;
            delays.push(inside.delay_ns);
            let field = |name: String| format!("classes[{at}].leaf.{name}");
            let holds = inside.holds_packet.into_iter();
            facts.holds_packet.extend(holds.map(|(name, bytes)| (field(name), bytes)));
            facts.pays.extend(inside.pays.into_iter().map(|(name, pays)| (field(name), pays)));
            match inside.buffer {
                Buffer { packets: Some(limit), .. } => {
                    packets = packets.saturating_add(limit);
                    in_bytes = false;
                }
                Buffer { bytes: Some(limit), packets: None } => {
                    bytes = bytes.saturating_add(limit);
                    in_packets = false;
                }
                Buffer { bytes: None, packets: None } => (in_bytes, in_packets) = (false, false),
            }
        }
        facts.buffer = match (in_bytes, in_packets) {
            (true, _) => Buffer::bytes(bytes),
            (false, true) => Buffer::packets(packets),
            (false, false) => Buffer::default(),
        };
        facts.delay_ns = delays.into_iter().min().unwrap_or(0);
        facts.reorders |= self.leaves().count() > 1 || self.has_direct_queue();
        facts.draws |= self.filters.iter().any(|one| matches!(one.matching, Matching::Flow { .. }));
        facts.rate_bps = if self.has_direct_queue() { None } else { self.limit_bps(0) };
        match &self.scheduler {
            SchedulerSpec::Htb { .. } | SchedulerSpec::Hfsc { .. } => facts.shapes = true,
            SchedulerSpec::Netem(netem) => {
                let own = netem.facts();
                facts.delay_ns += own.delay_ns;
                facts.rate_bps = [own.rate_bps, facts.rate_bps].into_iter().flatten().min();
                facts.shapes |= own.shapes;
                facts.draws |= own.draws;
                facts.reorders |= own.reorders;
                facts.marks |= own.marks;
            }
            SchedulerSpec::Tbf(tbf) => {
                facts.rate_bps = [tbf.facts().rate_bps, facts.rate_bps].into_iter().flatten().min();
                facts.shapes = true;
                facts.holds_packet.push(("scheduler.burst_bytes".to_owned(), tbf.burst_bytes));
            }
            SchedulerSpec::Drr {} | SchedulerSpec::Prio(_) | SchedulerSpec::Ets(_) => {}
        }
        for (at, class) in self.classes.iter().enumerate() {
            let ClassParameters::Htb(htb) = &class.parameters else { continue };
            for (name, rate_bps) in [("rate_bps", htb.rate_bps), ("ceil_bps", htb.ceil_bps)] {
                let payment =
                    Payment { rate_bps, seconds: MBUFFER_SECONDS, framing: htb.framing() };
                facts.pays.push((format!("classes[{at}].parameters.{name}"), payment));
            }
        }
        facts
    }
}
