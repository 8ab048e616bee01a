//! Expressions.

use super::Parser;
use super::emit::Value;
use crate::program::code::{Comparison, FUNCTIONS, Function, Op, Register};
use crate::program::lexer::{Token, quoted};
use crate::program::words::WORDS;
use crate::program::{Misread, Position};
use dragstrip_units::suggest;

/// Signs of comparisons; the last is whether the sides are exchanged.
const COMPARISONS: &[(&str, Comparison, bool)] = &[
    ("<", Comparison::Less, false),
    ("<=", Comparison::LessOrEqual, false),
    (">", Comparison::Less, true),
    (">=", Comparison::LessOrEqual, true),
    ("==", Comparison::Equal, false),
    ("!=", Comparison::NotEqual, false),
];
const SUMS: &[(&str, Function)] = &[("+", Function::Add), ("-", Function::Subtract)];
const PRODUCTS: &[(&str, Function)] = &[("*", Function::Multiply), ("/", Function::Divide)];

impl Parser<'_> {
    /// A number.
    pub(super) fn number(&mut self) -> Result<Value, Misread> {
        let value = self.sum()?;
        self.must_be(value, false)?;
        Ok(value)
    }

    /// Something true or false.
    pub(super) fn condition(&mut self) -> Result<Value, Misread> {
        let value = self.either()?;
        self.must_be(value, true)?;
        Ok(value)
    }

    fn must_be(&self, value: Value, truth: bool) -> Result<(), Misread> {
        if value.truth == truth {
            return Ok(());
        }
        let (shown_value, expected) = if truth {
            ("a number", "a condition, such as cwnd < ssthresh")
        } else {
            ("a condition", "a number")
        };
        Err(Misread { at: value.at, value: shown_value.to_owned(), expected: expected.to_owned() })
    }

    fn either(&mut self) -> Result<Value, Misread> {
        self.joined("or", Self::conjunction, |a, target| Op::JumpIfTrue { a, target })
    }

    fn conjunction(&mut self) -> Result<Value, Misread> {
        self.joined("and", Self::inverse, |a, target| Op::JumpIfFalse { a, target })
    }

    /// `part { word part }`; what comes later counts only if what came before has left it open.
    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Value, Misread>,
        jump: fn(Register, u16) -> Op,
    ) -> Result<Value, Misread> {
        let mark = self.top;
        let mut value = part(self)?;
        while self.is_word(word) {
            self.must_be(value, true)?;
            if !value.own {
                self.top = mark;
                let to = self.borrow_register()?;
                self.emit(Op::Move { to, a: value.register }, value.at)?;
                value = Value { register: to, own: true, ..value };
            }
            let over = self.emit(jump(value.register, 0), value.at)?;
            self.step()?;
            let mark_of_value = self.top;
            let more = part(self)?;
            self.must_be(more, true)?;
            self.emit(Op::Move { to: value.register, a: more.register }, more.at)?;
            self.top = mark_of_value;
            self.land(over);
        }
        Ok(value)
    }

    fn inverse(&mut self) -> Result<Value, Misread> {
        if self.is_word("not") {
            let at = self.next.at;
            self.step()?;
            let mark = self.top;
            let value = self.nested(Self::inverse)?;
            self.must_be(value, true)?;
            self.top = mark;
            let to = self.borrow_register()?;
            self.emit(Op::Not { to, a: value.register }, at)?;
            return Ok(Value { register: to, truth: true, own: true, at });
        }
        let mark = self.top;
        let left = self.sum()?;
        let Token::Sign(sign) = self.next.token else { return Ok(left) };
        let Some((_, how, exchanged)) = COMPARISONS.iter().find(|(known, _, _)| *known == sign)
        else {
            if sign == "=" && left.truth {
                return Ok(left);
            }
            return if sign == "=" { Err(self.wrong("== to compare")) } else { Ok(left) };
        };
        let at = self.next.at;
        self.must_be(left, false)?;
        self.step()?;
        let right = self.sum()?;
        self.must_be(right, false)?;
        self.top = mark;
        let to = self.borrow_register()?;
        let (a, b) = if *exchanged {
            (right.register, left.register)
        } else {
            (left.register, right.register)
        };
        self.emit(Op::Compare { how: *how, to, a, b }, at)?;
        Ok(Value { register: to, truth: true, own: true, at: left.at })
    }

    fn sum(&mut self) -> Result<Value, Misread> {
        self.chain(SUMS, Self::product)
    }

    fn product(&mut self) -> Result<Value, Misread> {
        self.chain(PRODUCTS, Self::signed)
    }

    /// `part { sign part }`, from the left.
    fn chain(
        &mut self,
        signs: &[(&str, Function)],
        part: fn(&mut Self) -> Result<Value, Misread>,
    ) -> Result<Value, Misread> {
        let mark = self.top;
        let mut value = part(self)?;
        loop {
            let Token::Sign(sign) = self.next.token else { return Ok(value) };
            let Some((_, function)) = signs.iter().find(|(known, _)| *known == sign) else {
                return Ok(value);
            };
            let at = self.next.at;
            self.must_be(value, false)?;
            self.step()?;
            let right = part(self)?;
            self.must_be(right, false)?;
            value = self.compute(*function, mark, (value, right), at)?;
        }
    }

    /// The result takes the first register that was free before its parts.
    fn compute(
        &mut self,
        function: Function,
        mark: usize,
        (left, right): (Value, Value),
        at: Position,
    ) -> Result<Value, Misread> {
        self.top = mark;
        let to = self.borrow_register()?;
        self.emit(Op::Compute { function, to, a: left.register, b: right.register }, at)?;
        Ok(Value { register: to, truth: false, own: true, at: left.at })
    }

    fn signed(&mut self) -> Result<Value, Misread> {
        let (at, mark) = (self.next.at, self.top);
        if self.is_sign("-") {
            self.step()?;
            let value = self.nested(Self::signed)?;
            self.must_be(value, false)?;
            return self.compute(Function::Negate, mark, (Value { at, ..value }, value), at);
        }
        if self.is_sign("(") {
            self.step()?;
            let value = self.nested(Self::either)?;
            self.sign(")")?;
            return Ok(Value { at, ..value });
        }
        match self.next.token {
            Token::Number(number) => {
                self.step()?;
                let register = self.constant(number)?;
                Ok(Value { register, truth: false, own: false, at })
            }
            Token::Name(name) => match FUNCTIONS.iter().find(|(known, _, _)| *known == name) {
                Some((_, function, count)) => self.call(name, *function, *count),
                None => self.name(name),
            },
            Token::Sign(_) | Token::End => Err(self.wrong("a number, a name or (")),
        }
    }

    fn call(&mut self, name: &str, function: Function, count: usize) -> Result<Value, Misread> {
        let (at, mark) = (self.next.at, self.top);
        self.step()?;
        self.sign("(")?;
        let first = self.nested(Self::number)?;
        let mut second = first;
        if count == 2 {
            if !self.is_sign(",") {
                return Err(self.wrong(&format!(", and another number: {name}(a, b)")));
            }
            self.step()?;
            second = self.nested(Self::number)?;
        }
        if !self.is_sign(")") {
            let form = if count == 2 { "a, b" } else { "a" };
            return Err(self.wrong(&format!("): {name}({form})")));
        }
        self.step()?;
        self.compute(function, mark, (Value { at, ..first }, second), at)
    }

    fn name(&mut self, name: &str) -> Result<Value, Misread> {
        let at = self.next.at;
        let variable_named =
            self.kept.iter().chain(&self.lets).find(|variable| variable.name == name);
        if let Some(variable) = variable_named {
            let register = variable.register;
            self.step()?;
            return Ok(Value { register, truth: false, own: false, at });
        }
        let Some(row) = WORDS.iter().find(|row| row.name == name) else {
            let expected = suggest(
                name,
                self.known_names(),
                "a name that has been given, or a word of the language",
            );
            return Err(Misread { at, value: quoted(name), expected });
        };
        self.step()?;
        let register = self.word_register(row, at)?;
        Ok(Value { register, truth: row.truth, own: false, at })
    }
}
