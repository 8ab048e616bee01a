//! What stands on an interface, as one discipline.

use super::lines::Word;
use super::tree::{ClassOf, Id, Interface, Interfaces, Place, Standing};
use super::{Imported, Wrong};
use crate::disciplines::{KINDS, QdiscSpec};
use crate::tc::wrong;
use dragstrip_units::{Problem, Report, suggest};

/// Disciplines of Linux without a model.
const UNMODELLED: [&str; 19] = [
    "pfifo_fast",
    "pfifo_head_drop",
    "mq",
    "mqprio",
    "multiq",
    "hhf",
    "gred",
    "drr",
    "hfsc",
    "qfq",
    "skbprio",
    "plug",
    "etf",
    "taprio",
    "cbs",
    "cbq",
    "dsmark",
    "atm",
    "blackhole",
];

/// Most htb within each other.
const DEPTH_MAX: usize = 4;

/// The queues of all interfaces.
pub(super) fn resolve(interfaces: &Interfaces) -> Result<Vec<Imported>, Wrong> {
    let mut found = Vec::new();
    let mut led_to: Vec<(&str, &str)> = Vec::new();
    for interface in &interfaces.0 {
        let mut filters = interface.filters.iter().filter(|filter| filter.hangs_on(0xffff));
        let Some(filter) = filters.next() else { continue };
        if let Some(second) = filters.next() {
            let expected = "one filter at ingress: the simulator does not model several";
            return refuse(&second.word, expected);
        }
        if let Some(police) = &filter.police {
            if let Some(to) = &filter.redirect {
                return refuse(
                    to,
                    "one action: a policer in front of another interface is not modelled",
                );
            }
            found.push(policed(interface, &filter.word, police)?);
            continue;
        }
        let Some(to) = &filter.redirect else {
            return refuse(&filter.word, "an action: police, or mirred egress redirect dev X");
        };
        let root = |other: &&Interface| other.name == to.text && other.at(Place::Root).is_some();
        let Some(through) = interfaces.0.iter().find(root) else {
            let expected =
                format!("an interface with a queue: tc qdisc add dev {} root ...", to.text);
            return refuse(to, expected);
        };
        if led_to.iter().any(|(name, _)| *name == to.text) {
            return refuse(to, "an interface of its own: two that share one are not modelled");
        }
        led_to.push((&through.name, &interface.name));
    }
    for interface in &interfaces.0 {
        let Some(root) = interface.at(Place::Root) else { continue };
        let into = led_to.iter().find(|(through, _)| *through == interface.name);
        let mut tree = Tree { interface, lines: Vec::new(), notes: Vec::new(), depth: 0 };
        let queue = tree.discipline(root)?;
        let Tree { mut lines, notes, .. } = tree;
        if let Some((_, outer)) = into {
            let outer = interfaces.0.iter().find(|interface| interface.name == *outer);
            let outer = outer.into_iter().flat_map(|outer| {
                let filters = outer.filters.iter().filter(|filter| filter.hangs_on(0xffff));
                filters
                    .map(|filter| filter.word.line)
                    .chain(outer.ingress.as_ref().map(|word| word.line))
            });
            lines.extend(outer);
        }
        lines.sort_unstable();
        lines.dedup();
        found.push(Imported {
            device: into.map_or(interface.name.as_str(), |(_, outer)| *outer).to_owned(),
            ingress: into.is_some(),
            through: into.map(|_| interface.name.clone()),
            lines,
            queue,
            notes,
        });
    }
    Ok(found)
}

/// A policer of what comes in.
fn policed(interface: &Interface, filter: &Word, police: &[Word]) -> Result<Imported, Wrong> {
    let kind = Word { text: "police".to_owned(), line: filter.line };
    let queue = parsed(&kind, police, "")?;
    let mut lines: Vec<usize> =
        police.iter().chain(&interface.ingress).map(|word| word.line).collect();
    lines.push(filter.line);
    lines.sort_unstable();
    lines.dedup();
    let note = "the kernel counts what comes in without its link header, 14 bytes a packet; a queue here counts them";
    Ok(Imported {
        device: interface.name.clone(),
        ingress: true,
        through: None,
        lines,
        queue,
        notes: vec![note.to_owned()],
    })
}

fn refuse<T>(word: &Word, expected: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { line: word.line, problem: wrong(format!("{:?}", word.text), expected) })
}

fn texts(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The line of the word that a problem is about.
fn line_of(problem: &Problem, kind: &Word, words: &[Word]) -> usize {
    let about = |word: &&Word| {
        problem
            .value
            .strip_prefix('"')
            .and_then(|value| value.strip_prefix(word.text.as_str()))
            .is_some_and(|behind| behind.starts_with(['"', ' ']))
    };
    words.iter().find(about).map_or(kind.line, |word| word.line)
}

/// An interface while it is resolved.
struct Tree<'a> {
    interface: &'a Interface,
    lines: Vec<usize>,
    notes: Vec<String>,
    /// Shapers within shapers.
    depth: usize,
}

impl Tree<'_> {
    fn discipline(&mut self, standing: &Standing) -> Result<QdiscSpec, Wrong> {
        self.lines.push(standing.kind.line);
        self.lines.extend(standing.words.iter().map(|word| word.line));
        if standing.kind.text == "htb" {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return refuse(&standing.kind, format!("at most {DEPTH_MAX} within each other"));
            }
            return self.htb(standing);
        }
        let below = |other: &&Standing| matches!(other.place, Place::Class(id) if Some(id.major) == standing.handle);
        if let Some(child) = self.interface.disciplines.iter().find(below) {
            let kind = &standing.kind.text;
            return refuse(
                &child.kind,
                format!("nothing in {kind}: disciplines in it are not modelled"),
            );
        }
        let mut filters = self.interface.filters.iter();
        if let Some(filter) =
            filters.find(|filter| standing.handle.is_some_and(|major| filter.hangs_on(major)))
        {
            return refuse(
                &filter.word,
                format!("no filter of {}: they are not modelled", standing.kind.text),
            );
        }
        parsed(&standing.kind, &standing.words, "")
    }

    /// The class that all packets go to, with what is in it.
    fn htb(&mut self, htb: &Standing) -> Result<QdiscSpec, Wrong> {
        let default = default_class(htb)?;
        let mut filters: Vec<_> = self.interface.filters.iter().collect();
        filters.retain(|filter| htb.handle.is_some_and(|major| filter.hangs_on(major)));
        filters.sort_by_key(|filter| filter.priority);
        if let Some(filter) = filters.iter().find(|filter| filter.police.is_some()) {
            return refuse(&filter.word, "no police: within a discipline it is not modelled");
        }
        self.lines.extend(filters.iter().map(|filter| filter.word.line));
        let (target, why) = match filters.first() {
            Some(filter) => (filter.class, &filter.word),
            None => {
                let minor = default.filter(|&minor| minor > 0);
                (minor.and_then(|minor| Some(Id { major: htb.handle?, minor })), &htb.kind)
            }
        };
        let classes = &self.interface.classes;
        let class = classes.iter().find(|class| Some(class.id) == target);
        let Some(class) = class.filter(|class| Some(class.id.major) == htb.handle) else {
            let said =
                target.map_or_else(|| "no \"default\"".to_owned(), |id| format!("class {id}"));
            let expected = "a class that a line adds, as \"default\" or in a filter that takes every packet: \
                            htb sends what no class takes as fast as the line does";
            return Err(Wrong { line: why.line, problem: wrong(said, expected) });
        };
        if let Some(inner) = classes.iter().find(|inner| inner.parent == class.id) {
            let expected = format!("a class without classes below it: {} is one of it", inner.id);
            return Err(Wrong {
                line: class.kind.line,
                problem: wrong(format!("class {}", class.id), expected),
            });
        }
        let child = self.interface.at(Place::Class(class.id));
        let leaf = child.map(|child| self.discipline(child)).transpose()?;
        let leaf = leaf.map(|leaf| format!("leaf {}", leaf.print())).unwrap_or_default();
        let spec = self.shaper(class, &leaf)?;
        self.others(htb, class.id)?;
        Ok(spec)
    }

    /// A class in the words of the discipline, and what is in it.
    fn shaper(&mut self, class: &ClassOf, leaf: &str) -> Result<QdiscSpec, Wrong> {
        let words = alone(&class.words)?;
        self.lines.push(class.kind.line);
        self.lines.extend(class.words.iter().map(|word| word.line));
        let spec = parsed(&class.kind, &words, leaf)?;
        if let QdiscSpec::Htb(htb) = &spec
            && class.parent.minor != 0
            && (htb.ceil_bps.is_some_and(|ceil| ceil > htb.rate_bps)
                || htb.cburst_bytes > htb.burst_bytes)
        {
            let value = format!("class {} that may borrow from {}", class.id, class.parent);
            let expected = "a ceiling that is its rate: borrowing between classes is not modelled";
            return Err(Wrong { line: class.kind.line, problem: wrong(value, expected) });
        }
        Ok(spec)
    }

    /// What carries nothing must be right all the same.
    fn others(&mut self, htb: &Standing, target: Id) -> Result<(), Wrong> {
        let mut parent = target;
        let mut above = Vec::new();
        while let Some(class) = self.interface.classes.iter().find(|class| class.id == parent) {
            above.push(class.id);
            parent = class.parent;
        }
        for class in
            self.interface.classes.iter().filter(|class| Some(class.id.major) == htb.handle)
        {
            if class.id == target {
                continue;
            }
            let line = class.kind.line;
            let _ = parsed(&class.kind, &alone(&class.words)?, "")?;
            if above.contains(&class.id) {
                self.lines.push(line);
                self.notes.push(format!(
                    "class {} (line {line}) only counts what {target} sends",
                    class.id
                ));
                continue;
            }
            if let Some(child) = self.interface.at(Place::Class(class.id)) {
                let mut unused = Tree {
                    interface: self.interface,
                    lines: Vec::new(),
                    notes: Vec::new(),
                    depth: self.depth,
                };
                let _ = unused.discipline(child)?;
            }
            let note = format!(
                "class {} (line {line}) carries nothing: all packets go to {target}",
                class.id
            );
            self.notes.push(note);
        }
        Ok(())
    }
}

/// A class's words without those that say how it shares with others: `prio`, `quantum`.
fn alone(words: &[Word]) -> Result<Vec<Word>, Wrong> {
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if !["prio", "quantum"].contains(&word.text.as_str()) {
            kept.push(word.clone());
            continue;
        }
        let number = rest.next();
        let read =
            number.and_then(|number| dragstrip_units::tc::text::parse_size(&number.text).ok());
        if read.is_none() {
            let said = number.map_or("nothing", |number| number.text.as_str());
            let problem = wrong(format!("\"{} {said}\"", word.text), "a number");
            return Err(Wrong { line: word.line, problem });
        }
    }
    Ok(kept)
}

/// htb's own words: the class of what no filter takes.
fn default_class(htb: &Standing) -> Result<Option<u16>, Wrong> {
    let mut default = None;
    let mut words = htb.words.iter();
    while let Some(word) = words.next() {
        let known = ["default", "r2q", "direct_qlen"].contains(&word.text.as_str());
        if !known {
            return refuse(word, "default or r2q");
        }
        if word.text == "direct_qlen" {
            return refuse(word, "default or r2q: the simulator does not model it");
        }
        let Some(value) = words.next() else {
            let problem = wrong(format!("{:?} at the end", word.text), "a value after it");
            return Err(Wrong { line: word.line, problem });
        };
        if word.text == "default" {
            let hex = value.text.strip_prefix("0x").unwrap_or(&value.text);
            match u16::from_str_radix(hex, 16) {
                Ok(minor) => default = Some(minor),
                Err(_) => return refuse(value, "the minor number of a class, hexadecimal"),
            }
        } else if value.text.parse::<u32>().is_err() {
            return refuse(value, "a whole number");
        }
    }
    Ok(default)
}

/// A discipline in its words, checked.
fn parsed(kind: &Word, words: &[Word], leaf: &str) -> Result<QdiscSpec, Wrong> {
    let names = || KINDS.iter().map(|kind| kind.name);
    if !names().any(|name| name == kind.text) {
        let list = names().collect::<Vec<_>>().join(", ");
        let expected = if UNMODELLED.contains(&kind.text.as_str()) {
            format!("one that the simulator models: {list}")
        } else {
            suggest(&kind.text, names(), &format!("a queue discipline: {list}"))
        };
        return refuse(kind, expected);
    }
    // Words of ours, not of tc.
    if let Some(word) = words.iter().find(|word| ["leaf", ":"].contains(&word.text.as_str())) {
        return refuse(
            word,
            "tc's words: a discipline in a class has a command of its own, \"tc qdisc add ... parent\"",
        );
    }
    let text = format!("{} {} {leaf}", kind.text, texts(words));
    let spec = QdiscSpec::parse(&text)
        .map_err(|problem| Wrong { line: line_of(&problem, kind, words), problem })?;
    let mut report = Report::default();
    spec.check("", &mut report);
    match report.problems.into_iter().next() {
        None => Ok(spec),
        Some(problem) => {
            let value = format!("{} {}", problem.field.trim_start_matches('.'), problem.value);
            Err(Wrong { line: kind.line, problem: wrong(value, problem.expected) })
        }
    }
}
