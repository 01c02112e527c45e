//! The table of a backtest.

use super::coverage::{self, CoverageBody};
use super::experts::{self, MixtureBody, mixtures_table};
use super::play::Played;
use super::served::{self, ReplayBody};
use crate::error::TrainingError;
use crate::scores::{PoolScoresBody, ScoresBody, pools_table, scores_table};
use command_line::print_json;
use datasets::{HourRange, Panel};
use forecaster::bound::{Aggregation, AggregationScore};
use forecaster::scores::{PoolPair, Scored, collect, score, score_pool};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{CapacityRow, HorizonHours, HourStart, PoolId};

/// The results of several clusters and models.
#[derive(Default)]
pub struct Report {
    /// By model, in the order in which they were played; rows of all clusters.
    models: Vec<(String, Vec<Scored>, f64)>,
    pools: Vec<(String, PoolScoresBody)>,
    mixtures: Vec<MixtureBody>,
    coverage: Vec<CoverageBody>,
    /// Series seen so far: clusters number theirs from zero.
    offset: BTreeMap<String, usize>,
    unmeasured_rows: usize,
    unmeasured_peaks: usize,
    served: Vec<ReplayBody>,
}

#[derive(Serialize)]
struct ReportBody {
    models: Vec<ModelBody>,
    pools: Vec<PoolBody>,
    /// The mixtures of the pools' peaks beside their best experts.
    mixtures: Vec<MixtureBody>,
    /// By cluster: over organizations, steps, hours of the day and pools.
    coverage: Vec<CoverageBody>,
    /// Forecast hours that were not measured, or lie in recording gaps, and are not scored.
    unmeasured_rows: usize,
    unmeasured_peaks: usize,
    /// The answers of a service, where they were played.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    served: Vec<ReplayBody>,
}

#[derive(Serialize)]
struct ModelBody {
    model: String,
    train_s: f64,
    scores: ScoresBody,
}

#[derive(Serialize)]
struct PoolBody {
    model: String,
    #[serde(flatten)]
    scores: PoolScoresBody,
}

impl Report {
    pub fn add(
        &mut self,
        panel: &Panel,
        issues: HourRange,
        played: &Played,
        horizon: HorizonHours,
        capacities: &[CapacityRow],
    ) {
        let name = played.name.clone();
        let (mut rows, unmeasured) = collect(panel, issues, &played.rolled, horizon);
        let offset = self.offset.entry(name.clone()).or_default();
        for row in &mut rows {
            row.series += *offset;
        }
        *offset += panel.series().len();
        self.unmeasured_rows += unmeasured;
        self.unmeasured_peaks += played.unmeasured_peaks;
        match self.models.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, all, train_s)) => {
                all.append(&mut rows);
                *train_s += played.train_s;
            }
            None => self.models.push((name.clone(), rows, played.train_s)),
        }
        self.add_pools(&name, played, capacities);
        let most = |pool: &PoolId, issue| most_gpus(capacities, pool, issue);
        self.mixtures.extend(experts::of(played, horizon, most));
        self.coverage.extend(coverage::of(panel, issues, played, horizon));
    }

    pub fn add_served(&mut self, replay: ReplayBody) {
        self.served.push(replay);
    }

    fn add_pools(&mut self, name: &str, played: &Played, capacities: &[CapacityRow]) {
        let pools: BTreeSet<&PoolId> = played.bounds.iter().map(|one| &one.pool).collect();
        for (pool, aggregation) in pools.into_iter().flat_map(|pool| Aggregation::ALL.map(|one| (pool, one))) {
            let mine = played.bounds.iter().filter(|one| one.pool == *pool && one.aggregation == aggregation);
            let pairs: Vec<_> = mine
                .map(|one| {
                    // No one is promised, and nothing runs, above the capacity.
                    let most = most_gpus(capacities, pool, one.issue);
                    let (bound_gpus, peak_gpus) = (one.bound_gpus.min(most), one.peak_gpus.min(most));
                    PoolPair { issue: one.issue, bound_gpus, peak_gpus }
                })
                .collect();
            if let Some(scores) = score_pool(&pairs, played.rate) {
                let scored = AggregationScore { aggregation, scores };
                self.pools.push((name.to_owned(), PoolScoresBody::of(pool, &scored)));
            }
        }
    }

    /// # Errors
    /// Nothing could be scored.
    pub fn check(&self) -> Result<(), TrainingError> {
        let scored = self.models.iter().any(|(_, rows, _)| !rows.is_empty());
        if scored { Ok(()) } else { Err(TrainingError::NothingScored) }
    }

    /// Models with their scores and seconds of training.
    pub fn scored(&self) -> Vec<(String, ScoresBody, Option<f64>)> {
        let scored = |(name, rows, train_s): &(String, Vec<Scored>, f64)| {
            Some((name.clone(), ScoresBody::from(&score(rows)?), Some(*train_s)))
        };
        self.models.iter().filter_map(scored).collect()
    }

    /// Models with the scores of each pool and aggregation.
    pub fn pools(&self) -> &[(String, PoolScoresBody)] {
        &self.pools
    }

    /// Prints what the tables show, and more, as JSON.
    pub fn print_json(&self) {
        let model = |(model, scores, train_s): (String, ScoresBody, Option<f64>)| ModelBody {
            model,
            train_s: train_s.unwrap_or_default(),
            scores,
        };
        let pool =
            |(model, scores): &(String, PoolScoresBody)| PoolBody { model: model.clone(), scores: scores.clone() };
        print_json(&ReportBody {
            models: self.scored().into_iter().map(model).collect(),
            pools: self.pools.iter().map(pool).collect(),
            mixtures: self.mixtures.clone(),
            coverage: self.coverage.clone(),
            unmeasured_rows: self.unmeasured_rows,
            unmeasured_peaks: self.unmeasured_peaks,
            served: self.served.clone(),
        });
    }

    /// Models, where their coverage is least and most, pools, what would have been served.
    pub fn tables(&self) -> String {
        let tables = scores_table(&self.scored())
            + &coverage::table_of_extremes(&self.coverage)
            + &pools_table(&self.pools)
            + &mixtures_table(&self.mixtures)
            + &served::tables(&self.served);
        if self.unmeasured_rows + self.unmeasured_peaks == 0 {
            return tables;
        }
        format!(
            "{tables}not scored, since not measured: {} forecast hours, {} peaks of pools\n",
            self.unmeasured_rows, self.unmeasured_peaks
        )
    }
}

/// The capacity that held when a forecast was issued, in GPUs; infinite where it is not known.
fn most_gpus(capacities: &[CapacityRow], pool: &PoolId, issue: HourStart) -> f64 {
    let known = capacities.iter().filter(|row| row.pool == *pool && row.from <= issue);
    known.max_by_key(|row| row.from).map_or(f64::INFINITY, |row| row.capacity.as_gpus())
}
