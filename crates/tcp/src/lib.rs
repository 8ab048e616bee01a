//! The TCP endpoint: sender, receiver, loss recovery, pacing, stack profiles.
//!
//! Scope: everything a kernel does around the congestion control. Out of scope: the window rules themselves
//! (`dragstrip-cc`), queues, links, the event loop.
//!
//! Sans-IO. An [`Endpoint`] changes only inside [`Endpoint::open`], [`Endpoint::on_segment`],
//! [`Endpoint::on_deadline`] and [`Endpoint::write`]; each is given the time and an [`Outbox`], and
//! after each the caller asks [`Endpoint::deadline`] when it wants to be woken next. Sequence numbers count bytes
//! from the start of the connection in 64 bits and never wrap.
//!
//! The model is a stock Linux 6.1; function names of the kernel stand beside the code that does their
//! work. Where it falls short is listed in `docs/explanation/known-gaps.md`.

mod ecn;
mod endpoint;
mod host;
mod metrics;
mod options;
mod profile;
pub mod profiles;
mod receiver;
mod segment;
mod sender;
mod snapshot;
mod ticks;

pub use dragstrip_packet::{Ecn, EcnBytes, Flags, SackBlock, Segment, SynOptions, Timestamps};
pub use endpoint::{Endpoint, Phase, Role};
pub use host::HostSettings;
pub use metrics::Metrics;
pub use profile::{
    BsdSettings, DelayedAck, Profile, ReceiveTuning, SendBuffer, Settings, StackKind,
};
pub use segment::Outbox;
pub use snapshot::{LimitedBy, Snapshot};
pub use ticks::TimerWheel;
