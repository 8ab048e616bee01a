//! Carries packets between two TUN devices over a simulated network, by the machine's clock.

use super::exit::{self, Exit};
use super::ledger::Ledger;
use super::packet::describe;
use crate::fault::{Fault, refusal};
use crate::network;
use crate::sys::{self, process};
use dragstrip_scenario::{FULL_FRAME_BYTES, Scenario, Topology};
use dragstrip_sim::{Forwarder, Way};
use dragstrip_units::Instant;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Packets taken from each device before the clock is looked at for what else is to be done.
const ROUND: usize = 32;
/// Longest wait.
const IDLE_NS: u64 = 1_000_000_000;
/// Longest time for which packets are carried after the command has ended.
const DRAIN_NS: u64 = 5_000_000_000;
const DRAIN_STEP_NS: u64 = 20_000_000;
/// A device's packets have at most the MTU.
const PACKET_MAX: usize = 1 << 16;

/// Reason for which the forwarder stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The programs have ended.
    Ended,
    /// Their time is over.
    TimedOut,
}

/// The network between two hosts, with the devices at its ends.
pub struct Carrier {
    network: Forwarder<Ledger>,
    /// Devices of the first host and of the second.
    devices: [OwnedFd; 2],
    /// Where packets go that may open something outside.
    exit: Option<Exit>,
    /// Addresses of the first host.
    inside: [IpAddr; 2],
    epoch_ns: u64,
    buffer: Vec<u8>,
}

impl Carrier {
    /// The network of `scenario` between the hosts `ends`, of which the first has the addresses `inside`.
    pub fn new(
        scenario: &Scenario,
        ends: [&str; 2],
        devices: [OwnedFd; 2],
        exit: Option<Exit>,
        inside: [IpAddr; 2],
    ) -> Result<Self, Fault> {
        let facts = scenario.path_facts([(ends[0], ends[1])], FULL_FRAME_BYTES);
        let facts = match facts {
            Ok(facts) => facts,
            Err(problem) => return refusal("links", "", problem.to_string()),
        };
        let back: Vec<bool> = (scenario.links.iter())
            .map(|link| facts.iter().any(|facts| facts.back.contains(&link.name)))
            .collect();
        let far = Topology::new(scenario).node(ends[1]).unwrap_or_default() as u32;
        let network = Forwarder::new(scenario, ends, Ledger::new(far, back));
        let network = match network {
            Ok(network) => network,
            Err(error) => return refusal(error.field, "", error.message),
        };
        Ok(Self { network, devices, exit, inside, epoch_ns: 0, buffer: vec![0; PACKET_MAX] })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(process::monotonic() - self.epoch_ns)
    }

    /// Carries packets until `ended` can be read or the time is over. Departures are computed from due times, so that no
    /// lateness adds up.
    pub fn run(&mut self, ended: &OwnedFd, limit_ns: u64) -> Stop {
        self.epoch_ns = process::monotonic();
        let limit = Instant::from_nanos(limit_ns).min(self.network.end());
        let [near, far] = [&self.devices[0], &self.devices[1]].map(AsRawFd::as_raw_fd);
        let files = [ended.as_raw_fd(), near, far];
        loop {
            let now = self.now();
            if now >= limit {
                return Stop::TimedOut;
            }
            let due = self.network.due().unwrap_or(limit).min(limit);
            let wait_ns = due.as_nanos().saturating_sub(now.as_nanos()).min(IDLE_NS);
            let [has_ended, ..] = process::wait_readable(files, wait_ns);
            if has_ended {
                self.drain(limit);
                return Stop::Ended;
            }
            self.round();
        }
    }

    fn round(&mut self) {
        for _ in 0..ROUND {
            self.step();
            let [there, back] = [Way::There, Way::Back].map(|way| self.take(way));
            if !there && !back {
                break;
            }
        }
    }

    /// Carries what this thread's namespace, the client's, still has to send, for a while: a kernel sends on for a program that
    /// has ended.
    fn drain(&mut self, limit: Instant) {
        let [near, far] = [&self.devices[0], &self.devices[1]].map(AsRawFd::as_raw_fd);
        let until = Instant::from_nanos(self.now().as_nanos() + DRAIN_NS).min(limit);
        let mut looked = Instant::ZERO;
        while self.now() < until {
            self.round();
            if self.now().as_nanos() >= looked.as_nanos() + DRAIN_STEP_NS {
                looked = self.now();
                if !network::sends_on() && self.ledger().on_their_way(Way::Back) == 0 {
                    break;
                }
            }
            let due = self.network.due().unwrap_or(until).as_nanos();
            let wait_ns = due.saturating_sub(self.now().as_nanos()).min(DRAIN_STEP_NS);
            process::wait_readable([near, far], wait_ns);
        }
        self.step();
    }

    /// Lets everything happen that is due, and writes what has arrived.
    fn step(&mut self) {
        self.network.advance(self.now());
        while let Some(arrival) = self.network.observer_mut().arrivals.pop_front() {
            let is_written = match (arrival.way, &self.exit) {
                (Way::Back, Some(exit)) if exit::may_open(&arrival.bytes, &self.inside) => {
                    exit.hand_over(&arrival.bytes)
                }
                (Way::There, _) => sys::write(&self.devices[1], &arrival.bytes).is_some(),
                (Way::Back, _) => sys::write(&self.devices[0], &arrival.bytes).is_some(),
            };
            let late_ns = self.now().as_nanos().saturating_sub(arrival.due.as_nanos());
            self.network.observer_mut().written(arrival, is_written.then_some(late_ns));
        }
    }

    /// Takes a packet from a host; false if it has none.
    fn take(&mut self, way: Way) -> bool {
        let device = &self.devices[way as usize];
        let Ok(length) = sys::read(device, &mut self.buffer) else { return false };
        let bytes = &self.buffer[..length];
        if let Some(packet) = describe(bytes) {
            self.network.advance(Instant::from_nanos(process::monotonic() - self.epoch_ns));
            let class = packet.class;
            self.network.send(
                way,
                packet.flow,
                class,
                packet.body,
                packet.frame_bytes,
                |ledger, id| {
                    ledger.keep(id, way, class, bytes);
                },
            );
        }
        true
    }

    /// Ends the relay; returns its counts, if it has them.
    pub fn end_exit(&mut self, stop: Stop) -> Option<exit::Counts> {
        self.exit.take()?.end(stop == Stop::Ended)
    }

    /// Packets on their way, arrivals and totals.
    pub fn ledger(&self) -> &Ledger {
        self.network.observer()
    }
}
