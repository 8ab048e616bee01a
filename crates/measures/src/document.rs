//! The result document, `result.json`: the definition of its fields, from which the JSON Schema, the reference page and
//! the check in Python are generated.
//!
//! The core serialises the summary of a run ([`Summary`]); `dragstrip/studies/execution/runner.py` adds the rest. The
//! types here describe that rest; the project's tests hold real documents against the schema.

use crate::Summary;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Largest whole number that a double holds exactly, as all smaller ones.
const COUNT_MAX: u64 = 1 << 53;

/// Result of a Dragstrip experiment
#[derive(JsonSchema, Serialize)]
#[serde(rename = "Result")]
struct Document {
    /// Version of Dragstrip.
    version: String,
    /// Name of the experiment; `compare` for a comparison without a file.
    experiment: String,
    /// Runs in chronological order: all alternatives, then the next repeat.
    runs: Vec<Run>,
    /// Graded claims.
    claims: Vec<Claim>,
    /// Published goodputs of competing flows beside ours.
    flow_tables: Vec<FlowTable>,
    /// Comparison of the engines; only for runs on two of them (`sim,vm`): the output of `dragstrip validate --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement: Option<Agreement>,
    /// Runs that ended without a recording; then the exit status is 1.
    failed: Vec<Failure>,
}

/// A run with its summary.
#[derive(JsonSchema, Serialize)]
struct Run {
    /// Name: the algorithm or the varied values, ` #2` for the second repeat.
    scenario: String,
    /// Engine.
    engine: String,
    /// Seed.
    #[schemars(extend("maximum" = u64::MAX))]
    seed: u64,
    /// Folder with the tables, `scenario.json` (the whole scenario) and `provenance.json` (with `recording_sha256`, the
    /// hash over all [columns](recording.md)). In `result.json` relative to that file; printed, relative to the working
    /// directory.
    recording: String,
    #[serde(flatten)]
    summary: Summary,
}

/// A run without a recording.
#[derive(JsonSchema, Serialize)]
struct Failure {
    /// Name of the scenario.
    scenario: String,
    /// Seed.
    #[schemars(extend("maximum" = u64::MAX))]
    seed: u64,
    /// Reason.
    reason: String,
}

/// Fields that Python adds to a flow.
#[derive(JsonSchema, Serialize)]
struct FlowAdditions {
    /// Each stay in a state, in order of time; only of a run with `record.every_ack` and `record.cc_state`.
    #[serde(skip_serializing_if = "Option::is_none")]
    phases: Option<Vec<Phase>>,
}

/// A stay in a state of TCP or a phase of the algorithm. Variables are the algorithm's ([list](algorithms.md)) and
/// `cwnd_bytes`, `bytes_in_flight`, `srtt_ns`, `pacing_bps`, `bytes_acked` and `retransmits`, in the recording's units.
#[derive(JsonSchema, Serialize)]
struct Phase {
    /// State or phase.
    state: String,
    /// Start.
    from_s: f64,
    /// End.
    until_s: f64,
    /// First value of each variable.
    first: BTreeMap<String, f64>,
    /// Last value of each variable.
    last: BTreeMap<String, f64>,
    /// Smallest value of each variable.
    least: BTreeMap<String, f64>,
    /// Largest value of each variable.
    most: BTreeMap<String, f64>,
}

/// Fields that Python adds to an explanation.
#[derive(JsonSchema, Serialize)]
struct ExplanationAdditions {
    /// A run [without the cause](../how-to/report.md#without-the-cause); only of the first explanation, where a run
    /// costs little. Of repeats, the first that has the explanation has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<Counterfactual>,
}

/// A run without the cause that an explanation names.
#[derive(JsonSchema, Serialize)]
struct Counterfactual {
    /// One sentence.
    sentence: String,
    /// The figures in the sentence, in base units; medians over the repeats.
    figures: BTreeMap<String, f64>,
    /// True when the run confirms the cause.
    confirms: bool,
    /// The file of the experiment that repeats the run, in the output folder.
    experiment: String,
    /// Number of repeats; absent for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<u64>,
}

/// A claim with its grade.
#[derive(JsonSchema, Serialize)]
struct Claim {
    /// Identifier.
    id: String,
    /// Publication and place in it.
    source: String,
    /// The [measure](measures.md).
    metric: String,
    /// Published value, range `[low, high]`, or order of names from the smallest figure to the largest; `null` for an
    /// open question.
    published: Option<Published>,
    /// Our value or order; `null` if nothing was measured.
    measured: Option<Figure>,
    /// Unit; `order` for an order of names.
    unit: String,
    /// Grade.
    grade: Grade,
    /// True when our figure lies in the published range or has its order; only of a `limited` claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    agrees: Option<bool>,
    /// Reason of a grade `not testable here`, `limited` or `open question`, or the pair whose order does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The claim with other settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    ablations: Option<Vec<Ablation>>,
}

/// A published figure.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what Python writes")]
enum Published {
    Number(f64),
    Range([f64; 2]),
    Order(Vec<String>),
}

/// A measured figure.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what Python writes")]
enum Figure {
    Number(f64),
    Order(Vec<String>),
}

/// Grade of a claim.
#[derive(JsonSchema, Serialize)]
#[expect(dead_code, reason = "describes what Python writes")]
enum Grade {
    /// Our figure lies in the published range or has its order.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// It does not.
    #[serde(rename = "contradicted")]
    Contradicted,
    /// The claim cannot be tested here, or nothing was measured.
    #[serde(rename = "not testable here")]
    NotTestable,
    /// The machine limited a run in real time, by the run's own checks.
    #[serde(rename = "limited")]
    Limited,
    /// The publication leaves the figure open.
    #[serde(rename = "open question")]
    Open,
}

/// A claim with other settings.
#[derive(JsonSchema, Serialize)]
struct Ablation {
    /// Purpose.
    about: String,
    /// Dotted path of each changed field, and its value.
    setting: BTreeMap<String, Value>,
    /// Our value or order; `null` if nothing was measured.
    measured: Option<Figure>,
    /// Grade.
    grade: Grade,
}

/// Goodputs of competing flows, each list from the fastest flow to the slowest.
#[derive(JsonSchema, Serialize)]
struct FlowTable {
    /// Publication and place in it.
    source: String,
    /// Published goodputs in Mbit/s.
    published: Vec<f64>,
    /// Our goodputs in Mbit/s by run; with repeats, the median of each rank.
    ours: BTreeMap<String, Vec<f64>>,
}

/// Agreement of two engines.
#[derive(JsonSchema, Serialize)]
struct Agreement {
    /// Releases of the kernels.
    kernels: Vec<String>,
    /// Results by quantity, class of cases and algorithm.
    standings: Vec<Standing>,
    /// Cases, the worst first.
    cases: Vec<Case>,
    /// Reason by case that was not compared.
    failed: BTreeMap<String, String>,
}

/// Result of a class of cases for one quantity.
#[derive(JsonSchema, Serialize)]
struct Standing {
    /// Quantity.
    quantity: String,
    /// Class of cases: with or without random impairments.
    class: String,
    /// Algorithm, `all`, or competing flows.
    algorithm: String,
    /// Target in words; `–` for a quantity that is not judged.
    wanted: String,
    /// Number of cases.
    cases: u64,
    /// Number of cases within their limits; `null` for a quantity that is not judged.
    within: Option<u64>,
    /// Median of the errors.
    error_median: f64,
    /// Largest error.
    error_max: f64,
    /// True when the target is reached; `null` for a quantity that is not judged.
    reached: Option<bool>,
}

/// A case run on both engines.
#[derive(JsonSchema, Serialize)]
struct Case {
    /// Name.
    name: String,
    /// Algorithm or algorithms.
    algorithm: String,
    /// Condition of the path.
    condition: String,
    /// Class of cases: with or without random impairments.
    class: String,
    /// Seeds of the kernel's runs.
    kernel_seeds: Vec<u64>,
    /// Number of the simulator's runs.
    simulator_seeds: u64,
    /// Idle share, from 0 to 1, of the kernel's processor in its busiest run.
    idle_share: f64,
    /// The runs with the first seed.
    first_seed: FirstSeed,
    /// Figures by quantity.
    figures: BTreeMap<String, Compared>,
}

/// Flows of a case with the first seed, by engine.
#[derive(JsonSchema, Serialize)]
struct FirstSeed {
    /// The kernel's.
    kernel: Vec<TracedFlow>,
    /// The simulator's.
    simulator: Vec<TracedFlow>,
}

/// A flow of a case.
#[derive(JsonSchema, Serialize)]
struct TracedFlow {
    /// Congestion control.
    cc: String,
    /// Rate of new bytes received.
    goodput_bps: f64,
    /// Segments retransmitted.
    retransmits: u64,
    /// Times of the window reductions.
    reductions_s: Vec<f64>,
}

/// A quantity on both engines.
#[derive(JsonSchema, Serialize)]
struct Compared {
    /// The kernel's figure.
    kernel: Option<f64>,
    /// The simulator's figure.
    simulator: Option<f64>,
    /// Difference.
    error: f64,
    /// Largest difference that the target permits.
    limit: Option<f64>,
    /// True when the difference is within the limit.
    reached: bool,
    /// Difference of the simulator from itself with a path 37 µs longer and another seed.
    own_spread: Option<f64>,
    /// Difference between both halves of the kernel's seeds.
    floor: Option<f64>,
}

/// Returns the JSON Schema of the result document. Objects permit no other fields; figures with a unit in their name are
/// not negative; whole numbers lie between 0 and 2^53, seeds between 0 and 2^64 - 1.
///
/// # Panics
/// If the types above have a form that this function does not know.
#[must_use]
pub fn schema() -> Value {
    let generate = || SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generate().into_root_schema_for::<Document>().to_value();
    let additions = [
        ("Flow", generate().into_root_schema_for::<FlowAdditions>().to_value()),
        ("Explanation", generate().into_root_schema_for::<ExplanationAdditions>().to_value()),
    ];
    let definitions = schema["$defs"].as_object_mut().expect("the document has types");
    for (name, addition) in additions {
        let properties = addition["properties"].as_object().expect("an object").clone();
        let target = definitions[name]["properties"].as_object_mut().expect("an object");
        target.extend(properties);
        for (name, definition) in addition["$defs"].as_object().into_iter().flatten() {
            definitions.insert(name.clone(), definition.clone());
        }
    }
    schema["title"] = json!("Result");
    schema["description"] = json!(
        "Printed by `dragstrip run --json` and `dragstrip compare --json` and stored as `result.json`."
    );
    constrain("", &mut schema);
    schema
}

/// Adds the bounds of numbers, by the name of the property, and forbids further properties.
fn constrain(name: &str, schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    object.remove("format");
    if has_type(object, "integer") {
        object.insert("minimum".to_owned(), json!(0));
        object.entry("maximum").or_insert(json!(COUNT_MAX));
    }
    let unit =
        ["_s", "_ms", "bps", "_bps_p50", "_bytes"].iter().any(|suffix| name.ends_with(suffix));
    if has_type(object, "number") && unit {
        object.insert("minimum".to_owned(), json!(0));
    }
    if object.contains_key("properties") {
        omit_null(object);
        object.remove("unevaluatedProperties");
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    for (key, inner) in object {
        match (key.as_str(), inner) {
            ("properties" | "$defs", Value::Object(properties)) => {
                properties.iter_mut().for_each(|(name, property)| constrain(name, property));
            }
            ("items" | "additionalProperties", inner) => constrain(name, inner),
            ("anyOf" | "oneOf", Value::Array(choices)) => {
                choices.iter_mut().for_each(|choice| constrain(name, choice));
            }
            _ => {}
        }
    }
}

/// Removes `null` from the types of fields that are absent instead.
fn omit_null(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.contains(&json!(name)));
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        let Value::Object(property) = property else { continue };
        if let Some(Value::Array(words)) = property.get("type") {
            let word = words.iter().find(|word| *word != "null").cloned().unwrap_or_default();
            property.insert("type".to_owned(), word);
        }
        if let Some(Value::Array(choices)) = property.remove("anyOf") {
            let choice = choices.into_iter().find(|choice| choice["type"] != "null");
            property
                .extend(choice.and_then(|choice| choice.as_object().cloned()).unwrap_or_default());
        }
    }
}

fn has_type(object: &Map<String, Value>, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(word)) => word == name,
        Some(Value::Array(words)) => words.iter().any(|word| word == name),
        _ => false,
    }
}
