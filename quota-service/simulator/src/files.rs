//! The files of a comparison.

use crate::commands::SimulatorError;
use crate::compare::spreads;
use crate::figures::{FIGURES, Row};
use crate::page::{Header, page};
use command_line::OutputFile;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Writes compare.csv, price.csv, course.csv and compare.html, each whole or not at all.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(folder: &Path, rows: &[Row], header: &Header) -> Result<(), SimulatorError> {
    let fault = |fault| SimulatorError::Write { file: folder.to_owned(), fault };
    std::fs::create_dir_all(folder).map_err(fault)?;
    text(folder, "compare.csv", &figures(rows))?;
    text(folder, "price.csv", &prices(rows))?;
    text(folder, "course.csv", &course(rows))?;
    text(folder, "compare.html", &page(rows, header))
}

/// Writes one file, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn text(folder: &Path, name: &str, text: &str) -> Result<(), SimulatorError> {
    let file = folder.join(name);
    let written = OutputFile::create(&file).and_then(|mut to| {
        to.write_all(text.as_bytes())?;
        to.finish()
    });
    written.map_err(|fault| SimulatorError::Write { file, fault })
}

/// A figure as a cell of a CSV file: a zero has no minus.
#[must_use]
pub fn cell(value: &Value) -> String {
    let is_zero = value.is_f64() && value.as_f64() == Some(0.0);
    if is_zero { "0.0".to_owned() } else { value.to_string() }
}

fn course(rows: &[Row]) -> String {
    let mut lines = "policy,at_s,hp_gpus,spot_gpus,hp_waiting,spot_waiting,quota_gpus,eta,evictions\n".to_owned();
    for Row { name, course, .. } in rows {
        for one in course {
            let (at, hp, spot) = (one.at_s, one.hp_gpus, one.spot_gpus);
            let (hp_waiting, spot_waiting) = (one.hp_waiting, one.spot_waiting);
            let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let quota = text(one.quota_gpus);
            let (eta, evictions) = (text(one.eta), one.evictions);
            let _ = writeln!(lines, "{name},{at},{hp},{spot},{hp_waiting},{spot_waiting},{quota},{eta},{evictions}");
        }
    }
    lines
}

/// One line a row and figure; with the deviation where there are several draws.
fn figures(rows: &[Row]) -> String {
    let has_draws = rows.iter().any(|row| row.runs.len() > 1);
    let mut lines = if has_draws { "policy,figure,mean,sd\n" } else { "policy,figure,value\n" }.to_owned();
    for row in rows {
        let name = &row.name;
        if let Some(rate) = row.rate {
            let _ = writeln!(lines, "{name},guarantee_rate,{rate}{}", if has_draws { ",0" } else { "" });
        }
        for (figure, spread) in spreads(row) {
            let sd = if has_draws { format!(",{}", spread.sd) } else { String::new() };
            let _ = writeln!(lines, "{name},{figure},{}{sd}", spread.mean);
        }
    }
    lines
}

/// The price of each policy at each guarantee rate: one line a row, two columns a figure.
fn prices(rows: &[Row]) -> String {
    let shown: Vec<_> = FIGURES.iter().filter(|figure| figure.is_price).collect();
    let mut lines = "policy,guarantee_rate,draws".to_owned();
    for figure in &shown {
        let _ = write!(lines, ",{},{}_sd", figure.key, figure.key);
    }
    lines.push('\n');
    for row in rows {
        let rate = row.rate.map_or_else(String::new, |rate| rate.to_string());
        let _ = write!(lines, "{},{rate},{}", row.policy, row.runs.len());
        for figure in &shown {
            let cells = row.spread(figure).map(|spread| format!("{},{}", spread.mean, spread.sd));
            let _ = write!(lines, ",{}", cells.as_deref().unwrap_or(","));
        }
        lines.push('\n');
    }
    lines
}

/// Tells the numbers of a summary by their paths: a figure within figures has their names before its own, one of an array
/// the size or the hours that it is of.
pub fn flat(name: &str, value: &Value, tell: &mut dyn FnMut(&str, &Value)) {
    let within = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    match value {
        Value::Object(figures) => {
            for (figure, value) in figures {
                flat(&within(figure), value, tell);
            }
        }
        Value::Array(all) => {
            for one in all {
                let hours = || Some(format!("{}h", one.get("hours")?));
                let size = one.get("gpus").and_then(Value::as_str).map(str::to_owned);
                flat(&within(&size.or_else(hours).unwrap_or_default()), one, tell);
            }
        }
        Value::Number(_) => tell(name, value),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_zero_has_no_minus() {
        let cells = [Value::from(-0.0), Value::from(-0.5), Value::from(0), Value::from(3.0)].map(|value| cell(&value));
        assert_eq!(cells, ["0.0", "-0.5", "0", "3.0"]);
    }
}
