//! From a name to an algorithm.

use crate::algorithms::{
    bbr, cdg, cdg_freebsd, cubic, cubic_freebsd, exp, fixed, newreno_freebsd, reno, vegas,
    vegas_freebsd,
};
use crate::{About, Ack, CaState, CongestionControl, Event, RateSample, Response, View, Window};
use dragstrip_units::Stream;
use std::collections::BTreeMap;

/// Parameters of an algorithm as the scenario gives them: module parameter name → value.
pub type Options = BTreeMap<String, f64>;

/// There is no algorithm of that name, or it has no parameter of that name.
#[derive(Clone, Debug, PartialEq)]
pub enum UnknownAlgorithm {
    /// The name; `nearest` is the registered name most like it.
    Name {
        /// What was asked for.
        name: String,
        /// The registered name most like it.
        nearest: &'static str,
    },
    /// The algorithm exists, the parameter does not, or its value is out of range.
    Parameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter asked for.
        parameter: String,
        /// What would be right.
        expected: String,
    },
}

/// Registers algorithms: one line each. The order is the order of the reference page.
macro_rules! algorithms {
    ($($name:literal => $variant:ident($module:ident::$type:ident)),+ $(,)?) => {
        /// Any registered congestion control, without a pointer or an allocation in between.
        #[derive(Clone, Debug)]
        pub enum Algorithm {
            $(#[doc = concat!("`", $name, "`")] $variant($module::$type),)+
        }

        /// The names of all registered algorithms.
        #[must_use]
        pub const fn names() -> &'static [&'static str] {
            &[$($name),+]
        }

        /// The row of every registered algorithm, in the order of [`names`].
        #[must_use]
        pub const fn about() -> &'static [About] {
            &[$($module::ABOUT),+]
        }

        impl Algorithm {
            /// The algorithm called `name` with these options; `stream` is its source of chance.
            ///
            /// # Errors
            /// An unknown name (with the nearest known one) or an unknown or absurd parameter.
            pub fn new(name: &str, options: &Options, stream: Stream) -> Result<Self, UnknownAlgorithm> {
                match name {
                    $($name => Ok(Self::$variant($module::$type::new(options, stream)?)),)+
                    _ => Err(UnknownAlgorithm::Name { name: name.to_owned(), nearest: nearest(name) }),
                }
            }
        }

        impl CongestionControl for Algorithm {
            algorithms!(@each [$($variant)+]
                fn init self (&mut self, view: &View, window: &mut Window) (view, window) -> ();
                fn ssthresh self (&mut self, view: &View, window: &mut Window) (view, window) -> u32;
                fn cong_avoid self (&mut self, view: &View, window: &mut Window, acked: u32) (view, window, acked) -> Response;
                fn set_state self (&mut self, view: &View, window: &mut Window, new: CaState) (view, window, new) -> ();
                fn cwnd_event self (&mut self, view: &View, window: &mut Window, event: Event) (view, window, event) -> ();
                fn acked self (&mut self, view: &View, window: &mut Window, ack: &Ack) (view, window, ack) -> ();
                fn undo_cwnd self (&mut self, view: &View, window: &mut Window) (view, window) -> u32;
                fn has_cong_control self (&self) () -> bool;
                fn cong_control self (&mut self, view: &View, window: &mut Window, sample: &RateSample) (view, window, sample) -> ();
                fn keeps_app_limited self (&self) () -> bool;
                fn needs_pacing self (&self) () -> bool;
                fn min_tso_segs self (&self, view: &View, window: &Window) (view, window) -> u32;
                fn sndbuf_factor self (&self) () -> u32;
                fn phase self (&self, view: &View, window: &Window) (view, window) -> &'static str;
                fn variables self (&self, view: &View, window: &Window, tell: &mut dyn FnMut(&'static str, f64)) (view, window, tell) -> ();
            );
        }
    };
    (@each $variants:tt $(fn $method:ident $this:ident $args:tt $call:tt -> $ret:ty;)+) => {
        $(algorithms!(@method $variants fn $method $this $args $call -> $ret);)+
    };
    (@method [$($variant:ident)+] fn $method:ident $this:ident $args:tt $call:tt -> $ret:ty) => {
        #[inline]
        fn $method $args -> $ret {
            match $this { $(Self::$variant(algorithm) => algorithm.$method $call,)+ }
        }
    };
}

algorithms! {
    "reno" => Reno(reno::Reno),
    "cubic" => Cubic(cubic::Cubic),
    "vegas" => Vegas(vegas::Vegas),
    "cdg" => Cdg(cdg::Cdg),
    "cdg-freebsd" => CdgFreebsd(cdg_freebsd::CdgFreebsd),
    "newreno-freebsd" => NewrenoFreebsd(newreno_freebsd::NewrenoFreebsd),
    "cubic-freebsd" => CubicFreebsd(cubic_freebsd::CubicFreebsd),
    "vegas-freebsd" => VegasFreebsd(vegas_freebsd::VegasFreebsd),
    "bbr" => Bbr(bbr::Bbr),
    "exp" => Exp(exp::Exp),
    "fixed" => Fixed(fixed::Fixed),
}

/// The registered name with the smallest edit distance to `name`.
fn nearest(name: &str) -> &'static str {
    names().iter().copied().min_by_key(|known| strsim::levenshtein(name, known)).unwrap_or("reno")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{options, stream};

    #[test]
    fn every_name_makes_an_algorithm_that_refuses_unknown_options() {
        assert_eq!(
            names(),
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
        assert!(about().iter().map(|row| &row.name).eq(names()));
        for name in names() {
            assert!(Algorithm::new(name, &Options::new(), stream()).is_ok(), "{name}");
            let error = Algorithm::new(name, &options(&[("colour", 1.0)]), stream()).unwrap_err();
            let UnknownAlgorithm::Parameter { algorithm, parameter, .. } = error else {
                panic!("{name}: {error:?}");
            };
            assert_eq!((algorithm, parameter.as_str()), (*name, "colour"));
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        for (name, expected) in
            [("qubic", "cubic"), ("bbr1", "bbr"), ("cdg_freebsd", "cdg-freebsd")]
        {
            let error = Algorithm::new(name, &Options::new(), stream()).unwrap_err();
            let UnknownAlgorithm::Name { nearest, .. } = error else { panic!("{error:?}") };
            assert_eq!(nearest, expected);
        }
    }
}
