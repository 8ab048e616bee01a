//! The JSON Schema as a list of types, in the few forms that the scenario uses.

use serde_json::{Map, Value};

/// All types, each before those that use it (a type that contains itself refers ahead).
pub struct Model {
    pub types: Vec<Type>,
}

/// A named type.
pub struct Type {
    pub name: String,
    pub description: String,
    pub shape: Shape,
}

/// Form of a type.
pub enum Shape {
    /// An object.
    Struct(Vec<Field>),
    /// One of these words, each with its description.
    Words(Vec<(String, String)>),
    /// One of these objects, distinguished by the field `tag`.
    Union { tag: String, variants: Vec<Variant> },
    /// Any of these.
    Either(Vec<Kind>),
}

/// An alternative of a union.
pub struct Variant {
    /// Value of the tag.
    pub word: String,
    pub description: String,
    /// Without the tag.
    pub fields: Vec<Field>,
}

/// A field of an object.
pub struct Field {
    pub name: String,
    pub description: String,
    pub kind: Kind,
    /// May be `null`.
    pub optional: bool,
    /// `None`: the field is mandatory.
    pub default: Option<Value>,
}

/// Type of a field.
pub enum Kind {
    Bool,
    Text,
    Number,
    /// A whole number, which may be negative if signed.
    Integer {
        signed: bool,
    },
    List(Box<Kind>),
    /// Text to this.
    Map(Box<Kind>),
    Named(String),
    /// Text with a unit: a rate, a size, a time or a share.
    Quantity(String),
    /// Any of these.
    Either(Vec<Self>),
    /// Anything.
    Any,
}

impl Model {
    /// # Panics
    /// If the types use an unknown form: extend this file then.
    pub fn read(schema: &Value) -> Self {
        let definitions = schema["$defs"].as_object().expect("a schema with definitions");
        let mut types = Vec::new();
        let mut open = Vec::new();
        visit_fields(schema, definitions, &mut types, &mut open);
        let title = schema["title"].as_str().expect("the root has a title");
        types.push(read_type(title, schema));
        Self { types }
    }
}

/// Adds the types that `schema` refers to.
fn visit_fields(
    schema: &Value,
    definitions: &Map<String, Value>,
    types: &mut Vec<Type>,
    open: &mut Vec<String>,
) {
    match schema {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").map(referred) {
                let is_defined = types.iter().any(|definition| definition.name == name);
                if !is_defined && !open.contains(&name) {
                    open.push(name.clone());
                    visit_fields(&definitions[&name], definitions, types, open);
                    types.push(read_type(&name, &definitions[&name]));
                }
            }
            for (key, inner) in object {
                if key != "$defs" {
                    visit_fields(inner, definitions, types, open);
                }
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| visit_fields(item, definitions, types, open));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn referred(reference: &Value) -> String {
    let path = reference.as_str().expect("$ref is text");
    path.strip_prefix("#/$defs/").expect("$ref points to a definition").to_owned()
}

fn text(schema: &Value, key: &str) -> String {
    schema[key].as_str().unwrap_or_default().to_owned()
}

fn read_type(name: &str, schema: &Value) -> Type {
    if let Some(choices) = schema["anyOf"].as_array() {
        let shape = Shape::Either(choices.iter().map(|choice| read_kind(choice).0).collect());
        return Type { name: name.to_owned(), description: text(schema, "description"), shape };
    }
    let shape = match schema["oneOf"].as_array() {
        None => Shape::Struct(read_fields(schema)),
        Some(variants) if variants.iter().all(|variant| variant["const"].is_string()) => {
            let word = |variant: &Value| (text(variant, "const"), text(variant, "description"));
            Shape::Words(variants.iter().map(word).collect())
        }
        Some(variants) => {
            let tag = tag(&variants[0]);
            let variants = variants.iter().map(|variant| read_variant(variant, &tag)).collect();
            Shape::Union { tag, variants }
        }
    };
    Type { name: name.to_owned(), description: text(schema, "description"), shape }
}

/// The field that is a constant.
fn tag(variant: &Value) -> String {
    let properties = variant["properties"].as_object().expect("a variant is an object");
    let constant = properties.iter().find(|(_, property)| property["const"].is_string());
    constant.expect("a variant has a tag").0.clone()
}

fn read_variant(variant: &Value, tag: &str) -> Variant {
    Variant {
        word: text(&variant["properties"][tag], "const"),
        description: text(variant, "description"),
        fields: read_fields(variant).into_iter().filter(|field| field.name != tag).collect(),
    }
}

fn read_fields(schema: &Value) -> Vec<Field> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    let mut fields = Vec::new();
    for (name, property) in properties {
        let (kind, optional) = read_kind(property);
        let default = if required(name) { None } else { Some(property["default"].clone()) };
        let description = text(property, "description");
        fields.push(Field { name: name.clone(), description, kind, optional, default });
    }
    fields
}

fn read_kind(property: &Value) -> (Kind, bool) {
    if let Some(choices) = property["anyOf"].as_array() {
        let real = choices.iter().filter(|choice| choice["type"] != "null");
        let mut kinds: Vec<Kind> = real.map(|choice| read_kind(choice).0).collect();
        let optional = kinds.len() < choices.len();
        let kind = if kinds.len() == 1 { kinds.remove(0) } else { Kind::Either(kinds) };
        return (kind, optional);
    }
    if property
        .as_object()
        .is_none_or(|object| !object.contains_key("type") && !property["$ref"].is_string())
    {
        return (Kind::Any, false);
    }
    if property["$ref"].is_string() {
        return (Kind::Named(referred(&property["$ref"])), false);
    }
    let (names, optional) = match property["type"].as_array() {
        Some(types) => {
            let names: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
            let real: Vec<&str> = names.iter().copied().filter(|name| *name != "null").collect();
            let optional = real.len() < names.len();
            (real, optional)
        }
        None => (vec![property["type"].as_str().unwrap_or_default()], false),
    };
    if let Some(quantity) = property["x-quantity"].as_str() {
        return (Kind::Quantity(quantity.to_owned()), optional);
    }
    let kinds = names.iter().map(|name| read_named(name, property));
    let mut kinds: Vec<Kind> = kinds.collect();
    let kind = if kinds.len() == 1 { kinds.remove(0) } else { Kind::Either(kinds) };
    (kind, optional)
}

fn read_named(name: &str, property: &Value) -> Kind {
    match name {
        "boolean" => Kind::Bool,
        "string" => Kind::Text,
        "number" => Kind::Number,
        "integer" => {
            let format = property["format"].as_str().unwrap_or("int64");
            Kind::Integer { signed: !format.starts_with('u') && property["minimum"] != 0 }
        }
        "array" => Kind::List(Box::new(read_kind(&property["items"]).0)),
        "object" => Kind::Map(Box::new(read_kind(&property["additionalProperties"]).0)),
        other => panic!("a form of schema that is not known here: {other}"),
    }
}
