//! The experiment: what a person writes, and the scenarios that it means.
//!
//! What lives here: the short form (a path, media, hosts, flows) and its expansion, what varies, the runs' names and
//! seeds, for Python, the command line and a browser alike. What must not: files (a trace's opportunities arrive as numbers), engines' names, claims and
//! their grading (Python), or anything that runs.

mod assign;
mod build;
mod changes;
mod command;
mod compare;
mod dumbbell;
mod flows;
mod media;
mod named;
mod parts;
mod pattern;
mod quantity;
mod run;
mod types;
mod variants;
mod words;
mod workloads;

pub use assign::{assign, assign_json, path_parts};
pub use build::build;
pub use command::{command_line, form_field};
pub use compare::{CompareForm, compare};
pub use named::media::{MEDIA, NamedMedium};
pub use named::paths::{NamedPath, PATHS};
pub use named::spell_names;
pub use pattern::matches;
pub use run::build_run;
pub use types::{
    AccessForm, ApplicationForm, ChangeForm, CpuForm, Experiment, FlowForm, HistoryForm, HostForm,
    LinkForm, NodeForm, PathForm, ProbeForm, RecordForm, SendersForm, StateForm, TransmitterKind,
};
pub use variants::{Variant, Variants, flat, varied};
pub use words::{FlowWord, check_queue};
pub use workloads::{Part, WORKLOADS, Workload};

use dragstrip_scenario::Problem;

/// `value` empty: nothing was given.
fn problem(field: &str, value: &str, expected: &str) -> Problem {
    Problem { field: field.to_owned(), value: value.to_owned(), expected: expected.to_owned() }
}
