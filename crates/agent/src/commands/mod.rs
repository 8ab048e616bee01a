//! Programs of the user's own at hosts of a path: their processes and what they print (live.rs), in a machine that is thrown
//! away their files (root.rs), and as flows of a run (flows.rs).

pub mod flows;
pub mod live;
pub mod root;

use crate::fault::Fault;
use crate::{network, sys};
use std::fs;

/// Sets what programs may do in a machine that is thrown away; its first network namespace is `home`.
pub fn machine_settings(home: &fs::File) -> Result<(), Fault> {
    sys::enter(home)?;
    let available = "net.ipv4.tcp_available_congestion_control";
    let algorithms = fs::read_to_string(network::proc_file(available))?;
    // The kernel has this list once, and lets its first namespace alone change it.
    network::sysctl("net.ipv4.tcp_allowed_congestion_control", algorithms.trim())?;
    // Addresses of memory differ by seed otherwise, and with them what some programs do.
    network::sysctl("kernel.randomize_va_space", "0")?;
    network::sysctl("kernel.hostname", "dragstrip")
}

/// Congestion control of a host, and what its programs may do without rights; the thread is in its namespace then.
pub fn settings(host: &fs::File, cc: &str, field: &str) -> Result<(), Fault> {
    sys::enter(host)?;
    let (name, wanted) = ("net.ipv4.tcp_congestion_control", sys::in_kernel(cc));
    let default = fs::read_to_string(network::proc_file(name)).unwrap_or_default();
    // Outside of the machine's first namespace the kernel takes only what it allows to everybody.
    if default.trim() != wanted {
        network::set(field, name, &wanted)?;
    }
    network::sysctl("net.ipv4.ip_unprivileged_port_start", "0")
}
