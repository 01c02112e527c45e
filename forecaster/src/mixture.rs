//! A mixture of experts, weighed online by the loss of what they stated.
//!
//! Bernstein online aggregation (Wintenberger 2017) with a fixed share (Herbster and Warmuth 1998). The mixture of statements
//! e_k with weights w_k is b = Σ w_k e_k. Once the outcome is known, the regret to each expert is linear in its statement,
//! r_k = g (b − e_k) with the derivative g of the loss at b, so that the experts are compared by what a little more of them would
//! have changed. In units of their usual size (t_k),
//!
//! ```text
//! w_k ← (1 − α) w_k exp(x_k − x_k²) / Z + α π_k,   x_k = η t_k, with η so small that all |x_k| ≤ ½
//! ```
//!
//! **Regret.** exp(x − x²) ≤ 1 + x for x ≥ −½ and Σ w_k t_k = 0 give Z ≤ 1, so for every expert k, every stretch of n outcomes
//! and every course of η:
//!
//! ```text
//! Σ x_k ≤ Σ x_k² + n ln 1/(1 − α) + ln 1/w_k,   w_k at its beginning, at least α π_k
//! ```
//!
//! With the prior π_k in place of w_k it holds from the first outcome. So an expert that becomes the best one costs
//! ln 1/(α π_k) until it is followed, after any stream before. A test holds the inequality.

/// α: the share of the weight that returns to the prior with each outcome. An expert that becomes the best one by twice the usual
/// regret has most of the weight within a day of hourly outcomes. Chosen, as the constants below, on validation parts of five
/// panels; between 0.03 and 0.1 their mean loss differs by less than 1 %.
pub const FIXED_SHARE: f64 = 0.06;
/// Outcomes after which the usual size of regrets, and what is known of their squares, have lost half of their weight.
const HALF_LIFE: f64 = 96.0;
/// The largest η.
const ETA_MOST: f64 = 0.5;
/// η² times the squares of regrets, in ln 1/π of the least prior.
const ETA_SCALE: f64 = 2.0;
/// The largest exponent, up or down: one outcome decides nothing, and the bound of the regret needs it.
const EXPONENT_MOST: f64 = 0.5;
/// The most that one outcome adds to the squares of regrets: a jump of demand does not slow down what follows it.
const SQUARE_MOST: f64 = 1.0;

/// Regrets of a mixture to each of its experts, in units of their usual size.
pub type Regrets<const K: usize> = [f64; K];

/// Weights of `K` experts, learned from outcomes.
///
/// ```
/// use forecaster::mixture::Mixture;
///
/// let prior = [0.5, 0.5];
/// let mut mixture = Mixture::new(prior);
/// for _ in 0..48 {
///     // The outcome was above the mixture's 0.9 quantile: the higher expert was right.
///     let regrets = mixture.regrets(&[Some(10.0), Some(20.0)], -0.9);
///     mixture.learn(&regrets, &prior);
/// }
/// assert!(mixture.weights()[1] > 0.9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture<const K: usize> {
    weights: [f64; K],
    /// Sum of the mean sizes of regrets, and how many outcomes it stands for; both fade.
    size: f64,
    outcomes: f64,
    /// Sum over outcomes of the largest square of a regret in units of their size; fades.
    squares: f64,
}

/// Numbers of a state, as they are stored.
#[must_use]
pub const fn stored_numbers(experts: usize) -> usize {
    experts + 3
}

impl<const K: usize> Mixture<K> {
    /// One that knows nothing: the prior, whose shares are positive and sum to 1.
    #[must_use]
    pub const fn new(prior: [f64; K]) -> Self {
        Self { weights: prior, size: 0.0, outcomes: 0.0, squares: 0.0 }
    }

    /// The weights, which sum to 1.
    #[must_use]
    pub const fn weights(&self) -> &[f64; K] {
        &self.weights
    }

    /// The weights among the experts that state something, which sum to 1; `None` where none does.
    #[must_use]
    pub fn weights_among(&self, statements: &[Option<f64>; K]) -> Option<[f64; K]> {
        let stated = |place: usize| statements[place].map_or(0.0, |_| self.weights[place]);
        let all: f64 = (0..K).map(stated).sum();
        (all > 0.0).then(|| std::array::from_fn(|place| stated(place) / all))
    }

    /// The mixture of statements; `None` where there are none.
    #[must_use]
    pub fn mix(&self, statements: &[Option<f64>; K]) -> Option<f64> {
        let weights = self.weights_among(statements)?;
        Some(weights.iter().zip(statements).filter_map(|(weight, stated)| Some(weight * (*stated)?)).sum())
    }

    /// The regrets of one outcome, after which the usual size is known better: `slope` is the derivative of the loss at the
    /// mixture. Experts without a statement have none.
    pub fn regrets(&mut self, statements: &[Option<f64>; K], slope: f64) -> Regrets<K> {
        let Some(mixed) = self.mix(statements) else { return [0.0; K] };
        let raw = statements.map(|stated| stated.map(|stated| slope * (mixed - stated)));
        let count = raw.iter().flatten().count() as f64;
        let fades = fades();
        self.size = self.size * fades + raw.iter().flatten().map(|one| one.abs()).sum::<f64>() / count;
        self.outcomes = self.outcomes * fades + 1.0;
        let usual = self.size / self.outcomes;
        raw.map(|one| one.map_or(0.0, |one| if usual > 0.0 { one / usual } else { 0.0 }))
    }

    /// Moves the weights by regrets, maybe averaged with those of other mixtures. Returns the exponents x_k.
    pub fn learn(&mut self, regrets: &Regrets<K>, prior: &[f64; K]) -> [f64; K] {
        let largest = regrets.iter().map(|one| one.abs()).fold(0.0, f64::max);
        self.squares = self.squares * fades() + largest.powi(2).min(SQUARE_MOST);
        let least_prior = prior.iter().copied().fold(1.0, f64::min);
        let eta = (ETA_SCALE * -least_prior.ln() / (1.0 + self.squares)).sqrt().min(ETA_MOST);
        let eta = if eta * largest > EXPONENT_MOST { EXPONENT_MOST / largest } else { eta };
        let exponents = regrets.map(|one| eta * one);
        let moved: [f64; K] = std::array::from_fn(|k| self.weights[k] * (exponents[k] - exponents[k].powi(2)).exp());
        let all: f64 = moved.iter().sum();
        self.weights = std::array::from_fn(|k| (1.0 - FIXED_SHARE) * moved[k] / all + FIXED_SHARE * prior[k]);
        exponents
    }

    /// The state as numbers, [`stored_numbers`] of them.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> {
        self.weights.into_iter().chain([self.size, self.outcomes, self.squares])
    }

    /// From [`numbers`](Self::numbers); `None` where they are no state.
    pub(crate) fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let (weights, rest) = numbers.split_first_chunk::<K>()?;
        let [size, outcomes, squares] = *rest.first_chunk::<3>()?;
        let are_shares = weights.iter().all(|one| *one > 0.0) && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-6;
        let are_sums = [size, outcomes, squares].iter().all(|one| *one >= 0.0 && one.is_finite());
        (are_shares && are_sums).then_some(Self { weights: *weights, size, outcomes, squares })
    }
}

fn fades() -> f64 {
    0.5_f64.powf(1.0 / HALF_LIFE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::pinball;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const PRIOR: [f64; 4] = [0.7, 0.1, 0.1, 0.1];
    const P: f64 = 0.9;

    /// One outcome: the statements, and what came. Returns the loss of the mixture.
    fn step(mixture: &mut Mixture<4>, statements: [f64; 4], came: f64) -> (f64, [f64; 4]) {
        let statements = statements.map(Some);
        let mixed = mixture.mix(&statements).unwrap();
        let slope = if came > mixed { -P } else { 1.0 - P };
        let regrets = mixture.regrets(&statements, slope);
        (pinball(came, mixed, P), mixture.learn(&regrets, &PRIOR))
    }

    #[test]
    fn a_change_of_the_best_expert_is_followed_within_a_day() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut mixture = Mixture::new(PRIOR);
        let statements = |best: usize| std::array::from_fn(|k| if k == best { 13.0 } else { 30.0 + k as f64 });
        let mut came = || 10.0 + 3.0 * (rng.random::<f64>() - 0.5);
        for _ in 0..500 {
            step(&mut mixture, statements(0), came());
        }
        assert!(mixture.weights()[0] > 0.9, "{:?}", mixture.weights());
        for _ in 0..24 {
            step(&mut mixture, statements(2), came());
        }
        assert!(mixture.weights()[2] > 0.5, "{:?}", mixture.weights());
    }

    #[test]
    fn experts_without_a_statement_have_no_weight_and_lose_none() {
        let mut mixture = Mixture::new(PRIOR);
        let some = [Some(5.0), None, Some(7.0), None];
        let weights = mixture.weights_among(&some).unwrap();
        assert_eq!((weights[1], weights[0] + weights[2]), (0.0, 1.0));
        let regrets = mixture.regrets(&some, 0.1);
        assert_eq!((regrets[1], regrets[3]), (0.0, 0.0));
        assert_eq!(mixture.mix(&[None; 4]), None);
        assert_eq!(mixture.regrets(&[None; 4], 0.1), [0.0; 4]);
    }

    #[test]
    fn equal_statements_move_nothing() {
        let mut mixture = Mixture::new(PRIOR);
        step(&mut mixture, [4.0; 4], 9.0);
        assert!(mixture.weights().iter().zip(PRIOR).all(|(one, prior)| (one - prior).abs() < 1e-12));
    }

    #[test]
    fn a_state_is_its_numbers_and_others_are_refused() {
        let mut mixture = Mixture::new(PRIOR);
        for hour in 0..50 {
            step(&mut mixture, [1.0, 2.0, f64::from(hour % 7), 9.0], f64::from(hour % 5));
        }
        let numbers: Vec<f64> = mixture.numbers().collect();
        assert_eq!(numbers.len(), stored_numbers(4));
        assert_eq!(Mixture::from_numbers(&numbers), Some(mixture));
        for (place, value) in [(0, -0.1), (1, f64::NAN), (4, -1.0), (5, f64::INFINITY)] {
            let mut bad = numbers.clone();
            bad[place] = value;
            assert_eq!(Mixture::<4>::from_numbers(&bad), None, "{place}");
        }
        assert_eq!(Mixture::<4>::from_numbers(&numbers[1..]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        /// The inequality of the module's documentation, on any stretch of any stream.
        #[test]
        fn the_regret_to_every_expert_is_bounded_on_every_stretch(
            stream in prop::collection::vec((prop::array::uniform4(0.0..100.0_f64), 0.0..100.0_f64), 2..120),
            from in 0..60_usize,
        ) {
            let mut mixture = Mixture::new(PRIOR);
            let from = from.min(stream.len() - 1);
            for (statements, came) in &stream[..from] {
                step(&mut mixture, *statements, *came);
            }
            let begin = *mixture.weights();
            let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
            for (place, (statements, came)) in stream[from..].iter().enumerate() {
                let (_, exponents) = step(&mut mixture, *statements, *came);
                for k in 0..4 {
                    sums[k] += exponents[k];
                    squares[k] += exponents[k].powi(2);
                    let share = (place + 1) as f64 * -(1.0 - FIXED_SHARE).ln();
                    let most = squares[k] + share - begin[k].ln();
                    prop_assert!(sums[k] <= most + 1e-9, "{} > {most}", sums[k]);
                    prop_assert!(begin[k] >= FIXED_SHARE * PRIOR[k]);
                }
            }
        }

        #[test]
        fn the_mixture_lies_between_its_experts_and_its_weights_sum_to_one(
            stream in prop::collection::vec((prop::array::uniform4(0.0..1e6_f64), 0.0..1e6_f64), 1..50),
        ) {
            let mut mixture = Mixture::new(PRIOR);
            for (statements, came) in stream {
                let mixed = mixture.mix(&statements.map(Some)).unwrap();
                let [least, most] = [f64::min, f64::max].map(|pick| statements.into_iter().reduce(pick).unwrap());
                prop_assert!((least - 1e-6..=most + 1e-6).contains(&mixed));
                step(&mut mixture, statements, came);
                prop_assert!((mixture.weights().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }
}
