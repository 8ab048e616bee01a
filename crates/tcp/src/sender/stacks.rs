//! The stacks there are, of which a connection runs one.

use super::freebsd_9::Freebsd9;
use super::linux_2_2::Linux22;
use super::linux_2_6::Linux26;
use super::linux_6::Linux6;
use crate::profile::{Settings, StackKind};

/// The stack that a connection runs, and its state.
#[derive(Clone, Debug)]
pub(super) enum AnyStack {
    Linux6(Linux6),
    Linux26(Linux26),
    Linux22(Linux22),
    Freebsd9(Freebsd9),
}

impl AnyStack {
    pub fn new(settings: &Settings) -> Self {
        match settings.profile.stack {
            StackKind::Linux6 => Self::Linux6(Linux6::new(settings)),
            StackKind::Linux26 { fack } => Self::Linux26(Linux26::new(settings, fack)),
            StackKind::Linux22 => Self::Linux22(Linux22::default()),
            StackKind::Freebsd9 => Self::Freebsd9(Freebsd9::default()),
        }
    }
}

/// Calls an entry point of the stack that the connection runs.
macro_rules! dispatch {
    ($stack:expr, $name:ident => $call:expr) => {
        match $stack {
            crate::sender::stacks::AnyStack::Linux6($name) => $call,
            crate::sender::stacks::AnyStack::Linux26($name) => $call,
            crate::sender::stacks::AnyStack::Linux22($name) => $call,
            crate::sender::stacks::AnyStack::Freebsd9($name) => $call,
        }
    };
}
pub(super) use dispatch;
