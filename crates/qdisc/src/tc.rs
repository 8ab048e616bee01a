//! tc(8)'s words both ways: what follows a discipline's kind, read word by word, and written.

use dragstrip_units::tc::text::{parse_percent, parse_rate, parse_size, parse_time};
use dragstrip_units::{
    ByteCount, Duration, ParseError, Problem, Rate, format_percent, format_rate, format_size,
    format_time, suggest,
};
use std::fmt::{self, Display};
use std::str::FromStr;

/// The words of a text, and how a value behind one of them is read.
#[derive(Debug)]
pub struct Words<'a> {
    rest: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
}

impl<'a> Words<'a> {
    /// The words of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.split_whitespace().peekable() }
    }

    /// The next word, taken.
    #[expect(
        clippy::should_implement_trait,
        reason = "nobody iterates: a word decides how the next is read"
    )]
    pub fn next(&mut self) -> Option<&'a str> {
        self.rest.next()
    }

    /// The next word, left where it is.
    pub fn peek(&mut self) -> Option<&'a str> {
        self.rest.peek().copied()
    }

    /// `NEXT_IS_NUMBER` of iproute2: an optional number follows.
    pub fn number_follows(&mut self) -> bool {
        self.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    }

    /// The value of `word`, read by `parse`.
    ///
    /// # Errors
    /// Nothing follows, or `parse` cannot read it.
    pub fn value<T>(
        &mut self,
        word: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<T, Problem> {
        let text = self.next().ok_or_else(|| {
            wrong(format!("{word:?} at the end"), format!("a value after {word:?}"))
        })?;
        parse(text).map_err(|error| wrong(format!("\"{word} {text}\""), error.expected))
    }

    /// A rate, in bit/s.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn rate(&mut self, word: &str) -> Result<u64, Problem> {
        self.value(word, parse_rate).map(Rate::bits_per_second)
    }

    /// A size, in bytes.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn size(&mut self, word: &str) -> Result<u64, Problem> {
        self.value(word, parse_size).map(|size| size.get())
    }

    /// tc reads a number of packets as it reads a size: `1k` is 1024.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn packets(&mut self, word: &str) -> Result<u32, Problem> {
        self.value(word, |text| {
            let fits = parse_size(text).ok().and_then(|size| u32::try_from(size.get()).ok());
            fits.ok_or_else(|| unreadable(text, "a number of packets"))
        })
    }

    /// A time, in nanoseconds.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn time(&mut self, word: &str) -> Result<u64, Problem> {
        self.value(word, parse_time).map(|span| span.as_nanos())
    }

    /// A percentage, as a number from 0 to 1.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn share(&mut self, word: &str) -> Result<f64, Problem> {
        self.value(word, parse_percent)
    }

    /// A share if a number follows, else `default`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn share_or(&mut self, word: &str, default: f64) -> Result<f64, Problem> {
        if self.number_follows() { self.share(word) } else { Ok(default) }
    }

    /// A plain whole number.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn whole<T: FromStr>(&mut self, word: &str) -> Result<T, Problem> {
        self.value(word, |text| {
            text.parse().map_err(|_| unreadable(text, "a whole number without a unit"))
        })
    }
}

/// A problem of the text: `value` where `expected` would be right.
pub fn wrong(value: impl Display, expected: impl Into<String>) -> Problem {
    Problem::new("", value, expected)
}

/// `text` cannot be read.
#[must_use]
pub fn unreadable(text: &str, expected: &str) -> ParseError {
    ParseError { value: text.to_owned(), expected: expected.to_owned() }
}

/// `word` is none of `accepted`; those of `unmodelled` exist in tc.
#[must_use]
pub fn unknown(word: &str, accepted: &[&str], unmodelled: &[&str]) -> Problem {
    let list = accepted.join(", ");
    let expected = if unmodelled.contains(&word) {
        format!("none of it: the simulator does not model {word:?}; accepted here: {list}")
    } else if accepted.is_empty() {
        "nothing more".to_owned()
    } else {
        suggest(word, accepted.iter().copied(), &format!("one of: {list}"))
    };
    wrong(format!("{word:?}"), expected)
}

/// A mandatory rate is not there.
#[must_use]
pub fn missing(word: &str, of: &str) -> Problem {
    wrong(format!("no {word:?}"), format!("{of} to have one, such as \"{word} 1mbit\""))
}

/// Words with a blank between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// A discipline's kind, without any words yet.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self(kind.to_owned())
    }

    /// One word more, unless it is empty.
    #[must_use]
    pub fn word(mut self, word: &str) -> Self {
        if !word.is_empty() {
            self.0.push(' ');
            self.0.push_str(word);
        }
        self
    }

    /// A sign right behind the last word.
    #[must_use]
    pub fn joined(mut self, sign: &str) -> Self {
        self.0.push_str(sign);
        self
    }

    /// A word and its value.
    #[must_use]
    pub fn pair(self, word: &str, value: impl ToString) -> Self {
        self.word(word).word(&value.to_string())
    }

    /// A word and its value, if there is one.
    #[must_use]
    pub fn optional(self, word: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.pair(word, value),
            None => self,
        }
    }

    /// `ecn` or `noecn`.
    #[must_use]
    pub fn ecn(self, on: bool) -> Self {
        self.word(if on { "ecn" } else { "noecn" })
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `value`, where it is not what tc takes for granted.
pub fn unless(usual: bool, value: impl ToString) -> Option<String> {
    (!usual).then(|| value.to_string())
}

/// A share in percent; nothing for zero.
#[must_use]
pub fn share_unless_zero(share: f64) -> String {
    if share == 0.0 { String::new() } else { format_percent(share) }
}

/// A rate in tc's words.
#[must_use]
pub fn rate(bps: u64) -> String {
    Rate::from_bits_per_second(bps).map_or_else(|| "0bit".to_owned(), format_rate)
}

/// A size in tc's words.
#[must_use]
pub fn size(bytes: u64) -> String {
    format_size(ByteCount::new(bytes))
}

/// A time in tc's words.
#[must_use]
pub fn time(ns: u64) -> String {
    format_time(Duration::from_nanos(ns))
}
