//! The files of a comparison.

use crate::commands::SimulatorError;
use crate::page::{Told, page};
use crate::run::Outcome;
use command_line::OutputFile;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Writes compare.csv, course.csv and compare.html, each whole or not at all.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(folder: &Path, named: &[(String, Outcome)], told: &Told) -> Result<(), SimulatorError> {
    let fault = |fault| SimulatorError::Write { file: folder.to_owned(), fault };
    std::fs::create_dir_all(folder).map_err(fault)?;
    text(folder, "compare.csv", &figures(named))?;
    text(folder, "course.csv", &course(named))?;
    text(folder, "compare.html", &page(named, told))
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

fn course(named: &[(String, Outcome)]) -> String {
    let mut lines = "policy,at_s,hp_gpus,spot_gpus,hp_waiting,spot_waiting,quota_gpus,eta,evictions\n".to_owned();
    for (name, run) in named {
        for one in &run.course {
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

/// One line a policy and figure.
fn figures(named: &[(String, Outcome)]) -> String {
    let mut lines = "policy,figure,value\n".to_owned();
    for (name, run) in named {
        let Ok(serde_json::Value::Object(figures)) = serde_json::to_value(&run.summary) else { continue };
        for (figure, value) in &figures {
            flat(&mut lines, &format!("{name},{figure}"), value);
        }
    }
    lines
}

/// A figure within figures has their names before its own.
fn flat(lines: &mut String, name: &str, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(figures) => {
            for (figure, value) in figures {
                flat(lines, &format!("{name}.{figure}"), value);
            }
        }
        serde_json::Value::Array(sizes) => {
            let of_size = |size: &serde_json::Value| size["gpus"].as_str().unwrap_or_default().to_owned();
            for one in sizes {
                flat(lines, &format!("{name}.{}", of_size(one)), one);
            }
        }
        value => {
            let _ = writeln!(lines, "{name},{value}");
        }
    }
}
