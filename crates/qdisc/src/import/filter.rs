//! `tc filter`: what leads packets to a class, to another interface or to a policer.
//!
//! One that takes every packet is understood here; of any other the words are kept for a tree, which reads them.

use super::Wrong;
use super::lines::Word;
use super::tree::{Filter, Id, Interfaces, Verb, full};
use super::words::{Rest, device, id, no_device, refused};
use crate::tc::wrong;

/// Actions of a filter.
#[derive(Default)]
struct Does {
    class: Option<Id>,
    redirect: Option<Word>,
    police: Option<Vec<Word>>,
}

/// Priority that the kernel gives to the first filter without a number (`tcf_auto_prio`); each further one gets the
/// least so far, less one.
const PRIORITY: u32 = 0xc000;

pub(super) fn perform(
    does: Verb,
    verb: &Word,
    mut rest: Rest<'_>,
    interfaces: &mut Interfaces,
) -> Result<(), Wrong> {
    let (mut dev, mut hangs, mut priority, mut kind) = (None, None, None, None);
    let (mut minor, mut foreign, mut handle) = (0, false, None);
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "dev" => dev = Some(rest.value(word)?),
            "parent" => {
                let word = rest.value(word)?;
                let at = id(word)?;
                if at.major == 0xffff && ![0, 0xfff2].contains(&at.minor) {
                    let expected = "a discipline or a class of it, such as 1: (filters of clsact's egress are not modelled)";
                    return refused(word, expected);
                }
                minor = if at.major == 0xffff { 0 } else { at.minor };
                hangs = Some((at.major, word));
            }
            "root" => hangs = Some((0, word)),
            "ingress" => hangs = Some((0xffff, word)),
            "protocol" => {
                foreign = !["ip", "all"].contains(&rest.value(word)?.text.as_str());
            }
            "handle" => handle = Some(rest.value(word)?),
            "prio" | "pref" | "priority" => {
                let word = rest.value(word)?;
                match word.text.parse::<u32>() {
                    Ok(number) if (1..=0xffff).contains(&number) => priority = Some(number),
                    Ok(_) | Err(_) => return refused(word, "a number from 1 to 65535"),
                }
            }
            _ => {
                kind = Some(word);
                break;
            }
        }
    }
    let Some(dev) = dev else { return no_device(verb) };
    let namespace = interfaces.namespace.clone();
    let interface = device(dev, interfaces)?;
    let (major, parent) = match hangs {
        Some((0, word)) => {
            let root = interface.at(super::tree::Place::Root);
            match root.and_then(|root| root.handle) {
                Some(major) => (major, word),
                None => return refused(word, "a root with a handle, which a line before adds"),
            }
        }
        Some(given) => given,
        None => return refused(verb, "a discipline, such as \"parent 1:\" or \"ingress\""),
    };
    match does {
        Verb::Delete => {
            // With a handle it is that filter alone.
            let named = |filter: &Filter| match (handle, filter.words.as_slice()) {
                (Some(handle), [word, number, ..]) => {
                    word.text == "handle" && number.text == handle.text
                }
                (Some(_), _) => false,
                (None, _) => true,
            };
            interface.filters.retain(|filter| {
                filter.major != major
                    || priority.is_some_and(|number| number != filter.priority)
                    || !named(filter)
            });
            return Ok(());
        }
        // Where none stands it adds one (tc_new_tfilter with NLM_F_CREATE).
        Verb::Replace
            if !interface.filters.iter().any(|filter| {
                filter.major == major && priority.is_none_or(|number| number == filter.priority)
            }) => {}
        Verb::Change | Verb::Replace => {
            return refused(
                verb,
                "\"del\" and \"add\": what a filter's change keeps is not modelled",
            );
        }
        Verb::Add => {}
    }
    let parent_exists = if major == 0xffff {
        interface.ingress.is_some()
    } else {
        interface.of_handle(major).is_some()
    };
    if !parent_exists {
        return refused(parent, "a discipline that a line before adds");
    }
    let Some(kind) = kind else {
        return refused(verb, "a filter, such as \"matchall\"");
    };
    let tail = rest.all();
    let read = options(kind, &mut Rest::of(&tail), major);
    let (Does { class, redirect, police }, mut selective) = match read {
        Ok(does) => (does, None),
        // At ingress, and of what no discipline sees, nothing else is modelled.
        Err(wrong) if major == 0xffff => return Err(wrong),
        Err(wrong) => (Does::default(), Some(wrong)),
    };
    if selective.is_none() && (foreign || minor != 0 || handle.is_some() || police.is_some()) {
        let expected = "a filter of the discipline itself that takes every packet";
        selective = refused::<()>(kind, expected).err();
    }
    if foreign && major == 0xffff {
        return Ok(()); // what flows here is IPv4
    }
    let of_handle =
        handle.map(|handle| [Word { text: "handle".to_owned(), ..handle.clone() }, handle.clone()]);
    let words = of_handle.into_iter().flatten().chain([kind.clone()]).chain(tail).collect();
    let redirect = redirect.map(|to| Word { text: full(&to.text, namespace.as_deref()), ..to });
    let least = || interface.filters.iter().filter(|filter| filter.major == major);
    let automatic =
        || least().map(|filter| filter.priority.saturating_sub(1)).min().unwrap_or(PRIORITY);
    let priority = priority.unwrap_or_else(automatic);
    let word = kind.clone();
    interface.filters.push(Filter {
        major,
        minor,
        words,
        foreign,
        selective,
        priority,
        word,
        class,
        redirect,
        police,
    });
    Ok(())
}

/// Reads the options after `u32` or `matchall`: the class, or the interface.
fn options(kind: &Word, rest: &mut Rest<'_>, major: u16) -> Result<Does, Wrong> {
    if !["u32", "matchall"].contains(&kind.text.as_str()) {
        return refused(kind, "u32 or matchall, which take every packet");
    }
    let mut does = Does::default();
    let mut matches = kind.text == "matchall";
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "match" if kind.text == "u32" => {
                everything(word, rest)?;
                matches = true;
            }
            "flowid" | "classid" => {
                let word = rest.value(word)?;
                // At ingress there are no classes: what stands here says nothing.
                if major != 0xffff {
                    does.class = Some(id(word)?);
                }
            }
            "action" if rest.peek() == Some("mirred") => {
                does.redirect = Some(mirred(word, rest)?);
            }
            "action" if rest.peek() == Some("police") => {
                let _ = rest.next();
                does.police = Some(policer(word, rest)?);
            }
            "police" => does.police = Some(policer(word, rest)?),
            "action" => {
                let word = rest.value(word)?;
                let expected = "police, or mirred egress redirect dev X: the simulator does not model this action";
                return refused(word, expected);
            }
            _ => {
                return refused(
                    word,
                    format!(
                        "match, flowid or action: the simulator does not model {:?} of {}",
                        word.text, kind.text
                    ),
                );
            }
        }
    }
    if !matches {
        return refused(kind, "a match, such as \"match u32 0 0\"");
    }
    if does.class.is_none() && does.redirect.is_none() && does.police.is_none() {
        let expected = "\"flowid\" with a class, or an action: police, or at ingress mirred egress redirect dev X";
        return refused(kind, expected);
    }
    Ok(does)
}

/// A match that every packet fulfils; any other is refused.
fn everything(of: &Word, rest: &mut Rest<'_>) -> Result<(), Wrong> {
    let what = rest.value(of)?;
    let zero = |word: &Word| {
        let text = word.text.trim_start_matches("0x");
        !text.is_empty() && text.chars().all(|c| c == '0')
    };
    let expected = "a match that every packet fulfils, such as \"match u32 0 0\"";
    match what.text.as_str() {
        "u32" | "u16" | "u8" => {
            let _ = rest.value(what)?;
            let mask = rest.value(what)?;
            if !zero(mask) {
                return refused(mask, expected);
            }
            if rest.takes("at") {
                let _ = rest.value(what)?;
            }
        }
        "ip" => {
            let field = rest.value(what)?;
            let value = rest.value(field)?;
            match field.text.as_str() {
                "src" | "dst" => {
                    let whole = ["0/0", "0.0.0.0/0", "any", "all", "default"];
                    if !whole.contains(&value.text.as_str()) {
                        return refused(value, expected);
                    }
                }
                _ => {
                    let mask = rest.value(field)?;
                    if !zero(mask) {
                        return refused(field, expected);
                    }
                }
            }
        }
        _ => return refused(what, expected),
    }
    Ok(())
}

/// `action mirred egress redirect dev X`.
fn mirred(action: &Word, rest: &mut Rest<'_>) -> Result<Word, Wrong> {
    let mut last = action;
    for wanted in ["mirred", "egress", "redirect", "dev"] {
        last = rest.value(last)?;
        if last.text != wanted {
            let expected = format!("{wanted:?}: action mirred egress redirect dev X");
            return Err(Wrong {
                line: last.line,
                problem: wrong(format!("{:?}", last.text), expected),
            });
        }
    }
    Ok(rest.value(last)?.clone())
}

/// The words of `police`, which must drop what exceeds.
fn policer(police: &Word, rest: &mut Rest<'_>) -> Result<Vec<Word>, Wrong> {
    let (mut kept, mut drops) = (Vec::new(), false);
    while let Some(next) = rest.peek() {
        if ["flowid", "classid", "action"].contains(&next) {
            break;
        }
        let Some(word) = rest.next() else { break };
        match word.text.as_str() {
            "drop" => drops = true,
            "conform-exceed" => {
                let value = rest.value(word)?;
                if !["drop", "drop/ok", "drop/pass"].contains(&value.text.as_str()) {
                    return refused(value, "drop: what exceeds and is not dropped is not modelled");
                }
                drops = true;
            }
            "leaf" => return refused(word, "tc's words of police"),
            _ => kept.push(word.clone()),
        }
    }
    if !drops {
        let expected = "\"drop\" behind it: without it the kernel lets pass what exceeds";
        return refused(police, expected);
    }
    Ok(kept)
}
