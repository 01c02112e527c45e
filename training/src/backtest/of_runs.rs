//! Runs as they are, on the hours that came after them: what a report of a run is made of.

use super::files::Files;
use super::play::{Candidate, Variant, play};
use super::{issues, kept};
use crate::args::{Backtest, Lookback, Replay};
use crate::error::TrainingError;
use crate::history;
use forecaster::ModelKind;
use forecaster::blend::Settings;
use forecaster::calibration::Switch;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Cluster, RunId, RunRecord, Store};
use vocab::{CapacityRow, GuaranteeRate, HourStart};

/// The played runs.
pub struct RunsPlayed {
    pub cluster: Cluster,
    /// Of the cluster's pools, by pool, then hour.
    pub capacities: Vec<CapacityRow>,
    /// First issue hour: the first that none of the runs has seen.
    pub from: HourStart,
    /// Last target hour: the last that the database holds.
    pub to: HourStart,
    /// The aggregations that serve the pools of each run, as its facts state them (`earth:V100=mixture earth:P100=pooled`), by its name in
    /// the files.
    pub serving: BTreeMap<String, String>,
}

/// Plays runs of one cluster over all hours that none of them has seen, beside the baselines, and writes both files. A
/// run is called `run-1 orglinear-paper` there.
///
/// # Errors
/// There is no such run, the runs do not belong together, none of the hours is new to them, or a file cannot be written.
pub async fn play_runs(
    store: &dyn Store,
    runs: &[RunId],
    rate: GuaranteeRate,
    forecasts: &Path,
    pool_bounds: &Path,
) -> Result<RunsPlayed, TrainingError> {
    // 1. Read.
    let records = records(store, runs).await?;
    let (first, last) = (&records[0], records.iter().max_by_key(|run| run.facts.data_until).expect("one at least"));
    let cluster = history::chosen(store, Some(&first.facts.cluster)).await?.remove(0);
    let panel = history::load(store, &cluster, None).await?;
    let (from, horizon) = (last.facts.data_until, first.facts.horizon);
    if panel.end() < from.plus_hours(i64::from(horizon.get())) {
        return Err(TrainingError::NothingUnseen { run: last.id, until: from, end: panel.end(), horizon });
    }
    let what = Backtest {
        horizon,
        from,
        to: panel.end().plus_hours(-1),
        cluster: Some(cluster.name.clone()),
        model: Vec::new(),
        lookback: Lookback::Auto,
        settings: None,
        run: None,
        refit: None,
        calibration: Switch::Auto,
        out: Some(forecasts.to_owned()),
        pool_out: Some(pool_bounds.to_owned()),
        replay: Replay::default(),
    };
    // 2. Play.
    let issues = issues(&what, &cluster, panel.end())?;
    let mut files = Files::create(what.out.as_deref(), what.pool_out.as_deref())?;
    for candidate in candidates(store, &records, &what).await? {
        let played = play(&panel, &cluster, issues, &what, &candidate, rate)?;
        files.write(&panel, issues, &played, horizon)?;
    }
    // 3. Write.
    files.finish()?;
    let capacities = store.capacities(&cluster.name).await?;
    let serving = records.iter().map(|run| (name(run), run.facts.aggregation.clone())).collect();
    Ok(RunsPlayed { cluster, capacities, from, to: what.to, serving })
}

/// The runs, of one cluster and horizon.
async fn records(store: &dyn Store, runs: &[RunId]) -> Result<Vec<RunRecord>, TrainingError> {
    let mut records: Vec<RunRecord> = Vec::new();
    for id in runs {
        let run = store.run(*id).await?;
        if records.iter().any(|other| other.id == run.id) {
            continue;
        }
        if let Some(other) = records.first()
            && (&other.facts.cluster, other.facts.horizon) != (&run.facts.cluster, run.facts.horizon)
        {
            let tell = |run: &RunRecord| format!("{} is of {} over {}", run.id, run.facts.cluster, run.facts.horizon);
            return Err(TrainingError::RunsDiffer { one: tell(other), other: tell(&run) });
        }
        records.push(run);
    }
    Ok(records)
}

/// The name of a run in files: `run-1 orglinear-paper`.
fn name(run: &RunRecord) -> String {
    format!("{} {}", run.id, run.facts.model)
}

async fn candidates(
    store: &dyn Store,
    records: &[RunRecord],
    what: &Backtest,
) -> Result<Vec<Candidate>, TrainingError> {
    let mut candidates = Vec::new();
    for run in records {
        candidates.push(Candidate::Kept { trained: Box::new(kept(store, run.clone(), what).await?), name: name(run) });
    }
    // Rules draw no random numbers: the seed is without effect.
    candidates.extend(ModelKind::BASELINES.map(|kind| {
        let (settings, calibration) = (Settings::DEFAULT, Switch::Auto);
        Candidate::Fresh(Variant { name: kind.to_string(), kind, settings, calibration, seed: 0 })
    }));
    Ok(candidates)
}
