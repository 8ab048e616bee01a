//! Drops and marks of packets in a run.

use dragstrip_sim::{Event, Observer, Owner, Sighting, Vantage};

/// Most drops and marks in memory; more are counted by the table `queues` alone.
const ROWS_MAX: usize = 1 << 20;

/// The drop or mark of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Instant, ns.
    pub at_ns: u64,
    /// Link or node.
    pub vantage: Vantage,
    /// The flow or probe of the packet.
    pub owner: Owner,
    /// True for a mark, false for a drop.
    pub marked: bool,
}

/// Collects drops and marks.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// The flow or probe of each packet, by its number.
    owners: Vec<Option<Owner>>,
    rows: Vec<Fate>,
}

impl Fates {
    /// The drops and marks in the order of the events, which is nearly that of time.
    pub fn rows(&self) -> &[Fate] {
        &self.rows
    }

    fn set_owner(&mut self, packet: u32, owner: Option<Owner>) {
        let packet = packet as usize;
        if self.owners.len() <= packet {
            self.owners.resize(packet + 1, None);
        }
        self.owners[packet] = owner;
    }

    #[cold]
    fn note(&mut self, sighting: &Sighting<'_>, marked: bool) {
        let owner = self.owners.get(sighting.packet.0 as usize).copied().flatten();
        if let Some(owner) = owner
            && self.rows.len() < ROWS_MAX
        {
            let (at_ns, vantage) = (sighting.at.as_nanos(), sighting.vantage);
            self.rows.push(Fate { at_ns, vantage, owner, marked });
        }
    }
}

impl Observer for Fates {
    #[inline]
    fn saw(&mut self, sighting: &Sighting<'_>) {
        match sighting.event {
            Event::Sent { owner } => self.set_owner(sighting.packet.0, Some(owner)),
            Event::Duplicated { of } => {
                let owner = self.owners.get(of.0 as usize).copied().flatten();
                self.set_owner(sighting.packet.0, owner);
            }
            Event::Dropped(_) => self.note(sighting, false),
            Event::Marked => self.note(sighting, true),
            Event::Enqueued | Event::Dequeued | Event::Arrived | Event::Received => {}
        }
    }
}
