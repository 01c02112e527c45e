//! The forecasts of a cluster: made once for each hour of usage, and used by every renewal until the next.

use super::cluster::{ClusterInputs, Run};
use cycle::more_steps;
use datasets::{Panel, Series};
use forecaster::calibration::{Calibrator, Recent, recent};
use forecaster::{Predict, PredictError, forecast};
use placement::staleness;
use std::ops::Range;
use std::sync::{Arc, Weak};
use store::RunId;
use vocab::{DemandForecast, HourStart, PoolId, UnixSeconds};

/// The forecasts of a cluster, in the order of its panel.
#[derive(Clone)]
pub struct Predictions {
    pub issue: HourStart,
    /// As the model gave them.
    pub raw: Arc<Vec<DemandForecast>>,
    /// As they are issued.
    pub issued: Arc<Vec<DemandForecast>>,
}

/// The forecasts of a plan, for the next one: with the same usage, run and calibrator they are the same.
#[derive(Clone)]
pub struct Remembered {
    run: RunId,
    /// Does not keep the panel.
    panel: Weak<Panel>,
    calibrator: Option<Arc<Calibrator>>,
    predictions: Predictions,
}

impl Remembered {
    /// The forecasts of a plan with these inputs.
    pub(super) fn of(inputs: &ClusterInputs, predictions: &Predictions) -> Self {
        Self {
            run: inputs.run.id,
            panel: Arc::downgrade(&inputs.panel),
            calibrator: inputs.calibrator.clone(),
            predictions: predictions.clone(),
        }
    }

    /// The raw forecasts at an issue hour, where inputs have the same usage and run.
    fn raw(&self, inputs: &ClusterInputs, issue: HourStart) -> Option<Arc<Vec<DemandForecast>>> {
        let is_same = self.run == inputs.run.id
            && self.predictions.issue == issue
            && std::ptr::eq(self.panel.as_ptr(), Arc::as_ptr(&inputs.panel));
        is_same.then(|| self.predictions.raw.clone())
    }

    fn has_calibrator_of(&self, inputs: &ClusterInputs) -> bool {
        match (&self.calibrator, &inputs.calibrator) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// The forecasts of a cluster, or why there are none.
pub(super) enum Forecasts {
    Ready { predictions: Predictions, hours_late: u8 },
    NoUsage,
    OldUsage { newest_end: UnixSeconds },
    Rejected(Arc<PredictError>),
}

impl Forecasts {
    /// From the hour after the newest measured one, if that is recent enough.
    pub fn of(inputs: &ClusterInputs) -> Self {
        let Some(newest) = inputs.panel.newest_measured() else { return Self::NoUsage };
        let issue = newest.plus_hours(1);
        if staleness::usage_is_missing(issue.instant(), inputs.now) {
            return Self::OldUsage { newest_end: issue.instant() };
        }
        let (hours_late, _) = more_steps(issue, inputs.now);
        let remembered = inputs.remembered.as_ref().and_then(|known| Some((known, known.raw(inputs, issue)?)));
        if let Some((known, _)) = remembered.as_ref().filter(|(known, _)| known.has_calibrator_of(inputs)) {
            return Self::Ready { predictions: known.predictions.clone(), hours_late };
        }
        let raw = remembered.map_or_else(
            || forecast(inputs.run.trained.as_ref(), &inputs.panel, issue).map(Arc::new),
            |(_, raw)| Ok(raw),
        );
        match raw {
            Ok(raw) => {
                let issued = Arc::new(inputs.calibrator().apply(&inputs.panel, &raw));
                Self::Ready { predictions: Predictions { issue, raw, issued }, hours_late }
            }
            Err(fault) => Self::Rejected(Arc::new(fault)),
        }
    }
}

impl ClusterInputs {
    fn calibrator(&self) -> &Calibrator {
        self.calibrator.as_deref().unwrap_or(&self.run.trained.calibrator)
    }
}

impl Predictions {
    /// Forecasts come in the order of the panel.
    pub(super) fn of_pool(&self, inputs: &ClusterInputs, pool: &PoolId) -> Corrected {
        let before = inputs.panel.index_of(self.issue).and_then(|issue| issue.checked_sub(1));
        let fallen_gpus = |one: &Series| before.map_or(0.0, |hour| one.fallen_gpus(hour));
        Corrected {
            all: self.clone(),
            places: inputs.panel.places_of(pool),
            fallen_gpus: inputs.panel.series_of(pool).iter().map(fallen_gpus).collect(),
            recent: recent(&inputs.panel, pool, self.issue, inputs.run.trained.horizon()),
            calibrator: inputs.calibrator.clone(),
            run: inputs.run.clone(),
        }
    }
}

/// The forecasts of a pool, and what corrected them.
#[derive(Clone)]
pub struct Corrected {
    /// Of the whole cluster.
    all: Predictions,
    /// Those of the pool.
    places: Range<usize>,
    /// How far demand of each series fell within the hour before, in GPUs; zero where that is not known.
    pub(super) fallen_gpus: Vec<f64>,
    /// Demand of the pool before them.
    pub(super) recent: Recent,
    calibrator: Option<Arc<Calibrator>>,
    pub(super) run: Run,
}

impl Corrected {
    /// The pool's forecasts as the model gave them.
    #[must_use]
    pub fn raw(&self) -> &[DemandForecast] {
        &self.all.raw[self.places.clone()]
    }

    /// As they are issued, in the order of their series.
    #[must_use]
    pub fn issued(&self) -> &[DemandForecast] {
        &self.all.issued[self.places.clone()]
    }

    #[must_use]
    pub fn calibrator(&self) -> &Calibrator {
        self.calibrator.as_deref().unwrap_or(&self.run.trained.calibrator)
    }
}
