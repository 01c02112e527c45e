use crate::fault::FieldFault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Problem details (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A relative reference that names the kind of problem, such as `/problems/unknown-pool`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened here, and what to do.
    pub detail: String,
    /// The same as the last part of `type`, for programs.
    pub code: String,
    /// What there is, where something unknown was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// The refused fields of a body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Seconds after which trying again may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
}

/// A refused field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// RFC 6901.
    pub pointer: String,
    pub detail: String,
}

impl From<FieldFault> for FieldError {
    fn from(FieldFault { pointer, detail }: FieldFault) -> Self {
        Self { pointer, detail }
    }
}
