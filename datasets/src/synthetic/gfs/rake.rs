//! Raking: a table of jobs made to agree with sums that are known of it.
//!
//! Each family splits the cells of the table into categories and knows, of each category, its jobs, a sum over its jobs
//! (such as GPU-seconds), or both. A sweep visits one family after another and multiplies the cells of a category: by a
//! factor that corrects its jobs, and by a power of the cell's value that corrects the mean value of its jobs. What no
//! family speaks of stays as it was before the first sweep (iterative proportional fitting).

/// Steps of the power are cut here: farther away the linear step is no guide.
const MAX_STEP: f64 = 0.5;
/// Less than this is no jobs at all.
const NOTHING: f64 = 1e-300;

/// Jobs by row and column.
#[derive(Debug, Clone)]
pub struct Table {
    pub columns: usize,
    pub cells: Vec<f64>,
}

impl Table {
    pub fn rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.cells.chunks_exact(self.columns)
    }
}

/// Known sums of categories: the category of a cell is `row_kind[row] * column_kinds + column_kind[column]`.
#[derive(Debug, Clone)]
pub struct Family {
    pub row_kind: Vec<usize>,
    pub column_kind: Vec<usize>,
    pub column_kinds: usize,
    /// Jobs by category; those that there are where nothing is known.
    pub jobs: Vec<Option<f64>>,
    /// Sums by category, and the value of one job by column.
    pub sums: Option<(Vec<Option<f64>>, Vec<f64>)>,
}

/// Sums over the cells of one category.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    jobs: f64,
    log_value: f64,
    value: f64,
    value_log_value: f64,
}

/// Visits all families `sweeps` times.
pub fn rake(table: &mut Table, families: &[Family], sweeps: u32) {
    let log_values: Vec<Vec<f64>> = families.iter().map(Family::log_values).collect();
    for _ in 0..sweeps {
        for (family, log_values) in families.iter().zip(&log_values) {
            family.correct(table, log_values);
        }
    }
}

impl Family {
    fn log_values(&self) -> Vec<f64> {
        self.sums.as_ref().map_or_else(
            || vec![0.0; self.column_kind.len()],
            |(_, values)| values.iter().map(|value| value.ln()).collect(),
        )
    }

    fn correct(&self, table: &mut Table, log_values: &[f64]) {
        let totals = self.totals(table, log_values);
        let corrections: Vec<(f64, f64)> = (0..totals.len()).map(|kind| self.correction(kind, &totals[kind])).collect();
        let row_kinds = totals.len() / self.column_kinds;
        let factors: Vec<Vec<f64>> = (0..row_kinds).map(|kind| self.factors(kind, &corrections, log_values)).collect();
        for (row, kind) in table.cells.chunks_exact_mut(table.columns).zip(&self.row_kind) {
            for (cell, factor) in row.iter_mut().zip(&factors[*kind]) {
                *cell *= factor;
            }
        }
    }

    fn totals(&self, table: &Table, log_values: &[f64]) -> Vec<Totals> {
        // By row kind and column first: the powers are taken once for each of them and not for each row.
        let row_kinds = self.jobs.len() / self.column_kinds;
        let mut merged = vec![0.0; row_kinds * table.columns];
        for (row, kind) in table.rows().zip(&self.row_kind) {
            for (sum, cell) in merged[kind * table.columns..].iter_mut().zip(row) {
                *sum += cell;
            }
        }
        let mut totals = vec![Totals::default(); self.jobs.len()];
        let no_values = Vec::new();
        let values = self.sums.as_ref().map_or(&no_values, |(_, values)| values);
        for (index, jobs) in merged.iter().enumerate() {
            let (row_kind, column) = (index / table.columns, index % table.columns);
            let total = &mut totals[row_kind * self.column_kinds + self.column_kind[column]];
            let value = values.get(column).copied().unwrap_or(0.0);
            total.jobs += jobs;
            total.log_value += jobs * log_values[column];
            total.value += jobs * value;
            total.value_log_value += jobs * value * log_values[column];
        }
        totals
    }

    /// The logarithm of the factor at value 1, and the power of the value.
    fn correction(&self, kind: usize, totals: &Totals) -> (f64, f64) {
        if totals.jobs < NOTHING {
            return (0.0, 0.0);
        }
        let jobs = self.jobs[kind].unwrap_or(totals.jobs).max(NOTHING);
        let level = (jobs / totals.jobs).ln();
        let Some(sum) = self.sums.as_ref().and_then(|(sums, _)| sums[kind]) else { return (level, 0.0) };
        let mean_log = totals.log_value / totals.jobs;
        // How fast the logarithm of the mean value moves with the power: Newton's step, linear at power 0.
        let slope = totals.value_log_value / totals.value - mean_log;
        let missing = (sum.max(NOTHING) / jobs / (totals.value / totals.jobs)).ln();
        let power = if slope > 1e-9 { (missing / slope).clamp(-MAX_STEP, MAX_STEP) } else { 0.0 };
        (level - power * mean_log, power)
    }

    fn factors(&self, row_kind: usize, corrections: &[(f64, f64)], log_values: &[f64]) -> Vec<f64> {
        let factor = |(column_kind, log_value): (&usize, &f64)| {
            let (level, power) = corrections[row_kind * self.column_kinds + column_kind];
            (level + power * log_value).exp()
        };
        self.column_kind.iter().zip(log_values).map(factor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_row(jobs: [f64; 2]) -> Family {
        Family {
            row_kind: vec![0, 1],
            column_kind: vec![0; 3],
            column_kinds: 1,
            jobs: jobs.into_iter().map(Some).collect(),
            sums: None,
        }
    }

    #[test]
    fn a_raked_table_has_the_jobs_and_the_sums_that_were_asked_for() {
        let values = vec![1.0, 10.0, 100.0];
        let work = Family { sums: Some((vec![Some(900.0), Some(400.0)], values.clone())), ..by_row([30.0, 70.0]) };
        let columns = Family {
            row_kind: vec![0; 2],
            column_kind: vec![0, 1, 1],
            column_kinds: 2,
            jobs: vec![Some(60.0), Some(40.0)],
            sums: None,
        };
        let mut table = Table { columns: 3, cells: vec![1.0; 6] };
        rake(&mut table, &[work, columns], 500);
        let rows: Vec<&[f64]> = table.rows().collect();
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} for {b}: {table:?}");
        near(rows[0].iter().sum(), 30.0);
        near(rows[0].iter().zip(&values).map(|(jobs, value)| jobs * value).sum(), 900.0);
        near(rows[1].iter().zip(&values).map(|(jobs, value)| jobs * value).sum(), 400.0);
        near(rows[0][0] + rows[1][0], 60.0);
    }

    #[test]
    fn what_nothing_is_known_of_keeps_its_odds_and_what_is_impossible_stays_so() {
        let mut table = Table { columns: 3, cells: vec![1.0, 2.0, 3.0, 0.0, 1.0, 1.0] };
        rake(&mut table, &[by_row([60.0, 2.0])], 3);
        for (cell, wanted) in table.cells.iter().zip([10.0, 20.0, 30.0, 0.0, 1.0, 1.0]) {
            assert!((cell - wanted).abs() < 1e-9, "{table:?}");
        }
    }
}
