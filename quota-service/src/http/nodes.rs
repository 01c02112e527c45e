use super::ApiError;
use super::access::Write;
use super::extract::{Json as Body, Path, Query, written_here};
use crate::core::Core;
use crate::engine::Order;
use crate::refresh::Renewals;
use crate::refresh::pace::Haste;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use placement::fleet::GpuRequest;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::IntoParams;
use vocab::{ClusterName, NameError, Node, NodeId, PoolId};
use wire::{FieldFault, NodeBody, NodeList, NodeLossBody, Problem};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ClusterQuery {
    cluster: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RemovalQuery {
    cluster: String,
    /// `drained` if it is not given.
    #[param(inline)]
    cause: Option<NodeLossBody>,
}

async fn node_of(core: &Core, cluster: &ClusterName, id: &NodeId) -> Result<Option<Node>, ApiError> {
    Ok(core.store.nodes(cluster).await?.into_iter().find(|node| node.id == *id))
}

/// Placement keeps a bit for each GPU of a node.
fn check_size(node: &Node) -> Result<(), FieldFault> {
    if node.gpus <= u32::from(GpuRequest::MOST) {
        return Ok(());
    }
    Err(FieldFault::new(
        "/gpus",
        format!("invalid number of GPUs {}: a node has at most {}", node.gpus, GpuRequest::MOST),
    ))
}

fn cluster_name(text: &str) -> Result<ClusterName, ApiError> {
    ClusterName::parse(text).map_err(|fault| ApiError::Query { detail: format!("cluster: {fault}") })
}

fn node_id(text: &str) -> Result<NodeId, ApiError> {
    NodeId::parse(text).map_err(|fault: NameError| ApiError::Query { detail: format!("node: {fault}") })
}

/// A known cluster.
pub async fn known_cluster(core: &Core, asked: &str) -> Result<ClusterName, ApiError> {
    let cluster = cluster_name(asked)?;
    if core.store.cluster(&cluster).await?.is_none() {
        let known = core.store.clusters().await?.iter().map(|one| one.name.to_string()).collect();
        return Err(ApiError::UnknownCluster { asked: asked.to_owned(), known });
    }
    Ok(cluster)
}

/// The nodes of a cluster
#[utoipa::path(get, path = "/v1/nodes", tag = "feed", params(ClusterQuery), responses(
    (status = 200, description = "By name", body = NodeList),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(
    State(core): State<Arc<Core>>,
    Query(query): Query<ClusterQuery>,
) -> Result<Json<NodeList>, ApiError> {
    let cluster = known_cluster(&core, &query.cluster).await?;
    let nodes = core.store.nodes(&cluster).await?;
    Ok(Json(NodeList { nodes: nodes.iter().map(NodeBody::from).collect() }))
}

/// Add or change a node
#[utoipa::path(put, path = "/v1/nodes/{id}", tag = "feed", request_body = NodeBody, params(("id" = String, Path)), responses(
    (status = 200, description = "Durable", body = NodeBody),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn put(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    write: Write,
    Body(body): Body<NodeBody>,
) -> Result<Json<NodeBody>, ApiError> {
    let refused = |fault: NameError| ApiError::Query { detail: format!("node: {fault}") };
    vocab::new_name(&id).and_then(|()| vocab::addressable(&id)).map_err(refused)?;
    let node = body.parse(node_id(&id)?)?;
    check_size(&node)?;
    write.of_pool(&node.pool)?;
    written_here(&renewals.core, &node.pool.cluster)?;
    let before = node_of(&renewals.core, &node.pool.cluster, &node.id).await?;
    if let Some(before) = &before {
        // A node that moves leaves another pool.
        write.of_pool(&before.pool)?;
    }
    let detail = json!({ "before": before.as_ref().map(NodeBody::from), "after": NodeBody::from(&node) });
    write.store(&renewals.core, StatusCode::OK, &detail).put_node(&node).await?;
    renewals.quotas.know([&node.pool]);
    let before = before.map(|before| before.pool);
    // Both pools of a node that has moved have to know.
    for pool in before.iter().filter(|pool| **pool != node.pool).chain([&node.pool]) {
        take_in(&renewals, pool, &node.id, Order::TakeInNodes).await;
    }
    for pool in before.iter().filter(|pool| pool.cluster != node.pool.cluster).chain([&node.pool]) {
        renewals.request_renewal(&pool.cluster, Haste::Urgent);
    }
    Ok(Json(NodeBody::from(&node)))
}

/// Lets placement know of a change of nodes that is stored. Where it cannot take it in now, such as on a full disk, the next renewal does:
/// the change is durable, and a refusal would say that it is not.
async fn take_in(renewals: &Renewals, pool: &PoolId, node: &NodeId, order: Order) {
    if let Err(fault) = renewals.engine.ask_if_running(pool, order).await {
        tracing::warn!(%pool, %node, %fault, "the change of a node is stored, and placement takes it in at the next renewal");
    }
}

/// Remove a node
///
/// Its tasks wait again. The cause does not count as a broken guarantee.
#[utoipa::path(delete, path = "/v1/nodes/{id}", tag = "feed", params(("id" = String, Path), RemovalQuery), responses(
    (status = 204, description = "Removed"),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown node", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn delete(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    Query(query): Query<RemovalQuery>,
    write: Write,
) -> Result<StatusCode, ApiError> {
    let cause = query.cause.unwrap_or(NodeLossBody::Drained);
    let (cluster, id) = (cluster_name(&query.cluster)?, node_id(&id)?);
    written_here(&renewals.core, &cluster)?;
    let before = node_of(&renewals.core, &cluster, &id).await?;
    match &before {
        Some(before) => write.of_pool(&before.pool)?,
        // Whether a node is missing or belongs to another pool is not for a token of one pool.
        None => write.of_cluster(&cluster)?,
    }
    let detail = json!({ "before": before.as_ref().map(NodeBody::from), "cause": cause });
    write.store(&renewals.core, StatusCode::NO_CONTENT, &detail).delete_node(&cluster, &id).await?;
    if let Some(node) = before {
        take_in(&renewals, &node.pool, &node.id, Order::RemoveNode(id, cause.into())).await;
    }
    renewals.request_renewal(&cluster, Haste::Urgent);
    Ok(StatusCode::NO_CONTENT)
}
