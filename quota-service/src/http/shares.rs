//! How organizations stand under the fair shares of a pool.

use super::ApiError;
use super::extract::{Path, pool_id};
use crate::engine::{ListShares, Shares};
use crate::refresh::Renewals;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use vocab::PoolId;
use wire::{Problem, ShareList, ShareStanding};

/// The organizations of a pool under fair shares of spot: levels, weights, and who borrows
///
/// Without shares in the settings of the pool, or in its policy, `half_life_hours` is null and the list is empty.
#[utoipa::path(get, path = "/v1/pools/{id}/shares", tag = "tasks", params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 200, description = "The organization that is served next first", body = ShareList),
    (status = 404, description = "Unknown pool, or it has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(State(renewals): State<Arc<Renewals>>, Path(id): Path<String>) -> Result<Json<ShareList>, ApiError> {
    let pool = pool_id(&renewals.quotas, &id)?;
    let shares = renewals.engine.ask(&pool, ListShares).await?;
    Ok(Json(body(&pool, shares.as_ref())))
}

fn body(pool: &PoolId, shares: Option<&Shares>) -> ShareList {
    ShareList {
        cluster: pool.cluster.to_string(),
        gpu_model: pool.gpu_model.to_string(),
        half_life_hours: shares.map(|shares| shares.settings.half_life_hours),
        organizations: shares.into_iter().flat_map(|shares| &shares.standings).map(ShareStanding::from).collect(),
    }
}
