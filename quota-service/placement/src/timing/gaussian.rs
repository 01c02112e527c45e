//! A Gaussian process (MacKay 1998): what is known of a function from noisy values of it.
//!
//! Values are standardized; the kernel is the squared exponential with a length for each input, as in BoTorch's
//! `SingleTaskGP`, which Lazer's authors used (§5.1), and the prior of lengths and noise is BoTorch's, too.

use super::normal::Belief;

/// Inputs of the deferral: X, and the four of Eq. 5.
pub const INPUTS: usize = 5;

/// The parameters of a kernel. Logarithms, because only ratios matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hyperparameters {
    /// Logarithms of the length scales, one for each input.
    pub log_lengths: [f64; INPUTS],
    /// Noise variance over signal variance.
    pub log_noise: f64,
}

impl Default for Hyperparameters {
    fn default() -> Self {
        Self { log_lengths: [LENGTH_PRIOR.0; INPUTS], log_noise: NOISE_PRIOR.0 }
    }
}

/// Mean and deviation of the logarithm of a length: √2 + ln(d)/2 and √3 (Hvarfner et al. 2024, the default of BoTorch
/// since 0.12), here for d = 5.
const LENGTH_PRIOR: (f64, f64) = (2.218_932_518_592_3, 1.732_050_807_568_877_2);
/// The same of the noise.
const NOISE_PRIOR: (f64, f64) = (-4.0, 1.0);
/// A hundredth of the signal: what comes after a decision is never certain, even where all values seen lie on a line.
const LOG_NOISE_LEAST: f64 = -4.6;
/// Added to the diagonal, for points that are alike.
const JITTER: f64 = 1e-8;

/// A function known at some points, with what its values are believed to be elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Gaussian {
    hyper: Hyperparameters,
    points: Vec<[f64; INPUTS]>,
    values: Vec<f64>,
    /// Rows of the lower triangle of the Cholesky factor of (kernel + noise).
    factor: Vec<Vec<f64>>,
    /// (kernel + noise)⁻¹ × standardized values.
    weights: Vec<f64>,
    /// Of the values.
    mean: f64,
    stddev: f64,
    /// Signal variance of the standardized values that makes them likeliest.
    signal: f64,
}

fn correlation(hyper: &Hyperparameters, a: &[f64], b: &[f64], first: usize) -> f64 {
    let scaled = a.iter().zip(b).zip(&hyper.log_lengths[first..]).map(|((a, b), log)| {
        let apart = (a - b) * (-log).exp();
        apart * apart
    });
    (-0.5 * scaled.sum::<f64>()).exp()
}

/// Σ a b over the shorter of the two, in eight sums that a processor forms at once; always in the same order.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let length = a.len().min(b.len());
    let (a, b) = (a[..length].chunks_exact(8), b[..length].chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The next row of a Cholesky factor; `None` where the matrix would not be positive definite.
fn factor_row(factor: &[Vec<f64>], mut row: Vec<f64>, diagonal: f64) -> Option<Vec<f64>> {
    debug_assert_eq!(row.len(), factor.len(), "a row has a value for each row above it");
    let mut left = diagonal;
    for (column, above) in factor.iter().enumerate() {
        row[column] = (row[column] - dot(&above[..column], &row)) / above[column];
        left -= row[column] * row[column];
    }
    (left > 0.0).then(|| {
        row.push(left.sqrt());
        row
    })
}

/// Solves factor × x = b.
fn forward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    debug_assert_eq!(factor.len(), b.len(), "one equation for each value");
    let mut x: Vec<f64> = Vec::with_capacity(b.len());
    for (row, b) in factor.iter().zip(b) {
        x.push((b - dot(row, &x)) / row[x.len()]);
    }
    x
}

/// Solves factorᵀ × x = b.
fn backward(factor: &[Vec<f64>], mut x: Vec<f64>) -> Vec<f64> {
    debug_assert_eq!(factor.len(), x.len(), "one equation for each value");
    for row in (0..x.len()).rev() {
        x[row] /= factor[row][row];
        let solved = x[row];
        for (x, a) in x[..row].iter_mut().zip(&factor[row]) {
            *x -= a * solved;
        }
    }
    x
}

impl Gaussian {
    /// A process without samples.
    #[must_use]
    pub fn new(hyper: Hyperparameters) -> Self {
        Self { hyper, stddev: 1.0, signal: 1.0, ..Self::default() }
    }

    /// Number of samples.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether it has no samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Deviation of the values seen: the unit of [`Slice::belief`].
    #[must_use]
    pub const fn stddev(&self) -> f64 {
        self.stddev
    }

    /// Learns a value; in quadratic time.
    pub fn learn(&mut self, point: [f64; INPUTS], value: f64) {
        debug_assert!(value.is_finite() && point.iter().all(|at| at.is_finite()), "a sample is finite");
        let row = self.points.iter().map(|known| correlation(&self.hyper, known, &point, 0)).collect();
        let diagonal = 1.0 + self.hyper.log_noise.exp() + JITTER;
        // The noise keeps the diagonal apart from the rest; what rounding could still break is not learned.
        let Some(row) = factor_row(&self.factor, row, diagonal) else { return };
        self.factor.push(row);
        self.points.push(point);
        self.values.push(value);
        self.weigh();
    }

    /// Forgets the oldest values, so that at most so many are left; in cubic time.
    pub fn keep_latest(&mut self, count: usize) {
        let gone = self.len().saturating_sub(count);
        self.points.drain(..gone);
        self.values.drain(..gone);
        if let Some(rest) = self.under(self.hyper) {
            *self = rest;
        }
        debug_assert!(self.len() <= count, "the newest samples stay");
    }

    /// Standardizes the values again, and weighs the points by them.
    fn weigh(&mut self) {
        let count = self.values.len() as f64;
        self.mean = self.values.iter().sum::<f64>() / count;
        let square = self.values.iter().map(|value| (value - self.mean) * (value - self.mean)).sum::<f64>();
        self.stddev = if square > 0.0 { (square / (count - 1.0).max(1.0)).sqrt() } else { 1.0 };
        let standard: Vec<f64> = self.values.iter().map(|value| (value - self.mean) / self.stddev).collect();
        let half = forward(&self.factor, &standard);
        let fit = half.iter().map(|part| part * part).sum::<f64>() / count;
        self.signal = if fit > 0.0 { fit } else { 1.0 };
        self.weights = backward(&self.factor, half);
        debug_assert_eq!(self.weights.len(), self.points.len(), "a weight for each sample");
        debug_assert!(self.stddev > 0.0 && self.signal > 0.0, "values are divided by both");
    }

    /// The same points under other hyperparameters; `None` where they cannot be distinguished then.
    fn under(&self, hyper: Hyperparameters) -> Option<Self> {
        let mut other = Self { hyper, factor: Vec::with_capacity(self.len()), ..Self::new(hyper) };
        let diagonal = 1.0 + hyper.log_noise.exp() + JITTER;
        for (count, point) in self.points.iter().enumerate() {
            let row = self.points[..count].iter().map(|known| correlation(&hyper, known, point, 0)).collect();
            other.factor.push(factor_row(&other.factor, row, diagonal)?);
        }
        other.points.clone_from(&self.points);
        other.values.clone_from(&self.values);
        other.weigh();
        Some(other)
    }

    /// Logarithm of how likely values and hyperparameters are, up to a constant; the signal variance is at its best
    /// (Rasmussen and Williams 2006, Eq. 5.8).
    #[must_use]
    pub fn log_posterior(&self) -> f64 {
        let count = self.len() as f64;
        let determinant: f64 = self.factor.iter().enumerate().map(|(row, part)| part[row].ln()).sum();
        let prior = |at: f64, (mean, stddev): (f64, f64)| -0.5 * ((at - mean) / stddev).powi(2);
        let lengths: f64 = self.hyper.log_lengths.iter().map(|log| prior(*log, LENGTH_PRIOR)).sum();
        lengths + prior(self.hyper.log_noise, NOISE_PRIOR) - determinant - 0.5 * count * self.signal.ln()
    }

    /// Chooses the hyperparameters under which the values are likeliest: a pattern search (Hooke and Jeeves 1961), which
    /// needs no gradient and repeats itself, from where they are and from where all inputs matter and values are noisy:
    /// one start alone may stay where all is noise. In cubic time for each of about two hundred trials.
    pub fn fit(&mut self) {
        let all_matter = Hyperparameters { log_lengths: [-1.0; INPUTS], log_noise: 0.0 };
        let other = self.under(all_matter).map(Self::climbed);
        let own = std::mem::take(self).climbed();
        *self = match other {
            Some(other) if other.log_posterior() > own.log_posterior() => other,
            _ => own,
        };
    }

    fn climbed(mut self) -> Self {
        let mut best = self.log_posterior();
        let start = best;
        for step in [1.0, 0.5, 0.25] {
            for part in 0..=INPUTS {
                for by in [step, -step] {
                    while let Some((other, value)) = self.stepped(part, by).filter(|(_, value)| *value > best + 1e-3) {
                        (self, best) = (other, value);
                    }
                }
            }
        }
        debug_assert!(best >= start || start.is_nan(), "a climb never goes down");
        self
    }

    fn stepped(&self, part: usize, by: f64) -> Option<(Self, f64)> {
        let mut hyper = self.hyper;
        let at = if part < INPUTS { &mut hyper.log_lengths[part] } else { &mut hyper.log_noise };
        *at += by;
        let at = *at;
        let is_sane = hyper.log_noise >= LOG_NOISE_LEAST && at.abs() < 12.0;
        let other = is_sane.then(|| self.under(hyper)).flatten()?;
        let value = other.log_posterior();
        Some((other, value))
    }

    /// The belief along the first input, with the others held.
    #[must_use]
    pub fn along(&self, held: &[f64; INPUTS - 1]) -> Slice<'_> {
        let factor = |point: &[f64; INPUTS]| self.signal * correlation(&self.hyper, &point[1..], held, 1);
        Slice {
            of: self,
            held: self.points.iter().map(factor).collect(),
            rate: (-2.0 * self.hyper.log_lengths[0]).exp(),
        }
    }
}

/// A line through a Gaussian process. The kernel is a product, so what the held inputs give is known once.
#[derive(Debug)]
pub struct Slice<'a> {
    of: &'a Gaussian,
    held: Vec<f64>,
    /// 1 / length² of the first input.
    rate: f64,
}

impl Slice<'_> {
    /// Covariances with the points, and their slopes.
    fn covariances(&self, at: f64) -> (Vec<f64>, Vec<f64>) {
        let each = self.of.points.iter().zip(&self.held).map(|(point, held)| {
            let apart = at - point[0];
            let covariance = held * (-0.5 * apart * apart * self.rate).exp();
            (covariance, -apart * self.rate * covariance)
        });
        each.unzip()
    }

    /// The mean and its slope, standardized; in linear time.
    #[must_use]
    pub fn mean(&self, at: f64) -> (f64, f64) {
        let each = self.of.points.iter().zip(&self.held).zip(&self.of.weights);
        let (mean, slope) = each.fold((0.0, 0.0), |(mean, slope), ((point, held), weight)| {
            let apart = at - point[0];
            let covariance = held * (-0.5 * apart * apart * self.rate).exp() * weight;
            (mean + covariance, slope - apart * self.rate * covariance)
        });
        (mean / self.of.signal, slope / self.of.signal)
    }

    /// Mean and deviation of the function itself, without noise, standardized; in quadratic time.
    #[must_use]
    pub fn belief(&self, at: f64) -> Belief {
        let (covariances, slopes) = self.covariances(at);
        let signal = self.of.signal;
        let (mean, mean_slope) = (dot(&covariances, &self.of.weights), dot(&slopes, &self.of.weights));
        let (half, half_slope) = (forward(&self.of.factor, &covariances), forward(&self.of.factor, &slopes));
        let stddev = (signal - dot(&half, &half) / signal).max(1e-12).sqrt();
        let stddev_slope = -dot(&half, &half_slope) / signal / stddev;
        debug_assert!(stddev > 0.0, "a value elsewhere is never certain");
        Belief { mean: mean / signal, mean_slope: mean_slope / signal, stddev, stddev_slope }
    }

    /// The lowest mean at these places, standardized: what is to be improved on where values are noisy.
    #[must_use]
    pub fn best(&self, places: impl IntoIterator<Item = f64>) -> f64 {
        places.into_iter().map(|at| self.mean(at).0).fold(f64::INFINITY, f64::min)
    }

    /// As a value of the function.
    #[must_use]
    pub fn value(&self, standard: f64) -> f64 {
        self.of.mean + standard * self.of.stddev
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(log_noise: f64) -> Gaussian {
        Gaussian::new(Hyperparameters { log_lengths: [0.0; INPUTS], log_noise })
    }

    fn point(at: f64) -> [f64; INPUTS] {
        [at, 0.0, 0.0, 0.0, 0.0]
    }

    #[test]
    fn two_points_give_the_posterior_that_one_computes_by_hand() {
        let mut process = plain(0.1_f64.ln());
        process.learn(point(0.0), 1.0);
        process.learn(point(1.0), 3.0);
        // Standardized: ∓1/√2. K = [[1.1, ρ], [ρ, 1.1]] with ρ = e^(−1/2); the signal variance is yᵀK⁻¹y / 2.
        let (rho, y) = ((-0.5_f64).exp(), std::f64::consts::FRAC_1_SQRT_2);
        let diagonal = 1.1 + JITTER;
        let weight = y / (diagonal - rho);
        let signal = weight * y;
        assert!((process.signal - signal).abs() < 1e-12);
        let line = process.along(&[0.0; 4]);
        let at: f64 = 0.25;
        let (to_first, to_second) = ((-0.5 * at * at).exp(), (-0.5 * (1.0 - at) * (1.0 - at)).exp());
        let belief = line.belief(at);
        assert!((belief.mean - weight * (to_second - to_first)).abs() < 1e-12);
        let determinant = diagonal * diagonal - rho * rho;
        let explained =
            (diagonal * (to_first * to_first + to_second * to_second) - 2.0 * rho * to_first * to_second) / determinant;
        assert!((belief.stddev * belief.stddev - signal * (1.0 - explained)).abs() < 1e-12);
        assert!((line.value(belief.mean) - (2.0 + 2.0_f64.sqrt() * belief.mean)).abs() < 1e-12);
        let (mean, slope) = line.mean(at);
        assert!((mean - belief.mean).abs() < 1e-12 && (slope - belief.mean_slope).abs() < 1e-12);
    }

    #[test]
    fn slopes_are_those_of_the_values_and_a_second_factor_is_the_same() {
        let mut process = plain(-4.0);
        for step in 0..20 {
            let at = f64::from(step) / 20.0;
            process.learn([at, (3.0 * at).sin(), at * at, 0.3, 0.0], (6.0 * at).cos());
        }
        let line = process.along(&[0.2, 0.1, 0.3, 0.0]);
        for at in [0.05, 0.4, 0.93] {
            let (belief, up, down) = (line.belief(at), line.belief(at + 1e-6), line.belief(at - 1e-6));
            assert!((belief.mean_slope - (up.mean - down.mean) / 2e-6).abs() < 1e-5);
            assert!((belief.stddev_slope - (up.stddev - down.stddev) / 2e-6).abs() < 1e-5);
        }
        let mut again = process.under(process.hyper).unwrap();
        assert_eq!(again.along(&[0.2, 0.1, 0.3, 0.0]).belief(0.4), line.belief(0.4));
        again.keep_latest(2);
        let mut two = plain(-4.0);
        for (point, value) in process.points.iter().zip(&process.values).skip(18) {
            two.learn(*point, *value);
        }
        assert_eq!(again.along(&[0.0; 4]).belief(0.4), two.along(&[0.0; 4]).belief(0.4));
    }

    #[test]
    fn a_fit_finds_which_inputs_matter_and_never_makes_the_values_less_likely() {
        let (mut process, mut draw) = (Gaussian::new(Hyperparameters::default()), crate::draw::Draw::new(3));
        for _ in 0..60 {
            let point = std::array::from_fn(|_| draw.unit());
            process.learn(point, (5.0 * point[0]).sin() + 0.5 * point[2] + 0.05 * draw.unit());
        }
        let before = process.log_posterior();
        process.fit();
        assert!(process.log_posterior() > before + 10.0);
        let lengths = process.hyper.log_lengths;
        assert!(lengths[0] < 0.0 && lengths[0] < lengths[2] && lengths[2] < lengths[1].min(lengths[3]), "{lengths:?}");
    }
}
