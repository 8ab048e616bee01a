//! Requests about a network interface: ethtool, MTU, packets that a packet socket at it has dropped.

use super::{checked, get_option, socket};
use crate::fault::Fault;
use std::os::fd::AsRawFd;

/// An ethtool ioctl that takes and gives one number.
pub fn ethtool(interface: &str, command: u32, value: u32) -> Result<u32, Fault> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut content = Value { command, data: value };
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_data = (&raw mut content).cast();
    const SIOCETHTOOL: u64 = 0x8946; // linux/sockios.h
    interface_ioctl(SIOCETHTOOL, &mut request, &format!("ethtool {command:#x} on {interface}"))?;
    Ok(content.data)
}

/// The MTU of an interface, bytes.
pub fn mtu(interface: &str) -> Result<u32, Fault> {
    let mut request = interface_request(interface);
    const SIOCGIFMTU: u64 = 0x8921; // linux/sockios.h
    interface_ioctl(SIOCGIFMTU, &mut request, &format!("the MTU of {interface}"))?;
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
}

/// Packets for which a packet socket had no room, since the last call (struct `tpacket_stats`: packets, drops).
pub fn dropped_packets(fd: &impl AsRawFd) -> Result<u64, Fault> {
    let mut stats = [0; 8];
    get_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    let [.., a, b, c, d] = stats;
    Ok(u32::from_ne_bytes([a, b, c, d]).into())
}

fn interface_request(interface: &str) -> libc::ifreq {
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

fn interface_ioctl(number: u64, request: &mut libc::ifreq, call: &str) -> Result<(), Fault> {
    let handle = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let result = unsafe { libc::ioctl(handle.as_raw_fd(), number as _, &raw mut *request) };
    checked(result.into(), call).map(drop)
}
