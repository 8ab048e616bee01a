//! From a name to an algorithm.

use crate::agent::{self, Policy};
use crate::algorithms::*;
use crate::program::{Fault, Misread, Position, Program, Programmed};
use crate::{
    About, Ack, AckEvent, CaState, CongestionControl, Event, LostPacket, Options, Parameters,
    RateSample, Response, Rules, UnknownAlgorithm, View, Window,
};
use dragstrip_units::Stream;
use std::sync::Arc;

/// An algorithm from outside the registry, for tests of what the endpoint tells algorithms (feature `guest`): every
/// hook goes through a pointer.
#[cfg(feature = "guest")]
pub trait Guest: CongestionControl + std::fmt::Debug + Send + Sync {
    /// Its row.
    fn about(&self) -> &'static About;

    /// A copy.
    fn boxed(&self) -> Box<dyn Guest>;
}

#[cfg(feature = "guest")]
impl Clone for Box<dyn Guest> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// Registers algorithms, one line each: `module: Type`, and `in Box` if it is much larger than CUBIC. The module has the type and its
/// row, `ABOUT`. The order is the order of the reference page.
macro_rules! algorithms {
    ($($($module:ident)::+: $kind:ident $(in $store:ident)?),+ $(,)?) => {
        /// Any registered congestion control, without a pointer in between but for the largest, whose size all would have.
        #[derive(Clone, Debug)]
        pub enum Algorithm {
            $(#[doc = concat!("`", stringify!($($module)::+), "`")] $kind(algorithms!(@stored [$($module)::+::$kind] $($store)?)),)+
            /// A text of the scenario.
            Program(Box<Programmed>),
            /// A policy of the scenario, or an agent from outside.
            Agent(Box<Agent>),
            /// One that is not registered.
            #[cfg(feature = "guest")]
            Guest(Box<dyn Guest>),
        }

        /// The row of every registered algorithm.
        #[must_use]
        pub const fn about() -> &'static [About] {
            &[$($($module)::+::ABOUT),+]
        }

        /// The names of all registered algorithms, in the order of [`about`].
        #[must_use]
        pub const fn names() -> &'static [&'static str] {
            &[$($($module)::+::ABOUT.name),+]
        }

        impl Algorithm {
            /// The algorithm called `name` with these options, as the kernel with these rules has it; `stream` is its
            /// source of chance.
            ///
            /// # Errors
            /// An unknown name (with the nearest known one) or an unknown or absurd parameter.
            pub fn new(
                name: &str,
                options: &Options,
                rules: &Rules,
                stream: Stream,
            ) -> Result<Self, UnknownAlgorithm> {
                $(if name == $($module)::+::ABOUT.name {
                    let parameters = Parameters::new(&$($module)::+::ABOUT, options)?;
                    let algorithm = $($module)::+::$kind::new(&parameters, rules, stream);
                    return Ok(Self::$kind(algorithm.into()));
                })+
                Err(UnknownAlgorithm::Name { name: name.to_owned(), nearest: nearest(name) })
            }

            /// Its row.
            #[must_use]
            #[inline]
            pub fn about(&self) -> &'static About {
                match self {
                    $(Self::$kind(_) => &$($module)::+::ABOUT,)+
                    Self::Program(program) => program.about(),
                    Self::Agent(agent) => agent.about(),
                    #[cfg(feature = "guest")]
                    Self::Guest(guest) => guest.about(),
                }
            }
        }

        impl CongestionControl for Algorithm {
            algorithms!(@each [$($kind)+]
                fn init self (&mut self, view: &View, window: &mut Window) (view, window) -> ();
                fn ssthresh self (&mut self, view: &View, window: &mut Window) (view, window) -> u32;
                fn cong_avoid self (&mut self, view: &View, window: &mut Window, acked: u32) (view, window, acked) -> Response;
                fn set_state self (&mut self, view: &View, window: &mut Window, new: CaState) (view, window, new) -> ();
                fn cwnd_event self (&mut self, view: &View, window: &mut Window, event: Event) (view, window, event) -> ();
                fn acked self (&mut self, view: &View, window: &mut Window, ack: &Ack) (view, window, ack) -> ();
                fn in_ack_event self (&mut self, view: &View, window: &mut Window, event: &AckEvent) (view, window, event) -> ();
                fn undo_cwnd self (&mut self, view: &View, window: &mut Window) (view, window) -> u32;
                fn has_cong_control self (&self) () -> bool;
                fn cong_control self (&mut self, view: &View, window: &mut Window, sample: &RateSample) (view, window, sample) -> Response;
                fn wants_flights self (&self) () -> bool;
                fn wants_exact_echo self (&self) () -> bool;
                fn wants_l4s self (&self) () -> bool;
                fn marked_lost self (&mut self, view: &View, window: &mut Window, packet: &LostPacket) (view, window, packet) -> ();
                fn min_cwnd self (&self, window: &Window) (window) -> u32;
                fn min_tso_segs self (&self, view: &View, window: &Window) (view, window) -> Option<u32>;
                fn tso_segs self (&self) () -> Option<u32>;
                fn sndbuf_factor self (&self) () -> u32;
                fn phase self (&self, view: &View, window: &Window) (view, window) -> &'static str;
                fn variables self (&self, view: &View, window: &Window, tell: &mut dyn FnMut(&'static str, f64)) (view, window, tell) -> ();
            );
        }
    };
    (@stored [$($path:tt)+]) => { $($path)+ };
    (@stored [$($path:tt)+] Box) => { Box<$($path)+> };
    (@each $variants:tt $(fn $method:ident $this:ident $args:tt $call:tt -> $ret:ty;)+) => {
        $(algorithms!(@method $variants fn $method $this $args $call -> $ret);)+
    };
    (@method [$($variant:ident)+] fn $method:ident $this:ident $args:tt $call:tt -> $ret:ty) => {
        #[inline]
        fn $method $args -> $ret {
            match $this {
                $(Self::$variant(algorithm) => algorithm.$method $call,)+
                Self::Program(program) => program.$method $call,
                Self::Agent(agent) => agent.$method $call,
                #[cfg(feature = "guest")]
                Self::Guest(guest) => guest.$method $call,
            }
        }
    };
}

algorithms! {
    reno::linux: Reno,
    cubic::linux: Cubic,
    vegas::linux: Vegas,
    cdg::linux: Cdg in Box,
    cdg::freebsd: CdgFreebsd in Box,
    reno::freebsd: NewrenoFreebsd,
    cubic::freebsd: CubicFreebsd,
    vegas::freebsd: VegasFreebsd,
    bbr: Bbr in Box,
    exp: Exp,
    fixed: Fixed,
    bic: Bic,
    dctcp: Dctcp,
    highspeed: Highspeed,
    htcp: Htcp,
    hybla: Hybla,
    illinois: Illinois,
    lp: Lp,
    nv: Nv,
    scalable: Scalable,
    veno: Veno,
    westwood: Westwood,
    yeah: Yeah,
    bbr2: Bbr2 in Box,
    bbr3: Bbr3 in Box,
    ledbat: Ledbat,
    ledbatpp: Ledbatpp,
    prague: Prague,
    copa: Copa,
    cubic::rfc9438: CubicRfc9438,
}

/// An agent at work in one connection, perhaps over another algorithm.
pub type Agent = agent::Agent<Algorithm>;

/// The error of a policy whose inner algorithm is wrong.
fn not_within(error: UnknownAlgorithm) -> Misread {
    let (value, expected) = match error {
        UnknownAlgorithm::Name { name, nearest } => {
            (format!("inner: {name:?}"), format!("a congestion control, such as {nearest}"))
        }
        UnknownAlgorithm::Parameter { parameter, expected, .. } => {
            (format!("inner_options: {parameter:?}"), expected)
        }
    };
    Misread { at: Position { line: 1, column: 1 }, value, expected }
}

/// A text of a scenario that defines an algorithm.
#[derive(Clone, Debug)]
pub enum Text {
    /// A program.
    Program(Arc<Program>),
    /// A policy.
    Policy(Arc<Policy>),
}

impl Text {
    /// Reads a text: a policy if it is JSON, otherwise a program.
    ///
    /// # Errors
    /// The first place where it is neither.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        if Policy::is_policy(text) {
            let policy = Policy::parse(text)?;
            if let Some(name) = &policy.inner {
                check(name, &policy.inner_options).map_err(not_within)?;
            }
            return Ok(Self::Policy(Arc::new(policy)));
        }
        Program::parse(text).map(|program| Self::Program(Arc::new(program)))
    }

    /// Refuses parameters that it does not have.
    ///
    /// # Errors
    /// The parameter's name, and what would be right.
    pub fn check_options(&self, options: &Options) -> Result<(), (String, String)> {
        match self {
            Self::Program(program) => Programmed::new(program, options).map(|_| ()),
            Self::Policy(_) => match options.keys().next() {
                Some(name) => Err((name.clone(), "no parameters: a policy has none".to_owned())),
                None => Ok(()),
            },
        }
    }

    /// True for a policy.
    #[must_use]
    pub const fn is_policy(&self) -> bool {
        matches!(self, Self::Policy(_))
    }
}

impl Algorithm {
    /// The algorithm that a text is, with these parameters; `stream` is its source of chance.
    ///
    /// # Errors
    /// A parameter that it does not have, or that is no number: its name, and what would be right.
    pub fn of(
        text: &Text,
        options: &Options,
        rules: &Rules,
        stream: Stream,
    ) -> Result<Self, (String, String)> {
        match text {
            Text::Program(program) => {
                Programmed::new(program, options).map(|made| Self::Program(Box::new(made)))
            }
            Text::Policy(policy) => {
                text.check_options(options)?;
                let inner = match &policy.inner {
                    None => None,
                    Some(name) => {
                        let made = Self::new(name, &policy.inner_options, rules, stream);
                        let made = made.map_err(|error| (name.clone(), format!("{error:?}")))?;
                        let about = made.about();
                        Some((made, about))
                    }
                };
                Ok(Self::Agent(Box::new(Agent::new(policy, inner))))
            }
        }
    }

    /// The agent that it is.
    #[must_use]
    pub fn agent(&self) -> Option<&Agent> {
        if let Self::Agent(agent) = self { Some(agent) } else { None }
    }

    /// The same, to end its step or to act.
    pub fn agent_mut(&mut self) -> Option<&mut Agent> {
        if let Self::Agent(agent) = self { Some(agent) } else { None }
    }

    /// Returns the fault that has stopped a program: a result that is not a usable number.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        if let Self::Program(program) = self { program.fault() } else { None }
    }
}

/// Checks that there is an algorithm called `name` with these parameters.
///
/// # Errors
/// An unknown name (with the nearest known one), an unknown parameter or a value out of its range.
pub fn check(name: &str, options: &Options) -> Result<(), UnknownAlgorithm> {
    match about().iter().find(|row| row.name == name) {
        None => Err(UnknownAlgorithm::Name { name: name.to_owned(), nearest: nearest(name) }),
        Some(row) => Parameters::new(row, options).map(|_| ()),
    }
}

/// True when an algorithm draws random numbers. One that is not registered counts as drawing.
#[must_use]
pub fn draws(name: &str) -> bool {
    about().iter().find(|row| row.name == name).is_none_or(|row| row.needs.dice)
}

/// True when an algorithm asks for pacing. One that is not registered counts as asking. `-` and `_` are equivalent.
#[must_use]
pub fn paces(name: &str) -> bool {
    let name = name.replace('_', "-");
    about().iter().find(|row| row.name.replace('_', "-") == name).is_none_or(|row| row.needs.pacing)
}

/// The registered name with the smallest edit distance to `name`.
fn nearest(name: &str) -> &'static str {
    names().iter().copied().min_by_key(|known| strsim::levenshtein(name, known)).unwrap_or("reno")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RULES, options, stream};

    #[test]
    fn every_name_makes_an_algorithm_that_refuses_unknown_options() {
        // Others come after these.
        assert_eq!(
            names()[..11],
            [
                "reno",
                "cubic",
                "vegas",
                "cdg",
                "cdg-freebsd",
                "newreno-freebsd",
                "cubic-freebsd",
                "vegas-freebsd",
                "bbr",
                "exp",
                "fixed",
            ]
        );
        for name in names() {
            let controller = Algorithm::new(name, &Options::new(), &RULES, stream()).unwrap();
            assert_eq!(controller.about().name, *name);
            let colour = options(&[("colour", 1.0)]);
            let error = Algorithm::new(name, &colour, &RULES, stream()).unwrap_err();
            let UnknownAlgorithm::Parameter { algorithm, parameter, .. } = error else {
                panic!("{name}: {error:?}");
            };
            assert_eq!((algorithm, parameter.as_str()), (*name, "colour"));
        }
    }

    #[test]
    fn pacing_is_a_fact_of_the_row() {
        let pacing: Vec<&str> = names().iter().copied().filter(|name| paces(name)).collect();
        assert_eq!(pacing, ["bbr", "bbr2", "bbr3", "prague", "copa"]);
        assert!(paces("from_elsewhere"));
        assert!(!paces("cdg_freebsd"), "the kernel's spelling");
    }

    #[test]
    fn modules_are_named_as_in_linux() {
        for row in about() {
            if let Some(module) = row.module {
                assert_eq!(module, format!("tcp_{}", row.name));
                assert!(row.models.starts_with("Linux"), "{}", row.name);
                assert!(row.models.contains(&format!("{module}.c")), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        for (name, expected) in
            [("qubic", "cubic"), ("bbr1", "bbr"), ("cdg_freebsd", "cdg-freebsd")]
        {
            let error = Algorithm::new(name, &Options::new(), &RULES, stream()).unwrap_err();
            let UnknownAlgorithm::Name { nearest, .. } = error else { panic!("{error:?}") };
            assert_eq!(nearest, expected);
        }
    }
}
