//! `datasets generate`: made-up usage as usage.csv.

use crate::args::{Generate, Preset};
use crate::error::CliError;
use crate::export::{finish, write_fault, write_header, write_row};
use command_line::OutputFile;
use datasets::synthetic::SmallCluster;
use std::path::Path;
use vocab::{ClusterName, GpuModel, UsageRow};

pub fn run(what: &Generate, json: bool) -> Result<(), CliError> {
    let Preset::Small = what.preset;
    let made_up = SmallCluster {
        cluster: ClusterName::parse("demo")?,
        gpu_model: GpuModel::parse("A100-SXM4-80GB")?,
        start: what.start,
        days: what.days,
        organizations: what.organizations,
        seed: what.seed,
    };
    let (rows, file) = (made_up.usage(), what.out.join("usage.csv"));
    std::fs::create_dir_all(&what.out).map_err(|source| write_fault(&what.out, source))?;
    write(&rows, &file).map_err(|source| write_fault(&file, source))?;
    if json {
        command_line::print_json(&std::collections::BTreeMap::from([("rows", rows.len())]));
    } else {
        command_line::say(format_args!("{} rows to {}: made up, calibrated to no trace", rows.len(), file.display()));
    }
    Ok(())
}

fn write(rows: &[UsageRow], file: &Path) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(OutputFile::create(file)?);
    write_header(&mut writer)?;
    for row in rows {
        write_row(&mut writer, &row.series, row.hour, row.demand)?;
    }
    finish(writer)
}
