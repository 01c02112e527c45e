//! Scheduled retraining: starts the program `train` when it is time, or when the forecasts drift.
//!
//! Training is another program on purpose: its memory, its threads and its faults are not those of the service, which goes
//! on renewing quotas in any case. The run that it promotes is found as any other promoted run is.

mod child;
mod schedule;

pub use child::program;
pub use schedule::{Period, UnknownPeriod};

use crate::metrics;
use crate::refresh::Renewals;
use crate::trace::span;
use child::{Outcome, Task};
use datasets::Calendar;
use schedule::{Known, Why, decide};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{Cluster, RunRecord, StoreError};
use tokio::time::MissedTickBehavior;
use tracing::{Instrument, field};
use vocab::{ClusterName, UnixSeconds};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Promoted,
    /// The run missed the gate: it is kept, and the one before goes on serving.
    Kept,
    Failed,
}

impl Ended {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promoted => "promoted",
            Self::Kept => "kept",
            Self::Failed => "failed",
        }
    }

    const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Exit(0) => Self::Promoted,
            Outcome::Exit(code) if *code == command_line::Exit::Gate as i32 => Self::Kept,
            _ => Self::Failed,
        }
    }
}

/// Looks every `refresh_s` whether a cluster is to be trained again, one after the other. Ends when the service
/// stops, and with it the training that is under way; at once where nothing is to be retrained.
pub async fn run(renewals: Arc<Renewals>, settings_file: Option<PathBuf>) {
    let config = &renewals.core.config;
    let period = config.retrain;
    if period == Period::Never {
        return;
    }
    if renewals.core.clock.is_virtual() {
        tracing::info!("no retraining under a virtual clock");
        return;
    }
    let program = match program(config.train_program.get()) {
        Ok(program) => program,
        Err(why) => return tracing::error!(why, "no retraining"),
    };
    let mut retrainer =
        Retrainer { renewals: renewals.clone(), period, program, settings_file, attempts: BTreeMap::new() };
    let mut stop = renewals.core.stopping.subscribe();
    let mut regular = tokio::time::interval(Duration::from_secs(config.refresh_s));
    regular.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = regular.tick() => {}
            _ = stop.wait_for(|stopped| *stopped) => return,
        }
        if let Err(fault) = retrainer.look().await {
            tracing::debug!(%fault, "cannot read whether to retrain");
        }
    }
}

struct Retrainer {
    renewals: Arc<Renewals>,
    period: Period,
    program: PathBuf,
    settings_file: Option<PathBuf>,
    /// When the last attempt of each cluster ended. One that gave a run is known from the run, also after a restart.
    attempts: BTreeMap<ClusterName, UnixSeconds>,
}

impl Retrainer {
    /// Trains every cluster again whose time has come.
    async fn look(&mut self) -> Result<(), StoreError> {
        for cluster in self.renewals.core.store.clusters().await? {
            if *self.renewals.core.stopping.borrow() {
                return Ok(());
            }
            if self.renewals.core.leases.led(&cluster.name).is_none() {
                continue;
            }
            // Without a promoted run no model is chosen yet; the answers of the service state the command.
            let Some(promoted) = self.renewals.core.store.promoted(&cluster.name).await? else { continue };
            if let Some(why) = self.due(&cluster).await? {
                tracing::info!(cluster = %cluster.name, %why, "retraining begins");
                self.attempt(&cluster.name, &promoted).await;
            }
        }
        Ok(())
    }

    async fn due(&self, cluster: &Cluster) -> Result<Option<Why>, StoreError> {
        let runs = self.renewals.core.store.runs(Some(&cluster.name)).await?;
        let Some(newest_run) = runs.iter().map(|run| run.facts.created_at).max() else { return Ok(None) };
        // The hour is that of the cluster's clocks; days off play no part.
        let Ok(calendar) = Calendar::parse(&cluster.time_zone, Calendar::WEEKDAYS) else { return Ok(None) };
        let drifts = self.renewals.quotas.drift.load();
        let outside = drifts.get(&cluster.name).and_then(|drift| drift.outside());
        let known = Known {
            now: self.renewals.core.clock.now(),
            newest_run,
            last_attempt: self.attempts.get(&cluster.name).copied(),
            drifting: outside.map(|report| report.drift.pool.to_string()),
        };
        Ok(decide(&known, self.period, self.renewals.core.config.retrain_at as u8, &calendar))
    }

    /// The model stays the one that serves, since that is what its operator has chosen.
    async fn attempt(&mut self, cluster: &ClusterName, promoted: &RunRecord) {
        let (horizon, name) = (promoted.facts.horizon.to_string(), cluster.to_string());
        let mut arguments = ["--horizon", &horizon, "--cluster", &name, "--promote"].map(str::to_owned).to_vec();
        arguments.extend(["--model".to_owned(), promoted.facts.model.clone()]);
        if let Some(file) = &self.settings_file {
            arguments.extend(["--config".to_owned(), file.display().to_string()]);
        }
        let config = &self.renewals.core.config;
        let task = Task {
            program: &self.program,
            arguments: &arguments,
            database: &config.database,
            within: Duration::from_secs(config.retrain_limit_s),
        };
        metrics::retrain_began(cluster.as_str());
        let span = span!("training", %cluster, outcome = field::Empty);
        let (outcome, output) = task.run(self.renewals.core.stopping.subscribe()).instrument(span.clone()).await;
        span.record("outcome", field::display(&outcome));
        let now = self.renewals.core.clock.now();
        self.attempts.insert(cluster.clone(), now);
        let ended = Ended::of(&outcome);
        if !matches!(outcome, Outcome::Stopped) {
            metrics::retrain_ended(cluster.as_str(), ended, outcome.code(), now);
        }
        match (ended, &outcome) {
            (_, Outcome::Stopped) => tracing::info!(cluster = %cluster, "retraining was stopped with the service"),
            (Ended::Promoted, _) => {
                tracing::info!(cluster = %cluster, "retraining has promoted a run");
                self.renewals.request_refresh();
            }
            (Ended::Kept, _) => {
                tracing::info!(cluster = %cluster, output, "retraining gave a run that missed the gate; the one before serves");
            }
            (Ended::Failed, _) => tracing::error!(cluster = %cluster, %outcome, output, "retraining has failed"),
        }
    }
}
