//! The one place where a refusal becomes an HTTP problem.

mod response;

use super::placing_fault::PlacingFault;
use crate::access::Refused;
use crate::engine::EngineError;
use crate::leases::Leader;
use crate::metrics;
use placement::pool::Fault;
use store::StoreError;
use wire::{FieldError, FieldFault, Problem};

/// Why a request was not answered as asked.
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
    /// A task of this name is there, and asks for something else.
    TaskDiffers {
        task: String,
    },
    /// The task is not in a state in which this can be done.
    TaskState {
        detail: String,
    },
    /// What was asked does not fit which side places the pool, or its size.
    Placing(PlacingFault),
    /// Tasks are not placed under a virtual clock.
    VirtualClock,
    /// A token is needed, and none came that is in force.
    NoToken(Refused),
    /// The token is good for something else.
    Forbidden {
        detail: String,
    },
    /// Another problem, whole.
    Problem(Box<Problem>),
    /// Another service decides, or nobody does at this moment.
    Elsewhere(Option<Leader>),
    /// What was asked cannot be written, whenever it is asked.
    Refused {
        detail: String,
    },
    /// A bug; the log has it.
    Broken,
    /// The writer of a pool could not write; nothing was done.
    NotWritten {
        detail: String,
    },
    Query {
        detail: String,
    },
    Body(Vec<FieldFault>),
    NotJson,
    TooLarge {
        max_bytes: usize,
    },
    /// Too much is asked at once; quotas are still answered.
    Overloaded {
        retry_after_s: u32,
    },
    /// One address asks too often.
    TooMany {
        rate: u32,
        retry_after_s: u32,
    },
    /// The request took longer than any may.
    TooSlow {
        seconds: u64,
    },
    /// The body could not be received.
    Receive {
        detail: String,
    },
    Store(StoreError),
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
            EngineError::OpenTasks { tasks } => Self::Placing(PlacingFault::OpenTasks { tasks }),
            EngineError::TooLarge { .. } => Self::Placing(PlacingFault::TooLarge { detail }),
            EngineError::Undecided => Self::NotWritten { detail },
            EngineError::Refused { detail } => Self::Refused { detail },
            EngineError::Broken { .. } => Self::Broken,
            EngineError::Unavailable { detail } => Self::NotWritten { detail },
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
const RETRY_AFTER_S: u32 = 10;

impl ApiError {
    fn problem(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::NoRoute { path } => {
                of(404, "no-route", "There is nothing here", format!("{path}: see /openapi.json"))
            }
            Self::NoMethod { method, path } => {
                of(405, "no-method", "The method is not allowed here", format!("{method} {path}: see /openapi.json"))
            }
            Self::UnknownPool { asked, known } => {
                let what_to_do = if known.is_empty() {
                    "no pool is known: ingest usage, a capacity or nodes first"
                } else {
                    "choose one of those in `known`"
                };
                Problem { known, ..of(404, "unknown-pool", "There is no such pool", format!("{asked}: {what_to_do}")) }
            }
            Self::UnknownCluster { asked, known } => {
                Problem { known, ..of(404, "unknown-cluster", "There is no such cluster", asked) }
            }
            Self::NoState { pool } => {
                of(404, "no-state", "No state of the pool was reported", format!("{pool}: PUT the state to report it"))
            }
            Self::UnknownHours { asked, known } => Problem {
                known,
                ..of(404, "unknown-hours", "These hours are not offered", format!("{asked} h: choose one of `known`"))
            },
            Self::UnknownOrganization { asked, known } => {
                Problem { known, ..of(404, "unknown-organization", "There is no such organization in the pool", asked) }
            }
            Self::NoQuotaYet { why } => Self::later("no-quota-yet", "No quota was computed yet", why),
            Self::NoWrites { why } => Self::later("no-writes", "The database takes no writes", why),
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
            Self::Query { detail } => of(400, "bad-query", "The query is not understood", detail),
            Self::Body(faults) => Problem {
                errors: faults.into_iter().map(FieldError::from).collect(),
                ..of(400, "bad-body", "The body is refused", "nothing was taken; see `errors`".to_owned())
            },
            Self::NotJson => {
                of(415, "not-json", "The body is not JSON", "send Content-Type: application/json".to_owned())
            }
            Self::TooLarge { max_bytes } => {
                of(413, "too-large", "The body is too large", format!("send at most {max_bytes} bytes at a time"))
            }
            Self::Receive { detail } => of(400, "not-received", "The body was not received whole", detail),
            Self::Store(fault) => Self::of_store(&fault),
        }
    }

    /// What concerns tasks.
    fn of_task(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::NoNodes => {
                let detail = "register its nodes first: PUT /v1/nodes/{id}".to_owned();
                of(404, "no-nodes", "The pool has no nodes", detail)
            }
            Self::UnknownTask { task } => {
                of(404, "unknown-task", "There is no such task", format!("{task} was never submitted to the pool"))
            }
            Self::TaskDiffers { task } => {
                let detail = format!("{task} is there already, and asks for something else: choose another id");
                of(422, "task-differs", "The id is taken", detail)
            }
            Self::TaskState { detail } => of(409, "task-state", "The task is not in that state", detail),
            Self::VirtualClock => {
                let detail = "start the service without --as-of to place tasks".to_owned();
                of(409, "virtual-clock", "A virtual clock runs", detail)
            }
            Self::Elsewhere(leader) => {
                let detail = match leader {
                    Some(leader) if leader.address.is_empty() => {
                        format!(
                            "{} writes for the cluster, and does not say where it is reached (advertise)",
                            leader.holder
                        )
                    }
                    Some(leader) => format!("{} writes for the cluster, at {}", leader.holder, leader.address),
                    None => "nobody writes for the cluster at this moment; somebody will in seconds".to_owned(),
                };
                Problem { retry_after_s: Some(1), ..of(503, "not-the-writer", "Another service decides", detail) }
            }
            Self::Refused { detail } => of(422, "refused", "The database cannot hold this", detail),
            Self::Broken => {
                of(500, "internal", "The service failed", "the log of the service says what happened".to_owned())
            }
            Self::NotWritten { detail } => {
                Problem { retry_after_s: Some(1), ..of(503, "not-written", "Nothing was done", detail) }
            }
            other => unreachable!("no problem of a task: {other:?}"),
        }
    }

    /// What concerns who asks.
    fn of_access(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::NoToken(Refused::Missing) => {
                let detail =
                    "send Authorization: Bearer TOKEN; an admin makes one: quota-service token create".to_owned();
                of(401, "no-token", "A token is needed", detail)
            }
            Self::NoToken(Refused::Unknown) => {
                of(401, "bad-token", "The token is not in force", "it was revoked, has expired, or is none".to_owned())
            }
            Self::Forbidden { detail } => of(403, "forbidden", "The token is not good for this", detail),
            Self::Problem(problem) => *problem,
            other => unreachable!("no problem of access: {other:?}"),
        }
    }

    /// What concerns how much is asked.
    fn of_load(self) -> Problem {
        let of = Self::plain;
        match self {
            Self::Overloaded { retry_after_s } => Problem {
                retry_after_s: Some(retry_after_s),
                ..of(
                    503,
                    "overloaded",
                    "Too much is asked at once",
                    "quotas are answered; come back for this".to_owned(),
                )
            },
            Self::TooMany { rate, retry_after_s } => Problem {
                retry_after_s: Some(retry_after_s),
                ..of(
                    429,
                    "too-many",
                    "One address asks too often",
                    format!("at most {rate} requests a second, quotas apart"),
                )
            },
            Self::TooSlow { seconds } => {
                let detail =
                    format!("it took more than {seconds} s; the same request again is safe where its route says so");
                Problem { retry_after_s: Some(1), ..of(503, "too-slow", "The request took too long", detail) }
            }
            other => unreachable!("no problem of load: {other:?}"),
        }
    }

    /// What passes by itself.
    fn later(code: &str, title: &str, why: String) -> Problem {
        Problem { retry_after_s: Some(RETRY_AFTER_S), ..Self::plain(503, code, title, why) }
    }

    pub(super) fn plain(status: u16, code: &str, title: &str, detail: String) -> Problem {
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

    fn of_store(fault: &StoreError) -> Problem {
        let detail = fault.to_string();
        match fault {
            StoreError::Lost { reason, .. } => {
                tracing::error!(%fault, "a request failed");
                let detail = format!("its file is not the one that was opened: {reason}");
                Self::plain(503, "store-lost", "The database is lost", detail)
            }
            StoreError::Unavailable { .. } | StoreError::Busy { .. } | StoreError::Fenced { .. } => Problem {
                retry_after_s: Some(RETRY_AFTER_S),
                ..Self::plain(503, "store-unavailable", "The database does not answer", detail)
            },
            StoreError::NotAudited { .. } => {
                tracing::warn!(%fault, "the audit takes no entry: nothing is written");
                metrics::audit_failed();
                let detail = "nothing was done, since the audit could not be written; try again".to_owned();
                Problem {
                    retry_after_s: Some(1),
                    ..Self::plain(503, "not-audited", "The audit was not written", detail)
                }
            }
            StoreError::NotFound { .. } => Self::plain(404, "not-found", "There is no such thing", detail),
            StoreError::Conflict { .. } => Self::plain(409, "conflict", "Somebody was faster", detail),
            StoreError::Contradiction { .. } | StoreError::OutOfRange { .. } => {
                Self::plain(422, "refused", "The database cannot hold this", detail)
            }
            StoreError::Full { .. } => Self::plain(507, "store-full", "The database takes no more data", detail),
            StoreError::BadUrl { .. }
            | StoreError::Denied { .. }
            | StoreError::Tls { .. }
            | StoreError::Schema { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Unexpected(_) => {
                tracing::error!(%fault, "a request failed");
                // What an operator has to see may hold names and paths that a client has no business with.
                let detail = "the log of the service says what happened".to_owned();
                Self::plain(500, "internal", "The service failed", detail)
            }
        }
    }
}
