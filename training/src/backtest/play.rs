//! One model over one window.

use super::experts::PlayedExperts;
use super::served::{AtIssue, ForecastBounds};
use crate::args::Backtest;
use crate::error::TrainingError;
use crate::run::Lesson;
use crate::{history, run};
use datasets::{HourRange, Panel};
use forecaster::blend::Settings;
use forecaster::bound::{Aggregation, bounds};
use forecaster::calibration::{Calibrator, Issued, Online, Switch};
use forecaster::scores::actual_peak_gpus;
use forecaster::{ModelKind, ModelSpec, Trained, forecast, trained};
use std::collections::BTreeSet;
use std::time::Instant;
use store::Cluster;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// A model that is still to be trained.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name in files and tables.
    pub name: String,
    pub kind: ModelKind,
    pub settings: Settings,
    pub calibration: Switch,
    pub seed: u64,
}

/// The played models.
pub enum Candidate {
    /// Trained on the hours before the window, and again where `--refit` says so.
    Fresh(Variant),
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

/// The forecasts of a model over the window.
pub struct Played {
    /// The name of the model in files and tables.
    pub name: String,
    pub rate: GuaranteeRate,
    /// `[issue time][series]`.
    pub rolled: Vec<Vec<DemandForecast>>,
    pub bounds: Vec<PlayedBound>,
    /// The experts behind the bounds of the mixture.
    pub experts: Vec<PlayedExperts>,
    /// Pool × issue time whose peak was not measured.
    pub unmeasured_peaks: usize,
    pub train_s: f64,
    /// As a service would bound its promises; only where what is served is played.
    pub forecast_bounds: Option<ForecastBounds>,
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
        Candidate::Fresh(variant) => variant.name.clone(),
        Candidate::Kept { name, .. } => name.clone(),
    };
    let settings = what.replay.served.then(|| what.replay.settings(rate, what.horizon)).transpose()?;
    let forecast_bounds = settings.map(|settings| ForecastBounds::new(rate, settings.offered_hours));
    let mut played = Played {
        name,
        rate,
        rolled: Vec::new(),
        bounds: Vec::new(),
        experts: Vec::new(),
        unmeasured_peaks: 0,
        train_s: 0.0,
        forecast_bounds,
    };
    for part in parts(issues, what.refit) {
        match candidate {
            Candidate::Kept { trained, .. } => played.add(panel, part, trained, what.calibration, what.horizon)?,
            Candidate::Fresh(variant) => {
                let started = Instant::now();
                let trained = fit(panel, cluster, part.from, what, variant, rate)?;
                played.train_s += started.elapsed().as_secs_f64();
                played.add(panel, part, &trained, variant.calibration, what.horizon)?;
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
    variant: &Variant,
    rate: GuaranteeRate,
) -> Result<Trained, TrainingError> {
    let history_hours = panel.index_of(until).unwrap_or(0);
    let lookback_hours = history::lookback_hours(what.lookback, history_hours);
    let spec = ModelSpec { kind: variant.kind, horizon: what.horizon, lookback_hours, seed: variant.seed };
    let split = trained::split(panel, until, &spec)
        .map_err(|fault| TrainingError::Split { cluster: cluster.name.clone(), fault })?;
    let lesson = Lesson { spec, settings: variant.settings, calibration: variant.calibration, split, rate };
    Ok(run::learn(panel, cluster, &lesson)?.0)
}

impl Played {
    /// Issues, hour by hour, what would have gone out: each forecast corrected by those whose hours were over.
    fn add(
        &mut self,
        panel: &Panel,
        part: HourRange,
        trained: &Trained,
        switch: Switch,
        horizon: HorizonHours,
    ) -> Result<(), TrainingError> {
        let mut online = Online::new(switched(trained.calibrator.clone(), switch));
        for issue in unseen(trained, part.from, horizon) {
            let _ = online.issue(panel, issue, forecast(trained, panel, issue)?, self.rate);
        }
        let mut issued = Vec::with_capacity(part.hours());
        for issue in part.iter() {
            issued.push(online.issue(panel, issue, forecast(trained, panel, issue)?, self.rate));
        }
        self.add_bounds(panel, part, trained, &issued, horizon)?;
        if let Some(bounds) = &mut self.forecast_bounds {
            for (issue, issued) in part.iter().zip(&issued) {
                let at = AtIssue { panel, issue, issued, calibrations: &trained.calibrations, horizon };
                bounds.add(&at).map_err(forecaster::PredictError::from)?;
            }
        }
        self.rolled.extend(issued.into_iter().map(|one| one.forecasts));
        Ok(())
    }

    fn add_bounds(
        &mut self,
        panel: &Panel,
        part: HourRange,
        trained: &Trained,
        issued: &[Issued],
        horizon: HorizonHours,
    ) -> Result<(), TrainingError> {
        let pools: BTreeSet<&PoolId> = panel.series().iter().map(|series| &series.id().pool).collect();
        for pool in pools {
            for (issue, issued) in part.iter().zip(issued) {
                let members: Vec<_> = issued.forecasts.iter().filter(|one| one.series().pool == *pool).collect();
                let Some(peak_gpus) = actual_peak_gpus(panel, pool, issue, horizon) else {
                    self.unmeasured_peaks += 1;
                    continue;
                };
                let (calibration, conformal) = (trained.calibration(pool), issued.conformal.get(pool));
                for aggregation in Aggregation::ALL {
                    let bound = bounds(&members, aggregation, calibration, conformal, self.rate, &[horizon])
                        .map_err(forecaster::PredictError::from)?;
                    let bound_gpus = bound[0].bound.as_gpus();
                    self.bounds.push(PlayedBound { pool: pool.clone(), aggregation, issue, bound_gpus, peak_gpus });
                    let stated = conformal.and_then(|one| one.hours.last()).map(|one| one.experts);
                    if let Some(stated) = stated.filter(|_| aggregation == Aggregation::Mixture) {
                        let (pool, mixture_gpus) = (pool.clone(), bound_gpus);
                        self.experts.push(PlayedExperts { pool, issue, stated, mixture_gpus, peak_gpus });
                    }
                }
            }
        }
        Ok(())
    }
}

fn switched(calibrator: Calibrator, switch: Switch) -> Calibrator {
    match switch {
        Switch::On if !calibrator.is_correcting() => calibrator.correcting(true),
        Switch::Off => calibrator.correcting(false),
        _ => calibrator,
    }
}

/// Issue times between a model's data and the window, as far back as a calibrator remembers: a service would have learned
/// from them.
fn unseen(trained: &Trained, from: HourStart, horizon: HorizonHours) -> impl Iterator<Item = HourStart> {
    let remembered = from.plus_hours(-(Calibrator::WINDOW_HOURS as i64) - i64::from(horizon.get()));
    HourRange { from: trained.data.to.max(remembered), to: from }.iter()
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
