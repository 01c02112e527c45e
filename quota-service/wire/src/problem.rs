use crate::fault::FieldFault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Problem details (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A relative reference that names the kind of problem, such as `/problems/unknown-pool`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem, for people.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The fault of this request, and what to do.
    pub detail: String,
    /// The last part of `type`, for programs.
    pub code: String,
    /// The known names, in answer to an unknown one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// The refused fields of a body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Seconds after which the client may retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
}

/// A refused field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// RFC 6901.
    pub pointer: String,
    /// The fault, and what was expected.
    pub detail: String,
}

impl From<FieldFault> for FieldError {
    fn from(FieldFault { pointer, detail }: FieldFault) -> Self {
        Self { pointer, detail }
    }
}
