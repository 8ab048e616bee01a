//! Queue disciplines on interfaces: what `crates/qdisc` composes is sent, and what the kernel reports is compared with it.

use crate::fault::{Fault, fault};
use crate::netlink::{Attributes, Message, Rtnetlink, flag, long, word};
use dragstrip_qdisc::netlink::Writer;
use dragstrip_qdisc::{
    Addition, Configuration as _, Confirmation, Key, Object, PoliceSpec, QdiscSpec, TreeSpec,
    selector,
};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const NLA_F_NESTED: u16 = 1 << 15;
const TCA_STATS2: u16 = 7;
/// Handle of the root: 1:0.
const ROOT: u32 = 0x1_0000;

const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;
/// `TC_H_CLSACT`, its handle, and where filters of what goes out hang on it.
const TC_H_CLSACT: u32 = 0xffff_fff1;
const CLSACT: u32 = 0xffff_0000;
const EGRESS: u32 = 0xffff_fff3;
/// The first filter, of any protocol (`ETH_P_ALL`): the upper half is its number, the lower one the protocol.
const EVERYTHING: u32 = 1 << 16 | (3_u16.to_be() as u32);

/// The first filters, of IPv4.
const IPV4_FIRST: u32 = 1 << 16 | (0x0800_u16.to_be() as u32);

/// Packets of a flow, by its ports in either order, and their mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marking {
    pub protocol: u8,
    pub ports: (u16, u16),
    pub mark: u32,
}

/// Handle of the discipline at the root: a tree's own, or 1:0, or around a tree one that it does not have.
fn root_handle(spec: &QdiscSpec) -> u32 {
    if let QdiscSpec::Tc(tree) = spec {
        return tree.root_handle();
    }
    let inner = spec.classes().into_iter().find_map(|class| {
        if let QdiscSpec::Tc(tree) = class.child { Some(tree.outer_handle()) } else { None }
    });
    inner.unwrap_or(ROOT)
}

/// Handle of the root's class number `index`: 1:1 and on.
const fn class_handle(root: u32, index: usize) -> u32 {
    root + 1 + index as u32
}

/// Handle of the discipline in it: a tree's own, or 10:0 and on.
fn child_handle(index: usize, child: &QdiscSpec) -> u32 {
    if let QdiscSpec::Tc(tree) = child {
        return tree.root_handle();
    }
    (0x10 + index as u32) << 16
}

pub fn tcmsg(interface: i32, handle: u32, parent: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&interface.to_ne_bytes());
    for word in [handle, parent, 0] {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// struct tcmsg of the policer.
fn filter(interface: i32) -> Vec<u8> {
    let mut bytes = tcmsg(interface, 1, EGRESS);
    bytes[16..20].copy_from_slice(&EVERYTHING.to_ne_bytes());
    bytes
}

/// Puts a clsact on an interface.
fn clsact(netlink: &mut impl Rtnetlink, interface: i32) -> Result<(), Fault> {
    let create = flag::ACK | flag::CREATE | flag::EXCL;
    let mut message = Message::new(RTM_NEWQDISC, create, &tcmsg(interface, CLSACT, TC_H_CLSACT));
    message.text(TCA_KIND, "clsact");
    netlink.ask(message).map_err(|fault| fault.at("clsact")).map(drop)
}

/// Makes everything that goes out of an interface pass a policer (`tc filter add dev X egress matchall action police`).
fn police(netlink: &mut impl Rtnetlink, interface: i32, spec: &PoliceSpec) -> Result<(), Fault> {
    clsact(netlink, interface)?;
    limit(netlink, interface, spec)
}

/// Gives the packets of flows their marks before the interface's queue sees them, as a firewall's rules would do: a mark
/// that the sending host sets ends at its namespace (`skb_scrub_packet`).
pub fn mark(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    markings: &[Marking],
) -> Result<(), Fault> {
    if markings.is_empty() {
        return Ok(());
    }
    clsact(netlink, interface)?;
    for Marking { protocol, ports: (one, other), mark } in markings {
        for ports in [(one, other), (other, one)] {
            let ports = u32::from(*ports.0) << 16 | u32::from(*ports.1);
            let keys = [
                Key { offset: 8, value: u32::from(*protocol) << 16, mask: 0x00ff_0000 },
                Key { offset: 20, value: ports, mask: u32::MAX },
            ];
            let mut family = tcmsg(interface, 0, EGRESS);
            family[16..20].copy_from_slice(&IPV4_FIRST.to_ne_bytes());
            let create = flag::ACK | flag::CREATE | flag::EXCL;
            let mut message = Message::new(RTM_NEWTFILTER, create, &family);
            message.text(TCA_KIND, "u32").nest(TCA_OPTIONS, |options| {
                // TCA_U32_ACT, of which the first has TCA_ACT_KIND and TCA_ACT_OPTIONS
                options.nest(7, |actions| {
                    actions.nest(1, |action| {
                        // TCA_SKBEDIT_PARMS, struct tc_skbedit that lets the packet pass; TCA_SKBEDIT_MARK
                        action.text(1, "skbedit").nest(2, |skbedit| {
                            skbedit.bytes(2, &[0; 20]).u32(5, *mark);
                        });
                    });
                });
                options.bytes(5, &selector(&keys)); // TCA_U32_SEL
            });
            netlink.ask(message).map_err(|fault| fault.at("skbedit mark"))?;
        }
    }
    Ok(())
}

/// The filter itself, on a clsact.
fn limit(netlink: &mut impl Rtnetlink, interface: i32, spec: &PoliceSpec) -> Result<(), Fault> {
    let create = flag::ACK | flag::CREATE | flag::EXCL;
    let mut message = Message::new(RTM_NEWTFILTER, create, &filter(interface));
    let parameters = spec.options().unwrap_or_default();
    message.text(TCA_KIND, "matchall").nest(TCA_OPTIONS, |options| {
        // TCA_MATCHALL_ACT, of which the first has TCA_ACT_KIND and TCA_ACT_OPTIONS
        options.nest(2, |actions| {
            actions.nest(1, |action| {
                action.text(1, PoliceSpec::KIND).bytes(2, &parameters);
            });
        });
    });
    netlink.ask(message).map_err(|fault| fault.at(PoliceSpec::KIND)).map(drop)
}

/// A fault if the policer is not there, or is another.
fn policed(netlink: &mut impl Rtnetlink, interface: i32, spec: &PoliceSpec) -> Result<(), Fault> {
    let mut message = Message::new(RTM_GETTFILTER, flag::ACK, &filter(interface));
    message.text(TCA_KIND, "matchall");
    let answer = netlink.ask(message).map_err(|fault| fault.at(PoliceSpec::KIND))?;
    let options = answer.get(20..).and_then(|rest| Attributes(rest).inside(TCA_OPTIONS));
    let action = options.and_then(|options| options.inside(2)?.inside(1)?.get(2));
    confirmed(PoliceSpec::KIND, &spec.confirm(action.unwrap_or_default()))
}

/// Packets that the policer has dropped.
fn refused(netlink: &mut impl Rtnetlink, interface: i32) -> Result<u64, Fault> {
    Ok(read_handle(netlink, interface, CLSACT, &QdiscSpec::NOQUEUE)?.counters.dropped)
}

/// Puts a queue discipline on an interface, with its classes and what is in them; `seed` is a netem's.
pub fn install(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    spec: &QdiscSpec,
    seed: Option<u64>,
) -> Result<(), Fault> {
    if let Some(policer) = spec.policer() {
        police(netlink, interface, policer)?;
    }
    let spec = &spec.unpoliced();
    if let QdiscSpec::Tc(tree) = spec {
        return grow(netlink, interface, tree, None);
    }
    let root = root_handle(spec);
    add(netlink, interface, root, TC_H_ROOT, spec, seed)?;
    for (index, class) in spec.classes().iter().enumerate() {
        let create = flag::ACK | flag::CREATE | flag::EXCL;
        let at = class_handle(root, index);
        let mut message = Message::new(RTM_NEWTCLASS, create, &tcmsg(interface, at, root));
        message.text(TCA_KIND, spec.kind()).bytes(TCA_OPTIONS, &class.options);
        netlink.ask(message).map_err(|fault| fault.at(&format!("{} class", spec.kind())))?;
        if let QdiscSpec::Tc(tree) = class.child {
            grow(netlink, interface, tree, Some(at))?;
        } else {
            add(netlink, interface, child_handle(index, class.child), at, class.child, seed)?;
        }
    }
    Ok(())
}

/// Puts a tree on an interface, or into a class: the discipline at its root, classes, their disciplines, filters.
fn grow(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    tree: &TreeSpec,
    class: Option<u32>,
) -> Result<(), Fault> {
    for Addition { object, handle, parent, info, kind, options, nested, spec: _ } in
        tree.additions(class)
    {
        let (message, flags) = match object {
            Object::Qdisc => (RTM_NEWQDISC, flag::CREATE | flag::REPLACE),
            Object::Class => (RTM_NEWTCLASS, flag::CREATE | flag::EXCL),
            Object::Filter => (RTM_NEWTFILTER, flag::CREATE | flag::EXCL),
        };
        let mut family = tcmsg(interface, handle, parent);
        family[16..20].copy_from_slice(&info.to_ne_bytes());
        let mut message = Message::new(message, flag::ACK | flags, &family);
        message.text(TCA_KIND, kind);
        if let Some(options) = options {
            let nested = if nested { NLA_F_NESTED } else { 0 };
            message.bytes(TCA_OPTIONS | nested, &options);
        }
        let what = match object {
            Object::Qdisc => kind.to_owned(),
            Object::Class => format!("{kind} class {:x}:{:x}", handle >> 16, handle & 0xffff),
            Object::Filter => format!("{kind} filter of {:x}:{:x}", parent >> 16, parent & 0xffff),
        };
        netlink.ask(message).map_err(|fault| fault.at(&what))?;
    }
    Ok(())
}

fn add(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    handle: u32,
    parent: u32,
    spec: &QdiscSpec,
    seed: Option<u64>,
) -> Result<(), Fault> {
    let create = flag::ACK | flag::CREATE | flag::REPLACE;
    let mut message = Message::new(RTM_NEWQDISC, create, &tcmsg(interface, handle, parent));
    message.text(TCA_KIND, spec.kind());
    if let Some(options) = options(spec, seed) {
        let nested = if spec.nested() { NLA_F_NESTED } else { 0 };
        message.bytes(TCA_OPTIONS | nested, &options);
    }
    netlink.ask(message).map_err(|fault| fault.at(spec.kind())).map(drop)
}

/// The options that tc(8) would send, and for a netem its seed: Linux takes one since 6.6, and earlier kernels ignore
/// unknown attributes.
fn options(spec: &QdiscSpec, seed: Option<u64>) -> Option<Vec<u8>> {
    const TCA_NETEM_PRNG_SEED: u16 = 14;
    let options = spec.options()?;
    Some(match (spec, seed) {
        (QdiscSpec::Netem(_), Some(seed)) => {
            let mut seeded = Writer::behind(&options);
            seeded.u64(TCA_NETEM_PRNG_SEED, seed);
            seeded.into_bytes()
        }
        _ => options,
    })
}

/// Makes of the discipline on an interface another of the same kind, as tc(8)'s `change` does, and reads it back: what
/// differs is sent, and what is queued stays as far as the discipline lets it.
pub fn change(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    from: &QdiscSpec,
    to: &QdiscSpec,
) -> Result<(), Fault> {
    let mut tell = |kind: u16, handle: u32, parent: u32, of: &str, options: Vec<u8>| {
        let mut message = Message::new(kind, flag::ACK, &tcmsg(interface, handle, parent));
        message.text(TCA_KIND, of).bytes(TCA_OPTIONS, &options);
        netlink.ask(message).map_err(|fault| fault.at(&format!("{of}, to be changed"))).map(drop)
    };
    let whole = to;
    let (policers, from, to) = ((from.policer(), to.policer()), from.unpoliced(), &to.unpoliced());
    let root = root_handle(to);
    if let Some(options) = to.change_options().filter(|_| from.options() != to.options()) {
        tell(RTM_NEWQDISC, root, TC_H_ROOT, to.kind(), options)?;
    }
    for (index, (before, class)) in from.classes().iter().zip(to.classes()).enumerate() {
        let at = class_handle(root, index);
        if before.options != class.options {
            tell(RTM_NEWTCLASS, at, root, to.kind(), class.options)?;
        }
        if let Some(options) = class.child.change_options().filter(|_| before.child != class.child)
        {
            let handle = child_handle(index, class.child);
            tell(RTM_NEWQDISC, handle, at, class.child.kind(), options)?;
        }
    }
    if let (Some(before), Some(policer)) = policers
        && before.options() != policer.options()
    {
        // A matchall cannot be changed (mall_change): the new policer begins with a full bucket.
        let message = Message::new(RTM_DELTFILTER, flag::ACK, &filter(interface));
        netlink.ask(message).map_err(|fault| fault.at("police, to be changed"))?;
        limit(netlink, interface, policer)?;
    }
    compare(netlink, interface, whole).map(drop)
}

/// Puts another discipline in the place of one, whose packets are dropped.
pub fn replace(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    from: &QdiscSpec,
    to: &QdiscSpec,
) -> Result<(), Fault> {
    if from.policer().is_some() {
        remove(netlink, interface)?;
    } else if *from != QdiscSpec::NOQUEUE {
        remove_root(netlink, interface)?;
    }
    if *to != QdiscSpec::NOQUEUE {
        install(netlink, interface, to, None)?;
    }
    compare(netlink, interface, to).map(drop)
}

/// Takes the discipline at an interface's root away, with all that is in it.
pub fn remove(netlink: &mut impl Rtnetlink, interface: i32) -> Result<(), Fault> {
    let policed = read_handle(netlink, interface, CLSACT, &QdiscSpec::NOQUEUE);
    if policed.is_ok_and(|answer| answer.kind == "clsact") {
        let family = tcmsg(interface, CLSACT, TC_H_CLSACT);
        let message = Message::new(RTM_DELQDISC, flag::ACK, &family);
        netlink.ask(message).map_err(|fault| fault.at("clsact"))?;
    }
    remove_root(netlink, interface)
}

/// The same, but what is on the clsact stays.
fn remove_root(netlink: &mut impl Rtnetlink, interface: i32) -> Result<(), Fault> {
    // Whatever its handle is.
    let message = Message::new(RTM_DELQDISC, flag::ACK, &tcmsg(interface, 0, TC_H_ROOT));
    netlink.ask(message).map_err(|fault| fault.at("qdisc")).map(drop)
}

/// True when the kernel has a discipline: without options it creates one, or reports a missing option.
pub fn is_known(netlink: &mut impl Rtnetlink, interface: i32, kind: &str) -> bool {
    let unknown = std::io::Error::from_raw_os_error(libc::ENOENT).to_string();
    let lacks = |fault: Fault| fault.to_string().contains(&unknown);
    if kind == PoliceSpec::KIND {
        let policer = QdiscSpec::parse(PoliceSpec::LEAST);
        let policer = policer.as_ref().ok().and_then(QdiscSpec::policer);
        return policer.is_some_and(|spec| !police(netlink, interface, spec).is_err_and(lacks));
    }
    // A tree is made of disciplines that are asked for by their own names.
    if kind == TreeSpec::KIND {
        return true;
    }
    let create = flag::ACK | flag::CREATE | flag::REPLACE;
    // The kernel chooses the handle: one of another discipline would be no name for this one.
    let mut message = Message::new(RTM_NEWQDISC, create, &tcmsg(interface, 0, TC_H_ROOT));
    message.text(TCA_KIND, kind);
    netlink.ask(message).err().is_none_or(|fault| !fault.to_string().starts_with(&unknown))
}

/// Backlog and totals of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub backlog_bytes: u64,
    pub backlog_packets: u64,
    pub sent: u64,
    pub dropped: u64,
    pub marked: u64,
    pub sent_bytes: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        let Self { backlog_bytes, backlog_packets, sent, dropped, marked, sent_bytes } = other;
        self.backlog_bytes += backlog_bytes;
        self.backlog_packets += backlog_packets;
        self.sent += sent;
        self.dropped += dropped;
        self.marked += marked;
        self.sent_bytes += sent_bytes;
    }
}

/// The kernel's description of a discipline.
#[derive(Debug)]
struct Answer {
    kind: String,
    options: Vec<u8>,
    counters: Counters,
}

/// Reads the counters of the queue where packets wait: the classes' disciplines together, or the root.
pub fn read(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    spec: &QdiscSpec,
) -> Result<Counters, Fault> {
    let mut sum = Counters::default();
    if spec.policer().is_some() {
        sum.dropped = refused(netlink, interface)?;
    }
    let spec = &spec.unpoliced();
    let classes = spec.classes();
    if classes.is_empty() {
        sum += read_standing(netlink, interface, root_handle(spec), spec)?;
    }
    for (index, class) in classes.iter().enumerate() {
        let handle = child_handle(index, class.child);
        sum += read_standing(netlink, interface, handle, class.child)?;
    }
    Ok(sum)
}

/// Counters of a discipline; a tree's root has them of all but the marks, which its leaves have.
fn read_standing(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    handle: u32,
    spec: &QdiscSpec,
) -> Result<Counters, Fault> {
    let mut counters = read_handle(netlink, interface, handle, spec)?.counters;
    if let QdiscSpec::Tc(tree) = spec {
        for (handle, leaf) in tree.marking_leaves() {
            counters.marked += read_handle(netlink, interface, handle, &leaf)?.counters.marked;
        }
    }
    Ok(counters)
}

/// Compares the discipline on an interface with the configured one; returns a description.
pub fn compare(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    spec: &QdiscSpec,
) -> Result<String, Fault> {
    let whole = spec.print();
    if let Some(policer) = spec.policer() {
        policed(netlink, interface, policer)?;
    }
    let spec = &spec.unpoliced();
    if let QdiscSpec::Tc(tree) = spec {
        return grown(netlink, interface, tree, None).map(|()| whole);
    }
    let root = root_handle(spec);
    if *spec != QdiscSpec::NOQUEUE {
        check_match(spec, &read_handle(netlink, interface, root, spec)?)?;
    }
    for (index, class) in spec.classes().iter().enumerate() {
        let at = class_handle(root, index);
        if let QdiscSpec::Tc(tree) = class.child {
            grown(netlink, interface, tree, Some(at))?;
        } else {
            let handle = child_handle(index, class.child);
            check_match(class.child, &read_handle(netlink, interface, handle, class.child)?)?;
        }
        let of = format!("{} class", spec.kind());
        let options = read_class(netlink, interface, at, &of)?;
        confirmed(&of, &spec.confirm_class(index, &options))?;
    }
    Ok(whole)
}

/// The kernel's description of a class.
fn read_class(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    handle: u32,
    of: &str,
) -> Result<Vec<u8>, Fault> {
    let family = tcmsg(interface, handle, 0);
    let message = Message::new(RTM_GETTCLASS, flag::ECHO | flag::ACK, &family);
    let answer = netlink.ask(message).map_err(|fault| fault.at(of))?;
    let options = answer.get(20..).and_then(|rest| Attributes(rest).get(TCA_OPTIONS));
    Ok(options.unwrap_or_default().to_vec())
}

/// A fault if a discipline or a class of a tree is not there, or is another.
fn grown(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    tree: &TreeSpec,
    class: Option<u32>,
) -> Result<(), Fault> {
    for addition in tree.additions(class) {
        let Addition { object, handle, parent, kind, .. } = &addition;
        let (of, reported) = match object {
            Object::Qdisc => {
                let answer = read_handle(netlink, interface, *handle, &QdiscSpec::NOQUEUE)?;
                let of = format!("{kind} in {:x}:{:x}", parent >> 16, parent & 0xffff);
                if answer.kind != *kind {
                    return fault(format!("{of}: the queue is {:?}", answer.kind));
                }
                (of, answer.options)
            }
            Object::Class => {
                let of = format!("{kind} class {:x}:{:x}", handle >> 16, handle & 0xffff);
                let options = read_class(netlink, interface, *handle, &of)?;
                (of, options)
            }
            // It has no handle of ours: the kernel has acknowledged it.
            Object::Filter => continue,
        };
        confirmed(&of, &addition.confirm(&reported))?;
    }
    Ok(())
}

/// A fault if the kind, or the numbers that the kernel reports, differ.
fn check_match(spec: &QdiscSpec, answer: &Answer) -> Result<(), Fault> {
    if answer.kind != spec.kind() {
        return fault(format!("the queue is {:?}, not {:?}", answer.kind, spec.kind()));
    }
    confirmed(spec.kind(), &spec.confirm(&answer.options))
}

fn confirmed(of: &str, confirmations: &[Confirmation]) -> Result<(), Fault> {
    for Confirmation { what, found: found_text, wanted } in confirmations {
        if *found_text != Some(*wanted) {
            let found_text = found_text
                .map_or_else(|| "not reported".to_owned(), |found_text| found_text.to_string());
            return fault(format!("{of}: {what} is {found_text}, not {wanted}"));
        }
    }
    Ok(())
}

fn read_handle(
    netlink: &mut impl Rtnetlink,
    interface: i32,
    handle: u32,
    spec: &QdiscSpec,
) -> Result<Answer, Fault> {
    // The answer goes to the asker only if it asks for its echo.
    let flags = flag::ECHO | flag::ACK;
    let message = Message::new(RTM_GETQDISC, flags, &tcmsg(interface, handle, 0));
    let answer = netlink.ask(message).map_err(|fault| fault.at("qdisc"))?;
    let Some(attributes) = answer.get(20..).map(Attributes) else {
        return fault("the kernel did not answer a question about a qdisc");
    };
    let kind = attributes.get(TCA_KIND).unwrap_or_default();
    let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned();
    let options = attributes.get(TCA_OPTIONS).unwrap_or_default().to_vec();
    let counters = counters(spec, &attributes);
    Ok(Answer { kind, options, counters })
}

fn counters(spec: &QdiscSpec, attributes: &Attributes<'_>) -> Counters {
    let Some(stats) = attributes.inside(TCA_STATS2) else { return Counters::default() };
    let basic = stats.get(1).unwrap_or_default(); // TCA_STATS_BASIC: bytes, packets
    let queue = stats.get(3).unwrap_or_default(); // TCA_STATS_QUEUE: qlen, backlog, drops, requeues
    let get = |bytes, offset| u64::from(word(bytes, offset).unwrap_or_default());
    Counters {
        backlog_packets: get(queue, 0),
        backlog_bytes: get(queue, 4),
        sent: stats.get(8).and_then(|packets| long(packets, 0)).unwrap_or(get(basic, 8)),
        dropped: get(queue, 8),
        marked: spec.marked(stats.get(4).unwrap_or_default()), // TCA_STATS_APP
        sent_bytes: long(basic, 0).unwrap_or_default(),
    }
}

#[cfg(test)]
pub mod tests;
