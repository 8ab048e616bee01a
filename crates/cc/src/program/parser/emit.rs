//! Registers and operations.

use super::{KEYWORDS, Parser};
use crate::program::code::{FUNCTIONS, HookCode, OPERATIONS_MAX, Op, Register};
use crate::program::words::{WORDS, WordRow};
use crate::program::{Misread, Position};

/// Location of an expression's result.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub register: Register,
    /// True or false, not a number.
    pub truth: bool,
    /// Made for this expression: it may be overwritten.
    pub own: bool,
    pub at: Position,
}

impl Parser<'_> {
    /// A register to keep.
    pub(super) fn keep_register(&mut self) -> Result<Register, Misread> {
        if self.bottom == self.lowest {
            return Err(self.too_large());
        }
        self.bottom += 1;
        Ok((self.bottom - 1) as Register)
    }

    /// A register for a while: until `top` is where it was.
    pub(super) fn borrow_register(&mut self) -> Result<Register, Misread> {
        if self.top == self.bottom {
            return Err(self.too_large());
        }
        self.top -= 1;
        self.lowest = self.lowest.min(self.top);
        Ok(self.top as Register)
    }

    fn too_large(&self) -> Misread {
        self.wrong("fewer names and numbers: they do not fit into 256 registers")
    }

    fn hook_code(&mut self) -> &mut HookCode {
        self.code.hook_mut(self.hook)
    }

    /// Adds an operation; answers with its number.
    pub(super) fn emit(&mut self, op: Op, at: Position) -> Result<usize, Misread> {
        let code = self.hook_code();
        let number = code.ops.len();
        if number == OPERATIONS_MAX {
            return Err(self.wrong(&format!("at most {OPERATIONS_MAX} operations in a hook")));
        }
        code.ops.push(op);
        code.at.push(at);
        Ok(number)
    }

    /// The jump of that number leads to the operation that comes next.
    pub(super) fn land(&mut self, jump: usize) {
        let code = self.hook_code();
        let next = code.ops.len() as u16;
        match &mut code.ops[jump] {
            Op::Jump { target }
            | Op::JumpIfFalse { target, .. }
            | Op::JumpIfTrue { target, .. } => {
                *target = next;
            }
            Op::Compute { .. }
            | Op::Compare { .. }
            | Op::Not { .. }
            | Op::Move { .. }
            | Op::Store { .. } => {}
        }
    }

    /// The number of the last operation, if it has put its result there.
    pub(super) fn last_result(&mut self, register: Register) -> Option<&mut Register> {
        match self.hook_code().ops.last_mut()? {
            Op::Compute { to, .. } | Op::Move { to, .. } if *to == register => Some(to),
            Op::Compute { .. }
            | Op::Move { .. }
            | Op::Compare { .. }
            | Op::Not { .. }
            | Op::Store { .. }
            | Op::Jump { .. }
            | Op::JumpIfFalse { .. }
            | Op::JumpIfTrue { .. } => None,
        }
    }

    /// The register of a word of the connection.
    pub(super) fn word_register(
        &mut self,
        row: &'static WordRow,
        at: Position,
    ) -> Result<Register, Misread> {
        if row.control && self.needs_control.is_none() {
            self.needs_control = Some((at, row.name));
        }
        let assigned_register =
            self.words.iter().find(|(word, _)| *word == row.word).map(|(_, register)| *register);
        let register = match assigned_register {
            Some(register) => register,
            None => {
                let register = self.keep_register()?;
                self.words.push((row.word, register));
                register
            }
        };
        let loads = &mut self.hook_code().loads;
        if !loads.contains(&(row.word, register)) {
            loads.push((row.word, register));
        }
        Ok(register)
    }

    /// The register of a number as it is written.
    pub(super) fn constant(&mut self, value: f64) -> Result<Register, Misread> {
        let constant = self.constants.iter().find(|(bits, _)| *bits == value.to_bits());
        if let Some((_, register)) = constant {
            return Ok(*register);
        }
        let register = self.keep_register()?;
        self.code.registers[usize::from(register)] = value;
        self.constants.push((value.to_bits(), register));
        Ok(register)
    }

    /// True when the language itself uses a name.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        KEYWORDS.contains(&name)
            || WORDS.iter().any(|row| row.name == name)
            || FUNCTIONS.iter().any(|(known, _, _)| *known == name)
    }

    /// Every name that an expression may have here.
    pub(super) fn known_names(&self) -> impl Iterator<Item = &str> {
        let variables = self.kept.iter().chain(&self.lets).map(|variable| variable.name);
        let words = WORDS.iter().map(|row| row.name);
        words.chain(variables).chain(FUNCTIONS.iter().map(|(name, _, _)| *name))
    }
}
