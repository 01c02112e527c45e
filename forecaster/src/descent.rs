//! Gradient descent with the validation part choosing the epoch: what OrgLinear as published and the peers learn by. The
//! network of the default model learns from rows instead of windows, and has [its own](crate::network).

use crate::fit::{Fit, FitError, FitProgress};
use crate::orglinear::{Batch, Begin, Source, Weights, draw};
use candle_core::{Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};
use vocab::HourStart;

type Result<T> = std::result::Result<T, candle_core::Error>;

/// The trained function of weights and windows.
pub trait Learner {
    /// The loss that descends, as the mean over the targets of a batch that count.
    fn loss(&self, weights: &Weights, batch: &Batch<'_>) -> Result<Tensor>;

    /// The loss that chooses the epoch, as the mean over the targets that count: lower is better.
    fn validate(&self, weights: &Weights, batches: &[Batch<'_>]) -> Result<f64>;
}

/// How long and in which steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Largest number of epochs.
    pub epochs: usize,
    /// Epochs without a better validation part after which training stops.
    pub patience_epochs: usize,
    /// Most issue times in a batch; each brings all its series.
    pub batch_issues: usize,
    /// Short histories are cut into smaller batches, down to [`Self::LEAST_BATCH_ISSUES`], until an epoch has so many.
    pub epoch_batches: usize,
    /// Most issue times in an epoch: of more, each epoch draws so many.
    pub epoch_issues: usize,
    /// Of Adam, at the start.
    pub learning_rate: f64,
    /// The learning rate halves every so many epochs.
    pub halving_epochs: usize,
}

impl Schedule {
    /// Fewer issue times in a batch make its gradient a matter of chance.
    pub const LEAST_BATCH_ISSUES: usize = 4;

    /// Issue times in each batch of an epoch over `issues` of them.
    fn batch_issues_of(&self, issues: usize) -> usize {
        let wanted = issues / self.epoch_batches.max(1);
        wanted.clamp(Self::LEAST_BATCH_ISSUES.min(self.batch_issues), self.batch_issues)
    }
}

/// A descent in progress.
struct Descent<'a> {
    learner: &'a dyn Learner,
    schedule: Schedule,
    source: &'a Source<'a>,
    fit: &'a Fit<'a>,
    issues: Vec<HourStart>,
    validation: Vec<Batch<'a>>,
    weights: Weights,
    rng: ChaCha8Rng,
}

/// Draws the parameters and moves them; those of the epoch that fared best on the validation part are kept. Batches are
/// shuffled and parameters drawn from the seed alone.
///
/// # Errors
/// Nothing was measured, the loss is not finite any more, or the arithmetic fails.
pub fn descend<N: Into<String>>(
    learner: &dyn Learner,
    schedule: Schedule,
    parameters: Vec<(N, Vec<usize>, Begin)>,
    source: &Source<'_>,
    fit: &Fit<'_>,
    progress: &mut dyn FnMut(FitProgress),
) -> std::result::Result<Weights, FitError> {
    let mut rng = ChaCha8Rng::seed_from_u64(fit.spec.seed);
    let (weights, variables) = draw(parameters, &mut rng)?;
    let chosen: Vec<_> = fit.split.validation.iter().collect();
    let mut validation = Vec::new();
    for issues in chosen.chunks(schedule.batch_issues) {
        validation.extend(source.batch(issues)?);
    }
    if validation.is_empty() {
        return Err(FitError::NothingMeasured { issues: fit.split.validation });
    }
    let issues = fit.split.train.iter().collect();
    Descent { learner, schedule, source, fit, issues, validation, weights, rng }.run(variables, progress)
}

impl Descent<'_> {
    fn run(
        mut self,
        variables: Vec<Var>,
        progress: &mut dyn FnMut(FitProgress),
    ) -> std::result::Result<Weights, FitError> {
        let Schedule { epochs, patience_epochs, learning_rate, halving_epochs, .. } = self.schedule;
        let adam = ParamsAdamW { lr: learning_rate, weight_decay: 0.0, ..ParamsAdamW::default() };
        let mut optimizer = AdamW::new(variables, adam)?;
        let (mut best, mut best_validation, mut worse_epochs) = (self.snapshot()?, f64::INFINITY, 0);
        for epoch in 1..=epochs {
            let halvings = (epoch - 1) / halving_epochs;
            optimizer.set_learning_rate(learning_rate * 0.5_f64.powi(halvings as i32));
            let train_loss = self.epoch(&mut optimizer)?;
            let validation = self.learner.validate(&self.weights, &self.validation)?;
            for loss in [train_loss, validation] {
                if !loss.is_finite() {
                    return Err(FitError::Diverged { epoch, loss });
                }
            }
            progress(FitProgress { epoch, epochs, train_loss, validation });
            if validation < best_validation {
                (best, best_validation, worse_epochs) = (self.snapshot()?, validation, 0);
            } else {
                worse_epochs += 1;
                if worse_epochs >= patience_epochs {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// One pass over issue times in a new order; the mean loss over their targets.
    fn epoch(&mut self, optimizer: &mut AdamW) -> std::result::Result<f64, FitError> {
        self.issues.shuffle(&mut self.rng);
        let drawn = &self.issues[..self.issues.len().min(self.schedule.epoch_issues)];
        let (mut sum, mut count) = (0.0, 0);
        for issues in drawn.chunks(self.schedule.batch_issues_of(drawn.len())) {
            if let Some(batch) = self.source.batch(issues)? {
                let loss = self.learner.loss(&self.weights, &batch)?;
                optimizer.backward_step(&loss)?;
                sum += f64::from(loss.to_scalar::<f32>()?) * batch.count as f64;
                count += batch.count;
            }
        }
        if count == 0 {
            return Err(FitError::NothingMeasured { issues: self.fit.split.train });
        }
        Ok(sum / count as f64)
    }

    /// A copy of the weights as they are now.
    fn snapshot(&self) -> Result<Weights> {
        let copy = |(name, tensor): (&String, &Tensor)| Ok((name.clone(), tensor.detach().copy()?));
        self.weights.tensors().iter().map(copy).collect::<Result<_>>().map(Weights::new)
    }
}

/// The mean of a score over batches, each weighed by the targets that count.
pub fn mean_over<'a, 'b: 'a>(
    batches: &'a [Batch<'b>],
    mut score: impl FnMut(&'a Batch<'b>) -> Result<Tensor>,
) -> Result<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for batch in batches {
        sum += f64::from(score(batch)?.to_scalar::<f32>()?) * batch.count as f64;
        count += batch.count;
    }
    Ok(sum / count as f64)
}

/// Eq. 8 with the log σ that it drops (DESIGN §4.3), as the mean over the targets that count.
pub fn negative_log_likelihood(mean: &Tensor, stddev: &Tensor, batch: &Batch<'_>) -> Result<Tensor> {
    let z = ((&batch.targets - mean)? / stddev)?;
    let each = (stddev.log()? + (z.sqr()? * 0.5)?)?;
    let sum = (each * &batch.counted)?.sum_all()?;
    (sum / batch.count as f64)? + 0.5 * TAU.ln()
}

/// The score of [`crate::gaussian::crps`], as the mean over the targets that count.
pub fn crps(mean: &Tensor, stddev: &Tensor, batch: &Batch<'_>) -> Result<Tensor> {
    let z = ((&batch.targets - mean)? / stddev)?;
    let two_sided = (&z * FRAC_1_SQRT_2)?.erf()?;
    let twice_density = ((z.sqr()? * -0.5)?.exp()? * (2.0 / TAU.sqrt()))?;
    let each = (stddev * (((z * two_sided)? + twice_density)? - 1.0 / PI.sqrt())?)?;
    (each * &batch.counted)?.sum_all()? / batch.count as f64
}
