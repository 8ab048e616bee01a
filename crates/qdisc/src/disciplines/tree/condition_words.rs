//! `basic match EXPRESSION`: ematches in tc's words (tc-ematch(8), m_ematch.c and em_*.c of iproute2).
//!
//! `A and B or C` is `A and (B or C)`: the kernel takes the rest behind a word as one (`__tcf_em_tree_match`).

use super::actions::{Does, rest};
use super::filter::{MODELLED, NEXT_HEADER, NOTHING_ELSE, octets};
use super::types::{Condition, Field, Matching, Operand};
use super::words::{key, number};
use crate::tc::{Words, unknown, wrong};
use dragstrip_units::Problem;

/// Most brackets within each other.
const DEPTH_MAX: usize = 16;
/// Length of Ethernet's header.
const ETHERNET_BYTES: u32 = 14;
const EXAMPLE: &str = "such as: basic match 'cmp(u16 at 2 layer 1 gt 100)'";

/// A bracket, a text in quotes or a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Quoted(String),
    Word(String),
}

/// `basic match EXPRESSION classid X:Y`.
pub(super) fn basic(words: &mut Words<'_>, major: u16) -> Result<(Vec<Matching>, Does), Problem> {
    if words.peek() != Some("match") {
        return Ok((vec![Matching::Everything {}], rest(words, major, &["match"])?));
    }
    let _ = words.next();
    let text = expression(words);
    let mut tokens = Tokens { rest: tokens(&text)?, at: 0 };
    let condition = tokens.chain(0)?;
    if let Some(token) = tokens.next() {
        return Err(wrong(quoted(&token), format!("and, or, or the end of the match, {EXAMPLE}")));
    }
    Ok((vec![Matching::Basic { condition }], rest(words, major, &[])?))
}

fn joins(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "and" | "&&" => Some(true),
        "or" | "||" => Some(false),
        _ => None,
    }
}

fn negates(word: &str) -> bool {
    word == "!" || word.eq_ignore_ascii_case("not")
}

/// The words of a match, up to those that are the filter's again. A shell's quotes around it may be there or not.
fn expression(words: &mut Words<'_>) -> String {
    let (mut text, mut depth, mut goes_on) = (String::new(), 0_i32, true);
    while let Some(word) = words.peek() {
        let plain = word.trim_matches('\'');
        if !goes_on && depth <= 0 && joins(plain).is_none() && !plain.starts_with('(') {
            break;
        }
        let _ = words.next();
        depth += plain.matches('(').count() as i32 - plain.matches(')').count() as i32;
        // A name may have a blank in front of its bracket.
        goes_on = joins(plain).is_some() || negates(plain) || (depth == 0 && !plain.contains(')'));
        text.push_str(plain);
        text.push(' ');
    }
    let text = text.trim_end();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        rest = match letter {
            '(' | ')' => {
                tokens.push(if letter == '(' { Token::Open } else { Token::Close });
                behind
            }
            '"' => {
                let Some((inside, after)) = behind.split_once('"') else {
                    return Err(wrong("\"", "the quote's end"));
                };
                tokens.push(Token::Quoted(inside.to_owned()));
                after
            }
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || "()\"".contains(c));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                tokens.push(Token::Word(word.to_owned()));
                after
            }
        }
        .trim_start();
    }
    Ok(tokens)
}

fn quoted(token: &Token) -> String {
    match token {
        Token::Open => "\"(\"".to_owned(),
        Token::Close => "\")\"".to_owned(),
        Token::Quoted(text) | Token::Word(text) => format!("{text:?}"),
    }
}

struct Tokens {
    rest: Vec<Token>,
    at: usize,
}

impl Tokens {
    fn next(&mut self) -> Option<Token> {
        let token = self.rest.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<&Token> {
        self.rest.get(self.at)
    }

    fn word(&mut self, expected: &str) -> Result<String, Problem> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            Some(token) => Err(wrong(quoted(&token), expected)),
            None => Err(wrong("the end of the match", format!("{expected}, {EXAMPLE}"))),
        }
    }

    fn number(&mut self, of: &str) -> Result<u32, Problem> {
        let word = self.word(&format!("a number after {of:?}"))?;
        number(&word).map_err(|error| wrong(format!("\"{of} {word}\""), error.expected))
    }

    /// Conditions with `and` or `or` between them.
    fn chain(&mut self, depth: usize) -> Result<Condition, Problem> {
        if depth > DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} brackets within each other");
            return Err(wrong("\"(\"", expected));
        }
        let mut parts = vec![self.term(depth)?];
        let mut joins_before: Vec<bool> = Vec::new();
        while let Some(Token::Word(word)) = self.peek()
            && let Some(is_and) = joins(word)
        {
            self.at += 1;
            joins_before.push(is_and);
            parts.push(self.term(depth)?);
        }
        // Each change of the word opens a bracket.
        if depth + joins_before.chunk_by(|before, after| before == after).count() > DEPTH_MAX + 1 {
            let expected = format!("at most {DEPTH_MAX} turns from one to the other and brackets");
            return Err(wrong("\"and\" and \"or\" in turn", expected));
        }
        // From the end: what stands behind a word is one condition.
        let mut whole = parts.pop().expect("it begins with one");
        for same in joins_before.chunk_by(|before, after| before == after).rev() {
            let mut of = parts.split_off(parts.len() - same.len());
            // Brackets with the same word between their conditions are none.
            match (same[0], whole) {
                (true, Condition::All { of: more }) | (false, Condition::Any { of: more }) => {
                    of.extend(more);
                }
                (_, other) => of.push(other),
            }
            whole = if same[0] { Condition::All { of } } else { Condition::Any { of } };
        }
        Ok(whole)
    }

    /// A condition, or several in brackets.
    fn term(&mut self, depth: usize) -> Result<Condition, Problem> {
        match self.next() {
            Some(Token::Open) => {
                let inside = self.chain(depth + 1)?;
                match self.next() {
                    Some(Token::Close) => Ok(inside),
                    token => Err(unclosed(token)),
                }
            }
            Some(Token::Word(word)) if negates(&word) => {
                if depth > DEPTH_MAX {
                    let expected =
                        format!("at most {DEPTH_MAX} of them and of brackets within each other");
                    return Err(wrong("\"not\"", expected));
                }
                Ok(Condition::Not { of: Box::new(self.term(depth + 1)?) })
            }
            Some(Token::Word(name)) => {
                if self.next() != Some(Token::Open) {
                    return Err(wrong(
                        format!("{name:?}"),
                        format!("a match with brackets, {EXAMPLE}"),
                    ));
                }
                let condition = match name.as_str() {
                    "cmp" => self.cmp()?,
                    "meta" => self.meta()?,
                    "u32" => self.u32()?,
                    "nbyte" => self.nbyte()?,
                    _ => {
                        let other = &["ipset", "text", "ipt", "canid"];
                        return Err(unknown(&name, &["cmp", "meta", "u32", "nbyte"], other));
                    }
                };
                match self.next() {
                    Some(Token::Close) => Ok(condition),
                    token => Err(unclosed(token)),
                }
            }
            Some(token) => Err(wrong(quoted(&token), format!("a match, {EXAMPLE}"))),
            None => Err(wrong("the end of the match", format!("a match, {EXAMPLE}"))),
        }
    }

    fn operand(&mut self) -> Result<Operand, Problem> {
        let word = self.word("eq, gt or lt")?;
        match word.as_str() {
            "eq" => Ok(Operand::Equal),
            "gt" => Ok(Operand::Greater),
            "lt" => Ok(Operand::Less),
            _ => Err(unknown(&word, &["eq", "gt", "lt"], &[])),
        }
    }

    /// Position of octets from IP's header on, of those in a layer of this name.
    fn position(&mut self, at: u32, layer: Option<&str>) -> Result<u16, Problem> {
        let position = match layer {
            None | Some("1" | "network") => Some(at),
            Some("0" | "link") => at.checked_sub(ETHERNET_BYTES),
            Some("2" | "transport") => at.checked_add(u32::from(NEXT_HEADER)),
            Some(other) => {
                return Err(unknown(other, &["link", "network", "transport"], &[]));
            }
        };
        position.and_then(|at| u16::try_from(at).ok()).filter(|&at| at < 4096).ok_or_else(|| {
            wrong(
                format!("\"at {at}\""),
                "octets of IP's header or behind it: no other is modelled",
            )
        })
    }

    /// `cmp(u8|u16|u32 at N [layer L] [mask M] [trans] eq|gt|lt VALUE)`.
    fn cmp(&mut self) -> Result<Condition, Problem> {
        let width = self.width()?;
        let at = self.at()?;
        let (mut layer, mut mask) = (None, None);
        loop {
            match self.peek() {
                Some(Token::Word(word)) if word == "layer" => {
                    self.at += 1;
                    layer = Some(self.word("link, network or transport")?);
                }
                Some(Token::Word(word)) if word == "mask" => {
                    self.at += 1;
                    mask = Some(self.number("mask")?).filter(|&mask| mask != 0);
                }
                // The value is read as the machine has its numbers.
                Some(Token::Word(word)) if word == "trans" => {
                    return Err(unknown("trans", &["layer", "mask", "eq", "gt", "lt"], &["trans"]));
                }
                _ => break,
            }
        }
        let operand = self.operand()?;
        let value = self.number("eq, gt or lt")?;
        let offset = self.position(at, layer.as_deref())?;
        let ones = u32::MAX >> (32 - u32::from(width));
        modelled(offset, width, mask.unwrap_or(ones) & ones, operand, value)
    }

    /// `u32(u8|u16|u32 VALUE MASK at N)`.
    fn u32(&mut self) -> Result<Condition, Problem> {
        let width = self.width()?;
        let (value, mask) = (self.number("u32")?, self.number("u32")?);
        let at = self.at()?;
        let offset = self.position(at, None)?;
        let key = key(value, mask, offset, u32::from(width));
        modelled(key.offset, 32, key.mask, Operand::Equal, key.value)
    }

    /// `nbyte("TEXT" at N [layer L])`: these octets.
    fn nbyte(&mut self) -> Result<Condition, Problem> {
        let text = match self.next() {
            Some(Token::Quoted(text) | Token::Word(text)) if !text.is_empty() => text,
            token => return Err(unclosed(token)),
        };
        let at = self.at()?;
        let mut layer = None;
        if self.peek() == Some(&Token::Word("layer".to_owned())) {
            self.at += 1;
            layer = Some(self.word("link, network or transport")?);
        }
        let offset = self.position(at, layer.as_deref())?;
        let octets = (offset..)
            .zip(text.bytes())
            .map(|(at, octet)| modelled(at, 8, 0xff, Operand::Equal, u32::from(octet)));
        Ok(Condition::all(octets.collect::<Result<Vec<_>, _>>()?.into_iter()))
    }

    /// `meta(NAME [shift N] [mask M] eq|gt|lt VALUE)`.
    fn meta(&mut self) -> Result<Condition, Problem> {
        let name = self.word("a field, such as priority")?;
        let field = match name.as_str() {
            "priority" => Field::Priority {},
            "nf_mark" => Field::Mark {},
            "pkt_len" => Field::Length {},
            _ => {
                let other =
                    &["protocol", "random", "dev", "tc_index", "rt_iif", "sk_family", "vlan"];
                return Err(unknown(&name, &["priority", "nf_mark", "pkt_len"], other));
            }
        };
        let (mut shift, mut mask) = (0, u32::MAX);
        while let Some(Token::Word(word)) = self.peek().cloned() {
            match word.as_str() {
                "shift" => {
                    self.at += 1;
                    shift = self.number("shift")?;
                }
                "mask" => {
                    self.at += 1;
                    mask = self.number("mask")?;
                }
                _ => break,
            }
        }
        let operand = self.operand()?;
        let value = self.number("eq, gt or lt")?;
        // Shifted back, the order of numbers is the same.
        let back = |number: u32| number.checked_shl(shift).filter(|back| back >> shift == number);
        let Some(value) = back(value) else {
            return Err(wrong(
                format!("\"shift {shift}\""),
                "a shift that leaves the value's bits",
            ));
        };
        let mask = if shift < 32 { mask << shift } else { 0 };
        Ok(Condition::Compare { field, mask, operand, value })
    }

    fn width(&mut self) -> Result<u8, Problem> {
        let word = self.word("u8, u16 or u32")?;
        match word.as_str() {
            "u8" => Ok(8),
            "u16" => Ok(16),
            "u32" => Ok(32),
            _ => Err(unknown(&word, &["u8", "u16", "u32"], &[])),
        }
    }

    fn at(&mut self) -> Result<u32, Problem> {
        let word = self.word("\"at\" with a position")?;
        if word != "at" {
            return Err(unknown(&word, &["at"], &[]));
        }
        self.number("at")
    }
}

fn unclosed(token: Option<Token>) -> Problem {
    let got = token.map_or_else(|| "the end of the match".to_owned(), |token| quoted(&token));
    wrong(got, format!("\")\" behind the match, {EXAMPLE}"))
}

/// A comparison of octets; refuses what the simulation does not know of a packet.
fn modelled(
    offset: u16,
    width: u8,
    mask: u32,
    operand: Operand,
    value: u32,
) -> Result<Condition, Problem> {
    if octets(offset, width).is_none_or(|known| mask & !known != 0) {
        let expected = format!("{MODELLED}, within four octets: {NOTHING_ELSE}");
        return Err(wrong(format!("\"u{width} at {offset}\""), expected));
    }
    Ok(Condition::Compare { field: Field::Octets { offset, width }, mask, operand, value })
}
