//! Kinds of tasks.

use placement::fleet::PodRequest;
use placement::pool::Request;
use placement::topology::Strictness;
use vocab::{HorizonHours, TaskClass};

/// The traits that decide, beside its size, how a task is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// HP or spot.
    pub class: TaskClass,
    /// The guarantee that a spot task asks for; none at will, and for HP.
    pub hours: Option<HorizonHours>,
}

impl Kind {
    /// Kind of a request.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        Self { class: request.gang.class, hours: request.hours.filter(|_| request.gang.class == TaskClass::Spot) }
    }
}

/// Whether a pod does not take any GPUs.
pub fn is_choosy(pod: &PodRequest) -> bool {
    pod.affinity.is_some_and(|affinity| affinity.strictness == Strictness::Guaranteed)
}
