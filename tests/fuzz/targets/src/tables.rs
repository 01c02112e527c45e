//! Files of the published formats and our own.

use crate::{chosen, file_of, is_one_line};
use datasets::read::{self, ReadError, ReadOptions, ReadReport};
use datasets::{Calendar, sweep};
use std::path::Path;
use vocab::{ClusterName, GpuModel, HourStart, Task, UnixSeconds, UsageRow};

const EPOCH_S: i64 = 1_709_222_400;
/// Series and hours that are swept: a list may span more, and would take longer.
const MOST_ROWS: i64 = 200_000;

/// A reader of jobs, whose times count from an epoch.
type ReadTasks = fn(&Path, UnixSeconds, &ReadOptions) -> Result<(Vec<Task>, ReadReport), ReadError>;

pub fn options(skip_bad_rows: bool) -> ReadOptions {
    ReadOptions {
        cluster: ClusterName::parse("earth").expect("a name"),
        gpu_model: GpuModel::parse("V100").expect("a name"),
        calendar: Calendar::parse("Europe/Berlin", Calendar::WEEKDAYS).expect("a calendar"),
        skip_bad_rows,
        zones: datasets::Zones::new(),
    }
}

/// The first line names the format.
pub fn tables(data: &[u8]) {
    let Some((kind, text)) = chosen(data) else { return };
    let path = file_of("vc1.csv", text);
    let epoch = UnixSeconds::new(EPOCH_S);
    let hour = HourStart::from_unix_s(EPOCH_S).expect("on the grid");
    let lists = |read: ReadTasks| {
        let tasks = both(&path, text, |path, options| read(path, epoch, options), |(_, report)| report.skipped.len());
        swept(&tasks.map(|(tasks, _)| tasks).unwrap_or_default());
    };
    match kind {
        "usage" => {
            let rows = both(&path, text, read::usage, |report| report.skipped.len());
            if let Some(report) = rows {
                usage_again(&report.rows);
            }
        }
        "helios" => drop(both(&path, text, read::helios, |report| report.skipped.len())),
        "alibaba-hourly" => {
            let rows = |path: &Path, options: &ReadOptions| read::alibaba_hourly(path, hour, options);
            let rows = both(&path, text, rows, |report| report.skipped.len());
            if let Some(report) = rows {
                usage_again(&report.rows);
            }
        }
        "gfs-jobs" => lists(read::gfs_tasks),
        "philly" => lists(read::philly_tasks),
        "gfs-nodes" => {
            let nodes = both(&path, text, read::gfs_nodes, |(_, skipped)| skipped.len());
            drop(nodes.map(|(nodes, _)| read::capacity_by_model(&nodes, hour)));
        }
        "philly-models" => drop(strict(&path, text, read::philly_models(&path, &options(false)))),
        "philly-deadlines" => {
            drop(strict(&path, text, read::philly_deadlines(&path, &options(false), &mut Vec::new())));
        }
        "openb-nodes" => drop(strict(&path, text, read::openb::nodes(&path))),
        "openb-pods" => drop(strict(&path, text, read::openb::pods(&path))),
        "power" => drop(strict(&path, text, read::power(&path))),
        "phases" => drop(strict(&path, text, read::phases(&path))),
        "labels" => drop(strict(&path, text, read::job_labels(&path))),
        "speeds" => drop(strict(&path, text, read::model_speeds(&path))),
        _ => {}
    }
}

/// Bad rows stop the reading, or are listed: a file that has none reads alike.
fn both<T: std::fmt::Debug + PartialEq>(
    path: &Path,
    text: &[u8],
    read: impl Fn(&Path, &ReadOptions) -> Result<T, ReadError>,
    skipped: impl Fn(&T) -> usize,
) -> Option<T> {
    let whole = strict(path, text, read(path, &options(false)));
    let lenient = strict(path, text, read(path, &options(true)));
    match (&whole, &lenient) {
        (Some(whole), Some(lenient)) => assert_eq!(whole, lenient, "without bad rows nothing is skipped"),
        (None, Some(lenient)) => assert!(skipped(lenient) > 0, "it was refused, and nothing is bad"),
        (Some(_), None) => panic!("it is read whole, and refused where bad rows may be skipped"),
        (None, None) => {}
    }
    whole
}

fn strict<T>(path: &Path, text: &[u8], read: Result<T, ReadError>) -> Option<T> {
    read.map_err(|fault| names_a_row(path, text, &fault)).ok()
}

/// A fault names the file, and a row or line of it where the fault has one.
pub fn names_a_row(path: &Path, text: &[u8], fault: &ReadError) {
    let printed = fault.to_string();
    is_one_line(&printed);
    assert!(printed.starts_with(&path.display().to_string()), "{printed:?} does not name the file");
    let ends = text.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
    if let ReadError::Row { row: place, .. } | ReadError::Line { line: place, .. } = fault {
        assert!((1..=ends + 1).contains(place), "{printed:?} of a file with {ends} line ends");
    }
}

/// Usage in our own format is read as what it was.
fn usage_again(rows: &[UsageRow]) {
    if rows.is_empty() {
        return;
    }
    let quoted = |field: &str| format!("\"{}\"", field.replace('"', "\"\""));
    let line = |row: &UsageRow| {
        let pool = &row.series.pool;
        let names = [pool.cluster.as_str(), pool.gpu_model.as_str(), row.series.organization.as_str()].map(quoted);
        format!("{},{},{}\n", row.hour, names.join(","), row.demand)
    };
    let text: String = rows.iter().map(line).collect();
    let path = file_of("again.csv", format!("hour,cluster,gpu_model,organization,demand_gpus\n{text}").as_bytes());
    assert_eq!(read::usage(&path, &options(false)).expect("what is written is read").rows, rows);
}

/// Demand is what tasks ask for: no hour has more than all of them together.
fn swept(tasks: &[Task]) {
    let submitted = || tasks.iter().map(|task| task.submitted);
    let (Some(first), Some(last)) = (submitted().min(), submitted().max()) else { return };
    if last.since_s(first) / 3_600 * tasks.len() as i64 > MOST_ROWS {
        return;
    }
    match sweep::hourly_hp_demand(&options(false).cluster, tasks) {
        Err(fault) => is_one_line(&fault.to_string()),
        Ok(rows) => {
            let all: u64 = tasks.iter().map(|task| task.gpus().milli()).sum();
            assert!(rows.iter().all(|row| row.demand.milli() <= all));
        }
    }
}
