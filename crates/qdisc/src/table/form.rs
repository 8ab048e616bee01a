//! Form of a word that sets one field: its value, its range, its place in netlink. A [`Form`] is a row's description
//! of it.

use super::value::Plain;
use super::{Behind, Place};
use crate::tc::{self, Words};
use dragstrip_units::tc::text::parse_size;
use dragstrip_units::{Problem, Report, format_percent};
use std::fmt::Display;
use std::str::FromStr;

/// An end of a range.
#[derive(Clone, Copy)]
pub(super) enum Bound<S, T> {
    /// This value.
    At(T),
    /// Value of another field, and its name on the page.
    Field(&'static str, fn(&S) -> T),
}

impl<S, T: Copy> Bound<S, T> {
    pub(super) fn of(&self, spec: &S) -> T {
        match self {
            Self::At(value) => *value,
            Self::Field(_, value) => value(spec),
        }
    }

    pub(super) fn text(&self, write: fn(T) -> String) -> String {
        match self {
            Self::At(value) => write(*value),
            Self::Field(name, _) => format!("`{name}`"),
        }
    }
}

/// A bound, and what complains about a value beyond it.
type Limit<S, T> = (Bound<S, T>, fn(&mut Report, String, T, T));

/// Conversion of a value to the kernel's number.
#[derive(Clone, Copy)]
pub(super) enum Encoding<T> {
    /// By a function.
    By(fn(T) -> u64),
    /// Its place in the list of words.
    Position,
}

/// Length of the kernel's number.
#[derive(Clone, Copy)]
pub(super) enum Width {
    /// 8 bits.
    Octet,
    /// 32 bits.
    Word,
    /// 64 bits.
    Long,
}

/// Condition under which tc's text includes it.
#[derive(Clone, Copy)]
pub(super) enum Shown<S> {
    /// Always.
    Always,
    /// Unless it is the default.
    UnlessUsual,
    /// If this returns true.
    If(fn(&S) -> bool),
}

/// One field's words, range and place in netlink's bytes.
pub struct Form<S: 'static, T: 'static> {
    pub(super) word: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) what: &'static str,
    pub(super) choices: &'static [(&'static str, T)],
    pub(super) synonyms: &'static [(&'static str, T)],
    pub(super) none: &'static str,
    pub(super) read: fn(&mut Words<'_>, &str) -> Result<T, Problem>,
    pub(super) write: fn(T) -> String,
    pub(super) then: Option<fn(&mut S)>,
    pub(super) mandatory: Option<&'static str>,
    pub(super) usually: &'static str,
    pub(super) shown: Shown<S>,
    pub(super) after: Option<&'static str>,
    pub(super) behind: Behind,
    pub(super) alone: Option<&'static str>,
    pub(super) range: &'static str,
    pub(super) check: Option<fn(&mut Report, String, T)>,
    pub(super) least: Option<Limit<S, T>>,
    pub(super) most: Option<Limit<S, T>>,
    pub(super) place: Option<Place>,
    pub(super) width: Width,
    pub(super) encoding: Encoding<T>,
    pub(super) always: bool,
    pub(super) last: bool,
    pub(super) confirmed: Option<&'static str>,
}

/// A word and a value that `read` reads and `write` writes; `what` stands for it on the reference page.
#[must_use]
pub const fn text<S, T: Plain>(
    word: &'static str,
    what: &'static str,
    read: fn(&mut Words<'_>, &str) -> Result<T, Problem>,
    write: fn(T) -> String,
) -> Form<S, T> {
    Form {
        word,
        aliases: &[],
        what,
        choices: &[],
        synonyms: &[],
        none: "",
        read,
        write,
        then: None,
        mandatory: None,
        usually: "",
        shown: Shown::Always,
        after: None,
        behind: Behind::No,
        alone: None,
        range: "",
        check: None,
        least: None,
        most: None,
        place: None,
        width: Width::Word,
        encoding: Encoding::By(T::number),
        always: false,
        last: false,
        confirmed: None,
    }
}

/// A plain whole number.
#[must_use]
pub const fn whole<S, T: Plain + FromStr + Display>(word: &'static str) -> Form<S, T> {
    text(word, "NUMBER", |words, word| words.whole(word), |value| value.to_string())
}

/// A number of packets, which tc reads as a size.
#[must_use]
pub const fn packets<S>(word: &'static str) -> Form<S, u32> {
    text(word, "PACKETS", |words, word| words.packets(word), |packets| packets.to_string())
}

/// A size in bytes.
#[must_use]
pub const fn size<S>(word: &'static str) -> Form<S, u64> {
    text(word, "SIZE", |words, word| words.size(word), tc::size)
}

/// A size that the kernel's 32 bits hold.
#[must_use]
pub const fn size_u32<S>(word: &'static str) -> Form<S, u32> {
    fn read(words: &mut Words<'_>, word: &str) -> Result<u32, Problem> {
        words.value(word, |text| {
            let bytes = parse_size(text)?.get();
            u32::try_from(bytes).map_err(|_| tc::unreadable(text, "a size below 4 GiB"))
        })
    }
    text(word, "SIZE", read, |bytes| tc::size(u64::from(bytes)))
}

/// A time in nanoseconds, which the kernel is told in whole microseconds; no longer than the longest run.
#[must_use]
pub const fn time<S>(word: &'static str) -> Form<S, u64> {
    let mut form = text(word, "TIME", |words, word| words.time(word), tc::time);
    form.check = Some(|report, field, ns| report.time(field, ns, 0));
    form.range = "up to 17000s";
    form.encoding = Encoding::By(|ns| u64::from(crate::netlink::micros(ns)));
    form
}

/// A shaper's rate in bit/s, which the kernel is told in bytes per second.
#[must_use]
pub const fn rate<S>(word: &'static str) -> Form<S, u64> {
    let mut form = text(word, "RATE", |words, word| words.rate(word), tc::rate);
    form.check = Some(|report, field, bps| report.shaper_rate(field, bps));
    form.range = "8bit to 10tbit";
    form.encoding = Encoding::By(|bps| bps / 8);
    form
}

/// A percentage, held as a number from 0 to 1.
#[must_use]
pub const fn share<S>(word: &'static str) -> Form<S, f64> {
    let mut form = text(word, "PERCENT", |words, word| words.share(word), format_percent);
    form.check = Some(|report, field, share| report.share(field, share));
    form.range = "0% to 100%";
    form
}

/// Words that are values themselves; the kernel's number of each is its place in the list.
#[must_use]
pub const fn one_of<S, T: Plain>(choices: &'static [(&'static str, T)]) -> Form<S, T> {
    fn read<T>(_words: &mut Words<'_>, word: &str) -> Result<T, Problem> {
        Err(tc::unknown(word, &[], &[]))
    }
    let mut form = text("", "", read, |_| String::new());
    form.choices = choices;
    form.encoding = Encoding::Position;
    form
}

/// Words that switch something on and off; where only one is named, it is the one that is not the default.
#[must_use]
pub const fn switch<S>(choices: &'static [(&'static str, bool)]) -> Form<S, bool> {
    let mut form = one_of(choices);
    form.encoding = Encoding::By(bool::number);
    form
}

/// A field that no word of its own says.
#[must_use]
pub const fn unnamed<S, T: Plain>() -> Form<S, T> {
    fn read<T>(_words: &mut Words<'_>, word: &str) -> Result<T, Problem> {
        Err(tc::unknown(word, &[], &[]))
    }
    text("", "", read, |_| String::new())
}

impl<S, T: Plain> Form<S, T> {
    pub(super) fn position_of(&self, value: Option<T>) -> Option<usize> {
        self.choices.iter().position(|(_, one)| Some(*one) == value)
    }

    /// Sets the placeholder for the value on the reference page.
    pub const fn called(mut self, what: &'static str) -> Self {
        self.what = what;
        self
    }

    /// tc's other words for it, which are read and not written.
    pub const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Other words that are values, which are read and not written.
    pub const fn also(mut self, synonyms: &'static [(&'static str, T)]) -> Self {
        self.synonyms = synonyms;
        self
    }

    /// The word that says that there is no value.
    pub const fn or_none(mut self, word: &'static str) -> Self {
        self.none = word;
        self
    }

    /// The value is written another way than it is read.
    pub const fn written(mut self, write: fn(T) -> String) -> Self {
        self.write = write;
        self
    }

    /// Sets a side effect of the word.
    pub const fn then(mut self, then: fn(&mut S)) -> Self {
        self.then = Some(then);
        self
    }

    /// tc wants to be told; a message gives this value for an example.
    pub const fn mandatory(mut self, example: &'static str) -> Self {
        self.mandatory = Some(example);
        self
    }

    /// Describes the default, where it follows from other words.
    pub const fn usually(mut self, default: &'static str) -> Self {
        self.usually = default;
        self
    }

    /// tc's text leaves out the default.
    pub const fn unless_usual(mut self) -> Self {
        self.shown = Shown::UnlessUsual;
        self
    }

    /// tc's text has it where this says so.
    pub const fn shown_if(mut self, shown: fn(&S) -> bool) -> Self {
        self.shown = Shown::If(shown);
        self
    }

    /// tc's text has it behind this field; an empty name: in front.
    pub const fn after(mut self, field: &'static str) -> Self {
        self.after = Some(field);
        self
    }

    /// It may stand behind the value of the row above, without a word; where nothing follows, it has its default.
    pub const fn behind(mut self) -> Self {
        self.behind = Behind::Reset;
        self
    }

    /// The same, but what is not said stays as an earlier word of the text set it.
    pub const fn behind_or_kept(mut self) -> Self {
        self.behind = Behind::Kept;
        self
    }

    /// No number may follow, and why.
    pub const fn alone(mut self, expected: &'static str) -> Self {
        self.alone = Some(expected);
        self
    }

    /// A range of another kind, and how the reference page says it.
    pub const fn within(mut self, range: &'static str, check: fn(&mut Report, String, T)) -> Self {
        self.range = range;
        self.check = Some(check);
        self
    }

    /// An attribute of 32 bits.
    pub const fn attribute(mut self, kind: u16) -> Self {
        self.place = Some(Place::Attribute(kind));
        self
    }

    /// An attribute of 8 bits.
    pub const fn octet(self, kind: u16) -> Self {
        let mut form = self.attribute(kind);
        form.width = Width::Octet;
        form
    }

    /// An attribute of 64 bits.
    pub const fn long(self, kind: u16) -> Self {
        let mut form = self.attribute(kind);
        form.width = Width::Long;
        form
    }

    /// 32 bits at this byte of the C structure.
    pub const fn at(mut self, byte: usize) -> Self {
        self.place = Some(Place::At(byte));
        self
    }

    /// Sets the encoding of the value for the kernel.
    pub const fn encoded(mut self, encode: fn(T) -> u64) -> Self {
        self.encoding = Encoding::By(encode);
        self
    }

    /// The kernel is told a zero where there is no value.
    pub const fn or_zero(mut self) -> Self {
        self.always = true;
        self
    }

    /// The attribute stands behind the others.
    pub const fn last(mut self) -> Self {
        self.last = true;
        self
    }

    /// The kernel must report what it was told; a message calls it by its word.
    pub const fn confirmed(self) -> Self {
        self.confirmed_as("")
    }

    /// The kernel must report what it was told; a message calls it so.
    pub const fn confirmed_as(mut self, what: &'static str) -> Self {
        self.confirmed = Some(what);
        self
    }
}

impl<S, T: Plain + Display + PartialOrd> Form<S, T> {
    /// The least value.
    pub const fn at_least(mut self, least: T) -> Self {
        self.least = Some((Bound::At(least), |report, field, value, least| {
            report.at_least(field, value, least);
        }));
        self
    }

    /// The greatest value.
    pub const fn at_most(mut self, most: T) -> Self {
        self.most = Some((Bound::At(most), |report, field, value, most| {
            report.at_most(field, value, most);
        }));
        self
    }

    /// Not less than the field that the page calls `name`.
    pub const fn at_least_of(mut self, name: &'static str, least: fn(&S) -> T) -> Self {
        self.least = Some((Bound::Field(name, least), |report, field, value, least| {
            report.at_least(field, value, least);
        }));
        self
    }

    /// Not more than the field that the page calls `name`.
    pub const fn at_most_of(mut self, name: &'static str, most: fn(&S) -> T) -> Self {
        self.most = Some((Bound::Field(name, most), |report, field, value, most| {
            report.at_most(field, value, most);
        }));
        self
    }
}
