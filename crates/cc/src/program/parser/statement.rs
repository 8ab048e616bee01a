//! Statements.

use super::{Parser, Variable};
use crate::program::code::{Op, Register};
use crate::program::lexer::{Token, quoted};
use crate::program::words::{Hook, WORDS, Word, WordRow};
use crate::program::{Misread, Position};
use dragstrip_units::suggest;

const STATEMENTS: &str = "let, if, a name to set, or }";

impl<'a> Parser<'a> {
    /// `{ ... }`. What `let` names in it ends with it.
    pub(super) fn block(&mut self) -> Result<(), Misread> {
        self.sign("{")?;
        let (mark, known) = (self.top, self.lets.len());
        self.nested(|parser| {
            while !parser.is_sign("}") {
                parser.statement()?;
            }
            Ok(())
        })?;
        self.top = mark;
        self.lets.truncate(known);
        self.step()
    }

    fn statement(&mut self) -> Result<(), Misread> {
        match self.next.token {
            Token::Name("let") => self.declare(),
            Token::Name("if") => self.choose(),
            Token::Name(name) => self.assign(name),
            Token::Number(_) | Token::Sign(_) | Token::End => Err(self.wrong(STATEMENTS)),
        }
    }

    /// `let NAME = ...`.
    fn declare(&mut self) -> Result<(), Misread> {
        self.step()?;
        let name = self.new_name()?;
        self.sign("=")?;
        let register = self.borrow_register()?;
        self.assign_to(register)?;
        self.lets.push(Variable { name, register, set: true });
        Ok(())
    }

    /// `if ... { } else if ... { } else { }`.
    fn choose(&mut self) -> Result<(), Misread> {
        let mut ends = Vec::new();
        loop {
            self.step()?;
            let mark = self.top;
            let condition = self.condition()?;
            self.top = mark;
            let over =
                self.emit(Op::JumpIfFalse { a: condition.register, target: 0 }, condition.at)?;
            self.block()?;
            if !self.is_word("else") {
                self.land(over);
                break;
            }
            ends.push(self.emit(Op::Jump { target: 0 }, self.next.at)?);
            self.land(over);
            self.step()?;
            if !self.is_word("if") {
                self.block()?;
                break;
            }
        }
        for end in ends {
            self.land(end);
        }
        Ok(())
    }

    /// `NAME = ...`.
    fn assign(&mut self, name: &'a str) -> Result<(), Misread> {
        let at = self.next.at;
        let declared = self.kept.iter().chain(&self.lets).find(|variable| variable.name == name);
        if let Some(&Variable { register, set, name: _ }) = declared {
            if !set {
                return Err(self.wrong("a name to set; a param stays as it is"));
            }
            self.step()?;
            self.sign("=")?;
            return self.assign_to(register);
        }
        let Some(row) = WORDS.iter().find(|row| row.name == name) else {
            let settable = WORDS.iter().filter(|row| row.set).map(|row| row.name);
            let variables =
                self.kept.iter().chain(&self.lets).filter(|it| it.set).map(|it| it.name);
            let candidates: Vec<&str> = settable.chain(variables).chain(["let", "if"]).collect();
            return Err(self.wrong(&suggest(
                name,
                candidates,
                &format!("{STATEMENTS}; a new name begins with let"),
            )));
        };
        self.may_set(row, at)?;
        self.step()?;
        self.sign("=")?;
        let register = self.word_register(row, at)?;
        let stores = &mut self.code.hook_mut(self.hook).stores;
        if !stores.contains(&(row.word, register)) {
            stores.push((row.word, register));
        }
        let mark = self.top;
        let value = self.number()?;
        self.top = mark;
        self.emit(Op::Store { to: register, a: value.register }, at)?;
        Ok(())
    }

    /// Checks that the word can be set, here.
    fn may_set(&self, row: &WordRow, at: Position) -> Result<(), Misread> {
        let wrong = |expected: String| Err(Misread { at, value: quoted(row.name), expected });
        if !row.set {
            let settable: Vec<&str> =
                WORDS.iter().filter(|row| row.set).map(|row| row.name).collect();
            return wrong(format!(
                "one of {}, or a name of your own: {} is only read",
                settable.join(", "),
                row.name
            ));
        }
        let reducing = matches!(self.hook, Hook::Loss | Hook::Timeout);
        if row.word == Word::Cwnd && reducing {
            return wrong(
                "ssthresh, count or a state: the endpoint itself takes the window down".to_owned(),
            );
        }
        Ok(())
    }

    /// `= NUMBER` into a register.
    fn assign_to(&mut self, register: Register) -> Result<(), Misread> {
        let mark = self.top;
        let value = self.number()?;
        self.top = mark;
        if value.own
            && let Some(to) = self.last_result(value.register)
        {
            *to = register;
            return Ok(());
        }
        self.emit(Op::Move { to: register, a: value.register }, value.at)?;
        Ok(())
    }
}
