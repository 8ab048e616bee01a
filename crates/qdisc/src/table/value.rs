//! Types of a field's value.

use std::fmt::Debug;

/// A value of one word.
pub trait Plain: Copy + PartialEq + Debug + 'static {
    /// As the kernel's 32 bits have it, where a row says nothing else.
    fn number(self) -> u64 {
        0
    }
}

impl Plain for u32 {
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Plain for u64 {
    fn number(self) -> u64 {
        self.min(u64::from(u32::MAX))
    }
}

impl Plain for i32 {
    fn number(self) -> u64 {
        u64::from(self as u32)
    }
}

impl Plain for f64 {
    fn number(self) -> u64 {
        u64::from(crate::netlink::share(self))
    }
}

impl Plain for bool {
    fn number(self) -> u64 {
        u64::from(self)
    }
}

/// Type of a field: a value, or one that may be absent.
pub trait Held: 'static {
    /// The value.
    type Value: Plain;

    /// It, if there is one.
    fn value(&self) -> Option<Self::Value>;

    /// Sets it; none: takes it away, where that can be.
    fn set(&mut self, value: Option<Self::Value>);
}

impl<T: Plain> Held for T {
    type Value = T;

    fn value(&self) -> Option<T> {
        Some(*self)
    }

    fn set(&mut self, value: Option<T>) {
        if let Some(value) = value {
            *self = value;
        }
    }
}

impl<T: Plain> Held for Option<T> {
    type Value = T;

    fn value(&self) -> Option<T> {
        *self
    }

    fn set(&mut self, value: Option<T>) {
        *self = value;
    }
}
