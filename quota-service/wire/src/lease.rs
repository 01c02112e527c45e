//! The lease under which one connector of a cluster writes limits.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `PUT /v1/connectors/lease`, `DELETE /v1/connectors/lease`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectorLeaseRequest {
    /// Name of the connector; no two that run have the same.
    pub holder: String,
    /// Program and version of the connector.
    #[serde(default)]
    pub agent: String,
    /// Seconds for which the lease holds without a renewal: 1 to 600.
    pub lease_s: u64,
    /// Seconds for which the last lease of this connector still holds, by its own clock.
    #[serde(default)]
    pub holds_s: u64,
}

/// The lease, as it stands after the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectorLease {
    /// Whether the connector that asks holds it now, for `lease_s` from when it asked.
    pub granted: bool,
    /// The holder; empty where there is none, or none is known yet.
    pub holder: String,
    /// Seconds until it ends without a renewal, or until it may be granted.
    pub expires_in_s: u64,
}
