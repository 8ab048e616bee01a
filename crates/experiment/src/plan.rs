//! From an experiment's content to its scenarios, in two steps: the content is checked once, and each run of it is
//! built and validated. Errors are reported in the experiment's own fields.

use crate::origin::in_experiment_terms;
use crate::pattern::matches;
use crate::presets::spell_names;
use crate::problem;
use crate::rules;
use crate::run::build_run;
use crate::types::Experiment;
use crate::words::FlowWord;
use dragstrip_scenario::{NodeSpec, Problem, Scenario, quic};
use serde_json::{Map, Value};

/// The congestion controls that the simulator has, those of QUIC's stacks last.
#[must_use]
pub fn algorithms() -> Vec<String> {
    let tcp = dragstrip_cc::about().iter().map(|row| row.name);
    tcp.chain(dragstrip_scenario::quic::names()).map(str::to_owned).collect()
}

/// The content of an experiment, checked: names of paths and media are written out, and a congestion control is named
/// as `algorithms` name it (`my_exp` for `my-exp`).
///
/// # Errors
/// The first field that is wrong.
pub fn checked(content: Value, algorithms: &[String]) -> Result<Value, Problem> {
    read(content, algorithms).map(|(content, _)| content)
}

fn read(mut content: Value, algorithms: &[String]) -> Result<(Value, Experiment), Problem> {
    if !content.is_object() {
        return Err(problem("", "", "is no experiment: a table of fields is expected"));
    }
    spell_names(&mut content)?;
    name_alike(&mut content, algorithms);
    let experiment = Experiment::read(&content)?;
    rules::check(&experiment, &content, algorithms)?;
    Ok((content, experiment))
}

/// Names congestion controls as they are known, where only hyphens and underscores differ.
fn name_alike(content: &mut Value, algorithms: &[String]) {
    let programs = content.get("programs").and_then(Value::as_object);
    let program_names: Vec<String> = programs.into_iter().flat_map(Map::keys).cloned().collect();
    let names = || algorithms.iter().chain(&program_names);
    let flows = content.get_mut("flows").and_then(Value::as_array_mut);
    for cc in flows.into_iter().flatten().filter_map(|flow| flow.get_mut("cc")) {
        let Some(word) = cc.as_str() else { continue };
        let Ok(FlowWord { name, .. }) = FlowWord::parse(word, "") else { continue };
        // A word begins with its name; that of an own algorithm in a QUIC stack, with the stack.
        let (stack, rest) = word.split_at(quic::own_start(name));
        let name = &name[stack.len()..];
        if names().any(|candidate| candidate == name) {
            continue;
        }
        if let Some(canonical) = names().find(|candidate| alike(candidate) == alike(name)) {
            *cc = Value::String(format!("{stack}{canonical}{}", &rest[name.len()..]));
        }
    }
}

/// Equal for names of congestion controls that are one: `my-exp`, which a kernel has as `my_exp`.
fn alike(name: &str) -> String {
    name.replace('-', "_")
}

/// An experiment in which everything that varies has been chosen, checked.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    experiment: Experiment,
    settings: Map<String, Value>,
    algorithms: &'a [String],
}

impl<'a> Plan<'a> {
    /// Reads content in which `settings` were chosen; its flows may name these `algorithms`.
    ///
    /// # Errors
    /// The first field that is wrong, with the settings that set it.
    pub fn new(
        content: Value,
        settings: Map<String, Value>,
        algorithms: &'a [String],
    ) -> Result<Self, Problem> {
        match read(content, algorithms) {
            Ok((_, experiment)) => Ok(Self { experiment, settings, algorithms }),
            Err(problem) => Err(with_settings(problem, &settings)),
        }
    }

    /// The dotted paths that vary, with the values chosen.
    #[must_use]
    pub const fn settings(&self) -> &Map<String, Value> {
        &self.settings
    }

    /// Builds the scenario of a repeat, counted from 0 of `repeats`, without validating it.
    ///
    /// # Errors
    /// The first field that is wrong, with the settings that set it.
    pub fn run(&self, repeat: u64, repeats: u64) -> Result<Scenario, Problem> {
        build_run(&self.experiment, &self.settings, repeat, repeats)
            .map_err(|problem| with_settings(problem, &self.settings))
    }

    /// Validates a scenario of this plan. Repeats differ in the seed alone, so one of them suffices.
    ///
    /// # Errors
    /// The first field that is wrong, with the settings that set it.
    pub fn judge(&self, scenario: &Scenario) -> Result<(), Problem> {
        judge(scenario, &self.experiment, self.algorithms)
            .map_err(|problem| with_settings(problem, &self.settings))
    }
}

/// Builds the scenario of the only run of content in which nothing varies; it is validated if it is to be `judged`.
///
/// # Errors
/// The first field that is wrong.
pub fn planned(content: Value, algorithms: &[String], judged: bool) -> Result<Scenario, Problem> {
    let plan = Plan::new(content, Map::new(), algorithms)?;
    let scenario = plan.run(0, 1)?;
    if judged {
        plan.judge(&scenario)?;
    }
    Ok(scenario)
}

/// Checks an experiment's scenario and reports the first problem in the experiment's fields.
fn judge(
    scenario: &Scenario,
    experiment: &Experiment,
    algorithms: &[String],
) -> Result<(), Problem> {
    let hosts: Vec<&str> =
        scenario.nodes.iter().filter_map(NodeSpec::host).map(|host| host.name.as_str()).collect();
    for (pattern, _) in &experiment.hosts.0 {
        if !hosts.iter().any(|host| matches(host, pattern)) {
            let listed: Vec<&str> = hosts.iter().take(HOSTS_LISTED).copied().collect();
            let more = if hosts.len() > HOSTS_LISTED { ", ..." } else { "" };
            let expected = format!("a host or a pattern: {}{more}", listed.join(", "));
            return Err(problem("hosts", &format!("{pattern:?}"), &expected));
        }
    }
    let mut problems = scenario.validate().err().unwrap_or_default();
    problems.retain(|problem| {
        !(problem.field.ends_with(".transport.cc") && beyond(problem, algorithms))
    });
    let more = match problems.len() {
        0 | 1 => String::new(),
        found => format!(" (and {} more)", found - 1),
    };
    match problems.into_iter().next() {
        None => Ok(()),
        Some(first) => {
            let Problem { field, value, expected } =
                in_experiment_terms(first, scenario, experiment);
            Err(Problem { field, value, expected: expected + &more })
        }
    }
}

/// As many as a message has room for.
const HOSTS_LISTED: usize = 12;

/// True when the problem is an algorithm that the engine has and the simulator lacks.
fn beyond(problem: &Problem, algorithms: &[String]) -> bool {
    let name: String = serde_json::from_str(&problem.value).unwrap_or_default();
    let is_simulated = self::algorithms().iter().any(|known| alike(known) == alike(&name));
    !is_simulated && algorithms.iter().any(|algorithm| alike(algorithm) == alike(&name))
}

/// The problem with the settings under which it arose.
fn with_settings(problem: Problem, settings: &Map<String, Value>) -> Problem {
    // With algorithms alone the value itself is sufficient: on a line of `compare` the user has not typed `vary`.
    if settings.keys().all(|path| path == "flows.cc") {
        return problem;
    }
    let setting_texts: Vec<String> =
        settings.iter().map(|(path, value)| format!("{path} = {value}")).collect();
    let expected = format!("{} (where vary sets {})", problem.expected, setting_texts.join(", "));
    Problem { expected, ..problem }
}
