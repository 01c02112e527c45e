//! `train`: learn, score, keep, promote.

use crate::args::{Config, Train};
use crate::backtest::served::{self, ServedBody};
use crate::error::TrainingError;
use crate::gate::{Contender, Gate, refusal};
use crate::losses::{self, HourLosses, StoredScores};
use crate::scores::{PoolScoresBody, ScoresBody, pools_table, scores_table};
use crate::{history, offered, parameters};
use command_line::{Progress, print_json, print_notice, print_text, say};
use datasets::{Panel, TimeSplit};
use forecaster::blend::Settings;
use forecaster::calibration::Switch;
use forecaster::trained::Validation;
use forecaster::{Fit, FitProgress, ModelKind, ModelSpec, Trained, checkpoint, train, trained};
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
    let store = store::connect(&config.database).await?;
    let rate = GuaranteeRate::new(config.guarantee_rate)?;
    let (mut reports, mut faults) = (Vec::new(), Vec::new());
    for cluster in history::chosen(store.as_ref(), what.cluster.as_ref()).await? {
        match train_cluster(store.as_ref(), &cluster, what, rate, config.seed).await {
            Ok((report, why)) => {
                if !json {
                    print_report(&report);
                }
                reports.push(report);
                faults.extend(why);
            }
            // The database will not answer the next cluster either; a history that is too short is its own matter.
            Err(fault @ TrainingError::Store(_)) => return Err(fault),
            Err(fault) => faults.push(fault),
        }
    }
    store.close().await;
    if json {
        print_json(&reports);
    }
    match faults.len() {
        0 => Ok(()),
        1 => Err(faults.remove(0)),
        _ => Err(TrainingError::Several { faults: faults.iter().map(ToString::to_string).collect() }),
    }
}

/// Trains one cluster and keeps the run. The second value says why it was not promoted where it was meant to be.
///
/// # Errors
/// The history is too short or unmeasured, or the database does not answer.
pub async fn train_cluster(
    store: &dyn Store,
    cluster: &Cluster,
    what: &Train,
    rate: GuaranteeRate,
    seed: u64,
) -> Result<(RunReport, Option<TrainingError>), TrainingError> {
    // 1. Read.
    let panel = history::load(store, cluster, what.until).await?;
    let promoted = store.promoted(&cluster.name).await?;
    // 2. Learn.
    let longest = offered::longest(store, &panel).await?;
    let horizon = what.horizon.unwrap_or_else(|| offered::horizon_for(longest));
    let horizon_warning = offered::too_short(horizon, longest);
    let calendar_warning =
        history::uncovered(&panel, horizon).inspect(|text| print_notice(format_args!("warning: {text}")));
    let (spec, split) = plan(&panel, cluster, what, horizon, seed)?;
    let started = Instant::now();
    let settings = parameters::chosen(what.settings.as_deref(), &[what.model])?;
    let lesson = Lesson { spec, settings, calibration: Switch::Auto, split, rate };
    let (trained, mut stored, validation) = learn(&panel, cluster, &lesson)?;
    let capacities = store.capacities(&cluster.name).await?;
    stored.kept.served =
        served::of_validation(&panel, &capacities, &trained, split.validation, &validation.issued, rate)?;
    let train_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    // 3. Keep.
    let checkpoint = checkpoint::save(&trained, CODE_VERSION).map_err(TrainingError::Save)?;
    let sha = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&checkpoint));
    let facts = facts(&panel, cluster, &trained, &settings, &stored, train_ms);
    let id = store.insert_run(&NewRun { facts, checkpoint }).await?;
    // 4. Promote: a cluster's first run, a later one if asked; neither where it misses a threshold of the caller's.
    let gate = Gate { max_mae_gpus: what.max_mae, min_coverage: what.min_coverage };
    let StoredScores { kept: scores, hours } = stored;
    let new = Contender { horizon, scores, losses: hours };
    let why = if promoted.is_none() || what.promote || gate != Gate::default() {
        let rival = match &promoted {
            Some(run) if gate == Gate::default() => {
                losses::promoted(store, run, &panel, split.validation, rate).await?
            }
            _ => None,
        };
        refusal(gate, &new, rival.as_ref())
    } else {
        None
    };
    let promote = match (&why, what.promote) {
        (Some(_), _) => false,
        (None, true) => store.promote(id, now(), "train").await.map(|_| true)?,
        (None, false) => promoted.is_none() && store.promote_first(id, now(), "train").await?,
    };
    let refused = why.map(|why| TrainingError::Gate { run: id, why });
    let report = report(id, &panel, &trained, new.scores, train_ms, promote, sha);
    Ok((RunReport { calendar_warning, horizon_warning, ..report }, refused))
}

fn plan(
    panel: &Panel,
    cluster: &Cluster,
    what: &Train,
    horizon: HorizonHours,
    seed: u64,
) -> Result<(ModelSpec, TimeSplit), TrainingError> {
    let lookback_hours = history::lookback_hours(what.lookback, panel.hours());
    let spec = ModelSpec { kind: what.model, horizon, lookback_hours, seed };
    let split = trained::split(panel, panel.end(), &spec)
        .map_err(|fault| TrainingError::Split { cluster: cluster.name.clone(), fault })?;
    Ok((spec, split))
}

/// The data and the settings of a training.
#[derive(Debug, Clone, Copy)]
pub struct Lesson {
    pub spec: ModelSpec,
    pub settings: Settings,
    pub calibration: Switch,
    pub split: TimeSplit,
    pub rate: GuaranteeRate,
}

/// Fits, scores and calibrates, with progress.
///
/// # Errors
/// Nothing was measured, or training diverged.
pub fn learn(
    panel: &Panel,
    cluster: &Cluster,
    lesson: &Lesson,
) -> Result<(Trained, StoredScores, Validation), TrainingError> {
    let &Lesson { spec, settings, calibration: switch, split, rate } = lesson;
    let epochs = spec.kind.orglinear().map_or(1, |config| config.epochs);
    let progress = Progress::new(&format!("{} {}", cluster.name, spec.kind), epochs as u64);
    let mut show = |at: FitProgress| {
        progress.step(at.epoch as u64, format!("loss {:.4}, validation {:.4}", at.train_loss, at.validation));
    };
    let outcome = train(&Fit { panel, split, spec, settings }, rate, switch, &mut show);
    progress.done();
    let (trained, validation) =
        outcome.map_err(|fault| TrainingError::Train { cluster: cluster.name.clone(), fault })?;
    let pools = trained.calibrations.iter();
    let pools = pools.flat_map(|one| one.scores.iter().map(|score| PoolScoresBody::of(&one.pool, score)));
    let scores = KeptScores {
        validation_from: split.validation.from.to_string(),
        validation_issue_times: split.validation.hours(),
        model: (&validation.scores).into(),
        last_value: (&validation.last_value).into(),
        pools: pools.collect(),
        served: Vec::new(),
    };
    let stored = StoredScores { kept: scores, hours: HourLosses::of_validation(&validation) };
    Ok((trained, stored, validation))
}

fn facts(
    panel: &Panel,
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
        data_sha256: history::sha256(panel, trained.data.to),
        series: panel.series().len() as u32,
        aggregation: chosen.join(" "),
        parameters_json: parameters::describe(&trained.spec, settings, panel.calendar()).to_string(),
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
        series: trained.calibrations.iter().map(|one| one.organizations.len()).sum(),
        calendar: panel.calendar().name(),
        calendar_warning: None,
        horizon_warning: None,
        train_s: train_ms as f64 / 1_000.0,
        scores,
        aggregations: trained.calibrations.iter().map(chosen).collect(),
        promoted,
        checkpoint_sha256,
    }
}

fn print_report(report: &RunReport) {
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
    let scores = &report.scores;
    say(format_args!("validation, {} issue times from {}:", scores.validation_issue_times, scores.validation_from));
    let mut rows = vec![(report.model.clone(), scores.model, None)];
    if report.model != ModelKind::LastValue.as_str() {
        rows.push((ModelKind::LastValue.to_string(), scores.last_value, None));
    }
    print_text(&scores_table(&rows));
    let pools: Vec<_> = scores.pools.iter().map(|one| (report.model.clone(), one.clone())).collect();
    print_text(&pools_table(&pools));
    print_text(&served::served_table(&scores.served));
    for chosen in &report.aggregations {
        say(format_args!("pool {}: {} serves", chosen.pool, chosen.aggregation));
    }
    if report.promoted {
        say(format_args!("{} is promoted", report.run_id));
    } else {
        say(format_args!("{} is kept; promote it with: train runs promote {}", report.run_id, report.run_id));
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
        }
    }
}
