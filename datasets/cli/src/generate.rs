//! `datasets generate`: a synthetic cluster, as files.

use crate::args::{Generate, Preset};
use crate::check;
use crate::error::CliError;
use crate::export::{finish, write_fault, write_header, write_row};
use command_line::OutputFile;
use datasets::read::{GFS_JOB_COLUMNS, GFS_NODE_COLUMNS};
use datasets::synthetic::SmallCluster;
use datasets::synthetic::gfs::check::{LEAST_DAYS, check as compare};
use datasets::synthetic::gfs::{GfsCluster, Made, Shares};
use serde::Serialize;
use std::path::Path;
use vocab::{ClusterName, GpuModel, Node, UsageRow};

/// Organizations of [`Preset::Small`] where none are given.
const SMALL_ORGANIZATIONS: u32 = 12;

/// The JSON answer.
#[derive(Default, Serialize)]
struct Summary {
    rows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Vec<check::Figure>>,
}

pub fn run(what: &Generate, json: bool) -> Result<(), CliError> {
    match what.preset {
        Preset::Small => small(what, json),
        Preset::Gfs => gfs(what, Shares::Trace, "gfs", json),
        Preset::GfsA100 => gfs(what, Shares::A100, "gfs-a100", json),
    }
}

fn small(what: &Generate, json: bool) -> Result<(), CliError> {
    let Some(out) = what.out.as_deref().filter(|_| !what.check) else { return Err(CliError::NothingToCheck) };
    let synthetic = SmallCluster {
        cluster: ClusterName::parse("demo")?,
        gpu_model: GpuModel::parse("A100-SXM4-80GB")?,
        start: what.start,
        days: what.days,
        organizations: what.organizations.unwrap_or(SMALL_ORGANIZATIONS),
        seed: what.seed,
    };
    let rows = synthetic.usage();
    make_folder(out)?;
    let file = write_usage(out, &rows)?;
    if json {
        command_line::print_json(&Summary { rows: rows.len(), ..Summary::default() });
    } else {
        command_line::say(format_args!(
            "{} rows to {}: synthetic, not calibrated to a trace",
            rows.len(),
            file.display()
        ));
    }
    Ok(())
}

fn gfs(what: &Generate, shares: Shares, cluster: &str, json: bool) -> Result<(), CliError> {
    let published = GfsCluster::published_organizations(shares);
    let organizations = what.organizations.unwrap_or(published);
    if what.check && organizations < published {
        return Err(CliError::OtherOrganizations { published });
    }
    if what.check && what.days < LEAST_DAYS {
        return Err(CliError::TooShortToCheck { least: LEAST_DAYS });
    }
    // 1. Make.
    let cluster = ClusterName::parse(cluster)?;
    let made =
        GfsCluster { shares, cluster, start: what.start, days: what.days, organizations, seed: what.seed }.make();
    let (rows, nodes) = (made.usage().map_err(CliError::Window)?, made.nodes());
    // 2. Write.
    if let Some(out) = &what.out {
        make_folder(out)?;
        write_nodes(out, &nodes)?;
        write_jobs(out, &made)?;
        let _ = write_usage(out, &rows)?;
    }
    // 3. Compare, and tell.
    let checked = what.check.then(|| compare(&made, &rows));
    if json {
        let check = checked.as_deref().map(|rows| rows.iter().map(check::Figure::of).collect());
        let (jobs, nodes) = (Some(made.jobs.len()), Some(nodes.len()));
        command_line::print_json(&Summary { rows: rows.len(), jobs, nodes, check });
    } else {
        tell(what, &made, &rows, &nodes);
        if let Some(rows) = &checked {
            check::print(rows);
        }
    }
    checked.map_or(Ok(()), |rows| check::verdict(&rows))
}

fn tell(what: &Generate, made: &Made, rows: &[UsageRow], nodes: &[Node]) {
    let to = what.out.as_ref().map_or_else(String::new, |out| format!(" to {}", out.display()));
    let (jobs, rows, nodes) = (made.jobs.len(), rows.len(), nodes.len());
    command_line::say(format_args!(
        "{nodes} nodes, {jobs} jobs, {rows} rows of usage{to}: synthetic, calibrated to published shares"
    ));
}

fn make_folder(out: &Path) -> Result<(), CliError> {
    if out.exists() && !out.is_dir() {
        return Err(CliError::NotAFolder { out: out.to_owned() });
    }
    std::fs::create_dir_all(out).map_err(|source| write_fault(out, source))
}

/// A file of a folder, whole or not there.
fn write(
    out: &Path,
    name: &str,
    rows: impl FnOnce(&mut csv::Writer<OutputFile>) -> std::io::Result<()>,
) -> Result<std::path::PathBuf, CliError> {
    let file = out.join(name);
    let all = || {
        let mut writer = csv::Writer::from_writer(OutputFile::create(&file)?);
        rows(&mut writer)?;
        finish(writer)
    };
    all().map_err(|source| write_fault(&file, source))?;
    Ok(file)
}

fn write_usage(out: &Path, rows: &[UsageRow]) -> Result<std::path::PathBuf, CliError> {
    write(out, "usage.csv", |writer| {
        let with_ends = rows.iter().any(|row| row.at_end.is_some());
        write_header(writer, with_ends)?;
        rows.iter().try_for_each(|row| write_row(writer, &row.series, row.hour, (row.hour_demand(), with_ends)))
    })
}

fn write_nodes(out: &Path, nodes: &[Node]) -> Result<(), CliError> {
    let file = write(out, "node_info_df.csv", |writer| {
        writer.write_record(GFS_NODE_COLUMNS)?;
        for node in nodes {
            let vcpus = node.cpu_milli.unwrap_or_default() / 1_000;
            let (gpus, vcpus) = (node.gpus.to_string(), vcpus.to_string());
            writer.write_record([node.id.as_str(), node.pool.gpu_model.as_str(), &gpus, &vcpus])?;
        }
        Ok(())
    });
    file.map(|_| ())
}

fn write_jobs(out: &Path, made: &Made) -> Result<(), CliError> {
    let file = write(out, "job_info_df.csv", |writer| {
        writer.write_record(GFS_JOB_COLUMNS)?;
        for (number, job) in made.jobs.iter().enumerate() {
            let cells = [job.vcpus.to_string(), (f64::from(job.request_milli) / 1_000.0).to_string()];
            let rest = [job.workers.to_string(), job.submit_s.to_string(), job.duration_s.to_string()];
            writer.write_field(number.to_string())?;
            writer.write_field(job.organization_name())?;
            writer.write_field(job.model_name())?;
            cells.iter().chain(&rest).try_for_each(|cell| writer.write_field(cell))?;
            writer.write_field(if job.spot { "Spot" } else { "HP" })?;
            writer.write_record(None::<&[u8]>)?;
        }
        Ok(())
    });
    file.map(|_| ())
}
