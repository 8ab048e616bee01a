//! Shell syntax of a chain of commands: words, comments, quotes, continued lines, redirections. What only a shell can
//! evaluate is refused; `dragstrip tc-import` follows a script first and hands on its commands with every value.

use super::Wrong;
use crate::tc::wrong;

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
                    let closing = match behind.chars().next() {
                        Some('(') => Some(')'),
                        Some('{') => Some('}'),
                        Some(_) | None => None,
                    };
                    rest = self.computed(rest, line, closing);
                    continue;
                }
                ('`', Some('"') | None) => {
                    rest = self.computed(rest, line, Some('`'));
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

    /// Takes what only a shell can compute, up to this bracket or to the name's end; what is behind it.
    fn computed<'a>(&mut self, text: &'a str, line: usize, closing: Option<char>) -> &'a str {
        let end = match closing {
            Some(')') => closing_bracket(text),
            Some(sign) => text[1..].find(sign).map(|at| at + 1 + sign.len_utf8()),
            None => {
                text[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(|at| at + 1)
            }
        };
        // `$?`, `$@` and the like have one letter.
        let least = 1 + text[1..].chars().next().map_or(0, char::len_utf8);
        let (taken, behind) = text.split_at(end.unwrap_or(text.len()).max(least));
        for letter in taken.chars() {
            self.push(letter, line);
        }
        let expected = "the value itself: what only a shell can compute is not read";
        let problem = wrong(format!("{taken:?}"), expected);
        self.wrong.get_or_insert(Wrong { line, problem });
        behind
    }

    fn end_word(&mut self) {
        self.command.extend(self.word.take());
    }

    fn end_command(&mut self) -> Result<(), Wrong> {
        self.end_word();
        let wrong_word = self.wrong.take();
        let command = unredirected(std::mem::take(&mut self.command));
        if let Some(word) = command.iter().find(|word| word.text.starts_with("<<")) {
            let expected = "a file without texts for other programs in it";
            let problem = wrong(format!("{:?}", word.text), expected);
            return Err(Wrong { line: word.line, problem });
        }
        if !command.is_empty() {
            self.commands.push(Command { words: command, wrong: wrong_word });
        }
        Ok(())
    }
}

/// A `$` alone is a prompt.
fn names_something(behind: &str) -> bool {
    behind.starts_with(|c: char| !c.is_whitespace())
}

/// Behind the bracket that closes the first one.
fn closing_bracket(text: &str) -> Option<usize> {
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
