//! The operations that a text becomes, and what they do.

use super::Position;
use super::words::{HOOKS, Hook, Word};

/// Numbers that a program holds at once: constants, parameters, state, words, and what is in the making.
pub const REGISTERS: usize = 256;
/// Operations of a hook at most.
pub const OPERATIONS_MAX: usize = 256;

/// A number's place.
pub type Register = u8;

/// Operation on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
    Pow,
    Negate,
    Sqrt,
    Cbrt,
    Exp,
    Log,
    Abs,
    Floor,
    Ceil,
}

/// Functions as a text calls them, and how many numbers they take.
pub const FUNCTIONS: &[(&str, Function, usize)] = &[
    ("min", Function::Min, 2),
    ("max", Function::Max, 2),
    ("pow", Function::Pow, 2),
    ("sqrt", Function::Sqrt, 1),
    ("cbrt", Function::Cbrt, 1),
    ("exp", Function::Exp, 1),
    ("log", Function::Log, 1),
    ("abs", Function::Abs, 1),
    ("floor", Function::Floor, 1),
    ("ceil", Function::Ceil, 1),
];

/// Comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
}

/// An operation. Truth is 1 or 0. Jumps lead forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Compute {
        function: Function,
        to: Register,
        a: Register,
        b: Register,
    },
    Compare {
        how: Comparison,
        to: Register,
        a: Register,
        b: Register,
    },
    Not {
        to: Register,
        a: Register,
    },
    Move {
        to: Register,
        a: Register,
    },
    /// Sets a word: nothing negative.
    Store {
        to: Register,
        a: Register,
    },
    Jump {
        target: u16,
    },
    JumpIfFalse {
        a: Register,
        target: u16,
    },
    JumpIfTrue {
        a: Register,
        target: u16,
    },
}

/// Code of one hook.
#[derive(Clone, Debug, Default)]
pub struct HookCode {
    pub ops: Vec<Op>,
    /// Position of each operation in the text.
    pub at: Vec<Position>,
    /// Words that must be there before, and those that count afterwards.
    pub loads: Vec<(Word, Register)>,
    pub stores: Vec<(Word, Register)>,
}

/// A program's hooks, and its numbers at the beginning.
#[derive(Clone, Debug)]
pub struct Code {
    pub hooks: [HookCode; HOOKS.len()],
    pub registers: Box<[f64; REGISTERS]>,
}

impl Default for Code {
    fn default() -> Self {
        Self { hooks: Default::default(), registers: Box::new([0.0; REGISTERS]) }
    }
}

impl Code {
    #[inline]
    pub fn hook(&self, hook: Hook) -> &HookCode {
        &self.hooks[hook as usize]
    }

    pub fn hook_mut(&mut self, hook: Hook) -> &mut HookCode {
        &mut self.hooks[hook as usize]
    }
}

/// An operation whose result is no number to go on with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stuck {
    /// Index of the hook's operation.
    pub op: usize,
    /// Its result: NaN, an infinity, or a negative number for a word.
    pub gave: f64,
}

impl HookCode {
    /// Does everything, in at most [`OPERATIONS_MAX`] steps. Registers hold finite numbers before, and after.
    #[inline]
    pub fn run(&self, registers: &mut [f64; REGISTERS]) -> Result<(), Stuck> {
        let mut next = 0;
        while let Some(&op) = self.ops.get(next) {
            next += 1;
            match op {
                Op::Compute { function, to, a, b } => {
                    let value = compute(function, registers[a as usize], registers[b as usize]);
                    if !value.is_finite() {
                        return Err(Stuck { op: next - 1, gave: value });
                    }
                    registers[to as usize] = value;
                }
                Op::Compare { how, to, a, b } => {
                    let truth = compare(how, registers[a as usize], registers[b as usize]);
                    registers[to as usize] = f64::from(u8::from(truth));
                }
                Op::Not { to, a } => registers[to as usize] = 1.0 - registers[a as usize],
                Op::Move { to, a } => registers[to as usize] = registers[a as usize],
                Op::Store { to, a } => {
                    let value = registers[a as usize];
                    if value < 0.0 {
                        return Err(Stuck { op: next - 1, gave: value });
                    }
                    registers[to as usize] = value;
                }
                Op::Jump { target } => next = usize::from(target),
                Op::JumpIfFalse { a, target } => {
                    if registers[a as usize] == 0.0 {
                        next = usize::from(target);
                    }
                }
                Op::JumpIfTrue { a, target } => {
                    if registers[a as usize] != 0.0 {
                        next = usize::from(target);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Computes a function of numbers, not NaN: `f64::min` leaves open which zero it answers with.
#[inline]
fn compute(function: Function, a: f64, b: f64) -> f64 {
    match function {
        Function::Add => a + b,
        Function::Subtract => a - b,
        Function::Multiply => a * b,
        Function::Divide => a / b,
        Function::Min => {
            if b < a {
                b
            } else {
                a
            }
        }
        Function::Max => {
            if b > a {
                b
            } else {
                a
            }
        }
        Function::Pow => libm::pow(a, b),
        Function::Negate => -a,
        Function::Sqrt => libm::sqrt(a),
        Function::Cbrt => libm::cbrt(a),
        Function::Exp => libm::exp(a),
        Function::Log => libm::log(a),
        Function::Abs => libm::fabs(a),
        Function::Floor => libm::floor(a),
        Function::Ceil => libm::ceil(a),
    }
}

#[inline]
fn compare(how: Comparison, a: f64, b: f64) -> bool {
    match how {
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
    }
}
