//! `train runs`: list, show, compare, promote, roll back.

use crate::args::{Config, RunsCommand};
use crate::error::TrainingError;
use crate::run::{KeptScores, now};
use crate::{history, offered};
use command_line::{print_json, print_notice, print_text, say, table};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::{RunId, RunRecord, Store};
use vocab::{ClusterName, HorizonHours};

/// A run as it is printed.
#[derive(Debug, Serialize)]
struct RunBody {
    run_id: String,
    cluster: String,
    model: String,
    horizon_hours: u8,
    lookback_hours: u32,
    seed: u64,
    data_from: String,
    data_until: String,
    data_sha256: String,
    series: u32,
    aggregation: String,
    parameters: Value,
    scores: Value,
    code_version: String,
    created_at: String,
    train_s: f64,
    checkpoint_bytes: u64,
    checkpoint_sha256: String,
    promoted: bool,
}

impl RunBody {
    fn of(run: &RunRecord, promoted: bool) -> Self {
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        let facts = &run.facts;
        Self {
            run_id: run.id.to_string(),
            cluster: facts.cluster.to_string(),
            model: facts.model.clone(),
            horizon_hours: facts.horizon.get(),
            lookback_hours: facts.lookback_hours,
            seed: facts.seed,
            data_from: facts.data_from.to_string(),
            data_until: facts.data_until.to_string(),
            data_sha256: hex::encode(facts.data_sha256),
            series: facts.series,
            aggregation: facts.aggregation.clone(),
            parameters: json(&facts.parameters_json),
            scores: without_hours(json(&facts.scores_json)),
            code_version: facts.code_version.clone(),
            created_at: facts.created_at.to_string(),
            train_s: facts.train_ms as f64 / 1_000.0,
            checkpoint_bytes: run.checkpoint_bytes,
            checkpoint_sha256: hex::encode(run.checkpoint_sha256),
            promoted,
        }
    }

    fn scores(&self) -> Option<KeptScores> {
        serde_json::from_value(self.scores.clone()).ok()
    }
}

/// The losses by issue time are kept for the gate, and are too long to be read.
fn without_hours(mut scores: Value) -> Value {
    if let Some(scores) = scores.as_object_mut() {
        scores.remove("hours");
    }
    scores
}

/// Runs the subcommand.
///
/// # Errors
/// There is no such run or cluster, or the database does not answer.
pub async fn run(command: &RunsCommand, config: &Config, json: bool) -> Result<(), TrainingError> {
    let store = store::connect_existing(&config.database).await?;
    let store = store.as_ref();
    if let RunsCommand::List { cluster: Some(cluster) } | RunsCommand::Rollback { cluster } = command {
        history::chosen(store, Some(cluster)).await?;
    }
    match command {
        RunsCommand::List { cluster } => list(store, cluster.as_ref(), json).await?,
        RunsCommand::Show { run } => show(&body(store, *run).await?, json),
        RunsCommand::Compare { one, other } => {
            compare(&[body(store, *one).await?, body(store, *other).await?], json);
        }
        RunsCommand::Promote { run } => {
            let asked = store.run(*run).await?;
            let serves_now = store.promoted(&asked.facts.cluster).await?;
            // A cluster's first run takes no quota away, and neither does the one that serves.
            if let Some(serving) = serves_now.filter(|serving| serving.id != asked.id)
                && let Some(why) = unserved(store, &asked, Some(serving.facts.horizon)).await?
            {
                return Err(TrainingError::Gate { run: *run, why });
            }
            // Read and checked: a damaged one would leave its cluster without a quota from the next start of a service on.
            let _ = store.checkpoint(*run).await?;
            serves(&store.promote(*run, now(), "train runs promote").await?, json);
        }
        RunsCommand::Rollback { cluster } => {
            let back = store.rollback(cluster, now(), "train runs rollback").await?;
            serves(&back, json);
            // It is an emergency: a run that leaves quotas to some pools may be better than the one that served.
            if let Some(why) = unserved(store, &back, None).await? {
                print_notice(format_args!("warning: {why}"));
            }
        }
    }
    store.close().await;
    Ok(())
}

/// Why a run may not serve its cluster, maybe in place of one with a horizon that serves.
async fn unserved(
    store: &dyn Store,
    run: &RunRecord,
    serving: Option<HorizonHours>,
) -> Result<Option<String>, TrainingError> {
    let offers = offered::by_pool(store, &run.facts.cluster, BTreeSet::new()).await?;
    Ok(offered::unserved(run.facts.horizon, serving, &offers))
}

/// A note where a run is asked for with another cluster than that of its training. `what` says what comes of it.
pub fn note_other_cluster(run: RunId, trained_on: &ClusterName, asked: Option<&ClusterName>, what: &str) {
    if let Some(asked) = asked.filter(|asked| *asked != trained_on) {
        print_notice(format_args!("note: {run} was trained on cluster {trained_on}, not on {asked}: {what}"));
    }
}

async fn body(store: &dyn Store, id: RunId) -> Result<RunBody, TrainingError> {
    let run = store.run(id).await?;
    let promoted = store.promoted(&run.facts.cluster).await?;
    Ok(RunBody::of(&run, promoted.is_some_and(|promoted| promoted.id == id)))
}

async fn list(store: &dyn Store, cluster: Option<&ClusterName>, json: bool) -> Result<(), TrainingError> {
    let mut promoted: BTreeMap<ClusterName, Option<RunId>> = BTreeMap::new();
    let mut bodies = Vec::new();
    for run in store.runs(cluster).await? {
        let name = &run.facts.cluster;
        if !promoted.contains_key(name) {
            promoted.insert(name.clone(), store.promoted(name).await?.map(|run| run.id));
        }
        bodies.push(RunBody::of(&run, promoted[name] == Some(run.id)));
    }
    if json {
        print_json(&bodies);
        return Ok(());
    }
    let header = ["run", "cluster", "model", "data_until", "seed", "mae_median", "pin0.9", "cov0.9", "serves"];
    let row = |run: &RunBody| {
        let scores = run.scores();
        let number = |of: fn(&KeptScores) -> f64| scores.as_ref().map(|s| format!("{:.3}", of(s))).unwrap_or_default();
        vec![
            run.run_id.clone(),
            run.cluster.clone(),
            run.model.clone(),
            run.data_until.clone(),
            run.seed.to_string(),
            number(|scores| scores.model.mae_median_gpus),
            number(|scores| scores.model.pinball_q90_gpus),
            number(|scores| scores.model.coverage_q90),
            if run.promoted { "yes" } else { "" }.to_owned(),
        ]
    };
    print_text(&table(&header, &bodies.iter().map(row).collect::<Vec<_>>()));
    Ok(())
}

fn show(run: &RunBody, json: bool) {
    if json {
        print_json(run);
    } else {
        let rows: Vec<_> = lines(run).into_iter().map(|(key, value)| vec![key, value]).collect();
        print_text(&table(&["key", "value"], &rows));
    }
}

fn compare(runs: &[RunBody; 2], json: bool) {
    if json {
        print_json(runs);
        return;
    }
    let [one, other] = runs.each_ref().map(lines);
    let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let cell = |of: &BTreeMap<String, String>, key: &String| of.get(key).cloned().unwrap_or_default();
    let row = |key: &&String| {
        let (left, right) = (cell(&one, key), cell(&other, key));
        let differs = if left == right { "" } else { "differs" };
        vec![(*key).clone(), left, right, differs.to_owned()]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    print_text(&table(&["key", &runs[0].run_id, &runs[1].run_id, ""], &rows));
}

/// Every value of a run by its path, such as `scores.model.crps_gpus`.
fn lines(run: &RunBody) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| walk(&below(key), value, into)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| walk(&below(&index.to_string()), value, into));
            }
            Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
            other => drop(into.insert(path.to_owned(), other.to_string())),
        }
    }
    let mut lines = BTreeMap::new();
    let whole = serde_json::to_value(run).expect("a run has string keys and finite numbers");
    walk("", &whole, &mut lines);
    lines
}

fn serves(run: &RunRecord, json: bool) {
    if json {
        print_json(&RunBody::of(run, true));
    } else {
        say(format_args!("{} ({}) now serves cluster {}", run.id, run.facts.model, run.facts.cluster));
    }
}
