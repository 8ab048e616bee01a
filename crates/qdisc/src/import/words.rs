//! A command's words, one after the other, and what several commands name: interfaces, handles, classes.

use super::Wrong;
use super::lines::Word;
use super::tree::{Id, Interface, Interfaces};
use crate::tc::wrong;
use std::slice::Iter;

/// Words that are read one after the other.
pub(super) struct Rest<'a> {
    words: std::iter::Peekable<Iter<'a, Word>>,
    /// Position at which a missing word is reported.
    pub(super) end: usize,
}

impl<'a> Rest<'a> {
    pub(super) fn of(words: &'a [Word]) -> Self {
        let end = words.last().map_or(1, |word| word.line);
        Self { words: words.iter().peekable(), end }
    }

    pub(super) fn next(&mut self) -> Option<&'a Word> {
        self.words.next()
    }

    pub(super) fn peek(&mut self) -> Option<&'a str> {
        self.words.peek().map(|word| word.text.as_str())
    }

    /// The next word if it is this one.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let is_next = self.peek() == Some(text);
        if is_next {
            self.words.next();
        }
        is_next
    }

    pub(super) fn value(&mut self, of: &Word) -> Result<&'a Word, Wrong> {
        self.next().ok_or_else(|| {
            let expected = format!("a value after {:?}", of.text);
            Wrong { line: self.end, problem: wrong(format!("{:?} at the end", of.text), expected) }
        })
    }

    pub(super) fn all(&mut self) -> Vec<Word> {
        self.words.by_ref().cloned().collect()
    }
}

pub(super) fn refused<T>(word: &Word, expected: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { line: word.line, problem: wrong(format!("{:?}", word.text), expected) })
}

pub(super) fn device<'a>(
    name: &Word,
    interfaces: &'a mut Interfaces,
) -> Result<&'a mut Interface, Wrong> {
    // IFNAMSIZ
    let fits = !name.text.is_empty() && name.text.len() < 16 && !name.text.contains(['/', ':']);
    if !fits || name.text.contains(char::is_control) {
        return refused(name, "an interface's name of at most 15 letters, such as eth0");
    }
    Ok(interfaces.interface_mut(&name.text))
}

pub(super) fn no_device<T>(verb: &Word) -> Result<T, Wrong> {
    let problem = wrong("no \"dev\"", "an interface, such as \"dev eth0\"");
    Err(Wrong { line: verb.line, problem })
}

/// `1:`, `1:10`; both numbers are hexadecimal.
pub(super) fn id(word: &Word) -> Result<Id, Wrong> {
    let number = |text: &str| u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let read = word.text.split_once(':').and_then(|(major, minor)| {
        let minor = if minor.is_empty() { Some(0) } else { number(minor) };
        Some(Id { major: number(major)?, minor: minor? })
    });
    match read {
        Some(id) => Ok(id),
        None => {
            refused(word, "a handle such as 1: or a class such as 1:10, hexadecimal up to ffff")
        }
    }
}

pub(super) fn handle(word: &Word) -> Result<u16, Wrong> {
    let text = word.text.strip_suffix(':').or_else(|| word.text.strip_suffix(":0"));
    let text = text.unwrap_or(&word.text);
    match u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16) {
        Ok(major) if major > 0 => Ok(major),
        Ok(_) | Err(_) => refused(word, "a handle such as 1:, hexadecimal up to ffff"),
    }
}
