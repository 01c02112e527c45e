//! forecasts.csv and pool_bounds.csv (DESIGN §5).

use super::play::{Played, PlayedBound};
use super::served::PoolReplay;
use crate::error::TrainingError;
use command_line::OutputFile;
use datasets::{HourRange, Panel};
use std::path::{Path, PathBuf};
use vocab::HorizonHours;

/// The header of forecasts.csv.
pub const FORECAST_COLUMNS: [&str; 13] = [
    "issue_time",
    "target_time",
    "step",
    "cluster",
    "gpu_model",
    "organization",
    "model",
    "mean",
    "stddev",
    "q0.5",
    "q0.9",
    "q0.95",
    "actual",
];
/// The header of pool_bounds.csv.
pub const POOL_BOUND_COLUMNS: [&str; 9] = [
    "issue_time",
    "hours",
    "cluster",
    "gpu_model",
    "model",
    "aggregation",
    "guarantee_rate",
    "bound_gpus",
    "actual_peak_gpus",
];

/// The two files in the making.
pub struct Files {
    forecasts: Option<Output>,
    pools: Option<Output>,
}

/// The name of a bound that would have been served among the aggregations.
const SERVED: &str = "served";

struct Output {
    path: PathBuf,
    writer: csv::Writer<OutputFile>,
}

impl Output {
    fn create(path: &Path, header: &[&str]) -> Result<Self, TrainingError> {
        let failed = |source| TrainingError::Write { file: path.to_owned(), source };
        let file = OutputFile::create(path).map_err(failed)?;
        let mut output = Self { path: path.to_owned(), writer: csv::Writer::from_writer(file) };
        output.row(header)?;
        Ok(output)
    }

    fn row<T: AsRef<[u8]>>(&mut self, fields: &[T]) -> Result<(), TrainingError> {
        let failed = |fault| TrainingError::Write { file: self.path.clone(), source: std::io::Error::from(fault) };
        self.writer.write_record(fields).map_err(failed)
    }

    fn finish(self) -> Result<(), TrainingError> {
        let whole = self.writer.into_inner().map_err(csv::IntoInnerError::into_error);
        whole.and_then(OutputFile::finish).map_err(|source| TrainingError::Write { file: self.path, source })
    }
}

impl Files {
    pub fn create(forecasts: Option<&Path>, pools: Option<&Path>) -> Result<Self, TrainingError> {
        Ok(Self {
            forecasts: forecasts.map(|path| Output::create(path, &FORECAST_COLUMNS)).transpose()?,
            pools: pools.map(|path| Output::create(path, &POOL_BOUND_COLUMNS)).transpose()?,
        })
    }

    /// Hours without a row in the history are left out: there is nothing to compare with.
    pub fn write(
        &mut self,
        panel: &Panel,
        issues: HourRange,
        played: &Played,
        horizon: HorizonHours,
    ) -> Result<(), TrainingError> {
        self.write_forecasts(panel, issues, played)?;
        self.write_bounds(played, horizon)
    }

    fn write_forecasts(&mut self, panel: &Panel, issues: HourRange, played: &Played) -> Result<(), TrainingError> {
        let Some(file) = &mut self.forecasts else { return Ok(()) };
        for (issue, forecasts) in issues.iter().zip(&played.rolled) {
            let first = panel.index_of(issue).expect("issue times lie inside the panel");
            for (series, forecast) in panel.series().iter().zip(forecasts) {
                for (index, step) in forecast.steps().iter().enumerate() {
                    if !series.measured()[first + index] {
                        continue;
                    }
                    let actual = series.demand_gpus()[first + index];
                    let [q50, q90, q95] = step.quantiles_gpus;
                    let numbers = [step.mean_gpus, step.stddev_gpus, q50, q90, q95, actual];
                    let target = issue.plus_hours(index as i64).to_string();
                    let id = series.id();
                    let names = [&id.pool.cluster.to_string(), id.pool.gpu_model.as_str(), id.organization.as_str()];
                    let mut row = vec![issue.to_string(), target, (index + 1).to_string()];
                    row.extend(names.map(str::to_owned));
                    row.push(played.name.clone());
                    row.extend(numbers.map(|number| number.to_string()));
                    file.row(&row)?;
                }
            }
        }
        Ok(())
    }

    fn write_bounds(&mut self, played: &Played, horizon: HorizonHours) -> Result<(), TrainingError> {
        let Some(pools) = &mut self.pools else { return Ok(()) };
        for one in &played.bounds {
            pools.row(&bound_row(played, one, horizon, one.aggregation.as_str(), one.bound_gpus))?;
        }
        Ok(())
    }

    /// Bounds that are valid at the issue times of the other aggregations, by usage that was on time.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_served(
        &mut self,
        played: &Played,
        replay: &PoolReplay,
        horizon: HorizonHours,
    ) -> Result<(), TrainingError> {
        let Some(pools) = self.pools.as_mut().filter(|_| replay.late_s == 0) else { return Ok(()) };
        let mut last = None;
        for one in played.bounds.iter().filter(|one| one.pool == replay.pool) {
            let Some(bound_gpus) = replay.in_force(one.issue, horizon).filter(|_| last != Some(one.issue)) else {
                continue;
            };
            last = Some(one.issue);
            pools.row(&bound_row(played, one, horizon, SERVED, bound_gpus))?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<(), TrainingError> {
        self.forecasts.map_or(Ok(()), Output::finish)?;
        self.pools.map_or(Ok(()), Output::finish)
    }
}

fn bound_row(
    played: &Played,
    one: &PlayedBound,
    horizon: HorizonHours,
    aggregation: &str,
    bound_gpus: f64,
) -> [String; 9] {
    [
        one.issue.to_string(),
        horizon.get().to_string(),
        one.pool.cluster.to_string(),
        one.pool.gpu_model.to_string(),
        played.name.clone(),
        aggregation.to_owned(),
        played.rate.to_string(),
        bound_gpus.to_string(),
        one.peak_gpus.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_quantiles_are_those_that_forecasts_have() {
        let levels = vocab::QUANTILE_LEVELS.map(|level| format!("q{level}"));
        assert_eq!(FORECAST_COLUMNS[9..12], levels);
    }
}
