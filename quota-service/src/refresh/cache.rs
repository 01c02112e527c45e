//! Cache of panels of unchanged usage and models of unchanged runs.

use super::pace::Haste;
use crate::core::Core;
use crate::plan::{Remembered, Run};
use datasets::Panel;
use forecaster::checkpoint;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{RunId, Store, StoreError};
use vocab::{ClusterName, HourStart};

#[derive(Default)]
pub struct Cache {
    clusters: BTreeMap<ClusterName, Cached>,
}

/// Of one cluster.
#[derive(Default)]
pub struct Cached {
    pub panel: Option<CachedPanel>,
    pub run: Option<Run>,
    /// Forecasts of the last renewal.
    pub forecasts: Option<Remembered>,
    /// A promoted run whose model cannot be loaded: the one before goes on serving.
    pub refused: Option<(RunId, String)>,
    /// Last logged warning about years that the calendar does not cover.
    pub calendar_warning: Option<String>,
}

/// A panel and what it depends on.
pub struct CachedPanel {
    pub usage_version: i64,
    pub from: HourStart,
    pub to: HourStart,
    pub time_zone: String,
    pub calendar: String,
    /// Of the cluster's own calendar, where it has one.
    pub calendar_version: Option<i64>,
    pub panel: Arc<Panel>,
}

impl Cache {
    pub fn of(&mut self, cluster: &ClusterName) -> &mut Cached {
        self.clusters.entry(cluster.clone()).or_default()
    }

    /// The clusters that this service writes for which have another promoted run than the one that serves, or other usage than
    /// was read: other programs write it, too. A database that does not answer has no news.
    pub async fn news(&self, core: &Core) -> Vec<(ClusterName, Haste)> {
        let store = core.store.as_ref();
        let mut news = Vec::new();
        let Ok(clusters) = store.clusters().await else { return news };
        for cluster in clusters.iter().filter(|cluster| core.leases.led(&cluster.name).is_some()) {
            let Ok(promoted) = store.promoted(&cluster.name).await else { continue };
            let promoted = promoted.map(|run| run.id);
            let cached = self.clusters.get(&cluster.name);
            if promoted != cached.and_then(Cached::tried) {
                news.push((cluster.name.clone(), Haste::Urgent));
                continue;
            }
            let read = cached.and_then(|cached| cached.panel.as_ref()).map(|panel| panel.usage_version);
            let Ok(stored) = store.usage_version(&cluster.name).await else { continue };
            if read.is_some_and(|read| read != stored) {
                news.push((cluster.name.clone(), Haste::Report));
            }
        }
        news
    }
}

impl Cached {
    /// The promoted run that was last loaded, or refused.
    fn tried(&self) -> Option<RunId> {
        self.refused.as_ref().map(|(id, _)| *id).or(self.run.as_ref().map(|run| run.id))
    }

    /// Brings the model in line with the promoted run. A model that cannot be loaded is refused, and the one before stays.
    pub async fn update_run(&mut self, store: &dyn Store, cluster: &ClusterName) -> Result<(), StoreError> {
        let Some(promoted) = store.promoted(cluster).await? else {
            (self.run, self.refused) = (None, None);
            return Ok(());
        };
        if self.run.as_ref().is_some_and(|run| run.id == promoted.id) {
            // Also after a rollback from a run that was refused.
            self.refused = None;
            return Ok(());
        }
        if self.refused.as_ref().is_some_and(|(id, _)| *id == promoted.id) {
            return Ok(());
        }
        let loaded = match store.checkpoint(promoted.id).await {
            Ok(bytes) => checkpoint::load(&bytes).map_err(|fault| fault.to_string()),
            // Where no run serves, it is tried again: nothing else would renew.
            Err(fault @ StoreError::Corrupt { .. }) if self.run.is_some() => Err(fault.to_string()),
            Err(fault) => return Err(fault),
        };
        match loaded {
            Ok(trained) => {
                tracing::info!(cluster = %cluster, run = %promoted.id, model = %trained.spec.kind, "the promoted run serves");
                self.run = Some(Run { id: promoted.id, trained: Arc::new(trained) });
                self.refused = None;
            }
            Err(why) => {
                let serves = if self.run.is_some() { "the run before" } else { "none" };
                tracing::error!(cluster = %cluster, run = %promoted.id, why, serves, "the model of the promoted run cannot be loaded");
                self.refused = Some((promoted.id, why));
            }
        }
        Ok(())
    }
}
