//! Kinds of tasks.

use placement::pool::Request;
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
