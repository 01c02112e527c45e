//! Correlations from few samples, shrunk toward their mean.

/// Below this variance a series of residuals does not move, and correlates with nothing.
const LEAST_VARIANCE: f64 = 1e-12;

/// A correlation matrix, row-major, and the mean of its off-diagonal entries before shrinking.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlation {
    /// Correlations, row by row.
    pub matrix: Vec<f64>,
    /// Mean correlation of all pairs.
    pub mean: f64,
}

/// Pearson correlations of `samples[variable][sample]`, shrunk toward their mean with the intensity of Schäfer and
/// Strimmer (2005): Σ Var(r) / Σ (r − r̄)², where `independent` says how many of the samples count as independent.
pub fn correlation(samples: &[Vec<f64>], independent: f64) -> Correlation {
    let size = samples.len();
    let raw = pearson(samples);
    let off: Vec<f64> = (0..size * size).filter(|k| k / size != k % size).map(|k| raw[k]).collect();
    if off.is_empty() {
        return Correlation { matrix: raw, mean: 0.0 };
    }
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    let uncertain: f64 = off.iter().map(|r| (1.0 - r * r).powi(2) / (independent - 1.0).max(1.0)).sum();
    let spread: f64 = off.iter().map(|r| (r - mean).powi(2)).sum();
    let intensity = if spread > 0.0 { (uncertain / spread).min(1.0) } else { 1.0 };
    let shrink = |k: usize| {
        if k / size == k % size { 1.0 } else { (1.0 - intensity) * raw[k] + intensity * mean }
    };
    Correlation { matrix: (0..size * size).map(shrink).collect(), mean }
}

fn pearson(samples: &[Vec<f64>]) -> Vec<f64> {
    let centred: Vec<Vec<f64>> = samples.iter().map(|values| centre(values)).collect();
    let size = samples.len();
    let mut matrix = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size {
            matrix[row * size + column] = if row == column { 1.0 } else { product(&centred[row], &centred[column]) };
        }
    }
    matrix
}

/// Centred and scaled to unit length; zero where the values do not move.
fn centre(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let scale = if squares > LEAST_VARIANCE { 1.0 / squares.sqrt() } else { 0.0 };
    values.iter().map(|value| (value - mean) * scale).collect()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>().clamp(-1.0, 1.0)
}

/// The correlation of two lists of values; zero where one of them does not move.
pub fn pair(a: &[f64], b: &[f64]) -> f64 {
    product(&centre(a), &centre(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_never_moves_correlates_with_nothing() {
        let correlation = correlation(&[vec![1.0, 2.0, 3.0], vec![5.0; 3]], 3.0);
        assert_eq!(correlation.matrix, [1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn few_samples_are_shrunk_to_the_mean_and_many_are_left() {
        let wave = |shift: f64| (0..48).map(|t| (f64::from(t) * 0.7 + shift).sin()).collect::<Vec<_>>();
        let samples = [wave(0.0), wave(0.3), wave(1.5)];
        let raw = pearson(&samples);
        let few = correlation(&samples, 2.0);
        assert!((few.matrix[1] - few.mean).abs() < 1e-12, "two independent samples say nothing of single pairs");
        let many = correlation(&samples, 1e9);
        assert!((many.matrix[1] - raw[1]).abs() < 1e-6);
    }

    /// golden/bound.py: numpy, forty samples of three variables.
    #[test]
    fn the_intensity_agrees_with_the_reference() {
        let text = include_str!("../../golden/correlated.csv");
        let column = |k: usize| text.lines().map(|l| l.split(',').nth(k).unwrap().parse().unwrap()).collect();
        let shrunk = correlation(&[column(0), column(1), column(2)], 40.0).matrix;
        for (place, expected) in
            [(1, 0.171_421_108_309_016_9), (2, 0.102_650_752_332_781_23), (5, 0.169_339_236_068_801_39)]
        {
            assert!((shrunk[place] - expected).abs() < 1e-9, "{place}: {}", shrunk[place]);
        }
    }
}
