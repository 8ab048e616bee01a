//! One command: who it is for, and what it does.

use super::Wrong;
use super::filter;
use super::lines::{Command, Word};
use super::tree::{ClassOf, Id, Interfaces, Place, Stab, Standing, Verb};
use super::words::{Rest, device, handle, id, no_device, refused};
use crate::tc::wrong;

/// iproute2 takes any beginning of a word.
fn begins(word: &str, whole: &str) -> bool {
    !word.is_empty() && whole.starts_with(word)
}

/// Programs that make no queue; `ip netns exec` and `ip link set ... txqueuelen` are looked at. One that may run others
/// (ssh, docker, xargs) is not among them.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "ip", "ifconfig", "route", "arp", "bridge", "brctl", "ethtool", "iw", "iwconfig", "iptables",
    "ip6tables", "iptables-nft", "ip6tables-nft", "iptables-restore", "ip6tables-restore",
    "ebtables", "nft", "ipset", "conntrack", "wg", "wg-quick", "modprobe", "insmod", "rmmod",
    "lsmod", "depmod", "sysctl", "echo", "printf", "cat", "sleep", "usleep", "wait", "date",
    "logger", "logread", "ping", "traceroute", "mtr", "iperf", "iperf3", "netperf", "netserver",
    "flent", "ss", "nc", "tcpdump", "tshark", "systemctl", "service", "dhclient", "udhcpc",
    "dnsmasq", "hostapd", "ifup", "ifdown", "nmcli", "networkctl", "uci", "ubus", "nvram", "opkg",
    "apk", "apt", "apt-get", "mkdir", "rmdir", "rm", "touch", "mv", "cp", "ln", "ls", "chmod",
    "chown", "mount", "umount", "stat", "find", "df", "free", "kill", "killall", "pkill", "pgrep",
    "ps", "uname", "hostname", "id", "whoami", "grep", "egrep", "fgrep", "awk", "sed", "cut", "tr",
    "head", "tail", "sort", "uniq", "wc", "tee", "md5sum", "sha256sum", "bc", "expr", "seq",
    "basename", "dirname", "mktemp", "wget", "curl", "git", "make", "go", "crontab", "read",
    "test", "cd", "pwd", "export", "set", "true", "false", ":", "exit",
];

/// Does what a command says; the answer is whether it is one of tc's, and not another program's that makes no queue.
pub(super) fn perform(command: &Command, interfaces: &mut Interfaces) -> Result<bool, Wrong> {
    let mut words = command.words.as_slice();
    interfaces.namespace = None;
    while let Some(word) = words.first() {
        if let Some((name, inner)) = in_namespace(words) {
            interfaces.namespace = Some(name.text.clone());
            words = inner;
        } else if is_prompt(&word.text) {
            words = &words[1..];
        } else {
            break;
        }
    }
    let mut rest = Rest::of(words);
    let Some(program) = rest.next() else { return Ok(false) };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if OTHERS.contains(&name) {
        if ["ip", "ifconfig"].contains(&name) {
            queue_length(words, interfaces)?;
        }
        return Ok(false);
    }
    if let Some(wrong) = &command.wrong {
        return Err(wrong.clone());
    }
    if is_listing(words) {
        let expected = "tc's commands: `dragstrip inspect FILE` reads a listing";
        let problem = wrong("a listing of `tc qdisc show`", expected);
        return Err(Wrong { line: program.line, problem });
    }
    let object = match name {
        "tc" => {
            while let Some(word) = rest.peek().filter(|word| word.starts_with('-')) {
                let option = word.to_owned();
                let word = rest.next().expect("it was looked at");
                match option.trim_start_matches('-') {
                    "n" | "net" | "netns" => {
                        interfaces.namespace = Some(rest.value(word)?.text.clone());
                    }
                    "s" | "d" | "p" | "f" | "j" | "r" | "i" | "t" | "c" | "statistics"
                    | "details" | "pretty" | "force" | "json" | "raw" | "iec" | "timestamp"
                    | "color" => {}
                    _ => return refused(word, "no option of tc, or -n, -s, -d, -p, -j or -force"),
                }
            }
            match rest.next() {
                Some(word) => word,
                None => {
                    return refused(
                        program,
                        "a command, such as: tc qdisc add dev eth0 root fq_codel",
                    );
                }
            }
        }
        // As in a file for `tc -batch`.
        "qdisc" | "class" | "filter" => program,
        _ => {
            let expected = "a command of tc: tc qdisc, tc class or tc filter \
                            (beside it commands that make no queue: ip, ethtool, iptables, modprobe and the like)";
            return refused(program, expected);
        }
    };
    let Some(verb) = rest.next() else {
        return match object.text.as_str() {
            // What stands there is listed.
            "qdisc" | "class" | "filter" => Ok(true),
            _ => refused(object, "qdisc, class or filter"),
        };
    };
    let does = match verb.text.as_str() {
        text if begins(text, "show") || begins(text, "list") || begins(text, "lst") => {
            return Ok(true);
        }
        text if begins(text, "add") => Verb::Add,
        text if begins(text, "change") => Verb::Change,
        text if begins(text, "replace") => Verb::Replace,
        text if begins(text, "delete") => Verb::Delete,
        "link" => {
            return refused(
                verb,
                "add, replace, change or del: the simulator does not model \"link\"",
            );
        }
        _ => return refused(verb, "add, replace, change, del or show"),
    };
    match object.text.as_str() {
        text if begins(text, "qdisc") => qdisc(does, verb, rest, interfaces)?,
        text if begins(text, "class") => class(does, verb, rest, interfaces)?,
        text if begins(text, "filter") => filter::perform(does, verb, rest, interfaces)?,
        "action" | "chain" | "monitor" | "exec" => {
            return refused(object, "qdisc, class or filter: the simulator does not model it");
        }
        _ => return refused(object, "qdisc, class or filter"),
    }
    Ok(true)
}

/// True when the text is a prompt: a prefix that does not change the command.
fn is_prompt(text: &str) -> bool {
    ["sudo", "doas", "$", "-E"].contains(&text) || text.contains('@') && text.ends_with(['#', '$'])
}

/// Returns the namespace and the command of `ip netns exec NAME`.
fn in_namespace(words: &[Word]) -> Option<(&Word, &[Word])> {
    let texts: Vec<&str> = words.iter().take(4).map(|word| word.text.as_str()).collect();
    match texts[..] {
        [ip, "netns" | "net", "exec" | "e", _] if ip.rsplit('/').next() == Some("ip") => {
            Some((&words[3], &words[4..]))
        }
        _ => None,
    }
}

/// `ip link set dev X txqueuelen N`, `ifconfig X txqueuelen N`.
fn queue_length(words: &[Word], interfaces: &mut Interfaces) -> Result<(), Wrong> {
    let is_queue_length =
        |word: &Word| ["txqueuelen", "txqlen", "qlen"].contains(&word.text.as_str());
    let Some(at) = words.iter().position(is_queue_length) else { return Ok(()) };
    let Some(packets) = words.get(at + 1).and_then(|word| word.text.parse::<u32>().ok()) else {
        return refused(&words[at], "a number of packets after it");
    };
    let of = words.iter().position(|word| word.text == "dev").map(|dev| dev + 1);
    let plain = || {
        let keywords = ["link", "l", "set", "s", "add", "name", "ifconfig", "ip"];
        words
            .iter()
            .position(|word| !keywords.contains(&word.text.as_str()) && !word.text.contains('/'))
    };
    if let Some(word) = of.or_else(plain).and_then(|at| words.get(at)) {
        device(word, interfaces)?.txqueuelen = Some(packets);
    }
    Ok(())
}

/// A line of `tc qdisc show`, `tc class show` or `tc filter show`: `qdisc fq_codel 8001: dev eth0 ...`.
fn is_listing(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().take(3).map(|word| word.text.as_str()).collect();
    match texts[..] {
        ["qdisc", _, handle] => handle.ends_with(':'),
        ["class", _, id] => id.contains(':'),
        ["filter", "parent", id] => id.contains(':'),
        _ => false,
    }
}

fn qdisc(
    does: Verb,
    verb: &Word,
    mut rest: Rest<'_>,
    interfaces: &mut Interfaces,
) -> Result<(), Wrong> {
    let (mut dev, mut named, mut place, mut kind) = (None, None, None, None);
    let (mut ingress, mut stab) = (None, None);
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "dev" => dev = Some(rest.value(word)?),
            "handle" => named = Some(handle(rest.value(word)?)?),
            "root" => place = Some((Place::Root, word)),
            "parent" => {
                let word = rest.value(word)?;
                let at = id(word)?;
                if at.major == 0xffff {
                    ingress = Some(word);
                } else if at.minor == 0 && does != Verb::Delete {
                    // The only class of a discipline that has one.
                    place = Some((Place::Class(Id { minor: 1, ..at }), word));
                } else {
                    place = Some((Place::Class(at), word));
                }
            }
            "ingress" | "clsact" => ingress = Some(word),
            "stab" => stab = Some(size_table(word, &mut rest)?),
            "estimator" | "est" | "ingress_block" | "egress_block" | "offload" => {
                return refused(word, "none of it: the simulator does not model it");
            }
            _ => {
                kind = Some(word);
                break;
            }
        }
    }
    let words = rest.all();
    let Some(dev) = dev else { return no_device(verb) };
    let interface = device(dev, interfaces)?;
    if let Some(word) = ingress {
        if let Some(kind) = kind.filter(|kind| does != Verb::Delete || kind.text != "ingress") {
            return refused(kind, "nothing more: an ingress discipline has no options");
        }
        if does == Verb::Delete {
            interface.ingress = None;
            interface.filters.retain(|filter| !filter.hangs_on(0xffff));
        } else {
            let kind = if word.text == "clsact" { "clsact" } else { "ingress" };
            interface.ingress = Some(Word { text: kind.to_owned(), line: word.line });
        }
        return Ok(());
    }
    if does == Verb::Delete {
        // What was there before the script is not known here: scripts begin with it.
        let by_handle = named.and_then(|major| interface.of_handle(major));
        let place = place.map(|(place, _)| place).or(by_handle.map(|standing| standing.place));
        return match place {
            Some(place) => {
                interface.remove(place);
                Ok(())
            }
            None => refused(
                verb,
                "\"root\", \"parent\" with a class, \"ingress\" or a handle of a line before",
            ),
        };
    }
    let Some((place, parent)) = place else {
        return refused(verb, "\"root\", \"parent\" with a class, or \"ingress\"");
    };
    let Some(kind) = kind else {
        return refused(verb, "the name of a discipline, such as fq_codel");
    };
    let new = Standing { place, handle: named, kind: kind.clone(), words, stab };
    interface.put(does, new, parent)
}

/// `stab` with `overhead`, `mpu` and `linklayer`; `mtu` and `tsize` are sizes of the kernel's table.
fn size_table(word: &Word, rest: &mut Rest<'_>) -> Result<Stab, Wrong> {
    let (mut overhead_bytes, mut mpu_bytes, mut atm) = (0, 0, false);
    while let Some("overhead" | "mpu" | "linklayer" | "mtu" | "tsize") = rest.peek() {
        let name = rest.next().expect("it was looked at");
        let value = rest.value(name)?;
        let number = value.text.strip_suffix('b').unwrap_or(&value.text).parse::<i32>();
        match (name.text.as_str(), number) {
            ("linklayer", _) => match value.text.as_str() {
                "atm" | "adsl" => atm = true,
                "ethernet" => atm = false,
                _ => return refused(value, "atm, adsl or ethernet"),
            },
            ("overhead", Ok(bytes)) if (-20..=65_535).contains(&bytes) => overhead_bytes = bytes,
            ("overhead", _) => return refused(value, "bytes from -20 to 65535"),
            ("mpu", Ok(bytes @ 0..=65_535)) => mpu_bytes = bytes.unsigned_abs(),
            ("mpu", _) => return refused(value, "bytes from 0 to 65535"),
            (_, Ok(1..)) => {}
            (_, _) => return refused(value, "a number of bytes, or of entries, above 0"),
        }
    }
    Ok(Stab { word: word.clone(), overhead_bytes, mpu_bytes, atm })
}

fn class(
    does: Verb,
    verb: &Word,
    mut rest: Rest<'_>,
    interfaces: &mut Interfaces,
) -> Result<(), Wrong> {
    let (mut dev, mut named, mut parent, mut kind) = (None, None, None, None);
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "dev" => dev = Some(rest.value(word)?),
            "classid" => named = Some(rest.value(word)?),
            "parent" => parent = Some(id(rest.value(word)?)?),
            "root" => parent = None,
            "estimator" | "est" => {
                return refused(word, "none of it: the simulator does not model it");
            }
            _ => {
                kind = Some(word);
                break;
            }
        }
    }
    let words = rest.all();
    let Some(dev) = dev else { return no_device(verb) };
    let Some(named) = named else { return refused(verb, "a class, such as \"classid 1:10\"") };
    let class_id = id(named)?;
    if class_id.minor == 0 {
        return refused(named, "a class such as 1:10; a handle alone is a discipline's");
    }
    let interface = device(dev, interfaces)?;
    if does == Verb::Delete {
        return interface.delete_class(class_id, named);
    }
    let Some(kind) = kind else {
        return refused(verb, "the name of a discipline with classes, such as htb");
    };
    let parent = parent.unwrap_or(Id { minor: 0, ..class_id });
    interface.put_class(does, ClassOf { id: class_id, parent, kind: kind.clone(), words }, named)
}
