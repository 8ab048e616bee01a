//! Applications of flows. A part of the types, in a separate file.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Application at the flow's sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Application {
    /// Writes as fast as the socket takes it, until stopped or until `bytes` are written.
    Bulk {
        /// All there is to send; endless when absent.
        #[serde(default)]
        bytes: Option<u64>,
    },
    /// Bulk for `on_ns`, silent for `off_ns`, and again.
    OnOff {
        /// Sending time.
        on_ns: u64,
        /// Silent time.
        off_ns: u64,
    },
    /// The sender asks, the receiver answers, the sender thinks, and again.
    RequestResponse {
        /// Size of a request.
        request_bytes: u64,
        /// Size of an answer.
        response_bytes: u64,
        /// Time between the end of an answer and the next request.
        think_ns: u64,
    },
    /// A player fetches a video in segments over one connection, and chooses the bit rate of each; the receiver of the flow sends
    /// them. When its buffer is full it waits until a segment fits.
    Video {
        /// Bit rates to choose from, ascending.
        ladder_bps: Vec<u64>,
        /// Playing time of a segment.
        segment_ns: u64,
        /// Capacity of the buffer, as playing time.
        buffer_ns: u64,
        /// Playing time to buffer before playback begins, and before it resumes after a stall.
        startup_ns: u64,
        /// Input of the bit rate adaptation.
        adaptation: Adaptation,
        /// With `buffer`: below this level the lowest rate is chosen.
        reservoir_ns: u64,
        /// With `buffer`: the span above the reservoir in which the rate grows to the highest.
        cushion_ns: u64,
        /// With `throughput`: the share of the mean throughput that a rate may take.
        safety: f64,
        /// Size of a request.
        request_bytes: u64,
    },
    /// A datagram at regular times (UDP only).
    ConstantRate {
        /// Payload rate.
        rate_bps: u64,
        /// Payload of a datagram.
        datagram_bytes: u32,
    },
    /// A live video over RTP (UDP only) whose bit rate SCReAMv2 adapts; the receiver answers with reports of RFC 8888.
    Rtp {
        /// Lowest target bit rate.
        min_bps: u64,
        /// Highest target bit rate.
        max_bps: u64,
        /// Frames per second.
        fps: u32,
        /// Largest payload of a datagram, RTP's header included.
        packet_bytes: u32,
        /// Frames differ from their nominal size by up to this share, uniformly.
        variation: f64,
        /// ECN codepoint of its datagrams, and the reaction to CE.
        ecn: RtpEcn,
    },
    /// Carries the packets of links over this flow's TCP connection, both ways: IP over TCP. A medium of kind `tunnel` names the
    /// flow.
    Tunnel {
        /// In front of each packet in the stream (VTUN: two bytes of length).
        #[serde(default = "default_tunnel_header")]
        header_bytes: u32,
    },
    /// Programs of the user's own: a server at the flow's sender, and a command at its receiver that runs from the flow's start
    /// until it ends. Only on a kernel of this machine, or in a guest.
    Program {
        /// The command at the receiver.
        client: String,
        /// The server at the sender, which listens before the run; empty: none.
        #[serde(default)]
        server: String,
        /// Files for a guest, beside what the commands name.
        #[serde(default)]
        files: Vec<String>,
        /// Folder in which both start.
        folder: String,
    },
}

impl Application {
    /// True when the flow's data are its receiver's answers.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        match self {
            Self::RequestResponse { .. } | Self::Video { .. } => true,
            Self::Bulk { .. }
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
        match self {
            Self::ConstantRate { .. } | Self::Rtp { .. } => true,
            Self::Bulk { .. }
            | Self::OnOff { .. }
            | Self::RequestResponse { .. }
            | Self::Video { .. }
            | Self::Tunnel { .. }
            | Self::Program { .. } => false,
        }
    }

    /// True for programs of the user's own.
    #[must_use]
    pub const fn is_program(&self) -> bool {
        matches!(self, Self::Program { .. })
    }
}

/// Characters of a command, at most.
pub const COMMAND_CHARACTERS_MAX: usize = 10_000;

/// Input of a video player's bit rate adaptation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Adaptation {
    /// The level of its buffer (BBA-0: Huang et al., SIGCOMM 2014, algorithm 1).
    #[default]
    Buffer,
    /// The harmonic mean of the last five segments' throughput, of which it takes a share (FESTIVE, CoNEXT 2012; Yin et al., SIGCOMM
    /// 2015).
    Throughput,
}

/// ECN of a video over RTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RtpEcn {
    /// Not-ECT.
    #[default]
    None,
    /// ECT(0): CE reduces the window by a fifth.
    Classic,
    /// ECT(1), L4S (RFC 9331): CE reduces the window by the share of marked packets.
    L4s,
}

fn default_tunnel_header() -> u32 {
    2
}
