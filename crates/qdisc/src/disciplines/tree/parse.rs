//! A tree in tc's commands, read: `tc qdisc add`, `tc class add` and `tc filter add`, each beginning with `tc`.

use super::class_words::{drr_class, hfsc_class, htb_class};
use super::filter_content::FilterWords;
use super::filter_words;
use super::types::{ClassParameters, ClassSpec, DIRECT_PACKETS, SchedulerSpec, TreeSpec};
use super::u32_tables;
use super::words::{Id, id};
use crate::disciplines::QdiscSpec;
use crate::disciplines::fifo::PfifoSpec;
use crate::tc::{Words, unknown, unreadable, wrong};
use dragstrip_units::{ParseError, Problem};

/// Rates per quantum (`r2q`).
const R2Q: u64 = 10;

/// A discipline as a command adds it.
struct Standing<'a> {
    /// Its class; none: the root.
    parent: Option<Id>,
    handle: Option<u16>,
    kind: &'a str,
    words: Vec<&'a str>,
    /// The command.
    command: String,
}

/// A class as a command adds it.
struct ClassWords<'a> {
    id: Id,
    parent: Id,
    kind: &'a str,
    words: Vec<&'a str>,
    command: String,
}

/// Everything that the commands add.
#[derive(Default)]
struct Commands<'a> {
    disciplines: Vec<Standing<'a>>,
    classes: Vec<ClassWords<'a>>,
    filters: Vec<FilterWords>,
}

/// A text without comments and without ends of lines that go on.
pub(crate) fn plain(text: &str) -> String {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(|line| match line.find('#') {
        Some(at) if at == 0 || line[..at].ends_with(char::is_whitespace) => &line[..at],
        Some(_) | None => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The discipline that commands add, without the first `tc`: a tree, or a discipline alone.
///
/// # Errors
/// The word that is wrong, and its command.
pub(super) fn tree(words: &[&str]) -> Result<QdiscSpec, Problem> {
    let mut commands = Commands::default();
    let mut texts: Vec<Vec<&str>> = vec![Vec::new()];
    for &word in words {
        let (text, ends) = match word.strip_suffix(';') {
            Some(text) => (text, true),
            None => (word, false),
        };
        if text == "tc" {
            texts.push(Vec::new());
        } else if !text.is_empty() {
            texts.last_mut().expect("it begins with one").push(text);
        }
        if ends {
            texts.push(Vec::new());
        }
    }
    for command in texts.iter().filter(|command| !command.is_empty()) {
        commands.add(command).map_err(|problem| within(problem, command))?;
    }
    commands.root()
}

/// A problem names the command that it is in.
fn within(problem: Problem, command: &[&str]) -> Problem {
    let value = format!("{} in \"tc {}\"", problem.value, command.join(" "));
    Problem { value, ..problem }
}

impl<'a> Commands<'a> {
    fn add(&mut self, command: &[&'a str]) -> Result<(), Problem> {
        let text = command.join(" ");
        let mut words = Words::new(&text);
        let object = words.next().unwrap_or_default();
        let verb = words.next().unwrap_or_default();
        if !["qdisc", "class", "filter"].contains(&object) {
            return Err(unknown(object, &["qdisc", "class", "filter"], &[]));
        }
        if !["add", "replace"].contains(&verb) {
            return Err(wrong(format!("{verb:?}"), "add: a tree is what commands add, not change"));
        }
        let rest: Vec<&'a str> = command.iter().skip(2).copied().collect();
        match object {
            "qdisc" => self.discipline(&rest, text.clone()),
            "class" => self.class(&rest, text.clone()),
            _ => {
                let read = filter_words::read(&rest, self.root_handle(), &self.filters)?;
                self.filters.extend(read);
                Ok(())
            }
        }
    }

    fn root_handle(&self) -> Option<u16> {
        self.disciplines.iter().find(|one| one.parent.is_none()).and_then(|root| root.handle)
    }

    fn discipline(&mut self, command: &[&'a str], text: String) -> Result<(), Problem> {
        let (mut parent, mut handle, mut has_place) = (None, None, false);
        let mut at = 0;
        let mut kind = None;
        while let Some(&word) = command.get(at) {
            let value = || value_after(command, at);
            match word {
                "dev" => {
                    let _ = value()?;
                    at += 1;
                }
                "root" => has_place = true,
                "parent" => {
                    let Id { major, minor } = named(word, value()?)?;
                    // The only class of a discipline that has one.
                    parent = Some(Id { major, minor: minor.max(1) });
                    has_place = true;
                    at += 1;
                }
                "handle" => {
                    let text = value()?;
                    let plain = text.strip_suffix(":0").or(text.strip_suffix(':')).unwrap_or(text);
                    let number = u16::from_str_radix(plain, 16).ok().filter(|&number| number > 0);
                    handle = Some(number.ok_or_else(|| {
                        wrong(
                            format!("\"handle {text}\""),
                            "a handle such as 1:, hexadecimal up to ffff",
                        )
                    })?);
                    at += 1;
                }
                _ => {
                    kind = Some(word);
                    at += 1;
                    break;
                }
            }
            at += 1;
        }
        if !has_place {
            return Err(wrong("no place", "\"root\", or \"parent\" with a class"));
        }
        let Some(kind) = kind else {
            return Err(wrong("no discipline", "its name, such as fq_codel"));
        };
        let occupant = self.disciplines.iter().find(|other| other.parent == parent);
        if let Some(other) = occupant {
            return Err(wrong(
                "a second discipline",
                format!("one: \"tc {}\" is there", other.command),
            ));
        }
        if let Some(handle) = handle
            && self.disciplines.iter().any(|other| other.handle == Some(handle))
        {
            return Err(wrong(format!("\"handle {handle:x}:\""), "a handle that nothing else has"));
        }
        if let Some(Id { major, minor }) = parent {
            let Some(above) = self.disciplines.iter().find(|other| other.handle == Some(major))
            else {
                let expected =
                    format!("a discipline that a command before adds with \"handle {major:x}:\"");
                return Err(wrong(format!("\"parent {major:x}:{minor:x}\""), expected));
            };
            let added = self.classes.iter().any(|class| class.id == Id { major, minor });
            if has_added_classes(above.kind) && !added {
                let expected = format!(
                    "a class that a command before adds with \"classid {major:x}:{minor:x}\""
                );
                return Err(wrong(format!("\"parent {major:x}:{minor:x}\""), expected));
            }
            if !has_added_classes(above.kind)
                && !["prio", "ets", "netem", "tbf"].contains(&above.kind)
            {
                return Err(wrong(
                    format!("{kind:?} in {:?}", above.kind),
                    "a discipline with classes above it: htb, hfsc, drr, prio, ets, netem or tbf",
                ));
            }
        }
        let words = command[at..].to_vec();
        self.disciplines.push(Standing { parent, handle, kind, words, command: text });
        Ok(())
    }

    fn class(&mut self, command: &[&'a str], text: String) -> Result<(), Problem> {
        let (mut own, mut parent, mut kind, mut at) = (None, None, None, 0);
        while let Some(&word) = command.get(at) {
            let value = || value_after(command, at);
            match word {
                "dev" => {
                    let _ = value()?;
                    at += 1;
                }
                "classid" => {
                    own = Some(named(word, value()?)?);
                    at += 1;
                }
                "parent" => {
                    parent = Some(named(word, value()?)?);
                    at += 1;
                }
                "root" => parent = None,
                _ => {
                    kind = Some(word);
                    at += 1;
                    break;
                }
            }
            at += 1;
        }
        let class =
            own.ok_or_else(|| wrong("no \"classid\"", "a class, such as \"classid 1:10\""))?;
        let Id { major, minor } = class;
        let quoted = format!("\"classid {major:x}:{minor:x}\"");
        if minor == 0 {
            return Err(wrong(quoted, "a class such as 1:10; a handle alone is a discipline's"));
        }
        let kind = kind.ok_or_else(|| wrong("no discipline", "its name, such as htb"))?;
        let Some(above) = self.disciplines.iter().find(|other| other.handle == Some(major)) else {
            let expected = format!(
                "a class of a discipline that a command before adds with \"handle {major:x}:\""
            );
            return Err(wrong(quoted, expected));
        };
        if above.kind != kind || !has_added_classes(kind) {
            return Err(wrong(
                format!("{kind:?}"),
                format!(
                    "{:?}, if it is a discipline whose classes are added: htb, hfsc or drr",
                    above.kind
                ),
            ));
        }
        if self.classes.iter().any(|other| other.id == class) {
            return Err(wrong(quoted, "a class that is not there yet"));
        }
        let parent = parent.unwrap_or(Id { major, minor: 0 });
        let is_there = parent.minor == 0 || self.classes.iter().any(|other| other.id == parent);
        if parent.major != major || !is_there {
            let expected = format!("\"{major:x}:\" or a class of it that a command before adds");
            return Err(wrong(
                format!("\"parent {:x}:{:x}\"", parent.major, parent.minor),
                expected,
            ));
        }
        let words = command[at..].to_vec();
        self.classes.push(ClassWords { id: class, parent, kind, words, command: text });
        Ok(())
    }

    fn root(&self) -> Result<QdiscSpec, Problem> {
        let root = self.disciplines.iter().find(|one| one.parent.is_none());
        let root = root.ok_or_else(|| {
            wrong(
                "no discipline at the root",
                "such as: tc qdisc add root handle 1: htb default 10",
            )
        })?;
        for filter in &self.filters {
            if !self.disciplines.iter().any(|one| one.handle == Some(filter.parent.major)) {
                let expected = "a discipline that a command adds with this handle";
                return Err(wrong(
                    format!("\"parent {:x}:\" of a filter", filter.parent.major),
                    expected,
                ));
            }
        }
        self.built(root)
    }

    fn built(&self, standing: &Standing<'_>) -> Result<QdiscSpec, Problem> {
        let of = |id: Id| Some(id.major) == standing.handle;
        let has_child = self.disciplines.iter().any(|other| other.parent.is_some_and(of));
        let has_filter = self.filters.iter().any(|filter| of(filter.parent));
        if !has_added_classes(standing.kind) && !has_child && !has_filter {
            return self.alone(standing);
        }
        let handle = standing.handle.ok_or_else(|| {
            let quoted = format!("{:?} without a handle", standing.kind);
            wrong(
                format!("{quoted} in \"tc {}\"", standing.command),
                "one, such as \"handle 1:\": its classes have its number",
            )
        })?;
        let scheduler = self.scheduler(standing)?;
        let classes = if has_added_classes(standing.kind) {
            self.added_classes(standing, handle)?
        } else {
            self.bands(&scheduler, handle)?
        };
        let mut filters: Vec<&FilterWords> =
            self.filters.iter().filter(|filter| of(filter.parent)).collect();
        filters.sort_by_key(|filter| (filter.parent.minor, filter.priority, filter.order()));
        let filters = filters.into_iter().map(|filter| u32_tables::specs(filter, &self.filters));
        let filters = filters.collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Box::new(TreeSpec { handle, scheduler, classes, filters }).into())
    }

    fn alone(&self, standing: &Standing<'_>) -> Result<QdiscSpec, Problem> {
        let text = format!("{} {}", standing.kind, standing.words.join(" "));
        let command = || standing.command.split(' ').collect::<Vec<_>>();
        if ["htb", "police", "noqueue", "tc"].contains(&standing.kind) {
            return Err(within(
                wrong(format!("{:?}", standing.kind), "a discipline that queues"),
                &command(),
            ));
        }
        if standing.words.contains(&"leaf") {
            return Err(within(
                wrong("\"leaf\"", "a command of its own: tc qdisc add parent ..."),
                &command(),
            ));
        }
        QdiscSpec::parse(&text).map_err(|problem| within(problem, &command()))
    }

    /// Returns the discipline in a class: the kernel's pfifo where no command names one.
    fn leaf(&self, class: Id) -> Result<Box<QdiscSpec>, Problem> {
        let standing = self.disciplines.iter().find(|other| other.parent == Some(class));
        Ok(Box::new(match standing {
            Some(standing) => self.built(standing)?,
            None => PfifoSpec::default().into(),
        }))
    }

    fn scheduler(&self, standing: &Standing<'_>) -> Result<SchedulerSpec, Problem> {
        let text = standing.words.join(" ");
        let mut words = Words::new(&text);
        let spec = match standing.kind {
            "htb" => {
                let (mut default_minor, mut direct_packets) = (0, DIRECT_PACKETS);
                while let Some(word) = words.next() {
                    match word {
                        "default" => default_minor = words.value(word, minor)?,
                        "r2q" => {
                            let _ = words.whole::<u32>(word)?;
                        }
                        "direct_qlen" => direct_packets = words.whole(word)?,
                        _ => {
                            return Err(unknown(
                                word,
                                &["default", "r2q", "direct_qlen"],
                                &["offload"],
                            ));
                        }
                    }
                }
                Ok(SchedulerSpec::Htb { default_minor, direct_packets })
            }
            "hfsc" => {
                let mut default_minor = 0;
                while let Some(word) = words.next() {
                    match word {
                        "default" => default_minor = words.value(word, minor)?,
                        _ => return Err(unknown(word, &["default"], &[])),
                    }
                }
                Ok(SchedulerSpec::Hfsc { default_minor })
            }
            "drr" => match words.next() {
                None => Ok(SchedulerSpec::Drr {}),
                Some(word) => Err(unknown(word, &[], &[])),
            },
            kind => QdiscSpec::parse(&format!("{kind} {text}")).and_then(|spec| {
                SchedulerSpec::of(&spec).ok_or_else(|| {
                    let expected =
                        "a discipline with classes: htb, hfsc, drr, prio, ets, netem or tbf";
                    wrong(format!("{kind:?}"), expected)
                })
            }),
        };
        spec.map_err(|problem: Problem| {
            within(problem, &standing.command.split(' ').collect::<Vec<_>>())
        })
    }

    fn added_classes(
        &self,
        standing: &Standing<'_>,
        handle: u16,
    ) -> Result<Vec<ClassSpec>, Problem> {
        let r2q = standing.words.iter().position(|word| *word == "r2q");
        let r2q = r2q.and_then(|at| standing.words.get(at + 1)?.parse().ok()).unwrap_or(R2Q);
        let mut classes = Vec::new();
        for class in self.classes.iter().filter(|class| class.id.major == handle) {
            let command = || class.command.split(' ').collect::<Vec<_>>();
            let text = class.words.join(" ");
            let mut words = Words::new(&text);
            let parameters = match class.kind {
                "htb" => htb_class(&mut words, r2q),
                "hfsc" => hfsc_class(&mut words),
                _ => drr_class(&mut words),
            }
            .map_err(|problem| within(problem, &command()))?;
            let is_inner = self.classes.iter().any(|other| other.parent == class.id);
            if is_inner && self.disciplines.iter().any(|other| other.parent == Some(class.id)) {
                let expected = "a class without classes below it, or no discipline in it";
                return Err(within(wrong("a discipline in an inner class", expected), &command()));
            }
            classes.push(ClassSpec {
                minor: class.id.minor,
                parent: class.parent.minor,
                parameters,
                leaf: if is_inner { None } else { Some(self.leaf(class.id)?) },
            });
        }
        if classes.is_empty() {
            let expected = format!(
                "at least one, such as: tc class add parent {handle:x}: classid {handle:x}:1 {} ...",
                standing.kind
            );
            return Err(wrong(format!("no class of \"tc {}\"", standing.command), expected));
        }
        // Round robin goes by numbers; a parent may have a greater one than its class.
        classes.sort_by_key(|class| class.minor);
        let mut ordered: Vec<ClassSpec> = Vec::with_capacity(classes.len());
        while !classes.is_empty() {
            let known = |class: &ClassSpec| {
                class.parent == 0 || ordered.iter().any(|other| other.minor == class.parent)
            };
            let at = classes.iter().position(known).unwrap_or(0);
            let class = classes.remove(at);
            ordered.push(class);
        }
        Ok(ordered)
    }

    fn bands(&self, scheduler: &SchedulerSpec, handle: u16) -> Result<Vec<ClassSpec>, Problem> {
        let count = scheduler.bands().unwrap_or(1);
        let beyond = self.disciplines.iter().find(|other| {
            other.parent.is_some_and(|at| at.major == handle && usize::from(at.minor) > count)
        });
        if let Some(beyond) = beyond {
            let expected = format!("a class from {handle:x}:1 to {handle:x}:{count:x}");
            return Err(within(
                wrong("the parent", expected),
                &beyond.command.split(' ').collect::<Vec<_>>(),
            ));
        }
        (1..=count)
            .map(|minor| {
                let minor = minor as u16;
                let leaf = Some(self.leaf(Id { major: handle, minor })?);
                Ok(ClassSpec { minor, parent: 0, parameters: ClassParameters::Band {}, leaf })
            })
            .collect()
    }
}

/// True for a discipline whose classes are added by commands.
pub(crate) fn has_added_classes(kind: &str) -> bool {
    ["htb", "hfsc", "drr"].contains(&kind)
}

/// The word behind the one at `at`, which is its value.
fn value_after<'a>(command: &[&'a str], at: usize) -> Result<&'a str, Problem> {
    let word = command[at];
    let after = command.get(at + 1).copied();
    after.ok_or_else(|| wrong(format!("{word:?} at the end"), format!("a value after {word:?}")))
}

fn named(word: &str, text: &str) -> Result<Id, Problem> {
    id(text).map_err(|error| wrong(format!("\"{word} {text}\""), error.expected))
}

/// `default 10` and `default 0x10` are the class 1:10.
fn minor(text: &str) -> Result<u16, ParseError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u16::from_str_radix(digits, 16)
        .map_err(|_| unreadable(text, "the minor number of a class, hexadecimal up to ffff"))
}
