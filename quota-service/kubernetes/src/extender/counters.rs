//! Metrics of the extender.

use metrics::{counter, gauge, histogram};
use std::time::Duration;

/// Verb of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Filter,
    Prioritize,
    Preempt,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Prioritize => "prioritize",
            Self::Preempt => "preempt",
        }
    }
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// By quota, policy and cost.
    Answered,
    /// By the body alone: the deadline passed.
    Neutral,
    /// The request could not be read.
    Malformed,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Neutral => "neutral",
            Self::Malformed => "malformed",
        }
    }
}

/// Counts an answer.
pub fn answered(verb: Verb, outcome: Outcome, took: Duration) {
    counter!("headroom_extender_requests_total", "verb" => verb.as_str(), "outcome" => outcome.as_str()).increment(1);
    histogram!("headroom_extender_request_seconds", "verb" => verb.as_str()).record(took);
}

/// Sets whether neutral answers go out at once.
pub fn open(is_open: bool) {
    gauge!("headroom_extender_breaker_open").set(f64::from(u8::from(is_open)));
}

/// Sets the number of assumed pods.
pub fn assumed(pods: usize) {
    gauge!("headroom_extender_assumed").set(pods as f64);
}
