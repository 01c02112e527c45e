//! Where a training reads usage: the database, or files.

use crate::error::TrainingError;
use datasets::spool::Spooled;
use store::{Store, UsageSink};
use vocab::{ClusterName, HourStart};

/// Usage of clusters.
#[derive(Clone, Copy)]
pub enum Usage<'a> {
    /// In the database.
    Stored(&'a dyn Store),
    /// Read from files.
    Files(&'a Spooled),
}

impl Usage<'_> {
    /// First and last hour with a row of an organization.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn range(self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, TrainingError> {
        match self {
            Self::Stored(store) => Ok(store.usage_range(cluster).await?),
            Self::Files(files) => {
                let spans =
                    files.series().filter(|series| series.id.pool.cluster == *cluster && !series.id.is_pool_peak());
                Ok(spans.map(|series| series.span).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))))
            }
        }
    }

    /// Number of organizations, one of two pools counted twice.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn organizations(self, cluster: &ClusterName) -> Result<u64, TrainingError> {
        match self {
            Self::Stored(store) => Ok(store.organization_count(cluster).await?),
            Self::Files(files) => {
                let of_cluster = files.series().filter(|one| one.id.pool.cluster == *cluster && !one.id.is_pool_peak());
                Ok(of_cluster.count() as u64)
            }
        }
    }

    /// Passes every row of the cluster at `from` or later and before `to` to `sink`: series in their order, hours ascending.
    ///
    /// # Errors
    /// The database does not answer, or the disk fails.
    pub async fn load(
        self,
        cluster: &ClusterName,
        [from, to]: [HourStart; 2],
        sink: UsageSink<'_>,
    ) -> Result<(), TrainingError> {
        match self {
            Self::Stored(store) => Ok(store.load_usage(cluster, from, to, sink).await?),
            Self::Files(files) => {
                let within = &mut |series: &vocab::SeriesId, hour, demand| {
                    if (from..to).contains(&hour) {
                        sink(series, hour, demand);
                    }
                };
                Ok(files.each_series(|series| series.pool.cluster == *cluster, within)?)
            }
        }
    }
}
