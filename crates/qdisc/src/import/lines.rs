//! What a shell makes of a script, as far as people paste it with tc's commands: words, comments, quotes, continued lines,
//! variables that are set to plain values. What only a shell can know is refused.

use super::Wrong;
use crate::tc::wrong;
use std::collections::BTreeMap;

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// Most words that a script may have once its variables stand for their values.
const WORDS_MAX: usize = 20_000;
/// Longest value of a variable, bytes.
const VALUE_MAX: usize = 1_000;

/// The commands of a script, each in words.
pub(super) fn commands(script: &str) -> Result<Vec<Vec<Word>>, Wrong> {
    let mut reader = Reader::default();
    let mut lines = (1..).zip(script.lines());
    while let Some((number, text)) = lines.next() {
        let mut text = text.trim_end_matches('\r');
        let mut at = number;
        while reader.goes_on(text, at)? {
            let Some((next, more)) = lines.next() else { break };
            (at, text) = (next, more.trim_end_matches('\r'));
        }
        reader.end_command()?;
    }
    Ok(reader.commands)
}

#[derive(Default)]
struct Reader {
    commands: Vec<Vec<Word>>,
    command: Vec<Word>,
    variables: BTreeMap<String, String>,
    words: usize,
    /// The word in hand; none: between two.
    word: Option<Word>,
    quote: Option<char>,
}

impl Reader {
    /// Reads a line; the answer is whether it goes on in the next.
    fn goes_on(&mut self, text: &str, line: usize) -> Result<bool, Wrong> {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let behind = &rest[letter.len_utf8()..];
            if self.quote == Some(letter) {
                self.quote = None;
                rest = behind;
                continue;
            }
            match (letter, self.quote) {
                ('\\', Some('"') | None) => match behind.chars().next() {
                    None => return Ok(true),
                    Some(next) => {
                        self.push(next, line);
                        rest = &behind[next.len_utf8()..];
                        continue;
                    }
                },
                ('$', Some('"') | None) if names_something(behind) => {
                    rest = self.variable(behind, line)?;
                    continue;
                }
                ('`', Some('"') | None) => return Err(computed("`", line)),
                (_, Some(_)) => self.push(letter, line),
                ('"' | '\'', None) => {
                    self.quote = Some(letter);
                    let _ = self.word.get_or_insert(Word { text: String::new(), line });
                }
                ('#', None) if self.word.is_none() => break,
                (';' | '|', None) => self.end_command()?,
                ('&', None) if !self.redirects() && !behind.starts_with('>') => {
                    self.end_command()?;
                }
                (letter, None) if letter.is_whitespace() => self.end_word(),
                (letter, None) => self.push(letter, line),
            }
            rest = behind;
        }
        if let Some(quote) = self.quote {
            let at = self.word.as_ref().map_or(line, |word| word.line);
            let expected = "the quote's end on the same line";
            return Err(Wrong { line: at, problem: wrong(format!("{quote}"), expected) });
        }
        Ok(false)
    }

    /// Whether the word in hand ends in `>`: `2>&1`.
    fn redirects(&self) -> bool {
        self.word.as_ref().is_some_and(|word| word.text.ends_with('>'))
    }

    fn push(&mut self, letter: char, line: usize) {
        self.word.get_or_insert(Word { text: String::new(), line }).text.push(letter);
    }

    /// Puts a variable's value in place of its name, which `rest` begins with; what is behind it.
    fn variable<'a>(&mut self, rest: &'a str, line: usize) -> Result<&'a str, Wrong> {
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, behind) = match rest.strip_prefix('{') {
            Some(inside) => inside.split_once('}').unwrap_or((inside, "")),
            None => rest.split_at(rest.find(|c| !named(c)).unwrap_or(rest.len())),
        };
        let plain = !name.is_empty()
            && name.chars().all(named)
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if !plain {
            return Err(computed(
                &format!("${}", rest.split_whitespace().next().unwrap_or_default()),
                line,
            ));
        }
        let Some(value) = self.variables.get(name).cloned() else {
            let expected = format!("a variable that a line before sets, such as {name}=eth0");
            return Err(Wrong { line, problem: wrong(format!("\"${name}\""), expected) });
        };
        for letter in value.chars() {
            if letter.is_whitespace() && self.quote.is_none() {
                self.end_word();
            } else {
                self.push(letter, line);
            }
        }
        self.words += 1;
        self.within(line)?;
        Ok(behind)
    }

    fn within(&self, line: usize) -> Result<(), Wrong> {
        if self.words > WORDS_MAX {
            let expected = format!("a script of at most {WORDS_MAX} words");
            return Err(Wrong { line, problem: wrong("more", expected) });
        }
        Ok(())
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.words += 1;
            self.command.push(word);
        }
    }

    fn end_command(&mut self) -> Result<(), Wrong> {
        self.end_word();
        let mut command = unredirected(std::mem::take(&mut self.command));
        if command.first().is_some_and(|word| word.text == "export") {
            command.remove(0);
        }
        if let Some(first) = command.first() {
            self.within(first.line)?;
        }
        while let Some((name, value)) = command.first().and_then(assignment) {
            if value.len() > VALUE_MAX {
                let problem = wrong(format!("{name:?}"), format!("at most {VALUE_MAX} bytes"));
                return Err(Wrong { line: command[0].line, problem });
            }
            self.variables.insert(name, value);
            command.remove(0);
        }
        if !command.is_empty() {
            self.commands.push(command);
        }
        Ok(())
    }
}

/// A `$` alone is a prompt.
fn names_something(behind: &str) -> bool {
    behind.starts_with(|c: char| !c.is_whitespace())
}

fn computed(what: &str, line: usize) -> Wrong {
    let expected = "the value itself: what only a shell can compute is not read";
    Wrong { line, problem: wrong(format!("{what:?}"), expected) }
}

/// `NAME=VALUE`.
fn assignment(word: &Word) -> Option<(String, String)> {
    let (name, value) = word.text.split_once('=')?;
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then(|| (name.to_owned(), value.to_owned()))
}

/// Without `2>/dev/null` and the like.
fn unredirected(words: Vec<Word>) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut target_follows = false;
    for word in words {
        let text = word.text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if target_follows {
            target_follows = false;
        } else if let Some(target) = text.strip_prefix('>') {
            target_follows = target.trim_start_matches(['>', '&']).is_empty();
        } else {
            kept.push(word);
        }
    }
    kept
}
