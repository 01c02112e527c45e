//! Faults on demand: what the next requests of some kind meet instead of an answer, or before it.

use crate::status::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Effect of a fault on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// 429 with `Retry-After`, s.
    Throttle(u64),
    /// This HTTP status, without doing anything.
    Fail(u16),
    /// Done as asked, then this HTTP status nevertheless: the writer cannot know.
    FailAfter(u16),
    /// Served, after so many milliseconds.
    Delay(u64),
    /// The connection is closed without an answer.
    Drop,
    /// 409: a plain conflict, or, for an apply, one with a field that this manager owns.
    Conflict(String),
}

/// A fault and the requests it is for. An empty word stands for any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Effect.
    pub what: What,
    /// So many requests meet it.
    pub times: u32,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    #[serde(default)]
    pub verb: String,
    /// Plural, with the subresource where it is meant: `pods/eviction`.
    #[serde(default)]
    pub resource: String,
    /// Field manager of the writer.
    #[serde(default)]
    pub manager: String,
}

impl Fault {
    /// A fault that any request meets, `times` times.
    #[must_use]
    pub fn new(what: What, times: u32) -> Self {
        Self { what, times, verb: String::new(), resource: String::new(), manager: String::new() }
    }

    /// Only for this verb.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        verb.clone_into(&mut self.verb);
        self
    }

    /// Only for this resource.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        resource.clone_into(&mut self.resource);
        self
    }

    /// Only for this field manager.
    #[must_use]
    pub fn manager(mut self, manager: &str) -> Self {
        manager.clone_into(&mut self.manager);
        self
    }

    fn is_for(&self, verb: &str, resource: &str, manager: &str) -> bool {
        let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        fits(&self.verb, verb) && fits(&self.resource, resource) && fits(&self.manager, manager)
    }
}

/// The first fault that stands for such a request; it is used up by one.
pub fn take(faults: &mut Vec<Fault>, verb: &str, resource: &str, manager: &str) -> Option<What> {
    let at = faults.iter().position(|fault| fault.times > 0 && fault.is_for(verb, resource, manager))?;
    faults[at].times -= 1;
    let what = faults[at].what.clone();
    faults.retain(|fault| fault.times > 0);
    Some(what)
}

impl What {
    /// How long a request waits before it is served.
    #[must_use]
    pub fn wait(&self) -> Duration {
        Duration::from_millis(if let Self::Delay(wait_ms) = self { *wait_ms } else { 0 })
    }

    /// The answer that takes the place of the right one.
    #[must_use]
    pub fn refusal(&self, resource: &str, name: &str) -> Option<Refusal> {
        match self {
            Self::Throttle(seconds) => {
                let text = "too many requests, please try again later";
                Some(Refusal::new(429, "TooManyRequests", text).retry_after(*seconds))
            }
            Self::Fail(code) | Self::FailAfter(code) => {
                let reason = if *code == 503 { "ServiceUnavailable" } else { "InternalError" };
                Some(Refusal::new(*code, reason, "a fault was asked for"))
            }
            Self::Conflict(manager) if manager.is_empty() => Some(Refusal::stale(resource, name)),
            Self::Conflict(manager) => {
                let message = format!("conflict with {manager:?}");
                let text = format!("Apply failed with 1 conflict: {message}: .spec");
                let mut refusal = Refusal::new(409, "Conflict", &text);
                let cause = json!({ "reason": "FieldManagerConflict", "message": message, "field": ".spec" });
                refusal.body["details"] = json!({ "causes": [cause] });
                Some(refusal)
            }
            Self::Delay(_) | Self::Drop => None,
        }
    }
}
