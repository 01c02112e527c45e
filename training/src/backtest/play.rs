//! One model over one window.

use crate::args::Backtest;
use crate::error::TrainingError;
use crate::{history, run};
use datasets::{HourRange, Panel};
use forecaster::bound::{Aggregation, bounds};
use forecaster::scores::actual_peak_gpus;
use forecaster::{ModelKind, ModelSpec, Trained, roll, trained};
use std::collections::BTreeSet;
use std::time::Instant;
use store::Cluster;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// What is played.
pub enum Candidate {
    /// Trained on the hours before the window, and again where `--refit` says so.
    Fresh { kind: ModelKind, seed: u64 },
    /// The model of a run, as it is, and what it is called.
    Kept { trained: Box<Trained>, name: String },
}

/// A bound and the peak that came.
pub struct PlayedBound {
    pub pool: PoolId,
    pub aggregation: Aggregation,
    pub issue: HourStart,
    pub bound_gpus: f64,
    pub peak_gpus: f64,
}

/// What a model did over the window.
pub struct Played {
    /// What the model is called in files and tables.
    pub name: String,
    pub rate: GuaranteeRate,
    /// `[issue time][series]`.
    pub rolled: Vec<Vec<DemandForecast>>,
    pub bounds: Vec<PlayedBound>,
    /// Pool × issue time whose peak was not measured.
    pub unmeasured_peaks: usize,
    pub train_s: f64,
}

/// Forecasts at every issue time of the window.
///
/// # Errors
/// The hours before the window are too few to train on.
pub fn play(
    panel: &Panel,
    cluster: &Cluster,
    issues: HourRange,
    what: &Backtest,
    candidate: &Candidate,
    rate: GuaranteeRate,
) -> Result<Played, TrainingError> {
    let name = match candidate {
        Candidate::Fresh { kind, .. } => kind.to_string(),
        Candidate::Kept { name, .. } => name.clone(),
    };
    let mut played = Played { name, rate, rolled: Vec::new(), bounds: Vec::new(), unmeasured_peaks: 0, train_s: 0.0 };
    for part in parts(issues, what.refit) {
        match candidate {
            Candidate::Kept { trained, .. } => played.add(panel, part, trained, what.horizon)?,
            Candidate::Fresh { kind, seed } => {
                let started = Instant::now();
                let trained = fit(panel, cluster, part.from, what, *kind, *seed, rate)?;
                played.train_s += started.elapsed().as_secs_f64();
                played.add(panel, part, &trained, what.horizon)?;
            }
        }
    }
    Ok(played)
}

/// The window in parts of `refit` hours, or whole.
fn parts(issues: HourRange, refit: Option<HorizonHours>) -> Vec<HourRange> {
    let Some(refit) = refit else { return vec![issues] };
    let starts = (0..issues.hours()).step_by(refit.steps());
    let part = |start: usize| {
        let from = issues.from.plus_hours(start as i64);
        HourRange { from, to: from.plus_hours(refit.steps() as i64).min(issues.to) }
    };
    starts.map(part).collect()
}

fn fit(
    panel: &Panel,
    cluster: &Cluster,
    until: HourStart,
    what: &Backtest,
    kind: ModelKind,
    seed: u64,
    rate: GuaranteeRate,
) -> Result<Trained, TrainingError> {
    let history_hours = panel.index_of(until).unwrap_or(0);
    let lookback_hours = history::lookback_hours(what.lookback, history_hours);
    let spec = ModelSpec { kind, horizon: what.horizon, lookback_hours, seed };
    let split = trained::split(panel, until, &spec)
        .map_err(|fault| TrainingError::Split { cluster: cluster.name.clone(), fault })?;
    Ok(run::learn(panel, cluster, spec, split, rate)?.0)
}

impl Played {
    fn add(
        &mut self,
        panel: &Panel,
        part: HourRange,
        trained: &Trained,
        horizon: HorizonHours,
    ) -> Result<(), TrainingError> {
        let rolled = roll(trained, panel, part)?;
        let pools: BTreeSet<&PoolId> = panel.series().iter().map(|series| &series.id().pool).collect();
        for pool in pools {
            for (issue, forecasts) in part.iter().zip(&rolled) {
                let members: Vec<_> = forecasts.iter().filter(|one| one.series().pool == *pool).collect();
                let Some(peak_gpus) = actual_peak_gpus(panel, pool, issue, horizon) else {
                    self.unmeasured_peaks += 1;
                    continue;
                };
                for aggregation in Aggregation::ALL {
                    let calibration = trained.calibration(pool);
                    let bound = bounds(&members, aggregation, calibration, self.rate, &[horizon])
                        .map_err(forecaster::PredictError::from)?;
                    let bound_gpus = bound[0].bound.as_gpus();
                    self.bounds.push(PlayedBound { pool: pool.clone(), aggregation, issue, bound_gpus, peak_gpus });
                }
            }
        }
        self.rolled.extend(rolled);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refitting_cuts_the_window_into_parts_that_cover_it() {
        let from = HourStart::from_unix_s(0).unwrap();
        let issues = HourRange { from, to: from.plus_hours(50) };
        let cut = parts(issues, Some(HorizonHours::new(24).unwrap()));
        assert_eq!(cut.iter().map(|part| part.hours()).collect::<Vec<_>>(), [24, 24, 2]);
        assert_eq!((cut[0].from, cut[2].to), (issues.from, issues.to));
        assert_eq!(parts(issues, None), [issues]);
    }
}
