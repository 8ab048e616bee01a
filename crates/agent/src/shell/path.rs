//! The path of a shell: the carrier between the two ends' devices, until the programs have ended.

use super::exit::{self, Exit};
use crate::fault::Fault;
use crate::forward::{Carrier, Devices};
use crate::{network, sys};
use dragstrip_scenario::Scenario;
use dragstrip_sim::Way;
use dragstrip_units::Instant;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Longest time for which packets are carried after the command has ended.
const DRAIN_NS: u64 = 5_000_000_000;
const DRAIN_STEP_NS: u64 = 20_000_000;

/// Reason for which the forwarder stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The programs have ended.
    Ended,
    /// Their time is over.
    TimedOut,
}

/// Devices of the two ends.
pub struct Ends {
    /// Of the first host and of the second.
    devices: [OwnedFd; 2],
    files: [RawFd; 2],
    /// Where packets go that may open something outside.
    exit: Option<Exit>,
    /// Addresses of the first host.
    inside: [IpAddr; 2],
}

impl Devices for Ends {
    fn files(&self) -> &[RawFd] {
        &self.files
    }

    fn write(&mut self, way: Way, bytes: &[u8]) -> bool {
        match &self.exit {
            Some(exit) if way == Way::BACK && exit::may_open(bytes, &self.inside) => {
                exit.hand_over(bytes)
            }
            Some(_) | None => sys::write(&self.devices[way.opposite().0], bytes).is_some(),
        }
    }

    fn header_bytes(&self) -> usize {
        0
    }
}

/// The path, with its two ends.
pub type Path = Carrier<Ends>;

/// The path of `scenario` between the hosts `ends`, of which the first has the addresses `inside`.
pub fn open(
    scenario: &Scenario,
    ends: [&str; 2],
    devices: [OwnedFd; 2],
    exit: Option<Exit>,
    inside: [IpAddr; 2],
) -> Result<Path, Fault> {
    let files = [devices[0].as_raw_fd(), devices[1].as_raw_fd()];
    Carrier::new(scenario, &[ends], Ends { devices, files, exit, inside })
}

impl Path {
    /// Carries packets until `ended` can be read or the time is over.
    pub fn run(&mut self, ended: &OwnedFd, limit_ns: u64) -> Stop {
        self.begin(sys::process::monotonic());
        let limit = Instant::from_nanos(limit_ns).min(self.end());
        loop {
            if self.now() >= limit {
                return Stop::TimedOut;
            }
            if self.wait(ended.as_raw_fd(), limit) {
                self.drain(limit);
                return Stop::Ended;
            }
            self.round();
        }
    }

    /// Carries what this thread's namespace, the client's, still has to send, for a while: a kernel sends on for a program that
    /// has ended.
    fn drain(&mut self, limit: Instant) {
        let until = Instant::from_nanos(self.now().as_nanos() + DRAIN_NS).min(limit);
        let mut looked = Instant::ZERO;
        while self.now() < until {
            self.round();
            if self.now().as_nanos() >= looked.as_nanos() + DRAIN_STEP_NS {
                looked = self.now();
                if !network::sends_on() && self.ledger().on_their_way(Way::BACK) == 0 {
                    break;
                }
            }
            let step = Instant::from_nanos(self.now().as_nanos() + DRAIN_STEP_NS);
            self.wait(NO_FILE, until.min(step));
        }
        self.step();
    }

    /// Ends the relay; returns its counts, if it has them.
    pub fn end_exit(&mut self, stop: Stop) -> Option<exit::Counts> {
        self.devices.exit.take()?.end(stop == Stop::Ended)
    }
}

/// The number of no file, for which poll(2) does not wait.
const NO_FILE: RawFd = -1;
