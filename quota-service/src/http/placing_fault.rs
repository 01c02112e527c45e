//! Requests that do not fit the side that places a pool, or its size.

use super::ApiError;
use wire::{FieldError, FieldFault, Problem};

/// The reason for which a pool takes no task, no report or no other side.
#[derive(Debug)]
pub enum PlacingFault {
    /// An external scheduler places the pool: it takes no task.
    Outside,
    /// Headroom places the pool: it takes no reported state.
    Here { pool: String },
    /// Headroom places pools of the report: it measures their demand and the ends of their promises itself.
    MeasuredHere { faults: Vec<FieldFault>, correct_at: &'static str },
    /// Tasks of the pool are open: it cannot change to an external scheduler.
    OpenTasks { tasks: u64 },
    /// Promises leave a new window no room.
    Promised { detail: String },
    /// The task asks for more than the pool may be asked for.
    TooLarge { detail: String },
}

impl PlacingFault {
    pub(super) fn problem(self) -> Problem {
        let of = ApiError::plain;
        match self {
            Self::Outside => {
                let detail = "placed_by of the pool is external: submit the task to its scheduler, or have an admin set placed_by \
                              to headroom: PUT /v1/pools/{id}/settings";
                of(409, "placed-outside", "An external scheduler places the pool", detail.to_owned())
            }
            Self::Here { pool } => {
                let detail = format!(
                    "placed_by of {pool} is headroom, which knows its state, so nothing was stored: if an external scheduler \
                     places it, have an admin set placed_by to external: PUT /v1/pools/{pool}/settings"
                );
                of(409, "placed-here", "Headroom places the pool", detail)
            }
            Self::MeasuredHere { faults, correct_at } => Problem {
                errors: faults.into_iter().map(FieldError::from).collect(),
                ..of(
                    409,
                    "placed-here",
                    "Headroom places the pool",
                    format!(
                        "placed_by of the pools in `errors` is headroom, which measures them, so nothing was stored: \
                         leave their rows out, or correct the stored ones: POST {correct_at}"
                    ),
                )
            },
            Self::OpenTasks { tasks } => {
                let detail = format!(
                    "{}, unknown to an external scheduler: finish or delete what is open (GET /v1/tasks), then set \
                     placed_by",
                    vocab::count(tasks, "task").verb("of the pool waits or runs", "of the pool wait or run")
                );
                of(409, "open-tasks", "The pool has open tasks", detail)
            }
            Self::Promised { detail } => of(409, "promised", "Promises reach into the window", detail),
            Self::TooLarge { detail } => Problem {
                errors: vec![FieldError::from(FieldFault::new("/pods", &detail))],
                ..of(
                    422,
                    "task-too-large",
                    "The task is too large for the pool",
                    format!(
                        "{detail}: submit it in parts, register the nodes first, or have an admin raise \
                         max_request_multiple: PUT /v1/pools/{{id}}/settings"
                    ),
                )
            },
        }
    }
}
