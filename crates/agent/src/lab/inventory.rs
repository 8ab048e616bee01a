//! Inventory of a host: interfaces, addresses, queue disciplines, routes, rights. Read only.

use super::messages::{Connection, Interface, Route};
use crate::fault::{Fault, fault};
use crate::netlink::{Attributes, Message, Rtnetlink as _, Socket, flag, word};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const RTM_GETQDISC: u16 = 38;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;
const IFF_UP: u32 = 1;

/// An interface of the kernel.
#[derive(Clone, Debug, Default)]
pub struct Link {
    pub index: i32,
    pub up: bool,
    pub mtu_bytes: u32,
    pub gso_segments: u32,
    /// The interface that it is a part of (bond, bridge), and the one below it (VLAN).
    relatives: Vec<i32>,
    received_bytes: u64,
    sent_bytes: u64,
    errors: u64,
}

/// Interfaces by name.
pub fn links(netlink: &mut Socket) -> Result<BTreeMap<String, Link>, Fault> {
    let mut links = BTreeMap::new();
    for answer in netlink.ask_all(Message::new(RTM_GETLINK, flag::DUMP, &[0; 16]))? {
        let Some(attributes) = answer.get(16..).map(Attributes) else { continue };
        let number = |kind| attributes.number(kind).unwrap_or_default();
        // IFLA_LINK of a veth is its peer; IFLA_LINK_NETNSID or the kind distinguishes it from a VLAN's carrier.
        let kind = attributes.inside(18).and_then(|info| info.get(1)).unwrap_or_default();
        let below = attributes.get(37).is_none() && !kind.starts_with(b"veth");
        let relatives = [number(10), if below { number(5) } else { 0 }];
        let counters = attributes.get(23).unwrap_or_default(); // IFLA_STATS64
        let counter = |at: usize| crate::netlink::long(counters, 8 * at).unwrap_or_default();
        let link = Link {
            index: word(&answer, 4).unwrap_or_default() as i32,
            up: word(&answer, 8).unwrap_or_default() & IFF_UP != 0,
            mtu_bytes: number(4),
            gso_segments: number(40),
            relatives: relatives.iter().filter(|index| **index > 0).map(|i| *i as i32).collect(),
            received_bytes: counter(2),
            sent_bytes: counter(3),
            errors: counter(4) + counter(5),
        };
        links.insert(text(attributes.get(3)), link);
    }
    Ok(links)
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).trim_end_matches('\0').to_owned()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// (index of the interface, address, length of the prefix).
pub fn addresses(netlink: &mut Socket) -> Result<Vec<(i32, IpAddr, u8)>, Fault> {
    let answers = netlink.ask_all(Message::new(RTM_GETADDR, flag::DUMP, &[0; 8]))?;
    let rows = answers.iter().filter_map(|answer| {
        let attributes = Attributes(answer.get(8..)?);
        let local = attributes.get(2).or_else(|| attributes.get(1))?; // IFA_LOCAL, IFA_ADDRESS
        Some((word(answer, 4)? as i32, address(local)?, *answer.get(1)?))
    });
    Ok(rows.collect())
}

/// Looks up the route to an address; none if there is no route.
pub fn route(
    netlink: &mut Socket,
    target: IpAddr,
) -> Option<(i32, Option<IpAddr>, Option<IpAddr>)> {
    let (family, bytes) = match target {
        IpAddr::V4(target) => (libc::AF_INET, target.octets().to_vec()),
        IpAddr::V6(target) => (libc::AF_INET6, target.octets().to_vec()),
    };
    let fixed = [family as u8, 8 * bytes.len() as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut message = Message::new(RTM_GETROUTE, flag::ACK, &fixed);
    message.bytes(1, &bytes); // RTA_DST
    let answer = netlink.ask(message).ok()?;
    let attributes = Attributes(answer.get(12..)?);
    let gateway = attributes.get(5).and_then(address);
    Some((attributes.number(4)? as i32, gateway, attributes.get(7).and_then(address)))
}

/// Interfaces of default routes.
fn defaults(netlink: &mut Socket) -> Result<BTreeSet<i32>, Fault> {
    let answers = netlink.ask_all(Message::new(RTM_GETROUTE, flag::DUMP, &[0; 12]))?;
    const UNICAST: u8 = 1;
    let all = answers.iter().filter(|answer| answer.get(1) == Some(&0));
    let all = all.filter(|answer| answer.get(7) == Some(&UNICAST));
    Ok(all.filter_map(|a| Some(Attributes(a.get(12..)?).number(4)? as i32)).collect())
}

/// Queue disciplines that were configured on interfaces, by index: kind and handle. The system's own have the handle
/// 0.
pub fn foreign(netlink: &mut Socket) -> Result<BTreeMap<i32, (String, u32)>, Fault> {
    let mut foreign_qdiscs = BTreeMap::new();
    for answer in netlink.ask_all(Message::new(RTM_GETQDISC, flag::DUMP, &[0; 20]))? {
        let number = |at| word(&answer, at).unwrap_or_default();
        let (handle, parent) = (number(8), number(12));
        if (parent == TC_H_ROOT && handle != 0) || parent == TC_H_INGRESS {
            let kind = answer.get(20..).and_then(|rest| Attributes(rest).get(1));
            foreign_qdiscs.insert(number(4) as i32, (text(kind), handle));
        }
    }
    Ok(foreign_qdiscs)
}

/// Why interfaces must not be touched, by index: they hold the SSH connection or a default route, or belong to one
/// that does.
pub fn carrying(
    netlink: &mut Socket,
    connection: Option<Connection>,
) -> Result<BTreeMap<i32, String>, Fault> {
    let mut carried_traffic: BTreeMap<i32, String> = BTreeMap::new();
    for index in defaults(netlink)? {
        carried_traffic.insert(index, "the default route".to_owned());
    }
    if let Some(Connection { client, server }) = connection {
        for (index, local_address, _) in addresses(netlink)? {
            if local_address == server {
                carried_traffic.insert(index, format!("your SSH connection (address {server})"));
            }
        }
        if let Some((index, ..)) = route(netlink, client) {
            carried_traffic.insert(index, format!("your SSH connection (route to {client})"));
        }
    }
    let links = links(netlink)?;
    loop {
        let mut more: Vec<(i32, String)> = Vec::new();
        for link in links.values() {
            for relative in &link.relatives {
                for (from, to) in [(link.index, *relative), (*relative, link.index)] {
                    if let (Some(why), false) =
                        (carried_traffic.get(&from), carried_traffic.contains_key(&to))
                    {
                        more.push((to, why.clone()));
                    }
                }
            }
        }
        if more.is_empty() {
            return Ok(carried_traffic);
        }
        carried_traffic.extend(more);
    }
}

/// Lists those of the interfaces that exist.
pub fn interfaces(
    netlink: &mut Socket,
    names: &[String],
    connection: Option<Connection>,
) -> Result<Vec<Interface>, Fault> {
    let (links, addresses) = (links(netlink)?, addresses(netlink)?);
    let (foreign, carrying) = (foreign(netlink)?, carrying(netlink, connection)?);
    let mut inventory = Vec::new();
    for name in names {
        let Some(link) = links.get(name) else { continue };
        let link_addresses = addresses.iter().filter(|(index, ..)| *index == link.index);
        let ipv4_prefixes = link_addresses.filter_map(|(_, address, length)| match address {
            IpAddr::V4(address) => Some((*address, *length)),
            IpAddr::V6(_) => None,
        });
        // The name is one of the kernel's: it holds no slash.
        let says = |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}"));
        let speed: Option<i64> = says("speed").ok().and_then(|text| text.trim().parse().ok());
        inventory.push(Interface {
            name: name.clone(),
            up: link.up,
            mtu_bytes: link.mtu_bytes,
            addresses: ipv4_prefixes.collect(),
            foreign: foreign
                .get(&link.index)
                .map(|(kind, handle)| (kind.clone(), format!("{:x}:", handle >> 16))),
            carries: carrying.get(&link.index).cloned(),
            speed_mbit: speed.and_then(|mbit| u32::try_from(mbit).ok()),
            half_duplex: says("duplex").is_ok_and(|text| text.trim() == "half"),
            bytes: link.received_bytes + link.sent_bytes,
            errors: link.errors,
        });
    }
    Ok(inventory)
}

/// Bytes that each interface has carried, both ways; 0 where it is not there.
pub fn carried(netlink: &mut Socket, interfaces: &[String]) -> Result<Vec<u64>, Fault> {
    let links = links(netlink)?;
    let bytes = |link: &Link| link.received_bytes.saturating_add(link.sent_bytes);
    Ok(interfaces.iter().map(|name| links.get(name).map_or(0, bytes)).collect())
}

/// Looks up the routes to these addresses.
pub fn routes(netlink: &mut Socket, targets: &[Ipv4Addr]) -> Result<Vec<Route>, Fault> {
    let names: BTreeMap<i32, String> =
        links(netlink)?.into_iter().map(|(name, link)| (link.index, name)).collect();
    let v4 = |address: Option<IpAddr>| match address {
        Some(IpAddr::V4(address)) => Some(address),
        Some(IpAddr::V6(_)) | None => None,
    };
    let mut routes = Vec::new();
    for &target in targets {
        let Some((index, gateway, source)) = route(netlink, target.into()) else { continue };
        let interface = names.get(&index).cloned().unwrap_or_default();
        routes.push(Route { target, interface, gateway: v4(gateway), source: v4(source) });
    }
    Ok(routes)
}

/// Capabilities of this process by number (capabilities(7)).
pub fn capable(number: u32) -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> number & 1 == 1)
}

pub const CAP_NET_ADMIN: u32 = 12;
pub const CAP_NET_RAW: u32 = 13;

/// The kernel's own number of this boot.
pub fn boot() -> Result<String, Fault> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let text = text.trim();
    if text.is_empty() { fault("this machine has no boot id") } else { Ok(text.to_owned()) }
}
