//! Training by maximum likelihood, with the validation part choosing the epoch.

use super::config::{Config, EpochChoice};
use super::forward::Folded;
use super::samples::{Batch, Source, learned_series};
use super::weights::{Shape, Weights};
use super::{OrgLinear, decompose, init, scaling};
use crate::fit::{Fit, FitError, FitProgress};
use candle_core::{Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use datasets::HourRange;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};
use vocab::HourStart;

impl OrgLinear {
    /// Fits the variant `config`. Batches are shuffled and parameters drawn from the seed alone.
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
        let weights = Training::new(config, shape, &source, fit)?.run(progress)?;
        Ok(Self::from_parts(config, fit.spec.horizon, fit.spec.lookback_hours, series, scales, weights)?)
    }
}

/// A training in progress.
struct Training<'a> {
    config: Config,
    shape: Shape,
    source: &'a Source<'a>,
    learned: HourRange,
    issues: Vec<HourStart>,
    validation: Vec<Batch<'a>>,
    average: Tensor,
    weights: Weights,
    variables: Vec<Var>,
    rng: ChaCha8Rng,
}

impl<'a> Training<'a> {
    fn new(config: Config, shape: Shape, source: &'a Source<'a>, fit: &Fit<'_>) -> Result<Self, FitError> {
        let mut rng = ChaCha8Rng::seed_from_u64(fit.spec.seed);
        let (weights, variables) = init::draw(&shape, &mut rng)?;
        let chosen: Vec<_> = fit.split.validation.iter().collect();
        let mut validation = Vec::new();
        for issues in chosen.chunks(config.batch_issues) {
            validation.extend(source.batch(issues)?);
        }
        if validation.is_empty() {
            return Err(FitError::NothingMeasured { issues: fit.split.validation });
        }
        let average = decompose::transposed(shape.lookback_hours, config.moving_average_hours, config.padding)?;
        let issues = fit.split.train.iter().collect();
        Ok(Self {
            config,
            shape,
            source,
            learned: fit.split.train,
            issues,
            validation,
            average,
            weights,
            variables,
            rng,
        })
    }

    /// Runs the epochs; the weights of the epoch that fared best on the validation part are kept.
    fn run(mut self, progress: &mut dyn FnMut(FitProgress)) -> Result<Weights, FitError> {
        let adam = ParamsAdamW { lr: self.config.learning_rate, weight_decay: 0.0, ..ParamsAdamW::default() };
        let mut optimizer = AdamW::new(self.variables.clone(), adam)?;
        let (mut best, mut best_validation, mut worse_epochs) = (self.snapshot()?, f64::INFINITY, 0);
        for epoch in 1..=self.config.epochs {
            let halvings = (epoch - 1) / self.config.halving_epochs;
            optimizer.set_learning_rate(self.config.learning_rate * 0.5_f64.powi(halvings as i32));
            let train_loss = self.epoch(&mut optimizer)?;
            let validation = self.validate()?;
            for loss in [train_loss, validation] {
                if !loss.is_finite() {
                    return Err(FitError::Diverged { epoch, loss });
                }
            }
            progress(FitProgress { epoch, epochs: self.config.epochs, train_loss, validation });
            if validation < best_validation {
                (best, best_validation, worse_epochs) = (self.snapshot()?, validation, 0);
            } else {
                worse_epochs += 1;
                if worse_epochs >= self.config.patience_epochs {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// One pass over the issue times in a new order; the mean loss over its targets.
    fn epoch(&mut self, optimizer: &mut AdamW) -> Result<f64, FitError> {
        self.issues.shuffle(&mut self.rng);
        let (mut sum, mut count) = (0.0, 0);
        for issues in self.issues.chunks(self.config.batch_issues_of(self.issues.len())) {
            if let Some(batch) = self.source.batch(issues)? {
                let loss = self.loss(&batch)?;
                optimizer.backward_step(&loss)?;
                sum += f64::from(loss.to_scalar::<f32>()?) * batch.count as f64;
                count += batch.count;
            }
        }
        if count == 0 {
            return Err(FitError::NothingMeasured { issues: self.learned });
        }
        Ok(sum / count as f64)
    }

    /// What chooses the epoch, as the mean over the targets of the validation part.
    fn validate(&self) -> Result<f64, FitError> {
        let folded = self.folded()?;
        let (mut sum, mut count) = (0.0, 0);
        for batch in &self.validation {
            let (mean, stddev) = folded.heads(&batch.inputs, &batch.places, &batch.calendars)?;
            let score = match self.config.epoch_choice {
                EpochChoice::Likelihood => negative_log_likelihood(&mean, &stddev, batch)?,
                EpochChoice::Crps => crps(&mean, &stddev, batch)?,
            };
            sum += f64::from(score.to_scalar::<f32>()?) * batch.count as f64;
            count += batch.count;
        }
        Ok(sum / count as f64)
    }

    fn loss(&self, batch: &Batch<'_>) -> Result<Tensor, candle_core::Error> {
        let (mean, stddev) = self.folded()?.heads(&batch.inputs, &batch.places, &batch.calendars)?;
        negative_log_likelihood(&mean, &stddev, batch)
    }

    fn folded(&self) -> Result<Folded, candle_core::Error> {
        Folded::with_average(&self.weights, &self.shape, &self.config, &self.average)
    }

    /// A copy of the weights as they are now.
    fn snapshot(&self) -> Result<Weights, candle_core::Error> {
        let copy = |(name, tensor): (&String, &Tensor)| Ok((name.clone(), tensor.detach().copy()?));
        self.weights.tensors().iter().map(copy).collect::<Result<_, _>>().map(Weights::new)
    }
}

/// Eq. 8 with the log σ that it drops (DESIGN §4.3), as the mean over the targets that count.
pub fn negative_log_likelihood(
    mean: &Tensor,
    stddev: &Tensor,
    batch: &Batch<'_>,
) -> Result<Tensor, candle_core::Error> {
    let z = ((&batch.targets - mean)? / stddev)?;
    let each = (stddev.log()? + (z.sqr()? * 0.5)?)?;
    let sum = (each * &batch.counted)?.sum_all()?;
    (sum / batch.count as f64)? + 0.5 * TAU.ln()
}

/// The score of [`crate::gaussian::crps`], as the mean over the targets that count.
pub fn crps(mean: &Tensor, stddev: &Tensor, batch: &Batch<'_>) -> Result<Tensor, candle_core::Error> {
    let z = ((&batch.targets - mean)? / stddev)?;
    let two_sided = (&z * FRAC_1_SQRT_2)?.erf()?;
    let twice_density = ((z.sqr()? * -0.5)?.exp()? * (2.0 / TAU.sqrt()))?;
    let each = (stddev * (((z * two_sided)? + twice_density)? - 1.0 / PI.sqrt())?)?;
    (each * &batch.counted)?.sum_all()? / batch.count as f64
}
