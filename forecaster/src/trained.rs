//! A training from end to end: fit, score and calibrate on the validation part.

mod streamed;
#[cfg(test)]
mod tests;

pub use streamed::{IssuedSink, Streamed, recent_from, train_streamed};

use crate::baseline::Baseline;
use crate::bound::PoolCalibration;
use crate::calibration::{Calibrator, Issued, Online, Switch, played};
use crate::fit::{Fit, FitError, FitProgress, fit};
use crate::jobs::PastJobs;
use crate::model::{Model, ModelKind, ModelSpec};
use crate::peers::AutoEts;
use crate::predict::{Predict, PredictError, roll};
use crate::scores::{self, IssueLosses, Scores};
use datasets::window::Window;
use datasets::{HourRange, Panel};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId, SeriesId};

/// Why a training failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The fit failed.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A forecast failed.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// No hour of the window was measured.
    #[error("no hour of the validation part ({issues}) was measured: ingest hours without gaps")]
    NothingToScore {
        /// The issue times of the part.
        issues: HourRange,
    },
}

/// How a model fared on the validation part, beside the last value on the same hours.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// Scores of the model.
    pub scores: Scores,
    /// Scores of the last value on the same hours.
    pub last_value: Scores,
    /// By issue time and step.
    pub losses: Vec<IssueLosses>,
    /// Losses of the last value at each issue hour.
    pub last_value_losses: Vec<IssueLosses>,
    /// The forecasts that would have been issued, by issue time.
    pub issued: Vec<Issued>,
}

impl Validation {
    /// Pinball loss at 0.9 as a share of the last value's: comparable between weeks, as the loss itself is not.
    #[must_use]
    pub fn relative_pinball(&self) -> f64 {
        self.scores.pinball_gpus[0] / self.last_value.pinball_gpus[0].max(f64::MIN_POSITIVE)
    }
}

/// A model with everything that serving needs.
#[derive(Debug, Clone)]
pub struct Trained {
    /// Specification of the model.
    pub spec: ModelSpec,
    /// First and (exclusive) last hour of the data that it learned from or was chosen by.
    pub data: HourRange,
    /// The model.
    pub model: Model,
    /// Calibration of each pool.
    pub calibrations: Vec<PoolCalibration>,
    /// Has learned from the validation part.
    pub calibrator: Calibrator,
    /// The HP jobs of lists, by pool.
    pub jobs: BTreeMap<PoolId, PastJobs>,
}

impl Trained {
    /// Calibration of a pool.
    #[must_use]
    pub fn calibration(&self, pool: &PoolId) -> Option<&PoolCalibration> {
        self.calibrations.iter().find(|calibration| calibration.pool == *pool)
    }
}

impl Predict for Trained {
    fn lookback_hours(&self) -> usize {
        self.model.lookback_hours()
    }

    fn least_hours(&self) -> usize {
        self.model.least_hours()
    }

    fn horizon(&self) -> HorizonHours {
        self.model.horizon()
    }

    fn notices_leaving(&self) -> bool {
        self.model.notices_leaving()
    }

    fn has_returned(&self, series: &SeriesId) -> bool {
        self.model.has_returned(series)
    }

    fn knows(&self, series: &SeriesId) -> bool {
        self.model.knows(series)
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        self.model.predict(windows)
    }
}

/// Trains on the hours before `fit.split.until`. A baseline, which chooses nothing, measures its spread once more on all
/// of them after it was scored, and so does exponential smoothing; a blend learns once more from all of them, as long as
/// validation had decided. What validation scores is what would have gone out, corrected online where `switch` and
/// validation say so.
///
/// # Errors
/// The data hold nothing to learn from or to score, or training diverged.
pub fn train(
    what: &Fit<'_>,
    rate: GuaranteeRate,
    switch: Switch,
    progress: &mut dyn FnMut(FitProgress),
) -> Result<(Trained, Validation), TrainError> {
    let mut model = fit(what, progress)?;
    let (panel, issues, horizon) = (what.panel, what.split.validation, what.spec.horizon);
    let rolled = roll(&model, panel, issues)?;
    let (issued, online) = calibrate(what, &rolled, rate, switch);
    let calibrator = online.go_on(&model, panel, (issues.to, what.split.until))?;
    let forecasts: Vec<_> = issued.iter().map(|one| one.forecasts.clone()).collect();
    let (last_value, last_value_losses) = last_value(what)?;
    let losses = scores::losses(panel, issues, &forecasts, horizon);
    let scores = scored(panel, issues, &forecasts, horizon)?;
    let pools: BTreeSet<_> = panel.series().iter().map(|series| series.id().pool.clone()).collect();
    let calibrate = |pool| PoolCalibration::fit(pool, panel, issues, &issued, rate, horizon);
    let calibrations = pools.iter().map(calibrate).collect::<Result<_, _>>()?;
    let validation = Validation { scores, last_value, losses, last_value_losses, issued };
    model = match (model, what.spec.kind.rule()) {
        (Model::Blend(blend), _) => Model::Blend(Box::new(blend.refit(&what.into())?)),
        (Model::AutoEts(_), _) => Model::AutoEts(Box::new(AutoEts::fit(what, what.split.until)?)),
        (_, Some(rule)) => {
            let all = HourRange { from: what.split.train.from, to: what.split.validation.to };
            Model::Baseline(Baseline::fit(rule, what, all)?)
        }
        (model, None) => model,
    };
    let data = HourRange { from: panel.start(), to: what.split.until };
    let jobs = BTreeMap::new();
    Ok((Trained { spec: what.spec, data, model, calibrations, calibrator, jobs }, validation))
}

/// The largest corrected losses as a share of the raw ones. Over three weeks the correction costs at most half a
/// percent, and halves the MAQE; in its first week, which is all that decides here, it cost up to 3.5 % (validation of both
/// public traces). So this keeps out harmful corrections, and a week does not show more.
const MOST_OF_RAW: f64 = 1.05;
/// The calibrator knows a series after about a day: the first quarter of a week's validation part does not decide.
const LEARNING_SHARE: usize = 4;

/// Issues the validation part as it would have been, corrected or not: on all but its first quarter, in which the
/// calibrator learns, the pinball losses of the upper quantiles and the CRPS must not be much higher.
fn calibrate(
    what: &Fit<'_>,
    rolled: &[Vec<DemandForecast>],
    rate: GuaranteeRate,
    switch: Switch,
) -> (Vec<Issued>, Online) {
    let (panel, issues, horizon) = (what.panel, what.split.validation, what.spec.horizon);
    let play = |is_correcting| played(Calibrator::new(horizon, is_correcting), panel, issues, rolled, rate);
    if switch == Switch::Off || (switch == Switch::Auto && !what.spec.kind.is_calibrated()) {
        return play(false);
    }
    let corrected = play(true);
    let learning = rolled.len() / LEARNING_SHARE;
    let rest = HourRange { from: issues.from.plus_hours(learning as i64), to: issues.to };
    let forecasts: Vec<_> = corrected.0[learning..].iter().map(|one| one.forecasts.clone()).collect();
    let scored = |forecasts| scores::score(&scores::collect(panel, rest, forecasts, horizon).0);
    let is_harmless = is_harmless(scored(&rolled[learning..]).as_ref(), scored(&forecasts).as_ref());
    if is_harmless || switch == Switch::On { corrected } else { play(false) }
}

/// Whether corrected forecasts lose at most a little more than raw ones.
fn is_harmless(raw: Option<&Scores>, ours: Option<&Scores>) -> bool {
    let (Some(raw), Some(ours)) = (raw, ours) else { return false };
    let loss = |scores: &Scores| scores.pinball_gpus.iter().sum::<f64>();
    loss(ours) <= MOST_OF_RAW * loss(raw) && ours.crps_gpus <= MOST_OF_RAW * raw.crps_gpus
}

fn scored(
    panel: &Panel,
    issues: HourRange,
    rolled: &[Vec<DemandForecast>],
    horizon: HorizonHours,
) -> Result<Scores, TrainError> {
    let (rows, _) = scores::collect(panel, issues, rolled, horizon);
    scores::score(&rows).ok_or(TrainError::NothingToScore { issues })
}

fn last_value(what: &Fit<'_>) -> Result<(Scores, Vec<IssueLosses>), TrainError> {
    // It sees no more than the model needs, or on a short history it had nothing to measure its spread on.
    let spec = ModelSpec { kind: ModelKind::LastValue, lookback_hours: what.spec.least_hours(), ..what.spec };
    let model = fit(&Fit { spec, ..*what }, &mut |_| ())?;
    let rolled = roll(&model, what.panel, what.split.validation)?;
    let (panel, issues, horizon) = (what.panel, what.split.validation, what.spec.horizon);
    Ok((scored(panel, issues, &rolled, horizon)?, scores::losses(panel, issues, &rolled, horizon)))
}

/// The split of a panel's hours before `until`, for a model.
///
/// # Errors
/// The history is too short.
pub fn split(panel: &Panel, until: HourStart, spec: &ModelSpec) -> Result<datasets::TimeSplit, datasets::SplitError> {
    datasets::TimeSplit::new(panel.start(), until.min(panel.end()), spec.least_hours(), spec.horizon)
}
