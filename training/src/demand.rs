//! The history that a training reads: in memory where it fits, else on disk, with its last weeks in memory.

use crate::error::TrainingError;
use crate::history;
use crate::spool::Spool;
use crate::usage::Usage;
use datasets::{Panel, TimeSplit};
use forecaster::{History, ModelSpec, trained};
use std::collections::BTreeSet;
use store::{Cluster, Store};
use vocab::{HOURS_PER_WEEK, HourStart, PoolId};

/// Memory of a training where `--memory` is not given: what a small machine has.
pub const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;
/// Of a series and hour in memory: demand, and its marks.
const BYTES_PER_HOUR: u64 = 10;
/// Of a series while its validation part is scored all at once: forecasts of a week as issued, raw, and of the last value, with
/// the rows that score them. 10,000 series took 320 KB each at 6 h; longer horizons take more.
const VALIDATION_BYTES_PER_SERIES: u64 = 700_000;
/// Parts of a history take this share of the memory.
const PART_SHARE: u64 = 16;

/// The history of a cluster.
pub enum Demand {
    /// In memory.
    Whole(Panel),
    /// In a file.
    Spooled(Spool),
}

/// A history with what validation and the gate read of it.
pub struct Lessons {
    /// All hours, or, of a spooled history, the last weeks.
    pub panel: Panel,
    /// The whole history where it is not in memory.
    pub spool: Option<Spool>,
    /// First hour of the history.
    pub start: HourStart,
    /// SHA-256 of what the training sees.
    pub sha256: [u8; 32],
}

impl Demand {
    /// Reads a cluster's usage in the hours before `until`, into memory if a training of it takes at most `memory_bytes`. Zone and
    /// calendar are those of the database.
    ///
    /// # Errors
    /// There is no usage, the database does not answer, or the disk is full.
    pub async fn open(
        usage: Usage<'_>,
        store: &dyn Store,
        cluster: &Cluster,
        until: Option<HourStart>,
        memory_bytes: u64,
    ) -> Result<Self, TrainingError> {
        let [start, end] = history::range(usage, cluster, until).await?;
        let hours = u64::try_from(end.hours_since(start)).unwrap_or(0);
        let series = usage.organizations(&cluster.name).await?;
        if series.saturating_mul(hours * BYTES_PER_HOUR + VALIDATION_BYTES_PER_SERIES) <= memory_bytes {
            return history::load_from(usage, store, cluster, until).await.map(Self::Whole);
        }
        Self::spool(usage, store, cluster, until, memory_bytes).await
    }

    /// As [`open`](Self::open), into a file however small it is.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn spool(
        usage: Usage<'_>,
        store: &dyn Store,
        cluster: &Cluster,
        until: Option<HourStart>,
        memory_bytes: u64,
    ) -> Result<Self, TrainingError> {
        let range = history::range(usage, cluster, until).await?;
        let calendar = history::calendar(store, cluster).await?;
        let part_bytes = usize::try_from(memory_bytes / PART_SHARE).unwrap_or(usize::MAX);
        Spool::fill(usage, cluster, calendar, range, part_bytes).await.map(Self::Spooled)
    }

    /// First hour.
    #[must_use]
    pub const fn start(&self) -> HourStart {
        match self {
            Self::Whole(panel) => panel.start(),
            Self::Spooled(spool) => spool.start(),
        }
    }

    /// The hour after the last one.
    #[must_use]
    pub fn end(&self) -> HourStart {
        match self {
            Self::Whole(panel) => panel.end(),
            Self::Spooled(spool) => spool.end(),
        }
    }

    /// Number of hours.
    #[must_use]
    pub fn hours(&self) -> usize {
        usize::try_from(self.end().hours_since(self.start())).unwrap_or(0)
    }

    /// Pools with usage.
    #[must_use]
    pub fn pools(&self) -> BTreeSet<PoolId> {
        match self {
            Self::Whole(panel) => panel.series().iter().map(|series| series.id().pool.clone()).collect(),
            Self::Spooled(spool) => spool.pools(),
        }
    }

    /// Its parts.
    #[must_use]
    pub fn history(&self) -> &dyn History {
        match self {
            Self::Whole(panel) => panel,
            Self::Spooled(spool) => spool,
        }
    }

    /// The parts that a training with this split reads.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lessons(self, cluster: &Cluster, split: TimeSplit, spec: &ModelSpec) -> Result<Lessons, TrainingError> {
        let start = self.start();
        match self {
            Self::Whole(panel) => {
                let sha256 = history::sha256(&panel, split.until);
                Ok(Lessons { panel, spool: None, start, sha256 })
            }
            Self::Spooled(spool) => {
                // The gate replays the promoted run from a week before the validation part on.
                let from = trained::recent_from(start, split.validation, spec).plus_hours(-HOURS_PER_WEEK);
                let of_cluster = |fault| TrainingError::History { cluster: cluster.name.clone(), fault };
                let (panel, sha256) = spool.recent(from.max(start)).map_err(of_cluster)?;
                Ok(Lessons { panel, spool: Some(spool), start, sha256 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Calendar;
    use forecaster::ModelKind;
    use vocab::{ClusterName, HorizonHours, MilliGpus, Organization, SeriesId, UsageRow};

    /// 400 hours of five organizations in two pools, of a pool's own peak, with gaps.
    fn rows() -> Vec<UsageRow> {
        let start = HourStart::from_unix_s(1_709_251_200).unwrap();
        let series = [("A100", "*"), ("A100", "a"), ("A100", "b"), ("H800", "a"), ("H800", "c"), ("H800", "d")];
        let of = |(place, (model, name)): (usize, (&str, &str))| {
            let pool = PoolId::parse(&format!("earth:{model}")).unwrap();
            let id = SeriesId { pool, organization: Organization::parse(name).unwrap() };
            let hours = (0..400_u64).filter(move |hour| !(hour + place as u64).is_multiple_of(9));
            hours.map(move |hour| UsageRow {
                series: id.clone(),
                hour: start.plus_hours(hour as i64),
                demand: MilliGpus::from_milli((hour % 24) * 1_500 * place as u64).unwrap(),
                at_end: hour
                    .is_multiple_of(3)
                    .then(|| MilliGpus::from_milli((hour % 24) * 700 * place as u64).unwrap()),
            })
        };
        series.into_iter().enumerate().flat_map(of).collect()
    }

    fn cluster() -> Cluster {
        Cluster {
            name: ClusterName::parse("earth").unwrap(),
            time_zone: "UTC".into(),
            calendar: Calendar::WEEKDAYS.into(),
        }
    }

    #[test]
    fn a_history_in_a_file_is_that_of_the_database_in_any_number_of_parts() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store::connect(&format!("sqlite://{}", folder.path().join("h.db").display())).await.unwrap();
            store.put_cluster(&cluster()).await.unwrap();
            store.append(&rows(), &[]).await.unwrap();
            let whole =
                Demand::open(Usage::Stored(store.as_ref()), store.as_ref(), &cluster(), None, DEFAULT_MEMORY_BYTES)
                    .await
                    .unwrap();
            let spec =
                ModelSpec { kind: ModelKind::OrgLinear, horizon: HorizonHours::ONE, lookback_hours: 168, seed: 1 };
            let split = TimeSplit::new(whole.start(), whole.end(), spec.lookback_hours, spec.horizon).unwrap();
            let Lessons { panel, sha256, .. } = whole.lessons(&cluster(), split, &spec).unwrap();
            for memory_bytes in [1, 1 << 20] {
                let spooled =
                    Demand::open(Usage::Stored(store.as_ref()), store.as_ref(), &cluster(), None, memory_bytes)
                        .await
                        .unwrap();
                let mut parts = 0;
                spooled.history().each(&mut |_| parts += 1).unwrap();
                assert_eq!(parts, if memory_bytes == 1 { 6 } else { 1 });
                let lessons = spooled.lessons(&cluster(), split, &spec).unwrap();
                assert_eq!((lessons.sha256, lessons.start), (sha256, panel.start()));
                assert_eq!(lessons.panel, panel, "400 hours lie within the last weeks");
                assert!(lessons.spool.is_some());
            }
        });
    }
}
