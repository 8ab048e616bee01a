//! The scenario: one concrete run, defined once, here.
//!
//! What lives here: the typed scenario, its validation, its routes and the facts of its paths, its JSON Schema, and the translation of tc(8)
//! text into it. The Python classes and the reference pages are generated from these types
//! (`cargo xtask generate`). What must not: lists of alternatives (that is an experiment, in Python)
//! or anything that runs.

#[cfg(test)]
mod fixture;
mod freebsd;
mod json;
mod media;
mod nearest;
mod path;
mod problem;
mod routing;
mod sysctl;
mod tc_format;
mod tc_text;
mod types;
mod validate;

pub use freebsd::{FreebsdSysctls, freebsd_sysctl_table};
pub use media::{AdslEncapsulation, MediumSpec, ModemProtocol, WifiBand, WifiProtection, WifiSlot};
pub use path::{Buffer, LinkFacts, PathFacts};
pub use problem::Problem;
pub use routing::{Hops, RouteError, Topology};
pub use sysctl::{BufferSizes, Kind as SysctlKind, Support, Sysctl, Sysctls, sysctl_table};
pub use tc_format::{format_netem, format_qdisc};
pub use tc_text::{htb_default_burst_bytes, parse_netem, parse_qdisc};
pub use types::{
    Application, DelayDistribution, FlowSpec, GsoMode, HistorySpec, HostSpec, LinkSpec, LossModel,
    NetemSpec, NodeSpec, ProbeSpec, QdiscSpec, Record, Route, Scenario, StackProfile, Transport,
};
pub use validate::{DURATION_MAX_NS, PACKET_BYTES_MIN};
