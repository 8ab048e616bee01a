//! Why a scenario cannot be run.

use dragstrip_cc::program::Fault;
use dragstrip_scenario::{Scenario, quic};

/// A scenario that cannot be run: the field (a JSON path such as `links[2].qdisc.limit_bytes`), and
/// what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError {
    /// JSON path of the field.
    pub field: String,
    /// The value, and what would be right.
    pub message: String,
}

/// Error for a fault that has stopped a flow's program.
pub(crate) fn of_program(scenario: &Scenario, flow: u32, fault: &Fault) -> SetupError {
    let flow = &scenario.flows[flow as usize];
    let name = flow.transport.name();
    let name = &name[quic::own_start(name)..];
    problem(
        format!("programs.{name}:{}", fault.at),
        format!(
            "gives {fault} of flow {}; a number is needed, and for a word none below 0",
            flow.label
        ),
    )
}

pub(crate) fn problem(field: impl Into<String>, message: impl Into<String>) -> SetupError {
    SetupError { field: field.into(), message: message.into() }
}
