//! One command: who it is for, and what it does.

use super::Wrong;
use super::filter;
use super::lines::Word;
use super::tree::{ClassOf, Id, Interfaces, Place, Standing, Verb};
use super::words::{Rest, device, handle, id, no_device, refused};

/// iproute2 takes any beginning of a word.
fn begins(word: &str, whole: &str) -> bool {
    !word.is_empty() && whole.starts_with(word)
}

/// Does what a command says; the answer is whether it is one of tc's.
pub(super) fn perform(words: &[Word], interfaces: &mut Interfaces) -> Result<bool, Wrong> {
    let prompt = |word: &Word| {
        let text = word.text.as_str();
        ["sudo", "doas", "$"].contains(&text) || text.contains('@') && text.ends_with(['#', '$'])
    };
    let begin = words.iter().take_while(|word| prompt(word)).count();
    let mut rest = Rest::of(&words[begin..]);
    let Some(program) = rest.next() else { return Ok(false) };
    let object = match program.text.rsplit('/').next() {
        Some("tc") => {
            while let Some(option) = rest.peek().filter(|word| word.starts_with('-')) {
                let word = rest.next().expect("it was looked at");
                if !["-s", "-d", "-p", "-statistics", "-details", "-f", "-force"].contains(&option)
                {
                    return refused(word, "no option of tc, or -s, -d, -p or -force");
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
        Some("qdisc" | "class" | "filter") => program,
        _ if harmless(words) => return Ok(false),
        _ => {
            let expected = "a command of tc: tc qdisc, tc class or tc filter (beside it only modprobe and ip link add or set up)";
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
        text if begins(text, "show") || begins(text, "list") || text == "lst" => return Ok(true),
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

/// Commands beside tc's that make no queue: they load modules, and make and raise interfaces.
fn harmless(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let texts = texts.strip_prefix(&["sudo"]).unwrap_or(&texts);
    match texts {
        ["modprobe" | "insmod", ..] | ["true" | ":"] | ["set", "-e" | "-x" | "-ex" | "-eu"] => true,
        ["ip", "link", "add", rest @ ..] => rest.ends_with(&["type", "ifb"]),
        ["ip", "link", "set", rest @ ..] => {
            matches!(rest, [_, "up"] | ["dev", _, "up"] | ["up", _] | ["up", "dev", _])
        }
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
    let mut ingress = None;
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
            "stab" | "estimator" | "est" | "ingress_block" | "egress_block" | "offload" => {
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
    let new = Standing { place, handle: named, kind: kind.clone(), words };
    interface.put(does, new, parent)
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
    let own = id(named)?;
    if own.minor == 0 {
        return refused(named, "a class such as 1:10; a handle alone is a discipline's");
    }
    let interface = device(dev, interfaces)?;
    if does == Verb::Delete {
        return interface.delete_class(own, named);
    }
    let Some(kind) = kind else {
        return refused(verb, "the name of a discipline with classes, such as htb");
    };
    let parent = parent.unwrap_or(Id { minor: 0, ..own });
    interface.put_class(does, ClassOf { id: own, parent, kind: kind.clone(), words }, named)
}
