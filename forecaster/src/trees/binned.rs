//! Features as bins: what a tree splits by.

/// A matrix of features, column by column, each value replaced by the number of cuts below it.
pub struct Binned {
    columns: Vec<Vec<u8>>,
    cuts: std::sync::Arc<Vec<Vec<f32>>>,
}

impl Binned {
    /// Bins of a feature, one more than cuts.
    pub const BINS: usize = 64;

    /// Cuts each feature at its quantiles over the rows; `rows` holds row after row.
    pub fn cut(rows: &[f32], features: usize) -> Self {
        let count = rows.len() / features;
        let cuts = (0..features).map(|feature| {
            let mut values: Vec<f32> = (0..count).map(|row| rows[row * features + feature]).collect();
            values.sort_unstable_by(f32::total_cmp);
            let mut cuts: Vec<f32> = (1..Self::BINS).map(|bin| values[(bin * (count - 1)) / Self::BINS]).collect();
            cuts.dedup();
            cuts
        });
        Self::with_cuts(rows, &std::sync::Arc::new(cuts.collect()))
    }

    /// Other rows, cut at the same places.
    pub fn alike(&self, rows: &[f32]) -> Self {
        Self::with_cuts(rows, &self.cuts)
    }

    fn with_cuts(rows: &[f32], cuts: &std::sync::Arc<Vec<Vec<f32>>>) -> Self {
        let features = cuts.len();
        let column = |(feature, cuts): (usize, &Vec<f32>)| {
            let bin = |row: &[f32]| cuts.partition_point(|cut| *cut < row[feature]) as u8;
            rows.chunks_exact(features).map(bin).collect()
        };
        Self { columns: cuts.iter().enumerate().map(column).collect(), cuts: cuts.clone() }
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.columns.len()
    }

    /// Bins of a feature, row by row.
    pub fn column(&self, feature: usize) -> &[u8] {
        &self.columns[feature]
    }

    /// The cuts of each feature, rising.
    pub fn cuts(&self) -> &[Vec<f32>] {
        &self.cuts
    }

    /// The largest value of a bin; of the last one, the largest that there is.
    pub fn threshold(&self, feature: usize, bin: u8) -> f32 {
        self.cuts[feature].get(usize::from(bin)).copied().unwrap_or(f32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_a_bin_exactly_when_it_is_at_most_the_bins_threshold() {
        let rows: Vec<f32> = (0..500_u16).map(|value| f32::from(value % 97)).collect();
        let binned = Binned::cut(&rows, 1);
        for (row, value) in rows.iter().enumerate() {
            for bin in 0..Binned::BINS as u8 {
                assert_eq!(binned.column(0)[row] <= bin, *value <= binned.threshold(0, bin), "{value} {bin}");
            }
        }
        let more = binned.alike(&[-5.0, 1_000.0]);
        assert_eq!(more.column(0)[0], 0);
        assert_eq!(binned.threshold(0, more.column(0)[1]), f32::MAX);
    }
}
