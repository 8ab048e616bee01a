//! A window that never changes: for tests, for the speed floor and as a yardstick.
//!
//! Parameter `window` (packets, default 10). Losses are still repaired; they cost no window.

use crate::{About, CongestionControl, Options, Response, UnknownAlgorithm, View, Window};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About { name: "fixed", variables: &[] };

/// A constant window.
#[derive(Clone, Debug)]
pub struct Fixed {
    window: u32,
}

impl Fixed {
    /// `options`: `window`, packets.
    ///
    /// # Errors
    /// Another option, or a window below 1 or above 2^24 packets.
    pub fn new(options: &Options, _stream: Stream) -> Result<Self, UnknownAlgorithm> {
        super::reject_unknown("fixed", options, &["window"])?;
        let window = super::option(options, "fixed", "window", 10.0, 1.0..=16_777_216.0)?;
        Ok(Self { window: window as u32 })
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
