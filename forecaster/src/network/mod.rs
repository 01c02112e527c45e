//! A small network over the rows of all series, several of them averaged: centre, spread and quantiles of every step at
//! once.

mod answers;
mod fused;
mod loss;
mod member;
mod tiles;
mod train;

pub use answers::WIDE;
pub use member::{HIDDEN, Member, Sizes};
pub use train::Lesson;

use crate::rows::{Features, Samples};
use std::f32::consts::TAU;

/// Waves of the day and of the week that hour and weekday become: sine and cosine of each.
const DAY_WAVES: usize = 4;
const WEEK_WAVES: usize = 2;
/// The waves, and the day off.
const CALENDAR_INPUTS: usize = 2 * (DAY_WAVES + WEEK_WAVES) + 1;
/// A deviation of a feature below this is none.
const LEAST_DEVIATION: f32 = 1e-6;

/// Networks that were trained apart, and how rows become their inputs.
#[derive(Debug, Clone)]
pub struct Network {
    /// Mean and deviation of each amount over the rows that taught.
    pub standard: Vec<[f32; 2]>,
    /// Networks whose mean is the forecast.
    pub members: Vec<Member>,
    /// Epochs after which each member was best on validation.
    pub epochs: Vec<usize>,
    /// Sizes of each network.
    pub sizes: Sizes,
}

/// Inputs of many rows: `[rows, inputs]`, and the class of each row's series.
pub struct Inputs {
    /// Features, row by row.
    pub values: Vec<f32>,
    /// Class of the series of each row.
    pub places: Vec<u32>,
}

impl Network {
    /// Sizes of the networks of a model.
    #[must_use]
    pub fn sizes(features: &Features, series: usize, steps: usize) -> Sizes {
        let (inputs, series) = (features.amounts() + CALENDAR_INPUTS, series.max(1));
        Sizes { inputs, series, classes: series.min(Sizes::CLASSES_MOST), steps }
    }

    /// Mean and deviation of each amount.
    fn standard(samples: &Samples, features: &Features) -> Vec<[f32; 2]> {
        let count = samples.scales.len().max(1) as f64;
        let rows = || samples.rows.chunks_exact(features.count());
        let mut sums = vec![[0.0_f64; 2]; features.amounts()];
        for row in rows() {
            for (sum, value) in sums.iter_mut().zip(row) {
                sum[0] += f64::from(*value);
                sum[1] += f64::from(*value).powi(2);
            }
        }
        let of = |[sum, squares]: [f64; 2]| {
            let mean = sum / count;
            [mean as f32, ((squares / count - mean * mean).max(0.0).sqrt() as f32).max(LEAST_DEVIATION)]
        };
        sums.into_iter().map(of).collect()
    }

    /// Amounts in deviations, far ones drawn in; hour and weekday as waves.
    #[must_use]
    pub fn inputs(&self, rows: &[f32], features: &Features) -> Inputs {
        let mut values = Vec::with_capacity(rows.len() / features.count() * self.sizes.inputs);
        let mut places = Vec::with_capacity(rows.len() / features.count());
        for row in rows.chunks_exact(features.count()) {
            let (amounts, calendar) = row.split_at(features.amounts());
            let each = amounts.iter().zip(&self.standard);
            values.extend(each.map(|(value, [mean, deviation])| drawn_in((value - mean) / deviation)));
            let [hour, weekday, day_off, place] = [calendar[0], calendar[1], calendar[2], calendar[3]];
            values.extend(waves(hour, weekday));
            values.push(day_off);
            places.push(self.sizes.class_of(place as usize) as u32);
        }
        Inputs { values, places }
    }
}

/// Sine and cosine of the waves of hour and weekday.
fn waves(hour: f32, weekday: f32) -> [f32; CALENDAR_INPUTS - 1] {
    let waves =
        |number: usize, turn: f32| (1..=number).flat_map(move |k| <[f32; 2]>::from((turn * k as f32).sin_cos()));
    let mut all = waves(DAY_WAVES, TAU * hour / 24.0).chain(waves(WEEK_WAVES, TAU * weekday / 7.0));
    std::array::from_fn(|_| all.next().unwrap_or(0.0))
}

/// Grows as the logarithm of large values and leaves small ones nearly as they are, sign kept.
fn drawn_in(value: f32) -> f32 {
    (1.0 + value.abs()).ln().copysign(value)
}
