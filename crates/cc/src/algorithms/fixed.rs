//! A window that never changes: for tests, for the speed floor and as a yardstick.
//!
//! Parameter `window` (packets, default 10). Losses are still repaired; they cost no window.

use crate::{
    About, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules, Signal, View,
    Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "fixed",
    file: file!(),
    models: "none",
    module: None,
    signal: Signal::Nothing,
    settles: true,
    parameters: &[Parameter::new(
        "window",
        10.0,
        Range::Whole(1, 1 << 24),
        "packets",
        "the window",
        "none",
    )],
    variables: &[],
    needs: Needs::NOTHING,
};

/// A constant window.
#[derive(Clone, Debug)]
pub struct Fixed {
    window: u32,
}

impl Fixed {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self { window: parameters.whole("window") }
    }
}

impl CongestionControl for Fixed {
    fn init(&mut self, _view: &View, window: &mut Window) {
        window.cwnd = self.window.min(window.clamp);
        window.ssthresh = self.window;
    }

    fn ssthresh(&mut self, _view: &View, _window: &mut Window) -> u32 {
        self.window
    }

    fn cong_avoid(&mut self, _view: &View, window: &mut Window, _acked: u32) -> Response {
        window.cwnd = self.window.min(window.clamp);
        Response::None
    }
}
