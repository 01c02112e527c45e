//! Measured demand from the forecasts, and recording gaps.

use crate::args::ZeroHours;
use crate::error::{ExportError, RowFault};
use crate::forecasts::{ForecastRow, Forecasts, ROUNDING_GPUS};
use crate::table;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, HourStart};

/// Hours in which a cluster recorded nothing, where zeros are known to mean that: every one of its series, more than one, is
/// zero. Such hours are not scored.
#[derive(Debug)]
pub struct RecordingGaps(BTreeSet<(ClusterName, HourStart)>);

impl RecordingGaps {
    /// None where zeros are demand.
    ///
    /// # Errors
    /// Two rows state different actuals of one series and hour.
    pub fn find(forecasts: &Forecasts, zero_hours: ZeroHours) -> Result<Self, ExportError> {
        let mut actuals: BTreeMap<(usize, HourStart), &ForecastRow> = BTreeMap::new();
        for row in &forecasts.rows {
            let first = *actuals.entry((row.series, row.target())).or_insert(row);
            if (first.actual_gpus - row.actual_gpus).abs() > ROUNDING_GPUS {
                let fault = RowFault::Contradiction {
                    series: Box::new(forecasts.series[row.series].clone()),
                    target: row.target(),
                    first: first.actual_gpus,
                    first_row: first.row,
                    second: row.actual_gpus,
                };
                return Err(table::at(&forecasts.file, row.row, fault));
            }
        }
        if zero_hours == ZeroHours::Demand {
            return Ok(Self(BTreeSet::new()));
        }
        let mut hours: BTreeMap<(&ClusterName, HourStart), (usize, f64)> = BTreeMap::new();
        for ((series, target), row) in &actuals {
            let (count, most_gpus) = hours.entry((&forecasts.series[*series].pool.cluster, *target)).or_default();
            *count += 1;
            *most_gpus = most_gpus.max(row.actual_gpus);
        }
        let empty = |(count, most_gpus): &(usize, f64)| *count > 1 && *most_gpus <= ROUNDING_GPUS;
        let gaps = hours.iter().filter(|(_, seen)| empty(seen));
        Ok(Self(gaps.map(|((cluster, hour), _)| ((*cluster).clone(), *hour)).collect()))
    }

    /// Whether a row's hour was not recorded.
    pub fn holds(&self, forecasts: &Forecasts, row: &ForecastRow) -> bool {
        // Rare, and the key is owned: asked only where there can be one.
        row.actual_gpus <= ROUNDING_GPUS
            && self.0.contains(&(forecasts.series[row.series].pool.cluster.clone(), row.target()))
    }

    /// Whether a cluster recorded nothing in an hour.
    pub fn at(&self, cluster: &ClusterName, hour: HourStart) -> bool {
        self.0.contains(&(cluster.clone(), hour))
    }
}
