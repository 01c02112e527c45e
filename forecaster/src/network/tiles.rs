//! Layers of a network over tiles of a few rows: the sums of a tile stay in registers while its inputs pass, and what lies between
//! two layers in the nearest cache.

use super::{HIDDEN, fused};
use pulp::{Arch, Simd, WithSimd};

/// Rows of a tile.
const ROWS: usize = 4;
/// Outputs of a head, as wide as a register.
pub const WIDE: usize = 8;
const _: () = assert!(crate::rows::OUTPUTS <= WIDE, "the outputs of a head fit into a register");

/// The widest registers of the processor.
#[derive(Clone, Copy)]
pub struct Tiles(Arch);

/// The factors that targets pass, `[input][unit]` each.
pub struct Factors<'a> {
    /// Of the first hidden layer.
    pub first: &'a [f32],
    /// Of the second one.
    pub second: &'a [f32],
    /// Its bias.
    pub second_bias: &'a [f32],
    /// Of each head: of hidden units, and of inputs.
    pub outputs: &'a [[Vec<f32>; 2]],
}

impl Tiles {
    /// Chosen when the program runs.
    pub fn new() -> Self {
        Self(Arch::new())
    }

    /// Adds the products of inputs, `[row][inputs]`, with weights, `[inputs][WIDTH]`, to `[row][WIDTH]`.
    pub fn add_products<const WIDTH: usize>(self, inputs: &[f32], width: usize, weights: &[f32], sums: &mut [f32]) {
        if width > 0 {
            self.0.dispatch(Products::<WIDTH> { inputs, width, weights, sums });
        }
    }

    /// The outputs of some heads for the inputs of a target, `[row][inputs]`: `[head]`, each `[row][WIDE]`. `of_window` are the
    /// sums of the first layer, `[row][units]`, and `known` those of each head, `[head][row × WIDE]`, to which those of the target
    /// are added.
    pub fn answers(
        self,
        factors: &Factors<'_>,
        inputs: &[f32],
        of_window: &[f32],
        heads: &[usize],
        known: &[Vec<f32>],
    ) -> Vec<Vec<f32>> {
        let mut answers: Vec<Vec<f32>> = heads.iter().map(|head| known[*head].clone()).collect();
        self.0.dispatch(Target { factors, inputs, of_window, heads, answers: &mut answers });
        answers
    }
}

/// Products of matrices.
struct Products<'a, const WIDTH: usize> {
    inputs: &'a [f32],
    width: usize,
    weights: &'a [f32],
    sums: &'a mut [f32],
}

impl<const WIDTH: usize> WithSimd for Products<'_, WIDTH> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.sums.len() / WIDTH;
        for start in (0..rows).step_by(ROWS) {
            let mut tile = [[0.0; WIDTH]; ROWS];
            load(self.sums, start, rows, &mut tile);
            add(simd, of_rows(self.inputs, self.width, start, rows), self.weights, &mut tile);
            store(&tile, start, rows, self.sums);
        }
    }
}

/// All layers for one target.
struct Target<'a> {
    factors: &'a Factors<'a>,
    inputs: &'a [f32],
    of_window: &'a [f32],
    heads: &'a [usize],
    answers: &'a mut [Vec<f32>],
}

impl WithSimd for Target<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.of_window.len() / HIDDEN[0];
        let width = self.inputs.len() / rows.max(1);
        let bias: &[f32; HIDDEN[1]] = self.factors.second_bias.try_into().expect("a bias has the units of its layer");
        for start in (0..rows).step_by(ROWS) {
            let inputs = of_rows(self.inputs, width, start, rows);
            let mut first = [[0.0; HIDDEN[0]]; ROWS];
            load(self.of_window, start, rows, &mut first);
            add(simd, inputs, self.factors.first, &mut first);
            fused::silu_here(first.as_flattened_mut());
            let mut second = [*bias; ROWS];
            let [a, b, c, d] = &first;
            add(simd, [a, b, c, d], self.factors.second, &mut second);
            fused::silu_here(second.as_flattened_mut());
            let [a, b, c, d] = &second;
            for (head, answers) in self.heads.iter().zip(&mut *self.answers) {
                let [output, straight] = &self.factors.outputs[*head];
                let mut tile = [[0.0; WIDE]; ROWS];
                load(answers, start, rows, &mut tile);
                add(simd, inputs, straight, &mut tile);
                add(simd, [a, b, c, d], output, &mut tile);
                store(&tile, start, rows, answers);
            }
        }
    }
}

/// The inputs of a tile; where rows end, the last one stands for those that lack.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn of_rows(inputs: &[f32], width: usize, start: usize, rows: usize) -> [&[f32]; ROWS] {
    let mut of_rows: [&[f32]; ROWS] = [&[]; ROWS];
    for (row, of_row) in of_rows.iter_mut().enumerate() {
        *of_row = &inputs[(start + row).min(rows - 1) * width..][..width];
    }
    of_rows
}

#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn load<const WIDTH: usize>(from: &[f32], start: usize, rows: usize, tile: &mut [[f32; WIDTH]; ROWS]) {
    for (row, values) in tile.iter_mut().enumerate().take(rows - start) {
        values.copy_from_slice(&from[(start + row) * WIDTH..][..WIDTH]);
    }
}

#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn store<const WIDTH: usize>(tile: &[[f32; WIDTH]; ROWS], start: usize, rows: usize, to: &mut [f32]) {
    for (row, values) in tile.iter().enumerate().take(rows - start) {
        to[(start + row) * WIDTH..][..WIDTH].copy_from_slice(values);
    }
}

/// Adds the products of the inputs of a tile with weights, `[input][WIDTH]`.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn add<S: Simd, const WIDTH: usize>(simd: S, inputs: [&[f32]; ROWS], weights: &[f32], tile: &mut [[f32; WIDTH]; ROWS]) {
    let registers = WIDTH / S::F32_LANES;
    let weights = S::as_simd_f32s(weights).0;
    let [a, b, c, d] = tile;
    let sums = [S::as_mut_simd_f32s(a).0, S::as_mut_simd_f32s(b).0, S::as_mut_simd_f32s(c).0, S::as_mut_simd_f32s(d).0];
    if registers.is_multiple_of(2) {
        add_columns::<S, 2>(simd, inputs, weights, registers, sums);
    } else {
        add_columns::<S, 1>(simd, inputs, weights, registers, sums);
    }
}

/// The same, so many registers of a row at once.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn add_columns<S: Simd, const AT_ONCE: usize>(
    simd: S,
    inputs: [&[f32]; ROWS],
    weights: &[S::f32s],
    registers: usize,
    mut sums: [&mut [S::f32s]; ROWS],
) {
    for start in (0..registers).step_by(AT_ONCE) {
        let mut all = [[simd.splat_f32s(0.0); AT_ONCE]; ROWS];
        for (all, sums) in all.iter_mut().zip(&sums) {
            all.copy_from_slice(&sums[start..start + AT_ONCE]);
        }
        for (place, weights) in weights.chunks_exact(registers).enumerate() {
            let weights = &weights[start..start + AT_ONCE];
            for (all, inputs) in all.iter_mut().zip(inputs) {
                let input = simd.splat_f32s(inputs[place]);
                for (sum, weight) in all.iter_mut().zip(weights) {
                    *sum = simd.mul_add_f32s(input, *weight, *sum);
                }
            }
        }
        for (all, sums) in all.iter().zip(&mut sums) {
            sums[start..start + AT_ONCE].copy_from_slice(all);
        }
    }
}
