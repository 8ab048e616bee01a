//! An adaptive video player over HTTP: it fetches a video segment by segment over one connection, and decides before
//! each which bit rate of a ladder it asks for.
//!
//! Scope: when the player asks, for how many bytes, and its playback meanwhile. Out of scope: a clock, a socket or a
//! network; their owner reports the arrival of a segment. So every engine has the same player.
//!
//! ```text
//!            ask: a rung of the ladder           all its bytes have come
//!   (begin) ───────────────────────────▶ fetching ───────────────────────▶ full? ──no──▶ ask
//!                                            ▲                               │yes
//!                                            └── ask, when a segment fits ◀──┘
//!
//!   standing ──`startup` is buffered──▶ playing ──the buffer is empty──▶ standing (a stall)
//! ```
//!
//! - Buffer: T.-Y. Huang, R. Johari, N. McKeown, M. Trunnell, M. Watson, "A Buffer-Based Approach to Rate Adaptation",
//!   SIGCOMM 2014, algorithm 1 (BBA-0).
//! - Throughput: the harmonic mean of the last segments as in J. Jiang, V. Sekar, H. Zhang, "Improving Fairness,
//!   Efficiency, and Stability in HTTP-based Adaptive Video Streaming with FESTIVE", CoNEXT 2012, of five segments as in
//!   X. Yin, A. Jindal, V. Sekar, B. Sinopoli, "A Control-Theoretic Approach for Dynamic Adaptive Video Streaming over
//!   HTTP", SIGCOMM 2015 (there called RB); less a margin, as in FESTIVE and in dash.js's ThroughputRule. Neither
//!   FESTIVE's gradual switches nor its random times of asking.
//!
//! Deviations: every segment of a rung has the same size; no segment is abandoned; the first throughput includes the
//! handshake.

mod player;
mod rules;

pub use player::Player;
