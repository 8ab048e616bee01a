//! Messages between a conductor and the agent on a lab's host: plain values.

use crate::machine::Part;
use crate::plan::Plan;
use crate::side::{CaptureRequest, Report};
use crate::sys::Discipline;
use dragstrip_scenario::{QdiscSpec, Scenario};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// From the conductor to a host; each is answered, but for a heartbeat and an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Ask {
    /// Inventory of the host; changes nothing.
    Facts { interfaces: Vec<String>, connection: Option<Connection> },
    /// The host's clock.
    Time,
    /// Bytes that these interfaces have carried, both ways.
    Carried { interfaces: Vec<String> },
    /// Routes to these addresses.
    Routes { targets: Vec<Ipv4Addr> },
    /// Round trips of a few pings, each waited for so long.
    Ping { source: Ipv4Addr, target: Ipv4Addr, wait_ns: i64 },
    /// Locks the host and changes it, each change journalled before it is made.
    Apply(Apply),
    /// Puts a scenario's sides on this host into place.
    Open(Box<Open>),
    /// Runs them from this time of the host's clock; the tables are the answer.
    Go { start: i64 },
    /// Undoes all changes.
    Revert,
    /// Undoes what an earlier run has left.
    Clean,
}

/// The two ends of the SSH connection, as the host sees them (SSH_CONNECTION).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    pub client: IpAddr,
    pub server: IpAddr,
}

impl Connection {
    /// Reads `client port server port`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let client = words.next()?.split('%').next()?.parse().ok()?;
        let server = words.nth(1)?.split('%').next()?.parse().ok()?;
        Some(Self { client, server })
    }
}

/// Changes to make on a host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Apply {
    pub lab: String,
    pub owner: String,
    pub connection: Option<Connection>,
    /// Silence of the conductor after which all changes are undone.
    pub hold_ms: u64,
    pub replace_qdisc: bool,
    /// tso, gso and gro may be turned off.
    pub offloads: bool,
    pub sysctls: BTreeMap<String, String>,
    pub interfaces: Vec<Ready>,
    pub queues: Vec<Queue>,
    /// Programs after the question to load into the kernel: the loader, then the congestion controls.
    pub programs: Vec<Part>,
}

/// An interface that packets of the run pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub name: String,
    /// Most segments that TCP hands down at once; none: as it is.
    pub gso_segments: Option<u32>,
    /// Required MTU, bytes.
    pub mtu_bytes: u32,
}

/// A queue discipline, and its attachment point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub interface: String,
    pub place: Place,
    pub qdisc: QdiscSpec,
    /// Name in the table of queues.
    pub watched: Option<String>,
    /// Seed of a netem.
    pub seed: Option<u64>,
}

/// Attachment point of a queue discipline at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The egress of the host.
    Egress,
    /// The ingress of the host, on a separate interface (ifb).
    Ingress,
}

/// The part of a run on one host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Open {
    pub scenario: Scenario,
    /// All nodes with their addresses. Its hops are the queues on this host, in the order of `Apply::queues`.
    pub plan: Plan,
    /// Nodes of the plan that live here.
    pub nodes: Vec<usize>,
    /// Links that begin here: the node, the name, the interface.
    pub near_ends: Vec<(usize, String, String)>,
    /// Packets are kept too.
    pub capture: Option<CaptureRequest>,
}

/// A host as it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    pub kernel: String,
    pub boot: String,
    /// State of its clock as its kernel reports it; none if the kernel does not report it.
    pub discipline: Option<Discipline>,
    /// SHA-256 of the agent's own file.
    pub agent: String,
    pub tick_hz: Option<u32>,
    /// Queue disciplines that its kernel lacks.
    pub lacks: Vec<String>,
    pub algorithms: Vec<String>,
    /// Its kernel describes its structures (BTF), without which it accepts no congestion control.
    pub btf: bool,
    /// Required rights that this process has.
    pub net_admin: bool,
    pub net_raw: bool,
    pub forwards: bool,
    pub interfaces: Vec<Interface>,
    /// Changes that are in place, and whose.
    pub holder: Option<Holder>,
}

/// A network interface as it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    pub up: bool,
    pub mtu_bytes: u32,
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// A queue discipline configured by others: kind and handle.
    pub foreign: Option<(String, String)>,
    /// Why it must not be touched.
    pub carries: Option<String>,
    /// Mbit/s, if the driver reports it.
    pub speed_mbit: Option<u32>,
    pub half_duplex: bool,
    pub bytes: u64,
    pub errors: u64,
}

/// Holder of the changes on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub lab: String,
    pub owner: String,
    /// Seconds since 1970.
    pub since: u64,
    pub boot: String,
    /// The holder is alive; if not, its changes were left behind.
    pub alive: bool,
    pub changes: usize,
}

/// Route to an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub target: Ipv4Addr,
    pub interface: String,
    pub gateway: Option<Ipv4Addr>,
    pub source: Option<Ipv4Addr>,
}

/// Number of changes made, and the values read back.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Applied {
    pub changes: usize,
    pub verified: Vec<String>,
}

/// A host's results of a run besides its tables.
#[derive(Debug, Serialize, Deserialize)]
pub struct Played {
    /// By node.
    pub reports: Vec<(usize, Report)>,
    pub idle_share: f64,
    pub steal_share: f64,
    pub dropped: u64,
    pub squeezed: u64,
    pub samples: u64,
    pub late: u64,
    pub worst_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_read_as_sshd_writes_it() {
        let connection = Connection::parse("192.0.2.7 50004 10.0.0.1 22").unwrap();
        assert_eq!(connection.client.to_string(), "192.0.2.7");
        assert_eq!(connection.server.to_string(), "10.0.0.1");
        let local = Connection::parse("fe80::1%eth0 50004 fe80::2%eth0 22").unwrap();
        assert_eq!(local.server.to_string(), "fe80::2");
        assert_eq!(Connection::parse("; reboot"), None);
    }
}
