//! The page of measures, from their registry.

use crate::output::{MARK, Output};
use dragstrip_measures::{Level, MEASURES};
use std::fmt::Write as _;

pub fn page() -> Output {
    let mut text = format!(
        "{MARK}# Measures\n\n\
         A flow lives from its start to its stop. Percentiles interpolate linearly. Claims name measures by these\n\
         names. `*` stands for `p5`, `p50`, `p95` (any percentile), `min`, `max`, `mean`, `first`, `last`. They are\n\
         computed in `crates/measures`.\n\n\
         Flows compete whose data crosses the same link with a rate or a medium, and with them the competitors of their\n\
         competitors: in a parking lot all flows do, flows in opposite directions do not (unless stations of a medium take\n\
         turns). Shares and Jain's index are of flows that compete.\n"
    );
    for (heading, level) in [
        ("Of a flow", Level::Flow),
        ("Of a probe", Level::Probe),
        ("Of a queue, by its link", Level::Queue),
        ("Of a run", Level::Run),
    ] {
        let _ = write!(text, "\n## {heading}\n| name | unit | meaning |\n|---|---|---|\n");
        for measure in MEASURES.iter().filter(|measure| measure.level == level) {
            let statistic = if measure.is_series() { "_*" } else { "" };
            let (name, unit, meaning) = (measure.name, measure.unit, measure.meaning);
            let _ = writeln!(text, "| `{name}{statistic}` | {unit} | {meaning} |");
        }
    }
    Output { path: "docs/measures.md", text }
}
