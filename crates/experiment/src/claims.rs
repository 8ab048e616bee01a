//! Additions to an experiment for its evaluation: alternatives, published claims, ablations, tables of flows.

use crate::quantity::{TimeText, ToleranceText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Several fields set together under one name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeForm {
    /// The name, in tables and claims.
    pub name: String,
    /// Dotted path → value.
    pub set: Map<String, Value>,
}

/// A published figure, with its measurement in our runs and the comparison. It is one of `value`, `range`, `order` and
/// `asked`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimForm {
    /// A short name that no other claim of the experiment has.
    pub id: String,
    /// The section, figure, table or file, and the words quoted.
    pub source: String,
    /// The measure, such as `goodput_bps` or `rtt_ms_p50`.
    pub metric: String,
    /// The selected runs and flows: `cc`, `label`, `sender`, `receiver`, `flow`, `probe`, `target`, `link`,
    /// `alternative`, `repeat` or a varied path → a value, or a list of accepted values. `size_up_to` and `size_above`
    /// → a size such as `"10kb"`: only flows that transfer at most, or more than, so many bytes. Of several matches the
    /// median is taken. For probes, queues and runs, `cc` and the like select runs with such a flow; without `link` the
    /// first link with a queue is selected.
    #[serde(default, rename = "where")]
    pub selector: Map<String, Value>,
    /// A second selector, whose figure divides the first one's.
    #[serde(default)]
    pub over: Option<Map<String, Value>>,
    /// The published figure, in `unit`.
    #[serde(default)]
    pub value: Option<f64>,
    /// The published range from low to high, in `unit`.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
    /// A share of the value such as `"5%"`, or a number in `unit`. It widens a range at both ends; of an order, each
    /// figure must exceed the one before by this share. A `value` has one.
    #[serde(default)]
    pub tolerance: Option<ToleranceText>,
    /// The unit of the published figure: bit/s, kbit/s, Mbit/s, Gbit/s, s, ms, us, B, kB, KB, MB, packets, segments,
    /// 1 or %.
    #[serde(default = "no_unit")]
    pub unit: String,
    /// Values of `by`, from the smallest figure to the largest.
    #[serde(default)]
    pub order: Option<Vec<String>>,
    /// The key that `order` lists.
    #[serde(default = "algorithm")]
    pub by: String,
    /// The question that the publication left open. The figure is ours alone and not graded.
    #[serde(default)]
    pub asked: Option<String>,
    /// The statistic over several matches in one run; the median over the runs follows. Default: the median of all.
    #[serde(default)]
    pub across: Option<AcrossForm>,
    /// The time to leave out at each flow's beginning.
    #[serde(default)]
    pub after: TimeText,
    /// The end of what counts, from the flow's start. Counts such as `retransmits`, and measures of queues, probes and
    /// runs, take none.
    #[serde(default)]
    pub until: Option<TimeText>,
    /// Only samples in this state of the algorithm count.
    #[serde(default)]
    pub state: Option<String>,
    /// The reason why the claim cannot be tested here; its figure is shown nevertheless.
    #[serde(default)]
    pub not_testable: Option<String>,
}

/// Statistic over several matches in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcrossForm {
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The sum.
    Sum,
}

/// Claims measured again with a changed setting: a part left out, a parameter halved or doubled. They are never
/// counted: a claim is graded once, on the publication's own set-up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AblationForm {
    /// The claims' ids; `*` matches any text.
    pub claims: Vec<String>,
    /// Dotted path → list of values, which override what the experiment sets there.
    #[serde(default)]
    pub vary: Map<String, Value>,
    /// Another measure of the same, which the publication may really have taken.
    #[serde(default)]
    pub metric: Option<String>,
    /// The ablation's purpose.
    pub about: String,
}

/// A table of flows as the publication prints it, for comparison with the flows of our runs, each from the fastest to
/// the slowest.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTableForm {
    /// The table's place in the publication.
    pub source: String,
    /// The selected runs and flows, as in a claim.
    #[serde(default, rename = "where")]
    pub selector: Map<String, Value>,
    /// The published throughput in Mbit/s, one entry per flow.
    pub published: Vec<f64>,
}

fn no_unit() -> String {
    "1".to_owned()
}

fn algorithm() -> String {
    "cc".to_owned()
}
