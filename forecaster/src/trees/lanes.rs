//! Trees over columns of ranks, 32 rows at a time: the leaves that each row may still reach stay in registers while all splits of
//! a tree pass, and 32 leaves are looked up in a few instructions.

#[cfg(target_arch = "x86_64")]
mod widest;

use super::compiled::LEAVES_MOST;
use std::ops::Range;

/// Rows that pass a tree together.
pub const LANES: usize = 32;
/// Ranks of one feature of 32 rows, counted from −128, so that they compare as signed numbers.
pub type Ranks = [i8; LANES];
/// Sums of 32 rows.
pub type Sums = [f32; LANES];

/// Takes leaves of one half of a tree away from rows whose rank is larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// The feature that decides: its place among those of windows, or of targets.
    pub feature: u16,
    /// Rows at or below it keep the leaves.
    pub rank: i8,
    /// The leaves that the others can no longer reach, the left-most one in the lowest bit.
    pub takes: u8,
}

/// A tree as cuts by ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// First those by features of windows, of the lower and of the upper half of the leaves; then the same by features of
    /// targets.
    cuts: Vec<Cut>,
    ends: [usize; 4],
    leaves: [f32; LEAVES_MOST],
    /// The four bytes of each leaf apart.
    planes: [[u8; LEAVES_MOST]; 4],
}

impl Tree {
    /// A tree of cuts by features of windows and of targets, each of the lower and of the upper half of the leaves.
    pub fn new(of_window: [Vec<Cut>; 2], of_target: [Vec<Cut>; 2], leaves: [f32; LEAVES_MOST]) -> Self {
        let (mut cuts, mut ends) = (Vec::new(), [0; 4]);
        for (part, end) in of_window.into_iter().chain(of_target).zip(&mut ends) {
            cuts.extend(part);
            *end = cuts.len();
        }
        let planes = [0, 1, 2, 3].map(|byte| leaves.map(|leaf| leaf.to_le_bytes()[byte]));
        Self { cuts, ends, leaves, planes }
    }

    fn of_window(&self) -> [&[Cut]; 2] {
        [&self.cuts[..self.ends[0]], &self.cuts[self.ends[0]..self.ends[1]]]
    }

    fn of_target(&self) -> [&[Cut]; 2] {
        [&self.cuts[self.ends[1]..self.ends[2]], &self.cuts[self.ends[2]..]]
    }
}

/// Ranks of a block of windows: `[feature][group of 32 rows]`, an even number of groups.
pub struct Columns {
    /// Groups of 32 rows.
    pub groups: usize,
    /// Of the features of windows.
    pub of_window: Vec<Ranks>,
    /// Of those of each target.
    pub of_targets: Vec<Vec<Ranks>>,
}

/// Groups that pass a tree together.
const AT_ONCE: usize = 2;

impl Columns {
    /// Groups for so many rows.
    pub const fn groups_for(rows: usize) -> usize {
        rows.div_ceil(LANES * AT_ONCE) * AT_ONCE
    }

    /// The sums of what trees say of each row, `[target][group]`.
    pub fn sums(&self, trees: &[Tree]) -> Vec<Sums> {
        let mut sums = vec![[0.0; LANES]; self.of_targets.len() * self.groups];
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            simd.vectorize(|| widest::add(simd, self, trees, &mut sums));
            return sums;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            simd.vectorize(|| wide::add(simd, self, trees, &mut sums));
            return sums;
        }
        plain::add(self, trees, &mut sums);
        sums
    }

    /// Places of a feature's groups among the columns.
    const fn places(&self, feature: u16, group: usize) -> Range<usize> {
        let start = feature as usize * self.groups + group;
        start..start + AT_ONCE
    }
}

/// On any processor.
mod plain {
    use super::{AT_ONCE, Columns, Cut, LANES, Ranks, Sums, Tree};

    type Open = [[[u8; LANES]; AT_ONCE]; 2];

    pub fn add(columns: &Columns, trees: &[Tree], sums: &mut [Sums]) {
        for tree in trees {
            for group in (0..columns.groups).step_by(AT_ONCE) {
                let open = [[[u8::MAX; LANES]; AT_ONCE]; 2];
                let open = cut(columns, &columns.of_window, tree.of_window(), group, open);
                for (target, of_target) in columns.of_targets.iter().enumerate() {
                    let [low, high] = cut(columns, of_target, tree.of_target(), group, open);
                    for place in 0..AT_ONCE {
                        let sums = &mut sums[target * columns.groups + group + place];
                        for (sum, (low, high)) in sums.iter_mut().zip(low[place].into_iter().zip(high[place])) {
                            let leaf = (u16::from(low) | u16::from(high) << 8).trailing_zeros() as usize;
                            *sum += tree.leaves[leaf % tree.leaves.len()];
                        }
                    }
                }
            }
        }
    }

    fn cut(columns: &Columns, ranks: &[Ranks], cuts: [&[Cut]; 2], group: usize, mut open: Open) -> Open {
        for (cuts, open) in cuts.into_iter().zip(&mut open) {
            for &Cut { feature, rank: most, takes } in cuts {
                for (ranks, open) in ranks[columns.places(feature, group)].iter().zip(&mut *open) {
                    for (rank, open) in ranks.iter().zip(open) {
                        // All ones or all zeros, without a branch.
                        let goes_right = u8::from(*rank > most).wrapping_neg();
                        *open &= !(goes_right & takes);
                    }
                }
            }
        }
        open
    }
}

/// On processors with registers of 256 bits; the numbers are the same.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{AT_ONCE, Columns, Cut, LANES, Ranks, Sums, Tree};
    use core::arch::x86_64::{__m256, __m256i};
    use pulp::cast;
    use pulp::x86::V3;

    /// The lowest bit of each number from 0 to 15, of a number of 16 bits in its four parts; zero has none.
    const LOWEST_BITS: [[u8; 16]; 4] = [
        [255, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0],
        [255, 4, 5, 4, 6, 4, 5, 4, 7, 4, 5, 4, 6, 4, 5, 4],
        [255, 8, 9, 8, 10, 8, 9, 8, 11, 8, 9, 8, 10, 8, 9, 8],
        [255, 12, 13, 12, 14, 12, 13, 12, 15, 12, 13, 12, 14, 12, 13, 12],
    ];

    type Open = [[__m256i; AT_ONCE]; 2];

    // No closure takes part: its code would not be compiled for these registers.
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    pub fn add(simd: V3, columns: &Columns, trees: &[Tree], sums: &mut [Sums]) {
        let lookup = Lookup::new(simd);
        for tree in trees {
            let planes = twice(simd, tree.planes);
            for group in (0..columns.groups).step_by(AT_ONCE) {
                let open = [[simd.avx._mm256_set1_epi8(-1); AT_ONCE]; 2];
                let open = cut(simd, columns, &columns.of_window, tree.of_window(), group, open);
                for (target, of_target) in columns.of_targets.iter().enumerate() {
                    let [low, high] = cut(simd, columns, of_target, tree.of_target(), group, open);
                    let start = target * columns.groups + group;
                    for (place, sums) in sums[start..start + AT_ONCE].iter_mut().enumerate() {
                        let leaves = lookup.values(simd, low[place], high[place], planes);
                        let mut all: [__m256; 4] = cast(*sums);
                        for (sum, leaf) in all.iter_mut().zip(leaves) {
                            *sum = simd.avx._mm256_add_ps(*sum, leaf);
                        }
                        *sums = cast(all);
                    }
                }
            }
        }
        for sums in sums {
            *sums = in_order(sums);
        }
    }

    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn cut(simd: V3, columns: &Columns, ranks: &[Ranks], cuts: [&[Cut]; 2], group: usize, mut open: Open) -> Open {
        for (cuts, open) in cuts.into_iter().zip(&mut open) {
            for &Cut { feature, rank, takes } in cuts {
                let most = simd.avx._mm256_set1_epi8(rank);
                let takes = simd.avx._mm256_set1_epi8(takes as i8);
                for (ranks, open) in ranks[columns.places(feature, group)].iter().zip(&mut *open) {
                    let goes_right = simd.avx2._mm256_cmpgt_epi8(cast(*ranks), most);
                    *open = simd.avx2._mm256_andnot_si256(simd.avx2._mm256_and_si256(goes_right, takes), *open);
                }
            }
        }
        open
    }

    /// Tables, each twice in a register: lookups work within halves of it.
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn twice(simd: V3, tables: [[u8; 16]; 4]) -> [__m256i; 4] {
        let mut twice = [simd.avx._mm256_setzero_si256(); 4];
        for (twice, table) in twice.iter_mut().zip(tables) {
            *twice = simd.avx2._mm256_broadcastsi128_si256(cast(table));
        }
        twice
    }

    /// Finds the first leaf that each row can still reach.
    struct Lookup {
        /// The lowest bit of the lower and of the upper half of a byte, of the lower and of the upper leaves.
        lowest: [__m256i; 4],
        half: __m256i,
    }

    impl Lookup {
        #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
        #[inline(always)]
        fn new(simd: V3) -> Self {
            Self { lowest: twice(simd, LOWEST_BITS), half: simd.avx._mm256_set1_epi8(15) }
        }

        /// The leaf of each row: four registers in the order of [`in_order`].
        #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
        #[inline(always)]
        fn values(&self, simd: V3, low: __m256i, high: __m256i, planes: [__m256i; 4]) -> [__m256; 4] {
            let (avx2, [first, second, third, last]) = (simd.avx2, self.lowest);
            let low_upper = avx2._mm256_and_si256(avx2._mm256_srli_epi16::<4>(low), self.half);
            let high_upper = avx2._mm256_and_si256(avx2._mm256_srli_epi16::<4>(high), self.half);
            let a = avx2._mm256_shuffle_epi8(first, avx2._mm256_and_si256(low, self.half));
            let b = avx2._mm256_shuffle_epi8(second, low_upper);
            let c = avx2._mm256_shuffle_epi8(third, avx2._mm256_and_si256(high, self.half));
            let d = avx2._mm256_shuffle_epi8(last, high_upper);
            let leaf = avx2._mm256_min_epu8(avx2._mm256_min_epu8(a, b), avx2._mm256_min_epu8(c, d));
            let (a, b) = (avx2._mm256_shuffle_epi8(planes[0], leaf), avx2._mm256_shuffle_epi8(planes[1], leaf));
            let (c, d) = (avx2._mm256_shuffle_epi8(planes[2], leaf), avx2._mm256_shuffle_epi8(planes[3], leaf));
            let (ab_low, ab_high) = (avx2._mm256_unpacklo_epi8(a, b), avx2._mm256_unpackhi_epi8(a, b));
            let (cd_low, cd_high) = (avx2._mm256_unpacklo_epi8(c, d), avx2._mm256_unpackhi_epi8(c, d));
            [
                cast(avx2._mm256_unpacklo_epi16(ab_low, cd_low)),
                cast(avx2._mm256_unpackhi_epi16(ab_low, cd_low)),
                cast(avx2._mm256_unpacklo_epi16(ab_high, cd_high)),
                cast(avx2._mm256_unpackhi_epi16(ab_high, cd_high)),
            ]
        }
    }

    /// Interleaving works within halves of a register, so row 4 r + n of the first 16 is number n of register r, and those of the
    /// other 16 follow it there.
    fn in_order(sums: &Sums) -> Sums {
        std::array::from_fn(|row| {
            let (half, row) = (row / (LANES / 2), row % (LANES / 2));
            sums[row / 4 * 8 + half * 4 + row % 4]
        })
    }

    #[cfg(test)]
    mod tests {
        use super::super::{plain, tests::drawn};
        use super::*;

        #[test]
        fn wide_registers_answer_as_any_processor_does() {
            let Some(simd) = V3::try_new() else { return };
            let (columns, trees) = drawn(7, 4);
            let mut sums = vec![[0.0; LANES]; 3 * columns.groups];
            let mut plain_sums = sums.clone();
            simd.vectorize(|| add(simd, &columns, &trees, &mut sums));
            plain::add(&columns, &trees, &mut plain_sums);
            assert_eq!(sums, plain_sums);
            assert!(sums.iter().flatten().any(|sum| *sum != 0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Ranks of three features of windows and two of each of three targets, and forty trees of any cuts that leave a leaf.
    pub(super) fn drawn(seed: u64, groups: usize) -> (Columns, Vec<Tree>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut ranks = |count: usize| -> Vec<Ranks> {
            (0..count).map(|_| std::array::from_fn(|_| rng.random_range(-128..=127) as i8)).collect()
        };
        let (of_window, of_targets) = (ranks(3 * groups), (0..3).map(|_| ranks(2 * groups)).collect());
        let mut rng = ChaCha8Rng::seed_from_u64(seed + 1);
        let mut cuts = |features: u16, most: u8| -> Vec<Cut> {
            let mut cut = |_| Cut {
                feature: rng.random_range(0..features),
                rank: rng.random_range(-128..=127) as i8,
                takes: rng.random_range(0..=most),
            };
            (0..5).map(&mut cut).collect()
        };
        let trees = (0..40_u8).map(|number| {
            // The last leaf stays.
            let (of_window, of_target) = ([cuts(3, 255), cuts(3, 127)], [cuts(2, 255), cuts(2, 127)]);
            Tree::new(of_window, of_target, std::array::from_fn(|leaf| (f32::from(number) - leaf as f32) * 0.37))
        });
        let trees = trees.collect();
        (Columns { groups, of_window, of_targets }, trees)
    }

    #[test]
    fn a_row_reaches_the_first_leaf_that_no_cut_has_taken() {
        let (columns, trees) = drawn(3, 4);
        for (place, sum) in columns.sums(&trees).iter().enumerate() {
            let (target, group) = (place / columns.groups, place % columns.groups);
            for (lane, sum) in sum.iter().enumerate() {
                let mut expected = 0.0;
                for tree in &trees {
                    let mut open = u16::MAX;
                    let of = |ranks: &[Ranks], feature: u16| ranks[feature as usize * columns.groups + group][lane];
                    for (half, cuts) in tree.of_window().into_iter().enumerate() {
                        let right = cuts.iter().filter(|cut| of(&columns.of_window, cut.feature) > cut.rank);
                        right.for_each(|cut| open &= !(u16::from(cut.takes) << (8 * half)));
                    }
                    for (half, cuts) in tree.of_target().into_iter().enumerate() {
                        let right = cuts.iter().filter(|cut| of(&columns.of_targets[target], cut.feature) > cut.rank);
                        right.for_each(|cut| open &= !(u16::from(cut.takes) << (8 * half)));
                    }
                    expected += tree.leaves[open.trailing_zeros() as usize];
                }
                assert_eq!(*sum, expected, "target {target}, row {}", group * LANES + lane);
            }
        }
    }
}
