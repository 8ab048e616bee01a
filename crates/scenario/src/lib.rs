//! The scenario: one concrete run, defined once, here.
//!
//! Scope: the typed scenario, its validation, its routes and the facts of its paths, its JSON Schema. (Queue
//! disciplines describe themselves, in `dragstrip-qdisc`.) The Python classes and the reference pages are generated
//! from these types (`cargo xtask generate`). Out of scope: lists of alternatives (that is an experiment, in Python)
//! and running anything.

mod applications;
mod captures;
mod changes;
#[cfg(test)]
mod fixture;
mod freebsd;
mod json;
mod media;
mod path;
pub mod quic;
mod routing;
mod settings;
mod sysctl;
mod types;
mod validate;

pub use applications::{Adaptation, Application, RtpEcn};
pub use changes::Period;
pub use dragstrip_qdisc::{
    BfifoSpec, Buffer, CodelSpec, DelayDistribution, Dscp, DualPi2Spec, FqCodelSpec, HtbSpec,
    KINDS as QDISC_KINDS, LossModel, NetemSpec, NoqueueSpec, PfifoSpec, QdiscSpec, SfqSpec,
    TbfSpec,
};
pub use dragstrip_units::{DURATION_MAX_NS, Problem};
pub use freebsd::{FreebsdSysctls, freebsd_sysctl_table};
pub use json::json_problem;
pub use media::{AdslEncapsulation, MediumSpec, ModemProtocol, WifiBand, WifiProtection, WifiSlot};
pub use path::{FULL_FRAME_BYTES, LinkFacts, PathFacts};
pub use routing::{Hops, RouteError, Topology};
pub use sysctl::{BufferSizes, Kind as SysctlKind, Support, Sysctl, Sysctls, sysctl_table};
pub use types::{
    ChangeSpec, CpuSpec, FlowSpec, GsoMode, HistorySpec, HostSpec, InterruptSpec, LinkSpec,
    NodeSpec, ProbeSpec, Record, Route, Scenario, SocketBuffers, StackProfile, Transport,
};
pub use validate::{PACKET_BYTES_MIN, RecordingSize};
