//! The disciplines on an interface, resolved to one.

use super::legacy;
use super::lines::Word;
use super::shapes::{sized, upper_limit};
use super::tree::{ClassOf, Filter, Id, Interface, Interfaces, Place, Standing};
use super::{Imported, Wrong};
use crate::disciplines::fifo::PfifoSpec;
use crate::disciplines::htb::HtbSpec;
use crate::disciplines::{KINDS, QdiscSpec};
use crate::tc::wrong;
use dragstrip_units::{Problem, Report, suggest};

/// Disciplines of Linux; one that is registered by now is found before it is looked for here.
const UNMODELLED: [&str; 15] = [
    "pfifo_head_drop",
    "mq",
    "mqprio",
    "multiq",
    "hhf",
    "gred",
    "drr",
    "qfq",
    "plug",
    "etf",
    "taprio",
    "cbs",
    "dsmark",
    "atm",
    "blackhole",
];

/// Words that change nothing here: of which discipline, how many values follow, and why.
const NEUTRAL: [(&str, &str, usize, &str); 11] = [
    ("htb", "mtu", 1, "it is the size of a table that Linux has not used since 3.8"),
    ("htb", "quantum", 1, "it shares between classes, and one class has all packets"),
    ("htb", "prio", 1, "it shares between classes, and one class has all packets"),
    ("cake", "nat", 0, "no addresses are translated here"),
    ("cake", "fwmark", 1, "no firewall marks packets here"),
    ("fq", "buckets", 1, "flows have a queue of their own for any number of buckets"),
    ("fq", "timer_slack", 1, "timers are exact here"),
    ("fq", "defrate", 1, "Linux has not used it since 3.13"),
    ("fq", "horizon", 1, "no packet is sent that far ahead here"),
    ("fq", "horizon_drop", 0, "no packet is sent that far ahead here"),
    ("netem", "seed", 1, "a run has a seed of its own"),
];

/// Most htb within each other.
const DEPTH_MAX: usize = 4;

/// The queues of all interfaces.
pub(super) fn resolve(interfaces: &Interfaces) -> Result<Vec<Imported>, Wrong> {
    let current = interfaces.all.iter().map(legacy::current).collect::<Result<Vec<_>, _>>()?;
    let (all, of_legacy): (Vec<Interface>, Vec<Vec<String>>) = current.into_iter().unzip();
    let interfaces = &Interfaces { all, namespace: None };
    let mut found = Vec::new();
    let mut led_to: Vec<(&str, &str)> = Vec::new();
    for interface in &interfaces.all {
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
        let Some(through) = interfaces.all.iter().find(root) else {
            let expected =
                format!("an interface with a queue: tc qdisc add dev {} root ...", to.text);
            return refuse(to, expected);
        };
        if led_to.iter().any(|(name, _)| *name == to.text) {
            return refuse(to, "an interface of its own: two that share one are not modelled");
        }
        led_to.push((&through.name, &interface.name));
    }
    for (interface, mut notes) in interfaces.all.iter().zip(of_legacy) {
        let Some(root) = interface.at(Place::Root) else { continue };
        let into = led_to.iter().find(|(through, _)| *through == interface.name);
        let mut tree = Tree::of(interface, 0);
        let queue = match tree.discipline(root) {
            Ok(queue) => queue,
            Err(wrong) => {
                tree = Tree::of(interface, 0);
                tree.whole(root, wrong)?
            }
        };
        let Tree { mut lines, notes: of_tree, front, .. } = tree;
        notes.extend(of_tree);
        if let Some((_, outer)) = into {
            let outer = interfaces.all.iter().find(|interface| interface.name == *outer);
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
            front,
            notes,
        });
    }
    named_shortly(interfaces, &mut found);
    Ok(found)
}

/// Without their namespaces, where no two interfaces have the same name.
fn named_shortly(interfaces: &Interfaces, found: &mut [Imported]) {
    let short = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
    let names: Vec<String> = interfaces.all.iter().map(|one| short(&one.name)).collect();
    let unique = |name: &str| names.iter().filter(|other| *other == name).count() == 1;
    for name in found.iter_mut().flat_map(|one| one.through.iter_mut().chain([&mut one.device])) {
        if unique(&short(name)) {
            *name = short(name);
        }
    }
}

/// A policer of what comes in.
fn policed(interface: &Interface, filter: &Word, police: &[Word]) -> Result<Imported, Wrong> {
    let kind = Word { text: "police".to_owned(), line: filter.line };
    let queue = parsed(&kind, police.to_vec(), "")?;
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
        front: Vec::new(),
        notes: vec![note.to_owned()],
    })
}

pub(super) fn refuse<T>(word: &Word, expected: impl Into<String>) -> Result<T, Wrong> {
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
pub(super) struct Tree<'a> {
    pub(super) interface: &'a Interface,
    pub(super) lines: Vec<usize>,
    pub(super) notes: Vec<String>,
    /// Disciplines within disciplines.
    pub(super) depth: usize,
    /// Effects of netem on packets before the queue, as fields of a path.
    pub(super) front: Vec<(&'static str, String)>,
}

impl<'a> Tree<'a> {
    pub(super) fn of(interface: &'a Interface, depth: usize) -> Self {
        Self { interface, lines: Vec::new(), notes: Vec::new(), depth, front: Vec::new() }
    }

    pub(super) fn discipline(&mut self, standing: &Standing) -> Result<QdiscSpec, Wrong> {
        self.lines.push(standing.kind.line);
        self.lines.extend(standing.words.iter().map(|word| word.line));
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return refuse(&standing.kind, format!("at most {DEPTH_MAX} within each other"));
        }
        let below = |other: &&Standing| matches!(other.place, Place::Class(id) if Some(id.major) == standing.handle);
        let child = self.interface.disciplines.iter().find(below);
        let filtered = standing.handle.is_some_and(|major| {
            self.interface.filters.iter().any(|filter| filter.hangs_on(major))
        });
        let kind = &standing.kind;
        match (kind.text.as_str(), child, &standing.stab) {
            ("htb" | "hfsc", _, _) => return self.classes(standing),
            ("pfifo_fast", None, None) => return self.pfifo_fast(standing),
            ("prio", _, None) if child.is_some() || filtered => return self.band(standing),
            ("tbf", _, _) if !filtered && (child.is_some() || standing.stab.is_some()) => {
                return self.bucket(standing, child);
            }
            ("netem", Some(child), None) if !filtered => return self.behind(standing, child),
            ("cake", None, Some(stab)) => {
                let expected = "cake's own words, such as \"cake overhead 18 mpu 64 noatm\"";
                return refuse(&stab.word, expected);
            }
            (_, None, Some(stab)) => {
                let text = &kind.text;
                self.notes.push(format!(
                    "stab (line {}) is left out: {text} shapes nothing, it only counts more bytes",
                    stab.word.line
                ));
            }
            (text, Some(child), _) => {
                let expected = format!("nothing in {text}: disciplines in it are not modelled");
                return refuse(&child.kind, expected);
            }
            (_, None, None) => {}
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
        let mut words = self.without_neutral(kind, &standing.words)?;
        if let (None, Some(packets), "pfifo") =
            (words.first(), self.interface.txqueuelen, kind.text.as_str())
        {
            words.extend(
                ["limit".to_owned(), packets.to_string()]
                    .map(|text| Word { text, line: kind.line }),
            );
        }
        parsed(kind, words, "")
    }

    /// Without the words that change nothing here, which the notes name.
    pub(super) fn without_neutral(
        &mut self,
        kind: &Word,
        words: &[Word],
    ) -> Result<Vec<Word>, Wrong> {
        let mut kept = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let neutral =
                NEUTRAL.iter().find(|(of, text, ..)| *of == kind.text && *text == word.text);
            let Some(&(_, _, values, why)) = neutral else {
                kept.push(word.clone());
                continue;
            };
            let mut said = word.text.clone();
            for _ in 0..values {
                let value = rest.next();
                let read = |value: &Word| value.text.starts_with(|c: char| c.is_ascii_digit());
                let Some(value) = value.filter(|value| read(value)) else {
                    let text = value.map_or("nothing", |value| value.text.as_str());
                    let problem = wrong(format!("\"{} {text}\"", word.text), "a number");
                    return Err(Wrong { line: word.line, problem });
                };
                said = format!("{said} {}", value.text);
            }
            self.notes.push(format!("{said} (line {}) changes nothing: {why}", word.line));
        }
        Ok(kept)
    }

    /// Returns Linux's default queue of an interface: of its three bands, the one of packets without a priority.
    fn pfifo_fast(&mut self, standing: &Standing) -> Result<QdiscSpec, Wrong> {
        if let Some(word) = standing.words.first() {
            return refuse(word, "nothing more: pfifo_fast has no options");
        }
        self.notes.push(format!(
            "pfifo_fast (line {}) is read as a pfifo of txqueuelen packets: they all have one priority here",
            standing.kind.line
        ));
        Ok(self.pfifo())
    }

    /// The queue that Linux gives to a class.
    pub(super) fn pfifo(&self) -> QdiscSpec {
        let limit_packets = self.interface.txqueuelen;
        PfifoSpec { limit_packets: limit_packets.unwrap_or(PfifoSpec::default().limit_packets) }
            .into()
    }

    /// The filters of a discipline, in the order in which packets meet them.
    pub(super) fn filters(&mut self, of: &Standing) -> Result<Vec<&'a Filter>, Wrong> {
        let mut filters: Vec<_> = self.interface.filters.iter().collect();
        filters.retain(|filter| of.handle.is_some_and(|major| filter.hangs_on(major)));
        filters.sort_by_key(|filter| filter.priority);
        if let Some(wrong) = filters.iter().find_map(|filter| filter.selective.as_ref()) {
            return Err(wrong.clone());
        }
        self.lines.extend(filters.iter().map(|filter| filter.word.line));
        Ok(filters)
    }

    /// The class that all packets go to, with what is in it.
    fn classes(&mut self, htb: &Standing) -> Result<QdiscSpec, Wrong> {
        let default = self.default_class(htb)?;
        let filters = self.filters(htb)?;
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
            let destination =
                target.map_or_else(|| "no \"default\"".to_owned(), |id| format!("class {id}"));
            let expected = "a class that a line adds, as \"default\" or in a filter that takes every packet: \
                            htb sends what no class takes as fast as the line does";
            return Err(Wrong { line: why.line, problem: wrong(destination, expected) });
        };
        if let Some(inner) = classes.iter().find(|inner| inner.parent == class.id) {
            let expected = format!("a class without classes below it: {} is one of it", inner.id);
            return Err(Wrong {
                line: class.kind.line,
                problem: wrong(format!("class {}", class.id), expected),
            });
        }
        let child = self.interface.at(Place::Class(class.id));
        let leaf = match child {
            Some(child) => self.discipline(child)?,
            None => self.pfifo(),
        };
        let spec = if htb.kind.text == "hfsc" {
            self.limited(class, leaf)?
        } else {
            self.shaper(class, leaf)?
        };
        self.check_unused_classes(htb, class.id)?;
        Ok(sized(spec, htb.stab.as_ref())?.into())
    }

    /// The words of htb or hfsc themselves: the class of what no filter takes.
    pub(super) fn default_class(&mut self, htb: &Standing) -> Result<Option<u16>, Wrong> {
        let mut default = None;
        let mut words = htb.words.iter();
        while let Some(word) = words.next() {
            if !["default", "r2q", "direct_qlen"].contains(&word.text.as_str()) {
                return refuse(word, "default, r2q or direct_qlen");
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
                continue;
            }
            if value.text.parse::<u32>().is_err() {
                return refuse(value, "a whole number");
            }
            let why = if word.text == "r2q" {
                "it shares between classes, and one class has all packets"
            } else {
                "it is of packets that no class takes"
            };
            let option = format!("{} {} (line {})", word.text, value.text, word.line);
            self.notes.push(format!("{option} changes nothing: {why}"));
        }
        Ok(default)
    }

    /// A class in the words of the discipline, and what is in it.
    fn shaper(&mut self, class: &ClassOf, leaf: QdiscSpec) -> Result<HtbSpec, Wrong> {
        let words = self.without_neutral(&class.kind, &class.words)?;
        self.lines.push(class.kind.line);
        self.lines.extend(class.words.iter().map(|word| word.line));
        let leaf = format!("leaf {}", leaf.print());
        let QdiscSpec::Htb(htb) = parsed(&class.kind, words, &leaf)? else {
            return refuse(&class.kind, "htb");
        };
        if class.parent.minor != 0
            && (htb.ceil_bps.is_some_and(|ceil| ceil > htb.rate_bps)
                || htb.cburst_bytes > htb.burst_bytes)
        {
            let value = format!("class {} that may borrow from {}", class.id, class.parent);
            let expected = "a ceiling that is its rate: borrowing between classes is not modelled";
            return Err(Wrong { line: class.kind.line, problem: wrong(value, expected) });
        }
        Ok(htb)
    }

    /// Checks the classes that carry no traffic, which must be valid all the same.
    fn check_unused_classes(&mut self, htb: &Standing, target: Id) -> Result<(), Wrong> {
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
            if htb.kind.text == "hfsc" {
                let _ = upper_limit(&class.words)?;
            } else {
                let known = self.notes.len();
                let words = self.without_neutral(&class.kind, &class.words)?;
                self.notes.truncate(known);
                let _ = parsed(&class.kind, words, "")?;
            }
            if above.contains(&class.id) {
                self.lines.push(line);
                self.notes.push(format!(
                    "class {} (line {line}) only counts what {target} sends",
                    class.id
                ));
                continue;
            }
            if let Some(child) = self.interface.at(Place::Class(class.id)) {
                let _ = Tree::of(self.interface, self.depth).discipline(child)?;
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

/// A discipline in its words, checked.
pub(super) fn parsed(kind: &Word, words: Vec<Word>, leaf: &str) -> Result<QdiscSpec, Wrong> {
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
    let text = format!("{} {} {leaf}", kind.text, texts(&words));
    let spec = QdiscSpec::parse(&text)
        .map_err(|problem| Wrong { line: line_of(&problem, kind, &words), problem })?;
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
