//! A discipline's fields in one table: each row has a field of the scenario, tc's words for it, its range, its place in
//! netlink's bytes and its description. Reading, writing, checks, netlink and the reference page follow from the rows.
//!
//! ```text
//! table! {
//!     /// Token bucket filter.
//!     pub struct TbfSpec {
//!         /// Bytes that may wait.
//!         limit_bytes: u64 = 0 => size("limit").at_least(1),
//!     }
//!     words {
//!         "latency" => Word::new(&["latency"], "TIME", read_latency),
//!     }
//! }
//! ```
//!
//! A row begins with a field, its type and the default that tc and the kernel fill in (a placeholder where the word is
//! mandatory). Behind `=>` stands a [`Form`] (one word and a value, or words that are the values) or, where several
//! fields share a word, a [`Word`] with functions of its own. `words` has those that set no field of their own.
//! The order of the rows is that of the scenario's JSON; tc's words are written in the same order but for rows that say
//! [`Form::after`].

mod describe;
mod field;
mod form;
mod value;
mod word;

pub use describe::{Described, Line, describe};
pub use field::Field;
pub use form::{
    Form, one_of, packets, rate, share, size, size_u32, switch, text, time, unnamed, whole,
};
pub use value::{Held, Plain};
pub use word::Word;

use crate::netlink::{Attributes, Writer, word as word_at};
use crate::tc::{Text, Words, wrong};
use dragstrip_units::{Problem, Report};

/// Defines a configuration by its table: the structure, its defaults and [`Table`].
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $help:literal])*
                $(#[serde $serde:tt])?
                $field:ident: $type:ty = $default:expr => $form:expr,
            )*
        }
        $(words { $($word:literal => $special:expr,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $help])*
                $(#[serde $serde])?
                pub $field: $type,
            )*
        }

        impl Default for $name {
            /// Defaults of tc and the kernel; nothing where they require a value.
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::table::Table for $name {
            const ROWS: &'static [$crate::table::Row<Self>] = &[
                $($crate::table::Row {
                    name: stringify!($field),
                    help: concat!($($help,)*),
                    part: &$form.on(
                        |spec: &Self| &spec.$field,
                        |spec: &mut Self| &mut spec.$field,
                    ),
                },)*
                $($($crate::table::Row { name: $word, help: "", part: &$special },)*)?
            ];
        }
    };
}
pub(crate) use table;

/// A configuration that is defined by its rows.
pub trait Table: Default + Sized + 'static {
    /// Its rows, those of the scenario's fields first, in their order.
    const ROWS: &'static [Row<Self>];
}

/// One row.
pub struct Row<S: 'static> {
    /// The field's name in the scenario's JSON; where a word sets no field of its own, that word.
    pub name: &'static str,
    /// Meaning of the field.
    pub help: &'static str,
    /// Everything else.
    pub part: &'static dyn Part<S>,
}

/// Position of a row in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An attribute of this kind.
    Attribute(u16),
    /// At this byte of the discipline's C structure.
    At(usize),
}

/// A row's value in the kernel's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Position in the kernel's form.
    pub place: Place,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Stands behind the other attributes whatever its number.
    pub last: bool,
}

/// Value that the kernel must report for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Name in messages.
    pub what: &'static str,
    /// The number.
    pub number: u32,
}

/// Interface of a row.
pub trait Part<S> {
    /// tc's words for it, as documentation and messages list them.
    fn listed(&self) -> Vec<&'static str>;

    /// True when `word` belongs to the row; words that are not listed may.
    fn takes(&self, word: &str) -> bool {
        self.listed().contains(&word)
    }

    /// Takes what follows `word`.
    ///
    /// # Errors
    /// A missing or unreadable value.
    fn read(
        &self,
        draft: &mut Draft<'_, S>,
        words: &mut Words<'_>,
        word: &str,
    ) -> Result<(), Problem>;

    /// Sets it to what tc takes for granted.
    fn reset(&self, _spec: &mut S) {}

    /// The value that tc wants to be given, if it does.
    fn example(&self) -> Option<&'static str> {
        None
    }

    /// The field behind which tc's text has it; an empty one: in front.
    fn after(&self) -> Option<&'static str> {
        None
    }

    /// Value that may stand without a word after the value of the row above.
    fn behind(&self) -> Behind {
        Behind::No
    }

    /// Why no number may follow the value.
    fn alone(&self) -> Option<&'static str> {
        None
    }

    /// tc's text for it; none: there is nothing to say.
    fn print(&self, spec: &S) -> Option<String>;

    /// The value alone, where rows without words may follow it; none: as tc takes for granted.
    fn number(&self, _spec: &S) -> (String, bool) {
        (String::new(), true)
    }

    /// Its range.
    fn check(&self, _spec: &S, _field: &dyn Fn() -> String, _report: &mut Report) {}

    /// Its value in the kernel's form.
    fn send(&self, _spec: &S) -> Option<Sent> {
        None
    }

    /// Returns the value that the kernel must report for it.
    fn expect(&self, _spec: &S) -> Option<(Place, Expected)> {
        None
    }

    /// For the reference page.
    fn describe(&self) -> Described;
}

/// Reading of a row after the value of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It has a word of its own.
    No,
    /// It is; where nothing follows, it has its default again.
    Reset,
    /// It is; where nothing follows, it and all behind it stay as they are.
    Kept,
}

/// A configuration while its words are read.
#[derive(Debug)]
pub struct Draft<'a, S> {
    /// So far.
    pub spec: S,
    /// Words that were given.
    pub given: GivenWords<'a>,
}

/// The words that were read: of which row and as written, and the values that no field holds.
#[derive(Debug, Default)]
pub struct GivenWords<'a> {
    words: Vec<(&'static str, &'a str)>,
    values: Vec<(String, u64)>,
}

impl<'a> GivenWords<'a> {
    /// True when a word of this row was given.
    #[must_use]
    pub fn has(&self, row: &str) -> bool {
        self.words.iter().any(|(name, _)| *name == row)
    }

    /// The words of this row, as written.
    pub fn of(&self, row: &str) -> impl Iterator<Item = &'a str> {
        self.words.iter().filter(move |(name, _)| *name == row).map(|(_, word)| *word)
    }

    /// Keeps the value of a word that no field holds.
    pub fn keep(&mut self, word: &str, value: u64) {
        self.values.push((word.to_owned(), value));
    }

    /// The last value that was kept for this word.
    #[must_use]
    pub fn value(&self, word: &str) -> Option<u64> {
        self.values.iter().rev().find(|(name, _)| name == word).map(|(_, value)| *value)
    }
}

/// Layout of a discipline's rows in `TCA_OPTIONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Attributes.
    Attributes,
    /// A C structure of so many bytes.
    Structure(usize),
    /// An attribute of this kind with a C structure of so many bytes.
    Inside(u16, usize),
}

/// The rows in the order of tc's text, each with those that follow its value.
fn ordered<S: Table>() -> Vec<(&'static Row<S>, Vec<&'static Row<S>>)> {
    let mut groups: Vec<(&Row<S>, Vec<&Row<S>>)> = Vec::new();
    for row in S::ROWS {
        match groups.last_mut() {
            Some((_, followers)) if row.part.behind() != Behind::No => followers.push(row),
            Some(_) | None => groups.push((row, Vec::new())),
        }
    }
    let (mut placed, moved): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(row, _)| row.part.after().is_none());
    for group in moved {
        let before = group.0.part.after();
        let at = placed.iter().position(|(row, _)| Some(row.name) == before);
        placed.insert(at.map_or(0, |at| at + 1), group);
    }
    placed
}

/// tc's words behind the kind, in the order in which they are written.
#[must_use]
pub fn words<S: Table>() -> Vec<&'static str> {
    ordered::<S>().iter().flat_map(|(row, _)| row.part.listed()).collect()
}

/// The row that takes a word, by its name.
#[must_use]
pub fn field_of<S: Table>(word: &str) -> Option<&'static str> {
    S::ROWS.iter().find(|row| row.part.takes(word)).map(|row| row.name)
}

/// Reads `words` to their end; what is mandatory must be there. `kind` is what a message calls the discipline, and
/// `unknown` says what is wrong with a word that no row takes.
///
/// # Errors
/// An unknown word, a missing or unreadable value, a missing word.
pub fn parse<'a, S: Table>(
    words: &mut Words<'a>,
    kind: &str,
    unknown: fn(&str) -> Problem,
) -> Result<Draft<'a, S>, Problem> {
    let rows = ordered::<S>();
    let mut draft = Draft { spec: S::default(), given: GivenWords::default() };
    while let Some(word) = words.next() {
        let Some((row, followers)) = rows.iter().find(|(row, _)| row.part.takes(word)) else {
            return Err(unknown(word));
        };
        row.part.read(&mut draft, words, word)?;
        for follower in followers {
            match (words.number_follows(), follower.part.behind()) {
                (true, _) => follower.part.read(&mut draft, words, word)?,
                (false, Behind::Kept) => break,
                (false, Behind::No | Behind::Reset) => follower.part.reset(&mut draft.spec),
            }
        }
        if let Some(expected) = row.part.alone().filter(|_| words.number_follows()) {
            let extra = words.next().unwrap_or_default();
            return Err(wrong(format!("{extra:?} behind {word:?}"), expected));
        }
        draft.given.words.push((row.name, word));
    }
    for row in S::ROWS {
        if let Some(example) = row.part.example().filter(|_| !draft.given.has(row.name)) {
            let word = row.part.listed().first().copied().unwrap_or_default();
            let expected = format!("{kind} to have one, such as \"{word} {example}\"");
            return Err(wrong(format!("no {word:?}"), expected));
        }
    }
    Ok(draft)
}

/// The configuration in tc's words.
pub fn print<S: Table>(kind: &str, spec: &S) -> Text {
    ordered::<S>().iter().fold(Text::new(kind), |text, (row, followers)| {
        if followers.is_empty() {
            return text.word(&row.part.print(spec).unwrap_or_default());
        }
        // A value stands behind another, even where that is what tc takes for granted.
        let numbers: Vec<_> =
            std::iter::once(row).chain(followers).map(|row| row.part.number(spec)).collect();
        let Some(last) = numbers.iter().rposition(|(_, usual)| !usual) else { return text };
        let word = row.part.listed().first().copied().unwrap_or_default();
        numbers[..=last].iter().fold(text.word(word), |text, (number, _)| text.word(number))
    })
}

/// The range of each row; `at` is the JSON path of the configuration.
pub fn check<S: Table>(spec: &S, at: &str, report: &mut Report) {
    for row in S::ROWS {
        row.part.check(spec, &|| format!("{at}.{}", row.name), report);
    }
}

/// The value of `TCA_OPTIONS`.
pub fn options<S: Table>(spec: &S, layout: Layout) -> Vec<u8> {
    let mut writer = match layout {
        Layout::Attributes => Writer::default(),
        Layout::Structure(bytes) => Writer::behind(&structure(spec, bytes)),
        Layout::Inside(kind, bytes) => {
            let mut writer = Writer::default();
            writer.bytes(kind, &structure(spec, bytes));
            writer
        }
    };
    attributes(spec, &mut writer);
    writer.into_bytes()
}

/// Adds the rows' attributes, by their numbers.
pub fn attributes<S: Table>(spec: &S, writer: &mut Writer) {
    /// The flag that attributes are inside is no part of the number.
    const NUMBER: u16 = 0x3fff;
    let mut encoded_rows: Vec<(bool, u16, Vec<u8>)> = S::ROWS
        .iter()
        .filter_map(|row| {
            let Sent { place, bytes, last } = row.part.send(spec)?;
            let Place::Attribute(kind) = place else { return None };
            Some((last, kind, bytes))
        })
        .collect();
    encoded_rows.sort_by_key(|(last, kind, _)| (*last, kind & NUMBER));
    for (_, kind, bytes) in encoded_rows {
        writer.bytes(kind, &bytes);
    }
}

/// The C structure of so many bytes, with zeros where no row stands.
pub fn structure<S: Table>(spec: &S, bytes: usize) -> Vec<u8> {
    let mut structure = vec![0; bytes];
    for Sent { place, bytes, .. } in S::ROWS.iter().filter_map(|row| row.part.send(spec)) {
        if let Place::At(at) = place {
            structure[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }
    structure
}

/// Returns the values that the kernel must report: each row's number, and the one found in `options`.
pub fn expected<S: Table>(
    spec: &S,
    layout: Layout,
    options: &[u8],
) -> Vec<(Expected, Option<u32>)> {
    let attributes = Attributes(options);
    let structure = match layout {
        Layout::Attributes | Layout::Structure(_) => options,
        Layout::Inside(kind, _) => attributes.get(kind).unwrap_or_default(),
    };
    S::ROWS
        .iter()
        .filter_map(|row| row.part.expect(spec))
        .map(|(place, expected)| match place {
            Place::Attribute(kind) => (expected, attributes.number(kind)),
            Place::At(at) => (expected, word_at(structure, at)),
        })
        .collect()
}
