//! The moving average that parts trend from cycle (Eqs. 1 and 2), as a matrix.

use super::config::Padding;
use candle_core::{Device, Tensor};

/// The matrix M, `[length, length]`, row-major, with trend = M · window.
///
/// As a matrix the average can be folded into the heads: M is fixed, so the decomposition costs nothing when predicting.
pub fn moving_average(length: usize, width: usize, padding: Padding) -> Vec<f32> {
    let mut matrix = vec![0.0; length * length];
    let half = width as isize / 2;
    for row in 0..length {
        for offset in -half..=half {
            let column = padded(row as isize + offset, length as isize, padding);
            matrix[row * length + column] += 1.0 / width as f32;
        }
    }
    matrix
}

/// The place inside the window that stands for `place`, which may lie outside.
fn padded(place: isize, length: isize, padding: Padding) -> usize {
    let last = length - 1;
    let inside = match padding {
        Padding::Edge => place.clamp(0, last),
        Padding::Reflection if last == 0 => 0,
        Padding::Reflection => {
            let folded = place.rem_euclid(2 * last);
            if folded > last { 2 * last - folded } else { folded }
        }
    };
    inside as usize
}

/// M transposed, as a tensor `[length, length]`.
pub fn transposed(length: usize, width: usize, padding: Padding) -> Result<Tensor, candle_core::Error> {
    Tensor::from_vec(moving_average(length, width, padding), (length, length), &Device::Cpu)?.t()?.contiguous()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(window: &[f32], width: usize, padding: Padding) -> Vec<f32> {
        let matrix = moving_average(window.len(), width, padding);
        matrix.chunks(window.len()).map(|row| row.iter().zip(window).map(|(m, x)| m * x).sum()).collect()
    }

    /// numpy.pad(…, mode="reflect" or "edge") and a running mean of three.
    #[test]
    fn the_ends_are_reflected_as_the_paper_says_or_repeated_as_the_released_code_does() {
        let window = [3.0, 6.0, 9.0, 0.0];
        assert_eq!(average(&window, 3, Padding::Reflection), [5.0, 6.0, 5.0, 6.0]);
        assert_eq!(average(&window, 3, Padding::Edge), [4.0, 6.0, 5.0, 3.0]);
    }

    #[test]
    fn a_constant_is_all_trend_even_in_a_window_shorter_than_the_average() {
        for padding in [Padding::Reflection, Padding::Edge] {
            for value in average(&[2.0; 5], 25, padding) {
                assert!((value - 2.0).abs() < 1e-5);
            }
        }
    }
}
