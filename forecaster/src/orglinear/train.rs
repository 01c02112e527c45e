//! Training by maximum likelihood.

use super::config::{Config, EpochChoice};
use super::forward::Folded;
use super::samples::{Batch, Source, learned_series};
use super::weights::{Shape, Weights};
use super::{OrgLinear, decompose, scaling};
use crate::descent::{Learner, Schedule, crps, descend, mean_over, negative_log_likelihood};
use crate::fit::{Fit, FitError, FitProgress};
use candle_core::Tensor;

impl OrgLinear {
    /// Fits the variant `config`.
    ///
    /// # Errors
    /// Nothing was measured, the loss is not finite any more, or the arithmetic fails.
    pub fn fit(config: Config, fit: &Fit<'_>, progress: &mut dyn FnMut(FitProgress)) -> Result<Self, FitError> {
        let learned = learned_series(fit.panel, fit.split.train, &fit.spec);
        if learned.is_empty() {
            return Err(FitError::NothingMeasured { issues: fit.split.train });
        }
        let of_panel = scaling::scales(fit.panel, &fit.split, config.input_scaling);
        let scales: Vec<_> = learned.iter().map(|&place| of_panel[place]).collect();
        let series: Vec<_> = learned.iter().map(|&place| fit.panel.series()[place].id().clone()).collect();
        let shape = Shape::new(&config, fit.spec.horizon, fit.spec.lookback_hours, &series);
        let source = Source {
            panel: fit.panel,
            learned: &learned,
            scales: &scales,
            lookback_hours: fit.spec.lookback_hours,
            horizon: fit.spec.horizon,
            zero_targets: config.zero_targets,
        };
        let average = decompose::transposed(shape.lookback_hours, config.moving_average_hours, config.padding)?;
        let parameters = shape.parameters();
        let learner = Likelihood { config, shape, average };
        let weights = descend(&learner, schedule(&config), parameters, &source, fit, progress)?;
        Ok(Self::from_parts(config, fit.spec.horizon, fit.spec.lookback_hours, series, scales, weights)?)
    }
}

const fn schedule(config: &Config) -> Schedule {
    Schedule {
        epochs: config.epochs,
        patience_epochs: config.patience_epochs,
        batch_issues: config.batch_issues,
        epoch_batches: config.epoch_batches,
        epoch_issues: usize::MAX,
        learning_rate: config.learning_rate,
        halving_epochs: config.halving_epochs,
    }
}

struct Likelihood {
    config: Config,
    shape: Shape,
    average: Tensor,
}

impl Likelihood {
    fn folded(&self, weights: &Weights) -> Result<Folded, candle_core::Error> {
        Folded::with_average(weights, &self.shape, &self.config, &self.average)
    }
}

impl Learner for Likelihood {
    fn loss(&self, weights: &Weights, batch: &Batch<'_>) -> Result<Tensor, candle_core::Error> {
        let (mean, stddev) = self.folded(weights)?.heads(&batch.inputs, &batch.places, &batch.calendars)?;
        negative_log_likelihood(&mean, &stddev, batch)
    }

    fn validate(&self, weights: &Weights, batches: &[Batch<'_>]) -> Result<f64, candle_core::Error> {
        let folded = self.folded(weights)?;
        mean_over(batches, |batch| {
            let (mean, stddev) = folded.heads(&batch.inputs, &batch.places, &batch.calendars)?;
            match self.config.epoch_choice {
                EpochChoice::Likelihood => negative_log_likelihood(&mean, &stddev, batch),
                EpochChoice::Crps => crps(&mean, &stddev, batch),
            }
        })
    }
}
