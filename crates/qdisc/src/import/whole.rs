//! An interface's disciplines, classes and filters as they are: a class tree.

use super::Wrong;
use super::lines::Word;
use super::resolve::{Tree, refuse};
use super::tree::{ClassOf, Filter, Place, Standing};
use crate::disciplines::QdiscSpec;
use crate::tc::wrong;
use dragstrip_units::{Problem, Report};

/// Disciplines that share between classes.
const CLASSFUL: [&str; 5] = ["htb", "hfsc", "drr", "prio", "ets"];
/// Packets in the queue of an ifb, where no command says (`ifb_setup`).
const IFB_PACKETS: u32 = 32;

/// A command of the tree, and where its words come from.
struct Line {
    text: String,
    line: usize,
}

impl Tree<'_> {
    /// The tree at `root`, where it is no single discipline for the reason `flat`.
    pub(super) fn whole(&mut self, root: &Standing, flat: Wrong) -> Result<QdiscSpec, Wrong> {
        let in_use = |standing: &Standing| CLASSFUL.contains(&standing.kind.text.as_str());
        if !self.interface.disciplines.iter().any(in_use) || !self.chooses(root) {
            return Err(flat);
        }
        let lines = self.commands(root)?;
        let text = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        let at = |problem: &Problem| {
            let of =
                lines.iter().find(|line| problem.value.contains(&format!("\"{}\"", line.text)));
            of.map_or(root.kind.line, |line| line.line)
        };
        let spec = QdiscSpec::parse(&text).map_err(|problem| Wrong {
            line: self.line_of_word(&problem).unwrap_or_else(|| at(&problem)),
            problem: shortened(problem),
        })?;
        let mut report = Report::default();
        spec.check("", &mut report);
        if let Some(problem) = report.problems.into_iter().next() {
            let value = format!("{} {}", problem.field.trim_start_matches('.'), problem.value);
            return Err(Wrong { line: root.kind.line, problem: wrong(value, problem.expected) });
        }
        self.lines = lines.iter().map(|line| line.line).collect();
        Ok(spec)
    }

    /// Packets go to different classes, or to one that borrows.
    fn chooses(&self, root: &Standing) -> bool {
        let filters = &self.interface.filters;
        let has_filter = filters.iter().any(|filter| filter.major != 0xffff && !filter.foreign);
        let default = root.words.windows(2).find(|pair| pair[0].text == "default");
        let minor = default.and_then(|pair| {
            let text = pair[1].text.strip_prefix("0x").unwrap_or(&pair[1].text);
            u16::from_str_radix(text, 16).ok()
        });
        let is_default = |class: &ClassOf| Some(class.id.minor) == minor;
        has_filter || self.interface.classes.iter().any(is_default)
    }

    fn commands(&mut self, root: &Standing) -> Result<Vec<Line>, Wrong> {
        let mut lines = Vec::new();
        self.discipline_line("root", root, &mut lines)?;
        self.below(root, &mut lines)?;
        let mut filters: Vec<&Filter> = self.interface.filters.iter().collect();
        filters.retain(|filter| filter.major != 0xffff);
        for filter in filters {
            if filter.foreign {
                self.notes.push(format!(
                    "the filter in line {} is left out: what flows here is IPv4",
                    filter.word.line
                ));
                continue;
            }
            let place = match filter.minor {
                0 => format!("{:x}:", filter.major),
                minor => format!("{:x}:{minor:x}", filter.major),
            };
            let words = joined(&filter.words);
            let text = format!(
                "tc filter add parent {place} protocol ip prio {} {words}",
                filter.priority
            );
            if looks_at_marks(&filter.words) {
                let note = format!(
                    "the filter in line {} takes packets by their mark: give flows one, such as cubic:mark=1",
                    filter.word.line
                );
                self.notes.push(note);
            }
            lines.push(Line { text, line: filter.word.line });
        }
        Ok(lines)
    }

    /// Classes of a discipline, and what is in them.
    fn below(&mut self, of: &Standing, lines: &mut Vec<Line>) -> Result<(), Wrong> {
        let interface = self.interface;
        let Some(major) = of.handle else { return Ok(()) };
        let overhead = match &of.stab {
            Some(stab) if of.kind.text == "htb" => {
                let cells = if stab.atm { " linklayer atm" } else { "" };
                format!(" overhead {} mpu {}{cells}", stab.overhead_bytes, stab.mpu_bytes)
            }
            Some(stab) => {
                return refuse(
                    &stab.word,
                    "htb: of another discipline with classes a size table is not modelled",
                );
            }
            None => String::new(),
        };
        let classes: Vec<&ClassOf> =
            interface.classes.iter().filter(|class| class.id.major == major).collect();
        for class in &classes {
            let own = ["overhead", "mpu", "linklayer"];
            if let (Some(stab), Some(word)) =
                (&of.stab, class.words.iter().find(|word| own.contains(&word.text.as_str())))
            {
                let expected =
                    format!("one of it and \"stab\" (line {}): both count", stab.word.line);
                return refuse(word, expected);
            }
            let words = joined(&class.words);
            let text = format!(
                "tc class add parent {} classid {} {} {words}{overhead}",
                class.parent, class.id, class.kind.text
            );
            lines.push(Line { text: single(&text), line: class.kind.line });
        }
        let length = self.queue_length();
        for class in classes {
            let place = Place::Class(class.id);
            let is_inner = interface.classes.iter().any(|other| other.parent == class.id);
            if let (false, None, Some(packets)) = (is_inner, interface.at(place), length) {
                let text = format!("tc qdisc add parent {} pfifo limit {packets}", class.id);
                lines.push(Line { text, line: class.kind.line });
            }
        }
        for inner in &interface.disciplines {
            let Place::Class(id) = inner.place else { continue };
            if id.major == major {
                self.discipline_line(&format!("parent {id}"), inner, lines)?;
                self.below(inner, lines)?;
            }
        }
        Ok(())
    }

    fn discipline_line(
        &mut self,
        place: &str,
        standing: &Standing,
        lines: &mut Vec<Line>,
    ) -> Result<(), Wrong> {
        let handle = standing.handle.map_or(String::new(), |major| format!("handle {major:x}: "));
        let mut kind = standing.kind.text.clone();
        let mut words = joined(&self.without_neutral(&standing.kind, &standing.words)?);
        if kind == "pfifo_fast" {
            kind = "pfifo".to_owned();
        }
        if kind == "pfifo"
            && words.is_empty()
            && let Some(packets) = self.queue_length()
        {
            words = format!("limit {packets}");
        }
        let text = format!("tc qdisc add {place} {handle}{kind} {words}");
        lines.push(Line { text: single(&text), line: standing.kind.line });
        Ok(())
    }

    /// Packets in a queue that no command limits, where they are not those of Ethernet.
    fn queue_length(&self) -> Option<u32> {
        let is_ifb = self.interface.name.starts_with("ifb");
        self.interface.txqueuelen.or(is_ifb.then_some(IFB_PACKETS))
    }

    /// The line of the word that a problem begins with, if only one has it.
    fn line_of_word(&self, problem: &Problem) -> Option<usize> {
        let value = problem.value.strip_prefix('"')?;
        let interface = self.interface;
        let words = interface
            .disciplines
            .iter()
            .flat_map(|one| &one.words)
            .chain(interface.classes.iter().flat_map(|class| &class.words))
            .chain(interface.filters.iter().flat_map(|filter| &filter.words));
        let mut of = words.filter(|word| {
            value.strip_prefix(word.text.as_str()).is_some_and(|rest| rest.starts_with(['"', ' ']))
        });
        let first = of.next()?;
        of.next().is_none().then_some(first.line)
    }
}

/// A filter by the firewall's mark: fw, `match mark` of u32, `nf_mark` of basic.
fn looks_at_marks(words: &[Word]) -> bool {
    words.iter().any(|word| word.text == "fw" || word.text.contains("nf_mark"))
        || words.windows(2).any(|pair| pair[0].text == "match" && pair[1].text == "mark")
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// With one blank between words.
fn single(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without the command, which the line names.
fn shortened(problem: Problem) -> Problem {
    let value = problem.value.split(" in \"tc ").next().unwrap_or_default().to_owned();
    Problem { value, ..problem }
}
