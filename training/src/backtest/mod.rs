//! `train backtest`: the past again, hour by hour, each forecast from the hours before it alone.

mod ablation;
mod coverage;
mod experts;
mod files;
mod of_runs;
mod play;
mod report;
pub mod served;

pub use ablation::ablation;
pub use files::{FORECAST_COLUMNS, POOL_BOUND_COLUMNS};
pub use of_runs::{RunsPlayed, play_runs};
pub use served::RestartState;

use crate::args::{Backtest, Config};
use crate::error::TrainingError;
use crate::{history, parameters, runs};
use command_line::{is_stdout, print_notice, print_text};
use datasets::{HourRange, split};
use files::Files;
use forecaster::{ModelKind, Trained, checkpoint};
use play::{Candidate, Variant, play};
use report::Report;
use served::ReplayBody;
use store::{Cluster, RunRecord, Store};
use vocab::GuaranteeRate;

/// Plays every chosen cluster and model, writes the files, prints the table.
///
/// # Errors
/// The window was not measured, a run has seen it, a cluster cannot be trained, or a file cannot be written.
pub async fn run(what: &Backtest, config: &Config, json: bool) -> Result<(), TrainingError> {
    if let Some(file) = what.out.as_ref().filter(|out| what.pool_out.as_ref() == Some(out)) {
        return Err(TrainingError::OneFileForTwo { file: file.clone() });
    }
    let to_stdout = [what.out.as_ref(), what.pool_out.as_ref()].into_iter().flatten().any(|path| is_stdout(path));
    if to_stdout && json {
        return Err(TrainingError::JsonAndRows);
    }
    let store = store::connect_existing(&config.database).await?;
    let rate = GuaranteeRate::new(config.guarantee_rate)?;
    let clusters = clusters(store.as_ref(), what).await?;
    if what.replay.served {
        served::check(what, rate, clusters.len())?;
    } else if !what.replay.jobs.files.is_empty() {
        return Err(TrainingError::JobsNotServed);
    }
    let mut files = Files::create(what.out.as_deref(), what.pool_out.as_deref())?;
    let mut report = Report::default();
    for cluster in clusters {
        let panel = history::load(store.as_ref(), &cluster, None).await?;
        let issues = issues(what, &cluster, panel.end())?;
        if let Some(text) = history::uncovered(&panel, what.horizon) {
            print_notice(format_args!("warning: {text}"));
        }
        let capacities = store.capacities(&cluster.name).await?;
        let read = || served::Inputs::read(what, &panel, issues, &capacities, rate);
        let inputs = what.replay.served.then(read).transpose()?;
        for candidate in candidates(store.as_ref(), what, &cluster, config.seed).await? {
            let played = play(&panel, &cluster, issues, what, &candidate, rate)?;
            files.write(&panel, issues, &played, what.horizon)?;
            report.add(&panel, issues, &played, what.horizon, &capacities);
            for replay in inputs.iter().flat_map(|inputs| inputs.replay(what, &panel, issues, &played)) {
                files.write_served(&played, &replay, what.horizon)?;
                report.add_served(ReplayBody::of(&played.name, what, issues, rate, &replay));
            }
        }
    }
    store.close().await;
    report.check()?;
    files.finish()?;
    match (to_stdout, json) {
        (true, _) => print_notice(report.tables().trim_end()),
        (false, true) => report.print_json(),
        (false, false) => print_text(&report.tables()),
    }
    Ok(())
}

async fn clusters(store: &dyn Store, what: &Backtest) -> Result<Vec<Cluster>, TrainingError> {
    let asked = what.cluster.as_ref();
    let Some(id) = what.run else { return history::chosen(store, asked).await };
    let trained_on = store.run(id).await?.facts.cluster;
    let chosen = history::chosen(store, asked.or(Some(&trained_on))).await?;
    runs::note_other_cluster(id, &trained_on, asked, "the scores are those on a cluster that it has not seen");
    Ok(chosen)
}

fn issues(what: &Backtest, cluster: &Cluster, end: vocab::HourStart) -> Result<HourRange, TrainingError> {
    if what.to >= end {
        return Err(TrainingError::NotMeasured { cluster: cluster.name.clone(), end, to: what.to });
    }
    split::test_issues(what.from, what.to, what.horizon)
        .map_err(|fault| TrainingError::Split { cluster: cluster.name.clone(), fault })
}

/// The models to play: those named, or that of `--run`, or the promoted one (else the default) beside the baselines.
async fn candidates(
    store: &dyn Store,
    what: &Backtest,
    cluster: &Cluster,
    seed: u64,
) -> Result<Vec<Candidate>, TrainingError> {
    if let Some(id) = what.run {
        let trained = kept(store, store.run(id).await?, what).await?;
        let name = trained.spec.kind.to_string();
        return Ok(vec![Candidate::Kept { trained: Box::new(trained), name }]);
    }
    let settings = parameters::chosen(what.settings.as_deref(), &what.model)?;
    let calibration = what.calibration;
    let fresh =
        |kind: ModelKind| Candidate::Fresh(Variant { name: kind.to_string(), kind, settings, calibration, seed });
    if !what.model.is_empty() {
        return Ok(what.model.iter().copied().map(fresh).collect());
    }
    let promoted = store.promoted(&cluster.name).await?;
    let own = promoted.and_then(|run| ModelKind::parse(&run.facts.model).ok()).unwrap_or(ModelKind::DEFAULT);
    let rest = ModelKind::BASELINES.into_iter().filter(|kind| *kind != own);
    Ok([own].into_iter().chain(rest).map(fresh).collect())
}

/// The model of a run, if it may be tested on the window.
async fn kept(store: &dyn Store, run: RunRecord, what: &Backtest) -> Result<Trained, TrainingError> {
    let (id, until, from) = (run.id, run.facts.data_until, what.from);
    if until > from {
        return Err(TrainingError::Leak { run: id, until, from });
    }
    if run.facts.horizon != what.horizon {
        return Err(TrainingError::OtherHorizon { run: id, have: run.facts.horizon, wanted: what.horizon });
    }
    let bytes = store.checkpoint(id).await?;
    checkpoint::load(&bytes).map_err(|fault| TrainingError::Checkpoint { run: id, fault })
}
