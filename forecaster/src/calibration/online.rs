//! A calibrator beside a model, issue time by issue time.

use super::{Calibrator, Conformal, PeakGuesses};
use crate::predict::{Predict, PredictError, forecast};
use datasets::{HourRange, Panel};
use std::collections::{BTreeMap, VecDeque};
use vocab::{DemandForecast, GuaranteeRate, HourStart, PoolId};

/// Whether forecasts of organizations are corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// As the model's kind and the validation part say.
    #[default]
    Auto,
    /// Every model is calibrated.
    On,
    /// No model is calibrated.
    Off,
}

impl Switch {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];

    /// Name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// The forecasts that are issued at one issue time.
#[derive(Debug, Clone, PartialEq)]
pub struct Issued {
    /// Corrected, in the order of the raw ones.
    pub forecasts: Vec<DemandForecast>,
    /// The inputs of the pools' bounds.
    pub conformal: BTreeMap<PoolId, Conformal>,
}

/// Keeps forecasts of a model until their hours are over, and then learns from them.
#[derive(Debug, Clone)]
pub struct Online {
    calibrator: Calibrator,
    waiting: VecDeque<(HourStart, Vec<DemandForecast>, PeakGuesses)>,
}

impl Online {
    /// Starts from the calibrator of a run.
    #[must_use]
    pub const fn new(calibrator: Calibrator) -> Self {
        Self { calibrator, waiting: VecDeque::new() }
    }

    /// Learns from every earlier forecast whose hours are over at `issue`, corrects `raw` and keeps it. Nothing that
    /// happened at or after `issue` is read.
    pub fn issue(&mut self, panel: &Panel, issue: HourStart, raw: Vec<DemandForecast>, rate: GuaranteeRate) -> Issued {
        self.learn(panel, issue);
        let forecasts = self.calibrator.apply(panel, &raw);
        let conformal = self.calibrator.conformal(panel, &raw, rate);
        self.keep(issue, raw);
        Issued { forecasts, conformal }
    }

    /// Learns as [`Self::issue`] does, and keeps `raw` without issuing it.
    fn rehearse(&mut self, panel: &Panel, issue: HourStart, raw: Vec<DemandForecast>) {
        self.learn(panel, issue);
        self.keep(issue, raw);
    }

    fn keep(&mut self, issue: HourStart, raw: Vec<DemandForecast>) {
        let guesses = PeakGuesses::of(issue, &raw, self.calibrator.horizon());
        self.waiting.push_back((issue, raw, guesses));
    }

    fn learn(&mut self, panel: &Panel, now: HourStart) {
        let horizon = i64::from(self.calibrator.horizon.get());
        while let Some((issue, raw, _)) = self.waiting.pop_front_if(|(issue, ..)| issue.plus_hours(horizon) <= now) {
            self.calibrator.observe(panel, issue, &raw);
        }
        self.waiting.iter().for_each(|(_, _, guesses)| self.calibrator.observe_peaks(panel, guesses, now));
    }

    /// The calibrator, with everything learned that is over at `until`, to which `model` goes on from the issue time `from`: of the last
    /// forecasts the first hours are over.
    ///
    /// # Errors
    /// The model cannot forecast an hour.
    pub(crate) fn go_on(
        mut self,
        model: &dyn Predict,
        panel: &Panel,
        (from, until): (HourStart, HourStart),
    ) -> Result<Calibrator, PredictError> {
        let to = until.plus_hours(1 - self.calibrator.first_lesson_hours() as i64);
        for issue in (HourRange { from, to }).iter() {
            self.rehearse(panel, issue, forecast(model, panel, issue)?);
        }
        Ok(self.finish(panel, until))
    }

    /// The calibrator, with everything learned that is over at `until`.
    #[must_use]
    pub fn finish(mut self, panel: &Panel, until: HourStart) -> Calibrator {
        self.learn(panel, until);
        self.calibrator
    }
}

/// Issues forecasts `[issue time][series]` one after the other. The second value has learned from all that are over
/// `horizon` hours after the last one.
#[must_use]
pub fn replay(
    calibrator: Calibrator,
    panel: &Panel,
    issues: HourRange,
    raw: &[Vec<DemandForecast>],
    rate: GuaranteeRate,
) -> (Vec<Issued>, Calibrator) {
    let until = issues.to.plus_hours(i64::from(calibrator.horizon.get()) - 1);
    let (issued, online) = played(calibrator, panel, issues, raw, rate);
    (issued, online.finish(panel, until))
}

/// The same; the second value goes on from there.
pub(crate) fn played(
    calibrator: Calibrator,
    panel: &Panel,
    issues: HourRange,
    raw: &[Vec<DemandForecast>],
    rate: GuaranteeRate,
) -> (Vec<Issued>, Online) {
    let mut online = Online::new(calibrator);
    let issued = issues.iter().zip(raw).map(|(issue, raw)| online.issue(panel, issue, raw.clone(), rate)).collect();
    (issued, online)
}
