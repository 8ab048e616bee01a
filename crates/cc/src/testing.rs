//! Shared parts of the algorithms' unit tests: a connection at rest to be bent into shape.

use crate::{
    Ack, BsdHost, CubicCurve, CwndLimited, Growth, HyStartClock, Options, Rules, VegasRule, View,
};
use dragstrip_units::{Instant, Stream};

/// The rules of Linux 6.1.
pub const RULES: Rules = Rules {
    growth: Growth::Packets,
    module_growth: Growth::Packets,
    slow_start_at_threshold: false,
    limited: CwndLimited::Recently,
    hystart: HyStartClock::Microseconds,
    cubic: CubicCurve::PerJiffy,
    vegas: VegasRule::Module,
    bsd: BsdHost::Foreign,
};

/// The rules of Linux 2.6.27.
pub const OLD_RULES: Rules = Rules {
    growth: Growth::Acks,
    module_growth: Growth::Acks,
    slow_start_at_threshold: true,
    limited: CwndLimited::WithinBurst,
    hystart: HyStartClock::None,
    cubic: CubicCurve::PerWindow,
    ..RULES
};

/// A connection that has just finished its handshake, is limited by its window and is not paced.
pub fn view() -> View {
    View {
        is_cwnd_limited: true,
        delivered: 0,
        gso_max_bytes: 65_536 - 320,
        ..View::new(1000, 1448, 10)
    }
}

/// `ms` milliseconds after the start.
pub fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// An ACK for `packets` that measured `rtt_us`.
pub fn ack(packets: u32, rtt_us: u32) -> Ack {
    Ack { packets, rtt_us: Some(rtt_us), in_flight: 0 }
}

/// A stream for tests that leave nothing to chance.
pub fn stream() -> Stream {
    Stream::named(1, "test")
}

/// Options from pairs.
pub fn options(pairs: &[(&str, f64)]) -> Options {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// An algorithm of the calling module with these options and rules.
macro_rules! made {
    ($kind:ident) => {
        $crate::testing::made!($kind, &[])
    };
    ($kind:ident, $pairs:expr) => {
        $crate::testing::made!($kind, $pairs, &$crate::testing::RULES)
    };
    ($kind:ident, $pairs:expr, $rules:expr) => {{
        let options = $crate::testing::options($pairs);
        let parameters = $crate::Parameters::new(&ABOUT, &options).unwrap();
        $kind::new(&parameters, $rules, $crate::testing::stream())
    }};
}
pub(crate) use made;
