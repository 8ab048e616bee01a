//! Selection of the hosts for `record.captures`.

use crate::types::{Scenario, Transport};

/// Hosts that are captured at most: each takes [`CAPTURE_BYTES`].
pub const CAPTURED_HOSTS_MAX: usize = 200;
/// Bytes buffered per capture that is read while it is written.
pub(crate) const CAPTURE_BYTES: u64 = 1 << 20;

impl Scenario {
    /// Both ends of every TCP flow, each host once, in the order of the flows.
    #[must_use]
    pub fn captured_hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        let tcp = self.flows.iter().filter(|flow| matches!(flow.transport, Transport::Tcp { .. }));
        for name in tcp.flat_map(|flow| [flow.sender.as_str(), flow.receiver.as_str()]) {
            if !hosts.contains(&name) {
                hosts.push(name);
            }
            // More than may be are too many, however many they are.
            if hosts.len() > CAPTURED_HOSTS_MAX {
                break;
            }
        }
        hosts
    }
}
