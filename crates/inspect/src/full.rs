//! The data of a full segment: what a flow sends as its largest, which is not what the handshake allows.
//!
//! A path's MTU below the MSS (a tunnel, PPPoE), or a TCP option on every segment, makes all segments shorter. A segment without PSH is
//! one that the stack has cut: the application had more (Linux sets PSH on the last segment of a write, and on no other that it cuts from
//! it). Each such segment is a vote for its length, and each multiple of the allowed length is one for that (Boyer and Moore's majority
//! vote, so that a flow whose path changes is followed). A sender that sets PSH on all segments votes with those of the greatest length
//! that an acknowledgement has let go while others were under way.

/// Votes by which the leading length can be ahead at most: after so many the other way it is given up.
const LEAD_MAX: u8 = 32;
/// Votes that the allowed length has at the start.
const LEAD_START: u8 = 3;
/// Least length accepted as a full segment: IPv4's least MTU of 576 (RFC 791) less headers with options.
const LEAST: u32 = 480;
/// Most segments in a super-segment that allow an estimate of their length.
const TELLING: u32 = 16;

/// The length of a flow's full segments.
#[derive(Clone, Copy, Debug)]
pub struct FullSize {
    /// The leading length; `None`: the allowed one.
    below: Option<u32>,
    lead: u8,
    /// The longest segment that is none of several.
    longest: u32,
}

impl Default for FullSize {
    fn default() -> Self {
        Self { below: None, lead: LEAD_START, longest: 0 }
    }
}

/// A segment of new data.
#[derive(Clone, Copy, Debug)]
pub struct Ballot {
    /// Bytes of data.
    pub payload: u32,
    /// With PSH or FIN.
    pub pushed: bool,
    /// An acknowledgement has released it, and data were in flight.
    pub released: bool,
    /// Segment size that the handshake allows, less the time stamps.
    pub allowed: u32,
}

impl FullSize {
    /// The data of a full segment, where the handshake allows so much.
    pub fn of(&self, allowed: u32) -> u32 {
        self.below.filter(|below| *below < allowed).unwrap_or(allowed).max(1)
    }

    /// A segment of new data was sent.
    pub fn note(&mut self, ballot: &Ballot) {
        let Ballot { payload, pushed, released, allowed } = *ballot;
        if payload <= allowed {
            self.longest = self.longest.max(payload);
        }
        if payload.is_multiple_of(allowed) {
            self.vote(None);
        } else if self.below.is_some_and(|below| payload.is_multiple_of(below)) {
            self.vote(self.below);
        } else if let Some(length) = one_of(payload, allowed).filter(|length| *length >= LEAST) {
            if let Some(unit) = self.unit(length).filter(|_| !pushed || released) {
                self.split(unit);
            } else if !pushed || (released && payload == self.longest) {
                self.vote(Some(length));
            } else if !released && payload < allowed {
                self.vote(None);
            }
        }
    }

    /// The length of which this one and the leading one are both multiples: where jumbo frames are allowed, packets of several segments
    /// are shorter than a full one could be.
    fn unit(&self, length: u32) -> Option<u32> {
        let below = self.below?;
        let (mut unit, mut rest) = (below, length);
        while rest > 0 {
            (unit, rest) = (rest, unit % rest);
        }
        (unit >= LEAST && unit < below).then_some(unit)
    }

    /// Against the leading length, by twice a vote: what it is made of takes its place.
    fn split(&mut self, unit: u32) {
        self.lead = self.lead.saturating_sub(2);
        if self.lead == 0 {
            (self.below, self.lead) = (Some(unit), 1);
        }
    }

    fn vote(&mut self, length: Option<u32>) {
        if self.below == length {
            self.lead = LEAD_MAX.min(self.lead + 1);
        } else if self.lead > 0 {
            self.lead -= 1;
        } else {
            (self.below, self.lead) = (length, 1);
        }
    }
}

/// The length of one segment: of a few in one packet, if they are equal.
fn one_of(payload: u32, allowed: u32) -> Option<u32> {
    let count = payload.div_ceil(allowed);
    (count <= TELLING && payload.is_multiple_of(count.max(1))).then(|| payload / count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: u32 = 1_448;

    fn after(segments: impl IntoIterator<Item = (u32, bool, bool)>) -> u32 {
        let mut size = FullSize::default();
        for (payload, pushed, released) in segments {
            size.note(&Ballot { payload, pushed, released, allowed: ALLOWED });
        }
        size.of(ALLOWED)
    }

    #[test]
    fn a_path_below_the_mss_shows_in_segments_without_psh() {
        let bulk = (0..100).map(|n| (1_348, n % 10 == 9, n % 2 == 0));
        assert_eq!(after(bulk), 1_348);
    }

    #[test]
    fn super_segments_of_shorter_ones_tell_their_length() {
        let merged = (0..60).map(|n| (1_348 * [2, 3, 10, 45, 1][n % 5], n % 5 == 3, true));
        assert_eq!(after(merged), 1_348);
    }

    #[test]
    fn super_segments_shorter_than_a_jumbo_frame_tell_their_length() {
        let mut size = FullSize::default();
        for n in 0..60 {
            let payload = 1_448 * [4, 5, 4, 3, 4, 6][n % 6];
            size.note(&Ballot { payload, pushed: n % 3 == 0, released: true, allowed: 8_948 });
        }
        assert_eq!(size.of(8_948), 1_448);
    }

    #[test]
    fn application_writes_are_not_full_segments() {
        for length in [160, 1_000, 1_447] {
            let segments = (0..500).map(|n| (length, true, n % 20 == 0));
            assert_eq!(after(segments), ALLOWED, "{length}");
        }
        let mixed =
            (0..500).map(|n| if n % 45 == 44 { (733, true, true) } else { (1_448, false, true) });
        assert_eq!(after(mixed), ALLOWED);
    }

    #[test]
    fn psh_on_every_segment_leaves_the_acknowledgements() {
        assert_eq!(after((0..100).map(|n| (1_348, true, n % 8 != 0))), 1_348);
    }

    #[test]
    fn a_path_that_gets_narrower_is_followed() {
        let wide = (0..1_000).map(|_| (1_448, false, true));
        assert_eq!(after(wide.chain((0..40).map(|_| (1_380, false, true)))), 1_380);
    }
}
