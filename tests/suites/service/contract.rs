//! The OpenAPI document and what is served agree.

use super::*;
use axum::http::Method;
use tests::on_both_databases;

on_both_databases![every_documented_route_is_served_and_its_answers_have_the_documented_fields];

/// Answers whose fields are compared with their schema.
const ANSWERS: [(&str, &str); 16] = [
    ("QuotaAnswer", "/quota?cluster=demo&gpu_model=A100&hours=4"),
    ("Explanation", "/v1/quota/explain?cluster=demo&gpu_model=A100&hours=4"),
    ("ForecastAnswer", "/v1/forecast?cluster=demo&gpu_model=A100"),
    ("PoolList", "/v1/pools"),
    ("WhatIfAnswer", "/v1/quota/what-if?cluster=demo&gpu_model=A100&hours=4&capacity_change_gpus=-20"),
    ("DemandAnswer", "/v1/demand?cluster=demo&gpu_model=A100&hours=24"),
    ("PromiseReport", "/v1/promises?cluster=demo&gpu_model=A100&days=3"),
    ("RunList", "/v1/runs?cluster=demo"),
    ("ReservationList", "/v1/reservations?cluster=demo&gpu_model=A100&past=true"),
    ("OverrideList", "/v1/overrides?cluster=demo&gpu_model=A100&past=true"),
    ("NodeViews", "/v1/pools/demo:A100/nodes?hours=2"),
    ("ShareList", "/v1/pools/demo:A100/shares"),
    ("TaskList", "/v1/tasks?cluster=demo&gpu_model=A100&status=waiting"),
    ("SettingsBody", "/v1/pools/demo:A100/settings"),
    ("StatementAnswer", "/v1/statement?by=day"),
    ("QuotaHistory", "/v1/quota/history?cluster=demo&gpu_model=A100&hours=4"),
];

/// Every field of `value` is in the schema, every required one there, and each of the documented kind.
fn assert_fits(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return assert_fits(document, &document["components"]["schemas"][name], value, place);
    }
    // A body that may be null.
    if let Some(either) = schema["oneOf"].as_array() {
        let body = either.iter().find(|one| one["$ref"].is_string()).filter(|_| !value.is_null());
        return body.map_or((), |body| assert_fits(document, body, value, place));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        other => panic!("{place}: the schema has type {other}"),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(kinds.contains(&kind), "{place}: {value} is no {kinds:?}");
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let items = if schema["prefixItems"].is_array() { &schema["prefixItems"][index] } else { &schema["items"] };
        assert_fits(document, items, item, &format!("{place}/{index}"));
    }
    let Some(fields) = value.as_object() else { return };
    if schema["additionalProperties"].is_object() {
        return;
    }
    for (name, field) in fields {
        assert_fits(document, &schema["properties"][name], field, &format!("{place}/{name}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().unwrap()), "{place}: {name} is missing");
    }
}

async fn every_documented_route_is_served_and_its_answers_have_the_documented_fields(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let document = service.get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"].as_str().unwrap().split('.').next(), Some("3"));
    let mut documented = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            documented.push((method.as_str(), path.as_str()));
            let upper = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let answer = service.send(upper, &path.replace("{id}", "demo:A100"), &[], None).await;
            let code = answer.body["code"].as_str().unwrap_or_default();
            assert!(!["no-route", "no-method"].contains(&code), "{method} {path} is documented and not served");
            let responses = &document["paths"][path][method]["responses"];
            let client_fault = [415, 400].contains(&answer.status);
            assert!(client_fault || responses[answer.status.to_string()].is_object(), "{method} {path}: {answer:?}");
        }
    }
    // The route table and the document have the same routes: a test of `http::routes`.
    assert!(documented.len() >= 42, "{documented:?}");
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    let _ = service.put("/v1/nodes/n0", &node).await.expect(200);
    for (schema, path) in ANSWERS {
        let answer = service.get(path).await.expect(200);
        assert_fits(&document, &document["components"]["schemas"][schema], &answer, path);
    }
    let problem = service.get("/v1/forecast?cluster=mars&gpu_model=A100").await.expect(404);
    assert_fits(&document, &document["components"]["schemas"]["Problem"], &problem, "problem");
}
