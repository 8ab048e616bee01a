//! Tables of a document as types: tagged with a kind, and in the order in which they were written. Errors are reported
//! in the terms of the document: the field, its value, what would be right.

use dragstrip_scenario::{Problem, json_problem};
use dragstrip_units::suggest;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Deserialises content.
pub(crate) fn read<T: DeserializeOwned>(content: &Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(content).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let problem = in_words(path, &error.into_inner());
        let shown_value = value_text(content, &problem.field).filter(|_| !problem.value.is_empty());
        Problem { value: shown_value.unwrap_or(problem.value), ..problem }
    })
}

/// Value of a field in the content, as JSON; none for a missing field and for a table.
pub(crate) fn value_text(content: &Value, field: &str) -> Option<String> {
    let mut place = content;
    let mut rest = field;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        (place, rest) = if let Some(indexed) = rest.strip_prefix('[') {
            let (index, after) = indexed.split_once(']')?;
            (place.get(index.parse::<usize>().ok()?)?, after)
        } else {
            // A key may have dots, as sysctls have.
            let ends = |after: &str| after.is_empty() || after.starts_with(['.', '[']);
            let keys = place.as_object()?.iter();
            let fits =
                |(key, _): &(&String, &Value)| rest.strip_prefix(key.as_str()).is_some_and(ends);
            let (key, value) = keys.filter(fits).max_by_key(|(key, _)| key.len())?;
            (value, &rest[key.len()..])
        };
    }
    (!place.is_object()).then(|| place.to_string())
}

/// Delimiter around the path of a field inside a tagged table in an error message.
const INSIDE: char = '\u{1}';

/// Rewrites serde's error message for users: field, value, what would be right.
fn in_words(path: String, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    if let Some((_, rest)) = text.split_once(INSIDE) {
        let mut parts = rest.splitn(3, INSIDE);
        let [inner, value, expected] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let expected = expected.rsplit_once(" at line ").map_or(expected, |(expected, _)| expected);
        let field = if inner.is_empty() { path } else { format!("{path}.{inner}") };
        return Problem { field, value: value.to_owned(), expected: expected.to_owned() };
    }
    let problem = json_problem(path, error);
    match problem.value.as_str() {
        "an unknown field" => {
            let last = problem.field.rsplit('.').next().unwrap_or_default();
            let listed = problem.expected.strip_prefix("one of ").unwrap_or(&problem.expected);
            let listed = listed.split("; did you mean").next().unwrap_or_default();
            let fields = listed.replace(", opportunities_ms", ""); // nobody writes it
            let expected = suggest(last, fields.split(", "), "is not a known field");
            let expected = format!("{expected} (known: {fields})");
            Problem { value: String::new(), expected, ..problem }
        }
        "nothing" => Problem { value: String::new(), expected: "is missing".to_owned(), ..problem },
        "map" if problem.expected == "a list" => {
            let field = &problem.field;
            let expected = format!("a list of tables: [[{field}]] instead of [{field}]");
            Problem { value: "a table".to_owned(), expected, ..problem }
        }
        _ => {
            let expected = match problem.expected.as_str() {
                "a string" => "a text",
                "an object" => "a table",
                "a boolean" => "true or false",
                other => other,
            };
            Problem { expected: expected.to_owned(), ..problem }
        }
    }
}

/// A table whose field `kind` selects one of several types. `T` is read as an enum with the kind outside, so that an
/// error contains the field within the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tagged<T>(pub T);

/// The field that selects the type of a table.
const KIND: &str = "kind";

impl<T> Deref for Tagged<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Tagged<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Map::deserialize(deserializer)?;
        let encoded = |Problem { field, value, expected }: Problem| {
            let mut steps = field.splitn(2, '.');
            let inner = steps.nth(1).unwrap_or_default();
            let message = format!("{INSIDE}{inner}{INSIDE}{value}{INSIDE}{expected}");
            de::Error::custom(message)
        };
        let kind = match table.shift_remove(KIND) {
            Some(Value::String(kind)) => kind,
            Some(other) => {
                return Err(encoded(Problem::new(format!(".{KIND}"), other, "a text")));
            }
            None => return Err(encoded(Problem::new(format!(".{KIND}"), "", "is missing"))),
        };
        let outside = Value::Object(Map::from_iter([(kind.clone(), Value::Object(table))]));
        read(&outside).map(Self).map_err(|problem: Problem| {
            // An error in the kind is reported at the table itself.
            let at_kind = problem.field.is_empty()
                || problem.field == kind && problem.value == format!("{kind:?}");
            let field = if at_kind { format!(".{KIND}") } else { problem.field.clone() };
            encoded(Problem { field, ..problem })
        })
    }
}

impl<T: Serialize> Serialize for Tagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outside = serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?;
        let mut table = Map::new();
        for (kind, fields) in outside.as_object().into_iter().flatten() {
            table.insert(KIND.to_owned(), Value::String(kind.clone()));
            table.extend(
                fields.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())),
            );
        }
        table.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Tagged<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A table in the order in which it was written: of hosts, later patterns override earlier ones.
#[derive(Clone, Debug)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, entry) in &self.0 {
            map.serialize_entry(name, entry)?;
        }
        map.end()
    }
}

impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Ordered_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        std::collections::BTreeMap::<String, T>::json_schema(generator)
    }
}
