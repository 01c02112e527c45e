//! A mixture of experts, weighed online by the losses of what they stated.
//!
//! Exponential weights with a fixed share (Herbster and Warmuth 1998). The mixture of statements e_k with weights w_k is
//! b = Σ w_k e_k; its loss ℓ is convex, so that ℓ(b) ≤ Σ w_k ℓ(e_k). Losses count in units of the mixture's usual one (L_k), and
//! their mean L̄ = Σ w_k L_k is compared with each:
//!
//! ```text
//! w_k ← (1 − α) w_k exp(x_k) / Z + α π_k,   x_k = η (L̄ − L_k), with η so small that all x_k ≤ 1
//! ```
//!
//! **Regret.** exp(x) ≤ 1 + x + x² for x ≤ 1 and Σ w_k x_k = 0 give Z ≤ 1 + v with v = Σ w_k x_k², so for every expert k, every
//! stretch of n outcomes and every course of η:
//!
//! ```text
//! Σ x_k ≤ Σ v + n ln 1/(1 − α) + ln 1/w_k,   w_k at its beginning, at least α π_k
//! ```
//!
//! With the prior π_k in place of w_k it holds from the first outcome. Where η is constant, the losses of the mixture are at most
//! those of the expert, and 1/η times the right side in usual losses. So an expert that becomes the best one costs ln 1/(α π_k)
//! until it is followed, after any stream before. A test holds the inequality.
//!
//! **Delay.** An outcome of H hours is known H hours after its statement, which D = H − 1 outcomes before it have moved the weights since.
//! Let w' be the weights that stated it, x_k the exponents that it brings, and r = max x_k − min x_k their range. An update by
//! exponents of range r moves at most tanh(r/4) ≤ r/4 of the weight from some experts to others, and the share at most α. So the
//! statement lost at most Σ (w'_k − w_k) (−x_k) ≤ r · Σ_D (r_j/4 + α) more than the weights that learn it, by its exponents, where j are the D outcomes
//! in between:
//!
//! ```text
//! Σ (Σ w'_l (−x_l) + x_k) ≤ Σ v + Σ r Σ_D (r_j/4 + α) + n ln 1/(1 − α) + ln 1/w_k
//! ```
//!
//! Since v ≤ r²/4, delay costs a factor of at most 1 + D in the term of η², as it does for every algorithm that learns late
//! (Weinberger and Ordentlich 2002; Joulani, György and Szepesvári 2013). A second test holds it.
//!
//! **What is cut off.** Exponents are scaled down where one of them would exceed 1. An outcome whose exponents were scaled by s < 1 counts in both
//! inequalities by s alone; its rest, (1 − s) η (L̄ − L_k), adds to the regret as it is.

/// α: the share of the weight that returns to the prior with each outcome. Chosen, as the constants below, on validation parts
/// of public and generated panels, and of groups of their organizations; between 0.002 and 0.015 their mean loss differs by less than 1 %.
pub const FIXED_SHARE: f64 = 0.005;
/// η where it needs not be smaller: an expert that loses half of a usual loss less than the mixture has e times its weight after
/// one outcome. Between 1 and 4 the mean loss differs by less than half a percent.
pub const RATE: f64 = 2.0;
/// Outcomes after which a loss counts half in the usual one.
const HALF_LIFE: f64 = 168.0;
/// The largest exponent up: one outcome decides nothing, and the bound of the regret needs it.
const EXPONENT_MOST: f64 = 1.0;

/// Losses of the experts of a mixture, in units of its usual loss.
pub type Losses<const K: usize> = [f64; K];

/// Weights of `K` experts, learned from outcomes.
///
/// ```
/// use forecaster::mixture::Mixture;
///
/// let prior = [0.5, 0.5];
/// let mut mixture = Mixture::new(prior);
/// for _ in 0..48 {
///     // The outcome was above both: the higher expert lost less.
///     let losses = mixture.in_usual(&[Some(18.0), Some(9.0)]);
///     mixture.learn(&losses, &prior);
/// }
/// assert!(mixture.weights()[1] > 0.9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture<const K: usize> {
    weights: [f64; K],
    /// Sum of the mixture's losses, and the number of outcomes behind it; both fade.
    lost: f64,
    outcomes: f64,
}

/// Numbers of a state, as they are stored.
#[must_use]
pub const fn stored_numbers(experts: usize) -> usize {
    experts + 2
}

/// Of what is there; the weights sum to 1 over it.
fn weighted_mean<const K: usize>(weights: &[f64; K], of: &[Option<f64>; K]) -> f64 {
    weights.iter().zip(of).filter_map(|(weight, one)| Some(weight * (*one)?)).sum()
}

impl<const K: usize> Mixture<K> {
    /// One that knows nothing: the prior, whose shares are at least zero and sum to 1. An expert whose share is zero is never heard.
    #[must_use]
    pub const fn new(prior: [f64; K]) -> Self {
        Self { weights: prior, lost: 0.0, outcomes: 0.0 }
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

    /// The weighted mean of statements, or of losses; `None` where there are none.
    #[must_use]
    pub fn mix(&self, statements: &[Option<f64>; K]) -> Option<f64> {
        Some(weighted_mean(&self.weights_among(statements)?, statements))
    }

    /// The usual loss; zero before any outcome.
    #[must_use]
    pub fn usual(&self) -> f64 {
        if self.outcomes > 0.0 { self.lost / self.outcomes } else { 0.0 }
    }

    /// The losses of one outcome in units of the usual one, which is known better afterwards. An expert without a statement has
    /// the mean loss of the others: it neither gains weight nor loses any.
    pub fn in_usual(&mut self, losses: &[Option<f64>; K]) -> Losses<K> {
        let Some(mean) = self.mix(losses) else { return [0.0; K] };
        let fades = 0.5_f64.powf(1.0 / HALF_LIFE);
        self.lost = self.lost * fades + mean;
        self.outcomes = self.outcomes * fades + 1.0;
        let usual = self.usual();
        losses.map(|loss| if usual > 0.0 { loss.unwrap_or(mean) / usual } else { 0.0 })
    }

    /// Moves the weights by losses, maybe averaged with those of other mixtures. Returns the exponents x_k.
    pub fn learn(&mut self, losses: &Losses<K>, prior: &[f64; K]) -> [f64; K] {
        let mean: f64 = self.weights.iter().zip(losses).map(|(weight, loss)| weight * loss).sum();
        let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
        let rate = if RATE * (mean - best) > EXPONENT_MOST { EXPONENT_MOST / (mean - best) } else { RATE };
        let exponents = losses.map(|loss| rate * (mean - loss));
        let moved: [f64; K] = std::array::from_fn(|k| self.weights[k] * exponents[k].exp());
        let all: f64 = moved.iter().sum();
        self.weights = std::array::from_fn(|k| (1.0 - FIXED_SHARE) * moved[k] / all + FIXED_SHARE * prior[k]);
        exponents
    }

    /// The state as numbers, [`stored_numbers`] of them, of the first so many experts; the others have no weight.
    pub(crate) fn first_numbers(&self, experts: usize) -> impl Iterator<Item = f64> {
        self.weights.into_iter().take(experts).chain([self.lost, self.outcomes])
    }

    /// From [`first_numbers`](Self::first_numbers) of some experts; `None` where they are none. Those that follow, which the program that wrote
    /// them did not know, begin with their part of the prior.
    pub(crate) fn from_first_numbers(numbers: &[f64], prior: &[f64; K]) -> Option<Self> {
        let (weights, sums) = numbers.split_last_chunk::<2>()?;
        let further = prior.get(weights.len()..)?;
        if weights.iter().any(|weight| *weight <= 0.0) {
            return None;
        }
        let left = 1.0 - further.iter().sum::<f64>();
        let all: Vec<f64> = weights.iter().map(|weight| weight * left).chain(further.iter().copied()).collect();
        Self::from_numbers(&[&all[..], sums].concat())
    }

    /// From a weight of each expert and both sums; `None` where they are no state.
    fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let (weights, rest) = numbers.split_first_chunk::<K>()?;
        let [lost, outcomes] = *rest.first_chunk::<2>()?;
        let are_shares = weights.iter().all(|one| *one >= 0.0) && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-6;
        let are_sums = [lost, outcomes].iter().all(|one| *one >= 0.0 && one.is_finite());
        (are_shares && are_sums).then_some(Self { weights: *weights, lost, outcomes })
    }
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
    /// Hours that bounds over four hours share.
    const OVERLAP: f64 = 4.0;

    /// One outcome: the statements, and what came. Returns the loss of the mixture, its usual loss and the exponents.
    fn step(mixture: &mut Mixture<4>, statements: [f64; 4], came: f64, overlap: f64) -> (f64, f64, [f64; 4]) {
        let mixed = mixture.mix(&statements.map(Some)).unwrap();
        let losses = mixture.in_usual(&statements.map(|stated| Some(pinball(came, stated, P))));
        let usual = mixture.usual();
        (pinball(came, mixed, P), usual, mixture.learn(&losses.map(|loss| loss / overlap), &PRIOR))
    }

    #[test]
    fn a_change_of_the_best_expert_is_followed_within_a_day() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut mixture = Mixture::new(PRIOR);
        let statements = |best: usize| std::array::from_fn(|k| if k == best { 13.0 } else { 30.0 + k as f64 });
        let mut came = || 10.0 + 3.0 * (rng.random::<f64>() - 0.5);
        for _ in 0..500 {
            step(&mut mixture, statements(0), came(), OVERLAP);
        }
        assert!(mixture.weights()[0] > 0.9, "{:?}", mixture.weights());
        for _ in 0..24 {
            step(&mut mixture, statements(2), came(), OVERLAP);
        }
        assert!(mixture.weights()[2] > 0.5, "{:?}", mixture.weights());
    }

    #[test]
    fn experts_without_a_statement_have_no_weight_and_lose_none() {
        let mut mixture = Mixture::new(PRIOR);
        let some = [Some(5.0), None, Some(7.0), None];
        let weights = mixture.weights_among(&some).unwrap();
        assert_eq!((weights[1], weights[0] + weights[2]), (0.0, 1.0));
        let losses = mixture.in_usual(&some);
        assert_eq!(losses[1], 1.0, "the usual loss, after one outcome");
        mixture.learn(&losses, &PRIOR);
        let [stated, silent, worse, _] = *mixture.weights();
        assert!(stated / PRIOR[0] > silent / PRIOR[1] && silent > worse, "{:?}", mixture.weights());
        assert_eq!(mixture.mix(&[None; 4]), None);
        assert_eq!(mixture.in_usual(&[None; 4]), [0.0; 4]);
    }

    #[test]
    fn equal_statements_move_nothing() {
        let mut mixture = Mixture::new(PRIOR);
        step(&mut mixture, [4.0; 4], 9.0, 1.0);
        step(&mut mixture, [4.0; 4], 4.0, 1.0);
        assert!(mixture.weights().iter().zip(PRIOR).all(|(one, prior)| (one - prior).abs() < 1e-12));
    }

    #[test]
    fn a_state_is_its_numbers_and_others_are_refused() {
        let mut mixture = Mixture::new(PRIOR);
        for hour in 0..50 {
            step(&mut mixture, [1.0, 2.0, f64::from(hour % 7), 9.0], f64::from(hour % 5), 1.0);
        }
        let numbers: Vec<f64> = mixture.first_numbers(4).collect();
        assert_eq!(numbers.len(), stored_numbers(4));
        assert_eq!(Mixture::from_numbers(&numbers), Some(mixture));
        for (place, value) in [(0, -0.1), (1, f64::NAN), (4, -1.0), (5, f64::INFINITY)] {
            let mut bad = numbers.clone();
            bad[place] = value;
            assert_eq!(Mixture::<4>::from_numbers(&bad), None, "{place}");
        }
        assert_eq!(Mixture::<4>::from_numbers(&numbers[1..]), None);
    }

    #[test]
    fn experts_that_stored_weights_did_not_know_begin_with_their_part_of_the_prior() {
        let before = [0.5, 0.3, 0.2, 7.0, 3.0];
        let read = Mixture::from_first_numbers(&before, &PRIOR).unwrap();
        let weights = [0.45, 0.27, 0.18, 0.1];
        assert!(read.weights().iter().zip(weights).all(|(one, wanted)| (one - wanted).abs() < 1e-12), "{read:?}");
        // One that is never heard takes nothing.
        assert_eq!(
            Mixture::from_first_numbers(&before, &[0.5, 0.3, 0.2, 0.0]).unwrap().weights(),
            &[0.5, 0.3, 0.2, 0.0]
        );
        let whole = [0.4, 0.3, 0.2, 0.1, 7.0, 3.0];
        assert_eq!(Mixture::from_first_numbers(&whole, &PRIOR).unwrap().weights(), &whole[..4]);
        for bad in [&before[1..], &[1.0], &[0.5, 0.5, 0.0, 7.0, 3.0], &[0.2; 8]] {
            assert_eq!(Mixture::from_first_numbers(bad, &PRIOR), None, "{bad:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        /// The inequality of the module's documentation, on any stretch of any stream, and what it says of losses.
        #[test]
        fn the_regret_to_every_expert_is_bounded_on_every_stretch(
            stream in prop::collection::vec((prop::array::uniform4(0.0..100.0_f64), 0.0..100.0_f64), 2..120),
            from in 0..60_usize,
            overlap in 1.0..24.0_f64,
        ) {
            let mut mixture = Mixture::new(PRIOR);
            let from = from.min(stream.len() - 1);
            for (statements, came) in &stream[..from] {
                step(&mut mixture, *statements, *came, overlap);
            }
            let begin = *mixture.weights();
            let (mut sums, mut squares) = ([0.0; 4], 0.0);
            for (place, (statements, came)) in stream[from..].iter().enumerate() {
                let weights = *mixture.weights();
                let (lost, usual, exponents) = step(&mut mixture, *statements, *came, overlap);
                squares += weights.iter().zip(exponents).map(|(weight, x)| weight * x.powi(2)).sum::<f64>();
                for k in 0..4 {
                    sums[k] += exponents[k];
                    let share = (place + 1) as f64 * -(1.0 - FIXED_SHARE).ln();
                    let most = squares + share - begin[k].ln();
                    prop_assert!(sums[k] <= most + 1e-9, "{} > {most}", sums[k]);
                    prop_assert!(begin[k] >= FIXED_SHARE * PRIOR[k]);
                    // At most the loss of the expert, and what the exponent says, in usual losses.
                    let rate = if exponents.iter().any(|x| (x - EXPONENT_MOST).abs() < 1e-12) { continue } else { RATE };
                    let expert = pinball(*came, statements[k], P);
                    prop_assert!(lost <= expert + exponents[k] / rate * usual * overlap + 1e-6);
                }
            }
        }

        /// The inequality of delay, on any stream, for the weights that made the statements.
        #[test]
        fn the_regret_to_every_expert_is_bounded_where_outcomes_are_known_late(
            stream in prop::collection::vec((prop::array::uniform4(0.0..100.0_f64), 0.0..100.0_f64), 2..120),
            delay in 0..24_usize,
        ) {
            let mut mixture = Mixture::new(PRIOR);
            let overlap = delay as f64 + 1.0;
            // Weights by the number of outcomes that were learned, and the range of the exponents of each.
            let (mut known, mut ranges) = (vec![PRIOR], Vec::new());
            let (mut sums, mut squares, mut price) = ([0.0; 4], 0.0, 0.0);
            for (place, (statements, came)) in stream.iter().enumerate() {
                let (stated_by, learned_by) = (known[place.saturating_sub(delay)], known[place]);
                let (_, _, exponents) = step(&mut mixture, *statements, *came, overlap);
                known.push(*mixture.weights());
                let mean = |weights: [f64; 4], of: &dyn Fn(f64) -> f64| -> f64 {
                    weights.iter().zip(exponents).map(|(weight, x)| weight * of(x)).sum()
                };
                let range = exponents.into_iter().fold(f64::MIN, f64::max) - exponents.into_iter().fold(f64::MAX, f64::min);
                squares += mean(learned_by, &|x| x * x);
                price += range * ranges.iter().rev().take(delay).map(|one: &f64| one / 4.0 + FIXED_SHARE).sum::<f64>();
                ranges.push(range);
                for k in 0..4 {
                    sums[k] += exponents[k] - mean(stated_by, &|x| x);
                    let share = (place + 1) as f64 * -(1.0 - FIXED_SHARE).ln();
                    let most = squares + price + share - PRIOR[k].ln();
                    prop_assert!(sums[k] <= most + 1e-9, "{} > {most}", sums[k]);
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
                step(&mut mixture, statements, came, 1.0);
                prop_assert!((mixture.weights().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }
}
