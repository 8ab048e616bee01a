//! Rings that are always full, for the tests of shared media.

use crate::shared::{Air, Ring, SharedMedium};
use dragstrip_qdisc::{Item, PacketId};
use dragstrip_units::Instant;

pub(crate) struct Rings {
    rings: Vec<Ring>,
    len: u32,
    next: u32,
    pub delivered: Vec<u64>,
    pub lost: Vec<u64>,
    /// Packet numbers in the order of delivery at each station.
    pub order: Vec<Vec<u32>>,
    last: Vec<Instant>,
}

impl Rings {
    pub fn saturated(stations: usize, len: u32, limit: usize) -> Self {
        let mut rings = Self {
            rings: vec![Ring::new(limit); stations],
            len,
            next: 0,
            delivered: vec![0; stations],
            lost: vec![0; stations],
            order: vec![Vec::new(); stations],
            last: vec![Instant::ZERO; stations],
        };
        rings.fill();
        rings
    }

    pub fn fill(&mut self) {
        for ring in &mut self.rings {
            while ring.has_room() {
                self.next += 1;
                let packet = PacketId(self.next);
                ring.push(Item { packet, len: self.len, ..Item::default() });
            }
        }
    }
}

impl Air for Rings {
    fn ring(&mut self, station: usize) -> &mut Ring {
        &mut self.rings[station]
    }

    fn delivered(&mut self, station: usize, item: Item, at: Instant) {
        assert!(at >= self.last[station], "deliveries of a station keep their order");
        self.last[station] = at;
        self.delivered[station] += 1;
        self.order[station].push(item.packet.0);
    }

    fn on_lost(&mut self, station: usize, _item: Item) {
        self.lost[station] += 1;
    }
}

/// Mean time between the starts of `count` transmissions of stations that always have something to send.
pub(crate) fn mean_cycle_ns(medium: &mut impl SharedMedium, rings: &mut Rings, count: u32) -> f64 {
    let stations = rings.rings.len();
    let mut now = Instant::ZERO;
    for _ in 0..count {
        for station in 0..stations {
            medium.offered(station, now);
        }
        let due = medium.due();
        assert!(due >= now && due < Instant::NEVER);
        now = due;
        medium.transmit(now, rings);
        rings.fill();
    }
    now.as_nanos() as f64 / f64::from(count)
}
