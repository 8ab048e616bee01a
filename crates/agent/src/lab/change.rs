//! Changes to a host; each contains the data for its rollback.

use super::inventory;
use crate::fault::{Fault, fault, refusal};
use crate::netlink::{Message, Rtnetlink as _, Socket, flag};
use crate::network::{self, OFFLOADS};
use crate::{qdisc, sys};
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_NEWTFILTER: u16 = 44;
const TC_H_INGRESS: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_0000;
const IFLA_GSO_MAX_SEGS: u16 = 40;
/// The kernel lets go of a program some time after its last user.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// A change, as the journal has it: what it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A setting of the kernel (sysctl).
    Sysctl { name: String, old: String },
    /// tso, gso or gro.
    Offload { interface: String, what: String, old: u32 },
    /// Most segments that TCP hands down at once.
    GsoSegments { interface: String, old: u32 },
    /// A queue discipline where there was the system's own.
    Root { interface: String },
    /// An interface of the lab (ifb).
    Ifb { name: String },
    /// Redirection of incoming packets through such an interface (ifb).
    Ingress { interface: String },
    /// A congestion control in the kernel, held there by a process of the agent's.
    Program { name: String },
}

impl Change {
    /// Restores the previous state; an object that no longer exists needs no rollback.
    pub fn undo(&self, netlink: &mut Socket) -> Result<(), Fault> {
        let links = inventory::links(netlink)?;
        let index = |name: &String| links.get(name).map(|link| link.index);
        match self {
            Self::Sysctl { name, old } => network::sysctl(checked(name)?, old),
            Self::Offload { interface, what, old } => {
                let offload = OFFLOADS.iter().find(|(name, ..)| name == what);
                let (Some((_, set, _)), Some(_)) = (offload, index(interface)) else {
                    return Ok(());
                };
                sys::interface::ethtool(interface, *set, *old).map(drop)
            }
            Self::GsoSegments { interface, old } => {
                index(interface).map_or(Ok(()), |index| set_gso_segments(netlink, index, *old))
            }
            Self::Root { interface } => {
                let Some(index) = index(interface) else { return Ok(()) };
                ignore_missing(qdisc::remove(netlink, index))
            }
            Self::Ifb { name } => {
                let Some(index) = index(name) else { return Ok(()) };
                netlink.ask(Message::new(RTM_DELLINK, flag::ACK, &ifinfo(index))).map(drop)
            }
            Self::Program { name } => gone_from_kernel(name),
            Self::Ingress { interface } => {
                let Some(index) = index(interface) else { return Ok(()) };
                let fixed = qdisc::tcmsg(index, INGRESS, TC_H_INGRESS);
                ignore_missing(netlink.ask(Message::new(RTM_DELQDISC, flag::ACK, &fixed)).map(drop))
            }
        }
    }
}

/// The kernel takes a congestion control out when the process that holds it has ended, and that ends with the agent.
fn gone_from_kernel(name: &str) -> Result<(), Fault> {
    let until = Instant::now() + GONE_WITHIN;
    while algorithms().iter().any(|algorithm| algorithm == name) {
        if Instant::now() > until {
            return fault(format!("congestion control {name}: is still in the kernel"));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Congestion controls of the kernel.
pub fn algorithms() -> Vec<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A thing that was to be removed and is not there has been removed.
fn ignore_missing(outcome: Result<(), Fault>) -> Result<(), Fault> {
    let missing = [libc::ENOENT, libc::EINVAL].map(std::io::Error::from_raw_os_error);
    outcome.or_else(|fault| {
        let message = fault.to_string();
        if missing.iter().any(|error| message.contains(&error.to_string())) {
            Ok(())
        } else {
            Err(fault)
        }
    })
}

/// The name of a setting of the network, and of nothing else.
pub fn checked(name: &str) -> Result<&str, Fault> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    if name.starts_with("net.") && name.bytes().all(plain) && !name.contains("..") {
        return Ok(name);
    }
    refusal("sysctl", name, "a setting of the network, such as net.ipv4.tcp_sack")
}

/// A setting's value.
pub fn sysctl(name: &str) -> Result<String, Fault> {
    let file = format!("/proc/sys/{}", checked(name)?.replace('.', "/"));
    let value = fs::read_to_string(&file);
    let value = value.map_err(|error| Fault::Failed(format!("sysctl {name}: {error}")))?;
    Ok(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn ifinfo(index: i32) -> Vec<u8> {
    let mut fixed = vec![0; 16];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed
}

pub fn set_gso_segments(netlink: &mut Socket, index: i32, segments: u32) -> Result<(), Fault> {
    let mut message = Message::new(RTM_NEWLINK, flag::ACK, &ifinfo(index));
    message.u32(IFLA_GSO_MAX_SEGS, segments);
    netlink.ask(message).map_err(|fault| fault.at("gso segments")).map(drop)
}

/// Makes an interface that packets can be sent through.
pub fn make_ifb(netlink: &mut Socket, name: &str) -> Result<(), Fault> {
    let create = flag::ACK | flag::CREATE | flag::EXCL;
    let mut message = Message::new(RTM_NEWLINK, create, &[0; 16]);
    message.text(3, name).nest(18, |linkinfo| {
        linkinfo.text(1, "ifb");
    });
    netlink.ask(message).map_err(|fault| fault.at("ifb"))?;
    network::up(netlink, sys::interface_index(name)?)
}

/// Sends what comes in at an interface through another one.
pub fn redirect(netlink: &mut Socket, from: i32, through: i32) -> Result<(), Fault> {
    let create = flag::ACK | flag::CREATE | flag::EXCL;
    let fixed = qdisc::tcmsg(from, INGRESS, TC_H_INGRESS);
    let mut message = Message::new(RTM_NEWQDISC, create, &fixed);
    message.text(1, "ingress");
    netlink.ask(message).map_err(|fault| fault.at("ingress"))?;
    // struct tc_u32_sel with one key that every packet matches (tc-u32(8): match u32 0 0).
    const TERMINAL: u8 = 1;
    let mut selector = vec![TERMINAL, 0, 1, 0];
    selector.resize(32, 0);
    // struct tc_mirred: index, capab, action, refcnt, bindcnt; eaction, ifindex.
    const STOLEN: u32 = 4;
    const EGRESS_REDIRECT: u32 = 1;
    let words = [0, 0, STOLEN, 0, 0, EGRESS_REDIRECT, through as u32];
    let mirred: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    const PRIORITY: u32 = 1 << 16;
    let mut fixed = qdisc::tcmsg(from, 0, INGRESS);
    let info = PRIORITY | u32::from((libc::ETH_P_IP as u16).to_be());
    fixed[16..20].copy_from_slice(&info.to_ne_bytes());
    let mut message = Message::new(RTM_NEWTFILTER, create, &fixed);
    message.text(1, "u32").nest(2, |options| {
        options.bytes(5, &selector); // TCA_U32_SEL
        options.nest(7, |actions| {
            actions.nest(1, |action| {
                action.text(1, "mirred").nest(2, |parameters| {
                    parameters.bytes(2, &mirred); // TCA_MIRRED_PARMS
                });
            });
        });
    });
    netlink.ask(message).map_err(|fault| fault.at("u32 and mirred")).map(drop)
}

/// The index of an interface that may be touched.
pub fn touchable(netlink: &mut Socket, name: &str) -> Result<inventory::Link, Fault> {
    match inventory::links(netlink)?.get(name) {
        Some(link) => Ok(link.clone()),
        None => fault(format!("{name}: there is no such interface")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_settings_of_the_network_has_a_file() {
        assert!(checked("net.ipv4.tcp_sack").is_ok());
        for name in
            ["kernel.core_pattern", "net/../kernel/core_pattern", "net...x", "net.A", "net.a\n"]
        {
            assert!(checked(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_change_is_a_separate_line() {
        let change = Change::Sysctl { name: "net.ipv4.tcp_rmem".into(), old: "4096 1 2".into() };
        let line = serde_json::to_string(&change).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Change>(&line).unwrap(), change);
    }
}
