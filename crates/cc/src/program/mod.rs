//! An algorithm as a text: a small language, compiled when a run begins and interpreted at every hook.
//!
//! docs/how-to/program.md describes it to its authors. Scope: its words ([`words`]), the way from a text to operations
//! (`lexer`, `parser`), the operations (`code`), and the algorithm that they make ([`Programmed`]). Out of scope: files, and
//! anything that knows more of the endpoint than other algorithms do.
//!
//! Every text is safe to read and to run: it has at most [`TEXT_MAX`] bytes, parsing is total and recurses at most
//! `NESTING_MAX` deep, jumps lead forward only, and a hook has at most `OPERATIONS_MAX` operations. Arithmetic is that of IEEE 754
//! and of `libm`, one operation at a time, so that the same text does the same on every machine.

mod code;
mod lexer;
mod parser;
mod programmed;
mod words;

pub use programmed::{Fault, Programmed};
pub use words::{HOOKS, HookRow, WORDS, WordRow};

use code::Code;
use std::fmt;

/// Bytes of a text at most.
pub const TEXT_MAX: usize = 16 * 1024;
/// Letters of a program's name at most.
pub const NAME_MAX: usize = 32;

/// Position in a text, counted from 1; a column is a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u16,
    /// Character in the line.
    pub column: u16,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a text is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// Position of the error.
    pub at: Position,
    /// Text at the position.
    pub value: String,
    /// Expected text.
    pub expected: String,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: got {}, expected {}", self.at, self.value, self.expected)
    }
}

/// A number that a program lets its user choose (`param`).
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// As the program calls it.
    pub name: String,
    /// Default value.
    pub default: f64,
    pub(crate) register: u8,
}

/// A text that has been read.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) code: Code,
    pub(crate) settings: Vec<Setting>,
    /// Names of its `state`, in the order of the text.
    states: Vec<String>,
    /// It has the hook `control`: window and pacing are its own.
    pub(crate) controls: bool,
}

impl Program {
    /// Reads a text.
    ///
    /// # Errors
    /// The first place where it is no program.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        if text.len() > TEXT_MAX {
            let size_text = format!("a text of {} bytes", text.len());
            let expected = format!("at most {TEXT_MAX}");
            return Err(Misread {
                at: Position { line: 1, column: 1 },
                value: size_text,
                expected,
            });
        }
        parser::parse(text)
    }

    /// Returns the settings, in the order of the text.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The names of what it remembers, in the order of the text.
    #[must_use]
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// Operations of each of its hooks: the hook's name and a number.
    pub fn operations(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        HOOKS.iter().map(|row| (row.name, self.code.hook(row.hook).ops.len()))
    }
}

/// True when a program may have this name: a letter, then letters, digits, `-` and `_`; not an algorithm's.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.len() <= NAME_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(plain)
}

#[cfg(test)]
mod tests;
