//! Refusals: a `Status` in the words of a real server.

use serde_json::{Value, json};

/// A refusal: HTTP status and the `Status` object that goes with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// `Retry-After` in seconds, if the server sets it.
    pub retry_after_s: Option<u64>,
    /// The `Status` object, or a text where the path is unknown.
    pub body: Value,
}

impl Refusal {
    /// A `Status` of this code and reason.
    #[must_use]
    pub fn new(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        Self { code, retry_after_s: None, body }
    }

    /// Adds `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self.body["details"]["retryAfterSeconds"] = seconds.into();
        self
    }

    /// Adds the object and the causes.
    #[must_use]
    pub fn details(mut self, plural: &str, group: &str, name: &str, causes: Vec<Value>) -> Self {
        let mut details = json!({ "name": name, "kind": plural });
        if !group.is_empty() {
            details["group"] = group.into();
        }
        if !causes.is_empty() {
            details["causes"] = causes.into();
        }
        self.body["details"] = details;
        self
    }

    /// No such path: the server answers with a text, not with a `Status`.
    #[must_use]
    pub fn no_such_path() -> Self {
        Self { code: 404, retry_after_s: None, body: Value::String("404 page not found\n".to_owned()) }
    }

    /// 404 for an object.
    #[must_use]
    pub fn not_found(resource: &str, plural: &str, group: &str, name: &str) -> Self {
        Self::new(404, "NotFound", &format!("{resource} \"{name}\" not found")).details(plural, group, name, vec![])
    }

    /// 409 for a name that is taken.
    #[must_use]
    pub fn already_exists(resource: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", &format!("{resource} \"{name}\" already exists"))
    }

    /// A newer version exists than the one that was read.
    #[must_use]
    pub fn stale(resource: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::new(409, "Conflict", &format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}"))
    }

    /// The fields that do not hold what they must.
    #[must_use]
    pub fn invalid(kind: &str, name: &str, causes: &[(String, String)]) -> Self {
        let texts: Vec<String> = causes.iter().map(|(field, why)| format!("{field}: {why}")).collect();
        let listed = causes
            .iter()
            .map(|(field, why)| json!({ "reason": "FieldValueInvalid", "message": why, "field": field }))
            .collect();
        let message = format!("{kind} \"{name}\" is invalid: {}", texts.join(", "));
        Self::new(422, "Invalid", &message).details(kind, "", name, listed)
    }

    /// 400.
    #[must_use]
    pub fn bad_request(message: &str) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The history before that version is no more.
    #[must_use]
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", &format!("too old resource version: {asked} ({oldest})"))
    }
}
