//! Leases of connectors.

use super::ApiError;
use super::extract::{Json as Body, Query, written_here};
use crate::connectors::Asker;
use crate::quotas::Quotas;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::StoreError;
use utoipa::IntoParams;
use vocab::ClusterName;
use wire::bounds::MOST_LEASE_S;
use wire::{ConnectorLease, ConnectorLeaseRequest, FieldFault, Problem};

/// The longest name of a connector.
const LONGEST_NAME: usize = 200;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LeaseQuery {
    cluster: String,
}

/// Take or renew the lease of a connector
///
/// Of several connectors of one cluster the holder of the lease writes limits into its scheduler. A service that has just begun to
/// lead the cluster grants a lease after `lease_s`, and at once to a connector whose lease still holds (`holds_s`).
#[utoipa::path(put, path = "/v1/connectors/lease", tag = "feed", params(LeaseQuery), request_body = ConnectorLeaseRequest, responses(
    (status = 200, description = "Whether it is granted, and to whom", body = ConnectorLease),
    (status = 400, description = "The query or the body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster; `known` lists the known ones", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No service leads the cluster at this moment", body = Problem, content_type = "application/problem+json"),
))]
pub async fn take(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<LeaseQuery>,
    Body(body): Body<ConnectorLeaseRequest>,
) -> Result<Json<ConnectorLease>, ApiError> {
    let (cluster, epoch) = led(&quotas, &query, &body).await?;
    let (lease, holds) = (Duration::from_secs(body.lease_s), Duration::from_secs(body.holds_s.min(body.lease_s)));
    let asker = Asker { holder: &body.holder, lease, holds };
    let answer = quotas.core.connectors.ask(&cluster, epoch, asker, Instant::now());
    Ok(Json(ConnectorLease {
        granted: answer.granted,
        holder: answer.holder.unwrap_or_default(),
        expires_in_s: answer.left.as_secs(),
    }))
}

/// Give the lease of a connector back
#[utoipa::path(delete, path = "/v1/connectors/lease", tag = "feed", params(LeaseQuery), request_body = ConnectorLeaseRequest, responses(
    (status = 200, description = "It is free, or another's", body = ConnectorLease),
    (status = 400, description = "The query or the body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster; `known` lists the known ones", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No service leads the cluster at this moment", body = Problem, content_type = "application/problem+json"),
))]
pub async fn give_back(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<LeaseQuery>,
    Body(body): Body<ConnectorLeaseRequest>,
) -> Result<Json<ConnectorLease>, ApiError> {
    let (cluster, epoch) = led(&quotas, &query, &body).await?;
    quotas.core.connectors.release(&cluster, epoch, &body.holder, Instant::now());
    Ok(Json(ConnectorLease { granted: false, holder: String::new(), expires_in_s: 0 }))
}

/// The cluster with the epoch in which this service leads it.
async fn led(
    quotas: &Quotas,
    query: &LeaseQuery,
    body: &ConnectorLeaseRequest,
) -> Result<(ClusterName, u64), ApiError> {
    let cluster = ClusterName::parse(&query.cluster);
    let cluster = cluster.map_err(|fault| ApiError::Query { detail: format!("cluster: {fault}") })?;
    if body.holder.is_empty() || body.holder.len() > LONGEST_NAME {
        let detail = format!("invalid name of {} bytes: write 1 to {LONGEST_NAME}", body.holder.len());
        return Err(FieldFault::new("/holder", detail).into());
    }
    vocab::new_text(&body.holder).map_err(|fault| FieldFault::new("/holder", fault))?;
    if body.lease_s == 0 || body.lease_s > MOST_LEASE_S {
        return Err(FieldFault::new(
            "/lease_s",
            format!("invalid lease of {} s: write 1 to {MOST_LEASE_S}", body.lease_s),
        )
        .into());
    }
    written_here(&quotas.core, &cluster)?;
    if let Some(led) = quotas.core.leases.led(&cluster) {
        return Ok((cluster, led.epoch));
    }
    Err(not_led(quotas, &cluster).await?)
}

/// Why no service leads a cluster: no try again makes an unknown one known, and the lease of a new one is taken at the next beat.
async fn not_led(quotas: &Quotas, cluster: &ClusterName) -> Result<ApiError, StoreError> {
    let known: Vec<_> = quotas.core.store.clusters().await?.into_iter().map(|one| one.name).collect();
    let problem = if known.contains(cluster) {
        let detail = format!("no service leads cluster {cluster} at this moment: try again");
        ApiError::plain(503, "not-the-writer", "No leader of the cluster", detail)
    } else {
        let detail = format!(
            "{cluster}: correct the name in the settings of the connector, or create the cluster with `datasets ingest` or the time_zone of a source"
        );
        let known = known.iter().map(ToString::to_string).collect();
        Problem { known, ..ApiError::plain(404, "unknown-cluster", "Unknown cluster", detail) }
    };
    Ok(ApiError::Problem(Box::new(problem)))
}
