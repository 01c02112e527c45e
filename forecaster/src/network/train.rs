//! Training: AdamW on the gradients of [`super::loss`], the mean of the latest weights judged after each epoch.

use super::loss::Targets;
use super::member::place;
use super::{HIDDEN, Inputs, Member, Network, Sizes, fused};
use crate::fit::FitError;
use crate::rows::{Features, Samples};
use crate::side_by_side::side_by_side;
use candle_core::Tensor;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How networks learn. Chosen on validation windows of both public traces.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lesson {
    /// Networks that are trained.
    pub members: usize,
    /// Epochs of each at most, of `rows_per_epoch` rows; of fewer rows there are as many more.
    pub epochs: usize,
    /// Epochs without progress on validation after which a network is done.
    pub patience: usize,
    /// Rows of a batch.
    pub rows_per_batch: usize,
    /// Learning rate.
    pub rate: f64,
    /// Steps over which the rate rises to its full height.
    pub warm_up: usize,
    /// Weight decay of AdamW.
    pub weight_decay: f64,
    /// Share of the hidden units that a row goes without while training.
    pub dropout: f32,
    /// How much of the averaged weights remains from step to step.
    pub memory: f64,
    /// Rows of an epoch at most: the others wait for the next one.
    pub rows_per_epoch: usize,
}

impl Lesson {
    /// The settings of `train` without `--settings`, chosen on validation.
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

impl Lesson {
    /// Epochs of so many rows at most. An epoch of a small cluster is a few steps: in as many as a large one has it learns next to nothing.
    const fn epochs_most(&self, rows: usize) -> usize {
        let passes = self.rows_per_epoch / if rows == 0 { 1 } else { rows };
        if passes > 1 { self.epochs.saturating_mul(passes) } else { self.epochs }
    }
}

impl Default for Lesson {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The training data of a network.
struct Ground<'a> {
    lesson: &'a Lesson,
    sizes: Sizes,
    inputs: Inputs,
    targets: Targets<'a>,
    judged: Option<Judged<'a>>,
}

/// The data that decide when a network is done.
struct Judged<'a> {
    inputs: Tensor,
    places: Vec<u32>,
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
                Some(Judged {
                    inputs: fused::matrix(inputs.values, sizes.inputs)?,
                    places: inputs.places,
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
        let mut state = State::new(self, &mut rng);
        let mut rows: Vec<usize> = (0..self.inputs.places.len()).collect();
        let (mut best, mut best_score, mut best_epoch) = (state.averaged()?, f64::INFINITY, 0);
        let epochs_most = epochs.unwrap_or_else(|| self.lesson.epochs_most(rows.len()));
        for epoch in 1..=epochs_most {
            rows.shuffle(&mut rng);
            let batch = self.lesson.rows_per_batch.min(rows.len());
            for rows in rows[..rows.len().min(self.lesson.rows_per_epoch)].chunks_exact(batch) {
                state.step(rows, &mut rng)?;
            }
            let Some(judged) = &self.judged else { continue };
            let averaged = state.averaged()?;
            let score = judged.targets.score(&averaged.forward(&judged.inputs, &judged.places)?);
            if !score.is_finite() {
                return Err(FitError::Diverged { epoch, loss: score });
            }
            if score < best_score {
                (best, best_score, best_epoch) = (averaged, score, epoch);
            } else if epoch - best_epoch >= self.lesson.patience {
                break;
            }
        }
        if self.judged.is_none() {
            (best, best_epoch) = (state.averaged()?, epochs_most);
        }
        Ok((best, best_epoch))
    }

    /// Inputs of rows, and the places of their series.
    fn batch(&self, rows: &[usize]) -> Result<(Tensor, Vec<u32>), candle_core::Error> {
        let width = self.sizes.inputs;
        let mut values = Vec::with_capacity(rows.len() * width);
        for row in rows {
            values.extend_from_slice(&self.inputs.values[row * width..][..width]);
        }
        Ok((fused::matrix(values, width)?, rows.iter().map(|row| self.inputs.places[*row]).collect()))
    }
}

/// A network while it learns.
struct State<'a> {
    ground: &'a Ground<'a>,
    parameters: Vec<Parameter>,
    steps: i32,
}

/// A parameter, the moments of its slopes (AdamW, Loshchilov and Hutter 2019), and the mean of its latest values.
struct Parameter {
    values: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    averages: Vec<f32>,
}

/// The move of all parameters in a step.
struct Move {
    rate: f32,
    /// The correction of the moments, since they began at zero.
    first: f32,
    second: f32,
    /// The part of a value that remains.
    decay: f32,
    memory: f32,
}

impl Parameter {
    const MEMORY: [f32; 2] = [0.9, 0.999];
    const LEAST: f32 = 1e-8;

    fn new(values: Vec<f32>) -> Self {
        let zeros = vec![0.0; values.len()];
        Self { first: zeros.clone(), second: zeros, averages: values.clone(), values }
    }

    fn step(&mut self, slopes: &[f32], by: &Move) {
        let [keep_first, keep_second] = Self::MEMORY;
        let all = self.values.iter_mut().zip(&mut self.first).zip(&mut self.second).zip(&mut self.averages);
        for ((((value, first), second), average), slope) in all.zip(slopes) {
            *first = *first * keep_first + slope * (1.0 - keep_first);
            *second = *second * keep_second + slope * slope * (1.0 - keep_second);
            let direction = *first * by.first / ((*second * by.second).sqrt() + Self::LEAST);
            *value = *value * by.decay - direction * by.rate;
            *average = *average * by.memory + *value * (1.0 - by.memory);
        }
    }
}

impl<'a> State<'a> {
    fn new(ground: &'a Ground<'a>, rng: &mut ChaCha8Rng) -> Self {
        let parameters = Member::draw(ground.sizes, rng).into_iter().map(Parameter::new).collect();
        Self { ground, parameters, steps: 0 }
    }

    fn step(&mut self, rows: &[usize], rng: &mut ChaCha8Rng) -> Result<(), candle_core::Error> {
        let lesson = self.ground.lesson;
        self.steps += 1;
        let rise = (f64::from(self.steps) / lesson.warm_up as f64).min(1.0);
        let rate = lesson.rate * rise;
        let [first, second] = Parameter::MEMORY.map(|memory| (1.0 / (1.0 - f64::from(memory).powi(self.steps))) as f32);
        let decay = (1.0 - rate * lesson.weight_decay) as f32;
        let by = Move { rate: rate as f32, first, second, decay, memory: lesson.memory as f32 };
        let network = Member::new(self.ground.sizes, self.values(|parameter| &parameter.values))?;
        let (inputs, places) = self.ground.batch(rows)?;
        let drop = HIDDEN.map(|units| self.mask(rows.len() * units, rng));
        let targets = &self.ground.targets;
        let slopes = slopes(&network, &inputs, &places, drop, |outputs| targets.gradients(rows, outputs))?;
        self.parameters.iter_mut().zip(&slopes).for_each(|(parameter, slopes)| parameter.step(slopes, &by));
        Ok(())
    }

    /// Zero for units that are left out, more than one for the others.
    fn mask(&self, units: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let dropout = self.ground.lesson.dropout;
        let (kept, below) = (1.0 / (1.0 - dropout), (dropout * f32::from(u16::MAX)) as u16);
        let mut coins = vec![0_u16; units];
        rng.fill(&mut coins[..]);
        coins.into_iter().map(|coin| if coin < below { 0.0 } else { kept }).collect()
    }

    fn values(&self, which: impl Fn(&Parameter) -> &Vec<f32>) -> Vec<Vec<f32>> {
        self.parameters.iter().map(|parameter| which(parameter).clone()).collect()
    }

    fn averaged(&self) -> Result<Member, candle_core::Error> {
        Member::new(self.ground.sizes, self.values(|parameter| &parameter.averages))
    }
}

/// The derivatives of a loss by each parameter, in their order. `drop` has what the units of each hidden layer are
/// multiplied by; `loss` turns outputs into the derivatives by them.
fn slopes(
    network: &Member,
    inputs: &Tensor,
    places: &[u32],
    drop: [Vec<f32>; 2],
    loss: impl Fn(&mut [f32]),
) -> Result<Vec<Vec<f32>>, candle_core::Error> {
    let [mut by_first, mut by_second] = drop;
    let mut first = network.first_sums(inputs, places)?;
    fused::silu_with_slopes(&mut first, &mut by_first);
    let first = fused::matrix(first, HIDDEN[0])?;
    let mut second = network.second_sums(&first)?;
    fused::silu_with_slopes(&mut second, &mut by_second);
    let second = fused::matrix(second, HIDDEN[1])?;
    let mut outputs = network.outputs(&second, inputs, places)?;
    loss(&mut outputs);

    let parameters = network.parameters();
    let series = parameters[place::FIRST_SERIES].len() / HIDDEN[0];
    let width = parameters[place::OUTPUT_BIAS].len();
    let mut slopes = vec![Vec::new(); parameters.len()];
    slopes[place::OUTPUT_BIAS] = fused::column_sums(&outputs, width);
    slopes[place::OUTPUT_SERIES] = fused::series_sums(&outputs, width, places, series);
    let outputs = fused::matrix(outputs, width)?;
    slopes[place::STRAIGHT] = fused::product(&inputs.t()?, &outputs)?;
    slopes[place::OUTPUT] = fused::product(&second.t()?, &outputs)?;

    fused::multiply(&mut by_second, &fused::product(&outputs, &network.factor(2).t()?)?);
    slopes[place::SECOND_BIAS] = fused::column_sums(&by_second, HIDDEN[1]);
    let by_second = fused::matrix(by_second, HIDDEN[1])?;
    slopes[place::SECOND] = fused::product(&first.t()?, &by_second)?;

    fused::multiply(&mut by_first, &fused::product(&by_second, &network.factor(1).t()?)?);
    slopes[place::FIRST_BIAS] = fused::column_sums(&by_first, HIDDEN[0]);
    slopes[place::FIRST_SERIES] = fused::series_sums(&by_first, HIDDEN[0], places, series);
    slopes[place::FIRST] = fused::product(&inputs.t()?, &fused::matrix(by_first, HIDDEN[0])?)?;
    Ok(slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};

    /// The same network in candle's own operations, whose derivatives candle finds.
    fn by_candle(variables: &[Var], inputs: &Tensor, places: &[u32], drop: &[Vec<f32>; 2]) -> Tensor {
        let rows = places.len();
        let places = Tensor::new(places, &Device::Cpu).unwrap();
        let of_series = |place: usize| variables[place].index_select(&places, 0).unwrap();
        let mask = |layer: usize| Tensor::from_slice(&drop[layer], (rows, HIDDEN[layer]), &Device::Cpu).unwrap();
        let with_bias = |sums: Tensor, bias: usize| sums.broadcast_add(&variables[bias]).unwrap();
        let first = with_bias(inputs.matmul(&variables[place::FIRST]).unwrap(), place::FIRST_BIAS);
        let first = ((first + of_series(place::FIRST_SERIES)).unwrap().silu().unwrap() * mask(0)).unwrap();
        let second = with_bias(first.matmul(&variables[place::SECOND]).unwrap(), place::SECOND_BIAS);
        let second = (second.silu().unwrap() * mask(1)).unwrap();
        let outputs = with_bias(second.matmul(&variables[place::OUTPUT]).unwrap(), place::OUTPUT_BIAS);
        let straight = inputs.matmul(&variables[place::STRAIGHT]).unwrap();
        ((outputs + straight).unwrap() + of_series(place::OUTPUT_SERIES)).unwrap()
    }

    #[test]
    fn outputs_and_slopes_are_those_that_candle_finds() {
        let sizes = Sizes { inputs: 20, series: 3, classes: 3, steps: 2 };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut some = |count: usize| -> Vec<f32> { (0..count).map(|_| rng.random_range(-1.0..1.0)).collect() };
        let shapes: Vec<[usize; 2]> = sizes.shapes().map(|(_, shape)| shape).collect();
        let parameters: Vec<Vec<f32>> = shapes.iter().map(|[rows, columns]| some(rows * columns)).collect();
        let (rows, places) = (5, [0_u32, 2, 1, 2, 0]);
        let inputs = fused::matrix(some(rows * sizes.inputs), sizes.inputs).unwrap();
        let drop = HIDDEN.map(|units| some(rows * units));
        let weights = some(rows * sizes.outputs());
        let network = Member::new(sizes, parameters.clone()).unwrap();
        // The loss is the sum of squared outputs, each with a weight of its own.
        let loss = |outputs: &mut [f32]| outputs.iter_mut().zip(&weights).for_each(|(out, by)| *out *= 2.0 * by);
        let found = slopes(&network, &inputs, &places, drop.clone(), loss).unwrap();

        let variable =
            |(values, shape): (&Vec<f32>, &[usize; 2])| Var::from_slice(values, shape, &Device::Cpu).unwrap();
        let variables: Vec<Var> = parameters.iter().zip(&shapes).map(variable).collect();
        let outputs = by_candle(&variables, &inputs, &places, &drop);
        let weights = fused::matrix(weights.clone(), sizes.outputs()).unwrap();
        let graph = (outputs.sqr().unwrap() * weights).unwrap().sum_all().unwrap().backward().unwrap();
        for ((variable, found), (name, _)) in variables.iter().zip(&found).zip(sizes.shapes()) {
            let exact: Vec<f32> = graph.get(variable).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert_eq!(exact.len(), found.len(), "{name}");
            let largest = exact.iter().fold(0.0_f32, |largest, one| largest.max(one.abs()));
            for (exact, found) in exact.iter().zip(found) {
                assert!((exact - found).abs() < 1e-5 * largest, "{name}: {found} is not {exact}");
            }
        }
        let whole = HIDDEN.map(|units| vec![1.0; rows * units]);
        let outputs: Vec<f32> =
            by_candle(&variables, &inputs, &places, &whole).flatten_all().unwrap().to_vec1().unwrap();
        for (exact, found) in outputs.iter().zip(network.forward(&inputs, &places).unwrap()) {
            assert!((exact - found).abs() < 1e-5, "{found} is not {exact}");
        }
    }
}
