//! Everything that can go wrong here, and the exit code of each.

use command_line::{Exit, Failure};
use datasets::sweep::SweepError;
use datasets::{CalendarError, PanelError, ReadError};
use prometheus::{BadSource, Kind, SourceError};
use std::path::PathBuf;
use store::StoreError;
use vocab::{AmountError, ClusterName, HourError, HourStart, NameError};

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Panel(#[from] PanelError),
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    #[error("{}: a calendar is stored under the name of its file: {fault}; rename the file", file.display())]
    CalendarFile { file: PathBuf, fault: CalendarError },
    #[error("cluster {cluster}: {fault}; give it another one: datasets calendar set --cluster {cluster} weekdays")]
    ClusterCalendar { cluster: ClusterName, fault: CalendarError },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("--epoch is not an hour: {0}")]
    Epoch(HourError),
    #[error("--format {format} needs --epoch, the time from which it counts, such as 2024-03-01T00:00:00+08:00")]
    NoEpoch { format: &'static str },
    #[error("{flag} has no meaning for --format {format}")]
    FlagWithoutMeaning { flag: &'static str, format: &'static str },
    #[error("--capacity gives GPUs to one pool, and the file has {pools}: {names}")]
    CapacityOfMany { pools: usize, names: String },
    #[error(
        "{}: has GPUs of {nodes}, and the jobs are of {jobs}: take the node list of their cluster, or say with --gpu-model \
         what a philly file leaves out",
        file.display()
    )]
    NodesOfOtherModels { file: PathBuf, jobs: String, nodes: String },
    #[error("the node list sums to more than a pool can have: {0}")]
    Nodes(AmountError),
    #[error("{}: holds no usage to store: {bad} rows are bad, the others are none of HP work", file.display())]
    NoGoodRow { file: PathBuf, bad: usize },
    #[error("there is no cluster {name}; there are {known}")]
    NoCluster { name: ClusterName, known: String },
    #[error("the database is empty: datasets ingest puts usage into it")]
    NothingThere,
    #[error("--out - puts the rows on stdout, where --json puts its answer: name a file, or leave --json out")]
    JsonAndRows,
    #[error("--check needs a preset that is calibrated: gfs or gfs-a100")]
    NothingToCheck,
    #[error("--check needs --days {least} or more: over fewer, a few jobs hold most GPU-seconds")]
    TooShortToCheck { least: u32 },
    #[error("--check compares all {published} organizations: leave out --organizations")]
    OtherOrganizations { published: u32 },
    #[error("{} of {rows} figures are too far from what is published: {}", failed.len(), failed.join(", "))]
    Check { rows: usize, failed: Vec<String> },
    #[error("the window leaves the years 1970 to 2200: {0}")]
    Window(SweepError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    BadSource(#[from] BadSource),
    #[error("--format prometheus needs --cluster, the name under which its hours are stored")]
    NeedsCluster,
    #[error("no hour that is over lies between --from {from} and --until {until}")]
    NoHours { from: HourStart, until: HourStart },
    #[error("the clock of this machine is wrong: {0}")]
    Clock(HourError),
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
            | CliError::NoHours { .. } => Exit::Usage,
            CliError::Source(fault) => match fault.kind() {
                Kind::Settings => Exit::ConfigInvalid,
                Kind::Data => Exit::DataInvalid,
                Kind::Unavailable => Exit::Unavailable,
            },
            CliError::BadSource(_) | Store(StoreError::BadUrl { .. }) => Exit::ConfigInvalid,
            Store(fault) if fault.is_retryable() => Exit::Unavailable,
            CliError::Clock(_)
            | CliError::Read(ReadError::Io { .. })
            | Store(_)
            | Write { .. }
            | NothingThere
            | CliError::Check { .. } => Exit::Failure,
            NodesOfOtherModels { .. }
            | CliError::NoGoodRow { .. }
            | CliError::Read(_)
            | CliError::Panel(_)
            | CliError::Nodes(_)
            | CliError::ClusterCalendar { .. } => Exit::DataInvalid,
        };
        Self::new(exit, fault)
    }
}
