//! Record, score, forget, report.

use super::explain::sentence;
use super::unscored::Unscored;
use super::{ClusterDrift, Drifts, PoolReport, blocking};
use crate::metrics;
use crate::plan::{ClusterPlan, PoolPlan, Predictions, Run};
use arc_swap::ArcSwap;
use datasets::Panel;
use forecaster::calibration::{Calibrator, PeakGuesses};
use forecaster::drift::{
    Issued, IssuedBound, KEPT_HOURS, PoolDrift, ScoredIssue, Standing, WINDOW_HOURS, Window, is_due, is_whole, score,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Calibration, IssuedForecasts, RunId, Store, StoreError, UnscoredIssue};
use vocab::{ClusterName, HorizonHours, HourStart, PoolId, UnixSeconds};

/// Forecasts of an hour are recorded once its usage is whole, at the latest so long after the hour.
const WAITS_FOR_USAGE_S: i64 = 1_800;

/// Forecasts of a renewal, for the ledger.
pub struct Renewed {
    pub cluster: ClusterName,
    pub panel: Arc<Panel>,
    pub run: RunId,
    pub now: UnixSeconds,
    predictions: Option<Predictions>,
    bounds: Vec<IssuedBound>,
}

impl Renewed {
    /// Takes the forecasts out of a plan.
    #[must_use]
    pub fn of(cluster: ClusterName, panel: Arc<Panel>, run: RunId, now: UnixSeconds, plan: &mut ClusterPlan) -> Self {
        let bounds = plan.pools.iter().filter_map(longest_bound).collect();
        Self { cluster, panel, run, now, predictions: plan.predictions.take(), bounds }
    }
}

/// The bound over the most hours that the pool's promises cover.
fn longest_bound(plan: &PoolPlan) -> Option<IssuedBound> {
    let quota = plan.outcome.as_ref().ok()?;
    let bound = quota.bounds.last()?;
    let rate = quota.settings.pool.guarantee_rate;
    Some(IssuedBound { pool: plan.id.clone(), hours: bound.hours, rate, bound: bound.bound })
}

/// The ledgers of all clusters.
#[derive(Default)]
pub struct Ledgers {
    by_cluster: BTreeMap<ClusterName, Ledger>,
    /// Where the shares of each pool stood: leaving the band is logged once. Apart from the ledgers, which are read again
    /// after a fault.
    standings: BTreeMap<PoolId, Stood>,
    /// Last known calibrator of each cluster: it serves on while the database does not answer.
    calibrators: BTreeMap<ClusterName, (RunId, Arc<Calibrator>)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stood {
    coverage: Standing,
    bound: Standing,
    outside_since: Option<UnixSeconds>,
}

/// The ledger of one cluster.
struct Ledger {
    newest: Option<HourStart>,
    unscored: Unscored,
    window: Window,
    /// Calibrator of the serving run.
    calibrator: (RunId, Arc<Calibrator>),
    /// Issue hours that were scored since the ledger was read.
    scored: u64,
    /// How often the calibrator was written with scores.
    stored: u64,
    /// Inputs of the last report.
    reported: Option<(RunId, HourStart, u64)>,
}

impl Ledgers {
    /// Last known calibrator of a run; `None`: that of its training.
    #[must_use]
    pub fn calibrator(&self, cluster: &ClusterName, run: RunId) -> Option<Arc<Calibrator>> {
        let (of, calibrator) = self.calibrators.get(cluster)?;
        (*of == run).then(|| calibrator.clone())
    }

    /// Forgets what was known of a cluster: another service has written its ledger meanwhile.
    pub fn forget(&mut self, cluster: &ClusterName) {
        self.by_cluster.remove(cluster);
        self.calibrators.remove(cluster);
    }

    /// Scores what is due at the end of `panel`, and lets it teach: to be called before the next forecast.
    ///
    /// # Errors
    /// The database does not answer: the ledger is read again next time.
    pub async fn catch_up(
        &mut self,
        store: &dyn Store,
        cluster: &ClusterName,
        panel: &Arc<Panel>,
        run: &Run,
        now: UnixSeconds,
    ) -> Result<(), StoreError> {
        let Ok(hour) = now.hour() else { return Ok(()) };
        // Taken out, and put back when all went well: a fault leaves nothing half-known.
        let mut ledger = match self.by_cluster.remove(cluster) {
            Some(known) => known,
            None => Ledger::load(store, cluster, run, hour).await?,
        };
        if ledger.calibrator.0 != run.id {
            ledger.calibrator = (run.id, calibrator(store, run).await?);
            ledger.unscored.forget_guesses();
        }
        // Also where nothing can be written: what was learned before serves.
        if self.calibrator(cluster, run.id).is_none() {
            self.calibrators.insert(cluster.clone(), ledger.calibrator.clone());
        }
        let (run, known) = &ledger.calibrator;
        let taught = ledger.unscored.teach(store, cluster, panel, (*run, known)).await?;
        let has_learned = taught.is_some();
        ledger.calibrator.1 = taught.unwrap_or_else(|| ledger.calibrator.1.clone());
        let stored = ledger.stored;
        ledger.score_due(store, cluster, panel).await?;
        if has_learned && ledger.stored == stored {
            // Usage may be corrected later: a service that restarts goes on from here, and learns nothing again.
            let (run_id, known) = ledger.calibrator.clone();
            if let Some(state) = blocking(move || known.to_bytes()).await {
                store.record_calibration(&Calibration { run_id, state }).await?;
            }
        }
        self.calibrators.insert(cluster.clone(), ledger.calibrator.clone());
        self.by_cluster.insert(cluster.clone(), ledger);
        Ok(())
    }

    /// Records the forecasts, deletes old ones, and publishes the scores of the last seven days. Without a ledger that has
    /// caught up it does nothing.
    ///
    /// # Errors
    /// The database does not answer: the ledger is read again next time.
    pub async fn record(
        &mut self,
        drifts: &ArcSwap<Drifts>,
        held: &dyn Store,
        renewed: Renewed,
    ) -> Result<(), StoreError> {
        let Some(mut ledger) = self.by_cluster.remove(&renewed.cluster) else { return Ok(()) };
        let Ok(hour) = renewed.now.hour() else { return Ok(()) };
        let (cluster, run, now) = (renewed.cluster.clone(), renewed.run, renewed.now);
        ledger.record(held, renewed).await?;
        if ledger.reported != Some((run, hour, ledger.scored)) {
            ledger.window.forget_before(hour.plus_hours(-WINDOW_HOURS));
            let Some((pools, returned)) = ledger.report(run).await else { return Ok(()) };
            ledger = returned;
            ledger.reported = Some((run, hour, ledger.scored));
            self.publish(drifts, &cluster, run, pools, now);
        }
        self.by_cluster.insert(cluster, ledger);
        Ok(())
    }

    fn publish(
        &mut self,
        drifts: &ArcSwap<Drifts>,
        cluster: &ClusterName,
        run: RunId,
        pools: Vec<PoolDrift>,
        now: UnixSeconds,
    ) {
        let pools = pools.into_iter().map(|drift| (drift.pool.clone(), self.judge(drift, now))).collect();
        let mut all = BTreeMap::clone(&drifts.load());
        all.insert(cluster.clone(), Arc::new(ClusterDrift { run, pools }));
        drifts.store(Arc::new(all));
    }

    /// Judges a pool, and logs what has left its band or come back.
    fn judge(&mut self, drift: PoolDrift, now: UnixSeconds) -> PoolReport {
        let stood = self.standings.entry(drift.pool.clone()).or_default();
        let (coverage, bound) = (drift.judge_coverage(stood.coverage), drift.judge_bound(stood.bound));
        let is_outside = coverage.standing.is_outside() || bound.standing.is_outside();
        let outside_since = is_outside.then(|| stood.outside_since.unwrap_or(now));
        let report = PoolReport { drift, coverage, bound, outside_since };
        let pool = &report.drift.pool;
        for (before, judgement, of_bound) in [(stood.coverage, coverage, false), (stood.bound, bound, true)] {
            let text = sentence(&report, of_bound);
            if judgement.standing.is_outside() && judgement.standing != before {
                tracing::warn!(pool = %pool, "drift: {text}");
            } else if before.is_outside() && !judgement.standing.is_outside() {
                tracing::info!(pool = %pool, "drift is over: {text}");
            }
        }
        *stood = Stood { coverage: coverage.standing, bound: bound.standing, outside_since };
        report
    }
}

impl Ledger {
    async fn load(store: &dyn Store, cluster: &ClusterName, run: &Run, hour: HourStart) -> Result<Self, StoreError> {
        let mut window = Window::default();
        for stored in store.scored_forecasts(cluster, hour.plus_hours(-WINDOW_HOURS)).await? {
            match ScoredIssue::from_bytes(&stored.scores) {
                Ok(scored) => window.add(stored.run_id.get(), &scored),
                Err(fault) => {
                    let issue = stored.issue;
                    tracing::warn!(cluster = %cluster, %issue, %fault, "cannot read stored scores: they do not count");
                }
            }
        }
        let newest = store.newest_issue(cluster).await?;
        let unscored = Unscored::new(store.unscored_issues(cluster).await?);
        let calibrator = (run.id, calibrator(store, run).await?);
        Ok(Self { newest, unscored, window, calibrator, scored: 0, stored: 0, reported: None })
    }

    /// Records the forecasts, once an issue hour, when the hour before has all its usage or will hardly get it any more.
    async fn record(&mut self, store: &dyn Store, renewed: Renewed) -> Result<(), StoreError> {
        let Renewed { cluster, panel, run, now, predictions, bounds } = renewed;
        let Some(Predictions { issue, raw, issued }) = predictions else { return Ok(()) };
        let waits = || !is_whole(&panel, issue.plus_hours(-1)) && now.since_s(issue.instant()) < WAITS_FOR_USAGE_S;
        if self.newest >= Some(issue) || waits() {
            return Ok(());
        }
        let (name, peaks_over) = (cluster.clone(), self.calibrator.1.horizon());
        let written = blocking(move || {
            let issued = Issued::of(&panel, issue, raw.to_vec(), &issued, bounds);
            let horizon = issued.horizon()?;
            let guesses = PeakGuesses::of(issue, &issued.forecasts, peaks_over);
            Some((horizon, guesses, issued.to_bytes(&name)))
        });
        let Some((horizon, guesses, forecasts)) = written.await.flatten() else { return Ok(()) };
        let row = IssuedForecasts { cluster, issue, run_id: run, issued_at: now, forecasts };
        let is_first = store.record_forecasts(&row).await?;
        store.delete_issues_before(&row.cluster, issue.plus_hours(-KEPT_HOURS)).await?;
        self.newest = Some(issue);
        if is_first {
            let guesses = Some(guesses).filter(|_| run == self.calibrator.0);
            self.unscored.push_back(UnscoredIssue { issue, run_id: run, horizon }, guesses);
        } else {
            // Those of another service stay, and teach.
            self.unscored = Unscored::new(store.unscored_issues(&row.cluster).await?);
        }
        Ok(())
    }

    /// Scores the forecasts that are due, oldest first.
    async fn score_due(
        &mut self,
        store: &dyn Store,
        cluster: &ClusterName,
        panel: &Arc<Panel>,
    ) -> Result<(), StoreError> {
        while let Some(&UnscoredIssue { issue, horizon, .. }) = self.unscored.front() {
            if !is_due(panel, issue, horizon) {
                break;
            }
            if let Some(stored) = store.issued_forecasts(cluster, issue).await? {
                self.score(store, stored, panel, horizon).await?;
            }
            self.unscored.pop_front();
        }
        Ok(())
    }

    /// Scores one issue hour, updates the calibrator if its run serves, and writes both at once.
    async fn score(
        &mut self,
        store: &dyn Store,
        stored: IssuedForecasts,
        panel: &Arc<Panel>,
        horizon: HorizonHours,
    ) -> Result<(), StoreError> {
        let (cluster, issue, run_id) = (stored.cluster.clone(), stored.issue, stored.run_id);
        let (serving, known) = self.calibrator.clone();
        let pupil = (serving == run_id).then_some(known);
        let panel = panel.clone();
        let Some((scored, taught)) = blocking(move || lesson(&stored, &panel, horizon, pupil)).await else {
            return Ok(());
        };
        let taught = taught.map(|calibrator| {
            let state = calibrator.to_bytes();
            (calibrator, Calibration { run_id, state })
        });
        let state = taught.as_ref().map(|(_, state)| state);
        if store.record_scores(&cluster, issue, &scored.to_bytes(&cluster), state).await? {
            self.window.add(run_id.get(), &scored);
            if let Some((calibrator, _)) = taught {
                self.stored += 1;
                self.calibrator = (run_id, Arc::new(calibrator));
            }
        } else {
            // Another service was first: its scores count.
            let theirs = as_stored(store, &cluster, issue).await?;
            self.window.add(run_id.get(), &theirs.unwrap_or(scored));
            if let Some(state) = store.calibration(serving).await?.filter(|_| serving == run_id) {
                let horizon = self.calibrator.1.horizon();
                self.calibrator.1 = read(&state, serving, horizon).map_or_else(|| self.calibrator.1.clone(), Arc::new);
            }
        }
        self.scored += 1;
        metrics::scored(cluster.as_str());
        Ok(())
    }

    /// `None` where the work broke off: a bug, which must not keep the quotas from being renewed.
    async fn report(self, run: RunId) -> Option<(Vec<PoolDrift>, Self)> {
        blocking(move || (self.window.report(run.get()), self)).await
    }
}

/// Scores of an issue hour by another service: they count once.
async fn as_stored(
    store: &dyn Store,
    cluster: &ClusterName,
    issue: HourStart,
) -> Result<Option<ScoredIssue>, StoreError> {
    let stored = store.scored_forecasts(cluster, issue).await?;
    let first = stored.into_iter().find(|one| one.issue == issue);
    Ok(first.and_then(|one| ScoredIssue::from_bytes(&one.scores).ok()))
}

/// The scores of forecasts, and the calibrator that learned from them. Unreadable forecasts score as none, so that they are
/// read once, and teach nothing.
fn lesson(
    stored: &IssuedForecasts,
    panel: &Panel,
    horizon: HorizonHours,
    pupil: Option<Arc<Calibrator>>,
) -> (ScoredIssue, Option<Calibrator>) {
    let issue = stored.issue;
    match Issued::from_bytes(&stored.forecasts) {
        Ok(issued) => {
            let taught = pupil.map(|known| {
                let mut calibrator = Calibrator::clone(&known);
                calibrator.observe(panel, issue, &issued.forecasts);
                calibrator
            });
            (score(&issued, panel), taught)
        }
        Err(fault) => {
            tracing::warn!(cluster = %stored.cluster, %issue, %fault, "cannot read stored forecasts: they are not scored");
            (ScoredIssue { issue, horizon, series: Vec::new(), bounds: Vec::new() }, None)
        }
    }
}

/// Calibrator of the scores of a run; that of its training without scores, or where it cannot be read.
async fn calibrator(store: &dyn Store, run: &Run) -> Result<Arc<Calibrator>, StoreError> {
    let horizon = run.trained.calibrator.horizon();
    let stored = store.calibration(run.id).await?.and_then(|state| read(&state, run.id, horizon));
    Ok(Arc::new(stored.unwrap_or_else(|| run.trained.calibrator.clone())))
}

fn read(state: &[u8], run: RunId, horizon: HorizonHours) -> Option<Calibrator> {
    let refused = |fault: &dyn std::fmt::Display| {
        tracing::warn!(%run, %fault, "cannot read the stored calibration: the one before serves, or that of the training");
    };
    let read = Calibrator::from_bytes(state).inspect_err(|fault| refused(fault)).ok()?;
    if read.horizon() != horizon {
        refused(&format_args!("it is of a run with a horizon of {}, and this one has {horizon}", read.horizon()));
        return None;
    }
    Some(read)
}
