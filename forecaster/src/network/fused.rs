//! Operations between the products of a network, each in one pass: on a CPU, candle's operations of one kind at a time write
//! and read every intermediate once more.

use candle_core::{Device, Tensor};
use pulp::{Simd, WithSimd};

/// Values as a matrix of so many columns.
///
/// # Errors
/// They are no whole number of rows.
pub fn matrix(values: Vec<f32>, columns: usize) -> Result<Tensor, candle_core::Error> {
    let rows = values.len() / columns.max(1);
    Tensor::from_vec(values, (rows, columns), &Device::Cpu)
}

/// The product of two matrices, row after row.
///
/// # Errors
/// Their shapes do not fit.
pub fn product(left: &Tensor, right: &Tensor) -> Result<Vec<f32>, candle_core::Error> {
    left.matmul(right)?.flatten_all()?.to_vec1()
}

/// Adds values place by place.
pub fn add(sums: &mut [f32], values: &[f32]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// Multiplies by values place by place.
pub fn multiply(values: &mut [f32], factors: &[f32]) {
    for (value, factor) in values.iter_mut().zip(factors) {
        *value *= factor;
    }
}

/// Adds a row to every row.
pub fn add_row(sums: &mut [f32], row: &[f32]) {
    for sums in sums.chunks_exact_mut(row.len()) {
        add(sums, row);
    }
}

/// Adds a bias and the row of its series to each row.
///
/// # Errors
/// A place is that of no series.
pub fn add_series(sums: &mut [f32], bias: &[f32], of_series: &[f32], places: &[u32]) -> Result<(), candle_core::Error> {
    let width = bias.len();
    for (sums, place) in sums.chunks_exact_mut(width).zip(places) {
        let Some(row) = of_series.get(*place as usize * width..).and_then(|rest| rest.get(..width)) else {
            candle_core::bail!("there is no series {place} among {}", of_series.len() / width)
        };
        for ((sum, bias), value) in sums.iter_mut().zip(bias).zip(row) {
            *sum += bias + value;
        }
    }
    Ok(())
}

/// Sums of the columns.
pub fn column_sums(values: &[f32], columns: usize) -> Vec<f32> {
    let mut sums = vec![0.0; columns];
    values.chunks_exact(columns).for_each(|row| add(&mut sums, row));
    sums
}

/// Sums of the rows of each series: `[series, columns]`.
pub fn series_sums(values: &[f32], columns: usize, places: &[u32], series: usize) -> Vec<f32> {
    let mut sums = vec![0.0; series * columns];
    for (row, place) in values.chunks_exact(columns).zip(places) {
        add(&mut sums[*place as usize * columns..][..columns], row);
    }
    sums
}

// Structures and no closures: the code of a closure may be left outside, for the narrowest registers.
struct Silu<'a>(&'a mut [f32]);
struct SiluWithSlopes<'a>(&'a mut [f32], &'a mut [f32]);
struct DrawIn<'a>(&'a mut [f32]);

impl WithSimd for Silu<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for value in self.0 {
            *value *= sigmoid(*value);
        }
    }
}

impl WithSimd for SiluWithSlopes<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (value, factor) in self.0.iter_mut().zip(self.1) {
            let share = sigmoid(*value);
            let slope = share * (1.0 + *value * (1.0 - share));
            *value *= share * *factor;
            *factor *= slope;
        }
    }
}

impl WithSimd for DrawIn<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for value in self.0 {
            *value = ln(1.0 + value.abs()).copysign(*value);
        }
    }
}

/// x σ(x) in place.
pub fn silu(values: &mut [f32]) {
    pulp::Arch::new().dispatch(Silu(values));
}

/// The same but for rounding, for the registers of the caller: products and sums are made in one step.
#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
pub fn silu_in_few_steps(values: &mut [f32]) {
    for value in values {
        *value /= 1.0 + exp_in_few_steps(-*value);
    }
}

/// x σ(x) times a factor in place; the factors become what their derivatives are.
pub fn silu_with_slopes(values: &mut [f32], factors: &mut [f32]) {
    pulp::Arch::new().dispatch(SiluWithSlopes(values, factors));
}

#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
fn sigmoid(value: f32) -> f32 {
    1.0 / (1.0 + exp(-value))
}

/// eˣ to a few units in the last place, by arithmetic that the compiler does for many values at once: 2 to the nearest whole
/// number through the exponent's bits, the rest by its series. Below -87 and above 88 it stays what it is there.
#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
fn exp(value: f32) -> f32 {
    let value = value.clamp(-87.0, 88.0);
    let shifted = value * std::f32::consts::LOG2_E + ROUNDING;
    let whole = shifted - ROUNDING;
    let rest = value - whole * LN_2[0] - whole * LN_2[1];
    let mantissa = SERIES.into_iter().fold(0.0, |sum, factor| sum * rest + factor);
    mantissa * power_of_two(shifted)
}

/// The same, where a product and a sum are one operation.
#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
pub fn exp_in_few_steps(value: f32) -> f32 {
    let value = value.clamp(-87.0, 88.0);
    let shifted = value.mul_add(std::f32::consts::LOG2_E, ROUNDING);
    let whole = shifted - ROUNDING;
    let rest = whole.mul_add(-LN_2[1], whole.mul_add(-LN_2[0], value));
    let [first, series @ ..] = SERIES;
    let mut mantissa = first;
    for factor in series {
        mantissa = mantissa.mul_add(rest, factor);
    }
    mantissa * power_of_two(shifted)
}

/// Grows as the logarithm of large values and leaves small ones nearly as they are, sign kept; as [`drawn_in`](super::drawn_in) but
/// for rounding.
pub fn draw_in(values: &mut [f32]) {
    pulp::Arch::new().dispatch(DrawIn(values));
}

/// The logarithm of a positive number, by arithmetic that the compiler does for many values at once: that of the power of two in
/// the exponent's bits, and of the rest m between √½ and √2 as 2 artanh((m − 1) / (m + 1)), by its series.
#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
fn ln(value: f32) -> f32 {
    let least = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let power = value.to_bits().wrapping_sub(least).cast_signed() >> 23;
    let rest = f32::from_bits(value.to_bits().wrapping_sub((power << 23).cast_unsigned()));
    let share = (rest - 1.0) / (rest + 1.0);
    let square = share * share;
    let series = (((square / 9.0 + 1.0 / 7.0) * square + 1.0 / 5.0) * square + 1.0 / 3.0) * square;
    let power = power as f32;
    power * LN_2[0] + (2.0 * (share * series + share) + power * LN_2[1])
}

/// Adding and subtracting this rounds to whole numbers.
const ROUNDING: f32 = 12_582_912.0;
/// ln 2 in two parts, so that the difference loses nothing.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// The series of eˣ, from its last factor.
const SERIES: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];

/// 2 to the whole number to which [`ROUNDING`] was added: it is in the low bits of the sum.
#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
const fn power_of_two(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits().wrapping_sub(ROUNDING.to_bits()).wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_e_are_near_to_those_of_the_library() {
        for step in -8_700_i16..=8_800 {
            let value = f32::from(step) / 100.0;
            let exact = f64::from(value).exp();
            for found in [exp(value), exp_in_few_steps(value)] {
                assert!((f64::from(found) - exact).abs() <= 3e-7 * exact, "{value}: {found} is not {exact}");
            }
        }
        assert_eq!(exp(-1_000.0), exp(-87.0));
        assert!(sigmoid(f32::INFINITY) == 1.0 && sigmoid(f32::NEG_INFINITY) < 1e-37 && sigmoid(f32::NAN).is_nan());
    }

    #[test]
    fn logarithms_are_near_to_those_of_the_library() {
        for step in 0..20_000_i16 {
            let value = (f32::from(step) / 400.0).exp2() - 1.0;
            let mut found = [value, -value, 0.0];
            draw_in(&mut found);
            let exact = (1.0 + f64::from(value)).ln();
            assert!((f64::from(found[0]) - exact).abs() <= 1.5e-7 * (1.0 + exact), "{value}: {found:?} is not {exact}");
            assert_eq!((found[1], found[2]), (-found[0], 0.0));
        }
    }

    #[test]
    fn the_slope_is_that_of_the_curve() {
        for step in -80_i16..=80 {
            let value = f32::from(step) / 10.0;
            let (mut there, mut slope) = ([value], [2.0]);
            silu_with_slopes(&mut there, &mut slope);
            let curve = |value: f64| 2.0 * value / (1.0 + (-value).exp());
            let exact = (curve(f64::from(value) + 1e-5) - curve(f64::from(value) - 1e-5)) / 2e-5;
            assert!((f64::from(slope[0]) - exact).abs() < 1e-5, "{value}: {slope:?} is not {exact}");
            assert!((f64::from(there[0]) - curve(f64::from(value))).abs() < 1e-5);
        }
    }

    #[test]
    fn a_series_that_there_is_not_is_refused() {
        let mut sums = vec![0.0; 4];
        add_series(&mut sums, &[1.0, 2.0], &[10.0, 20.0, 30.0, 40.0], &[1, 0]).unwrap();
        assert_eq!(sums, [31.0, 42.0, 11.0, 22.0]);
        let fault = add_series(&mut sums, &[1.0, 2.0], &[10.0, 20.0], &[0, 1]).unwrap_err();
        assert!(fault.to_string().contains("no series 1 among 1"), "{fault}");
    }
}
