//! What is noted of packets while a run goes on: drops and marks.

use dragstrip_sim::{Event, Observer, Owner, Sighting, Vantage};

/// Drops and marks that are kept; more are counted by the table `queues` alone.
const ROWS_MAX: usize = 1 << 20;

/// A packet was lost or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// When, ns.
    pub at_ns: u64,
    /// Where.
    pub vantage: Vantage,
    /// Whose it was.
    pub owner: Owner,
    /// It was marked, and goes on.
    pub marked: bool,
}

/// Notes them.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// Whose each packet is, by its number.
    owners: Vec<Option<Owner>>,
    rows: Vec<Fate>,
}

impl Fates {
    /// In the order in which they were noted, which is nearly that of time.
    pub fn rows(&self) -> &[Fate] {
        &self.rows
    }

    fn own(&mut self, packet: u32, owner: Option<Owner>) {
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
            Event::Sent { owner } => self.own(sighting.packet.0, Some(owner)),
            Event::Duplicated { of } => {
                let owner = self.owners.get(of.0 as usize).copied().flatten();
                self.own(sighting.packet.0, owner);
            }
            Event::Dropped(_) => self.note(sighting, false),
            Event::Marked => self.note(sighting, true),
            Event::Enqueued | Event::Dequeued | Event::Arrived | Event::Received => {}
        }
    }
}
