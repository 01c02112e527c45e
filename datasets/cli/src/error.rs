//! Errors of `datasets`, and the exit code of each.

use command_line::{Exit, Failure};
use datasets::spool::SpoolError;
use datasets::sweep::SweepError;
use datasets::{CalendarError, PanelError, ReadError};
use prometheus::{BadSource, Kind, SourceError};
use slurm_records::RecordsError;
use slurm_records::demand::DemandFault;
use slurm_records::nodes::NodesFault;
use std::path::PathBuf;
use store::StoreError;
use vocab::{AmountError, ClusterName, HourError, HourStart, NameError};

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(#[from] parquet_source::SourceError),
    #[cfg(not(feature = "parquet"))]
    #[error("{location}: this program was built without Parquet: build it with --features parquet")]
    BuiltWithoutParquet { location: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Panel(#[from] PanelError),
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    #[error("{}: the name of the file is the name of the calendar: {fault}; rename the file", file.display())]
    CalendarFile { file: PathBuf, fault: CalendarError },
    #[error("cluster {cluster}: {fault}; set another calendar: datasets calendar set --cluster {cluster} weekdays")]
    ClusterCalendar { cluster: ClusterName, fault: CalendarError },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("--epoch is not an hour: {0}")]
    Epoch(HourError),
    #[error("--format {format} needs --epoch: its time zero, such as 2024-03-01T00:00:00+08:00")]
    NoEpoch { format: &'static str },
    #[error("--out {}: a file has this name; name a folder", out.display())]
    NotAFolder { out: PathBuf },
    #[error("{flag} does not apply to --format {format}: leave it out")]
    FlagWithoutMeaning { flag: &'static str, format: &'static str },
    #[error(
        "--capacity gives GPUs to one pool, and the file has {pools}: {names}; ingest it without --capacity, and a file with rows \
         of one pool alone for each capacity"
    )]
    CapacityOfMany { pools: usize, names: String },
    #[error(
        "{}: the nodes have {nodes}, the jobs ask for {jobs}: use the node list of their cluster, or name the GPU model of \
         a philly file with --gpu-model",
        file.display()
    )]
    NodesOfOtherModels { file: PathBuf, jobs: String, nodes: String },
    #[error("the GPUs of the node list exceed the limit of a pool: {0}")]
    Nodes(AmountError),
    #[error("{}: no usage to store: {bad} rows are bad, the others have no HP demand", file.display())]
    NoGoodRow { file: PathBuf, bad: usize },
    #[error(
        "{}: no usage to store: no record has GPUs: check --from and --until, and that slurm.conf has \
         AccountingStorageTRES=gres/gpu",
        place.display()
    )]
    NoRecords { place: PathBuf },
    #[error(
        "{}: no usage to store: of {records} records with GPUs, {bad} of them bad, none is HP work in an hour that is over: \
         wait for the end of the hour, or check --spot-qos and --spot-partitions, --from and --until",
        place.display()
    )]
    NoWholeHour { place: PathBuf, records: usize, bad: usize },
    #[error("unknown cluster {name}: expected one of {known}")]
    NoCluster { name: ClusterName, known: String },
    #[error("the database is empty: load usage with datasets ingest")]
    NothingThere,
    #[error("--out - and --json both write to stdout: name a file, or leave out --json")]
    JsonAndRows,
    #[error("no hour lies between --from {from} and --until {until}: write a later --until")]
    EmptySpan { from: HourStart, until: HourStart },
    #[error("--check needs a calibrated preset: gfs or gfs-a100")]
    NothingToCheck,
    #[error("--check needs --days {least} or more: over fewer, a few jobs hold most GPU-seconds")]
    TooShortToCheck { least: u32 },
    #[error("--check needs all {published} organizations: leave out --organizations")]
    OtherOrganizations { published: u32 },
    #[error("{} of {rows} figures differ too much from the published ones: {}", failed.len(), failed.join(", "))]
    Check { rows: usize, failed: Vec<String> },
    #[error("the window is outside the years 1970 to 2200: {0}")]
    Window(SweepError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    BadSource(#[from] BadSource),
    #[error("--format prometheus needs --cluster: the cluster of the stored hours")]
    NeedsCluster,
    #[error("no complete hour between --from {from} and --until {until}")]
    NoHours { from: HourStart, until: HourStart },
    #[error("the clock of this machine is wrong: {0}")]
    Clock(HourError),
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error("{place}: {fault}")]
    Demand { place: String, fault: Box<DemandFault> },
    #[error(transparent)]
    SlurmNodes(#[from] NodesFault),
    #[error("{}: {source}", file.display())]
    Write { file: PathBuf, source: std::io::Error },
}

impl From<CliError> for Failure {
    fn from(fault: CliError) -> Self {
        use CliError::{
            CapacityOfMany, Epoch, FlagWithoutMeaning, JsonAndRows, Name, NoCluster, NoEpoch, NodesOfOtherModels,
            NothingThere, Store, Write,
        };
        let exit = match &fault {
            Name(_)
            | Epoch(_)
            | NoEpoch { .. }
            | CliError::NotAFolder { .. }
            | FlagWithoutMeaning { .. }
            | CapacityOfMany { .. }
            | NoCluster { .. }
            | JsonAndRows
            | CliError::NothingToCheck
            | CliError::TooShortToCheck { .. }
            | CliError::OtherOrganizations { .. }
            | CliError::Window(_)
            | CliError::Calendar(_)
            | CliError::CalendarFile { .. }
            | CliError::NeedsCluster
            | CliError::NoHours { .. }
            | CliError::EmptySpan { .. } => Exit::Usage,
            // Flags name these files, and an input file that cannot be read is bad data.
            CliError::Source(SourceError::Unread { .. }) => Exit::DataInvalid,
            CliError::Source(fault) => match fault.kind() {
                Kind::Settings => Exit::ConfigInvalid,
                Kind::Data => Exit::DataInvalid,
                Kind::Unavailable => Exit::Unavailable,
            },
            #[cfg(feature = "parquet")]
            CliError::Parquet(fault) if fault.is_retryable() => Exit::Unavailable,
            #[cfg(feature = "parquet")]
            CliError::Parquet(_) => Exit::DataInvalid,
            #[cfg(not(feature = "parquet"))]
            CliError::BuiltWithoutParquet { .. } => Exit::Usage,
            CliError::Records(RecordsError::Command { may_pass: true, .. }) => Exit::Unavailable,
            CliError::BadSource(_) | Store(StoreError::BadUrl { .. }) => Exit::ConfigInvalid,
            Store(fault) if fault.is_retryable() => Exit::Unavailable,
            Store(fault) if fault.is_bad_data() => Exit::DataInvalid,
            CliError::Clock(_)
            | CliError::Spool(_)
            | Store(_)
            | Write { .. }
            | NothingThere
            | CliError::Check { .. } => Exit::Failure,
            NodesOfOtherModels { .. }
            | CliError::NoGoodRow { .. }
            | CliError::NoRecords { .. }
            | CliError::NoWholeHour { .. }
            | CliError::Read(_)
            | CliError::Panel(_)
            | CliError::Nodes(_)
            | CliError::Records(_)
            | CliError::Demand { .. }
            | CliError::SlurmNodes(_)
            | CliError::ClusterCalendar { .. } => Exit::DataInvalid,
        };
        Self::new(exit, fault)
    }
}
