//! Reports of pools that Headroom places: the service measures these itself, and refuses the reports.

use super::ApiError;
use super::placing_fault::PlacingFault;
use crate::core::Core;
use std::collections::BTreeMap;
use vocab::{PlacedBy, PoolId, UnixSeconds};
use wire::FieldFault;

/// A part of a report: its place in the body, its pool, and its time.
pub struct Part<'a> {
    pub place: String,
    pub pool: &'a PoolId,
    pub from: UnixSeconds,
}

impl<'a> Part<'a> {
    /// The parts of a list, in their order.
    #[must_use]
    pub fn list(place: &str, parts: impl Iterator<Item = (&'a PoolId, UnixSeconds)>) -> Vec<Self> {
        parts.enumerate().map(|(index, (pool, from))| Self { place: format!("{place}/{index}"), pool, from }).collect()
    }
}

/// Refuses a report of a time since which Headroom places the pool. Earlier times may be reported.
///
/// # Errors
/// [`PlacingFault::MeasuredHere`] with each such part; the database does not answer.
pub async fn check(core: &Core, parts: &[Part<'_>], correct_at: &'static str) -> Result<(), ApiError> {
    let mut since: BTreeMap<&PoolId, Option<UnixSeconds>> = BTreeMap::new();
    for Part { pool, .. } in parts {
        if !since.contains_key(pool) {
            let placement = core.store.placement(pool).await?.filter(|one| one.placed_by == PlacedBy::Headroom);
            // A migration that decided stored no time: then every time counts as measured.
            let measured_from = placement.map(|placement| placement.since.unwrap_or(UnixSeconds::new(i64::MIN)));
            since.insert(pool, measured_from);
        }
    }
    let is_known_here = |one: &&Part<'_>| since.get(one.pool).copied().flatten().is_some_and(|from| one.from >= from);
    let fault = |one: &Part<'_>| {
        FieldFault::new(
            &one.place,
            format!("{} is placed by Headroom, which measures its demand and outcomes", one.pool),
        )
    };
    let faults: Vec<FieldFault> = parts.iter().filter(is_known_here).map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(ApiError::Placing(PlacingFault::MeasuredHere { faults, correct_at })) }
}
