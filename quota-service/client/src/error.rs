//! Failed requests.

use hyper::StatusCode;
use std::time::Duration;
use wire::Problem;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// A setting is wrong.
    #[error("{setting}: {detail}")]
    Settings {
        /// The setting: [`Options::setting_prefix`](crate::Options::setting_prefix) and the name of the option.
        setting: String,
        /// Cause.
        detail: String,
    },
    /// No answer.
    #[error("{url} does not answer: {detail}")]
    Unavailable {
        /// URL of the request.
        url: String,
        /// Cause.
        detail: String,
    },
    /// An HTTP status that is no success.
    #[error("{url} answers {status}: {detail}")]
    Refused {
        /// URL of the request.
        url: String,
        /// HTTP status.
        status: u16,
        /// The fault and the remedy, with the refused fields.
        detail: String,
        /// The whole problem; `None` where something else answered, such as a proxy.
        problem: Option<Box<Problem>>,
        /// The earliest time for another try, where the answer names one.
        retry_after: Option<Duration>,
    },
    /// An id that no path can have.
    #[error("{id:?} is not an id: name the task or node")]
    NoId {
        /// The id.
        id: String,
    },
    /// An answer of another kind.
    #[error("{url} does not answer as quota-service: {detail}; check the URL")]
    Foreign {
        /// URL of the request.
        url: String,
        /// Cause.
        detail: String,
    },
}

/// Known names, and refused fields, that an error lists.
const LISTED: usize = 12;

/// The known names that a refusal offers, as a part of its sentence.
fn known(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let more = names.len().checked_sub(LISTED).filter(|more| *more > 0);
    let listed = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("; known: {listed}{}", more.map_or_else(String::new, |more| format!(" and {more} more")))
}

/// Text of a foreign answer that an error shows, in characters.
const SHOWN: usize = 200;

/// The begin of a foreign answer. It may be printed on a terminal, which obeys control characters.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.chars().take(SHOWN).map(|one| if one.is_control() { ' ' } else { one }).collect()
}

impl ClientError {
    /// Of an answer that is no success.
    pub(crate) fn refused(url: String, status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let problem = serde_json::from_slice::<Problem>(body).ok().map(Box::new);
        let detail = problem.as_ref().map_or_else(
            || shown(body),
            |problem| {
                let fields = problem.errors.iter().take(LISTED).map(|one| format!("; {}: {}", one.pointer, one.detail));
                format!("{}{}{}", problem.detail, known(&problem.known), fields.collect::<String>())
            },
        );
        Self::Refused { url, status: status.as_u16(), detail, problem, retry_after }
    }

    /// Whether the same request may succeed later, also after a correction of a setting or a token. A request refused as
    /// invalid stays invalid.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Foreign { .. } | Self::Settings { .. } => true,
            Self::NoId { .. } => false,
            Self::Refused { status, .. } => !matches!(status, 400 | 413 | 422),
        }
    }

    /// Whether the service is away or busy, so that the client itself tries again. A full database (507) is left to people.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Self::Foreign { .. } | Self::Settings { .. } | Self::NoId { .. } => false,
        }
    }

    /// The status of a refusal.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The stable code of a refusal, such as `unknown-pool`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { problem: Some(problem), .. } => Some(&problem.code),
            _ => None,
        }
    }

    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
