//! Builds a plan out of network namespaces, and reads it back.

use crate::fault::{Fault, fault, refusal};
use crate::netlink::{Message, Rtnetlink as _, Socket, flag};
use crate::plan::Plan;
use crate::{qdisc, sys, trees};
use dragstrip_qdisc::netlink::Writer;
use dragstrip_scenario::{QdiscSpec, Sysctls};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::time::Duration;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const CREATE: u16 = flag::ACK | flag::CREATE | flag::EXCL;

/// ethtool's commands to set and to ask, for what would let packets travel in bigger pieces.
pub const OFFLOADS: [(&str, u32, u32); 3] =
    [("tso", 0x1f, 0x1e), ("gso", 0x24, 0x23), ("gro", 0x2c, 0x2b)];

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Settings that a new network namespace has from the first one.
const INHERITED: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

/// A node's network namespace with a netlink socket in it.
#[derive(Debug)]
pub struct Place {
    /// Its own namespace; none: the one that this process was started in, which is never left.
    pub namespace: Option<fs::File>,
    pub netlink: Socket,
}

impl Place {
    /// Makes the calling thread live there.
    pub fn enter(&self) -> Result<(), Fault> {
        self.namespace.as_ref().map_or(Ok(()), sys::enter)
    }
}

/// The seed of a netem by its number: Fibonacci hashing, so that each one's is another, and the next run's too.
pub const fn seed_of(seed: u64, index: usize) -> u64 {
    seed.wrapping_add(1 + ((index as u64) << 32)).wrapping_mul(GOLDEN)
}

/// The network as built.
#[derive(Debug)]
pub struct Network {
    /// By node.
    pub places: Vec<Place>,
    /// Index of the sending interface by hop.
    pub interfaces: Vec<i32>,
}

/// Name of a hop's sending interface.
fn interface_name(hop: usize) -> String {
    format!("v{hop}")
}

/// The other direction of the same veth pair.
const fn opposite(hop: usize) -> usize {
    hop ^ 1
}

/// An interface has a MAC address of its number, so that neighbours can be known beforehand.
fn mac(hop: usize) -> [u8; 6] {
    let [high, low] = (hop as u16).to_be_bytes();
    [2, 0, 0, 0, high, low]
}

impl Network {
    /// Builds everything; with `cold_arp`, neighbours find each other as they do in life. Settings that the kernel
    /// has only once are refused unless `global_sysctls`.
    pub fn build(plan: &Plan, cold_arp: bool, global_sysctls: bool) -> Result<Self, Fault> {
        let home = own_namespace()?;
        // A namespace inherits them from the machine (tcp_sk_init); everything else begins at the kernel's defaults.
        let defaults = Sysctls::linux_6().values();
        let inherited = defaults.iter().filter(|(name, _)| INHERITED.contains(name));
        let inherited: Vec<(&str, &str)> =
            inherited.map(|(name, value)| (*name, value.as_str())).collect();
        let mut places = Vec::new();
        for node in &plan.nodes {
            sys::unshare_network()?;
            let namespace = own_namespace()?;
            let mut netlink = Socket::new()?;
            up(&mut netlink, 1)?;
            address(&mut netlink, 1, node.address.octets())?;
            let sysctls = [
                ("net.ipv6.conf.all.disable_ipv6", "1"),
                ("net.ipv4.tcp_no_metrics_save", "1"),
                ("net.ipv4.ip_forward", if node.forwards { "1" } else { "0" }),
                // The agent's own pings are rate limited otherwise.
                ("net.ipv4.icmp_ratemask", "0"),
            ];
            for (name, value) in sysctls.into_iter().chain(inherited.iter().copied()) {
                sysctl(name, value)?;
            }
            places.push(Place { namespace: Some(namespace), netlink });
        }
        sys::enter(&home)?;
        let mut network = Self { places, interfaces: vec![0; plan.hops.len()] };
        for first in (0..plan.hops.len()).step_by(2) {
            network.pair(plan, first)?;
        }
        network.queues(plan)?;
        network.routes(plan, cold_arp)?;
        network.settings(plan, global_sysctls.then_some(&home))?;
        sys::enter(&home)?;
        Ok(network)
    }

    /// A veth pair: the hop `first` and the one after it, its opposite.
    fn pair(&mut self, plan: &Plan, first: usize) -> Result<(), Fault> {
        let describe = |message: &mut Writer, hop: usize| {
            let spec = &plan.hops[hop];
            // IFLA_IFNAME, IFLA_ADDRESS, IFLA_MTU
            message.text(3, &interface_name(hop)).bytes(1, &mac(hop)).u32(4, spec.mtu_bytes);
            if let Some(segments) = spec.gso_segments_max {
                message.u32(40, segments); // IFLA_GSO_MAX_SEGS
            }
        };
        let target = self.places[plan.hops[first].to].namespace.as_ref().map(AsRawFd::as_raw_fd);
        let mut message = Message::new(RTM_NEWLINK, CREATE, &[0; 16]);
        describe(&mut message, first);
        message.nest(18, |linkinfo| {
            linkinfo.text(1, "veth").nest(2, |data| {
                data.nest(1, |peer| {
                    peer.fixed(&[0; 16]);
                    describe(peer, opposite(first));
                    peer.u32(28, target.unwrap_or_default() as u32); // IFLA_NET_NS_FD
                });
            });
        });
        self.places[plan.hops[first].from]
            .netlink
            .ask(message)
            .map_err(|fault| fault.at("veth"))?;
        for hop in [first, opposite(first)] {
            let place = &mut self.places[plan.hops[hop].from];
            place.enter()?;
            let name = interface_name(hop);
            let interface = sys::interface_index(&name)?;
            let whole = plan.hops[hop].whole_bursts;
            for (offload, set, _) in OFFLOADS {
                sys::interface::ethtool(&name, set, is_on(offload, whole).into())?;
            }
            up(&mut place.netlink, interface)?;
            self.interfaces[hop] = interface;
        }
        Ok(())
    }

    fn queues(&mut self, plan: &Plan) -> Result<(), Fault> {
        for (index, hop) in plan.hops.iter().enumerate() {
            if hop.qdisc != QdiscSpec::NOQUEUE {
                let netlink = &mut self.places[hop.from].netlink;
                let seed = plan.seed.map(|seed| seed_of(seed, index));
                let interface = self.interfaces[index];
                qdisc::install(netlink, interface, &hop.qdisc, seed)
                    .and_then(|()| qdisc::mark(netlink, interface, &hop.markings))
                    .map_err(|fault| fault.at(&plan.nodes[hop.from].name))?;
            }
        }
        Ok(())
    }

    /// Puts new queue disciplines into the places of those that have seen traffic.
    pub fn renew_queues(&mut self, plan: &Plan) -> Result<(), Fault> {
        for (index, hop) in plan.hops.iter().enumerate() {
            if hop.qdisc != QdiscSpec::NOQUEUE {
                qdisc::remove(&mut self.places[hop.from].netlink, self.interfaces[index])?;
            }
        }
        self.queues(plan)
    }

    /// Makes every neighbour unknown again.
    pub fn forget_neighbours(&mut self, plan: &Plan) {
        for (index, hop) in plan.hops.iter().enumerate() {
            if keeps_arp(plan, index) {
                continue;
            }
            let next = &plan.nodes[plan.hops[plan.opposite(index)].from];
            let fixed = neighbour_message(self.interfaces[index]);
            let mut message = Message::new(RTM_DELNEIGH, flag::ACK, &fixed);
            message.bytes(1, &next.address.octets()); // NDA_DST
            let _ = self.places[hop.from].netlink.ask(message); // one that was never known is fine
        }
    }

    fn routes(&mut self, plan: &Plan, cold_arp: bool) -> Result<(), Fault> {
        for (at, node) in plan.nodes.iter().enumerate() {
            let mut neighbours = BTreeSet::new();
            // A line passes on what comes, whoever it is for.
            let routes = node.routes.iter().filter(|_| !plan.is_line(at));
            for &(destination, hop) in routes {
                let far = plan.opposite(hop);
                let next = &plan.nodes[plan.hops[far].from];
                let netlink = &mut self.places[at].netlink;
                let interface = self.interfaces[hop];
                if (!cold_arp || keeps_arp(plan, hop)) && neighbours.insert(hop) {
                    neighbour(netlink, interface, next.address.octets(), mac(far))?;
                }
                let mut message = Message::new(RTM_NEWROUTE, CREATE, &ROUTE);
                message.bytes(1, &plan.nodes[destination].address.octets()); // RTA_DST
                message.bytes(5, &next.address.octets()).u32(4, interface as u32); // GATEWAY, OIF
                message.bytes(7, &node.address.octets()); // RTA_PREFSRC
                netlink
                    .ask(message)
                    .map_err(|fault| fault.at(&format!("route in {}", node.name)))?;
            }
        }
        Ok(())
    }

    /// Applies the hosts' sysctls; those that the kernel has only once go to `home`, if there may be such.
    fn settings(&self, plan: &Plan, home: Option<&fs::File>) -> Result<(), Fault> {
        for (node, place) in plan.nodes.iter().zip(&self.places) {
            for (name, value) in &node.sysctl {
                place.enter()?;
                let field = format!("host {}: sysctl {name}", node.name);
                if !writable(name) {
                    let Some(home) = home else {
                        let expected =
                            "a setting of a network namespace: this one is the whole machine's";
                        return refusal(field, value, expected);
                    };
                    sys::enter(home)?;
                }
                set(&field, name, value)?;
            }
        }
        Ok(())
    }

    /// Compares what was built with the plan; a fault names the difference.
    pub fn verify(&mut self, plan: &Plan) -> Result<Vec<String>, Fault> {
        let mut lines = Vec::new();
        for (index, hop) in plan.hops.iter().enumerate() {
            let (name, interface) = (interface_name(index), self.interfaces[index]);
            let place = &mut self.places[hop.from];
            place.enter()?;
            let route = format!("{} to {}", plan.nodes[hop.from].name, plan.nodes[hop.to].name);
            for (offload, _, ask) in OFFLOADS {
                let on = sys::interface::ethtool(&name, ask, 0)? != 0;
                if on != is_on(offload, hop.whole_bursts) {
                    let state = if on { "on" } else { "off" };
                    return fault(format!("{route}: {offload} is {state}"));
                }
            }
            let mtu = sys::interface::mtu(&name)?;
            if mtu != hop.mtu_bytes {
                return fault(format!("{route}: the MTU is {mtu}, not {}", hop.mtu_bytes));
            }
            let comparison = qdisc::compare(&mut place.netlink, interface, &hop.qdisc)
                .map_err(|fault| fault.at(&route))?;
            let offloads = if hop.whole_bursts { "tso gso on, gro off" } else { "tso gso gro off" };
            lines.push(format!("{route}: {comparison}, mtu {mtu}, {offloads}"));
        }
        lines.extend(plan.lines.iter().map(|line| {
            let links = line.links.iter().zip(&line.kinds);
            let links: Vec<String> = links.map(|(link, kind)| format!("{link} ({kind})")).collect();
            format!(
                "{} to {}: {} in the simulator's code",
                line.ends[0],
                line.ends[1],
                links.join(", ")
            )
        }));
        Ok(lines)
    }
}

/// True when neighbours stay known: a tree on the wire may drop ARP's packets, which filters of IP do not lead to a class, and a
/// line has its first packets wait itself.
fn keeps_arp(plan: &Plan, hop: usize) -> bool {
    let ends = [plan.hops[hop].from, plan.hops[hop].to];
    ends.iter().any(|&node| plan.is_line(node))
        || [hop, opposite(hop)].iter().any(|&hop| trees::is_in(&plan.hops[hop].qdisc))
}

/// True when an offload stays on. veth merges nothing by default (`veth_disable_gro`), and bursts come whole anyway.
fn is_on(offload: &str, whole_bursts: bool) -> bool {
    whole_bursts && offload != "gro"
}

/// The network namespace of the calling thread.
pub fn own_namespace() -> Result<fs::File, Fault> {
    Ok(fs::File::open("/proc/thread-self/ns/net")?)
}

/// Returns what `action` has from another namespace; the thread comes back.
pub fn within<T>(namespace: &fs::File, action: impl FnOnce() -> T) -> Result<T, Fault> {
    let home = own_namespace()?;
    sys::enter(namespace)?;
    let value = action();
    sys::enter(&home)?;
    Ok(value)
}

/// Tries whether namespaces and interfaces can be made here, as querying the rights is not conclusive.
pub fn may_build() -> Result<bool, Fault> {
    let home = own_namespace()?;
    let outcome = scratch().is_ok();
    sys::enter(&home)?;
    Ok(outcome)
}

/// The queue disciplines that this kernel lacks, tested in a separate namespace.
pub fn unknown_kinds(kinds: &[&'static str]) -> Result<Vec<&'static str>, Fault> {
    let home = own_namespace()?;
    let (mut place, interface) = scratch()?;
    let unknown =
        kinds.iter().copied().filter(|kind| !qdisc::is_known(&mut place.netlink, interface, kind));
    let unknown = unknown.collect();
    sys::enter(&home)?;
    Ok(unknown)
}

/// A namespace with a veth pair in it, which the thread enters, and one end's index.
fn scratch() -> Result<(Place, i32), Fault> {
    sys::unshare_network()?;
    let namespace = own_namespace()?;
    let mut netlink = Socket::new()?;
    let name = interface_name(0);
    let mut message = Message::new(RTM_NEWLINK, CREATE, &[0; 16]);
    message.text(3, &name).nest(18, |linkinfo| {
        linkinfo.text(1, "veth");
    });
    netlink.ask(message).map_err(|fault| fault.at("veth"))?;
    let interface = sys::interface_index(&name)?;
    Ok((Place { namespace: Some(namespace), netlink }, interface))
}

/// struct rtmsg: IPv4, /32, main table, boot, universe, unicast, RTNH_F_ONLINK.
const ROUTE: [u8; 12] = [2, 32, 0, 0, 254, 3, 0, 1, 4, 0, 0, 0];

fn ifinfo(interface: i32, flags: u32, change: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&interface.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&change.to_ne_bytes());
    bytes
}

pub fn up(netlink: &mut Socket, interface: i32) -> Result<(), Fault> {
    const IFF_UP: u32 = 1;
    netlink.ask(Message::new(RTM_NEWLINK, flag::ACK, &ifinfo(interface, IFF_UP, IFF_UP)))?;
    Ok(())
}

pub fn address(netlink: &mut Socket, interface: i32, address: [u8; 4]) -> Result<(), Fault> {
    let mut fixed = vec![2, 32, 0, 0];
    fixed.extend_from_slice(&interface.to_ne_bytes());
    let mut message = Message::new(RTM_NEWADDR, CREATE, &fixed);
    message.bytes(2, &address).bytes(1, &address); // IFA_LOCAL, IFA_ADDRESS
    netlink.ask(message).map_err(|fault| fault.at("address")).map(drop)
}

/// struct ndmsg: IPv4, interface, permanent.
fn neighbour_message(interface: i32) -> Vec<u8> {
    const NUD_PERMANENT: u8 = 0x80;
    let mut fixed = vec![2, 0, 0, 0];
    fixed.extend_from_slice(&interface.to_ne_bytes());
    fixed.extend_from_slice(&[NUD_PERMANENT, 0, 0, 0]);
    fixed
}

pub fn neighbour(
    netlink: &mut Socket,
    interface: i32,
    address: [u8; 4],
    mac: [u8; 6],
) -> Result<(), Fault> {
    let fixed = neighbour_message(interface);
    let replace = flag::ACK | flag::CREATE | flag::REPLACE;
    let mut message = Message::new(RTM_NEWNEIGH, replace, &fixed);
    message.bytes(1, &address).bytes(2, &mac); // NDA_DST, NDA_LLADDR
    netlink.ask(message).map_err(|fault| fault.at("neighbour")).map(drop)
}

/// File of a kernel setting.
pub fn proc_file(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// State of a TCP socket that listens (Documentation/networking/proc_net_tcp.rst).
const LISTEN: &str = "0A";

fn sockets(file: &str) -> String {
    fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
}

/// True when a TCP socket of the thread's namespace fulfils a condition on its state and on its number of unacknowledged bytes,
/// both hexadecimal.
fn any_tcp(fulfils: impl Fn(&str, &str) -> bool) -> bool {
    ["tcp", "tcp6"].into_iter().any(|file| {
        sockets(file).lines().skip(1).any(|line| {
            // The fourth column is the state, the fifth tx_queue:rx_queue.
            let mut columns = line.split_whitespace().skip(3);
            let (state, queues) = (columns.next(), columns.next());
            let unacknowledged = queues.and_then(|queues| queues.split(':').next());
            fulfils(state.unwrap_or_default(), unacknowledged.unwrap_or_default())
        })
    })
}

/// True when somebody in the thread's namespace listens on a TCP port or has bound a UDP one.
pub fn has_listener() -> bool {
    any_tcp(|state, _| state == LISTEN)
        || ["udp", "udp6"].into_iter().any(|file| sockets(file).lines().count() > 1)
}

/// True when a TCP socket of the thread's namespace has data or a FIN that is not acknowledged.
pub fn sends_on() -> bool {
    const CLOSING: [&str; 3] = ["04", "09", "0B"]; // FIN_WAIT1, LAST_ACK, CLOSING
    any_tcp(|state, unacknowledged| {
        let is_empty = unacknowledged.bytes().all(|digit| digit == b'0');
        state != LISTEN && (CLOSING.contains(&state) || !is_empty)
    })
}

/// Time that a server has to begin to listen.
pub const LISTEN_WAIT: Duration = Duration::from_secs(10);
/// Time between two looks whether it does.
pub const LISTEN_STEP: Duration = Duration::from_millis(10);

/// The refusal of a server that has ended with this status, or has not listened within this time; `remark` follows.
pub fn no_listener<T>(
    field: &str,
    program: &str,
    status: Option<i32>,
    within: Duration,
    remark: &str,
) -> Result<T, Fault> {
    let expected = match status {
        Some(status) => {
            format!("a server that listens: it has ended with status {status}{remark}")
        }
        None => {
            let wait_s = within.as_secs_f64();
            format!("a server that listens on some port within {wait_s} s{remark}")
        }
    };
    refusal(field, program, expected)
}

/// True when the thread's namespace has its own copy of a setting: otherwise its file is missing or read-only.
fn writable(name: &str) -> bool {
    fs::metadata(proc_file(name)).is_ok_and(|metadata| !metadata.permissions().readonly())
}

/// True when accurate ECN (RFC 9768) can be requested. Linux 6.18 introduced the protocol and this setting, but
/// `tcp_ecn` may be above 2 only since 7.0 (`tcp_ecn_mode_max` in `sysctl_net_ipv4.c`).
pub fn has_accurate_ecn() -> bool {
    let major = kernel_release().split('.').next().and_then(|digits| digits.parse::<u32>().ok());
    let option = fs::exists(proc_file("net.ipv4.tcp_ecn_option")).unwrap_or(false);
    option && major.is_some_and(|major| major >= 7)
}

/// The kernel's release (`uname -r`).
pub fn kernel_release() -> String {
    let release = fs::read_to_string(proc_file("kernel.osrelease")).unwrap_or_default();
    release.trim().to_owned()
}

/// A refusal of accurate ECN, which this kernel lacks, for a field and its value.
pub fn refuse_accurate_ecn(field: &str, value: &str, instead: &str) -> Fault {
    let release = kernel_release();
    let expected = format!(
        "{instead}: accurate ECN (RFC 9768) can be set in Linux since 7.0, and this kernel is {release}; the engine sim \
         has it"
    );
    Fault::Refused(field.to_owned(), value.to_owned(), expected)
}

/// The same for a setting that a scenario has in this field; a refusal if the kernel does not take it.
pub fn set(field: &str, name: &str, value: &str) -> Result<(), Fault> {
    sysctl(name, value)
        .or_else(|why| refusal(field, value, format!("what this kernel takes ({why})")))
}

/// Sets a kernel setting and reads it back.
pub fn sysctl(name: &str, value: &str) -> Result<(), Fault> {
    let accurate = name == "net.ipv4.tcp_ecn" && matches!(value.trim(), "3" | "4" | "5");
    if accurate && !has_accurate_ecn() {
        return Err(refuse_accurate_ecn(name, value, "from 0 to 2"));
    }
    let file = proc_file(name);
    fs::write(&file, value).map_err(|error| Fault::Failed(format!("{name}: {error}")))?;
    let actual = fs::read_to_string(&file)?;
    if !actual.split_whitespace().eq(value.split_whitespace()) {
        return fault(format!("{name} is {:?}, not {value:?}", actual.trim()));
    }
    Ok(())
}
