//! From a panel and a split to a model.

use crate::baseline::Baseline;
use crate::blend::{Blend, Settings};
use crate::model::{Family, Model, ModelKind, ModelSpec};
use crate::orglinear::OrgLinear;
use crate::peers::{AutoEts, Network};
use crate::rows::HistoryFault;
use datasets::{HourRange, Panel, TimeSplit};
use vocab::SeriesId;

/// Why a model could not be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The lookback is shorter than the model needs.
    #[error("a lookback of {have} h is too short for this model, which needs {need} h")]
    ShortLookback {
        /// Hours of the lookback.
        have: usize,
        /// Hours that the model needs.
        need: usize,
    },
    /// No hour of the window was measured.
    #[error("none of the issue times from {issues} has all its targets measured: ingest hours without gaps")]
    NothingMeasured {
        /// The issue times of the part.
        issues: HourRange,
    },
    /// The loss is no number.
    #[error("the loss became {loss} in epoch {epoch}: the data or the learning rate is out of proportion")]
    Diverged {
        /// The epoch, from 1.
        epoch: usize,
        /// Its loss.
        loss: f64,
    },
    /// Exponential smoothing failed for a series.
    #[error("no exponential smoothing fits {series}: {fault}")]
    Smoothing {
        /// The series.
        series: SeriesId,
        /// The fault of the library.
        fault: String,
    },
    /// The model cannot read its history in parts.
    #[error("{model} needs all series in memory: train orglinear, trees or network, or give it more --memory")]
    NeedsWholePanel {
        /// The model.
        model: ModelKind,
    },
    /// A part of the history is missing.
    #[error(transparent)]
    History(#[from] HistoryFault),
    /// The arithmetic failed.
    #[error("the arithmetic of the model failed: {0}")]
    Arithmetic(#[from] candle_core::Error),
}

/// The model to fit, and its data.
#[derive(Debug, Clone, Copy)]
pub struct Fit<'a> {
    /// Demand of all series.
    pub panel: &'a Panel,
    /// Training and validation windows.
    pub split: TimeSplit,
    /// Specification of the model.
    pub spec: ModelSpec,
    /// Of blends; other models have their own.
    pub settings: Settings,
}

/// How far a fit is. Both numbers are means over targets, in the model's own scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitProgress {
    /// From 1.
    pub epoch: usize,
    /// Epochs that were trained.
    pub epochs: usize,
    /// Negative log-likelihood.
    pub train_loss: f64,
    /// The score that chooses the epoch: lower is better.
    pub validation: f64,
}

/// Fits a model to the training part of the split; the validation part chooses among what was learned, and nothing at or
/// after `split.until` is touched. The same panel, split and spec give the same model, bit for bit.
///
/// # Errors
/// The data hold nothing to learn from, or training diverged.
pub fn fit(fit: &Fit<'_>, progress: &mut dyn FnMut(FitProgress)) -> Result<Model, FitError> {
    match fit.spec.kind.family() {
        Family::Rule(rule) => Baseline::fit(rule, fit, fit.split.train).map(Model::Baseline),
        Family::Blend(recipe) => Blend::fit(recipe, &fit.into()).map(Box::new).map(Model::Blend),
        Family::Network(kind) => Network::fit(kind, fit, progress).map(Box::new).map(Model::Peer),
        Family::AutoEts => AutoEts::fit(fit, fit.split.validation.from).map(Box::new).map(Model::AutoEts),
        Family::OrgLinear(config) => OrgLinear::fit(config, fit, progress).map(Box::new).map(Model::OrgLinear),
    }
}
