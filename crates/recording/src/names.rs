//! Distinct texts of a column, each stored once.

use std::collections::BTreeMap;

/// A text of one column, by its number there. The default is the column's first text: for a row whose
/// text is set later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word(pub(crate) u32);

/// A set of texts in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    names: Vec<String>,
    /// The number given last: the next one asked for is mostly the same.
    last: usize,
    /// Numbers by name, once there are too many to compare with each.
    numbers: BTreeMap<String, usize>,
}

/// Up to here each is compared.
const FEW: usize = 16;

impl Names {
    /// The number of `name`.
    #[inline]
    pub fn word(&mut self, name: &str) -> Word {
        if self.names.get(self.last).is_none_or(|last| last != name) {
            self.last = self.find(name);
        }
        Word(self.last as u32)
    }

    fn find(&mut self, name: &str) -> usize {
        let index = if self.names.len() <= FEW {
            self.names.iter().position(|entry| entry == name)
        } else {
            self.numbers.get(name).copied()
        };
        index.unwrap_or_else(|| self.add(name))
    }

    fn add(&mut self, name: &str) -> usize {
        let number = self.names.len();
        self.names.push(name.to_owned());
        if number == FEW {
            let all = self.names.iter().cloned().zip(0..);
            self.numbers = all.collect();
        } else if number > FEW {
            self.numbers.insert(name.to_owned(), number);
        }
        number
    }

    pub fn all(&self) -> &[String] {
        &self.names
    }

    pub fn into_vec(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_stored_once_and_keeps_its_number() {
        let mut names = Names::default();
        let texts: Vec<String> = (0..3 * FEW).map(|number| format!("flow {number}")).collect();
        for round in 0..2 {
            for (number, text) in texts.iter().enumerate() {
                assert_eq!(names.word(text), Word(number as u32), "round {round}");
                assert_eq!(names.word(text), Word(number as u32), "the same one again");
            }
        }
        assert_eq!(names.into_vec(), texts);
    }
}
