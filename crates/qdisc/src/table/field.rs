//! A row that one field of the configuration stands behind.

use super::describe::Described;
use super::form::{Bound, Encoding, Form, Shown, Width};
use super::value::{Held, Plain};
use super::{Behind, Draft, Expected, Part, Place, Sent};
use crate::netlink::saturated;
use crate::tc::Words;
use dragstrip_units::{Problem, Report};

/// A [`Form`] and the field that it is of.
pub struct Field<S: 'static, H: Held> {
    pub(super) form: Form<S, H::Value>,
    pub(super) get: fn(&S) -> &H,
    pub(super) get_mut: fn(&mut S) -> &mut H,
}

impl<S, T: Plain> Form<S, T> {
    /// The row of this form's field.
    pub const fn on<H: Held<Value = T>>(
        self,
        get: fn(&S) -> &H,
        get_mut: fn(&mut S) -> &mut H,
    ) -> Field<S, H> {
        Field { form: self, get, get_mut }
    }
}

impl<S: Default, H: Held> Field<S, H> {
    fn value(&self, spec: &S) -> Option<H::Value> {
        (self.get)(spec).value()
    }

    fn is_usual(&self, spec: &S) -> bool {
        self.value(spec) == self.value(&S::default())
    }

    /// In the kernel's form.
    fn encoded(&self, spec: &S) -> Option<u64> {
        let form = &self.form;
        let Some(value) = self.value(spec) else { return form.always.then_some(0) };
        Some(match form.encoding {
            Encoding::By(encode) => encode(value),
            Encoding::Position => form.position_of(Some(value)).unwrap_or_default() as u64,
        })
    }
}

impl<S: Default + 'static, H: Held> Part<S> for Field<S, H> {
    fn listed(&self) -> Vec<&'static str> {
        let form = &self.form;
        let choices = form.choices.iter().map(|(word, _)| *word);
        let one = [form.word].into_iter().chain(choices).chain([form.none]);
        one.filter(|word| !word.is_empty()).collect()
    }

    fn takes(&self, word: &str) -> bool {
        let form = &self.form;
        self.listed().contains(&word)
            || form.aliases.contains(&word)
            || form.synonyms.iter().any(|(synonym, _)| *synonym == word)
    }

    fn read(
        &self,
        draft: &mut Draft<'_, S>,
        words: &mut Words<'_>,
        word: &str,
    ) -> Result<(), Problem> {
        let form = &self.form;
        let choices = form.choices.iter().chain(form.synonyms);
        let choice = choices.into_iter().find(|(choice, _)| *choice == word);
        let value = match choice {
            Some((_, value)) => Some(*value),
            None if word == form.none => None,
            None => Some((form.read)(words, word)?),
        };
        (self.get_mut)(&mut draft.spec).set(value);
        if let Some(then) = form.then {
            then(&mut draft.spec);
        }
        Ok(())
    }

    fn reset(&self, spec: &mut S) {
        (self.get_mut)(spec).set(self.value(&S::default()));
    }

    fn example(&self) -> Option<&'static str> {
        self.form.mandatory
    }

    fn after(&self) -> Option<&'static str> {
        self.form.after
    }

    fn behind(&self) -> Behind {
        self.form.behind
    }

    fn alone(&self) -> Option<&'static str> {
        self.form.alone
    }

    fn print(&self, spec: &S) -> Option<String> {
        let form = &self.form;
        let shown = match form.shown {
            Shown::Always => true,
            Shown::UnlessUsual => !self.is_usual(spec),
            Shown::If(shown) => shown(spec),
        };
        let Some(value) = self.value(spec).filter(|_| shown) else {
            return (shown && !form.none.is_empty()).then(|| form.none.to_owned());
        };
        if form.word.is_empty() {
            return form
                .choices
                .iter()
                .find(|(_, one)| *one == value)
                .map(|(word, _)| (*word).into());
        }
        Some(format!("{} {}", form.word, (form.write)(value)))
    }

    fn number(&self, spec: &S) -> (String, bool) {
        let text = self.value(spec).map(self.form.write).unwrap_or_default();
        (text, self.is_usual(spec))
    }

    fn check(&self, spec: &S, field: &dyn Fn() -> String, report: &mut Report) {
        let (form, Some(value)) = (&self.form, self.value(spec)) else { return };
        if let Some(check) = form.check {
            check(report, field(), value);
        }
        if let Some((bound, complain)) = &form.least {
            complain(report, field(), value, bound.of(spec));
        }
        if let Some((bound, complain)) = &form.most {
            complain(report, field(), value, bound.of(spec));
        }
    }

    fn send(&self, spec: &S) -> Option<Sent> {
        let place = self.form.place?;
        let number = self.encoded(spec)?;
        let bytes = match self.form.width {
            Width::Octet => vec![u8::try_from(number).unwrap_or(u8::MAX)],
            Width::Word => saturated(number).to_ne_bytes().to_vec(),
            Width::Long => number.to_ne_bytes().to_vec(),
        };
        Some(Sent { place, bytes, last: self.form.last })
    }

    fn expect(&self, spec: &S) -> Option<(Place, Expected)> {
        let what = self.form.confirmed?;
        let what = if what.is_empty() { self.listed().first().copied()? } else { what };
        let number = self.encoded(spec)?;
        let number = match self.form.width {
            Width::Octet | Width::Word => saturated(number),
            // The lower half.
            Width::Long => number as u32,
        };
        Some((self.form.place?, Expected { what, number }))
    }

    fn describe(&self) -> Described {
        let form = &self.form;
        let usual = self.value(&S::default());
        let default = match (usual, form.position_of(usual)) {
            _ if !form.usually.is_empty() => form.usually.to_owned(),
            (None, _) => form.none.to_owned(),
            (Some(_), Some(at)) => form.choices[at].0.to_owned(),
            (Some(value), None) => (form.write)(value),
        };
        let bound = |bound: &Option<_>| bound.as_ref().map(|(one, _)| Bound::text(one, form.write));
        Described {
            words: self.listed(),
            value: form.what,
            mandatory: form.mandatory.is_some(),
            default,
            least: bound(&form.least),
            most: bound(&form.most),
            range: form.range,
            behind: form.behind != Behind::No,
            about: String::new(),
        }
    }
}
