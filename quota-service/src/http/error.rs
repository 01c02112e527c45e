//! The one place where an error becomes an HTTP problem.

mod response;

use super::places::Taken;
use super::placing_fault::PlacingFault;
use crate::access::Refused;
use crate::engine::EngineError;
use crate::leases::Leader;
use placement::pool::Fault;
use std::sync::Arc;
use store::StoreError;
use wire::{FieldError, FieldFault, Problem};

/// The reason for which a request failed.
#[derive(Debug)]
pub enum ApiError {
    NoRoute {
        path: String,
    },
    NoMethod {
        method: String,
        path: String,
    },
    UnknownPool {
        asked: String,
        known: Vec<String>,
    },
    UnknownCluster {
        asked: String,
        known: Vec<String>,
    },
    /// No scheduler has reported a state of the pool.
    NoState {
        pool: String,
    },
    UnknownHours {
        asked: u64,
        known: Vec<String>,
    },
    UnknownOrganization {
        asked: String,
        known: Vec<String>,
    },
    /// No quota was computed yet.
    NoQuotaYet {
        why: String,
    },
    /// The database takes no writes at this moment.
    NoWrites {
        why: String,
    },
    /// The pool has neither nodes nor tasks.
    NoNodes,
    UnknownTask {
        task: String,
    },
    /// A task of this id exists with another request.
    TaskDiffers {
        task: String,
    },
    /// The request does not fit the state of the task.
    TaskState {
        detail: String,
    },
    /// The request does not fit the side that places the pool, or its size.
    Placing(PlacingFault),
    /// Tasks are not placed under a virtual clock.
    VirtualClock,
    /// The request has no valid token.
    NoToken(Refused),
    /// The role or scope of the token does not allow the request.
    Forbidden {
        detail: String,
    },
    /// Another problem, whole.
    Problem(Box<Problem>),
    /// Another replica leads the cluster, or none does at this moment.
    Elsewhere(Option<Leader>),
    /// The database can never hold the request.
    Refused {
        detail: String,
    },
    /// A bug; the log has it.
    Broken,
    /// The writer of a pool could not write, and the database is not why; nothing was done.
    NotWritten {
        detail: String,
    },
    Query {
        detail: String,
    },
    Path {
        detail: String,
    },
    Body(Vec<FieldFault>),
    /// With what to send.
    NotJson(&'static str),
    TooLarge {
        max_bytes: usize,
    },
    /// All places for such requests, or of one token, are taken; quotas are still answered.
    Overloaded {
        taken: Taken,
        retry_after_s: u32,
    },
    /// One address exceeds its rate.
    TooMany {
        rate: u32,
        retry_after_s: u32,
    },
    /// The request exceeded the time limit.
    TooSlow {
        seconds: u64,
    },
    /// The body could not be received.
    Receive {
        detail: String,
    },
    Store(StoreError),
    /// The same of a turn of a pool's writer.
    Turn(Arc<StoreError>),
}

impl From<StoreError> for ApiError {
    fn from(fault: StoreError) -> Self {
        Self::Store(fault)
    }
}

impl From<EngineError> for ApiError {
    fn from(fault: EngineError) -> Self {
        let detail = fault.to_string();
        match fault {
            EngineError::Virtual => Self::VirtualClock,
            EngineError::Elsewhere(leader) => Self::Elsewhere(leader),
            EngineError::UnknownPool => Self::NoNodes,
            EngineError::UnknownTask { task } | EngineError::Fault(Fault::UnknownTask { task }) => {
                Self::UnknownTask { task: task.to_string() }
            }
            EngineError::Differs { task } => Self::TaskDiffers { task: task.to_string() },
            EngineError::HasEnded { .. } | EngineError::Fault(_) => Self::TaskState { detail },
            EngineError::PlacedOutside => Self::Placing(PlacingFault::Outside),
            EngineError::Promised { .. } => Self::Placing(PlacingFault::Promised { detail }),
            EngineError::OpenTasks { tasks } => Self::Placing(PlacingFault::OpenTasks { tasks }),
            EngineError::TooLarge { .. } => Self::Placing(PlacingFault::TooLarge { detail }),
            EngineError::Undecided | EngineError::Unavailable { .. } => Self::NotWritten { detail },
            EngineError::Refused { detail } => Self::Refused { detail },
            EngineError::Broken { .. } => Self::Broken,
            EngineError::Turn(fault) => Self::Turn(fault),
            EngineError::Store(fault) => Self::Store(fault),
        }
    }
}

impl From<Vec<FieldFault>> for ApiError {
    fn from(faults: Vec<FieldFault>) -> Self {
        Self::Body(faults)
    }
}

impl From<FieldFault> for ApiError {
    fn from(fault: FieldFault) -> Self {
        Self::Body(vec![fault])
    }
}

/// Seconds after which a client may try again when the database is away or no quota is there yet.
pub(super) const RETRY_AFTER_S: u32 = 10;
pub(super) const SEND_JSON: &str = "send Content-Type: application/json";

impl ApiError {
    pub(super) fn problem(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::NoRoute { path } => {
                of(404, "no-route", "Unknown path", format!("no route matches {path}: see /openapi.json"))
            }
            Self::NoMethod { method, path } => {
                of(405, "no-method", "Method not allowed", format!("{path} does not take {method}: see /openapi.json"))
            }
            Self::UnknownPool { .. }
            | Self::UnknownCluster { .. }
            | Self::NoState { .. }
            | Self::UnknownHours { .. }
            | Self::UnknownOrganization { .. } => self.of_names(),
            Self::NoQuotaYet { why } => response::later("no-quota-yet", "No quota yet", why),
            Self::NoWrites { why } => response::later("no-writes", "The database takes no writes", why),
            Self::NoNodes
            | Self::UnknownTask { .. }
            | Self::TaskDiffers { .. }
            | Self::TaskState { .. }
            | Self::VirtualClock
            | Self::Elsewhere(_)
            | Self::Refused { .. }
            | Self::Broken
            | Self::NotWritten { .. } => self.of_task(),
            Self::Placing(fault) => fault.problem(),
            Self::NoToken(_) | Self::Forbidden { .. } | Self::Problem(_) => self.of_access(),
            Self::Overloaded { .. } | Self::TooMany { .. } | Self::TooSlow { .. } => self.of_load(),
            Self::Query { detail } => of(400, "bad-query", "Invalid query", detail),
            Self::Path { detail } => of(400, "bad-path", "Invalid path", detail),
            Self::Body(faults) => Problem {
                errors: faults.into_iter().map(FieldError::from).collect(),
                ..of(400, "bad-body", "Invalid body", "nothing was stored: see `errors`".to_owned())
            },
            Self::NotJson(detail) => of(415, "not-json", "The body is not JSON", detail.to_owned()),
            Self::TooLarge { max_bytes } => {
                of(413, "too-large", "The body is too large", format!("send at most {max_bytes} bytes at a time"))
            }
            Self::Receive { detail } => of(400, "not-received", "Incomplete body", detail),
            Self::Store(fault) => response::of_store(&fault, true),
            // The writer has logged it, once for all callers.
            Self::Turn(fault) => response::of_store(&fault, false),
        }
    }

    /// Problems of names that the service does not know.
    fn of_names(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::UnknownPool { asked, known } => {
                let advice = if known.is_empty() {
                    "no pool is known: ingest usage, a capacity or nodes first"
                } else {
                    "choose one of `known`"
                };
                Problem { known, ..of(404, "unknown-pool", "Unknown pool", format!("{asked}: {advice}")) }
            }
            Self::UnknownCluster { asked, known } => response::unknown_cluster(asked, known),
            Self::NoState { pool } => of(
                404,
                "no-state",
                "No reported state",
                format!("no scheduler has reported a state of {pool}: PUT it first"),
            ),
            Self::UnknownHours { asked, known } => Problem {
                known,
                ..of(
                    404,
                    "unknown-hours",
                    "Hours not offered",
                    format!("the pool does not offer {asked} h: choose one of `known`"),
                )
            },
            Self::UnknownOrganization { asked, known } => {
                Problem { known, ..of(404, "unknown-organization", "Unknown organization", asked) }
            }
            other => unreachable!("no problem of a name: {other:?}"),
        }
    }

    /// Problems of tasks.
    fn of_task(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::NoNodes => {
                let detail = "check its name (GET /v1/pools lists the pools), or register its nodes: PUT /v1/nodes/{id}, unless an external \
                              scheduler places its tasks"
                    .to_owned();
                of(404, "no-nodes", "The pool has no nodes", detail)
            }
            Self::UnknownTask { task } => {
                of(404, "unknown-task", "Unknown task", format!("{task} was never submitted to the pool"))
            }
            Self::TaskDiffers { task } => {
                let detail = format!("task {task} exists with another request: choose another id");
                of(422, "task-differs", "The id is taken", detail)
            }
            Self::TaskState { detail } => of(409, "task-state", "Wrong task state", detail),
            Self::VirtualClock => {
                let detail =
                    "the service runs on a virtual clock and takes nothing that happens now: start it without --as-of"
                        .to_owned();
                of(409, "virtual-clock", "Virtual clock", detail)
            }
            Self::Elsewhere(leader) => {
                let detail = match leader {
                    Some(leader) if leader.address.is_empty() => {
                        format!("{} leads the cluster, and has no address: set `advertise` there", leader.holder)
                    }
                    Some(leader) => {
                        format!("{} leads the cluster: send the request to {}", leader.holder, leader.address)
                    }
                    None => "no replica leads the cluster at this moment: retry in seconds".to_owned(),
                };
                Problem { retry_after_s: Some(1), ..of(503, "not-the-writer", "Another replica leads", detail) }
            }
            Self::Refused { detail } => of(422, "refused", "The database cannot hold this", detail),
            Self::Broken => of(500, "internal", "The service failed", "see the log of the service".to_owned()),
            Self::NotWritten { detail } => {
                Problem { retry_after_s: Some(1), ..of(503, "not-written", "Not written", detail) }
            }
            other => unreachable!("no problem of a task: {other:?}"),
        }
    }

    /// Problems of access.
    fn of_access(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::NoToken(Refused::Missing) => {
                let detail =
                    "the request has no token: send Authorization: Bearer TOKEN; an admin creates one with `quota-service token create`".to_owned();
                of(401, "no-token", "Token required", detail)
            }
            Self::NoToken(Refused::Unknown) => of(
                401,
                "bad-token",
                "Invalid token",
                "the token was revoked, has expired, or was never created: ask an admin for another".to_owned(),
            ),
            Self::Forbidden { detail } => of(403, "forbidden", "Not allowed", detail),
            Self::Problem(problem) => *problem,
            other => unreachable!("no problem of access: {other:?}"),
        }
    }

    /// Problems of load.
    fn of_load(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::Overloaded { taken, retry_after_s } => Problem {
                retry_after_s: Some(retry_after_s),
                ..of(503, "overloaded", "Overloaded", taken.detail().to_owned())
            },
            Self::TooMany { rate, retry_after_s } => Problem {
                retry_after_s: Some(retry_after_s),
                ..of(
                    429,
                    "too-many",
                    "Too many requests",
                    format!("one address may send {rate} requests a second, quotas apart: retry later"),
                )
            },
            Self::TooSlow { seconds } => {
                let detail = format!("the request took more than {seconds} s: retry where its route allows it");
                Problem { retry_after_s: Some(1), ..of(503, "too-slow", "Request timeout", detail) }
            }
            other => unreachable!("no problem of load: {other:?}"),
        }
    }

    pub(in crate::http) fn plain(status: u16, code: &str, title: &str, detail: String) -> Problem {
        Problem {
            kind: format!("/problems/{code}"),
            title: title.to_owned(),
            status,
            detail,
            code: code.to_owned(),
            known: Vec::new(),
            errors: Vec::new(),
            retry_after_s: None,
        }
    }
}
