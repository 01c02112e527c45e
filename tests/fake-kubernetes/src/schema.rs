//! Schemas of definitions: unknown fields are dropped, missing and wrong ones are refused.

use serde_json::{Map, Value};

/// A field and what is wrong with it.
pub type Fault = (String, String);

/// Drops what the schema does not know, as the server does unless asked to be strict. Answers what was dropped.
pub fn prune(object: &mut Value, schema: &Value) -> Vec<String> {
    let mut dropped = Vec::new();
    let mut whole = schema.clone();
    for name in ["apiVersion", "kind", "metadata"] {
        // These are the server's own; a schema says nothing of what is inside.
        whole["properties"][name] = serde_json::json!({ "x-kubernetes-preserve-unknown-fields": true });
    }
    prune_at(object, &whole, "", &mut dropped);
    dropped
}

fn prune_at(value: &mut Value, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            let others = &schema["additionalProperties"];
            let known = |name: &str| schema["properties"][name].is_object() || others.is_object() || *others == true;
            let unknown: Vec<String> = fields.keys().filter(|name| !known(name)).cloned().collect();
            for name in unknown {
                fields.remove(&name);
                dropped.push(format!("{path}.{name}").trim_start_matches('.').to_owned());
            }
            for (name, inner) in fields {
                let of = &schema["properties"][name.as_str()];
                prune_at(inner, if of.is_object() { of } else { others }, &format!("{path}.{name}"), dropped);
            }
        }
        Value::Array(list) => {
            for (at, entry) in list.iter_mut().enumerate() {
                prune_at(entry, &schema["items"], &format!("{path}[{at}]"), dropped);
            }
        }
        _ => {}
    }
}

/// Violations of the schema: types, required fields, bounds, enumerations, and rules that forbid to change a field.
pub fn faults(object: &Value, before: Option<&Value>, schema: &Value) -> Vec<Fault> {
    let mut found = Vec::new();
    check(object, before, schema, "", &mut found);
    found
}

fn is_of_type(value: &Value, schema: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    }
}

fn bounds(value: &Value, schema: &Value) -> Option<String> {
    let limit = |name: &str| schema[name].as_f64();
    let length = match value {
        Value::String(text) => Some((text.chars().count(), "minLength", "maxLength")),
        Value::Array(list) => Some((list.len(), "minItems", "maxItems")),
        _ => None,
    };
    if let Some((length, least, most)) = length {
        if limit(least).is_some_and(|least| (length as f64) < least) {
            return Some(format!("should have at least {least} {}", schema[least]));
        }
        if limit(most).is_some_and(|most| length as f64 > most) {
            return Some(format!("Too long: {most} is {}", schema[most]));
        }
    }
    let number = value.as_f64()?;
    let outside =
        limit("minimum").is_some_and(|least| number < least) || limit("maximum").is_some_and(|most| number > most);
    outside.then(|| format!("Invalid value: {value} is out of bounds"))
}

fn check(value: &Value, before: Option<&Value>, schema: &Value, path: &str, found: &mut Vec<Fault>) {
    let mut wrong = |why: String| found.push((path.trim_start_matches('.').to_owned(), why));
    if !is_of_type(value, schema) {
        return wrong(format!("Invalid value: must be of type {}", schema["type"].as_str().unwrap_or("int-or-string")));
    }
    if schema["enum"].as_array().is_some_and(|any| !any.contains(value)) {
        wrong(format!("Unsupported value: {value}: supported values: {}", schema["enum"]));
    }
    if let Some(why) = bounds(value, schema) {
        wrong(why);
    }
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    for rule in rules.filter(|rule| rule["rule"] == "self == oldSelf") {
        if before.is_some_and(|before| before != value) {
            wrong(format!("Invalid value: {value}: {}", rule["message"].as_str().unwrap_or("field is immutable")));
        }
    }
    match value {
        Value::Object(fields) => check_fields(fields, before, schema, path, found),
        Value::Array(list) => {
            for (at, entry) in list.iter().enumerate() {
                check(entry, None, &schema["items"], &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

fn check_fields(
    fields: &Map<String, Value>,
    before: Option<&Value>,
    schema: &Value,
    path: &str,
    found: &mut Vec<Fault>,
) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            found.push((format!("{path}.{name}").trim_start_matches('.').to_owned(), "Required value".to_owned()));
        }
    }
    for (name, inner) in fields {
        let of = &schema["properties"][name.as_str()];
        let of = if of.is_object() { of } else { &schema["additionalProperties"] };
        check(inner, before.and_then(|before| before.get(name)), of, &format!("{path}.{name}"), found);
    }
}
