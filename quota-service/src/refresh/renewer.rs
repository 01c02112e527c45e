//! One renewal of the quotas: read, plan, write, publish.

use super::cache::Cache;
use super::history::History;
use super::pace::Haste;
use super::utilization::Utilization;
use super::{Renewals, failures, learned, limits, read, write};
use crate::core::Core;
use crate::drift::{Ledgers, Renewed};
use crate::leases::Led;
use crate::metrics;
use crate::plan::{ClusterInputs, ClusterPlan, plan};
use crate::trace::span;
use forecaster::calibration::Calibrator;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use store::{Cluster, Store, StoreError};
use tracing::{Instrument, field};
use vocab::ClusterName;

/// Which clusters are renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    All,
    /// Those whose reports have waited for the least interval.
    Due,
}

/// Renews quotas, and remembers what need not be read again.
#[derive(Default)]
pub struct Renewer {
    cache: Cache,
    ledgers: Ledgers,
    learned: learned::Known,
    utilization: Utilization,
    history: History,
    /// The epoch in which each cluster was renewed last: what was known before another one is of no use.
    epochs: BTreeMap<ClusterName, u64>,
}

impl Renewer {
    /// Whether a cluster that this service writes for has another promoted run than the one that was last tried, or other
    /// usage than was last read.
    pub async fn sees_news(&self, core: &Core) -> bool {
        !self.news(core).await.is_empty()
    }

    /// The clusters of [`sees_news`](Self::sees_news), and how soon they are to be renewed.
    pub(super) async fn news(&self, core: &Core) -> Vec<(ClusterName, Haste)> {
        self.cache.news(core).await
    }

    /// Renews the quotas of every cluster that this service writes for once. A failure is logged, counted and stated in the
    /// answers, which age.
    pub async fn renew(&mut self, renewals: &Renewals) {
        self.renew_of(renewals, Of::All).await;
    }

    /// Writes what the pools have learned since it was last written as a whole: this service ends.
    pub async fn leave(&self, renewals: &Renewals) {
        if renewals.core.clock.is_virtual() {
            return;
        }
        for cluster in renewals.core.leases.led_clusters() {
            let Some(led) = renewals.core.leases.led(&cluster) else { continue };
            // Another service may have written meanwhile, and have left again.
            let unsaved = self.learned.unsaved(&cluster);
            if self.epochs.get(&cluster) != Some(&led.epoch) || unsaved.is_empty() {
                continue;
            }
            if let Err(fault) = led.store.insert_quotas(&[], &unsaved).await {
                tracing::warn!(%cluster, %fault, "the last minutes of what was learned are not written, and are lost");
            }
        }
    }

    pub(super) async fn renew_of(&mut self, renewals: &Renewals, of: Of) {
        let started = Instant::now();
        let clusters = match renewals.core.store.clusters().await {
            Ok(clusters) => clusters,
            Err(fault) => return failures::of_all(renewals, &Err(fault)),
        };
        failures::of_all(renewals, &Ok(()));
        let mut knows_all = true;
        renewals.pace.keep(|cluster| renewals.core.leases.led(cluster).is_some());
        for cluster in clusters {
            let Some(led) = renewals.core.leases.led(&cluster.name) else {
                knows_all = false;
                continue;
            };
            if of == Of::Due && !renewals.pace.is_due(&cluster.name) {
                continue;
            }
            renewals.pace.begins(&cluster.name);
            self.notice(&cluster.name, &led);
            let span = span!("cluster", cluster = %cluster.name, otel.status_code = field::Empty);
            let renewed = self.renew_cluster(renewals, &led, &cluster).instrument(span.clone()).await;
            if renewed.is_err() {
                span.record("otel.status_code", "ERROR");
            }
            failures::of_cluster(renewals, &cluster.name, &renewed);
            renewals.quotas.note_read(&cluster.name, renewed.is_ok());
            renewals.try_again(&cluster.name, renewed.is_ok());
        }
        limits::push(renewals).await;
        if knows_all && of == Of::All {
            renewals.quotas.set_complete();
        }
        metrics::refreshed(started.elapsed());
    }

    /// Drops the state of a cluster for which another service has written meanwhile.
    fn notice(&mut self, cluster: &ClusterName, led: &Led) {
        if self.epochs.insert(cluster.clone(), led.epoch).is_some_and(|before| before != led.epoch) {
            self.ledgers.forget(cluster);
            self.learned.forget(|pool| pool.cluster == *cluster);
            self.utilization.forget(|pool| pool.cluster == *cluster);
            self.history.forget(|pool| pool.cluster == *cluster);
        }
    }

    /// Scores what is due, and answers the calibrator that has learned from it.
    async fn caught_up(
        &mut self,
        renewals: &Renewals,
        held: &dyn Store,
        cluster: &ClusterName,
        inputs: &ClusterInputs,
    ) -> Result<Option<Arc<Calibrator>>, StoreError> {
        let ClusterInputs { run, panel, now, .. } = inputs;
        let caught_up = self.ledgers.catch_up(held, cluster, panel, run, *now).await;
        failures::of_ledger(renewals, cluster, "scores", &caught_up);
        if self.ledgers.calibrator(cluster, run.id).is_none() {
            // The calibration of the training would serve in the place of what was learned since.
            caught_up?;
        }
        Ok(self.ledgers.calibrator(cluster, run.id))
    }

    async fn renew_cluster(&mut self, renewals: &Renewals, led: &Led, cluster: &Cluster) -> Result<(), StoreError> {
        let (epoch, held) = (led.epoch, led.store.as_ref());
        // 1. Read.
        let (now, changed) = (renewals.core.clock.now(), renewals.quotas.last_change());
        let known = read::cluster(renewals, &mut self.cache, cluster, now).instrument(span!("read")).await?;
        let (mut inputs, placed) = match known {
            read::ClusterKnown::Ready(inputs, placed) => (inputs, placed),
            read::ClusterKnown::Without { pools, problem } => {
                renewals.quotas.publish(write::kept(&renewals.quotas, pools, &problem).await?);
                return Ok(());
            }
        };
        // 2. Score the forecasts of past hours. Under a virtual clock there is no ledger.
        if !renewals.core.clock.is_virtual() {
            inputs.calibrator = self.caught_up(renewals, held, &cluster.name, &inputs).await?;
            for pool in &mut inputs.pools {
                pool.learned = Some(self.learned.take(held, pool).await?);
            }
        }
        // 3. Plan, on a thread of its own, so that requests keep moving.
        let Some((inputs, mut plan)) = planned(inputs).instrument(span!("think")).await else {
            metrics::refresh_failed();
            let problem = "the last renewal has failed, which is a bug: see the log of the service";
            failures::keep_last(renewals, |pool| pool.id.cluster == cluster.name, problem);
            return Ok(());
        };
        failures::of_model(renewals, &cluster.name, inputs.run.id, &plan.pools);
        let renewed = Renewed::of(cluster.name.clone(), inputs.panel.clone(), inputs.run.id, now, &mut plan);
        let learned = self.learned.remember(&inputs, &mut plan);
        self.cache.of(&cluster.name).forecasts = plan.remembered.take();
        // 4. Write, then publish: an answer may only say what a restart would find again.
        let published =
            write::write(&renewals.quotas, held, &inputs, &placed, (plan.pools, &learned), &mut self.history)
                .instrument(span!("write"))
                .await?;
        self.learned.note(&learned);
        if renewals.core.leases.led(&cluster.name).is_some_and(|led| led.epoch == epoch) {
            span!("publish", pools = published.len())
                .in_scope(|| renewals.quotas.publish_renewed(published, changed, epoch));
        }
        // 5. Record the forecasts.
        if !renewals.core.clock.is_virtual() {
            failures::of_ledger(
                renewals,
                &cluster.name,
                "forecasts",
                &self.ledgers.record(&renewals.quotas.drift, held, renewed).await,
            );
            for (pool, here) in &placed {
                let noted = self.utilization.note(held, pool, &here.nodes, now).await;
                failures::of_ledger(renewals, &cluster.name, &format!("nodes of {pool}"), &noted);
            }
        }
        Ok(())
    }
}

/// `None` where planning panicked: a bug, which must not keep other clusters from their quotas.
async fn planned(inputs: ClusterInputs) -> Option<(ClusterInputs, ClusterPlan)> {
    let worked = tokio::task::spawn_blocking(move || {
        let plan = plan(&inputs);
        (inputs, plan)
    });
    worked.await.inspect_err(|fault| tracing::error!(%fault, "planning has panicked, which is a bug")).ok()
}
