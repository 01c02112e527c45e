//! `datasets export`: usage.csv, the format that ingest reads.

use crate::args::Export;
use crate::error::CliError;
use crate::panel;
use command_line::{OutputFile, is_stdout, print_notice};
use std::io::Write;
use std::path::Path;
use vocab::{HourDemand, HourStart, SeriesId};

pub async fn run(what: &Export, database: &str, json: bool) -> Result<(), CliError> {
    if json && is_stdout(&what.out) {
        return Err(CliError::JsonAndRows);
    }
    if let (Some(from), Some(until)) = (what.from, what.until)
        && from >= until
    {
        return Err(CliError::EmptySpan { from, until });
    }
    let store = store::connect_existing(database).await?;
    let chosen = panel::chosen(store.as_ref(), what.cluster.as_ref()).await?;
    let out = OutputFile::create(&what.out).map_err(|source| write_fault(&what.out, source))?;
    let mut writer = csv::Writer::from_writer(out);
    let mut with_ends = false;
    for cluster in &chosen {
        with_ends = with_ends || store.knows_ends(&cluster.name).await?;
    }
    let mut outcome = write_header(&mut writer, with_ends);
    let mut rows = 0_u64;
    for cluster in chosen {
        let Some((first, last)) = store.measured_range(&cluster.name).await? else { continue };
        let (from, to) = (what.from.unwrap_or(first), what.until.unwrap_or(last.plus_hours(1)));
        let sink = &mut |series: &SeriesId, hour: HourStart, demand: HourDemand| {
            if outcome.is_ok() {
                outcome = write_row(&mut writer, series, hour, (demand, with_ends));
                rows += 1;
            }
        };
        store.load_usage(&cluster.name, from, to, sink).await?;
    }
    store.close().await;
    outcome.and_then(|()| finish(writer)).map_err(|source| write_fault(&what.out, source))?;
    tell(rows, &what.out, json);
    Ok(())
}

/// Puts the file in its place.
pub fn finish(writer: csv::Writer<OutputFile>) -> std::io::Result<()> {
    writer.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()
}

/// The columns; that of the ends of hours is there where one is known.
pub fn write_header<W: Write>(writer: &mut csv::Writer<W>, with_ends: bool) -> std::io::Result<()> {
    let columns = ["hour", "cluster", "gpu_model", "organization", "demand_gpus", "demand_at_end_gpus"];
    Ok(writer.write_record(&columns[..columns.len() - usize::from(!with_ends)])?)
}

pub fn write_row<W: Write>(
    writer: &mut csv::Writer<W>,
    series: &SeriesId,
    hour: HourStart,
    (demand, with_ends): (HourDemand, bool),
) -> std::io::Result<()> {
    let (hour, peak) = (hour.to_string(), demand.peak.as_gpus().to_string());
    let at_end = demand.at_end.map(|gpus| gpus.as_gpus().to_string()).unwrap_or_default();
    let (pool, organization) = (&series.pool, series.organization.as_str());
    let fields = [&hour, pool.cluster.as_str(), pool.gpu_model.as_str(), organization, &peak, &at_end];
    Ok(writer.write_record(&fields[..fields.len() - usize::from(!with_ends)])?)
}

pub fn write_fault(file: &Path, source: std::io::Error) -> CliError {
    CliError::Write { file: file.to_owned(), source }
}

/// Stdout may hold the data: then what happened goes to stderr.
fn tell(rows: u64, out: &Path, json: bool) {
    if is_stdout(out) {
        print_notice(format_args!("{rows} rows to stdout"));
    } else if json {
        command_line::print_json(&std::collections::BTreeMap::from([("rows", rows)]));
    } else {
        command_line::say(format_args!("{rows} rows to {}", out.display()));
    }
}
