//! pool_bounds.csv (DESIGN §5), read and checked.

use crate::error::{ExportError, RowFault};
use crate::grid::{self, GridFault};
use crate::number::Numbered;
use crate::source::Capacities;
use crate::table::{self, Table};
use forecaster::scores::PoolPair;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use training::backtest::POOL_BOUND_COLUMNS;
use vocab::{ClusterName, GpuModel, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// One bound of a pool, and the peak that came.
#[derive(Debug, Clone)]
pub struct BoundRow {
    /// Its row in the file.
    row: u64,
    pub pool: PoolId,
    pub hours: HorizonHours,
    /// Model and aggregation.
    pub candidate: (String, String),
    pub pair: PoolPair,
}

/// The bounds of one or more models and aggregations, all over the same pools, hours and issue times.
#[derive(Debug)]
pub struct PoolBounds {
    file: PathBuf,
    /// The rate that all of them were made for.
    pub rate: GuaranteeRate,
    /// Models and aggregations, in the order in which the file names them first.
    pub candidates: Vec<(String, String)>,
    pub rows: Vec<BoundRow>,
}

/// The backtest of forecasts.
#[derive(Debug)]
pub struct Backtest {
    pub pools: BTreeSet<PoolId>,
    pub models: BTreeSet<String>,
    /// The first and the last.
    pub issues: (HourStart, HourStart),
    /// The longest step, in hours.
    pub horizon: u8,
}

fn list<T: ToString>(names: &BTreeSet<T>) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl PoolBounds {
    /// # Errors
    /// The file cannot be read, its header is another one, a row is bad or there twice, the guarantee rate changes, or
    /// a candidate lacks rows that another one has.
    pub fn read(file: &Path) -> Result<Self, ExportError> {
        let (mut rate, mut candidates, mut rows) = (None, Numbered::default(), Vec::new());
        Table::open(file, POOL_BOUND_COLUMNS)?.each(|row, fields| {
            let (parsed, own) = parse(row, fields)?;
            let (first, first_row) = *rate.get_or_insert((own, row));
            if own != first {
                return Err(RowFault::OtherRate { rate: own.to_string(), first: first.to_string(), first_row });
            }
            candidates.number(parsed.candidate.clone());
            rows.push(parsed);
            Ok(())
        })?;
        let (rate, _) = rate.ok_or_else(|| ExportError::NoRows { file: file.to_owned() })?;
        let bounds = Self { file: file.to_owned(), rate, candidates: candidates.into_values(), rows };
        let cell = |row: &BoundRow| (row.pool.clone(), row.hours, row.pair.issue);
        grid::ordered(&bounds.rows, |row| row.candidate.clone(), cell).map_err(|fault| bounds.explain(&fault))?;
        Ok(bounds)
    }

    /// Checks that the bounds and the forecasts can be of one backtest: pools, models and issue times are among those of
    /// the forecasts, and the longest hours are their horizon.
    ///
    /// # Errors
    /// The first row that is of another backtest.
    pub fn check_backtest(&self, of: &Backtest) -> Result<(), ExportError> {
        let foreign = |row: &BoundRow| {
            let issue = row.pair.issue;
            if !of.pools.contains(&row.pool) {
                return Some(RowFault::OtherPool { pool: Box::new(row.pool.clone()), known: list(&of.pools) });
            }
            if !of.models.contains(&row.candidate.0) {
                return Some(RowFault::OtherModel { model: row.candidate.0.clone(), known: list(&of.models) });
            }
            let (first, last) = of.issues;
            let is_within = (first..=last).contains(&issue);
            (!is_within).then_some(RowFault::OtherWindow { issue, first, last })
        };
        if let Some((row, fault)) = self.rows.iter().find_map(|row| Some((row.row, foreign(row)?))) {
            return Err(table::at(&self.file, row, fault));
        }
        let longest = self.rows.iter().map(|row| row.hours.get()).max();
        let other = self.rows.iter().find(|row| Some(row.hours.get()) == longest && row.hours.get() != of.horizon);
        other.map_or(Ok(()), |row| {
            let fault = RowFault::OtherHorizon { hours: row.hours.get(), horizon: of.horizon };
            Err(table::at(&self.file, row.row, fault))
        })
    }

    /// Cuts bounds and peaks at what the pools have: no one is promised, and nothing runs, above the capacity.
    pub fn cap(&mut self, capacities: &Capacities) {
        for row in &mut self.rows {
            if let Some(most) = capacities.get(&row.pool) {
                row.pair.bound_gpus = row.pair.bound_gpus.min(*most);
                row.pair.peak_gpus = row.pair.peak_gpus.min(*most);
            }
        }
    }

    fn explain(&self, fault: &GridFault) -> ExportError {
        let candidate = |row: &BoundRow| format!("model {} with {}", row.candidate.0, row.candidate.1);
        let what = |row: &BoundRow| format!("bound of {} over {} issued {}", row.pool, row.hours, row.pair.issue);
        let (row, fault) = match *fault {
            GridFault::Twice { first, second } => {
                let (first, second) = (&self.rows[first], &self.rows[second]);
                let what = format!("{}: the {}", candidate(second), what(second));
                (second, RowFault::Twice { what, first_row: first.row })
            }
            GridFault::Uneven { there, having_rows, lacking, lacking_rows } => {
                let (there, lacking) = (&self.rows[there], candidate(&self.rows[lacking]));
                let (what, having) = (what(there), candidate(there));
                (there, RowFault::Uneven { what, having, having_rows, lacking, lacking_rows })
            }
        };
        table::at(&self.file, row.row, fault)
    }
}

fn parse(row: u64, fields: [&str; 9]) -> Result<(BoundRow, GuaranteeRate), RowFault> {
    let [issue, hours, cluster, gpu_model, model, aggregation, rate, bound, peak] = fields;
    let issue = table::hour("issue_time", issue)?;
    let hours = table::hours("hours", hours)?;
    let pool = PoolId {
        cluster: table::name("cluster", cluster, ClusterName::parse)?,
        gpu_model: table::name("gpu_model", gpu_model, GpuModel::parse)?,
    };
    let candidate = (table::label("model", model)?, table::label("aggregation", aggregation)?);
    let rate = GuaranteeRate::parse(rate).map_err(RowFault::Rate)?;
    let bound_gpus = table::gpus_from_zero("bound_gpus", bound)?;
    let peak_gpus = table::gpus_from_zero("actual_peak_gpus", peak)?;
    Ok((BoundRow { row, pool, hours, candidate, pair: PoolPair { issue, bound_gpus, peak_gpus } }, rate))
}
