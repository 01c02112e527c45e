//! Places of a task's pods, and the time until an instant.

use headroom_client::wire::{PlaceBody, TaskAnswer, TaskStatusBody};
use std::time::Duration;

/// A pod's place: its node, and its GPUs there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub node: String,
    pub gpus: Vec<u8>,
}

impl Place {
    /// The numbers of its GPUs, with something between them.
    pub fn joined(&self, between: &str) -> String {
        self.gpus.iter().map(u8::to_string).collect::<Vec<_>>().join(between)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.node, self.joined("+"))
    }
}

pub fn places_of(bodies: &[PlaceBody]) -> Vec<Place> {
    bodies.iter().map(|body| Place { node: body.node.clone(), gpus: body.gpus.clone() }).collect()
}

/// The places that a task has: none while it waits.
pub fn places(task: &TaskAnswer) -> Vec<Place> {
    match &task.detail.run {
        Some(run) if task.status == TaskStatusBody::Running => [places_of(&run.places), places_of(&run.lent)].concat(),
        _ => Vec::new(),
    }
}

/// Time left until an instant that the service states; zero once it is over. The clocks of both machines have to agree.
pub fn until(time: Option<&str>) -> Duration {
    let left_s = time
        .and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok())
        .map_or(0, |at| at.timestamp() - chrono::Utc::now().timestamp());
    Duration::from_secs(u64::try_from(left_s).unwrap_or(0))
}
