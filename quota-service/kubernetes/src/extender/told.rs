//! What the extender tells of itself.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use std::time::Duration;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    /// In place of an answer that was not there in time.
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

pub fn describe() {
    describe_counter!("headroom_extender_requests_total", "Questions of the scheduler, by what they were answered");
    describe_histogram!("headroom_extender_request_seconds", Unit::Seconds, "Time from a question to its answer");
    describe_gauge!("headroom_extender_assumed", "Spot pods that were let through and are not seen on a node");
}

pub fn answered(verb: Verb, outcome: Outcome, took: Duration) {
    counter!("headroom_extender_requests_total", "verb" => verb.as_str(), "outcome" => outcome.as_str()).increment(1);
    histogram!("headroom_extender_request_seconds", "verb" => verb.as_str()).record(took);
}

pub fn assumed(pods: usize) {
    gauge!("headroom_extender_assumed").set(pods as f64);
}
