//! Generated against published figures: the table of `--check`.

use crate::error::CliError;
use command_line::{print_text, table};
use datasets::synthetic::gfs::check::{Measure, Row, failed};
use serde::Serialize;

/// One row of the table as JSON: shares from 0 to 1.
#[derive(Serialize)]
pub struct Figure {
    marginal: &'static str,
    category: String,
    measure: &'static str,
    published: Option<f64>,
    generated: f64,
    difference: Option<f64>,
    tolerance: Option<f64>,
    /// `null` without a tolerance.
    ok: Option<bool>,
}

impl Figure {
    pub fn of(row: &Row) -> Self {
        Self {
            marginal: row.marginal,
            category: row.category.clone(),
            measure: row.measure.name(),
            published: row.published,
            generated: row.generated,
            difference: row.difference(),
            tolerance: row.tolerance,
            ok: row.is_within(),
        }
    }
}

pub fn print(rows: &[Row]) {
    let cells = |row: &Row| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| number(row.measure, value));
        let verdict = match row.is_within() {
            None => "",
            Some(true) => "ok",
            Some(false) => "too far",
        };
        vec![
            row.marginal.to_owned(),
            row.category.clone(),
            if row.measure.is_share() { format!("% of {}", row.measure.name()) } else { row.measure.name().to_owned() },
            number(row.published),
            number(Some(row.generated)),
            number(row.difference()),
            number(row.tolerance),
            verdict.to_owned(),
        ]
    };
    let header = ["marginal", "category", "measure", "published", "generated", "difference", "tolerance", "verdict"];
    print_text(&table(&header, &rows.iter().map(cells).collect::<Vec<_>>()));
}

fn number(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Jobs | Measure::GpuSeconds => format!("{:.3}", value * 100.0),
        Measure::Seconds => format!("{value:.0}"),
        Measure::Ratio => format!("{value:.2}"),
    }
}

pub fn verdict(rows: &[Row]) -> Result<(), CliError> {
    let failed = failed(rows);
    if failed.is_empty() { Ok(()) } else { Err(CliError::Check { rows: rows.len(), failed }) }
}
