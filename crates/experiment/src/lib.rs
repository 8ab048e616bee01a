//! The experiment: what a person writes, and the scenarios that it means.
//!
//! Scope: the single definition of the user's input, for the command line, TOML, Python and the page alike: the types
//! with their documentation (`types`), their constraints (`rules`), a race's options (`race`), and the expansion to
//! scenarios with their names and seeds. Out of scope: files (the caller passes their content), engines and their
//! options, the grading of claims, and running anything.

mod applications;
mod arrivals;
mod assign;
mod build;
mod changes;
mod claims;
mod command;
mod compare;
mod document;
mod dumbbell;
mod expand;
mod flows;
mod media;
mod origin;
mod parts;
mod pattern;
mod plan;
mod presets;
mod quantity;
mod race;
mod rules;
mod run;
mod senders;
mod tables;
mod types;
mod variants;
mod words;
mod workloads;

pub use applications::{ApplicationForm, ArrivalForm};
pub use arrivals::Sizes;
pub use assign::{assign, path_parts};
pub use build::build;
pub use changes::change_at;
pub use claims::ClaimForm;
pub use command::command_line;
pub use compare::compare;
pub use expand::{Everything, ExpandedRun, Selection, expand};
pub use media::MediumForm;
pub use pattern::matches;
pub use plan::{Plan, algorithms, checked, planned};
pub use presets::hosts::{HOSTS, NamedHost};
pub use presets::media::{MEDIA, NamedMedium};
pub use presets::paths::{NamedPath, PATHS};
pub use presets::spell_names;
pub use race::{ALGORITHMS, OPTIONS, Place, RaceForm, RaceOption, Takes, option_of};
pub use rules::SEED_MAX;
pub use run::build_run;
pub use senders::{AccessForm, SendersForm};
pub use types::{
    ChangeForm, CpuForm, Experiment, FlowForm, HistoryForm, HostForm, InterfaceForm, LinkForm,
    NodeForm, PathForm, ProbeForm, RecordForm, StateForm, TransmitterKind,
};
pub use variants::{Variant, Variants, flat, varied};
pub use words::FlowWord;
pub use workloads::{Part, WORKLOADS, Workload};

use dragstrip_scenario::Problem;

/// `value` empty: nothing was given.
fn problem(field: &str, value: &str, expected: &str) -> Problem {
    Problem { field: field.to_owned(), value: value.to_owned(), expected: expected.to_owned() }
}
