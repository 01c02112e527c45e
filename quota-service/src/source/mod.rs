//! Usage out of Prometheus: each hour, a little after it is over, and at the start what is missing until then.
//!
//! A source is read by the service that writes for its cluster. What it cannot read stays unread until it can: an hour that was
//! not measured is never a zero. The last hours are read again each time, since some stores answer in part for a while.

mod file;
mod metrics;
mod schedule;

pub use file::read;

use crate::config::Config;
use crate::core::Core;
use crate::leases::Led;
use crate::organizations;
use crate::refresh::Renewals;
use futures_util::future::join_all;
use prometheus::{Client, KNOWN_HOURS, Reading, Source, SourceError, Why};
use schedule::{AGAIN_HOURS, Schedule};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{AppendReport, Cluster, StoreError};
use tokio::time::MissedTickBehavior;
use vocab::{HourDemand, HourStart, PoolId, SeriesId};

/// Between two looks whether it is time.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Reads every source of the settings until the service stops; returns at once without a source.
pub async fn run(renewals: Arc<Renewals>, sources: Vec<Source>) {
    if !sources.is_empty() && renewals.core.clock.is_virtual() {
        tracing::info!("no Prometheus is read under a virtual clock");
        return;
    }
    let mut stop = renewals.core.stopping.subscribe();
    let feeding = sources.into_iter().map(|source| feed(renewals.clone(), Feed::new(source)));
    tokio::select! {
        _ = join_all(feeding) => {}
        // A read under way is dropped: it is repeated after the next start.
        _ = stop.wait_for(|stopped| *stopped) => {}
    }
}

async fn feed(renewals: Arc<Renewals>, mut feed: Feed) {
    let mut regular = tokio::time::interval(LOOK_EVERY);
    regular.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        regular.tick().await;
        feed.look(&renewals).await;
    }
}

/// Why hours were not taken in.
#[derive(Debug, thiserror::Error)]
enum FeedError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One source, and how far it was read.
pub struct Feed {
    source: Source,
    schedule: Schedule,
    /// Whether the cluster is known to be there.
    has_cluster: bool,
    /// In which epoch the schedule was made: in another one, another service may have read meanwhile.
    epoch: Option<u64>,
    /// The fault that was logged last, while it lasts.
    fault: Option<String>,
    /// Pools whose own placement makes their usage, as they were logged last.
    placed_here: BTreeSet<PoolId>,
}

impl Feed {
    #[must_use]
    pub fn new(source: Source) -> Self {
        metrics::begin(source.cluster.as_str());
        let (schedule, placed_here) = Default::default();
        Self { source, schedule, has_cluster: false, epoch: None, fault: None, placed_here }
    }

    /// Reads what is over and was not read, if this service writes for the cluster and it is time.
    pub async fn look(&mut self, renewals: &Renewals) {
        let now = renewals.core.clock.now();
        if !self.schedule.may_try(now) {
            return;
        }
        match self.try_look(renewals).await {
            Ok(()) => {}
            Err(fault) => {
                self.schedule.failed(now);
                let text = fault.to_string();
                if self.fault.as_ref() != Some(&text) {
                    tracing::warn!(cluster = %self.source.cluster, %fault, "cannot read usage from Prometheus");
                }
                self.fault = Some(text);
            }
        }
    }

    async fn try_look(&mut self, renewals: &Renewals) -> Result<(), FeedError> {
        if !self.has_cluster {
            self.make_cluster(&renewals.core).await?;
        }
        let Some(led) = renewals.core.leases.led(&self.source.cluster) else { return Ok(()) };
        let placed = led.store.placed_pools().await?.into_iter().map(|placed| placed.pool).collect();
        if self.epoch != Some(led.epoch) {
            self.schedule.begin(self.newest(&led, &placed).await?.map(|newest| newest.plus_hours(1)));
            self.epoch = Some(led.epoch);
        }
        let now = renewals.core.clock.now();
        let Some(asked) = self.schedule.due(now, self.source.lookback_hours) else { return Ok(()) };
        // 1. Read.
        let known = self.known(&led, &placed, asked.span.from).await?;
        let cluster = self.source.cluster.to_string();
        let count = |outcome| metrics::asked(&cluster, outcome);
        let client = Client::new(&self.source)?.reporting(&count);
        let reading = prometheus::read(&client, &self.source, asked, &known, &|_| ()).await?;
        if reading.rows.is_empty() {
            return Err(prometheus::nothing_there(&self.source, asked.span).into());
        }
        // 2. Write.
        let new_from = self.schedule.next().unwrap_or(asked.span.from);
        let written = self.write(&led, &placed, &reading, &renewals.core.config).await?;
        // 3. Tell.
        match unanswered(&reading).filter(|_| reading.may_pass && self.schedule.may_repeat()) {
            // A server that is starting would cost more hours than are read again anyway.
            Some(from) if from < asked.span.until.plus_hours(-AGAIN_HOURS) => self.schedule.read_in_part(from, now),
            _ => self.schedule.read_until(asked.span.until),
        }
        self.tell(&reading, new_from, &written);
        metrics::read(&cluster, missing_since(&reading, new_from), renewals.core.clock.now());
        if written.usage.inserted + written.usage.changed + written.capacity.inserted + written.capacity.changed > 0 {
            renewals.request_refresh();
        }
        Ok(())
    }

    /// A source may be the first that is known of a cluster.
    async fn make_cluster(&mut self, core: &Core) -> Result<(), StoreError> {
        let Source { cluster, time_zone, calendar, .. } = &self.source;
        if core.store.cluster(cluster).await?.is_none() {
            let made = Cluster { name: cluster.clone(), time_zone: time_zone.clone(), calendar: calendar.clone() };
            core.store.put_cluster(&made).await?;
            tracing::info!(%cluster, time_zone, calendar, "created the cluster of a Prometheus source");
        }
        self.has_cluster = true;
        Ok(())
    }

    /// The newest hour with a row of what the source measures: a pool that is placed here goes on without it.
    async fn newest(&self, led: &Led, placed: &BTreeSet<PoolId>) -> Result<Option<HourStart>, StoreError> {
        let summaries = led.store.describe_usage(&self.source.cluster).await?;
        let covered = |pool: &PoolId| self.source.covers(pool) && !placed.contains(pool);
        let mine = summaries.iter().filter(|one| !one.series.is_pool_peak() && covered(&one.series.pool));
        Ok(mine.map(|one| one.last).max())
    }

    /// Series with demand in the week before: they count as zero where the source no longer knows them.
    async fn known(
        &self,
        led: &Led,
        placed: &BTreeSet<PoolId>,
        from: HourStart,
    ) -> Result<BTreeSet<SeriesId>, StoreError> {
        let mut known = BTreeSet::new();
        let mine = |pool: &PoolId| self.source.covers(pool) && !placed.contains(pool);
        let sink = &mut |series: &SeriesId, _: HourStart, demand: HourDemand| {
            if !demand.peak.is_zero() && mine(&series.pool) && !known.contains(series) {
                known.insert(series.clone());
            }
        };
        led.store.load_usage(&self.source.cluster, from.plus_hours(-KNOWN_HOURS), from, sink).await?;
        Ok(known)
    }

    /// In one transaction, under the lease. Pools that are placed here know their usage better, and capacity that has not changed
    /// needs no row.
    async fn write(
        &mut self,
        led: &Led,
        placed: &BTreeSet<PoolId>,
        reading: &Reading,
        config: &Config,
    ) -> Result<AppendReport, StoreError> {
        let mine: BTreeSet<PoolId> =
            reading.rows.iter().map(|row| &row.series.pool).filter(|pool| placed.contains(pool)).cloned().collect();
        for pool in mine.difference(&self.placed_here) {
            tracing::warn!(%pool, "Headroom places the tasks of the pool: its usage in Prometheus is left out");
        }
        self.placed_here = mine;
        let rows: Vec<_> = reading.rows.iter().filter(|row| !placed.contains(&row.series.pool)).cloned().collect();
        let (rows, fault) = organizations::within(led.store.as_ref(), &self.source.cluster, rows, config).await?;
        if let Some(fault) = fault {
            tracing::warn!(cluster = %self.source.cluster, %fault, "new organizations of Prometheus are left out");
        }
        let (mut capacity, mut last) = (Vec::new(), None);
        for row in &reading.capacity {
            // Only of the first row of a pool may what holds already be stored.
            let is_first = last.replace(&row.pool) != Some(&row.pool);
            let before = if is_first { led.store.capacity_at(&row.pool, row.from).await? } else { None };
            if before.is_none_or(|before| before.capacity != row.capacity) {
                capacity.push(row.clone());
            }
        }
        led.store.append(&rows, &capacity).await
    }

    fn tell(&mut self, reading: &Reading, new_from: HourStart, written: &AppendReport) {
        let cluster = &self.source.cluster;
        if self.fault.take().is_some() {
            tracing::info!(%cluster, "usage is read from Prometheus again");
        }
        for gap in reading.gaps.iter().filter(|gap| gap.span.until > new_from) {
            tracing::warn!(%cluster, %gap, "hours are missing in Prometheus");
        }
        let (inserted, changed) = (written.usage.inserted, written.usage.changed);
        if inserted + changed > 0 {
            tracing::info!(%cluster, inserted, changed, "read usage from Prometheus");
        }
    }
}

/// The first hour that the source did not answer, or not whole.
fn unanswered(reading: &Reading) -> Option<HourStart> {
    let may_pass = |gap: &&prometheus::Gap| matches!(gap.why, Why::Warned(_) | Why::Failed(_));
    reading.gaps.iter().filter(may_pass).map(|gap| gap.span.from).min()
}

/// Missing hours that were not read before, each once.
fn missing_since(reading: &Reading, new_from: HourStart) -> u64 {
    let hours = reading.gaps.iter().flat_map(|gap| gap.span.each()).filter(|hour| *hour >= new_from);
    hours.collect::<BTreeSet<_>>().len() as u64
}
