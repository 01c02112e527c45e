//! Usage in Parquet files, for trainings whose history is not in the database.

use crate::error::TrainingError;
use datasets::spool::Spooled;
use store::Cluster;

/// Reads the usage of clusters from files into a file in `TMPDIR`, where it stands in order.
///
/// # Errors
/// A file cannot be read, has a bad row, or one that contradicts another.
#[cfg(feature = "parquet")]
pub fn read(location: &str, clusters: &[Cluster]) -> Result<Spooled, TrainingError> {
    // Reads block, on a runtime of their own.
    std::thread::scope(|scope| scope.spawn(|| parquet::read(location, clusters)).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// As it is built, this program reads no files.
///
/// # Errors
/// Always.
#[cfg(not(feature = "parquet"))]
pub fn read(location: &str, _: &[Cluster]) -> Result<Spooled, TrainingError> {
    Err(TrainingError::BuiltWithoutParquet { location: location.to_owned() })
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::{Cluster, Spooled, TrainingError};
    use datasets::Calendar;
    use datasets::ReadOptions;
    use datasets::read::RowFault;
    use datasets::spool::{RowPlace, Spool};
    use parquet_source::{Files, SourceError, Wanted};
    use vocab::{GpuModel, UsageRow};

    pub fn read(location: &str, clusters: &[Cluster]) -> Result<Spooled, TrainingError> {
        let files = Files::open(location)?;
        let mut usage = Spool::new(&std::env::temp_dir())?;
        // A pass for each cluster: its zone is that of times without an offset, and statistics leave most of the others out.
        for cluster in clusters {
            let zone = Calendar::parse(&cluster.time_zone, Calendar::WEEKDAYS);
            let calendar = zone.map_err(|fault| TrainingError::Calendar { cluster: cluster.name.clone(), fault })?;
            let gpu_model = GpuModel::parse("any").expect("it is a name");
            let options = ReadOptions {
                cluster: cluster.name.clone(),
                gpu_model,
                calendar,
                skip_bad_rows: false,
                zones: datasets::Zones::new(),
            };
            let wanted = Wanted { options: &options, cluster: Some(&cluster.name) };
            let mut full = None;
            let take = &mut |row: &UsageRow, place: RowPlace| {
                let number = usage.number(&row.series);
                usage.add(number, row.hour, row.hour_demand(), place).map_err(|fault| {
                    full = Some(fault);
                    String::new()
                })
            };
            let read = files.each_row(wanted, &mut Vec::new(), take);
            full.map_or(Ok(()), Err)?;
            read?;
        }
        let usage = usage.finish()?;
        match usage.conflicts().first() {
            None => Ok(usage),
            Some(conflict) => {
                let file = files.names().get(conflict.second.0.file as usize).cloned().unwrap_or_default();
                let fault = RowFault::conflict(conflict, files.names());
                Err(SourceError::BadRow { file, row: conflict.second.0.row, fault }.into())
            }
        }
    }
}
