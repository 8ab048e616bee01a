//! The scenario's own algorithms.

use crate::types::{NodeSpec, Scenario};
use dragstrip_cc::Text;
use dragstrip_cc::agent::Step;
use dragstrip_cc::program::{NAME_MAX, is_name};
use dragstrip_tcp::StackKind;
use dragstrip_units::Report;
use std::collections::BTreeMap;

/// Programs of a scenario at most.
const PROGRAMS_MAX: usize = 64;

/// By name; none: its text is not a valid program.
pub(super) type Programs<'a> = BTreeMap<&'a str, Option<Text>>;

/// Reads every program once, however many flows name it.
pub(super) fn read<'a>(scenario: &'a Scenario, report: &mut Report) -> Programs<'a> {
    if scenario.programs.len() > PROGRAMS_MAX {
        let value = format!("{} programs", scenario.programs.len());
        report.add("programs", value, format!("at most {PROGRAMS_MAX}"));
        return BTreeMap::new();
    }
    let mut programs = BTreeMap::new();
    for (name, text) in &scenario.programs {
        check_name(name, report);
        let read = Text::parse(text).map_err(|misread| {
            report.add(format!("programs.{name}:{}", misread.at), misread.value, misread.expected);
        });
        programs.insert(name.as_str(), read.ok());
    }
    programs
}

fn check_name(name: &str, report: &mut Report) {
    let alike = |candidate: &&&str| candidate.replace('-', "_") == name.replace('-', "_");
    if !is_name(name) {
        let expected =
            format!("a letter, then letters, digits, - and _, at most {NAME_MAX} in all");
        report.add("programs", format!("the name {name:?}"), expected);
    } else if let Some(algorithm) = dragstrip_cc::names().iter().find(alike) {
        let expected = format!("another name: {algorithm} is an algorithm already");
        report.add("programs", format!("the name {name:?}"), expected);
    }
}

/// Reports parameters that a program does not have.
pub(super) fn options(
    program: Option<&Text>,
    name: &str,
    options: &BTreeMap<String, f64>,
    at: &str,
    report: &mut Report,
) {
    let Some(program) = program else { return };
    if let Err((option, expected)) = program.check_options(options) {
        let value = options.get(&option).map_or_else(String::new, f64::to_string);
        let expected = format!("{expected} ({name})");
        report.add(format!("{at}.transport.cc_options.{option}"), value, expected);
    }
}

/// Refuses a policy that is asked after each ACK at a host whose stack cannot hold one.
pub(super) fn check_step(
    scenario: &Scenario,
    text: Option<&Text>,
    (name, sending): (&str, &str),
    field: String,
    report: &mut Report,
) {
    let Some(Text::Policy(policy)) = text else { return };
    let hosts = scenario.nodes.iter().filter_map(NodeSpec::host);
    let settings = hosts.filter(|host| host.name == sending).find_map(|host| host.settings().ok());
    let holds = settings.is_none_or(|host| host.profile.stack == StackKind::Linux6);
    if policy.step == Step::Ack && !holds {
        let expected = "a policy with steps of time or of round trips: its host's stack is too old";
        report.add(field, format!("{name:?}"), expected);
    }
}
