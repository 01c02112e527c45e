//! Forecasts of a report: files of a backtest, or runs that are backtested over the hours after their training.

use crate::args::{Capacity, Config, Report};
use crate::error::ExportError;
use crate::forecasts::Forecasts;
use crate::pool_bounds::PoolBounds;
use chrono_tz::Tz;
use std::collections::BTreeMap;
use tempfile::TempDir;
use training::backtest::play_runs;
use vocab::{CapacityRow, GuaranteeRate, PoolId};

/// GPUs of each pool, where they are known.
pub type Capacities = BTreeMap<PoolId, f64>;

/// The aggregations that serve the pools of a run (`earth:V100=mixture earth:P100=pooled`), by its name in the files.
pub type Serving = BTreeMap<String, String>;

/// The files of what was played.
pub const FORECASTS: &str = "forecasts.csv";
pub const POOL_BOUNDS: &str = "pool_bounds.csv";

/// Input of a report.
pub struct Source {
    pub forecasts: Forecasts,
    pub bounds: Option<PoolBounds>,
    pub zone: Tz,
    pub capacities: Capacities,
    /// Of runs: the aggregations that serve their pools, by model.
    pub serving: Serving,
    /// Where the files of runs lie that were played for this report.
    pub played: Option<TempDir>,
}

/// # Errors
/// A file cannot be read or what it holds is refused, a run cannot be played, or the flags do not fit the data.
pub fn read(what: &Report, config: &Config) -> Result<Source, ExportError> {
    if what.run.is_empty() {
        let forecasts = what.forecasts.as_deref().expect("clap asks for one of the two");
        let mut source = Source {
            forecasts: Forecasts::read(forecasts)?,
            bounds: what.pool_bounds.as_deref().map(PoolBounds::read).transpose()?,
            zone: what.time_zone.unwrap_or(Tz::UTC),
            capacities: Capacities::new(),
            serving: Serving::new(),
            played: None,
        };
        if let Some(bounds) = &source.bounds {
            bounds.check_backtest(&source.forecasts.backtest())?;
        }
        source.add_capacities(&what.capacity)?;
        return Ok(source);
    }
    played(what, config)
}

fn played(what: &Report, config: &Config) -> Result<Source, ExportError> {
    let rate = GuaranteeRate::new(config.guarantee_rate)?;
    let folder = tempfile::tempdir().map_err(|source| ExportError::Write { file: std::env::temp_dir(), source })?;
    let (forecasts, bounds) = (folder.path().join(FORECASTS), folder.path().join(POOL_BOUNDS));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ExportError::Runtime)?;
    let played = runtime.block_on(async {
        let store = store::connect_existing(&config.database).await?;
        let played = play_runs(store.as_ref(), &what.run, rate, &forecasts, &bounds).await?;
        store.close().await;
        Ok::<_, ExportError>(played)
    })?;
    // The calendar was refused when it was stored, if its zone is none.
    let stored = played.cluster.time_zone.parse().unwrap_or(Tz::UTC);
    let mut source = Source {
        forecasts: Forecasts::read(&forecasts)?,
        bounds: Some(PoolBounds::read(&bounds)?),
        zone: what.time_zone.unwrap_or(stored),
        capacities: latest(&played.capacities),
        serving: played.serving,
        played: Some(folder),
    };
    source.add_capacities(&what.capacity)?;
    Ok(source)
}

/// The newest row of each pool.
fn latest(rows: &[CapacityRow]) -> Capacities {
    let mut newest: BTreeMap<&PoolId, &CapacityRow> = BTreeMap::new();
    for row in rows {
        let known = newest.entry(&row.pool).or_insert(row);
        if row.from > known.from {
            *known = row;
        }
    }
    newest.into_iter().map(|(pool, row)| (pool.clone(), row.capacity.as_gpus())).collect()
}

impl Source {
    /// Pools of the forecasts, in ascending order.
    fn pools(&self) -> Vec<PoolId> {
        let mut pools: Vec<PoolId> = self.forecasts.series.iter().map(|series| series.pool.clone()).collect();
        pools.sort();
        pools.dedup();
        pools
    }

    fn add_capacities(&mut self, given: &[Capacity]) -> Result<(), ExportError> {
        let pools = self.pools();
        for one in given {
            let pool = match (&one.pool, &pools[..]) {
                (Some(pool), known) if known.contains(pool) => pool,
                (None, [only]) => only,
                _ => {
                    let pools = pools.iter().map(ToString::to_string).collect();
                    return Err(ExportError::WhichPool { text: one.text.clone(), pools });
                }
            };
            self.capacities.insert(pool.clone(), one.gpus.as_gpus());
        }
        if let Some(bounds) = &mut self.bounds {
            bounds.cap(&self.capacities);
        }
        Ok(())
    }
}
