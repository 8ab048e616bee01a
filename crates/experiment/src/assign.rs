//! Setting the field at a dotted path of an experiment's content, such as `flows.0.cc`.

use crate::problem;
use dragstrip_scenario::Problem;
use serde_json::{Map, Value};

/// Splits a dotted path into its parts; a text in double quotes is one part: `hosts.*.sysctl."net.ipv4.tcp_ecn"` has
/// four.
#[must_use]
pub fn path_parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => match rest[1..].find('"') {
                Some(length) => {
                    parts.push(&rest[1..=length]);
                    length + 2
                }
                None => 1,
            },
            '.' | '[' | ']' => 1,
            _ => {
                let length = rest.find(['.', '"', '[', ']']).unwrap_or(rest.len());
                parts.push(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    parts
}

/// Sets the field at a dotted path; a list without an index means each of its entries, `flows.cc` each that has a
/// congestion control. Missing tables are created.
///
/// # Errors
/// An index that the list does not have, or a path through a value other than a table. The field is `vary.` and the
/// path.
pub fn assign(content: &mut Value, path: &str, value: &Value) -> Result<(), Problem> {
    let parts = path_parts(path);
    let Some((last, way)) = parts.split_last() else { return Ok(()) };
    let mut places = vec![content];
    for part in way {
        let mut following = Vec::new();
        for place in places {
            visit(place, path, part, &mut |target| {
                following.push(match target {
                    AssignTarget::Entry(entry) => entry,
                    AssignTarget::Table(table) => {
                        table.entry((*part).to_owned()).or_insert_with(|| Value::Object(Map::new()))
                    }
                });
            })?;
        }
        places = following;
    }
    for place in places {
        visit(place, path, last, &mut |target| match target {
            AssignTarget::Entry(entry) => *entry = value.clone(),
            AssignTarget::Table(table) => {
                if parts != ["flows", "cc"] || !is_datagrams(table) {
                    table.insert((*last).to_owned(), value.clone());
                }
            }
        })?;
    }
    Ok(())
}

/// True for an entry of `[[flows]]` that has no congestion control of TCP's: `flows.cc` passes it by.
fn is_datagrams(flow: &Map<String, Value>) -> bool {
    let kind = flow.get("application").and_then(|application| application["kind"].as_str());
    matches!(kind, Some("constant_rate" | "rtp"))
}

/// The target of one part of a path.
enum AssignTarget<'a> {
    /// The entry of a list.
    Entry(&'a mut Value),
    /// The table whose field it names.
    Table(&'a mut Map<String, Value>),
}

fn visit<'a>(
    place: &'a mut Value,
    path: &str,
    part: &str,
    then: &mut impl FnMut(AssignTarget<'a>),
) -> Result<(), Problem> {
    let wrong = |expected: &str| problem(&format!("vary.{path}"), part, expected);
    match place {
        Value::Object(table) => then(AssignTarget::Table(table)),
        Value::Array(entries) => {
            if is_index(part) {
                let expected = format!("an index below {}", entries.len());
                let entry = part.parse().ok().and_then(|at: usize| entries.get_mut(at));
                then(AssignTarget::Entry(entry.ok_or_else(|| wrong(&expected))?));
                return Ok(());
            }
            for entry in entries {
                let Value::Object(table) = entry else { return Err(wrong("the path of a field")) };
                then(AssignTarget::Table(table));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(wrong("the path of a field"));
        }
    }
    Ok(())
}

fn is_index(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(path: &str, value: &Value) -> Result<Value, Problem> {
        let mut content =
            json!({"path": {"rate": "1mbit"}, "flows": [{"cc": "reno"}, {"cc": "bic"}]});
        assign(&mut content, path, value).map(|()| content)
    }

    #[test]
    fn quotes_keep_dots_together() {
        assert_eq!(
            path_parts("hosts.*.sysctl.\"net.ipv4.tcp_ecn\""),
            ["hosts", "*", "sysctl", "net.ipv4.tcp_ecn"]
        );
        assert_eq!(path_parts("flows[0].cc"), ["flows", "0", "cc"]);
        assert_eq!(path_parts("a.\"b.ü"), ["a", "b", "ü"]);
        assert_eq!(path_parts("\"\"..x"), ["", "x"]);
        assert_eq!(path_parts(""), [""; 0]);
    }

    #[test]
    fn a_list_without_an_index_means_each_entry() {
        let content = set("flows.cc", &json!("cubic")).unwrap();
        assert_eq!(content["flows"], json!([{"cc": "cubic"}, {"cc": "cubic"}]));
        let content = set("flows.1.application.kind", &json!("bulk")).unwrap();
        assert_eq!(
            content["flows"],
            json!([{"cc": "reno"}, {"cc": "bic", "application": {"kind": "bulk"}}])
        );
        let content = set("flows.0", &json!({"cc": "vegas"})).unwrap();
        assert_eq!(content["flows"], json!([{"cc": "vegas"}, {"cc": "bic"}]));
        assert_eq!(
            set("hosts.*.gso", &json!("off")).unwrap()["hosts"],
            json!({"*": {"gso": "off"}})
        );
    }

    #[test]
    fn invalid_paths_are_reported() {
        let problem_text = |path: &str| {
            let Problem { field, value, expected } = set(path, &json!(1)).unwrap_err();
            format!("{field}: {value}, {expected}")
        };
        assert_eq!(problem_text("flows.2.cc"), "vary.flows.2.cc: 2, an index below 2");
        assert_eq!(
            problem_text("flows.99999999999999999999"),
            "vary.flows.99999999999999999999: 99999999999999999999, an index below 2"
        );
        assert_eq!(problem_text("path.rate.cc"), "vary.path.rate.cc: cc, the path of a field");
        assert_eq!(problem_text("flows.cc.name"), "vary.flows.cc.name: name, the path of a field");
    }
}
