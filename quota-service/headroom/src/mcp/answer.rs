//! Answers of tools as JSON. Each object with a code and a detail gets the remedy of that code.

use super::remedies;
use headroom_client::ClientError;
use rmcp::model::CallToolResult;
use serde::Serialize;
use serde_json::{Value, json};

/// The answer of the service, with remedies.
pub fn good(answer: &impl Serialize) -> CallToolResult {
    let mut value = serde_json::to_value(answer).expect("answers have string keys and finite numbers");
    add_remedies(&mut value);
    CallToolResult::structured(value)
}

fn add_remedies(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let code = fields.get("code").and_then(Value::as_str).filter(|_| fields.contains_key("detail"));
            if let Some(remedy) = code.and_then(remedies::of) {
                fields.insert("remedy".to_owned(), remedy.into());
            }
            fields.values_mut().for_each(add_remedies);
        }
        Value::Array(items) => items.iter_mut().for_each(add_remedies),
        _ => {}
    }
}

/// A failed request: code, sentence, status and remedy, with the refused fields and the known names.
pub fn refused(fault: &ClientError) -> CallToolResult {
    let code = fault.code().unwrap_or(match fault {
        ClientError::Unavailable { .. } => "unavailable",
        ClientError::Settings { .. } => "bad-settings",
        ClientError::NoId { .. } => "bad-query",
        ClientError::Refused { .. } | ClientError::Foreign { .. } => "foreign-answer",
    });
    let mut error = json!({
        "code": code,
        "detail": fault.to_string(),
        "remedy": remedies::of(code).unwrap_or("follow the detail"),
        "retry": fault.is_transient(),
    });
    if let ClientError::Refused { status, problem, .. } = fault {
        error["status"] = (*status).into();
        if let Some(problem) = problem {
            error["detail"] = problem.detail.clone().into();
            error["known"] = json!(problem.known);
            error["errors"] = json!(problem.errors);
            error["retry_after_s"] = json!(problem.retry_after_s);
        }
    }
    CallToolResult::structured_error(json!({ "error": error }))
}

/// No pool, or several.
pub fn without_pool(detail: &str) -> CallToolResult {
    let code = "which-pool";
    let remedy = remedies::of(code);
    CallToolResult::structured_error(
        json!({ "error": { "code": code, "detail": detail, "remedy": remedy, "retry": false } }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_an_answer_gets_its_remedy() {
        let answer =
            json!({ "reasons": [{ "code": "held_by_idle", "detail": "idle GPUs are few" }], "code": "no detail here" });
        let found = good(&answer).structured_content.unwrap();
        assert_eq!(found["reasons"][0]["remedy"], remedies::of("held_by_idle").unwrap());
        assert_eq!(found.as_object().unwrap().len(), 2, "{found}");
    }

    #[test]
    fn a_refusal_has_its_code_numbers_and_remedy() {
        let problem = json!({ "type": "/problems/unknown-hours", "title": "Hours not offered", "status": 404, "code": "unknown-hours",
            "detail": "the pool does not offer 5 h: choose one of `known`", "known": ["1", "4"] });
        let fault = ClientError::Refused {
            url: "http://x".to_owned(),
            status: 404,
            detail: "no".to_owned(),
            problem: Some(Box::new(serde_json::from_value(problem).unwrap())),
            retry_after: None,
        };
        let answer = refused(&fault);
        let error = &answer.structured_content.as_ref().unwrap()["error"];
        assert_eq!(
            (answer.is_error, &error["code"], &error["status"]),
            (Some(true), &"unknown-hours".into(), &404.into())
        );
        assert_eq!((&error["known"], &error["retry"]), (&json!(["1", "4"]), &false.into()));
        assert!(error["remedy"].as_str().unwrap().contains("known"), "{error}");
        let dots = refused(&ClientError::NoId { id: "..".to_owned() }).structured_content.unwrap();
        assert_eq!((&dots["error"]["code"], &dots["error"]["retry"]), (&"bad-query".into(), &false.into()));
    }
}
