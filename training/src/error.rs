//! Everything that can go wrong here, and the exit code of each.

use crate::shard::Shard;
use command_line::{Exit, Failure, shell_word};
use datasets::spool::SpoolError;
use datasets::{CalendarError, PanelError, ReadError, SplitError};
use forecaster::checkpoint::CheckpointError;
use forecaster::{HistoryFault, ModelKind, PredictError, TrainError};
use slurm_records::RecordsError;
use slurm_records::demand::DemandFault;
use std::path::PathBuf;
use store::{RunId, StoreError};
use vocab::{ClusterName, HourStart, RateError};

#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    #[error(transparent)]
    Store(StoreError),
    #[error("there is no {run}: train runs list shows those that there are")]
    NoRun { run: String },
    #[error(transparent)]
    Rows(#[from] SpoolError),
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(Box<parquet_source::SourceError>),
    #[error("{location}: this program was built without Parquet: build it with --features parquet")]
    BuiltWithoutParquet { location: String },
    #[error("cluster {cluster}: {fault}")]
    Panel { cluster: ClusterName, fault: PanelError },
    #[error("cluster {cluster}: {fault}")]
    Calendar { cluster: ClusterName, fault: CalendarError },
    #[error("cluster {cluster}: {fault}")]
    Split { cluster: ClusterName, fault: SplitError },
    #[error("cluster {cluster}: {fault}")]
    Train { cluster: ClusterName, fault: TrainError },
    #[error("cluster {cluster}: {fault}")]
    History { cluster: ClusterName, fault: HistoryFault },
    #[error(
        "{}, where a history that exceeds --memory is kept while it is learned from: {why}. Set TMPDIR to a folder with \
         8 bytes for each series and hour",
        folder.display()
    )]
    Spool { folder: PathBuf, why: String },
    #[error("{model} does not learn from other clusters: --borrow is for {}", blends().join(", "))]
    NothingToBorrow { model: ModelKind },
    #[error(
        "shard {shard} holds none of the {clusters} clusters: there are fewer clusters than shards, so start {clusters} of them at most"
    )]
    EmptyShard { shard: Shard, clusters: usize },
    #[error(transparent)]
    Predict(#[from] PredictError),
    #[error("{run}: {fault}")]
    Checkpoint { run: RunId, fault: CheckpointError },
    #[error("the run could not be kept: {0}")]
    Save(CheckpointError),
    #[error("guarantee_rate: {0}")]
    Rate(#[from] RateError),
    #[error("there is no cluster {name}; there are {known}")]
    NoCluster { name: ClusterName, known: String },
    #[error("name one with --cluster; there are {known}")]
    WhichCluster { known: String },
    #[error("{}: {why}: name a file of train tune --out", file.display())]
    SettingsFile { file: PathBuf, why: String },
    #[error("--settings {}: {why}", file.display())]
    SettingsUnread { file: PathBuf, why: String },
    #[error("{model} has settings of its own: --settings is for {}", blends().join(", "))]
    SettingsOfOther { model: ModelKind },
    #[error("{run} is {model}, whose forecasts are not explained: only those of orglinear, trees and network are")]
    NotExplained { run: RunId, model: String },
    #[error("{run} knows no series {series}; it knows {known}")]
    NoSeries { run: RunId, series: String, known: String },
    #[error("cluster {cluster} has no run that serves: train --cluster {}", shell_word(cluster.as_str()))]
    NothingPromoted { cluster: ClusterName },
    #[error("cluster {cluster}: there are too few hours before {at} to explain a forecast of {series}")]
    NothingToExplain { cluster: ClusterName, at: HourStart, series: String },
    #[error("the database is empty: datasets ingest puts usage into it")]
    NothingThere,
    #[error("cluster {cluster} has no usage of any organization: {remedy}")]
    NoUsage { cluster: ClusterName, remedy: &'static str },
    #[error("cluster {cluster} has no usage in the hours before {until}")]
    NoHours { cluster: ClusterName, until: HourStart },
    #[error("{run} learned from hours until {until}, and the test begins at {from}: choose a run with older data")]
    Leak { run: RunId, until: HourStart, from: HourStart },
    #[error(
        "{run} learned from hours until {until}, and the database ends at {end}: it has seen all but less than {horizon}. \
         Train one that leaves hours out (train --horizon {horizon} --until TIME), or play a window again with train \
         backtest and report its files with --forecasts"
    )]
    NothingUnseen { run: RunId, until: HourStart, end: HourStart, horizon: vocab::HorizonHours },
    #[error("{one}, and {other}: report runs of one cluster and horizon together")]
    RunsDiffer { one: String, other: String },
    #[error("{run} forecasts {have}, and --horizon asks for {wanted}")]
    OtherHorizon { run: RunId, have: vocab::HorizonHours, wanted: vocab::HorizonHours },
    #[error("usage of cluster {cluster} ends before {end}, and --to {to} is not before that: choose an earlier --to")]
    NotMeasured { cluster: ClusterName, end: HourStart, to: HourStart },
    #[error("none of the clusters was measured in the window: nothing could be scored")]
    NothingScored,
    #[error("{run} is kept but not promoted: {why}")]
    Gate { run: RunId, why: String },
    #[error("--out and --pool-out name the same file, {}", file.display())]
    OneFileForTwo { file: PathBuf },
    #[error("--offered: {0}")]
    Offered(#[from] placement::SettingsError),
    #[error(transparent)]
    Minutes(Box<ReadError>),
    #[error(
        "--minutes are those of one pool, and there are {known} {what}: name the cluster with --cluster, or leave it out"
    )]
    MinutesOfSeveral { what: &'static str, known: usize },
    #[error(
        "--minutes has no minute of cluster {cluster} between {from} and {to} in hours with usage: name the files of that \
         cluster, or leave it out for demand by the hour"
    )]
    NoMinutes { cluster: ClusterName, from: HourStart, to: HourStart },
    #[error(transparent)]
    Jobs(Box<ReadError>),
    #[error("--jobs are those of one cluster, and there are {clusters}: name it with --cluster")]
    JobsOfSeveral { clusters: usize },
    #[error(
        "--jobs: {} names no GPU model, and the cluster has {pools}: give a list with the column gpu_model",
        file.display()
    )]
    JobsOfWhichModel { file: PathBuf, pools: usize },
    #[error("--jobs: {}: its times count from a zero of their own: give it with --epoch", file.display())]
    JobsWithoutEpoch { file: PathBuf },
    #[error("{flags}: for {of}, and --jobs names none: leave it out")]
    JobFlags { flags: String, of: &'static str },
    #[error("--jobs: {0}")]
    Records(#[from] RecordsError),
    #[error("--jobs: {place}: {fault}")]
    JobRecords { place: String, fault: Box<DemandFault> },
    #[error("--jobs is for what a service would have answered: add --served")]
    JobsNotServed,
    #[error("--jobs and --minutes both say what demand was: leave one of them out")]
    JobsAndMinutes,
    #[error(
        "--pool-out has bounds over --horizon, and {horizon} is not offered: add it to --offered, or leave --pool-out out"
    )]
    ServedWithoutHorizon { horizon: vocab::HorizonHours },
    #[error("--pool-out has what is served by usage that is on time: add 0h to --late, or leave --pool-out out")]
    ServedLate,
    #[error("- puts rows on stdout, where --json puts its answer: name files, or leave --json out")]
    JsonAndRows,
    #[error("{why}")]
    OtherDemand { why: String },
    #[error("{} of the clusters were not trained, or their runs not promoted: {}", faults.len(), faults.join("; "))]
    Several { faults: Vec<String> },
    #[error("{} runs missed the gate: {}", faults.len(), faults.join("; "))]
    Gates { faults: Vec<String> },
    #[error("{}: {source}", file.display())]
    Write { file: PathBuf, source: std::io::Error },
}

/// The models that `--settings` is for.
fn blends() -> Vec<&'static str> {
    ModelKind::ALL.into_iter().filter(|kind| kind.recipe().is_some()).map(ModelKind::as_str).collect()
}

#[cfg(feature = "parquet")]
impl From<parquet_source::SourceError> for TrainingError {
    fn from(fault: parquet_source::SourceError) -> Self {
        Self::Parquet(Box::new(fault))
    }
}

use TrainingError as E;

#[cfg(feature = "parquet")]
fn of_files(fault: &parquet_source::SourceError) -> Exit {
    if fault.is_retryable() { Exit::Unavailable } else { Exit::DataInvalid }
}

impl From<StoreError> for TrainingError {
    fn from(fault: StoreError) -> Self {
        match fault {
            StoreError::NotFound { what: "run", id } => Self::NoRun { run: id },
            other => Self::Store(other),
        }
    }
}

fn of_store(fault: &StoreError) -> Exit {
    match fault {
        StoreError::BadUrl { .. } => Exit::ConfigInvalid,
        fault if fault.is_bad_data() => Exit::DataInvalid,
        fault if fault.is_retryable() => Exit::Unavailable,
        _ => Exit::Failure,
    }
}

impl TrainingError {
    /// Faults of several clusters as one.
    #[must_use]
    pub fn of_several(faults: &[Self]) -> Self {
        let texts = faults.iter().map(ToString::to_string).collect();
        if faults.iter().all(|fault| matches!(fault, E::Gate { .. })) {
            E::Gates { faults: texts }
        } else {
            E::Several { faults: texts }
        }
    }
}

impl From<TrainingError> for Failure {
    fn from(fault: TrainingError) -> Self {
        Self::new(exit_of(&fault), fault)
    }
}

fn exit_of(fault: &TrainingError) -> Exit {
    match fault {
        E::Gate { .. } | E::Gates { .. } => Exit::Gate,
        E::NoCluster { .. }
        | E::WhichCluster { .. }
        | E::NoRun { .. }
        | E::NoSeries { .. }
        | E::NotExplained { .. }
        | E::SettingsOfOther { .. }
        | E::NothingToBorrow { .. }
        | E::OtherHorizon { .. }
        | E::OneFileForTwo { .. }
        | E::RunsDiffer { .. }
        | E::Offered(_)
        | E::MinutesOfSeveral { .. }
        | E::JobsOfSeveral { .. }
        | E::JobsOfWhichModel { .. }
        | E::JobsWithoutEpoch { .. }
        | E::JobFlags { .. }
        | E::JobsNotServed
        | E::JobsAndMinutes
        | E::ServedWithoutHorizon { .. }
        | E::ServedLate
        | E::BuiltWithoutParquet { .. }
        | E::JsonAndRows => Exit::Usage,
        E::Rate(_) | E::SettingsFile { .. } => Exit::ConfigInvalid,
        E::Store(fault) => of_store(fault),
        #[cfg(feature = "parquet")]
        E::Parquet(fault) => of_files(fault),
        E::Several { .. }
        | E::Panel { .. }
        | E::Split { .. }
        | E::Train { .. }
        | E::NoUsage { .. }
        | E::OtherDemand { .. }
        | E::NoHours { .. }
        | E::Leak { .. }
        | E::NothingUnseen { .. }
        | E::NotMeasured { .. }
        | E::Minutes(_)
        | E::NoMinutes { .. }
        | E::Jobs(_)
        | E::Records(_)
        | E::JobRecords { .. }
        | E::NothingScored
        | E::SettingsUnread { .. }
        | E::NothingToExplain { .. }
        | E::EmptyShard { .. }
        | E::Calendar { .. } => Exit::DataInvalid,
        E::Rows(_)
        | E::Predict(_)
        | E::Checkpoint { .. }
        | E::Save(_)
        | E::NothingThere
        | E::NothingPromoted { .. }
        | E::History { .. }
        | E::Spool { .. }
        | E::Write { .. } => Exit::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_that_miss_the_gate_end_with_its_exit_code_and_other_faults_among_them_with_theirs() {
        let gate = |run| E::Gate { run: store::RunId::new(run), why: "its MAE".to_owned() };
        let all = E::of_several(&[gate(1), gate(2)]);
        assert_eq!(exit_of(&all), Exit::Gate);
        assert!(all.to_string().starts_with("2 runs missed the gate: run-1 is kept"), "{all}");
        assert_eq!(exit_of(&E::of_several(&[gate(1), E::NothingScored])), Exit::DataInvalid);
    }
}
