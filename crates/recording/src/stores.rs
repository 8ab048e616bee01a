//! Columns while they grow, one type per kind of value, and the form in which they end.

use crate::names::{Names, Word};
use crate::packed::{Blocks, Ints};
use std::borrow::Cow;

/// Kind of value in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers of 64 bits.
    Int,
    /// Text from a small set.
    Text,
    /// Yes or no.
    Bool,
    /// Floating-point numbers of 64 bits.
    Float,
}

impl Kind {
    /// The word for it in bindings, answers and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Text => "text",
            Self::Bool => "bool",
            Self::Float => "float",
        }
    }
}

/// A finished column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Integers; [`Data::NULL`] stands for "no value".
    Int(Ints),
    /// Text from a small set: an index into `names` per row.
    Text {
        /// The distinct values.
        names: Vec<String>,
        /// A row's value is `names[index]`; a negative index stands for "no value".
        index: Vec<i32>,
    },
    /// Yes or no.
    Bool(Vec<bool>),
    /// Floating-point numbers; NaN stands for "no value".
    Float(Vec<f64>),
}

impl Data {
    /// No value.
    pub const NULL: i64 = i64::MIN;

    /// Kind of value in the column.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Int(_) => Kind::Int,
            Self::Text { .. } => Kind::Text,
            Self::Bool(_) => Kind::Bool,
            Self::Float(_) => Kind::Float,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Text { index, .. } => index.len(),
            Self::Bool(values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }

    /// True when there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values in little-endian order: integers and floats in 8 bytes, indexes in 4, flags in 1.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.byte_count()];
        self.write_to(&mut bytes);
        bytes
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes) to a buffer of [`byte_count`](Self::byte_count) bytes.
    pub fn write_to(&self, mut bytes: &mut [u8]) {
        self.blocks(&mut |block| {
            let (head, rest) = std::mem::take(&mut bytes).split_at_mut(block.len());
            head.copy_from_slice(block);
            bytes = rest;
        });
    }

    /// Number of bytes that [`to_bytes`](Self::to_bytes) returns.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.len()
            * match self {
                Self::Int(_) | Self::Float(_) => 8,
                Self::Text { .. } => 4,
                Self::Bool(_) => 1,
            }
    }

    /// The same bytes a block at a time: a column may be larger than memory has room for twice.
    pub(crate) fn blocks(&self, take: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Int(values) => {
                values.blocks(&mut |block| in_blocks(block, i64::to_le_bytes, take));
            }
            Self::Text { index, .. } => in_blocks(index, i32::to_le_bytes, take),
            Self::Bool(values) => in_blocks(values, |value| [u8::from(value)], take),
            Self::Float(values) => in_blocks(values, f64::to_le_bytes, take),
        }
    }
}

fn in_blocks<T: Copy, const SIZE: usize>(
    values: &[T],
    bytes: impl Fn(T) -> [u8; SIZE],
    take: &mut dyn FnMut(&[u8]),
) {
    let mut block = Vec::with_capacity(512 * SIZE);
    for chunk in values.chunks(512) {
        block.clear();
        chunk.iter().for_each(|value| block.extend_from_slice(&bytes(*value)));
        take(&block);
    }
}

/// A column that grows.
pub trait Store: Default {
    /// Type of a row's value.
    type Value;
    /// Kind of value in the finished column.
    const KIND: Kind;
    /// True when a row may have no value.
    const NULLABLE: bool;

    /// Adds a value.
    fn push(&mut self, value: Self::Value);

    /// Adds several.
    fn extend(&mut self, values: impl ExactSizeIterator<Item = Self::Value>);

    /// Keeps the values from here on as they are, for who reads the column while it grows.
    fn keep_plain(&mut self) {}

    /// The finished column.
    fn finish(self) -> Data;
}

macro_rules! plain_store {
    ($(#[$doc:meta])* $name:ident of $value:ty, $kind:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name(Vec<$value>);

        impl $name {
            /// Changes the value of an earlier row.
            pub fn set(&mut self, row: usize, value: $value) {
                self.0[row] = value;
            }

            /// The values so far.
            #[must_use]
            pub fn values(&self) -> &[$value] {
                &self.0
            }
        }

        impl Store for $name {
            type Value = $value;
            const KIND: Kind = Kind::$kind;
            const NULLABLE: bool = false;

            #[inline]
            fn push(&mut self, value: $value) {
                self.0.push(value);
            }

            fn extend(&mut self, values: impl ExactSizeIterator<Item = $value>) {
                self.0.extend(values);
            }

            fn finish(self) -> Data {
                Data::$kind(self.0.into())
            }
        }
    };
}

plain_store!(
    /// Integers, one in every row.
    Int of i64, Int
);
plain_store!(
    /// Yes or no.
    Flag of bool, Bool
);
plain_store!(
    /// Floating-point numbers; NaN stands for "no value".
    Float of f64, Float
);

/// Integers, or no value.
#[derive(Clone, Debug, Default)]
pub struct MaybeInt(Vec<i64>);

impl MaybeInt {
    /// Changes the value of an earlier row.
    pub fn set(&mut self, row: usize, value: Option<i64>) {
        self.0[row] = value.unwrap_or(Data::NULL);
    }

    /// The values so far; [`Data::NULL`] stands for "no value".
    #[must_use]
    pub fn values(&self) -> &[i64] {
        &self.0
    }
}

impl Store for MaybeInt {
    type Value = Option<i64>;
    const KIND: Kind = Kind::Int;
    const NULLABLE: bool = true;

    #[inline]
    fn push(&mut self, value: Option<i64>) {
        self.0.push(value.unwrap_or(Data::NULL));
    }

    fn extend(&mut self, values: impl ExactSizeIterator<Item = Option<i64>>) {
        self.0.extend(values.map(|value| value.unwrap_or(Data::NULL)));
    }

    fn finish(self) -> Data {
        Data::Int(self.0.into())
    }
}

macro_rules! packed_store {
    ($(#[$doc:meta])* $name:ident of $value:ty, $nullable:literal, $number:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name(Blocks);

        impl $name {
            /// The values so far, [`Data::NULL`] standing for "no value"; unpacked for the caller unless the column is
            /// [kept plain](crate::Writer::keep_plain).
            #[must_use]
            pub fn values(&self) -> Cow<'_, [i64]> {
                self.0.values()
            }
        }

        impl Store for $name {
            type Value = $value;
            const KIND: Kind = Kind::Int;
            const NULLABLE: bool = $nullable;

            #[inline]
            fn push(&mut self, value: $value) {
                self.0.push($number(value));
            }

            fn extend(&mut self, values: impl ExactSizeIterator<Item = $value>) {
                self.0.extend(values.map($number));
            }

            fn keep_plain(&mut self) {
                self.0.keep_plain();
            }

            fn finish(self) -> Data {
                Data::Int(Ints::from_blocks(self.0))
            }
        }
    };
}

packed_store!(
    /// A flow's number.
    Key of u32, false, i64::from
);
packed_store!(
    /// Integers, one in every row, of a table that may have a row for every ACK.
    PackedInt of i64, false, std::convert::identity
);
packed_store!(
    /// Integers, or no value, of a table that may have a row for every ACK.
    PackedMaybeInt of Option<i64>, true, |value: Option<i64>| value.unwrap_or(Data::NULL)
);

/// Text from a small set.
#[derive(Clone, Debug, Default)]
pub struct Text {
    names: Names,
    index: Vec<i32>,
}

impl Text {
    /// The number of `text` in this column, for a row of it.
    #[inline]
    pub fn word(&mut self, text: &str) -> Word {
        self.names.word(text)
    }

    /// Changes the value of an earlier row.
    pub fn set(&mut self, row: usize, word: Word) {
        self.index[row] = word.0 as i32;
    }

    /// The distinct texts so far.
    #[must_use]
    pub fn names(&self) -> &[String] {
        self.names.all()
    }

    /// Each row's place in [`names`](Self::names).
    #[must_use]
    pub fn index(&self) -> &[i32] {
        &self.index
    }
}

impl Store for Text {
    type Value = Word;
    const KIND: Kind = Kind::Text;
    const NULLABLE: bool = false;

    #[inline]
    fn push(&mut self, word: Word) {
        self.index.push(word.0 as i32);
    }

    fn extend(&mut self, words: impl ExactSizeIterator<Item = Word>) {
        self.index.extend(words.map(|word| word.0 as i32));
    }

    fn finish(self) -> Data {
        Data::Text { names: self.names.into_vec(), index: self.index }
    }
}
