//! How many organizations reports of usage may bring: every one of them is forecast, scored and kept at each issue hour.

use crate::config::Config;
use std::collections::{BTreeMap, BTreeSet};
use store::{Store, StoreError};
use vocab::{ClusterName, SeriesId, UsageRow};

/// Why rows bring too many organizations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    #[error(
        "{named} organizations in one request: expected at most {most} (max_request_organizations); report them in several \
         requests"
    )]
    InRequest { named: u64, most: u64 },
    #[error(
        "{new} new organizations beside the {known} of cluster {cluster}: expected at most {most} in all \
         (max_cluster_organizations); report fewer names, or raise the setting"
    )]
    InCluster { cluster: ClusterName, known: u64, new: u64, most: u64 },
}

/// Holds the organizations of a report against the settings; `None` where there is room. Reports that come at the same
/// moment may pass together.
///
/// # Errors
/// The database does not answer.
pub async fn too_many(store: &dyn Store, rows: &[UsageRow], config: &Config) -> Result<Option<TooMany>, StoreError> {
    let mut named: BTreeMap<&ClusterName, BTreeSet<&SeriesId>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.series.is_pool_peak()) {
        named.entry(&row.series.pool.cluster).or_default().insert(&row.series);
    }
    let (all, most) = (named.values().map(|one| one.len() as u64).sum(), config.max_request_organizations);
    if all > most {
        return Ok(Some(TooMany::InRequest { named: all, most }));
    }
    let most = config.max_cluster_organizations;
    for (cluster, named) in named {
        let known = store.organization_count(cluster).await?;
        // Most reports are of few, and need no list.
        if known + named.len() as u64 <= most {
            continue;
        }
        let new = unknown(store, cluster, &named).await?.len() as u64;
        if new > 0 && known + new > most {
            return Ok(Some(TooMany::InCluster { cluster: cluster.clone(), known, new, most }));
        }
    }
    Ok(None)
}

/// Those organizations that the cluster does not have yet.
async fn unknown<'a>(
    store: &dyn Store,
    cluster: &ClusterName,
    named: &BTreeSet<&'a SeriesId>,
) -> Result<BTreeSet<&'a SeriesId>, StoreError> {
    let known: BTreeSet<SeriesId> = store.organizations(cluster).await?.into_iter().collect();
    Ok(named.iter().filter(|series| !known.contains(**series)).copied().collect())
}

/// Leaves the rows of organizations out that would be too many in the cluster, and says why; those that it has stay.
///
/// # Errors
/// The database does not answer.
pub async fn within(
    store: &dyn Store,
    cluster: &ClusterName,
    rows: Vec<UsageRow>,
    config: &Config,
) -> Result<(Vec<UsageRow>, Option<TooMany>), StoreError> {
    let config = Config { max_request_organizations: u64::MAX, ..config.clone() };
    let Some(fault) = too_many(store, &rows, &config).await? else { return Ok((rows, None)) };
    let known: BTreeSet<SeriesId> = store.organizations(cluster).await?.into_iter().collect();
    let stays = |row: &UsageRow| row.series.is_pool_peak() || known.contains(&row.series);
    Ok((rows.into_iter().filter(stays).collect(), Some(fault)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::Cluster;
    use vocab::{HourStart, MilliGpus, Organization, PoolId};

    fn rows(names: std::ops::Range<usize>) -> Vec<UsageRow> {
        let pool = PoolId::parse("earth:V100").unwrap();
        let row = |name: String| UsageRow {
            series: SeriesId { pool: pool.clone(), organization: Organization::parse(&name).unwrap() },
            hour: HourStart::from_unix_s(0).unwrap(),
            demand: MilliGpus::from_gpus(1),
            at_end: None,
        };
        names.map(|name| row(format!("o{name}"))).chain([row("*".to_owned())]).collect()
    }

    async fn earth(folder: &tempfile::TempDir) -> Arc<dyn Store> {
        let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
        let store = store::connect(&url).await.unwrap();
        let name = ClusterName::parse("earth").unwrap();
        let cluster = Cluster { name, time_zone: "UTC".to_owned(), calendar: "weekdays".to_owned() };
        store.put_cluster(&cluster).await.unwrap();
        store
    }

    #[tokio::test]
    async fn too_many_organizations_are_refused_with_the_setting_that_bounds_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = earth(&folder).await;
        let config = Config { max_request_organizations: 4, max_cluster_organizations: 5, ..Config::default() };
        let fault_of = async |names| {
            let fault = too_many(store.as_ref(), &rows(names), &config).await.unwrap();
            fault.map(|fault| fault.to_string()).unwrap_or_default()
        };
        assert_eq!(fault_of(0..4).await, "", "the pool's own peak is no organization");
        assert!(
            fault_of(0..5)
                .await
                .starts_with("5 organizations in one request: expected at most 4 (max_request_organizations)")
        );
        store.append(&rows(0..4), &[]).await.unwrap();
        assert_eq!(fault_of(3..5).await, "", "one of them is known");
        let full = fault_of(3..6).await;
        assert!(
            full.starts_with("2 new organizations beside the 4 of cluster earth: expected at most 5 in all"),
            "{full}"
        );
        assert_eq!(fault_of(0..4).await, "", "known organizations may always report");
        let (kept, fault) =
            within(store.as_ref(), &rows(0..1)[0].series.pool.cluster, rows(3..6), &config).await.unwrap();
        assert_eq!((kept.len(), fault.is_some()), (2, true), "a known one and the pool's own peak");
    }
}
