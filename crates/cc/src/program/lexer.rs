//! From a text to tokens.

use super::{Misread, Position};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// A number in seconds, packets or nothing.
    Number(f64),
    /// Anything else.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A token, where it stands, and its text.
#[derive(Clone, Copy, Debug)]
pub struct Lexeme<'a> {
    pub token: Token<'a>,
    pub at: Position,
    pub text: &'a str,
}

/// Longer ones first.
const SIGNS: &[&str] =
    &["<=", ">=", "==", "!=", "{", "}", "(", ")", ",", "=", "+", "-", "*", "/", "<", ">"];
/// Units of a number and what a number of them is divided by.
const UNITS: &[(&str, f64)] = &[("", 1.0), ("s", 1.0), ("ms", 1e3), ("us", 1e6)];
/// Letters of a name at most.
const NAME_MAX: usize = 32;
/// Letters that a message repeats.
const SHOWN_MAX: usize = 24;

/// Rest of a text, read word by word.
#[derive(Debug)]
pub struct Lexer<'a> {
    rest: &'a str,
    at: Position,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, at: Position { line: 1, column: 1 } }
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Lexeme<'a>, Misread> {
        self.skip_blanks();
        let at = self.at;
        let Some(first) = self.rest.chars().next() else {
            return Ok(Lexeme { token: Token::End, at, text: "" });
        };
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take(length(self.rest, |it| it.is_ascii_alphanumeric() || it == '_'));
            if name.len() > NAME_MAX {
                let expected = format!("at most {NAME_MAX} letters");
                return Err(Misread { at, value: quoted(name), expected });
            }
            return Ok(Lexeme { token: Token::Name(name), at, text: name });
        }
        if first.is_ascii_digit() || first == '.' {
            return self.number(at);
        }
        if let Some(sign) = SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
            let text = self.take(sign.len());
            return Ok(Lexeme { token: Token::Sign(sign), at, text });
        }
        let expected = match first {
            '&' | '|' | '!' => "and, or, not",
            ';' => "nothing: a statement ends where the next one begins",
            '^' => "pow(a, b)",
            _ => "a letter of the language; notes begin with #",
        };
        let character = quoted(&self.rest[..first.len_utf8()]);
        Err(Misread { at, value: character, expected: expected.to_owned() })
    }

    fn number(&mut self, at: Position) -> Result<Lexeme<'a>, Misread> {
        let digits = |text: &str| length(text, |it| it.is_ascii_digit());
        let mut end = digits(self.rest);
        if self.rest[end..].starts_with('.') {
            end += 1 + digits(&self.rest[end + 1..]);
        }
        let behind = self.rest[end..].strip_prefix(['e', 'E']);
        if let Some(power) = behind {
            let sign = usize::from(power.starts_with(['+', '-']));
            let more = digits(&power[sign..]);
            if more > 0 {
                end += 1 + sign + more;
            }
        }
        let tail =
            length(&self.rest[end..], |it| it.is_ascii_alphanumeric() || it == '_' || it == '.');
        let text = self.take(end + tail);
        let (figures, unit) = text.split_at(end);
        let value = figures.parse::<f64>().ok().filter(|value| value.is_finite());
        let unit = UNITS.iter().find(|(known, _)| *known == unit);
        match (value, unit) {
            (Some(value), Some((_, divisor))) => {
                Ok(Lexeme { token: Token::Number(value / divisor), at, text })
            }
            (None, _) | (_, None) => {
                let expected = "a number such as 0.75, 1e-3 or 200ms (s, ms, us)".to_owned();
                Err(Misread { at, value: quoted(text), expected })
            }
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let blanks = length(self.rest, char::is_whitespace);
            self.take(blanks);
            if !self.rest.starts_with('#') {
                return;
            }
            self.take(length(self.rest, |it| it != '\n'));
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (text, rest) = self.rest.split_at(bytes);
        for character in text.chars() {
            if character == '\n' {
                self.at = Position { line: self.at.line.saturating_add(1), column: 1 };
            } else {
                self.at.column = self.at.column.saturating_add(1);
            }
        }
        self.rest = rest;
        text
    }
}

/// Bytes of the characters at the beginning of which all are such.
fn length(text: &str, such: impl Fn(char) -> bool) -> usize {
    text.find(|it| !such(it)).unwrap_or(text.len())
}

/// A piece of the text for a message.
pub fn quoted(text: &str) -> String {
    let head: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if head.len() < text.len() { "..." } else { "" };
    format!("{:?}", format!("{head}{dots}"))
}
