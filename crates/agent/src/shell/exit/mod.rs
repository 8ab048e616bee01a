//! The real network behind a path: what a program sends to any other address than the server's ends in the far end's namespace
//! and is relayed over this machine's own sockets.
//!
//! The far end's kernel takes every address for its own, so that its TCP is a real one behind the path's queues. Before a
//! first segment or a datagram reaches it, the [relay](relay) has connected to the real address and listens there.

mod opening;
mod relay;

use crate::fault::{Fault, fault};
use crate::sys::{self, process};
pub use opening::may_open;
pub use relay::Counts;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Address of the name server inside: the relay asks the machine's own.
pub const NAME_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 3));
/// Longest answer of the relay.
const COUNTS_BYTES: usize = 4096;
/// Time that the relay has for its answer.
const ANSWER_WAIT_MS: i32 = 1_000;

/// The far end: its namespace, and its device, to which the relay writes.
struct Far {
    namespace: fs::File,
    device: OwnedFd,
}

/// A thread in this machine's own network, which becomes the relay once the far end is built.
pub struct Waiting {
    packets: OwnedFd,
    far: mpsc::Sender<Far>,
    /// Returns the relay's process number.
    thread: JoinHandle<Result<i32, Fault>>,
}

/// Begins to wait. The calling thread is in this machine's own network, and has the rights to enter the far end's.
pub fn wait() -> Result<Waiting, Fault> {
    let (packets, relays_packets) = process::packet_sockets()?;
    let (far, built) = mpsc::channel::<Far>();
    let forwarders = packets.as_raw_fd();
    let thread = std::thread::spawn(move || {
        let Ok(Far { namespace, device }) = built.recv() else { return fault("no far end") };
        if let Some(relay) = process::fork()? {
            return Ok(relay);
        }
        process::close_inherited(forwarders); // else the relay would not see it close
        let status = i32::from(relay::run(namespace, device, relays_packets).is_err());
        process::leave(status);
    });
    Ok(Waiting { packets, far, thread })
}

impl Waiting {
    /// Starts the relay, a process that ends with the returned [`Exit`]. This thread must hold no lock.
    pub fn start(self, namespace: &fs::File, device: &OwnedFd) -> Result<Exit, Fault> {
        let far = Far { namespace: namespace.try_clone()?, device: device.try_clone()? };
        let sent = self.far.send(far);
        match self.thread.join() {
            Ok(forked) if sent.is_ok() => Ok(Exit { packets: self.packets, relay: forked? }),
            Ok(_) | Err(_) => fault("the relay did not start"),
        }
    }
}

/// The forwarder's side of the relay.
pub struct Exit {
    packets: OwnedFd,
    /// Its process; 0 when that has ended.
    relay: i32,
}

impl Drop for Exit {
    fn drop(&mut self) {
        if self.relay == 0 {
            return;
        }
        process::kill(self.relay);
        let _ = sys::reap_until(self.relay);
    }
}

impl Exit {
    /// Hands a packet over; false if the relay takes none now.
    pub fn hand_over(&self, packet: &[u8]) -> bool {
        sys::write(&self.packets, packet).is_some()
    }

    /// Returns the relay's counts, none if it does not answer, and ends it: after what it has to hand on, or at once.
    pub fn end(mut self, hands_on: bool) -> Option<Counts> {
        sys::shutdown(&self.packets).ok()?;
        let mut buffer = [0; COUNTS_BYTES];
        if !sys::is_readable_within(&self.packets, ANSWER_WAIT_MS) {
            return None;
        }
        let length = sys::receive(&self.packets, &mut buffer)?;
        if hands_on && sys::reap_until(self.relay).is_ok() {
            self.relay = 0;
        }
        serde_json::from_slice(buffer.get(..length)?).ok()
    }
}
