//! Which side places the tasks of a pool: Headroom or an external scheduler. An admin decides it, or the first use of the pool
//! does; the decision is stored with its audit record, and holds until an admin changes it.

use crate::access::Caller;
use crate::core::Core;
use crate::engine::{Engine, EngineError, Order};
use serde_json::{Value, json};
use store::{AuditRecord, PoolPlacement};
use vocab::{PlacedBy, PoolId, UnixSeconds};

/// The audit record of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    pub pool: &'a PoolId,
    pub before: Option<PlacedBy>,
    pub after: PlacedBy,
    /// Reason of the decision: `first task`, `first reported state`, `tasks in the journal`.
    pub reason: &'static str,
    /// `PUT /v1/pools/{id}/settings`, say.
    pub action: &'static str,
    /// The path of the request.
    pub target: &'a str,
}

impl Decision<'_> {
    #[must_use]
    pub fn audit(&self, actor: &str, token_id: Option<String>, now: UnixSeconds) -> AuditRecord {
        let placed_by = change(self.before, self.after, self.reason);
        AuditRecord {
            at: now,
            actor: actor.to_owned(),
            token_id,
            action: self.action.to_owned(),
            target: self.target.to_owned(),
            status: 200,
            detail_json: Some(json!({ "pool": self.pool.to_string(), "placed_by": placed_by }).to_string()),
        }
    }
}

/// The change of a side, as the audit keeps it.
#[must_use]
pub fn change(before: Option<PlacedBy>, after: PlacedBy, reason: &str) -> Value {
    json!({ "before": before.map(PlacedBy::as_str), "after": after.as_str(), "reason": reason })
}

/// A pool whose journal has tasks that no row shows any more is Headroom's: it was before there were sides.
#[must_use]
pub fn by_journal(pool: &PoolId, now: UnixSeconds) -> AuditRecord {
    let (before, after, reason) = (None, PlacedBy::Headroom, "tasks in the journal");
    let decision = Decision { pool, before, after, reason, action: "renewal", target: "" };
    decision.audit("quota-service", None, now)
}

/// Decides the side of an undecided pool, and lets its writer know. Returns the present side.
///
/// # Errors
/// The database does not answer, or another service writes for the cluster.
pub async fn decide(
    core: &Core,
    engine: &Engine,
    who: &Caller,
    decision: Decision<'_>,
) -> Result<PlacedBy, EngineError> {
    let audit = decision.audit(&who.name, who.token_id.clone(), core.clock.now());
    let placement = core.store.decide_placement(decision.pool, decision.after, &audit).await?;
    let (side, pool) = (placement.placed_by, decision.pool);
    if side == decision.after {
        tracing::info!(%pool, placed_by = side.as_str(), reason = decision.reason, "the side that places the pool is decided");
    }
    engine.ask_if_running(pool, Order::PlacedBy(Some(placement))).await?;
    Ok(side)
}

/// Lets the writer of a pool change sides before the change is stored: a pool with open tasks stays Headroom's.
///
/// # Errors
/// Tasks of the pool wait or run, or the database does not answer.
pub async fn switch(engine: &Engine, pool: &PoolId, placement: Option<PoolPlacement>) -> Result<(), EngineError> {
    match engine.ask(pool, Order::PlacedBy(placement)).await {
        // No writer, no open task. Under a virtual clock there is none.
        Ok(()) | Err(EngineError::UnknownPool | EngineError::Virtual) => Ok(()),
        Err(fault) => Err(fault),
    }
}
