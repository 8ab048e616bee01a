//! Media: what happens to a packet between leaving a queue and arriving at the next node.
//!
//! Scope: one file per medium, with its sources, and the two contracts. A [`Transmitter`] is a direction of a
//! dedicated link: frames follow each other, and each arrives at an instant known when it is sent. A [`Medium`] is
//! shared by several stations that contend ([`SharedMedium`]). Out of scope: queueing (`dragstrip-qdisc`), topology
//! (`dragstrip-sim`).

pub mod adsl;
mod contention;
mod dcf;
pub mod ethernet;
pub mod homeplug;
pub mod modem;
mod shared;
#[cfg(test)]
mod testing;
mod trace;
mod van_jacobson;
pub mod wifi_g;
pub mod wifi_n;
mod wire;

pub use adsl::Adsl;
pub use dcf::Dcf;
pub use ethernet::Ethernet;
pub use homeplug::HomePlug;
pub use modem::Modem;
pub use shared::{Air, Ring, SharedMedium};
pub use trace::Trace;
pub use van_jacobson::Header;
pub use wire::Wire;

use dragstrip_units::Instant;

/// A direction of a link with a line of its own.
#[derive(Clone, Debug)]
pub enum Transmitter {
    /// Store and forward.
    Wire(Wire),
    /// ADSL over ATM.
    Adsl(Adsl),
    /// A pair of telephone modems.
    Modem(Box<Modem>),
    /// A recorded link.
    Trace(Trace),
}

impl Transmitter {
    /// The instant from which the next frame may be sent, if nothing is sent before; not later than `now` when it may be sent
    /// now.
    #[inline]
    #[must_use]
    pub fn free(&mut self, now: Instant) -> Instant {
        match self {
            Self::Wire(wire) => wire.free(),
            Self::Adsl(line) => line.free(),
            Self::Modem(modem) => modem.free(),
            Self::Trace(trace) => trace.free(now),
        }
    }

    /// Sends a frame as soon as possible from `now` on; returns when the other end has all of it, propagation not
    /// counted. `header` is asked for the frame's TCP header where that is compressed; others than TCP have none.
    #[inline]
    pub fn send(
        &mut self,
        len: u32,
        now: Instant,
        header: impl FnOnce() -> Option<Header>,
    ) -> Instant {
        match self {
            Self::Wire(wire) => wire.send(len, now),
            Self::Adsl(line) => line.send(len, now),
            Self::Modem(modem) => modem.send(len, now, header()),
            Self::Trace(trace) => trace.send(len, now),
        }
    }
}

/// Any medium that stations share.
#[derive(Clone, Debug)]
pub enum Medium {
    /// 802.11g and 802.11n.
    Dcf(Box<Dcf>),
    /// HomePlug AV.
    HomePlug(Box<HomePlug>),
    /// Half-duplex Ethernet.
    Ethernet(Box<Ethernet>),
}

impl SharedMedium for Medium {
    fn offered(&mut self, station: usize, now: Instant) {
        match self {
            Self::Dcf(cell) => cell.offered(station, now),
            Self::HomePlug(line) => line.offered(station, now),
            Self::Ethernet(hub) => hub.offered(station, now),
        }
    }

    fn due(&self) -> Instant {
        match self {
            Self::Dcf(cell) => cell.due(),
            Self::HomePlug(line) => line.due(),
            Self::Ethernet(hub) => hub.due(),
        }
    }

    fn transmit<A: Air>(&mut self, now: Instant, air: &mut A) {
        match self {
            Self::Dcf(cell) => cell.transmit(now, air),
            Self::HomePlug(line) => line.transmit(now, air),
            Self::Ethernet(hub) => hub.transmit(now, air),
        }
    }
}
