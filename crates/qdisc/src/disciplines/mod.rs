//! One folder per discipline, and the registry that gathers them.
//!
//! In a folder: the model in `mod.rs`; in `spec.rs` one table of its fields, from which tc's words both ways, checks and the
//! kernel's form follow, its facts and its place in the property tests. `dragstrip new-qdisc NAME` adds one.

pub mod cake;
pub mod choke;
pub mod codel;
mod configuration;
pub mod dualpi2;
pub mod ets;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod htb;
pub mod netem;
pub mod pie;
pub mod police;
pub mod prio;
pub mod red;
pub mod sfb;
pub mod sfq;
pub mod skbprio;
pub mod tbf;
pub mod tree;

pub use configuration::{Buffer, Class, Configuration, Confirmation, Facts, Payment, Streams};

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink, Verdict};
use crate::table::Line;
use crate::tc::{Words, wrong};
use dragstrip_units::{Instant, Problem, Report, suggest};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets in a queue of Ethernet's default length (`txqueuelen`).
pub(crate) const TXQUEUELEN: u32 = 1000;
/// Priorities of `skb->priority` that `priomap` names (`TC_PRIO_MAX` + 1).
pub(crate) const PRIORITIES: usize = 16;
/// Bytes of a full Ethernet frame without FCS (`psched_mtu` at an MTU of 1500).
pub(crate) const FRAME: u32 = 1514;
/// The kernel's most for a quantum (`FQ_CODEL_QUANTUM_MAX` and sfq's).
pub(crate) const QUANTUM_MAX: u32 = 1 << 20;

/// Description of a kind of discipline for a page, a message or a test.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The kernel's name.
    pub name: &'static str,
    /// tc's words that are understood.
    pub words: fn() -> Vec<&'static str>,
    /// The scenario's field that a word sets.
    pub field: fn(&str) -> Option<&'static str>,
    /// tc's words that are refused, for the simulator does not model them.
    pub unmodelled: &'static [&'static str],
    /// Its table, for the reference page.
    pub lines: fn() -> Vec<Line>,
    /// The least text that tc accepts.
    pub least: &'static str,
    /// Text of the page in addition to the table.
    pub notes: &'static str,
    /// Texts that between them say what it can do ([`Configuration::EXAMPLES`]).
    pub examples: &'static [&'static str],
    /// Texts at the ends of the ranges ([`Configuration::EXTREMES`]).
    pub extremes: &'static [&'static str],
    /// True when the discipline has classes with disciplines of their own.
    pub classful: bool,
    /// True when `tc qdisc change` leaves parameters unchanged that it does not name.
    pub keeps: bool,
    /// Serves packets in order of arrival and drops the arriving packet when it is full.
    pub fifo: bool,
    /// Drops or marks packets before it is full (active queue management, RFC 7567).
    pub aqm: bool,
    /// Drops or marks with a probability wherever it acts ([`Configuration::PROBABILISTIC`]).
    pub probabilistic: bool,
    /// Releases a flow's packets at the sender's pacing rate.
    pub paces: bool,
    /// True when the kernel has a change operation for it.
    pub changeable: bool,
    /// First Linux release (major, minor) that has it, if a kernel in use today may be older.
    pub since: Option<(u32, u32)>,
    /// The kernel's modules that it may be in.
    pub modules: &'static [&'static str],
}

impl Kind {
    /// The row of a discipline.
    const fn of<T: Configuration>() -> Self {
        Self {
            name: T::KIND,
            words: T::words,
            field: T::field,
            unmodelled: T::UNMODELLED,
            lines: T::lines,
            least: T::LEAST,
            notes: T::NOTES,
            examples: T::EXAMPLES,
            extremes: T::EXTREMES,
            classful: T::CLASSFUL,
            keeps: T::KEEPS,
            fifo: T::FIFO,
            aqm: T::AQM,
            probabilistic: T::PROBABILISTIC,
            paces: T::PACES,
            changeable: T::CHANGEABLE,
            since: T::SINCE,
            modules: T::MODULES,
        }
    }
}

/// Registers disciplines: one line each. The order is the order of the reference page.
macro_rules! disciplines {
    ($($variant:ident($spec:ty)),+ $(,)?) => {
        /// A queue discipline, as tc(8) would configure it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[allow(missing_docs, reason = "each variant has the description of its configuration")]
        pub enum QdiscSpec {
            $($variant($spec),)+
        }

        /// Any registered discipline, dispatched statically.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "each variant has the description of its model")]
        pub enum Discipline {
            $($variant(<$spec as Configuration>::Model),)+
        }

        /// All kinds.
        pub const KINDS: &[Kind] = &[$(Kind::of::<$spec>()),+];

        $(impl From<$spec> for QdiscSpec {
            fn from(spec: $spec) -> Self {
                Self::$variant(spec)
            }
        })+

        impl QdiscSpec {
            /// The discipline of this kind that the rest of `words` describes; none: no such kind.
            fn parse_kind(kind: &str, words: &mut Words<'_>) -> Option<Result<Self, Problem>> {
                $(if kind == <$spec>::KIND {
                    return Some(<$spec>::parse(words).map(Self::$variant));
                })+
                None
            }

            /// The discipline, empty.
            #[must_use]
            pub fn build(&self, streams: &Streams<'_>) -> Discipline {
                match self { $(Self::$variant(spec) => Discipline::$variant(spec.build(streams)),)+ }
            }

            /// The discipline's row.
            #[must_use]
            pub const fn row(&self) -> &'static Kind {
                match self { $(Self::$variant(_) => const { &Kind::of::<$spec>() },)+ }
            }

            /// The kernel's name.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$spec>::KIND,)+ }
            }

            /// The configuration in tc's words; [`Self::parse`] gives it back when it is valid.
            #[must_use]
            pub fn print(&self) -> String {
                match self { $(Self::$variant(spec) => spec.print().to_string(),)+ }
            }

            /// Ranges and contradictions; `at` is the JSON path of this configuration.
            pub fn check(&self, at: &str, report: &mut Report) {
                match self { $(Self::$variant(spec) => spec.check(at, report),)+ }
            }

            /// Returns the facts that other code needs without knowing the discipline.
            #[must_use]
            pub fn facts(&self) -> Facts {
                match self { $(Self::$variant(spec) => spec.facts(),)+ }
            }

            /// The same with one setting changed; none: it has no such setting.
            #[must_use]
            pub fn changed(&self, change: Change) -> Option<Self> {
                match self { $(Self::$variant(spec) => spec.changed(change).map(Self::$variant),)+ }
            }

            /// The value of netlink's `TCA_OPTIONS` as tc(8) sends it; none: the kind says it all.
            #[must_use]
            pub fn options(&self) -> Option<Vec<u8>> {
                match self { $(Self::$variant(spec) => spec.options(),)+ }
            }

            /// The same as tc(8) sends it to change a discipline that is there.
            #[must_use]
            pub fn change_options(&self) -> Option<Vec<u8>> {
                let fixed = match self { $(Self::$variant(_) => <$spec>::FIXED,)+ };
                let options = self.options()?;
                Some(match fixed {
                    Some(kind) => crate::netlink::without(&options, kind),
                    None => options,
                })
            }

            /// True when the kernel wants those options flagged as nested (`NLA_F_NESTED`).
            #[must_use]
            pub const fn nested(&self) -> bool {
                match self { $(Self::$variant(_) => <$spec>::NESTED,)+ }
            }

            /// True when the discipline takes single frames only: a burst that is one packet is split before it.
            #[must_use]
            pub const fn cuts_bursts(&self) -> bool {
                match self { $(Self::$variant(_) => <$spec>::CUTS_BURSTS,)+ }
            }

            /// The classes that are set up in the kernel besides the discipline itself.
            #[must_use]
            pub fn classes(&self) -> Vec<Class<'_>> {
                match self { $(Self::$variant(spec) => spec.classes(),)+ }
            }

            /// Returns the values that the kernel must report in `TCA_OPTIONS`.
            #[must_use]
            pub fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
                match self { $(Self::$variant(spec) => spec.confirm(options),)+ }
            }

            /// The same of class number `index`.
            #[must_use]
            pub fn confirm_class(&self, index: usize, options: &[u8]) -> Vec<Confirmation> {
                match self { $(Self::$variant(spec) => spec.confirm_class(index, options),)+ }
            }

            /// Packets marked so far, from the kernel's `TCA_STATS_APP`.
            #[must_use]
            pub fn marked(&self, statistics: &[u8]) -> u64 {
                match self { $(Self::$variant(spec) => spec.marked(statistics),)+ }
            }

            /// Random configurations of any kind.
            #[cfg(any(test, feature = "arbitrary"))]
            pub fn arbitrary(
                scope: crate::arbitrary::Scope,
            ) -> proptest::strategy::BoxedStrategy<Self> {
                Self::arbitrary_where(scope, |_| true)
            }

            /// Random configurations of any kind that has no classes.
            #[cfg(any(test, feature = "arbitrary"))]
            pub fn arbitrary_classless(
                scope: crate::arbitrary::Scope,
            ) -> proptest::strategy::BoxedStrategy<Self> {
                Self::arbitrary_where(scope, |classful| !classful)
            }

            #[cfg(any(test, feature = "arbitrary"))]
            fn arbitrary_where(
                scope: crate::arbitrary::Scope,
                wanted: impl Fn(bool) -> bool,
            ) -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy as _;
                let mut kinds = Vec::new();
                $(if wanted(<$spec>::CLASSFUL) {
                    kinds.push(<$spec>::arbitrary(scope).prop_map(Self::$variant).boxed());
                })+
                proptest::strategy::Union::new(kinds).boxed()
            }
        }

        impl Qdisc for Discipline {
            #[inline]
            fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
                match self { $(Self::$variant(inner) => inner.enqueue(item, now, sink),)+ }
            }

            #[inline]
            fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
                match self { $(Self::$variant(inner) => inner.dequeue(now, sink),)+ }
            }

            #[inline]
            fn backlog(&self) -> Backlog {
                match self { $(Self::$variant(inner) => inner.backlog(),)+ }
            }

            #[inline]
            fn head(&self) -> Option<Item> {
                match self { $(Self::$variant(inner) => inner.head(),)+ }
            }

            fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
                match self { $(Self::$variant(inner) => inner.change(change, now, sink),)+ }
            }
        }
    };
}

disciplines! {
    Noqueue(fifo::NoqueueSpec),
    Bfifo(fifo::BfifoSpec),
    Pfifo(fifo::PfifoSpec),
    Tbf(tbf::TbfSpec),
    Htb(htb::HtbSpec),
    Police(police::PoliceSpec),
    Prio(prio::PrioSpec),
    Ets(ets::EtsSpec),
    Codel(codel::CodelSpec),
    Fq(fq::FqSpec),
    FqCodel(fq_codel::FqCodelSpec),
    Sfq(sfq::SfqSpec),
    Red(red::RedSpec),
    Choke(choke::ChokeSpec),
    Sfb(sfb::SfbSpec),
    Pie(pie::PieSpec),
    FqPie(fq_pie::FqPieSpec),
    Cake(cake::CakeSpec),
    Dualpi2(dualpi2::DualPi2Spec),
    Netem(Box<netem::NetemSpec>),
    Skbprio(skbprio::SkbprioSpec),
    Tc(Box<tree::TreeSpec>),
}

impl Default for QdiscSpec {
    fn default() -> Self {
        Self::NOQUEUE
    }
}

impl Discipline {
    /// The queue that drops at its tail, if it is nothing else.
    #[must_use]
    pub fn fifo(&self) -> Option<&fifo::Fifo> {
        if let Self::Noqueue(fifo) | Self::Bfifo(fifo) | Self::Pfifo(fifo) = self {
            Some(fifo)
        } else {
            None
        }
    }
}

impl QdiscSpec {
    /// No queue at all: nobody waits, nothing is dropped, nothing needs to be watched.
    pub const NOQUEUE: Self = Self::Noqueue(fifo::NoqueueSpec {});

    /// The policer in front of it, if there is one: it is the outermost, or stands in a class.
    #[must_use]
    pub fn policer(&self) -> Option<&police::PoliceSpec> {
        if let Self::Htb(htb) = self {
            return htb.leaf.policer();
        }
        if let Self::Police(police) = self { Some(police) } else { None }
    }

    /// The same without its policer: in its place stands the queue behind it.
    #[must_use]
    pub fn unpoliced(&self) -> Self {
        if let Self::Police(police) = self {
            return (*police.leaf).clone();
        }
        if let Self::Htb(htb) = self {
            return htb::HtbSpec { leaf: Box::new(htb.leaf.unpoliced()), ..htb.clone() }.into();
        }
        self.clone()
    }

    /// The queue discipline that `text` describes in tc's words.
    ///
    /// # Errors
    /// An unknown word, a missing or unreadable value, a missing mandatory word; the problem's `value`
    /// is the word, its `field` is empty.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let plain = tree::plain(text);
        let mut words = Words::new(&plain);
        Self::parse_words(&mut words)
    }

    /// The queue discipline that the rest of `words` describes.
    pub(crate) fn parse_words(words: &mut Words<'_>) -> Result<Self, Problem> {
        let names = || KINDS.iter().map(|kind| kind.name);
        let list = names().collect::<Vec<_>>().join(", ");
        let Some(kind) = words.next() else {
            return Err(wrong("nothing", format!("a queue discipline: {list}")));
        };
        Self::parse_kind(kind, words).unwrap_or_else(|| {
            let expected = format!("a queue discipline: {list}");
            let plain = kind.to_lowercase().replace(['-', '_'], "");
            let expected = if FIFOS.contains(&plain.as_str()) {
                format!("{expected}; did you mean \"pfifo\"?")
            } else {
                suggest(kind, names(), &expected)
            };
            Err(wrong(format!("{kind:?}"), expected))
        })
    }
}

/// Other common names of a tail-drop queue.
const FIFOS: [&str; 3] = ["droptail", "taildrop", "fifo"];

#[cfg(test)]
mod tests;
