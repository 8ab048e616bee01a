//! From tokens to operations, in one pass.
//!
//! ```text
//! program    = { "state" NAME "=" number | "param" NAME "=" number | "on" HOOK block }
//! block      = "{" { statement } "}"
//! statement  = "let" NAME "=" sum | NAME "=" sum | "if" either block { "else" "if" either block } [ "else" block ]
//! either     = both { "or" both }
//! both       = inverse { "and" inverse }
//! inverse    = "not" inverse | sum [ ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum ]
//! sum        = product { ( "+" | "-" ) product }
//! product    = signed { ( "*" | "/" ) signed }
//! signed     = "-" signed | NUMBER | NAME | FUNCTION "(" sum { "," sum } ")" | "(" either ")"
//! number     = [ "-" ] NUMBER
//! ```
//!
//! Registers: what a program keeps (state, parameters, constants, words) counts up from 0, what a block has in the making
//! (`let`, parts of expressions) down from the other end.

mod emit;
mod expression;
mod statement;

use super::code::{Code, REGISTERS, Register};
use super::lexer::{Lexeme, Lexer, Token, quoted};
use super::words::{HOOKS, Hook, Word};
use super::{Misread, Position, Program, Setting};
use dragstrip_units::suggest;

/// Brackets and blocks within each other at most.
const NESTING_MAX: usize = 32;
const KEYWORDS: &[&str] = &["on", "state", "param", "let", "if", "else", "and", "or", "not"];
const PARTS: &str = "on, state or param";

/// A name of the text's own.
#[derive(Debug)]
struct Variable<'a> {
    name: &'a str,
    register: Register,
    /// It may be set again.
    set: bool,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token that comes next.
    next: Lexeme<'a>,
    code: Code,
    settings: Vec<Setting>,
    /// `state` and `param`.
    kept: Vec<Variable<'a>>,
    /// `let`, innermost last.
    lets: Vec<Variable<'a>>,
    constants: Vec<(u64, Register)>,
    words: Vec<(Word, Register)>,
    /// Hooks that there are.
    hooks: Vec<Hook>,
    /// The hook that is being read.
    hook: Hook,
    /// Registers from 0 that are taken, and from the other end: now, and ever.
    bottom: usize,
    top: usize,
    lowest: usize,
    depth: usize,
    /// First use of a word that only `on control` has.
    needs_control: Option<(Position, &'static str)>,
}

pub fn parse(text: &str) -> Result<Program, Misread> {
    let mut lexer = Lexer::new(text);
    let next = lexer.next()?;
    let mut parser = Parser {
        lexer,
        next,
        code: Code::default(),
        settings: Vec::new(),
        kept: Vec::new(),
        lets: Vec::new(),
        constants: Vec::new(),
        words: Vec::new(),
        hooks: Vec::new(),
        hook: Hook::Start,
        bottom: 0,
        top: REGISTERS,
        lowest: REGISTERS,
        depth: 0,
        needs_control: None,
    };
    parser.program()?;
    let state_name = |kept: &Variable<'_>| kept.set.then(|| kept.name.to_owned());
    let states = parser.kept.iter().filter_map(state_name).collect();
    let controls = parser.hooks.contains(&Hook::Control);
    Ok(Program { code: parser.code, settings: parser.settings, states, controls })
}

impl<'a> Parser<'a> {
    fn program(&mut self) -> Result<(), Misread> {
        while self.next.token != Token::End {
            match self.next.token {
                Token::Name("on") => self.on()?,
                Token::Name("state") => self.keep(true)?,
                Token::Name("param") => self.keep(false)?,
                Token::Name(word) => {
                    return Err(self.wrong(&suggest(word, ["on", "state", "param"], PARTS)));
                }
                Token::Number(_) | Token::Sign(_) | Token::End => return Err(self.wrong(PARTS)),
            }
        }
        let has = |hook| self.hooks.contains(&hook);
        if !has(Hook::Ack) && !has(Hook::Control) {
            return Err(self.wrong("a block `on ack { ... }`, where the window grows"));
        }
        if has(Hook::Ack) && !has(Hook::Loss) {
            return Err(self.wrong("a block `on loss { ... }` that sets ssthresh"));
        }
        if let Some((at, word)) = self.needs_control.filter(|_| !has(Hook::Control)) {
            let expected =
                format!("a program with `on control` instead of `on ack`: only that has {word}");
            return Err(Misread { at, value: quoted(word), expected });
        }
        Ok(())
    }

    /// `state NAME = NUMBER` or `param NAME = NUMBER`.
    fn keep(&mut self, set: bool) -> Result<(), Misread> {
        self.step()?;
        let name = self.new_name()?;
        self.sign("=")?;
        let sign = self.is_sign("-");
        if sign {
            self.step()?;
        }
        let Token::Number(number) = self.next.token else { return Err(self.wrong("a number")) };
        self.step()?;
        let value = if sign { -number } else { number };
        let register = self.keep_register()?;
        self.code.registers[usize::from(register)] = value;
        self.kept.push(Variable { name, register, set });
        if !set {
            self.settings.push(Setting { name: name.to_owned(), default: value, register });
        }
        Ok(())
    }

    /// `on HOOK { ... }`.
    fn on(&mut self) -> Result<(), Misread> {
        self.step()?;
        let names = || HOOKS.iter().map(|row| row.name);
        let list = || format!("one of {}", names().collect::<Vec<_>>().join(", "));
        let Token::Name(word) = self.next.token else { return Err(self.wrong(&list())) };
        let Some(row) = HOOKS.iter().find(|row| row.name == word) else {
            return Err(self.wrong(&suggest(word, names(), &list())));
        };
        if self.hooks.contains(&row.hook) {
            return Err(self.wrong("every hook once"));
        }
        let exclusive_hook = match row.hook {
            Hook::Ack => Some(Hook::Control),
            Hook::Control => Some(Hook::Ack),
            Hook::Start | Hook::Round | Hook::Loss | Hook::Timeout | Hook::Idle => None,
        };
        if exclusive_hook.is_some_and(|exclusive_hook| self.hooks.contains(&exclusive_hook)) {
            return Err(self.wrong("either `on ack` or `on control`: with control the window is the program's at every ACK"));
        }
        let at = self.next.at;
        self.hooks.push(row.hook);
        self.hook = row.hook;
        self.step()?;
        self.block()?;
        let stores = &self.code.hook(row.hook).stores;
        if row.hook == Hook::Loss && !stores.iter().any(|(word, _)| *word == Word::Ssthresh) {
            let expected = "`ssthresh = ...` in it: how large the window may stay".to_owned();
            return Err(Misread { at, value: "\"loss\"".to_owned(), expected });
        }
        Ok(())
    }

    /// A name that nothing has yet.
    fn new_name(&mut self) -> Result<&'a str, Misread> {
        let Token::Name(name) = self.next.token else {
            return Err(self.wrong("a name"));
        };
        let declared = self.kept.iter().chain(&self.lets).any(|known| known.name == name);
        if declared || self.is_taken(name) {
            return Err(self.wrong("a name that nothing has yet"));
        }
        self.step()?;
        Ok(name)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.next.token, Token::Sign(next) if next == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.next.token, Token::Name(next) if next == word)
    }

    /// The next token must be this sign.
    fn sign(&mut self, sign: &str) -> Result<(), Misread> {
        if self.is_sign(sign) { self.step() } else { Err(self.wrong(sign)) }
    }

    fn step(&mut self) -> Result<(), Misread> {
        self.next = self.lexer.next()?;
        Ok(())
    }

    /// Something else than the next token would be right.
    fn wrong(&self, expected: &str) -> Misread {
        let token_text = match self.next.token {
            Token::End => "the end of the text".to_owned(),
            Token::Name(_) | Token::Number(_) | Token::Sign(_) => quoted(self.next.text),
        };
        Misread { at: self.next.at, value: token_text, expected: expected.to_owned() }
    }

    /// One level deeper.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Misread>,
    ) -> Result<T, Misread> {
        if self.depth == NESTING_MAX {
            return Err(
                self.wrong(&format!("at most {NESTING_MAX} brackets and blocks within each other"))
            );
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}
