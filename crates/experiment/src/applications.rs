//! A flow's application, and the arrival times of flows, as the user writes them.

use crate::quantity::{RateText, ShareText, SizeText, TimeText};
use dragstrip_scenario::{Adaptation, RtpEcn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The application at the flow's sender.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum ApplicationForm {
    /// Writes as fast as the socket accepts data.
    Bulk {},
    /// Writes and pauses in turn.
    OnOff {
        /// The duration of a writing period.
        on: TimeText,
        /// The duration of a pause.
        off: TimeText,
    },
    /// Sends a request, waits for the response, thinks, and sends the next request.
    RequestResponse {
        /// The size of a request.
        request: SizeText,
        /// The size of a response.
        response: SizeText,
        /// The time between a response and the next request.
        #[serde(default)]
        think: TimeText,
    },
    /// Plays a video: requests one segment after the other, chooses the bit rate of each, and waits while its buffer
    /// is full. The flow's receiver sends the video.
    Video {
        /// The input of the bit rate adaptation.
        #[serde(default)]
        adaptation: Adaptation,
        /// The bit rates to choose from, ascending. Default: the ladder that Netflix had until 2015, from 235 to 5800
        /// kbit/s.
        #[serde(default)]
        ladder: Vec<RateText>,
        /// The playing time of a segment.
        #[serde(default = "default_segment")]
        segment: TimeText,
        /// The capacity of the buffer, as playing time.
        #[serde(default = "default_buffer")]
        buffer: TimeText,
        /// The playing time to buffer before playback begins, and before it resumes after a stall. Default: one
        /// segment.
        #[serde(default)]
        startup: Option<TimeText>,
        /// With `buffer`: below this level the player asks for the lowest rate. Default: 3/8 of the buffer, as 90 s are of
        /// BBA-0's 240 s.
        #[serde(default)]
        reservoir: Option<TimeText>,
        /// With `buffer`: the span above the reservoir in which the rate grows to the highest. Default: up to 9/10 of
        /// the buffer, as BBA-0's, or to the buffer less a segment where that is less.
        #[serde(default)]
        cushion: Option<TimeText>,
        /// With `throughput`: the share of the mean throughput that the rate may take.
        #[serde(default = "default_safety")]
        safety: ShareText,
        /// The size of a request.
        #[serde(default = "default_request")]
        request: SizeText,
    },
    /// Sends UDP datagrams at regular intervals; the flow has no `cc`.
    ConstantRate {
        /// The rate of the datagrams' payload.
        rate: RateText,
        /// The payload of a datagram.
        #[serde(default = "default_datagram")]
        datagram: SizeText,
    },
    /// A live video over RTP and UDP whose bit rate SCReAMv2 adapts to the path; the flow has no `cc`, or the word `scream`
    /// stands for it. Only on the engine `sim`.
    Rtp {
        /// The lowest target bit rate.
        #[serde(default = "default_lowest")]
        min: RateText,
        /// The highest target bit rate.
        #[serde(default = "default_highest")]
        max: RateText,
        /// The frames per second.
        #[serde(default = "default_fps")]
        fps: u64,
        /// The largest payload of a datagram, RTP's header included.
        #[serde(default = "default_packet")]
        packet: SizeText,
        /// The share by which frames differ from their nominal size at most, uniformly.
        #[serde(default = "default_variation")]
        variation: ShareText,
        /// The ECN codepoint of its datagrams, and the reaction to marks.
        #[serde(default)]
        ecn: RtpEcn,
    },
    /// Carries the links of a medium of kind `tunnel`.
    Tunnel {
        /// The header in front of each packet.
        #[serde(default = "default_header")]
        header: SizeText,
    },
    /// Runs programs of your own: a server at the flow's sender, and at its receiver a command, from the flow's start until
    /// it ends. `cc` is the congestion control of both hosts' sockets that choose none. Only on the engines `vm` and
    /// `netns` ([programs as flows](../how-to/shell-experiments.md)).
    Program {
        /// The command at the receiver. The sender's address is in `$DRAGSTRIP_SERVER`; with one flow of this kind its
        /// name is `server`.
        client: String,
        /// The server at the sender, which listens before the run begins. Default: none.
        #[serde(default)]
        server: String,
        /// Files and folders for a guest (`PATH` or `PATH:PLACE`), beside what the commands name.
        #[serde(default)]
        files: Vec<String>,
        /// The folder in which both start. Default: the experiment file's.
        #[serde(default)]
        folder: String,
    },
}

impl ApplicationForm {
    /// True when the flow's data are its receiver's answers.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        matches!(self, Self::RequestResponse { .. } | Self::Video { .. })
    }

    /// True when more data go from the flow's receiver to its sender than in the other direction.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        match self {
            Self::RequestResponse { request, response, .. } => response.0 >= request.0,
            Self::Video { .. } => true,
            Self::Bulk {}
            | Self::OnOff { .. }
            | Self::ConstantRate { .. }
            | Self::Rtp { .. }
            | Self::Tunnel { .. }
            | Self::Program { .. } => false,
        }
    }

    /// True when it sends datagrams of UDP, and has no congestion control of TCP's.
    #[must_use]
    pub const fn is_datagrams(&self) -> bool {
        matches!(self, Self::ConstantRate { .. } | Self::Rtp { .. })
    }

    /// A video over RTP with the defaults.
    #[must_use]
    pub const fn rtp() -> Self {
        Self::Rtp {
            min: default_lowest(),
            max: default_highest(),
            fps: default_fps(),
            packet: default_packet(),
            variation: default_variation(),
            ecn: RtpEcn::None,
        }
    }
}

impl Default for ApplicationForm {
    fn default() -> Self {
        Self::Bulk {}
    }
}

/// The arrivals of an entry's flows. Each flow carries its `bytes`, or an amount drawn from its `sizes`, and ends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum ArrivalForm {
    /// At random and independently of each other, from the entry's `start` on.
    Poisson {
        /// The share of the bottleneck's rate that their bytes amount to, on average. Either this or `every`.
        #[serde(default)]
        load: Option<ShareText>,
        /// The mean time between two of them.
        #[serde(default)]
        every: Option<TimeText>,
        /// The latest arrival. Default: after two thirds of the run, so that flows have time to finish.
        #[serde(default)]
        until: Option<TimeText>,
    },
    /// At these times after the entry's `start`.
    Listed {
        /// The times, in any order.
        times: Vec<TimeText>,
    },
}

const fn default_segment() -> TimeText {
    TimeText(4_000_000_000)
}

const fn default_buffer() -> TimeText {
    TimeText(30_000_000_000)
}

const fn default_safety() -> ShareText {
    ShareText(0.9)
}

const fn default_request() -> SizeText {
    SizeText(500)
}

const fn default_datagram() -> SizeText {
    SizeText(1470)
}

const fn default_lowest() -> RateText {
    RateText(150_000)
}

const fn default_highest() -> RateText {
    RateText(5_000_000)
}

const fn default_fps() -> u64 {
    30
}

const fn default_packet() -> SizeText {
    SizeText(1000)
}

const fn default_variation() -> ShareText {
    ShareText(0.0)
}

const fn default_header() -> SizeText {
    SizeText(2)
}
