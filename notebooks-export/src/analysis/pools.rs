//! The bounds of the pools against the peaks that came.

use super::Material;
use crate::pool_bounds::{BoundRow, PoolBounds};
use forecaster::scores::{PoolPair, PoolScores, score_pool};
use std::collections::BTreeSet;
use vocab::{HorizonHours, PoolId};

/// One pool and promise.
pub struct PoolView {
    pub pool: PoolId,
    pub hours: HorizonHours,
    pub capacity_gpus: Option<f64>,
    /// Every model and aggregation, in the order of the file.
    pub lines: Vec<BoundLine>,
}

/// The bounds of one model and aggregation.
pub struct BoundLine {
    pub model: String,
    pub aggregation: String,
    /// By issue time.
    pub pairs: Vec<PoolPair>,
    pub scores: PoolScores,
}

impl BoundLine {
    /// Share of issue times whose peak was above the bound.
    pub fn under(&self) -> f64 {
        1.0 - self.scores.coverage
    }
}

impl PoolView {
    /// The lines of one model.
    pub fn of<'a>(&'a self, model: &'a str) -> impl Iterator<Item = &'a BoundLine> {
        self.lines.iter().filter(move |line| line.model == model)
    }
}

/// All pools, by name, then hours.
pub fn pools(material: &Material<'_>) -> Vec<PoolView> {
    let Some(bounds) = material.bounds else { return Vec::new() };
    let found: BTreeSet<(&PoolId, HorizonHours)> = bounds.rows.iter().map(|row| (&row.pool, row.hours)).collect();
    let view = |(pool, hours): (&PoolId, HorizonHours)| {
        let rows: Vec<&BoundRow> = bounds.rows.iter().filter(|row| row.pool == *pool && row.hours == hours).collect();
        let lines = bounds.candidates.iter().filter_map(|candidate| line(bounds, candidate, &rows)).collect();
        let capacity_gpus = material.capacities.get(pool).copied();
        PoolView { pool: pool.clone(), hours, capacity_gpus, lines }
    };
    found.into_iter().map(view).collect()
}

fn line(bounds: &PoolBounds, candidate: &(String, String), rows: &[&BoundRow]) -> Option<BoundLine> {
    let mine = rows.iter().filter(|row| row.candidate == *candidate);
    let mut pairs: Vec<PoolPair> = mine.map(|row| row.pair).collect();
    pairs.sort_by_key(|pair| pair.issue);
    let scores = score_pool(&pairs, bounds.rate)?;
    let (model, aggregation) = candidate.clone();
    Some(BoundLine { model, aggregation, pairs, scores })
}
