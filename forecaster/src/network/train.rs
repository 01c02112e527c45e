//! Training: AdamW on the gradients of [`super::loss`], the mean of the latest weights judged after each epoch.

use super::loss::Targets;
use super::{Inputs, Member, Network, Sizes};
use crate::fit::FitError;
use crate::rows::{Features, Samples};
use crate::side_by_side::side_by_side;
use candle_core::{Device, Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How networks learn. Chosen on validation windows of both public traces.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lesson {
    pub members: usize,
    pub epochs: usize,
    /// Epochs without progress on validation after which a network is done.
    pub patience: usize,
    pub rows_per_batch: usize,
    pub rate: f64,
    /// Steps over which the rate rises to its full height.
    pub warm_up: usize,
    pub weight_decay: f64,
    /// Share of the hidden units that a row goes without while training.
    pub dropout: f32,
    /// How much of the averaged weights remains from step to step.
    pub memory: f64,
    /// Rows of an epoch at most: the others wait for the next one.
    pub rows_per_epoch: usize,
}

impl Lesson {
    pub const DEFAULT: Self = Self {
        members: 4,
        epochs: 60,
        patience: 6,
        rows_per_batch: 256,
        rate: 5e-4,
        warm_up: 100,
        weight_decay: 0.05,
        dropout: 0.15,
        memory: 0.99,
        rows_per_epoch: 20_000,
    };
}

impl Default for Lesson {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a network learns from.
struct Ground<'a> {
    lesson: &'a Lesson,
    sizes: Sizes,
    inputs: Inputs,
    targets: Targets<'a>,
    judged: Option<Judged<'a>>,
}

/// What decides when a network is done.
struct Judged<'a> {
    inputs: Tensor,
    places: Tensor,
    targets: Targets<'a>,
}

impl Network {
    /// Trains members side by side, each from its own draws. With a validation part each ends where that got no better;
    /// without one each runs for the epochs given. Answers the network and the epochs of each member.
    ///
    /// # Errors
    /// The arithmetic fails, or the loss is not finite.
    pub fn fit(
        lesson: &Lesson,
        seed: u64,
        features: &Features,
        learn: &Samples,
        validate: Option<&Samples>,
        epochs: &[usize],
    ) -> Result<Self, FitError> {
        let series = learn.series;
        let sizes = Self::sizes(features, series, learn.targets.len());
        let mut network =
            Self { standard: Self::standard(learn, features), members: Vec::new(), epochs: Vec::new(), sizes };
        // Errors of large series weigh more, as they do in the scores, but small series teach, too.
        let weights_learned = weights(learn, 0.5);
        let weights_judged = validate.map(|samples| weights(samples, 1.0));
        let judged = match (validate, &weights_judged) {
            (Some(samples), Some(weights)) => {
                let inputs = network.inputs(&samples.rows, features);
                let count = inputs.places.len();
                Some(Judged {
                    inputs: Tensor::from_vec(inputs.values, (count, sizes.inputs), &Device::Cpu)?,
                    places: Tensor::from_vec(inputs.places, count, &Device::Cpu)?,
                    targets: Targets { steps: &samples.targets, weights },
                })
            }
            _ => None,
        };
        let inputs = network.inputs(&learn.rows, features);
        let targets = Targets { steps: &learn.targets, weights: &weights_learned };
        let ground = Ground { lesson, sizes, inputs, targets, judged };
        let member = |member: usize| {
            let stream = seed.wrapping_mul(1_000_003).wrapping_add(0x6e65_7400 + member as u64);
            ground.member(stream, epochs.get(member).copied())
        };
        for trained in side_by_side(lesson.members, member) {
            let (member, epochs) = trained?;
            network.members.push(member);
            network.epochs.push(epochs);
        }
        Ok(network)
    }
}

/// Scales of the rows' series to a power, one on average.
fn weights(samples: &Samples, power: f64) -> Vec<f32> {
    let mean = samples.scales.iter().sum::<f64>() / samples.scales.len().max(1) as f64;
    samples.scales.iter().map(|scale| (scale / mean).powf(power) as f32).collect()
}

impl Ground<'_> {
    fn member(&self, stream: u64, epochs: Option<usize>) -> Result<(Member, usize), FitError> {
        let mut rng = ChaCha8Rng::seed_from_u64(stream);
        let mut state = State::new(self, &mut rng)?;
        let mut rows: Vec<usize> = (0..self.inputs.places.len()).collect();
        let (mut best, mut best_score, mut best_epoch) = (state.snapshot()?, f64::INFINITY, 0);
        for epoch in 1..=epochs.unwrap_or(self.lesson.epochs) {
            rows.shuffle(&mut rng);
            let batch = self.lesson.rows_per_batch.min(rows.len());
            for rows in rows[..rows.len().min(self.lesson.rows_per_epoch)].chunks_exact(batch) {
                state.step(rows, &mut rng)?;
            }
            let Some(judged) = &self.judged else { continue };
            let score = judged
                .targets
                .score(&state.averaged().forward(&judged.inputs, &judged.places, None)?.flatten_all()?.to_vec1()?);
            if !score.is_finite() {
                return Err(FitError::Diverged { epoch, loss: score });
            }
            if score < best_score {
                (best, best_score, best_epoch) = (state.snapshot()?, score, epoch);
            } else if epoch - best_epoch >= self.lesson.patience {
                break;
            }
        }
        if self.judged.is_none() {
            (best, best_epoch) = (state.snapshot()?, epochs.unwrap_or(self.lesson.epochs));
        }
        Ok((best, best_epoch))
    }

    /// Rows as tensors.
    fn batch(&self, rows: &[usize]) -> Result<(Tensor, Tensor), candle_core::Error> {
        let width = self.sizes.inputs;
        let values: Vec<f32> =
            rows.iter().flat_map(|row| &self.inputs.values[row * width..][..width]).copied().collect();
        let places: Vec<u32> = rows.iter().map(|row| self.inputs.places[*row]).collect();
        Ok((
            Tensor::from_vec(values, (rows.len(), width), &Device::Cpu)?,
            Tensor::from_vec(places, rows.len(), &Device::Cpu)?,
        ))
    }
}

/// A network while it learns.
struct State<'a> {
    ground: &'a Ground<'a>,
    variables: Vec<Var>,
    network: Member,
    averages: Vec<Tensor>,
    optimizer: AdamW,
    steps: usize,
}

impl<'a> State<'a> {
    fn new(ground: &'a Ground<'a>, rng: &mut ChaCha8Rng) -> Result<Self, candle_core::Error> {
        let variables = Member::draw(ground.sizes, rng)?;
        let network = Member(variables.iter().map(|variable| variable.as_tensor().clone()).collect());
        let averages = copied(&network.0)?;
        let adam = ParamsAdamW { weight_decay: ground.lesson.weight_decay, ..ParamsAdamW::default() };
        let optimizer = AdamW::new(variables.clone(), adam)?;
        Ok(Self { ground, variables, network, averages, optimizer, steps: 0 })
    }

    fn step(&mut self, rows: &[usize], rng: &mut ChaCha8Rng) -> Result<(), candle_core::Error> {
        let lesson = self.ground.lesson;
        self.steps += 1;
        let rise = (self.steps as f64 / lesson.warm_up as f64).min(1.0);
        self.optimizer.set_learning_rate(lesson.rate * rise);
        let (inputs, places) = self.ground.batch(rows)?;
        let drop = [self.mask(rows.len(), super::HIDDEN[0], rng)?, self.mask(rows.len(), super::HIDDEN[1], rng)?];
        let said = self.network.forward(&inputs, &places, Some(&drop))?;
        let slopes = self.ground.targets.gradients(rows, &said.flatten_all()?.to_vec1()?);
        // The derivative of this sum by the outputs is the slopes: the losses need no graph of their own.
        let slopes = Tensor::from_vec(slopes, said.dims(), &Device::Cpu)?;
        self.optimizer.backward_step(&(said * slopes)?.sum_all()?)?;
        let keep = lesson.memory;
        for (average, variable) in self.averages.iter_mut().zip(&self.variables) {
            *average = ((&*average * keep)? + (variable.as_tensor().detach() * (1.0 - keep))?)?;
        }
        Ok(())
    }

    /// Zero for units that are left out, more than one for the others.
    fn mask(&self, rows: usize, units: usize, rng: &mut ChaCha8Rng) -> Result<Tensor, candle_core::Error> {
        let dropout = self.ground.lesson.dropout;
        let kept = 1.0 / (1.0 - dropout);
        let values: Vec<f32> =
            (0..rows * units).map(|_| if rng.random::<f32>() < dropout { 0.0 } else { kept }).collect();
        Tensor::from_vec(values, (rows, units), &Device::Cpu)
    }

    fn averaged(&self) -> Member {
        Member(self.averages.clone())
    }

    fn snapshot(&self) -> Result<Member, candle_core::Error> {
        copied(&self.averages).map(Member)
    }
}

fn copied(tensors: &[Tensor]) -> Result<Vec<Tensor>, candle_core::Error> {
    tensors.iter().map(|tensor| tensor.detach().copy()).collect()
}
