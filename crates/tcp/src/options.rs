//! The options that a handshake is about.

use crate::profile::Settings;
use crate::segment::{Segment, SynOptions};

/// Options asked for or agreed on in the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub sack: bool,
    pub timestamps: bool,
    pub scaling: bool,
    pub advmss: u32,
}

impl Options {
    pub fn of(settings: &Settings) -> Self {
        Self {
            sack: settings.sack,
            timestamps: settings.timestamps,
            scaling: settings.window_scaling,
            advmss: settings.advmss(),
        }
    }

    /// Returns the options that both ask for; a segment without SYN options asks for nothing.
    pub fn common(self, segment: &Segment) -> Self {
        let peer_options = segment.syn_options();
        let has = |option: fn(&SynOptions) -> bool| peer_options.as_ref().is_some_and(option);
        Self {
            sack: self.sack && has(|peer_options| peer_options.sack_permitted),
            timestamps: self.timestamps && segment.timestamps().is_some(),
            scaling: self.scaling && has(|peer_options| peer_options.window_scale.is_some()),
            advmss: peer_options
                .map_or(self.advmss, |peer_options| self.advmss.min(peer_options.mss.into())),
        }
    }
}
