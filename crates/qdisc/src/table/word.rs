//! A row whose word sets several fields, or none: with functions of its own.

use super::describe::Described;
use super::{Draft, Expected, Part, Place, Sent};
use crate::netlink::word as word_at;
use crate::tc::Words;
use dragstrip_units::{Problem, Report};

/// Reads what follows a word.
type ReadWord<S> = fn(&mut Draft<'_, S>, &mut Words<'_>, &str) -> Result<(), Problem>;

/// A value in the kernel's form; none: it is not told.
type Value<S> = fn(&S) -> Option<Vec<u8>>;

/// Words with functions of their own.
pub struct Word<S: 'static> {
    listed: &'static [&'static str],
    more: fn() -> Vec<&'static str>,
    hidden: &'static [&'static str],
    what: &'static str,
    about: fn() -> String,
    read: ReadWord<S>,
    print: fn(&S) -> Option<String>,
    after: Option<&'static str>,
    check: Option<fn(&S, &str, &mut Report)>,
    send: Option<(Place, Value<S>)>,
    confirmed: Option<&'static str>,
}

impl<S> Word<S> {
    /// Words, what stands for their value on the reference page, and how it is read.
    pub const fn new(
        listed: &'static [&'static str],
        what: &'static str,
        read: ReadWord<S>,
    ) -> Self {
        Self {
            listed,
            more: Vec::new,
            hidden: &[],
            what,
            about: String::new,
            read,
            print: |_| None,
            after: None,
            check: None,
            send: None,
            confirmed: None,
        }
    }

    /// A number of netlink's that no word says.
    pub const fn sent(place: Place, value: Value<S>) -> Self {
        let mut word = Self::new(&[], "", |_, _, _| Ok(()));
        word.send = Some((place, value));
        word
    }

    /// The row of a field that this is.
    pub const fn on<H>(self, _get: fn(&S) -> &H, _get_mut: fn(&mut S) -> &mut H) -> Self {
        self
    }

    /// Other words for it, which are not listed.
    pub const fn or(mut self, hidden: &'static [&'static str]) -> Self {
        self.hidden = hidden;
        self
    }

    /// The words of a list, too.
    pub const fn and(mut self, more: fn() -> Vec<&'static str>) -> Self {
        self.more = more;
        self
    }

    /// Describes the words, for the reference page.
    pub const fn about(mut self, about: fn() -> String) -> Self {
        self.about = about;
        self
    }

    /// Sets the formatting in tc's text.
    pub const fn printed(mut self, print: fn(&S) -> Option<String>) -> Self {
        self.print = print;
        self
    }

    /// tc's text has it behind this field.
    pub const fn after(mut self, field: &'static str) -> Self {
        self.after = Some(field);
        self
    }

    /// Sets the check of its value; the function is given the JSON path of the field.
    pub const fn checked(mut self, check: fn(&S, &str, &mut Report)) -> Self {
        self.check = Some(check);
        self
    }

    /// The kernel is told this.
    pub const fn sends(mut self, place: Place, value: Value<S>) -> Self {
        self.send = Some((place, value));
        self
    }

    /// The kernel must report what it was told; a message calls it so.
    pub const fn confirmed_as(mut self, what: &'static str) -> Self {
        self.confirmed = Some(what);
        self
    }
}

impl<S> Part<S> for Word<S> {
    fn listed(&self) -> Vec<&'static str> {
        self.listed.iter().copied().chain((self.more)()).collect()
    }

    fn takes(&self, word: &str) -> bool {
        self.listed().contains(&word) || self.hidden.contains(&word)
    }

    fn read(
        &self,
        draft: &mut Draft<'_, S>,
        words: &mut Words<'_>,
        word: &str,
    ) -> Result<(), Problem> {
        (self.read)(draft, words, word)
    }

    fn after(&self) -> Option<&'static str> {
        self.after
    }

    fn print(&self, spec: &S) -> Option<String> {
        (self.print)(spec)
    }

    fn check(&self, spec: &S, field: &dyn Fn() -> String, report: &mut Report) {
        if let Some(check) = self.check {
            check(spec, &field(), report);
        }
    }

    fn send(&self, spec: &S) -> Option<Sent> {
        let (place, value) = self.send?;
        Some(Sent { place, bytes: value(spec)?, last: false })
    }

    fn expect(&self, spec: &S) -> Option<(Place, Expected)> {
        let Sent { place, bytes, .. } = self.send(spec)?;
        Some((place, Expected { what: self.confirmed?, number: word_at(&bytes, 0)? }))
    }

    fn describe(&self) -> Described {
        Described {
            words: self.listed(),
            value: self.what,
            about: (self.about)(),
            ..Described::default()
        }
    }
}
