//! The disciplines on the interfaces during the replay of commands.

use super::Wrong;
use super::lines::Word;
use crate::disciplines::KINDS;
use crate::disciplines::tree::has_added_classes;
use crate::tc::wrong;
use std::fmt::{self, Display};

/// A handle or class: `1:` has the minor number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) major: u16,
    pub(super) minor: u16,
}

impl Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            0 => write!(f, "{:x}:", self.major),
            minor => write!(f, "{:x}:{minor:x}", self.major),
        }
    }
}

/// Attachment point of a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    Class(Id),
}

/// A discipline on an interface.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) place: Place,
    /// Its major number; none: the kernel's choice, which nobody can refer to.
    pub(super) handle: Option<u16>,
    pub(super) kind: Word,
    /// Words after the kind.
    pub(super) words: Vec<Word>,
    /// Bytes that `stab` adds to each packet's length.
    pub(super) stab: Option<Stab>,
}

/// A size table: what a link adds to each packet, as a shaper counts it (tc-stab(8)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stab {
    pub(super) word: Word,
    pub(super) overhead_bytes: i32,
    pub(super) mpu_bytes: u32,
    pub(super) atm: bool,
}

/// A class.
#[derive(Clone, Debug)]
pub(super) struct ClassOf {
    pub(super) id: Id,
    pub(super) parent: Id,
    pub(super) kind: Word,
    pub(super) words: Vec<Word>,
}

/// A filter.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// The major number of the discipline that it hangs on; `ffff` is ingress.
    pub(super) major: u16,
    /// The minor number of the class that it hangs on; 0: the discipline itself.
    pub(super) minor: u16,
    /// Its handle, kind and options, for a tree.
    pub(super) words: Vec<Word>,
    /// Its protocol is another than IPv4's: no packet has it here.
    pub(super) foreign: bool,
    /// Reason for which it does not take every packet.
    pub(super) selective: Option<Wrong>,
    /// The lowest comes first.
    pub(super) priority: u32,
    /// The word that begins it.
    pub(super) word: Word,
    pub(super) class: Option<Id>,
    /// The interface that packets are led to.
    pub(super) redirect: Option<Word>,
    /// A policer's words, as the discipline takes them.
    pub(super) police: Option<Vec<Word>>,
}

impl Filter {
    pub(super) const fn hangs_on(&self, major: u16) -> bool {
        self.major == major
    }

    /// Leads to a class by its number.
    fn names(&self, class: Id) -> bool {
        self.words.windows(2).any(|pair| {
            ["flowid", "classid"].contains(&pair[0].text.as_str())
                && pair[1].text == class.to_string()
        })
    }
}

/// An interface.
#[derive(Clone, Debug, Default)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) disciplines: Vec<Standing>,
    pub(super) classes: Vec<ClassOf>,
    /// Line and kind: `ingress` or `clsact`.
    pub(super) ingress: Option<Word>,
    pub(super) filters: Vec<Filter>,
    /// Packets, if a command sets them.
    pub(super) txqueuelen: Option<u32>,
}

/// All of them, in the order in which they are named first.
#[derive(Clone, Debug, Default)]
pub(super) struct Interfaces {
    pub(super) all: Vec<Interface>,
    /// The network namespace of the command in hand.
    pub(super) namespace: Option<String>,
}

/// Effect of a command on a discipline that may exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Add,
    Change,
    Replace,
    Delete,
}

/// An interface's name with its namespace, which no name contains: a blank is in between.
pub(super) fn full(name: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("{name} in {namespace}"),
        None => name.to_owned(),
    }
}

impl Interfaces {
    pub(super) fn interface_mut(&mut self, name: &str) -> &mut Interface {
        let name = full(name, self.namespace.as_deref());
        let at =
            self.all.iter().position(|interface| interface.name == name).unwrap_or_else(|| {
                self.all.push(Interface { name, ..Interface::default() });
                self.all.len() - 1
            });
        &mut self.all[at]
    }
}

impl Interface {
    pub(super) fn at(&self, place: Place) -> Option<&Standing> {
        self.disciplines.iter().find(|standing| standing.place == place)
    }

    pub(super) fn of_handle(&self, major: u16) -> Option<&Standing> {
        self.disciplines.iter().find(|standing| standing.handle == Some(major))
    }

    /// Takes a discipline away, with all that hangs on it.
    pub(super) fn remove(&mut self, place: Place) {
        let Some(at) = self.disciplines.iter().position(|standing| standing.place == place) else {
            return;
        };
        if let Some(major) = self.disciplines.remove(at).handle {
            self.remove_below(major);
        }
    }

    fn remove_below(&mut self, major: u16) {
        self.classes.retain(|class| class.id.major != major);
        self.filters.retain(|filter| !filter.hangs_on(major));
        let below =
            |standing: &Standing| matches!(standing.place, Place::Class(id) if id.major == major);
        while let Some(at) = self.disciplines.iter().position(below) {
            if let Some(major) = self.disciplines.remove(at).handle {
                self.remove_below(major);
            }
        }
    }

    /// `tc qdisc VERB` of a discipline; `parent` is the word that names its place.
    pub(super) fn put(&mut self, verb: Verb, new: Standing, parent: &Word) -> Result<(), Wrong> {
        let refuse = |value: String, expected: String| {
            Err(Wrong { line: parent.line, problem: wrong(value, expected) })
        };
        if let Place::Class(id) = new.place {
            let Some(above) = self.of_handle(id.major) else {
                let expected = format!(
                    "a class of a discipline that a line before adds with \"handle {:x}:\"",
                    id.major
                );
                return refuse(format!("\"parent {}\"", parent.text), expected);
            };
            let has_classes = has_added_classes(&above.kind.text) || above.kind.text == "cbq";
            if has_classes && !self.classes.iter().any(|class| class.id == id) {
                let expected = format!(
                    "a class that a line before adds: tc class add dev {} ... classid {id}",
                    self.name
                );
                return refuse(format!("\"parent {}\"", parent.text), expected);
            }
        }
        if let Some(major) = new.handle
            && self.of_handle(major).is_some_and(|other| other.place != new.place)
        {
            return refuse(
                format!("\"handle {major:x}:\""),
                "a handle that nothing else has".to_owned(),
            );
        }
        let Some(old) = self.disciplines.iter_mut().find(|old| old.place == new.place) else {
            if verb == Verb::Change {
                let expected = "\"add\": nothing stands there that could be changed".to_owned();
                return refuse("\"change\"".to_owned(), expected);
            }
            self.disciplines.push(new);
            return Ok(());
        };
        let same =
            old.kind.text == new.kind.text && (new.handle.is_none() || new.handle == old.handle);
        match verb {
            Verb::Add => {
                let expected = format!(
                    "\"replace\": line {} put {:?} there already",
                    old.kind.line, old.kind.text
                );
                refuse("\"add\"".to_owned(), expected)
            }
            Verb::Change if !same => {
                let expected =
                    format!("{:?}, which line {} put there", old.kind.text, old.kind.line);
                refuse(format!("\"change\" to {:?}", new.kind.text), expected)
            }
            // The kernel's replace of the same kind is a change.
            Verb::Change | Verb::Replace if same => old.change(new),
            Verb::Change | Verb::Replace | Verb::Delete => {
                let place = new.place;
                self.remove(place);
                self.disciplines.push(new);
                Ok(())
            }
        }
    }

    /// `tc class VERB`.
    pub(super) fn put_class(&mut self, verb: Verb, new: ClassOf, id: &Word) -> Result<(), Wrong> {
        let refuse = |value: &str, expected: String| {
            Err(Wrong { line: id.line, problem: wrong(format!("{value:?}"), expected) })
        };
        let Some(owner) = self.of_handle(new.id.major) else {
            let expected = format!(
                "a class of a discipline that a line before adds with \"handle {:x}:\"",
                new.id.major
            );
            return refuse(&id.text, expected);
        };
        if owner.kind.text != new.kind.text {
            let expected =
                format!("{:?}, which line {} put there", owner.kind.text, owner.kind.line);
            return refuse(&new.kind.text, expected);
        }
        let known =
            new.parent.minor == 0 || self.classes.iter().any(|class| class.id == new.parent);
        if new.parent.major != new.id.major || !known || new.parent == new.id {
            let expected =
                format!("\"{:x}:\" or a class of it that a line before adds", new.id.major);
            return refuse(&format!("parent {}", new.parent), expected);
        }
        let old = self.classes.iter_mut().find(|class| class.id == new.id);
        match (verb, old) {
            (Verb::Add, Some(old)) => {
                let expected =
                    format!("a class that is not there yet: line {} adds it", old.kind.line);
                refuse(&id.text, expected)
            }
            (Verb::Change, None) => refuse(&id.text, "a class that a line before adds".to_owned()),
            (_, Some(old)) => {
                let parent = old.parent;
                *old = ClassOf { parent, ..new };
                Ok(())
            }
            (_, None) => {
                self.classes.push(new);
                Ok(())
            }
        }
    }

    /// `tc class del`: not while something hangs on it.
    pub(super) fn delete_class(&mut self, id: Id, word: &Word) -> Result<(), Wrong> {
        let refuse = |expected: &str| {
            Err(Wrong { line: word.line, problem: wrong(format!("{:?}", word.text), expected) })
        };
        if !self.classes.iter().any(|class| class.id == id) {
            return refuse("a class that a line before adds");
        }
        let led = self.filters.iter().any(|filter| filter.class == Some(id) || filter.names(id));
        if led || self.classes.iter().any(|class| class.parent == id) {
            return refuse("a class without classes below it and without filters that lead to it");
        }
        self.classes.retain(|class| class.id != id);
        self.remove(Place::Class(id));
        Ok(())
    }
}

impl Standing {
    fn change(&mut self, new: Self) -> Result<(), Wrong> {
        let refuse = |expected: &str| {
            let problem = wrong(format!("a change of {:?}", new.kind.text), expected);
            Err(Wrong { line: new.kind.line, problem })
        };
        match new.kind.text.as_str() {
            "sfq" => {
                return refuse("\"del\" and \"add\": what the kernel's sfq keeps is not modelled");
            }
            // Correlations, reordering, corruption and rates stay unless they are named (netem_change).
            "netem" if keeps(&self.words) => {
                return refuse("\"del\" and \"add\": what this netem keeps is not modelled");
            }
            kind if KINDS.iter().any(|known| known.name == kind && known.keeps) => {
                self.words.extend(new.words)
            }
            _ => self.words = new.words,
        }
        self.kind = new.kind;
        self.stab = new.stab.or(self.stab.take());
        Ok(())
    }
}

/// True when a netem has settings that a change keeps unless it names them.
fn keeps(words: &[Word]) -> bool {
    let named = |word: &Word| {
        ["reorder", "corrupt", "rate", "slot", "distribution"].contains(&word.text.as_str())
    };
    let number = |word: &Word| word.text.starts_with(|c: char| c.is_ascii_digit());
    let correlated = |pair: &[Word]| number(&pair[0]) && pair[1].text.ends_with('%');
    words.iter().any(named) || words.windows(2).any(correlated)
}
