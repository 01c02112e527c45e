//! A tree over bins while its forest grows.

use super::compiled::{LEAVES_MOST, leaves};
use super::forest::Node;

/// The leaves of a tree that a row may still reach, the left-most one in the lowest bit.
pub type Leaves = u16;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Split {
    feature: u16,
    /// Rows whose bin is larger go to the right.
    bin: u8,
    /// The leaves that they can no longer reach.
    takes: Leaves,
}

/// A tree as splits by bins.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    splits: Vec<Split>,
    leaves: [f32; LEAVES_MOST],
}

impl Tree {
    /// A tree whose thresholds are among the cuts of each feature.
    pub fn of(nodes: &[Node], cuts: &[Vec<f32>]) -> Self {
        let mut splits = Vec::new();
        let leaves = leaves(nodes, &mut |feature, threshold, takes| {
            let bin = cuts[feature].partition_point(|one| *one < threshold) as u8;
            splits.push(Split { feature: feature as u16, bin, takes });
        });
        Self { splits, leaves }
    }

    /// Adds the leaf that each row reaches. `bins` answers the bins of a feature, as many as `predicted` at least; `open` is
    /// room to work in, as long as `predicted`.
    #[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
    #[inline(always)]
    pub fn add_to<'a>(&self, bins: impl Fn(usize) -> &'a [u8], open: &mut [Leaves], predicted: &mut [f64]) {
        open.fill(Leaves::MAX);
        for &Split { feature, bin: most, takes } in &self.splits {
            for (open, bin) in open.iter_mut().zip(bins(usize::from(feature))) {
                // All ones or all zeros, without a branch, so that the compiler takes many rows at once.
                let goes_right = Leaves::from(*bin > most).wrapping_neg();
                *open &= !(goes_right & takes);
            }
        }
        for (predicted, open) in predicted.iter_mut().zip(open) {
            // A leaf remains to every row, so the remainder only spares a check.
            *predicted += f64::from(self.leaves[open.trailing_zeros() as usize % LEAVES_MOST]);
        }
    }
}
