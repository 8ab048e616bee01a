//! A chain of tc's commands as people paste it from their router, and the queue of each interface that it makes.
//!
//! ```text
//! script ──lines──▶ commands ──tree──▶ what stands on each interface ──resolve──▶ a discipline, or a refusal by name
//! ```
//!
//! The commands are replayed in their order (`add`, `replace`, `change`, `del`), with what the kernel would refuse; then the tree
//! of each interface becomes one [`QdiscSpec`]: a single discipline where all packets take one way through it, else the tree
//! itself. What is valid tc and has no counterpart here is refused with its line.

mod command;
mod filter;
mod legacy;
mod lines;
mod resolve;
mod shapes;
mod tree;
mod whole;
mod within;
mod words;

use crate::disciplines::QdiscSpec;
use crate::disciplines::htb::HtbSpec;
use crate::tc;
use dragstrip_units::Problem;
use std::fmt::{self, Display};

/// A queue that a script makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The interface.
    pub device: String,
    /// It meets what comes in, not what goes out.
    pub ingress: bool,
    /// The interface (ifb) that what comes in is led through.
    pub through: Option<String>,
    /// The lines that say so.
    pub lines: Vec<usize>,
    /// The discipline.
    pub queue: QdiscSpec,
    /// Properties of the path before the queue, as fields of a path: `rtt`, `loss`.
    pub front: Vec<(&'static str, String)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Result of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// In the order in which its interfaces appear.
    pub queues: Vec<Imported>,
    /// Commands of other programs, which are left out.
    pub skipped: Vec<Skipped>,
}

/// A command that says nothing of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Counted from 1.
    pub line: usize,
    /// Its words.
    pub command: String,
}

/// A part of a script that cannot be right, or has no counterpart here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Counted from 1.
    pub line: usize,
    /// The word, and what would be right; its field is empty.
    pub problem: Problem,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for Wrong {}

impl Imported {
    /// The same as the bottleneck of a path: fields of `[path]` and their text. An htb class that is no more than a rate is
    /// the path's own; any other shaper stays in the queue, and the rate is the line's, which tc does not say.
    #[must_use]
    pub fn path(&self) -> Vec<(&'static str, String)> {
        if let QdiscSpec::Htb(htb) = &self.queue
            && *htb.leaf != QdiscSpec::NOQUEUE
            && htb.overhead_bytes >= 0
        {
            let plain = HtbSpec {
                overhead_bytes: htb.overhead_bytes,
                linklayer_atm: htb.linklayer_atm,
                ..HtbSpec::with_rate(htb.rate_bps, (*htb.leaf).clone())
            };
            let ceil_bps = htb.ceil_bps.filter(|&ceil| ceil != htb.rate_bps);
            if plain == (HtbSpec { ceil_bps, ..htb.clone() }) {
                let mut fields =
                    vec![("rate", tc::rate(htb.rate_bps)), ("queue", htb.leaf.print())];
                if htb.overhead_bytes > 0 {
                    fields.push(("overhead", format!("{}b", htb.overhead_bytes)));
                }
                if htb.linklayer_atm {
                    fields.push(("atm", "true".to_owned()));
                }
                fields.extend(self.front.iter().cloned());
                return fields;
            }
        }
        let mut fields = vec![("queue", self.queue.print())];
        fields.extend(self.front.iter().cloned());
        fields
    }
}

/// The queues that a script of tc's commands makes.
///
/// # Errors
/// The first word that is wrong or has no counterpart, with its line.
pub fn import(script: &str) -> Result<Script, Wrong> {
    let mut interfaces = tree::Interfaces::default();
    let mut skipped = Vec::new();
    let mut any = false;
    for command in lines::commands(script)? {
        if command::perform(&command, &mut interfaces)? {
            any = true;
        } else if let Some(first) = command.words.first() {
            let texts: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
            skipped.push(Skipped { line: first.line, command: texts.join(" ") });
        }
    }
    if !any {
        let expected = "tc's commands, such as: tc qdisc add dev eth0 root fq_codel (what is behind # is not read)";
        return Err(Wrong { line: 1, problem: tc::wrong("no command of tc", expected) });
    }
    Ok(Script { queues: resolve::resolve(&interfaces)?, skipped })
}

#[cfg(test)]
mod tests;
