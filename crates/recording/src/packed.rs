//! Integers in blocks, each with as few bytes a value as its range needs.
//!
//! A row for every ACK is some fifteen integers, most of which differ little from those of the rows beside it. Packed, they take
//! a third of the memory, and a run waits less for the system to clear pages.

use std::borrow::Cow;
use std::iter::repeat_n;
use std::ops::Deref;
use std::sync::OnceLock;

/// Values of a block.
pub(crate) const BLOCK: usize = 128;

/// A growing column of integers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    heads: Vec<Head>,
    /// The blocks: differences of the values to their block's base, little-endian, in as many bytes as the largest needs.
    bytes: Vec<u8>,
    /// Values that do not fill a block yet; all values of a column that stays plain.
    tail: Vec<i64>,
    is_plain: bool,
}

/// Place of a block. Its width follows from the place of the next one.
#[derive(Clone, Copy, Debug)]
struct Head {
    base: i64,
    at: usize,
}

impl Blocks {
    #[inline]
    pub fn push(&mut self, value: i64) {
        self.tail.push(value);
        if self.tail.len() == BLOCK && !self.is_plain {
            self.pack_tail();
        }
    }

    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = i64>) {
        if self.tail.is_empty() && values.len() == BLOCK && !self.is_plain {
            let mut block = [0; BLOCK];
            block.iter_mut().zip(values).for_each(|(place, value)| *place = value);
            self.pack(&block);
        } else {
            values.for_each(|value| self.push(value));
        }
    }

    /// Packs no value from here on, so that [`values`](Self::values) costs nothing.
    pub const fn keep_plain(&mut self) {
        self.is_plain = true;
    }

    /// The values so far; unpacked for the caller where they are packed.
    pub fn values(&self) -> Cow<'_, [i64]> {
        if self.heads.is_empty() { Cow::Borrowed(&self.tail) } else { Cow::Owned(self.unpacked()) }
    }

    fn unpacked(&self) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.len());
        self.each(&mut |block| values.extend_from_slice(block));
        values
    }

    pub const fn len(&self) -> usize {
        self.heads.len() * BLOCK + self.tail.len()
    }

    #[cold]
    fn pack_tail(&mut self) {
        let mut tail = std::mem::take(&mut self.tail);
        if let Some(block) = tail.first_chunk() {
            self.pack(block);
        }
        tail.clear();
        self.tail = tail;
    }

    fn pack(&mut self, values: &[i64; BLOCK]) {
        let (least, most) = values.iter().fold((i64::MAX, i64::MIN), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
        let range = most.wrapping_sub(least) as u64;
        let width = (u64::BITS - range.leading_zeros()).div_ceil(8) as usize;
        self.heads.push(Head { base: least, at: self.bytes.len() });
        let mut block = [0; BLOCK * 8];
        match width {
            0 => {}
            1 => put::<1>(values, least, &mut block),
            2 => put::<2>(values, least, &mut block),
            3 => put::<3>(values, least, &mut block),
            4 => put::<4>(values, least, &mut block),
            5 => put::<5>(values, least, &mut block),
            6 => put::<6>(values, least, &mut block),
            7 => put::<7>(values, least, &mut block),
            _ => put::<8>(values, least, &mut block),
        }
        self.bytes.extend_from_slice(&block[..BLOCK * width]);
    }

    /// Gives the values to `take`, a block at a time.
    pub fn each(&self, take: &mut dyn FnMut(&[i64])) {
        let ends = self.heads.iter().skip(1).map(|head| head.at).chain([self.bytes.len()]);
        let mut block = Vec::with_capacity(BLOCK);
        for (head, end) in self.heads.iter().zip(ends) {
            block.clear();
            let bytes = &self.bytes[head.at..end];
            match bytes.len() / BLOCK {
                0 => block.extend(repeat_n(head.base, BLOCK)),
                1 => get::<1>(bytes, head.base, &mut block),
                2 => get::<2>(bytes, head.base, &mut block),
                3 => get::<3>(bytes, head.base, &mut block),
                4 => get::<4>(bytes, head.base, &mut block),
                5 => get::<5>(bytes, head.base, &mut block),
                6 => get::<6>(bytes, head.base, &mut block),
                7 => get::<7>(bytes, head.base, &mut block),
                _ => get::<8>(bytes, head.base, &mut block),
            }
            take(&block);
        }
        if !self.tail.is_empty() {
            take(&self.tail);
        }
    }
}

fn put<const WIDTH: usize>(values: &[i64; BLOCK], base: i64, block: &mut [u8; BLOCK * 8]) {
    for (bytes, value) in block.chunks_exact_mut(WIDTH).zip(values) {
        bytes.copy_from_slice(&value.wrapping_sub(base).to_le_bytes()[..WIDTH]);
    }
}

fn get<const WIDTH: usize>(bytes: &[u8], base: i64, block: &mut Vec<i64>) {
    block.extend(bytes.chunks_exact(WIDTH).map(|bytes| {
        let mut difference = [0; 8];
        difference[..WIDTH].copy_from_slice(bytes);
        base.wrapping_add(i64::from_le_bytes(difference))
    }));
}

/// The integers of a finished column. It reads as a slice; a column that grew packed is unpacked when it is first read so.
#[derive(Clone, Debug, Default)]
pub struct Ints {
    blocks: Blocks,
    plain: OnceLock<Vec<i64>>,
}

impl Ints {
    pub(crate) fn from_blocks(blocks: Blocks) -> Self {
        if blocks.heads.is_empty() {
            return blocks.tail.into();
        }
        Self { blocks, plain: OnceLock::new() }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plain.get().map_or(self.blocks.len(), Vec::len)
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the values to `take`, a part at a time, without unpacking the column.
    pub(crate) fn blocks(&self, take: &mut dyn FnMut(&[i64])) {
        match self.plain.get() {
            Some(plain) => take(plain),
            None => self.blocks.each(take),
        }
    }

    /// The values, to change them.
    pub fn to_mut(&mut self) -> &mut Vec<i64> {
        let values = std::mem::take(self).into_vec();
        *self = values.into();
        self.plain.get_mut().unwrap_or_else(|| unreachable!("made of plain values"))
    }

    /// The values.
    #[must_use]
    pub fn into_vec(self) -> Vec<i64> {
        let Self { blocks, plain } = self;
        plain.into_inner().unwrap_or_else(|| blocks.unpacked())
    }
}

impl Deref for Ints {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.plain.get_or_init(|| self.blocks.unpacked())
    }
}

impl From<Vec<i64>> for Ints {
    fn from(values: Vec<i64>) -> Self {
        Self { blocks: Blocks::default(), plain: OnceLock::from(values) }
    }
}

impl FromIterator<i64> for Ints {
    fn from_iter<T: IntoIterator<Item = i64>>(values: T) -> Self {
        Vec::from_iter(values).into()
    }
}

impl PartialEq for Ints {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around a base that differ by at most `range`, ends included.
    fn series(base: i64, range: u64, count: usize) -> Vec<i64> {
        let step = |index: usize| match index % 5 {
            0 => 0,
            1 => range,
            _ => {
                (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % range.saturating_add(1).max(1)
            }
        };
        (0..count).map(|index| base.wrapping_add(step(index) as i64)).collect()
    }

    #[test]
    fn values_come_back_at_every_width_and_length() {
        for bits in 0..=64 {
            let range = if bits == 64 { u64::MAX } else { (1_u64 << bits) - 1 };
            for base in [0, -1, i64::MIN, 1 << 40] {
                for count in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
                    let values = series(base, range, count);
                    let mut pushed = Blocks::default();
                    values.iter().for_each(|value| pushed.push(*value));
                    let mut extended = Blocks::default();
                    values.chunks(BLOCK).for_each(|chunk| extended.extend(chunk.iter().copied()));
                    let mut plain = Blocks::default();
                    plain.keep_plain();
                    plain.extend(values.iter().copied());
                    assert!(plain.heads.is_empty());
                    for packed in [pushed, extended, plain] {
                        assert_eq!(*packed.values(), values);
                        let mut ints = Ints::from_blocks(packed);
                        assert_eq!(ints.len(), count);
                        assert_eq!(ints, Ints::from(values.clone()), "{bits} bits from {base}");
                        ints.to_mut().push(7);
                        assert_eq!(ints.len(), count + 1);
                        assert_eq!(ints.into_vec()[..count], values);
                    }
                }
            }
        }
    }

    #[test]
    fn a_block_takes_the_bytes_that_its_range_needs() {
        for (range, bytes) in [(0, 0), (1, 1), (255, 1), (256, 2), (1 << 31, 4), (u64::MAX, 8)] {
            let mut packed = Blocks::default();
            packed.extend(series(-5, range, BLOCK).into_iter());
            assert_eq!(packed.bytes.len(), BLOCK * bytes, "{range}");
            assert!(packed.tail.is_empty());
        }
    }
}
