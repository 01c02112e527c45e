//! What is reported of a pool that Headroom places: the service knows it from the tasks, and takes no other account of it.

use super::ApiError;
use super::placing_fault::PlacingFault;
use crate::core::Core;
use std::collections::BTreeMap;
use vocab::{PlacedBy, PoolId, UnixSeconds};
use wire::FieldFault;

/// A part of a report: where it stands in the body, the pool it is of, and from when on it tells.
pub struct Told<'a> {
    pub place: String,
    pub pool: &'a PoolId,
    pub from: UnixSeconds,
}

impl<'a> Told<'a> {
    /// The parts of a report that is a list, in their order.
    #[must_use]
    pub fn list(place: &str, parts: impl Iterator<Item = (&'a PoolId, UnixSeconds)>) -> Vec<Self> {
        parts.enumerate().map(|(index, (pool, from))| Self { place: format!("{place}/{index}"), pool, from }).collect()
    }
}

/// Refuses a report that tells of a time since which Headroom places the pool. What was before may be told.
///
/// # Errors
/// [`PlacingFault::MeasuredHere`] with each such part; the database does not answer.
pub async fn check(core: &Core, told: &[Told<'_>], correct_at: &'static str) -> Result<(), ApiError> {
    let mut since: BTreeMap<&PoolId, Option<UnixSeconds>> = BTreeMap::new();
    for Told { pool, .. } in told {
        if !since.contains_key(pool) {
            let placement = core.store.placement(pool).await?.filter(|one| one.placed_by == PlacedBy::Headroom);
            // Where a migration decided, nobody knows since when: always, then.
            let measured_from = placement.map(|placement| placement.since.unwrap_or(UnixSeconds::new(i64::MIN)));
            since.insert(pool, measured_from);
        }
    }
    let is_known_here = |one: &&Told<'_>| since.get(one.pool).copied().flatten().is_some_and(|from| one.from >= from);
    let fault = |one: &Told<'_>| {
        FieldFault::new(&one.place, format!("{} is placed by Headroom, which measures it from its tasks", one.pool))
    };
    let faults: Vec<FieldFault> = told.iter().filter(is_known_here).map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(ApiError::Placing(PlacingFault::MeasuredHere { faults, correct_at })) }
}
