//! Trees over columns of ranks on processors with registers of 512 bits: 64 rows in one of them, whose leaves are looked up by one
//! instruction for each 16 rows. The numbers are those of narrower registers.

use super::{AT_ONCE, Columns, Cut, LANES, Ranks, Sums, Tree};
use core::arch::x86_64::{__m512, __m512i};
use pulp::cast;
use pulp::x86::V4;

/// Registers that pass a tree together: a cut is loaded once for all of them.
const TOGETHER: usize = 4;
/// Rows of a register.
const ROWS: usize = LANES * AT_ONCE;

/// The lower and the upper half of the leaves of so many registers of rows.
type Open<const N: usize> = [[__m512i; N]; 2];

/// The lowest bit of each number from 0 to 15, in the lower and in the upper half of a byte; zero has none.
const LOWEST_BITS: [[u8; 16]; 2] =
    [[255, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0], [255, 4, 5, 4, 6, 4, 5, 4, 7, 4, 5, 4, 6, 4, 5, 4]];

/// Trees that pass together: the leaves that windows leave open stay in the nearest cache, and the sums of a target in registers.
const TREES: usize = 16;

// No closure takes part: its code would not be compiled for these registers.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
pub fn add(simd: V4, columns: &Columns, trees: &[Tree], sums: &mut [Sums]) {
    let lookup = Lookup::new(simd);
    for trees in trees.chunks(TREES) {
        let mut group = 0;
        while group + TOGETHER * AT_ONCE <= columns.groups {
            of_groups::<TOGETHER>(simd, &lookup, columns, trees, group, sums);
            group += TOGETHER * AT_ONCE;
        }
        while group < columns.groups {
            of_groups::<1>(simd, &lookup, columns, trees, group, sums);
            group += AT_ONCE;
        }
    }
    for pair in sums.chunks_exact_mut(AT_ONCE) {
        in_order(pair);
    }
}

/// Adds what a few trees say of the rows of `N` registers from a group on.
#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn of_groups<const N: usize>(
    simd: V4,
    lookup: &Lookup,
    columns: &Columns,
    trees: &[Tree],
    group: usize,
    sums: &mut [Sums],
) {
    let f = simd.avx512f;
    let whole = [[f._mm512_set1_epi8(-1); N]; 2];
    let mut open = [whole; TREES];
    for (tree, open) in trees.iter().zip(&mut open) {
        *open = cut(simd, columns, &columns.of_window, tree.of_window(), group, whole);
    }
    for (target, of_target) in columns.of_targets.iter().enumerate() {
        let start = target * columns.groups + group;
        let (pairs, _) = sums[start..start + N * AT_ONCE].as_chunks_mut::<AT_ONCE>();
        let mut all = [[f._mm512_setzero_ps(); 4]; N];
        for (sums, pair) in all.iter_mut().zip(&*pairs) {
            *sums = cast(*pair);
        }
        for (tree, open) in trees.iter().zip(&open) {
            let leaves: __m512 = cast(tree.leaves);
            let [low, high] = cut(simd, columns, of_target, tree.of_target(), group, *open);
            for (place, sums) in all.iter_mut().enumerate() {
                let leaf = lookup.leaf(simd, low[place], high[place]);
                // The lowest bits of each number of 32 choose: those of rows 0, 4, 8 and so on, then those of the rows behind them.
                let second = f._mm512_srli_epi32::<8>(leaf);
                let third = f._mm512_srli_epi32::<16>(leaf);
                let last = f._mm512_srli_epi32::<24>(leaf);
                for (sum, leaf) in sums.iter_mut().zip([leaf, second, third, last]) {
                    *sum = f._mm512_add_ps(*sum, f._mm512_permutexvar_ps(leaf, leaves));
                }
            }
        }
        for (sums, pair) in all.iter().zip(pairs) {
            *pair = cast(*sums);
        }
    }
}

#[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
#[inline(always)]
fn cut<const N: usize>(
    simd: V4,
    columns: &Columns,
    ranks: &[Ranks],
    cuts: [&[Cut]; 2],
    group: usize,
    mut open: Open<N>,
) -> Open<N> {
    let (f, bw) = (simd.avx512f, simd.avx512bw);
    for (cuts, open) in cuts.into_iter().zip(&mut open) {
        for &Cut { feature, rank, takes } in cuts {
            let (most, takes) = (f._mm512_set1_epi8(rank), f._mm512_set1_epi8(takes as i8));
            // No sum that is checked; the place is checked once.
            let start = (feature as usize).wrapping_mul(columns.groups).wrapping_add(group);
            let (pairs, _) = ranks[start..][..N * AT_ONCE].as_chunks::<AT_ONCE>();
            for (pair, open) in pairs.iter().zip(&mut *open) {
                let goes_right = bw._mm512_movm_epi8(bw._mm512_cmpgt_epi8_mask(cast(*pair), most));
                *open = f._mm512_andnot_si512(f._mm512_and_si512(goes_right, takes), *open);
            }
        }
    }
    open
}

/// Finds the first leaf that each row can still reach.
struct Lookup {
    lowest: [__m512i; 2],
    half: __m512i,
    upper_leaves: __m512i,
}

impl Lookup {
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn new(simd: V4) -> Self {
        let f = simd.avx512f;
        let [lower, upper] = LOWEST_BITS;
        Self {
            lowest: [f._mm512_broadcast_i32x4(cast(lower)), f._mm512_broadcast_i32x4(cast(upper))],
            half: f._mm512_set1_epi8(15),
            upper_leaves: f._mm512_set1_epi8(8),
        }
    }

    /// Its number, of each row.
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn leaf(&self, simd: V4, low: __m512i, high: __m512i) -> __m512i {
        let (f, bw, [lower, upper]) = (simd.avx512f, simd.avx512bw, self.lowest);
        let is_upper = bw._mm512_testn_epi8_mask(low, low);
        let open = bw._mm512_mask_mov_epi8(low, is_upper, high);
        let a = bw._mm512_shuffle_epi8(lower, f._mm512_and_si512(open, self.half));
        let b = bw._mm512_shuffle_epi8(upper, f._mm512_and_si512(bw._mm512_srli_epi16::<4>(open), self.half));
        let leaf = bw._mm512_min_epu8(a, b);
        bw._mm512_mask_add_epi8(leaf, is_upper, leaf, self.upper_leaves)
    }
}

/// Row 4 n + r of the 64 is number n of register r.
fn in_order(pair: &mut [Sums]) {
    let mixed: Vec<f32> = pair.as_flattened().to_vec();
    for (row, sum) in pair.as_flattened_mut().iter_mut().enumerate() {
        *sum = mixed[row % 4 * (ROWS / 4) + row / 4];
    }
}

#[cfg(test)]
mod tests {
    use super::super::{plain, tests::drawn};
    use super::*;

    #[test]
    fn the_widest_registers_answer_as_any_processor_does() {
        let Some(simd) = V4::try_new() else { return };
        for groups in [2, 4, 10, 16] {
            let (columns, trees) = drawn(7, groups);
            let mut sums = vec![[0.0; LANES]; 3 * columns.groups];
            let mut plain_sums = sums.clone();
            simd.vectorize(|| add(simd, &columns, &trees, &mut sums));
            plain::add(&columns, &trees, &mut plain_sums);
            assert_eq!(sums, plain_sums);
            assert!(sums.iter().flatten().any(|sum| *sum != 0.0));
        }
    }
}
