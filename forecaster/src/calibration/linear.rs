//! How far a pool's peak rises above its latest demand, linear in what it did lately: least squares over its own history, hour by hour.

/// Numbers that a rise is linear in.
pub const INPUTS: usize = 2;
/// They, in GPUs.
pub type Inputs = [f64; INPUTS];
/// With the constant, which comes last.
const TERMS: usize = INPUTS + 1;
/// Numbers of a state, as they are stored.
pub const STORED_NUMBERS: usize = TERMS * TERMS + TERMS;
/// Issue times below which nothing is stated.
const LEAST_HOURS: f64 = 24.0;
/// Issue hours after which an outcome counts half: four weeks. Chosen, as the next, on validation; without fading the loss is 0.1 % higher.
const HALF_LIFE_HOURS: f64 = 672.0;
/// Shrinkage of the coefficients, as a share of the mean square of the inputs: with a fifth or a hundredth in its place the loss differs
/// by less than 1 %.
const RIDGE: f64 = 0.05;

/// Sums of products of inputs and rises, which fade.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Linear {
    products: [[f64; TERMS]; TERMS],
    targets: [f64; TERMS],
}

/// Coefficients of inputs and constant.
pub struct Line([f64; TERMS]);

impl Line {
    /// The rise that inputs let expect, in GPUs.
    pub fn rise_gpus(&self, inputs: &Inputs) -> f64 {
        self.0.iter().zip(terms(inputs)).map(|(one, term)| one * term).sum()
    }
}

const fn terms([mean, rise]: &Inputs) -> [f64; TERMS] {
    [*mean, *rise, 1.0]
}

/// The share of a sum that is left after so many hours.
pub fn share_left_after(hours: f64) -> f64 {
    0.5_f64.powf(hours / HALF_LIFE_HOURS)
}

impl Linear {
    /// Whether it has learned nothing.
    pub const fn is_untaught(&self) -> bool {
        self.hours() == 0.0
    }

    const fn hours(&self) -> f64 {
        self.products[INPUTS][INPUTS]
    }

    /// Learns the rise, in GPUs, that came of inputs.
    pub fn learn(&mut self, inputs: &Inputs, rise_gpus: f64) {
        self.learn_after(share_left_after(1.0), inputs, rise_gpus);
    }

    /// The same, where a [share](share_left_after) of the sums before is left.
    pub fn learn_after(&mut self, share_left: f64, inputs: &Inputs, rise_gpus: f64) {
        let terms = terms(inputs);
        for (row, one) in terms.iter().enumerate() {
            for (column, other) in terms.iter().enumerate() {
                self.products[row][column] = self.products[row][column] * share_left + one * other;
            }
            self.targets[row] = self.targets[row] * share_left + one * rise_gpus;
        }
    }

    /// The rise that inputs let expect, in GPUs; `None` while less than a day was learned.
    pub fn rise_gpus(&self, inputs: &Inputs) -> Option<f64> {
        self.line().map(|line| line.rise_gpus(inputs)).filter(|rise| rise.is_finite())
    }

    /// The learned line; `None` before a day was learned.
    pub fn line(&self) -> Option<Line> {
        if self.hours() < LEAST_HOURS { None } else { self.coefficients().map(Line) }
    }

    /// By elimination; the matrix is positive definite but for rounding, so that no rows have to be exchanged.
    fn coefficients(&self) -> Option<[f64; TERMS]> {
        let mut rows = self.products;
        let mut sides = self.targets;
        let shrinkage = RIDGE * (0..INPUTS).map(|k| rows[k][k]).sum::<f64>() / INPUTS as f64;
        // Demand that never moved has no inputs, and a rise of nothing.
        (0..INPUTS).for_each(|k| rows[k][k] += shrinkage.max(f64::MIN_POSITIVE));
        for pivot in 0..TERMS {
            if rows[pivot][pivot] <= 0.0 {
                return None;
            }
            for below in pivot + 1..TERMS {
                let factor = rows[below][pivot] / rows[pivot][pivot];
                (pivot..TERMS).for_each(|column| rows[below][column] -= factor * rows[pivot][column]);
                sides[below] -= factor * sides[pivot];
            }
        }
        let mut found = [0.0; TERMS];
        for row in (0..TERMS).rev() {
            let known: f64 = (row + 1..TERMS).map(|column| rows[row][column] * found[column]).sum();
            found[row] = (sides[row] - known) / rows[row][row];
        }
        Some(found)
    }

    /// The state as numbers, [`STORED_NUMBERS`] of them.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.products.into_iter().flatten().chain(self.targets)
    }

    /// From [`numbers`](Self::numbers); `None` where they are no state.
    pub fn from_numbers(numbers: &[f64; STORED_NUMBERS]) -> Option<Self> {
        let is_finite = numbers.iter().all(|one| one.is_finite());
        let product = |row: usize, column: usize| numbers[row * TERMS + column];
        let products = std::array::from_fn(|row| std::array::from_fn(|column| product(row, column)));
        let one = Self { products, targets: std::array::from_fn(|row| numbers[TERMS * TERMS + row]) };
        let is_of_squares = (0..TERMS).all(|k| one.products[k][k] >= 0.0);
        (is_finite && is_of_squares).then_some(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn taught(hours: usize, rise: impl Fn(&Inputs) -> f64) -> Linear {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut linear = Linear::default();
        for _ in 0..hours {
            let inputs = [20.0 * (rng.random::<f64>() - 0.5), 10.0 * rng.random::<f64>()];
            linear.learn(&inputs, rise(&inputs));
        }
        linear
    }

    #[test]
    fn a_linear_rise_is_learned_but_for_what_shrinks_it() {
        let linear = taught(400, |[mean, rise]| 3.0 + 0.5 * mean + 0.8 * rise);
        let stated = linear.rise_gpus(&[10.0, 5.0]).unwrap();
        assert!((stated - 12.0).abs() < 0.7, "{stated}");
        assert_eq!(Linear::from_numbers(&collected(&linear)), Some(linear));
    }

    #[test]
    fn a_day_teaches_enough_and_demand_that_never_moves_does_not_rise() {
        assert_eq!(taught(20, |_| 1.0).rise_gpus(&[0.0; 2]), None);
        assert!(taught(25, |_| 1.0).rise_gpus(&[0.0; 2]).is_some());
        let mut still = Linear::default();
        (0..100).for_each(|_| still.learn(&[0.0; 2], 0.0));
        assert_eq!(still.rise_gpus(&[0.0; 2]), Some(0.0));
    }

    #[test]
    fn numbers_that_are_no_sums_are_refused() {
        let mut numbers = collected(&taught(30, |_| 1.0));
        numbers[0] = -1.0;
        assert_eq!(Linear::from_numbers(&numbers), None);
        numbers[0] = f64::NAN;
        assert_eq!(Linear::from_numbers(&numbers), None);
    }

    fn collected(linear: &Linear) -> [f64; STORED_NUMBERS] {
        let all: Vec<f64> = linear.numbers().collect();
        all.try_into().unwrap()
    }
}
