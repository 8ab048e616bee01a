//! The interface of a discipline's configuration: one implementation per discipline, in its folder.

use super::QdiscSpec;
use crate::contract::Change;
use crate::contract::Qdisc;
use crate::table::{self, Draft, GivenWords, Layout, Line, Row, Table};
use crate::tc::{self, Text, Words};
use crate::token_rate::Framing;
use dragstrip_units::{Problem, Report, Stream};
use serde::Serialize;
use std::fmt::Debug;

/// A discipline as a scenario, tc(8) and the kernel describe it. Quantities are in base units, named by the suffix
/// of the field (`_ns`, `_bps`, `_bytes`, `_packets`).
pub trait Configuration: Table + Clone + Debug + PartialEq {
    /// Model that it builds.
    type Model: Qdisc + Clone + Debug;

    /// The kernel's name, which is tc's first word and the scenario's `kind`.
    const KIND: &'static str;
    /// tc's words that exist and that the simulator does not model.
    const UNMODELLED: &'static [&'static str] = &[];
    /// The least text that tc accepts.
    const LEAST: &'static str = Self::KIND;
    /// Text of the reference page in addition to the table: items of a Markdown list.
    const NOTES: &'static str = "";
    /// Valid texts that between them say what the discipline can do: the tests of every crate go through them.
    const EXAMPLES: &'static [&'static str];
    /// Valid texts at the ends of the ranges, in which `{}` is a rate in bit/s: random scenarios draw from them.
    const EXTREMES: &'static [&'static str] = &[];
    /// True when the discipline has classes with disciplines of their own.
    const CLASSFUL: bool = false;
    /// True when the kernel reads `TCA_OPTIONS` strictly (`nla_parse_nested`) and wants the attribute flagged as
    /// nested.
    const NESTED: bool = false;
    /// Layout of the table's rows in netlink.
    const LAYOUT: Layout = Layout::Attributes;
    /// The attribute of the options that a change may not carry.
    const FIXED: Option<u16> = None;
    /// True when `tc qdisc change` leaves parameters unchanged that it does not name.
    const KEEPS: bool = matches!(Self::LAYOUT, Layout::Attributes);
    /// True when the discipline takes single frames only: a burst that is one packet is split before it.
    const CUTS_BURSTS: bool = false;
    /// Serves packets in order of arrival and drops the arriving packet when it is full.
    const FIFO: bool = false;
    /// Drops or marks packets before it is full (active queue management, RFC 7567).
    const AQM: bool = false;
    /// Drops or marks with a probability wherever it acts (RED, PIE), so that one run is one sample of many. The BLUE
    /// part of CAKE's COBALT, which acts only after an overflow, does not count; netem's chances are its settings.
    const PROBABILISTIC: bool = false;
    /// Releases a flow's packets at the sender's pacing rate (`sk_pacing_rate`).
    const PACES: bool = false;
    /// True when the kernel has a change operation for it (`Qdisc_ops::change`).
    const CHANGEABLE: bool = true;
    /// First Linux release (major, minor) that has it, if a kernel in use today may be older.
    const SINCE: Option<(u32, u32)> = None;
    /// The kernel's modules that it may be in.
    const MODULES: &'static [&'static str];

    /// Parses tc's text after the kind, with the defaults that tc and the kernel fill in.
    ///
    /// # Errors
    /// An unknown word, a missing or unreadable value, a contradiction that tc refuses; the problem's `value` is the
    /// word, its `field` is empty.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let Draft { spec, given } = table::parse::<Self>(words, Self::KIND, Self::unknown)?;
        spec.complete(&given)
    }

    /// Applies tc's derivations once all words are read.
    ///
    /// # Errors
    /// A contradiction that tc refuses.
    fn complete(self, _given: &GivenWords<'_>) -> Result<Self, Problem> {
        Ok(self)
    }

    /// `word` is none of the discipline's.
    fn unknown(word: &str) -> Problem {
        tc::unknown(word, &Self::words(), Self::UNMODELLED)
    }

    /// tc's words behind the kind that are understood.
    #[must_use]
    fn words() -> Vec<&'static str> {
        table::words::<Self>()
    }

    /// The scenario's field that a word sets; none: no row takes it.
    #[must_use]
    fn field(word: &str) -> Option<&'static str> {
        table::field_of::<Self>(word)
    }

    /// The table, for the reference page.
    #[must_use]
    fn lines() -> Vec<Line> {
        table::describe::<Self>()
    }

    /// The way back: tc's words, which parse to the same configuration when it is valid.
    fn print(&self) -> Text {
        table::print(Self::KIND, self)
    }

    /// Ranges and contradictions; `at` is the JSON path of this configuration.
    fn check(&self, at: &str, report: &mut Report) {
        table::check(self, at, report);
    }

    /// Returns the facts that other code needs without knowing the discipline.
    fn facts(&self) -> Facts;

    /// The discipline, empty.
    fn build(&self, streams: &Streams<'_>) -> Self::Model;

    /// The same with one setting changed; none: it has no such setting.
    fn changed(&self, _change: Change) -> Option<Self> {
        None
    }

    /// The value of netlink's `TCA_OPTIONS` as tc(8) sends it; none: the kind says it all.
    fn options(&self) -> Option<Vec<u8>> {
        Some(table::options(self, Self::LAYOUT))
    }

    /// The classes that are set up in the kernel besides the discipline itself.
    fn classes(&self) -> Vec<Class<'_>> {
        Vec::new()
    }

    /// Returns the values that the kernel must report in `TCA_OPTIONS` of an installed discipline.
    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        table::expected(self, Self::LAYOUT, options)
            .into_iter()
            .map(|(expected, found)| Confirmation::new(expected.what, found, expected.number))
            .collect()
    }

    /// The same of its class number `index`.
    fn confirm_class(&self, _index: usize, _options: &[u8]) -> Vec<Confirmation> {
        Vec::new()
    }

    /// Packets marked so far, from the kernel's `TCA_STATS_APP`.
    fn marked(&self, _statistics: &[u8]) -> u64 {
        0
    }

    /// Random configurations for property tests.
    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self>;
}

/// Facts about a discipline that other code needs without knowing its kind; children included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Bit/s above which it lets nothing go for long; none: as fast as the line takes it.
    pub rate_bps: Option<u64>,
    /// By which it holds every packet on average, rate and queueing apart.
    pub delay_ns: u64,
    /// Capacity of the queue.
    pub buffer: Buffer,
    /// Keeps packets back although the line is free: a shaper, or netem.
    pub shapes: bool,
    /// Packets of one flow may leave in another order than they came.
    pub reorders: bool,
    /// Draws random numbers: it is given a stream and takes something from it.
    pub draws: bool,
    /// Marks packets of ECN-capable flows with CE.
    pub marks: bool,
    /// Settings in bytes that must hold a packet as a whole, by field.
    pub holds_packet: Vec<(String, u64)>,
    /// Rates at which a packet must be paid for in time, by field.
    pub pays: Vec<(String, Payment)>,
}

/// A shaper's rate, and for how long a packet may be in its debt; beyond that the shaper forgets the debt and lets
/// more pass than the rate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment {
    /// Bit/s.
    pub rate_bps: u64,
    /// Most debt, seconds.
    pub seconds: u64,
    /// Length that a packet is charged for.
    pub framing: Framing,
}

impl Payment {
    /// The least rate at which a frame of so many bytes is paid for in time.
    #[must_use]
    pub fn least_bps(&self, frame_bytes: u64) -> u64 {
        let frame = u32::try_from(frame_bytes).unwrap_or(u32::MAX);
        8 * u64::from(self.framing.charged(frame)).div_ceil(self.seconds)
    }
}

impl Facts {
    /// Those of a plain queue.
    #[must_use]
    pub fn queue(buffer: Buffer) -> Self {
        Self { buffer, ..Self::default() }
    }

    /// The same, and `field` of so many bytes must hold a packet as a whole.
    #[must_use]
    pub fn holding(mut self, field: impl Into<String>, bytes: u64) -> Self {
        self.holds_packet.push((field.into(), bytes));
        self
    }
}

/// Capacity of a queue; unlimited without either limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// Limit in bytes of frames.
    pub bytes: Option<u64>,
    /// Limit in packets.
    pub packets: Option<u32>,
}

impl Buffer {
    /// Limited in bytes.
    #[must_use]
    pub const fn bytes(limit: u64) -> Self {
        Self { bytes: Some(limit), packets: None }
    }

    /// Limited in packets.
    #[must_use]
    pub const fn packets(limit: u32) -> Self {
        Self { bytes: None, packets: Some(limit) }
    }
}

/// A class as netlink describes it.
#[derive(Debug)]
pub struct Class<'a> {
    /// The value of `TCA_OPTIONS`.
    pub options: Vec<u8>,
    /// The discipline in it.
    pub child: &'a QdiscSpec,
}

/// A number that the kernel reports, beside the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// Name of the number.
    pub what: &'static str,
    /// In the kernel's answer, if it is there.
    pub found: Option<u32>,
    /// As configured.
    pub wanted: u32,
}

impl Confirmation {
    /// `what` should be `wanted`.
    #[must_use]
    pub const fn new(what: &'static str, found: Option<u32>, wanted: u32) -> Self {
        Self { what, found, wanted }
    }
}

/// The named streams of randomness of one place in the network.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    seed: u64,
    link: &'a str,
}

impl<'a> Streams<'a> {
    /// Those of the link called `link` in a run with this seed.
    #[must_use]
    pub const fn of_link(seed: u64, link: &'a str) -> Self {
        Self { seed, link }
    }

    /// Those of a class of the link's discipline.
    #[must_use]
    pub fn within(&self, class: &str) -> ClassStreams {
        ClassStreams { seed: self.seed, place: format!("{}/{class}", self.link) }
    }

    /// The stream of the discipline called `kind`.
    #[must_use]
    pub fn named(&self, kind: &str) -> Stream {
        Stream::named(self.seed, &format!("link/{}/{kind}", self.link))
    }
}

/// The named streams of randomness of a class.
#[derive(Clone, Debug)]
pub struct ClassStreams {
    seed: u64,
    place: String,
}

impl ClassStreams {
    /// The same for what is in the class.
    #[must_use]
    pub fn as_streams(&self) -> Streams<'_> {
        Streams::of_link(self.seed, &self.place)
    }
}

/// A boxed configuration has no rows of its own: whatever it is asked, the one inside answers.
impl<C: Table> Table for Box<C> {
    const ROWS: &'static [Row<Self>] = &[];
}

/// A large configuration is boxed in the registry.
impl<C: Configuration> Configuration for Box<C> {
    type Model = C::Model;

    const KIND: &'static str = C::KIND;
    const UNMODELLED: &'static [&'static str] = C::UNMODELLED;
    const LEAST: &'static str = C::LEAST;
    const NOTES: &'static str = C::NOTES;
    const EXAMPLES: &'static [&'static str] = C::EXAMPLES;
    const EXTREMES: &'static [&'static str] = C::EXTREMES;
    const CLASSFUL: bool = C::CLASSFUL;
    const NESTED: bool = C::NESTED;
    const LAYOUT: Layout = C::LAYOUT;
    const FIXED: Option<u16> = C::FIXED;
    const KEEPS: bool = C::KEEPS;
    const CUTS_BURSTS: bool = C::CUTS_BURSTS;
    const FIFO: bool = C::FIFO;
    const AQM: bool = C::AQM;
    const PROBABILISTIC: bool = C::PROBABILISTIC;
    const PACES: bool = C::PACES;
    const CHANGEABLE: bool = C::CHANGEABLE;
    const SINCE: Option<(u32, u32)> = C::SINCE;
    const MODULES: &'static [&'static str] = C::MODULES;

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        C::parse(words).map(Self::new)
    }

    fn words() -> Vec<&'static str> {
        C::words()
    }

    fn field(word: &str) -> Option<&'static str> {
        C::field(word)
    }

    fn lines() -> Vec<Line> {
        C::lines()
    }

    fn print(&self) -> Text {
        C::print(self)
    }

    fn check(&self, at: &str, report: &mut Report) {
        C::check(self, at, report);
    }

    fn facts(&self) -> Facts {
        C::facts(self)
    }

    fn build(&self, streams: &Streams<'_>) -> Self::Model {
        C::build(self, streams)
    }

    fn changed(&self, change: Change) -> Option<Self> {
        C::changed(self, change).map(Self::new)
    }

    fn options(&self) -> Option<Vec<u8>> {
        C::options(self)
    }

    fn classes(&self) -> Vec<Class<'_>> {
        C::classes(self)
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        C::confirm(self, options)
    }

    fn confirm_class(&self, index: usize, options: &[u8]) -> Vec<Confirmation> {
        C::confirm_class(self, index, options)
    }

    fn marked(&self, statistics: &[u8]) -> u64 {
        C::marked(self, statistics)
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::Strategy as _;
        C::arbitrary(scope).prop_map(Self::new).boxed()
    }
}
