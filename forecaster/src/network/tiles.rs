//! Layers of a network over tiles of a few rows: the sums of a tile stay in registers while its inputs pass, and what lies between
//! two layers in the nearest cache.

use super::{HIDDEN, fused, loss};
use crate::rows::SPREAD;
use pulp::{Arch, Simd, WithSimd};

/// Rows of a tile: with 32 registers more sums stay in them.
const ROWS: usize = 4;
#[cfg(target_arch = "x86_64")]
const ROWS_OF_WIDEST: usize = 8;
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
    pub outputs: &'a [[&'a [f32]; 2]],
    /// Part of the answers in a mean.
    pub share: f32,
}

/// One target of many rows.
pub struct Target<'a> {
    /// Inputs that differ from row to row, `[row][inputs]`.
    pub inputs: &'a [f32],
    /// Number of these inputs.
    pub width: usize,
    /// The place of the sums that the other inputs of each row make.
    pub same_of: &'a [u32],
    /// These sums of the first layer, `[place][units]`.
    pub same_first: &'a [f32],
    /// The heads that answer, each with these sums, `[place][WIDE]`.
    pub heads: &'a [(usize, Vec<f32>)],
}

impl Tiles {
    /// Chosen when the program runs.
    pub fn new() -> Self {
        Self(Arch::new())
    }

    /// Of all widths that the processor has.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        let widest = [Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        return pulp::x86::V3::try_new().map(Arch::V3).into_iter().chain(widest).map(Self).collect();
        #[cfg(not(target_arch = "x86_64"))]
        widest.map(Self).to_vec()
    }

    /// Adds the products of inputs, `[row][inputs]`, with weights, `[inputs][WIDTH]`, to `[row][WIDTH]`.
    pub fn add_products<const WIDTH: usize>(self, inputs: &[f32], width: usize, weights: &[f32], sums: &mut [f32]) {
        if width > 0 {
            self.run(Products::<WIDTH> { inputs, width, weights, sums });
        }
    }

    /// Adds a share of the answers to a target, the spread as a deviation, to those of each of its heads, `[row][WIDE]`. `of_window` are
    /// the sums of the first layer, `[row][units]`, and `known` those of all heads, `[head][row × WIDE]`, to which those of the target
    /// are added.
    pub fn add_answers(
        self,
        factors: &Factors<'_>,
        target: &Target<'_>,
        of_window: &[f32],
        known: &[Vec<f32>],
        sums: &mut [Vec<f32>],
    ) {
        self.run(Answers { factors, target, of_window, known, sums });
    }

    fn run(self, layers: impl Layers) {
        #[cfg(target_arch = "x86_64")]
        if let Arch::V4(simd) = self.0 {
            simd.vectorize(Widest(simd, layers));
            return;
        }
        self.0.dispatch(Any(layers));
    }
}

/// Layers over tiles of so many rows. Sums that are narrower than a register are made in `narrow` ones.
trait Layers {
    fn pass<S: Simd, N: Simd, const ROWS: usize>(self, simd: S, narrow: N);
}

/// On any processor.
struct Any<L>(L);

impl<L: Layers> WithSimd for Any<L> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.pass::<S, S, ROWS>(simd, simd);
    }
}

/// On processors with registers of 512 bits: an input is multiplied with the same weights in the same order.
#[cfg(target_arch = "x86_64")]
struct Widest<L>(pulp::x86::V4, L);

#[cfg(target_arch = "x86_64")]
impl<L: Layers> pulp::NullaryFnOnce for Widest<L> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn call(self) {
        self.1.pass::<_, _, ROWS_OF_WIDEST>(self.0, *self.0);
    }
}

/// Products of matrices.
struct Products<'a, const WIDTH: usize> {
    inputs: &'a [f32],
    width: usize,
    weights: &'a [f32],
    sums: &'a mut [f32],
}

impl<const WIDTH: usize> Layers for Products<'_, WIDTH> {
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn pass<S: Simd, N: Simd, const ROWS: usize>(self, simd: S, narrow: N) {
        let rows = self.sums.len() / WIDTH;
        for start in (0..rows).step_by(ROWS) {
            let mut tile = [[0.0; WIDTH]; ROWS];
            load(self.sums, start, rows, &mut tile);
            let inputs = of_rows(self.inputs, self.width, start, rows);
            if WIDTH < S::F32_LANES {
                add(narrow, inputs, self.weights, &mut tile);
            } else {
                add(simd, inputs, self.weights, &mut tile);
            }
            store(&tile, start, rows, self.sums);
        }
    }
}

/// All layers for one target.
struct Answers<'a> {
    factors: &'a Factors<'a>,
    target: &'a Target<'a>,
    of_window: &'a [f32],
    known: &'a [Vec<f32>],
    sums: &'a mut [Vec<f32>],
}

impl Layers for Answers<'_> {
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn pass<S: Simd, N: Simd, const ROWS: usize>(self, simd: S, narrow: N) {
        let Self { factors, target, of_window, known, sums } = self;
        let rows = target.same_of.len();
        let bias: &[f32; HIDDEN[1]] = factors.second_bias.try_into().expect("a bias has the units of its layer");
        for start in (0..rows).step_by(ROWS) {
            let inputs = of_rows(target.inputs, target.width, start, rows);
            let mut first = [[0.0; HIDDEN[0]]; ROWS];
            load(of_window, start, rows, &mut first);
            add_same(target.same_first, target.same_of, start, &mut first);
            add(simd, inputs, factors.first, &mut first);
            fused::silu_in_few_steps(first.as_flattened_mut());
            let mut second = [*bias; ROWS];
            add(simd, each(&first), factors.second, &mut second);
            fused::silu_in_few_steps(second.as_flattened_mut());
            for ((head, same), sums) in target.heads.iter().zip(&mut *sums) {
                let [output, straight] = &factors.outputs[*head];
                let mut tile = [[0.0; WIDE]; ROWS];
                load(&known[*head], start, rows, &mut tile);
                add_same(same, target.same_of, start, &mut tile);
                add(narrow, inputs, straight, &mut tile);
                add(narrow, each(&second), output, &mut tile);
                widen(&mut tile);
                add_share(&tile, factors.share, start, rows, sums);
            }
        }
    }
}

/// Makes deviations of spreads.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn widen<const ROWS: usize>(tile: &mut [[f32; WIDE]; ROWS]) {
    let mut spreads = [0.0; ROWS];
    for (spread, row) in spreads.iter_mut().zip(&*tile) {
        *spread = row[SPREAD];
    }
    for spread in &mut spreads {
        *spread = loss::spread_in_few_steps(*spread);
    }
    for (spread, row) in spreads.iter().zip(tile) {
        row[SPREAD] = *spread;
    }
}

/// Adds the sums at the place of each row.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn add_same<const WIDTH: usize, const ROWS: usize>(
    same: &[f32],
    same_of: &[u32],
    start: usize,
    tile: &mut [[f32; WIDTH]; ROWS],
) {
    for (row, place) in tile.iter_mut().zip(&same_of[start..]) {
        for (sum, value) in row.iter_mut().zip(&same[*place as usize * WIDTH..][..WIDTH]) {
            *sum += value;
        }
    }
}

/// Adds a share of the rows of a tile.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn add_share<const ROWS: usize>(tile: &[[f32; WIDE]; ROWS], share: f32, start: usize, rows: usize, to: &mut [f32]) {
    for (row, values) in tile.iter().enumerate().take(rows - start) {
        for (sum, value) in to[(start + row) * WIDE..][..WIDE].iter_mut().zip(values) {
            *sum += share * value;
        }
    }
}

/// The rows of a tile.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn each<const WIDTH: usize, const ROWS: usize>(tile: &[[f32; WIDTH]; ROWS]) -> [&[f32]; ROWS] {
    let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
    for (row, values) in rows.iter_mut().zip(tile) {
        *row = values;
    }
    rows
}

/// The inputs of a tile; where rows end, the last one stands for those that lack.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn of_rows<const ROWS: usize>(inputs: &[f32], width: usize, start: usize, rows: usize) -> [&[f32]; ROWS] {
    let mut of_rows: [&[f32]; ROWS] = [&[]; ROWS];
    for (row, of_row) in of_rows.iter_mut().enumerate() {
        *of_row = &inputs[(start + row).min(rows - 1) * width..][..width];
    }
    of_rows
}

#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn load<const WIDTH: usize, const ROWS: usize>(
    from: &[f32],
    start: usize,
    rows: usize,
    tile: &mut [[f32; WIDTH]; ROWS],
) {
    for (row, values) in tile.iter_mut().enumerate().take(rows - start) {
        values.copy_from_slice(&from[(start + row) * WIDTH..][..WIDTH]);
    }
}

#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn store<const WIDTH: usize, const ROWS: usize>(
    tile: &[[f32; WIDTH]; ROWS],
    start: usize,
    rows: usize,
    to: &mut [f32],
) {
    for (row, values) in tile.iter().enumerate().take(rows - start) {
        to[(start + row) * WIDTH..][..WIDTH].copy_from_slice(values);
    }
}

/// Adds the products to two registers of sums of each row. Sums in variables of their own stay in registers; those of an array of
/// rows would be written to memory after each input.
macro_rules! add_pairs {
    (($simd:ident, $rows:ident, $weights:ident, $registers:ident, $sums:ident, $start:ident) $($sum:ident $row:literal)*) => {
        $(let mut $sum = [$sums[$row][$start], $sums[$row][$start + 1]];)*
        for (place, weights) in (0..$rows[0].len()).zip($weights.chunks_exact($registers)) {
            let [one, other] = [weights[$start], weights[$start + 1]];
            $(
                let input = $simd.splat_f32s($rows[$row][place]);
                $sum = [$simd.mul_add_f32s(input, one, $sum[0]), $simd.mul_add_f32s(input, other, $sum[1])];
            )*
        }
        $([$sums[$row][$start], $sums[$row][$start + 1]] = $sum;)*
    };
}

/// The same for one register of each row.
macro_rules! add_singles {
    (($simd:ident, $rows:ident, $weights:ident, $registers:ident, $sums:ident, $start:ident) $($sum:ident $row:literal)*) => {
        $(let mut $sum = $sums[$row][$start];)*
        for (place, weights) in (0..$rows[0].len()).zip($weights.chunks_exact($registers)) {
            let weights = weights[$start];
            $($sum = $simd.mul_add_f32s($simd.splat_f32s($rows[$row][place]), weights, $sum);)*
        }
        $($sums[$row][$start] = $sum;)*
    };
}

/// Adds the products of the inputs of a tile with weights, `[input][WIDTH]`.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn add<S: Simd, const WIDTH: usize, const ROWS: usize>(
    simd: S,
    inputs: [&[f32]; ROWS],
    weights: &[f32],
    tile: &mut [[f32; WIDTH]; ROWS],
) {
    const { assert!(ROWS == 4 || ROWS == 8, "tiles have as many rows as the macros below name") };
    let registers = WIDTH / S::F32_LANES;
    let weights = S::as_simd_f32s(weights).0;
    // All rows are so long: it is checked once, and not for each input.
    let width = weights.len() / registers;
    let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
    for (row, inputs) in rows.iter_mut().zip(inputs) {
        *row = &inputs[..width];
    }
    let sums = tile.each_mut().map(|row| S::as_mut_simd_f32s(row).0);
    if registers.is_multiple_of(2) {
        for start in (0..registers).step_by(2) {
            if ROWS == 8 {
                add_pairs!((simd, rows, weights, registers, sums, start) s0 0 s1 1 s2 2 s3 3 s4 4 s5 5 s6 6 s7 7);
            } else {
                add_pairs!((simd, rows, weights, registers, sums, start) s0 0 s1 1 s2 2 s3 3);
            }
        }
    } else {
        for start in 0..registers {
            if ROWS == 8 {
                add_singles!((simd, rows, weights, registers, sums, start) s0 0 s1 1 s2 2 s3 3 s4 4 s5 5 s6 6 s7 7);
            } else {
                add_singles!((simd, rows, weights, registers, sums, start) s0 0 s1 1 s2 2 s3 3);
            }
        }
    }
}
