//! Names all missing fields of a body at once: otherwise a client would learn of one field with each request. Finds the range of a number,
//! too.

use serde_json::Value;
use std::sync::LazyLock;
use wire::FieldFault;
use wire::plain::Range;

/// The most fields that are named.
const MOST_NAMED: usize = 100;

/// The OpenAPI document, which states the required fields.
static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(super::openapi()).expect("a document is objects with names"));

/// The missing required fields of a body and of the objects in it.
pub fn fields(schema: &str, body: &Value) -> Vec<FieldFault> {
    let mut missing = Vec::new();
    collect(&DOCUMENT["components"]["schemas"][schema], body, "", &mut missing);
    missing.truncate(MOST_NAMED);
    missing
}

/// The required fields of a schema.
pub fn required(schema: &str) -> Vec<&'static str> {
    let schema = &DOCUMENT["components"]["schemas"][schema];
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The least and the largest whole number at a place of a body, as far as the document states them.
pub fn range(schema: &str, pointer: &str) -> Range {
    let names = pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
    let start = Some(&DOCUMENT["components"]["schemas"][schema]);
    let found = names.fold(start, |at, name| at.and_then(|at| part(at, &name)));
    let bound = |which: &str| found.and_then(|of| of[which].as_i64()).map(i128::from);
    Range { least: bound("minimum"), most: bound("maximum") }
}

/// The schema of a field, of an item of a list, or of a value of a map.
fn part(schema: &'static Value, name: &str) -> Option<&'static Value> {
    if let Some(other) = schema["$ref"].as_str().and_then(|link| DOCUMENT.pointer(link.trim_start_matches('#'))) {
        return part(other, name);
    }
    let mut choices = schema["oneOf"].as_array().into_iter().flatten();
    let own = || schema["properties"].get(name).or_else(|| schema.get("items"));
    choices.find_map(|one| part(one, name)).or_else(own).or_else(|| schema.get("additionalProperties"))
}

fn collect(schema: &Value, value: &Value, at: &str, missing: &mut Vec<FieldFault>) {
    if let Some(other) = schema["$ref"].as_str().and_then(|link| DOCUMENT.pointer(link.trim_start_matches('#'))) {
        return collect(other, value, at, missing);
    }
    // An object that may be null stands beside `null`.
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        collect(choice, value, at, missing);
    }
    match value {
        Value::Object(object) => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for field in required.filter(|field| !object.contains_key(*field)) {
                missing.push(FieldFault::new(format!("{at}/{field}"), format!("missing field `{field}`")));
            }
            for (field, of) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(value) = object.get(field) {
                    collect(of, value, &format!("{at}/{field}"), missing);
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                if missing.len() < MOST_NAMED {
                    collect(&schema["items"], item, &format!("{at}/{place}"), missing);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::extract::parse;
    use super::*;
    use crate::http::ApiError;
    use serde::de::DeserializeOwned;
    use utoipa::ToSchema;
    use wire::{NodeBody, OutcomeBatch, OverrideRequest, PoolStateBody, SettingsBody, TaskBody, UsageBatch};

    fn pointers<T: DeserializeOwned + ToSchema>(body: &str) -> Vec<String> {
        match parse::<T>(body.as_bytes()) {
            Err(ApiError::Body(faults)) => faults.into_iter().map(|fault| fault.pointer).collect(),
            _ => panic!("{body} is no such body"),
        }
    }

    #[test]
    fn all_missing_fields_of_a_body_are_named_at_once() {
        assert_eq!(pointers::<PoolStateBody>("{}"), ["/capacity_gpus", "/idle_gpus", "/as_of"]);
        assert_eq!(pointers::<PoolStateBody>(r#"{"idle_gpus": 1}"#), ["/capacity_gpus", "/as_of"]);
        let task = pointers::<TaskBody>(r#"{"cluster": "earth", "gpu_model": "A100"}"#);
        assert!(task.len() > 2 && task.contains(&"/id".to_owned()) && task.contains(&"/class".to_owned()), "{task:?}");
        assert_eq!(pointers::<NodeBody>("{}").len(), 3);
        assert_eq!(pointers::<OverrideRequest>(r#"{"cluster": "earth"}"#).len(), 6);
    }

    fn detail<T: DeserializeOwned + ToSchema>(body: &str) -> String {
        match parse::<T>(body.as_bytes()) {
            Err(ApiError::Body(faults)) => faults[0].to_string(),
            _ => panic!("{body} is no such body"),
        }
    }

    #[test]
    fn a_number_that_no_type_holds_is_refused_with_the_range_of_its_field() {
        assert_eq!(
            detail::<TaskBody>(r#"{"pods": 4294967296}"#),
            "/pods: it is 4294967296; write a whole number from 1 to 16384"
        );
        let hours = "it is -1; write a whole number from 1 to 168";
        assert_eq!(detail::<TaskBody>(r#"{"guarantee_hours": -1}"#), format!("/guarantee_hours: {hours}"));
        assert_eq!(
            detail::<OutcomeBatch>(r#"{"outcomes": [{"guarantee_hours": -1}]}"#),
            format!("/outcomes/0/guarantee_hours: {hours}")
        );
        assert_eq!(detail::<SettingsBody>(r#"{"offered_hours": [1, -1]}"#), format!("/offered_hours/1: {hours}"));
        let heads = r#"{"reservations": {"hp_heads": -1}}"#;
        assert_eq!(
            detail::<SettingsBody>(heads),
            "/reservations/hp_heads: it is -1; write a whole number from 0 to 16"
        );
        let weight = r#"{"shares": {"half_life_hours": 24, "weights": {"a/b": -1}}}"#;
        assert_eq!(
            detail::<SettingsBody>(weight),
            "/shares/weights/a~1b: it is -1; write a whole number from 1 to 1000000"
        );
        let fresh = r#"{"state_fresh_s": -1}"#;
        assert_eq!(
            detail::<SettingsBody>(fresh),
            "/state_fresh_s: it is -1; write a whole number from 0 to 4294967295"
        );
    }

    #[test]
    fn missing_fields_are_named_in_each_row_and_each_part() {
        let rows = r#"{"rows": [{"hour": "2024-03-01T00:00:00Z", "cluster": "earth"}, {"gpu_model": "A100"}]}"#;
        let named = pointers::<UsageBatch>(rows);
        assert_eq!(named[..3], ["/rows/0/gpu_model", "/rows/0/organization", "/rows/0/demand_gpus"]);
        assert_eq!(named.len(), 7, "{named:?}");
        let node = r#"{"gpu_model": "A100", "topology": {"numa_nodes": [{"gpus": []}]}}"#;
        let named = pointers::<NodeBody>(node);
        assert!(named.contains(&"/topology/numa_nodes/0/numa_node".to_owned()), "{named:?}");
        assert!(named.contains(&"/gpus".to_owned()), "{named:?}");
        let many = format!(r#"{{"outcomes": [{}]}}"#, vec!["{}"; 10_000].join(","));
        assert_eq!(pointers::<OutcomeBatch>(&many).len(), MOST_NAMED);
    }

    #[test]
    fn a_list_in_the_place_of_an_object_is_refused_with_its_pointer() {
        let row = r#"["2024-03-01T00:00:00Z", "earth", "A100", "org-1", 4]"#;
        assert_eq!(pointers::<UsageBatch>(&format!(r#"{{"rows": [{row}]}}"#)), ["/rows/0"]);
        assert_eq!(pointers::<UsageBatch>("[[]]"), [""]);
        let outcome = r#"{"outcomes": [["e1", "earth", "A100", 4, "kept", "2024-03-01T00:00:00Z", null, null]]}"#;
        assert_eq!(pointers::<OutcomeBatch>(outcome), ["/outcomes/0"]);
        let affinity = r#"{"id": "t", "affinity": ["numa", "guaranteed"]}"#;
        assert_eq!(pointers::<TaskBody>(affinity), ["/affinity"]);
        let node = r#"{"topology": {"numa_nodes": [[0, 0, [0, 1], "0-3"]]}}"#;
        assert_eq!(pointers::<NodeBody>(node), ["/topology/numa_nodes/0"]);
        assert_eq!(pointers::<SettingsBody>(r#"{"policy_parts": ["mine"]}"#), ["/policy_parts"]);
    }
}
