//! Carries packets between devices over a simulated network, by the machine's clock.

use super::ledger::Ledger;
use super::packet::describe;
use crate::fault::{Fault, refusal};
use crate::sys::{self, process};
use dragstrip_recording::Queues;
use dragstrip_scenario::Scenario;
use dragstrip_sim::{Forwarder, Way};
use dragstrip_units::Instant;
use std::os::fd::RawFd;

/// Packets taken from each device before the clock is looked at for what else is to be done.
const ROUND: usize = 32;
/// Longest wait.
const IDLE_NS: u64 = 1_000_000_000;
/// A device's packets have at most the MTU.
const PACKET_MAX: usize = 1 << 16;

/// The devices at the ends of a network. Each way begins at the device of its number, which is the end of the opposite way.
pub trait Devices {
    /// Files to read from, by way; a read returns at once.
    fn files(&self) -> &[RawFd];

    /// Writes a packet at the end of a way; false if it is not taken.
    fn write(&mut self, way: Way, bytes: &[u8]) -> bool;

    /// A packet enters a way now.
    fn entered(&mut self, _way: Way, _now: Instant, _bytes: &[u8]) {}

    /// A packet has been written at the end of a way.
    fn left(&mut self, _way: Way, _now: Instant, _bytes: &[u8]) {}

    /// Bytes in front of a packet's IP header. What is no IP packet is not carried.
    fn header_bytes(&self) -> usize;
}

/// The network, with the devices at its ends.
pub struct Carrier<D> {
    network: Forwarder<Ledger>,
    pub devices: D,
    epoch_ns: u64,
    buffer: Vec<u8>,
}

impl<D: Devices> Carrier<D> {
    /// The network of `scenario` between the nodes of each pair.
    pub fn new(scenario: &Scenario, pairs: &[[&str; 2]], devices: D) -> Result<Self, Fault> {
        let ledger = Ledger::new(2 * pairs.len(), devices.header_bytes());
        let network = match Forwarder::new(scenario, pairs, ledger) {
            Ok(network) => network,
            Err(error) => return refusal(error.field, "", error.message),
        };
        Ok(Self { network, devices, epoch_ns: 0, buffer: vec![0; PACKET_MAX] })
    }

    /// Instant zero of the network is this time of the monotonic clock (ns).
    pub const fn begin(&mut self, epoch_ns: u64) {
        self.epoch_ns = epoch_ns;
    }

    /// The instant of the clock.
    pub fn now(&self) -> Instant {
        now(self.epoch_ns)
    }

    /// The last instant that the network can reach.
    pub const fn end(&self) -> Instant {
        self.network.end()
    }

    /// Waits until a packet has come or is due, `stop` can be read, or a time of the clock; true if `stop` can be read.
    pub fn wait(&self, stop: RawFd, until: Instant) -> bool {
        let now = self.now();
        let due = self.network.due().unwrap_or(until).min(until);
        let wait_ns = due.as_nanos().saturating_sub(now.as_nanos()).min(IDLE_NS);
        process::wait_readable(stop, self.devices.files(), wait_ns)
    }

    /// Carries what has come and what is due.
    pub fn round(&mut self) {
        for _ in 0..ROUND {
            self.step();
            let mut is_idle = true;
            for way in 0..self.devices.files().len() {
                is_idle &= !self.take(Way(way));
            }
            if is_idle {
                break;
            }
        }
    }

    /// Lets everything happen that is due, and writes what has arrived. Departures are computed from due times, so that no
    /// lateness adds up.
    pub fn step(&mut self) {
        self.network.advance(self.now());
        while let Some(arrival) = self.network.observer_mut().arrivals.pop_front() {
            let is_written = self.devices.write(arrival.way, &arrival.bytes);
            let now = self.now();
            if is_written {
                self.devices.left(arrival.way, now, &arrival.bytes);
            }
            let late_ns = now.as_nanos().saturating_sub(arrival.due.as_nanos());
            self.network.observer_mut().written(arrival, is_written.then_some(late_ns));
        }
    }

    /// Takes a packet from a device; false if it has none.
    fn take(&mut self, way: Way) -> bool {
        let device = self.devices.files()[way.0];
        let Ok(length) = sys::read(&device, &mut self.buffer) else { return false };
        let bytes = &self.buffer[..length];
        let header_bytes = self.devices.header_bytes();
        if let Some(packet) = bytes.get(header_bytes..).and_then(describe) {
            let now = now(self.epoch_ns);
            self.network.advance(now);
            self.devices.entered(way, now, bytes);
            let class = packet.class;
            self.network.send(
                way,
                packet.flow,
                class,
                packet.body,
                packet.frame_bytes,
                |ledger, id| ledger.keep(id, way, class, bytes),
            );
        }
        true
    }

    /// Packets on their way, arrivals and totals.
    pub fn ledger(&self) -> &Ledger {
        self.network.observer()
    }

    /// Rows of `queues`, one for each link and interval so far.
    pub const fn recorded_queues(&self) -> &Queues {
        self.network.queues()
    }

    /// Rows of `queues`, up to now.
    pub fn queues(&mut self) -> &Queues {
        if self.now() < self.network.end() {
            self.network.record_queues();
        }
        self.network.queues()
    }
}

/// The instant of the clock.
fn now(epoch_ns: u64) -> Instant {
    Instant::from_nanos(process::monotonic().saturating_sub(epoch_ns))
}
