//! `train`: learn, score, keep, promote.

use crate::args::{Config, Train};
use crate::backtest::served::{self, ServedBody};
use crate::demand::{Demand, Lessons};
use crate::error::TrainingError;
use crate::gate::{Contender, Gate, refusal};
pub use crate::learn::{Lesson, learn};
use crate::learn::{Served, learn_served};
use crate::losses::{self, StoredScores};
use crate::scores::{PoolScoresBody, ScoresBody, pools_table, scores_table};
use crate::usage::Usage;
use crate::{files, history, jobs, lent, offered, parameters};
use command_line::{print_json, print_notice, print_text, say};
use datasets::{Panel, TimeSplit};
use forecaster::blend::Settings;
use forecaster::calibration::Switch;
use forecaster::jobs::PastJobs;
use forecaster::{ModelKind, ModelSpec, Trained, checkpoint};
use serde::{Deserialize, Serialize};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::{Cluster, NewRun, RunFacts, RunId, Store};
use vocab::{GuaranteeRate, HorizonHours, UnixSeconds};

/// Of the code that trained.
pub const CODE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The scores that are kept with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptScores {
    pub validation_from: String,
    pub validation_issue_times: usize,
    pub model: ScoresBody,
    pub last_value: ScoresBody,
    pub pools: Vec<PoolScoresBody>,
    /// The bounds that would have been served, by the hours of the promise; empty for a run of an older version.
    #[serde(default)]
    pub served: Vec<ServedBody>,
    /// The same of a service that knew the HP jobs of `--jobs`; empty without them.
    #[serde(default)]
    pub served_with_jobs: Vec<ServedBody>,
}

impl KeptScores {
    /// Pinball loss at 0.9 as a share of the last value's on the same hours.
    #[must_use]
    pub fn relative_pinball(&self) -> f64 {
        self.model.pinball_q90_gpus / self.last_value.pinball_q90_gpus.max(f64::MIN_POSITIVE)
    }
}

/// The result of a training.
#[derive(Debug, Serialize)]
pub struct RunReport {
    pub run_id: String,
    pub cluster: String,
    pub model: String,
    pub horizon_hours: u8,
    pub lookback_hours: usize,
    pub seed: u64,
    pub data_from: String,
    pub data_until: String,
    pub series: usize,
    /// The calendar that it learned with.
    pub calendar: String,
    /// Where the hours reach beyond the years that the calendar knows.
    pub calendar_warning: Option<String>,
    /// Forecasts that end before promises do.
    pub horizon_warning: Option<String>,
    /// HP jobs of lists that are kept with it.
    pub jobs: usize,
    /// The clusters that lent it hours (`--borrow`).
    pub borrowed_from: Vec<String>,
    pub train_s: f64,
    pub scores: KeptScores,
    pub aggregations: Vec<ChosenAggregation>,
    pub promoted: bool,
    pub checkpoint_sha256: String,
}

/// Which aggregation serves a pool.
#[derive(Debug, Serialize)]
pub struct ChosenAggregation {
    pub pool: String,
    pub aggregation: String,
}

/// Trains the chosen clusters, one run each.
///
/// # Errors
/// A cluster cannot be trained, or does not pass the gate; what was trained before it stays.
pub async fn run(what: &Train, config: &Config, json: bool) -> Result<(), TrainingError> {
    let store = store::connect_existing(&config.database).await?;
    let rate = GuaranteeRate::new(config.guarantee_rate)?;
    let (mut reports, mut faults, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    let clusters = history::chosen(store.as_ref(), what.cluster.as_ref()).await?;
    let clusters = what.shard.map_or(Ok(clusters.clone()), |shard| shard.of_clusters(clusters))?;
    if !what.jobs.files.is_empty() && clusters.len() != 1 {
        return Err(TrainingError::JobsOfSeveral { clusters: clusters.len() });
    }
    let files = match &what.usage {
        None => None,
        // Any of the others may lend.
        Some(location) if what.borrow > 0 => Some(files::read(location, &store.clusters().await?)?),
        Some(location) => Some(files::read(location, &clusters)?),
    };
    let usage = files.as_ref().map_or(Usage::Stored(store.as_ref()), Usage::Files);
    for cluster in clusters {
        match train_cluster((usage, store.as_ref()), &cluster, what, rate, config.seed).await {
            Ok((report, why)) => {
                if !json {
                    print_report(&report, why.is_some());
                }
                reports.push(report);
                faults.extend(why);
            }
            // The database will not answer the next cluster either; a history that is too short is its own matter.
            Err(fault @ TrainingError::Store(_)) => return Err(fault),
            // Nobody named it: the usage of the others is there.
            Err(fault @ TrainingError::NoUsage { .. }) if what.cluster.is_none() => empty.push(fault),
            Err(fault) => faults.push(fault),
        }
    }
    store.close().await;
    if reports.is_empty() {
        faults.append(&mut empty);
    }
    for skipped in empty {
        print_notice(format_args!("note: {skipped}; it is skipped"));
    }
    if json {
        print_json(&reports);
    }
    match faults.len() {
        0 => Ok(()),
        1 => Err(faults.remove(0)),
        _ => Err(TrainingError::of_several(&faults)),
    }
}

/// Trains one cluster on its usage and keeps the run in the database. The second value says why it was not promoted where it was meant to be.
///
/// # Errors
/// The history is too short or unmeasured, or the database does not answer.
pub async fn train_cluster(
    (usage, store): (Usage<'_>, &dyn Store),
    cluster: &Cluster,
    what: &Train,
    rate: GuaranteeRate,
    seed: u64,
) -> Result<(RunReport, Option<TrainingError>), TrainingError> {
    // 1. Read.
    let demand = Demand::open(usage, store, cluster, what.until, what.memory.bytes).await?;
    let lenders = lent::of((usage, store), cluster, what, seed).await?;
    let promoted = store.promoted(&cluster.name).await?;
    // 2. Learn.
    let offers = offered::by_pool(store, &cluster.name, demand.pools()).await?;
    let horizon = what.horizon.unwrap_or_else(|| offered::horizon_for(offered::of_all(&offers)));
    let horizon_warning = offered::too_short(horizon, &offers);
    let settings = parameters::chosen(what.settings.as_deref(), &[what.model])?;
    let (spec, split) = plan(&demand, cluster, what, horizon, seed)?;
    let lessons = demand.lessons(cluster, split, &spec)?;
    let calendar_warning =
        history::uncovered(&lessons.panel, horizon).inspect(|text| print_notice(format_args!("warning: {text}")));
    let started = Instant::now();
    let lesson = Lesson { spec, settings, calibration: Switch::Auto, split, rate };
    let capacities = store.capacities(&cluster.name).await?;
    let jobs = jobs::read_for_run(&what.jobs, &lessons.panel)?;
    let served = Served { capacities: &capacities, jobs: jobs::whole(&jobs, &lessons.panel, split.validation) };
    let (mut trained, stored) = learn_served(&lessons, &lenders, cluster, &lesson, served)?;
    trained.jobs = jobs::past(&jobs, trained.data.to.instant());
    let panel = &lessons.panel;
    let train_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    // 3. Keep.
    let checkpoint = checkpoint::save(&trained, CODE_VERSION).map_err(TrainingError::Save)?;
    let sha = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&checkpoint));
    let facts = facts(&lessons, cluster, &trained, &settings, &stored, train_ms);
    let id = store.insert_run(&NewRun { facts, checkpoint }).await?;
    // 4. Promote: a cluster's first run, a later one if asked; neither where it misses a threshold of the caller's.
    let gate = Gate { max_mae_gpus: what.max_mae, min_coverage: what.min_coverage };
    let StoredScores { kept: scores, hours } = stored;
    let new = Contender { horizon, scores, losses: hours };
    let why = if promoted.is_none() || what.promote || gate != Gate::default() {
        let rival = match &promoted {
            Some(run) if gate == Gate::default() => losses::promoted(store, run, panel, split.validation, rate).await?,
            _ => None,
        };
        // A cluster's first run takes no quota away: its note says what it leaves out.
        let serving = promoted.as_ref().map(|run| run.facts.horizon);
        let unserved = serving.and_then(|serving| offered::unserved(horizon, Some(serving), &offers));
        unserved.or_else(|| gate.unmeasured(&new.scores)).or_else(|| refusal(gate, &new, rival.as_ref()))
    } else {
        None
    };
    let promote = match (&why, what.promote) {
        (Some(_), _) => false,
        (None, true) => store.promote(id, now(), "train").await.map(|_| true)?,
        (None, false) => promoted.is_none() && store.promote_first(id, now(), "train").await?,
    };
    let refused = why.map(|why| TrainingError::Gate { run: id, why });
    let report = report(id, panel, &trained, new.scores, train_ms, promote, sha);
    let borrowed_from = lenders.iter().filter_map(lent::name).collect();
    Ok((RunReport { calendar_warning, horizon_warning, borrowed_from, ..report }, refused))
}

fn plan(
    demand: &Demand,
    cluster: &Cluster,
    what: &Train,
    horizon: HorizonHours,
    seed: u64,
) -> Result<(ModelSpec, TimeSplit), TrainingError> {
    let lookback_hours = history::lookback_hours(what.lookback, demand.hours());
    let spec = ModelSpec { kind: what.model, horizon, lookback_hours, seed };
    let split = TimeSplit::new(demand.start(), demand.end(), spec.least_hours(), spec.horizon)
        .map_err(|fault| TrainingError::Split { cluster: cluster.name.clone(), fault })?;
    Ok((spec, split))
}

fn facts(
    lessons: &Lessons,
    cluster: &Cluster,
    trained: &Trained,
    settings: &Settings,
    scores: &StoredScores,
    train_ms: u64,
) -> RunFacts {
    let chosen: Vec<_> = trained.calibrations.iter().map(|one| format!("{}={}", one.pool, one.chosen)).collect();
    RunFacts {
        cluster: cluster.name.clone(),
        model: trained.spec.kind.to_string(),
        horizon: trained.spec.horizon,
        lookback_hours: trained.spec.lookback_hours as u32,
        seed: trained.spec.seed,
        data_from: trained.data.from,
        data_until: trained.data.to,
        data_sha256: lessons.sha256,
        series: lessons.panel.series().len() as u32,
        aggregation: chosen.join(" "),
        parameters_json: parameters::describe(&trained.spec, settings, lessons.panel.calendar()).to_string(),
        scores_json: serde_json::to_string(scores).expect("scores are finite numbers under string keys"),
        code_version: CODE_VERSION.to_owned(),
        created_at: now(),
        train_ms,
    }
}

fn report(
    id: RunId,
    panel: &Panel,
    trained: &Trained,
    scores: KeptScores,
    train_ms: u64,
    promoted: bool,
    checkpoint_sha256: String,
) -> RunReport {
    let chosen = |one: &forecaster::bound::PoolCalibration| ChosenAggregation {
        pool: one.pool.to_string(),
        aggregation: one.chosen.to_string(),
    };
    RunReport {
        run_id: id.to_string(),
        cluster: panel.cluster().to_string(),
        model: trained.spec.kind.to_string(),
        horizon_hours: trained.spec.horizon.get(),
        lookback_hours: trained.spec.lookback_hours,
        seed: trained.spec.seed,
        data_from: trained.data.from.to_string(),
        data_until: trained.data.to.to_string(),
        series: panel.series().len(),
        calendar: panel.calendar().name(),
        calendar_warning: None,
        horizon_warning: None,
        jobs: trained.jobs.values().map(PastJobs::len).sum(),
        borrowed_from: Vec::new(),
        train_s: train_ms as f64 / 1_000.0,
        scores,
        aggregations: trained.calibrations.iter().map(chosen).collect(),
        promoted,
        checkpoint_sha256,
    }
}

fn print_report(report: &RunReport, is_refused: bool) {
    say(format_args!(
        "{}: {} for cluster {}, {} series, {} to {}, lookback {} h, horizon {} h, seed {}, {:.1} s",
        report.run_id,
        report.model,
        report.cluster,
        report.series,
        report.data_from,
        report.data_until,
        report.lookback_hours,
        report.horizon_hours,
        report.seed,
        report.train_s
    ));
    if let Some(text) = &report.horizon_warning {
        say(format_args!("note: {text}"));
    }
    if report.jobs > 0 {
        say(format_args!("it keeps {} HP jobs of --jobs", report.jobs));
    }
    if !report.borrowed_from.is_empty() {
        say(format_args!("hours of {} were lent to it", report.borrowed_from.join(", ")));
    }
    let scores = &report.scores;
    say(format_args!("validation, {} issue times from {}:", scores.validation_issue_times, scores.validation_from));
    let mut rows = vec![(report.model.clone(), scores.model, None)];
    if report.model != ModelKind::LastValue.as_str() {
        rows.push((ModelKind::LastValue.to_string(), scores.last_value, None));
    }
    print_text(&scores_table(&rows));
    let pools: Vec<_> = scores.pools.iter().map(|one| (report.model.clone(), one.clone())).collect();
    print_text(&pools_table(&pools));
    if !pools.is_empty() {
        say("(these bounds are as the model states them; train backtest and the service hold them to the capacity)");
    }
    print_text(&served::served_table("served", &scores.served));
    print_text(&served::served_table("with jobs", &scores.served_with_jobs));
    let is_scored = |one: &&ChosenAggregation| scores.pools.iter().any(|scored| scored.pool == one.pool);
    for unscored in report.aggregations.iter().filter(|one| !is_scored(one)) {
        say(format_args!(
            "note: no demand of pool {} was measured over a horizon of the validation part, since rows of its organizations are missing: \
             its bounds were neither scored nor calibrated",
            unscored.pool
        ));
    }
    for chosen in &report.aggregations {
        let serves = if report.promoted { "serves" } else { "would serve" };
        say(format_args!("pool {}: {} {serves}", chosen.pool, chosen.aggregation));
    }
    let id = &report.run_id;
    match (report.promoted, is_refused) {
        (true, _) => say(format_args!("{id} is promoted")),
        (false, true) => say(format_args!("{id} is kept")),
        (false, false) => say(format_args!("{id} is kept; promote it with: train runs promote {id}")),
    }
}

/// The wall clock: runs and promotions carry the time at which they happened.
#[must_use]
pub fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Scores of a run whose pinball loss is `relative` times the last value's.
    pub(crate) fn kept(mae_median_gpus: f64, coverage_q90: f64, relative: f64) -> KeptScores {
        let last_value = ScoresBody {
            rows: 1,
            mae_median_gpus: 1.0,
            mae_mean_gpus: 1.0,
            rmse_mean_gpus: 1.0,
            rmse_median_gpus: 1.0,
            mape_median: None,
            nmae_median: None,
            coverage_q90: 0.9,
            coverage_q95: 0.95,
            maqe_q90: 0.0,
            maqe_q95: 0.0,
            pinball_q90_gpus: 2.0,
            pinball_q95_gpus: 1.0,
            crps_gpus: 1.0,
            nll: 1.0,
        };
        let model = ScoresBody { mae_median_gpus, coverage_q90, pinball_q90_gpus: 2.0 * relative, ..last_value };
        KeptScores {
            validation_from: "2020-05-11T00:00:00Z".into(),
            validation_issue_times: 165,
            model,
            last_value,
            pools: Vec::new(),
            served: Vec::new(),
            served_with_jobs: Vec::new(),
        }
    }
}
