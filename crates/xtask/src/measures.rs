//! The page of measures, from their registry.

use crate::output::{MARK, Output};
use dragstrip_measures::{Level, MEASURES};
use std::fmt::Write as _;

pub fn page() -> Output {
    let mut text = format!(
        "{MARK}# Measures\n\n\
         `crates/measures` computes these measures, and claims refer to them by name. `*` stands for `p5`, `p50`, `p95`\n\
         (any percentile), `min`, `max`, `mean`, `first` or `last`. Percentiles interpolate linearly. A flow lives from\n\
         its start to its stop.\n\n\
         Flows compete if their data cross the same link with a rate or a medium; the competitors of a competitor compete\n\
         too. In a parking lot all flows compete; flows in opposite directions do not (unless stations of a medium take\n\
         turns). Shares and Jain's index cover flows that compete.\n"
    );
    for (heading, level) in [
        ("Flows", Level::Flow),
        ("Probes", Level::Probe),
        ("Queues, by link", Level::Queue),
        ("Runs", Level::Run),
        ("Transfers: all flows with a size that a claim selects, together", Level::Transfers),
    ] {
        let _ = write!(text, "\n## {heading}\n| name | unit | meaning |\n|---|---|---|\n");
        for measure in MEASURES.iter().filter(|measure| measure.level == level) {
            let statistic = if measure.is_series() { "_*" } else { "" };
            let (name, unit, meaning) = (measure.name, measure.unit, measure.meaning);
            let _ = writeln!(text, "| `{name}{statistic}` | {unit} | {meaning} |");
        }
    }
    Output { path: "docs/reference/measures.md", text }
}
