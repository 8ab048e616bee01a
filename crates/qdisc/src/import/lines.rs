//! Shell syntax of a script, as far as people paste it with tc's commands: words, comments, quotes, continued lines,
//! variables that are set to plain values. Syntax that only a shell can evaluate is refused.

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

/// A command in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Why its words are not those that a shell would give it.
    pub(super) wrong: Option<Wrong>,
}

/// In place of what only a shell can compute.
const COMPUTED: char = '…';
/// Most words that a script may have once its variables stand for their values.
const WORDS_MAX: usize = 20_000;
/// Longest value of a variable, bytes.
const VALUE_MAX: usize = 1_000;

/// The commands of a script.
pub(super) fn commands(script: &str) -> Result<Vec<Command>, Wrong> {
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
    commands: Vec<Command>,
    command: Vec<Word>,
    /// Error of the command in hand.
    wrong: Option<Wrong>,
    /// Those whose value only a shell can compute have none, and the line that sets them.
    variables: BTreeMap<String, Result<String, usize>>,
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
                ('`', Some('"') | None) => {
                    let Some((inside, after)) = behind.split_once('`') else {
                        return Err(computed("`", line));
                    };
                    self.computed(&format!("`{inside}`"), line);
                    rest = after;
                    continue;
                }
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

    /// True when the word in hand ends in `>`: `2>&1`.
    fn redirects(&self) -> bool {
        self.word.as_ref().is_some_and(|word| word.text.ends_with('>'))
    }

    fn push(&mut self, letter: char, line: usize) {
        self.word.get_or_insert(Word { text: String::new(), line }).text.push(letter);
    }

    /// Marks text that only a shell can compute.
    fn computed(&mut self, what: &str, line: usize) {
        self.push(COMPUTED, line);
        self.wrong.get_or_insert_with(|| computed(what, line));
    }

    /// Puts a variable's value in place of its name, which `rest` begins with; what is behind it.
    fn variable<'a>(&mut self, rest: &'a str, line: usize) -> Result<&'a str, Wrong> {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let quoted_text = || format!("${}", rest.split_whitespace().next().unwrap_or_default());
        if rest.starts_with('(') {
            let Some(end) = closing(rest) else { return Err(computed(&quoted_text(), line)) };
            self.computed(&format!("${}", &rest[..end]), line);
            return Ok(&rest[end..]);
        }
        let (inside, behind) = match rest.strip_prefix('{') {
            Some(inside) => inside.split_once('}').unwrap_or((inside, "")),
            None => {
                let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
                // `$?`, `$@` and the like have one letter.
                rest.split_at(end.max(rest.chars().next().map_or(0, char::len_utf8)))
            }
        };
        // `${NAME:-DEFAULT}`
        let end = inside.find(|c| !is_name_char(c)).unwrap_or(inside.len());
        let (name, more) = inside.split_at(end);
        let default = [":-", ":=", "-", "="].into_iter().find_map(|sign| more.strip_prefix(sign));
        let argument = name.starts_with(|c: char| c.is_ascii_digit());
        let value = match (self.variables.get(name), default) {
            (Some(Ok(value)), _) if more.is_empty() || default.is_some() => value.clone(),
            (None, Some(default)) if !default.contains(['$', '`']) => default.to_owned(),
            (Some(Err(at)), _) => {
                let expected = format!("the value itself: line {at} leaves it to a shell");
                let problem = wrong(format!("\"${name}\""), expected);
                self.push(COMPUTED, line);
                self.wrong.get_or_insert(Wrong { line, problem });
                return Ok(behind);
            }
            (None, None) if more.is_empty() && !name.is_empty() && !argument => {
                let expected = format!("a variable that a line before sets, such as {name}=eth0");
                self.push(COMPUTED, line);
                let problem = wrong(format!("\"${name}\""), expected);
                self.wrong.get_or_insert(Wrong { line, problem });
                return Ok(behind);
            }
            _ => {
                self.computed(&quoted_text(), line);
                return Ok(behind);
            }
        };
        for letter in value.chars() {
            if letter.is_whitespace() && self.quote.is_none() {
                self.end_word();
            } else {
                self.push(letter, line);
            }
        }
        self.words += 1;
        self.check_word_limit(line)?;
        Ok(behind)
    }

    fn check_word_limit(&self, line: usize) -> Result<(), Wrong> {
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
        let unknown = self.wrong.take();
        let mut command = unredirected(std::mem::take(&mut self.command));
        if let Some(word) = command.iter().find(|word| word.text.starts_with("<<")) {
            let expected = "a file without texts for other programs in it";
            let problem = wrong(format!("{:?}", word.text), expected);
            return Err(Wrong { line: word.line, problem });
        }
        let sets = ["export", "local", "readonly"];
        if command.first().is_some_and(|word| sets.contains(&word.text.as_str())) {
            command.remove(0);
        }
        if let Some(first) = command.first() {
            self.check_word_limit(first.line)?;
        }
        while let Some((name, value)) = command.first().and_then(assignment) {
            if value.len() > VALUE_MAX {
                let problem = wrong(format!("{name:?}"), format!("at most {VALUE_MAX} bytes"));
                return Err(Wrong { line: command[0].line, problem });
            }
            let value = if value.contains(COMPUTED) && unknown.is_some() {
                Err(command[0].line)
            } else {
                Ok(value)
            };
            self.variables.insert(name, value);
            command.remove(0);
        }
        if !command.is_empty() {
            self.commands.push(Command { words: command, wrong: unknown });
        }
        Ok(())
    }
}

/// A `$` alone is a prompt.
fn names_something(behind: &str) -> bool {
    behind.starts_with(|c: char| !c.is_whitespace())
}

/// Behind the bracket that closes the one in front.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' if open == 1 => return Some(at + 1),
            ')' => open -= 1,
            _ => {}
        }
    }
    None
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
    let mut command_words = Vec::new();
    let mut target_follows = false;
    for word in words {
        let text = word.text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if target_follows {
            target_follows = false;
        } else if let Some(target) = text.strip_prefix('>') {
            target_follows = target.trim_start_matches(['>', '&']).is_empty();
        } else {
            command_words.push(word);
        }
    }
    command_words
}
