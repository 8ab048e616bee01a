//! Quizzes of the playground's lessons, judged by one run (docs/how-to/teaching.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A quiz: the table `quiz` of a lesson, without its texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Quiz {
    /// The answer is a number: a figure of the run in units of `scale`, right within the share `within` of it.
    Number { measure: String, scale: f64, within: f64 },
    /// The answer is the run itself, of which all conditions hold.
    Run { conditions: Vec<Condition> },
}

/// A figure of the run with its bounds, both included.
#[derive(Clone, Debug, Deserialize)]
struct Condition {
    measure: String,
    least: Option<f64>,
    most: Option<f64>,
}

/// Returns a figure of a summary (docs/reference/result-json.md) by its path, such as `flows.0.share`; none where the
/// summary has no number there.
///
/// `goodput_bps` is the sum over all flows, `ping_ms` the median of the first probe.
#[must_use]
pub fn summary_figure(summary: &Value, measure: &str) -> Option<f64> {
    if measure == "goodput_bps" {
        let goodputs =
            summary["flows"].as_array()?.iter().filter_map(|flow| flow[measure].as_f64());
        return Some(goodputs.fold(0.0, |sum, goodput_bps| sum + goodput_bps));
    }
    let path = if measure == "ping_ms" { "probes.0.rtt_ms.p50" } else { measure };
    summary.pointer(&format!("/{}", path.replace('.', "/")))?.as_f64()
}

/// The verdict on a quiz.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// True when every check holds.
    pub right: bool,
    /// The check of the number, or of each condition.
    pub checks: Vec<Check>,
}

/// A figure of the run that a quiz asks for, and the answers that it accepts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Path of the figure, as [`summary_figure`] takes it.
    pub measure: String,
    /// The measured figure; none where the run has none.
    pub figure: Option<f64>,
    /// Least accepted value: of the figure, or of a number that the answer gives in units of the quiz's scale.
    pub least: Option<f64>,
    /// Greatest accepted value.
    pub most: Option<f64>,
    /// True when it holds.
    pub right: bool,
}

/// Judges a quiz by the summary of the run that answers it. A quiz for a number also takes that number.
///
/// # Errors
/// A quiz of neither kind; the message says what a quiz has.
pub fn judge(quiz: &Value, summary: &Value, number: f64) -> Result<Verdict, &'static str> {
    let quiz = Quiz::deserialize(quiz)
        .map_err(|_| "a quiz with measure, scale and within, or with conditions")?;
    let checks = match quiz {
        Quiz::Number { measure, scale, within } => {
            let figure = summary_figure(summary, &measure);
            let target = figure.map(|figure| figure / scale);
            let right = target.is_some_and(|target| (number - target).abs() <= within * target);
            let [least, most] =
                [1.0 - within, 1.0 + within].map(|factor| target.map(|target| target * factor));
            vec![Check { measure, figure, least, most, right }]
        }
        Quiz::Run { conditions } => conditions
            .into_iter()
            .map(|Condition { measure, least, most }| {
                let figure = summary_figure(summary, &measure);
                let right = figure.is_some_and(|figure| {
                    least.is_none_or(|least| least <= figure)
                        && most.is_none_or(|most| figure <= most)
                });
                Check { measure, figure, least, most, right }
            })
            .collect(),
    };
    Ok(Verdict { right: checks.iter().all(|check| check.right), checks })
}

/// Returns [`Verdict::right`] of [`judge`].
///
/// # Errors
/// As [`judge`].
pub fn is_right(quiz: &Value, summary: &Value, number: f64) -> Result<bool, &'static str> {
    judge(quiz, summary, number).map(|verdict| verdict.right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary() -> Value {
        json!({
            "flows": [{"goodput_bps": 4e6, "share": 0.4}, {"goodput_bps": 6e6, "share": 0.6}, {"goodput_bps": null}],
            "probes": [{"rtt_ms": {"p50": 41}}],
            "queues": [{"dropped": 1000, "link": "r1-r2"}],
        })
    }

    #[test]
    fn a_figure_is_read_by_its_path() {
        for (measure, figure) in [
            ("goodput_bps", Some(1e7)),
            ("ping_ms", Some(41.0)),
            ("flows.1.share", Some(0.6)),
            ("queues.0.dropped", Some(1000.0)),
            ("flows.9.share", None),
            ("flows.0.rtt_ms.p50", None),
            ("queues.0.link", None),
        ] {
            assert_eq!(summary_figure(&summary(), measure), figure, "{measure}");
        }
    }

    #[test]
    fn a_number_is_right_within_its_bounds_alone() {
        let quiz =
            json!({"question": "?", "measure": "queues.0.dropped", "scale": 1, "within": 0.1});
        for (number, verdict) in [(900.0, true), (899.0, false), (1100.0, true), (1101.0, false)] {
            assert_eq!(is_right(&quiz, &summary(), number), Ok(verdict), "{number}");
        }
        let absent = json!({"measure": "flows.9.share", "scale": 1.0, "within": 0.1});
        assert_eq!(is_right(&absent, &summary(), 0.0), Ok(false));
        let scaled = json!({"measure": "goodput_bps", "scale": 1e6, "within": 0.05});
        assert_eq!(is_right(&scaled, &summary(), 10.4), Ok(true));
    }

    #[test]
    fn a_run_is_right_where_every_condition_holds() {
        let quiz = |least: f64, most: f64| {
            json!({"free": ["queue"], "conditions": [
                {"measure": "flows.0.share", "least": least}, {"measure": "ping_ms", "most": most},
            ]})
        };
        assert_eq!(is_right(&quiz(0.4, 41.0), &summary(), 0.0), Ok(true));
        assert_eq!(is_right(&quiz(0.41, 41.0), &summary(), 0.0), Ok(false));
        assert_eq!(is_right(&quiz(0.4, 40.9), &summary(), 0.0), Ok(false));
        let absent = json!({"conditions": [{"measure": "flows.9.share"}]});
        assert_eq!(is_right(&absent, &summary(), 0.0), Ok(false));
    }

    #[test]
    fn a_verdict_has_the_measured_figures_and_what_is_accepted() {
        let quiz = json!({"conditions": [
            {"measure": "flows.0.share", "least": 0.5}, {"measure": "ping_ms", "most": 42.0},
        ]});
        let verdict = judge(&quiz, &summary(), 0.0).unwrap();
        assert!(!verdict.right);
        let facts: Vec<_> =
            verdict.checks.iter().map(|it| (it.figure, it.least, it.most, it.right)).collect();
        assert_eq!(
            facts,
            [(Some(0.4), Some(0.5), None, false), (Some(41.0), None, Some(42.0), true)]
        );
        let number = json!({"measure": "goodput_bps", "scale": 1e6, "within": 0.5});
        let verdict = judge(&number, &summary(), 3.0).unwrap();
        let check = &verdict.checks[0];
        assert_eq!((check.least, check.most, check.right), (Some(5.0), Some(15.0), false));
        let absent = json!({"measure": "flows.9.share", "scale": 1.0, "within": 0.1});
        assert_eq!(judge(&absent, &summary(), 0.0).unwrap().checks[0].figure, None);
    }

    #[test]
    fn a_quiz_of_neither_kind_is_refused() {
        assert!(is_right(&json!({"measure": "ping_ms"}), &summary(), 0.0).is_err());
    }
}
