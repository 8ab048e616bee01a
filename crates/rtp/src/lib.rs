//! A live video over RTP that adapts its bit rate: the encoder's frames, their packets, the receiver's reports, and
//! SCReAMv2, the sender's rate control.
//!
//! Scope: both ends of one video as a state machine. Out of scope: a clock, a socket or a network; their owner calls
//! [`Session::on_time`] at [`Session::deadline_ns`], carries packets and reports, and reports their arrival.
//!
//! ```text
//!   encoder ──a frame per 1/fps──▶ queue ──paced, window open──▶ packets ═══▶ receiver
//!      ▲                                        ▲                                │
//!      └── target bit rate ── SCReAMv2 ─────────┘ ◀═══ report (RFC 8888) ────────┘
//! ```
//!
//! - Rate control: I. Johansson, M. Westerlund, M. Kühlewind, "Self-Clocked Rate Adaptation for Multimedia",
//!   draft-johansson-ccwg-rfc8298bis-screamv2 (after -07, 2026), sections 4 and 5: [`scream`].
//! - Reports: RFC 8888 (sizes; a report has the arrival time and ECN mark of each packet), sent as section 5 of the
//!   draft recommends: after a frame's last packet, after 16 packets, and 40 ms after an arrival.
//!
//! Deviations: the encoder follows the target at once, and its frames vary only by `variation`; no frame is skipped,
//! retransmitted or protected by FEC. Both ends have one clock. Reports overlap by 32 packets, as in the authors'
//! implementation, so that one lost report does not look like lost packets. The draft leaves open what a sender does
//! when no report comes: here what is in flight counts as lost after half a second, or two round trips if that is longer.

mod flight;
mod receiver;
pub mod scream;
mod session;

pub use session::{Frame, Outlet, Session};
