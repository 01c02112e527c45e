//! A training on more series than fit in memory.
//!
//! Rows are read part by part ([`History`]); the validation part is forecast hour by hour on the last weeks of all series, which
//! a service holds in memory, too. Forecasts of an hour are dropped once they were scored, so they are made again for what
//! needs the result of an earlier pass: correlations before bounds, bounds before what would have been served.

use super::{LEARNING_SHARE, TrainError, Trained, Validation, is_harmless};
use crate::baseline::Baseline;
use crate::blend::Blend;
use crate::bound::{Aggregation, PoolCalibration, PoolResiduals, members};
use crate::calibration::{Calibrator, Issued, Online, Switch};
use crate::fit::{Fit, FitError};
use crate::model::{Model, ModelKind, ModelSpec};
use crate::predict::{Predict, forecast};
use crate::rows::{HistoryFault, Source};
use crate::scores::{self, IssueLosses, ScoreSums, Scores};
use datasets::{HourRange, Panel};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{DemandForecast, GuaranteeRate, HourStart, PoolId};

/// A training that reads its history in parts.
#[derive(Clone, Copy)]
pub struct Streamed<'a> {
    /// The whole history, and how it is learned from.
    pub source: Source<'a>,
    /// All series from [`recent_from`] on.
    pub recent: &'a Panel,
    /// First hour of the history.
    pub start: HourStart,
}

/// Receives what would have been issued over the validation part, with the calibration of the pools.
pub type IssuedSink<'a> = &'a mut dyn FnMut(&[PoolCalibration], HourStart, &Issued) -> Result<(), TrainError>;

/// Rules for new organizations and those that have left look back a week or more, even where the model sees less.
const LEAST_RECENT_HOURS: usize = 4 * vocab::HOURS_PER_WEEK as usize;

/// The first hour that validation reads, of a history that begins at `start`.
#[must_use]
pub fn recent_from(start: HourStart, validation: HourRange, spec: &ModelSpec) -> HourStart {
    let hours = spec.lookback_hours.max(LEAST_RECENT_HOURS);
    validation.from.plus_hours(-(hours as i64)).max(start)
}

/// As [`train`](super::train) for a blend: the same series, hours and seed give the same model, however the history is cut into
/// parts. `issued` of the validation goes to `sink`, hour by hour, and is not kept.
///
/// # Errors
/// The model is no blend, the data hold nothing to learn from or to score, or the history cannot be read.
pub fn train_streamed(
    what: &Streamed<'_>,
    rate: GuaranteeRate,
    switch: Switch,
    sink: IssuedSink<'_>,
) -> Result<(Trained, Validation), TrainError> {
    let spec = what.source.spec;
    let recipe = spec.kind.recipe().ok_or(FitError::NeedsWholePanel { model: spec.kind })?;
    let blend = Blend::fit(recipe, &what.source)?;
    let pass = Pass { what, model: &blend, rate };
    let first = pass.scored(switch)?;
    let calibrations = pass.bounded(first.residuals, first.is_correcting)?;
    pass.play(&mut [Online::new(pass.calibrator(first.is_correcting))], &mut |issue, _, issued| {
        sink(&calibrations, issue, &issued[0])
    })?;
    let (last_value, last_value_losses) = last_value(what)?;
    let validation =
        Validation { scores: first.scores, last_value, losses: first.losses, last_value_losses, issued: Vec::new() };
    let model = Model::Blend(Box::new(blend.refit(&what.source)?));
    let data = HourRange { from: what.start, to: what.source.split.until };
    let (calibrator, jobs) = (first.calibrator, BTreeMap::new());
    Ok((Trained { spec, data, model, calibrations, calibrator, jobs }, validation))
}

/// The validation part, hour by hour.
struct Pass<'a> {
    what: &'a Streamed<'a>,
    model: &'a dyn Predict,
    rate: GuaranteeRate,
}

/// Result of the first pass, of corrected or of raw forecasts.
struct Scored {
    is_correcting: bool,
    scores: Scores,
    losses: Vec<IssueLosses>,
    residuals: Vec<PoolResiduals>,
    calibrator: Calibrator,
}

/// Sums of the first pass while both are tried.
struct Gathered {
    sums: ScoreSums,
    /// Of the hours after the first ones, in which a calibrator learns.
    rest: ScoreSums,
    losses: Vec<IssueLosses>,
    residuals: Vec<PoolResiduals>,
}

type Visit<'a> = &'a mut dyn FnMut(HourStart, &[DemandForecast], &[Issued]) -> Result<(), TrainError>;

impl Pass<'_> {
    fn issues(&self) -> HourRange {
        self.what.source.split.validation
    }

    fn calibrator(&self, is_correcting: bool) -> Calibrator {
        Calibrator::new(self.what.source.spec.horizon, is_correcting)
    }

    fn pools(&self) -> BTreeSet<&PoolId> {
        self.what.recent.series().iter().map(|series| &series.id().pool).collect()
    }

    /// Forecasts each hour and passes it on as each of the calibrators issues it.
    fn play(&self, onlines: &mut [Online], visit: Visit<'_>) -> Result<(), TrainError> {
        for issue in self.issues().iter() {
            let raw = forecast(self.model, self.what.recent, issue)?;
            let issue_one = |online: &mut Online| online.issue(self.what.recent, issue, raw.clone(), self.rate);
            let issued: Vec<Issued> = onlines.iter_mut().map(issue_one).collect();
            visit(issue, &raw, &issued)?;
        }
        Ok(())
    }

    fn gathered(&self) -> Gathered {
        let (recent, horizon) = (self.what.recent, self.what.source.spec.horizon);
        let residuals = self.pools().into_iter().map(|pool| PoolResiduals::new(pool, recent, self.issues(), horizon));
        Gathered {
            sums: ScoreSums::default(),
            rest: ScoreSums::default(),
            losses: Vec::new(),
            residuals: residuals.collect(),
        }
    }

    /// The first pass: scores, and whether forecasts are corrected.
    fn scored(&self, switch: Switch) -> Result<Scored, TrainError> {
        let (issues, spec) = (self.issues(), self.what.source.spec);
        let tries: &[bool] = match switch {
            Switch::On => &[true],
            Switch::Auto if spec.kind.is_calibrated() => &[true, false],
            Switch::Auto | Switch::Off => &[false],
        };
        let mut onlines: Vec<Online> = tries.iter().map(|one| Online::new(self.calibrator(*one))).collect();
        let mut all: Vec<Gathered> = tries.iter().map(|_| self.gathered()).collect();
        let (mut raw_rest, learning) = (ScoreSums::default(), issues.hours() / LEARNING_SHARE);
        let from = issues.from.plus_hours(learning as i64);
        self.play(&mut onlines, &mut |issue, raw, issued| {
            if issue >= from && tries.len() > 1 {
                self.add(issue, raw, &mut raw_rest);
            }
            for (gathered, issued) in all.iter_mut().zip(issued) {
                self.gather(issue, issued, issue >= from, gathered);
            }
            Ok(())
        })?;
        let harmless = || is_harmless(raw_rest.finish().as_ref(), all[0].rest.finish().as_ref());
        let chosen = usize::from(tries.len() > 1 && !harmless());
        let until = self.what.source.split.until;
        let Gathered { sums, losses, residuals, .. } = all.swap_remove(chosen);
        Ok(Scored {
            is_correcting: tries[chosen],
            scores: sums.finish().ok_or(TrainError::NothingToScore { issues })?,
            losses,
            residuals,
            calibrator: onlines.swap_remove(chosen).go_on(self.model, self.what.recent, (issues.to, until))?,
        })
    }

    fn add(&self, issue: HourStart, forecasts: &[DemandForecast], to: &mut ScoreSums) {
        let (recent, horizon) = (self.what.recent, self.what.source.spec.horizon);
        let forecasts = forecasts.to_vec();
        let rows = scores::collect(recent, one_hour(issue), std::slice::from_ref(&forecasts), horizon).0;
        for row in &rows {
            to.add(row);
        }
    }

    fn gather(&self, issue: HourStart, issued: &Issued, is_rest: bool, to: &mut Gathered) {
        let (recent, horizon) = (self.what.recent, self.what.source.spec.horizon);
        let forecasts = std::slice::from_ref(&issued.forecasts);
        for row in scores::collect(recent, one_hour(issue), forecasts, horizon).0 {
            to.sums.add(&row);
            if is_rest {
                to.rest.add(&row);
            }
        }
        to.losses.extend(scores::losses(recent, one_hour(issue), forecasts, horizon));
        to.residuals.iter_mut().for_each(|residuals| residuals.add(recent, issue, issued));
    }

    /// The second pass: bounds of each aggregation.
    fn bounded(&self, residuals: Vec<PoolResiduals>, is_correcting: bool) -> Result<Vec<PoolCalibration>, TrainError> {
        let (recent, horizon) = (self.what.recent, self.what.source.spec.horizon);
        let mut pools: Vec<_> = residuals
            .into_iter()
            .map(|residuals| {
                let calibration = residuals.correlated();
                let members = members(recent, &calibration.pool, self.issues(), horizon);
                (calibration, members, vec![Vec::new(); Aggregation::ALL.len()])
            })
            .collect();
        self.play(&mut [Online::new(self.calibrator(is_correcting))], &mut |issue, _, issued| {
            for (calibration, members, pairs) in &mut pools {
                calibration.pair(members, recent, issue, &issued[0], self.rate, horizon, pairs)?;
            }
            Ok(())
        })?;
        let chosen = |(mut calibration, _, pairs): (PoolCalibration, Vec<usize>, Vec<_>)| {
            calibration.choose(&pairs, self.rate);
            calibration
        };
        Ok(pools.into_iter().map(chosen).collect())
    }
}

fn one_hour(issue: HourStart) -> HourRange {
    HourRange { from: issue, to: issue.plus_hours(1) }
}

/// The last value, whose spread is measured part by part.
fn last_value(what: &Streamed<'_>) -> Result<(Scores, Vec<IssueLosses>), TrainError> {
    let source = &what.source;
    let spec = ModelSpec { kind: ModelKind::LastValue, lookback_hours: source.spec.least_hours(), ..source.spec };
    let rule = spec.kind.rule().expect("the last value is a rule");
    let mut spreads = std::collections::BTreeMap::new();
    source
        .history
        .each(&mut |panel| {
            let fit = Fit { panel, split: source.split, spec, settings: source.settings };
            // A part of which nothing was measured adds nothing.
            if let Ok(part) = Baseline::fit(rule, &fit, source.split.train) {
                spreads.extend(part.spreads().clone());
            }
        })
        .map_err(FitError::from)?;
    let model = Baseline::from_parts(rule, spec.horizon, spec.lookback_hours, spreads);
    let (mut sums, mut losses) = (ScoreSums::default(), Vec::new());
    let issues = source.split.validation;
    for issue in issues.iter() {
        let forecasts = forecast(&model, what.recent, issue)?;
        let forecasts = std::slice::from_ref(&forecasts);
        let rows = scores::collect(what.recent, one_hour(issue), forecasts, spec.horizon).0;
        for row in &rows {
            sums.add(row);
        }
        losses.extend(scores::losses(what.recent, one_hour(issue), forecasts, spec.horizon));
    }
    Ok((sums.finish().ok_or(TrainError::NothingToScore { issues })?, losses))
}

impl From<HistoryFault> for TrainError {
    fn from(fault: HistoryFault) -> Self {
        Self::Fit(FitError::History(fault))
    }
}
