//! Data on stdout, all else on stderr.

use crate::exit::Exit;
use crate::number::{Json, without_minus_zero};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Prints a value as JSON.
///
/// # Panics
/// When the value cannot be written as JSON: those that programs print can.
pub fn print_json(value: &impl Serialize) {
    say(json_text(value));
}

/// The text that [`print_json`] prints.
///
/// # Panics
/// As there.
pub fn json_text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Json::default()));
    written.expect("what programs print has string keys and finite numbers");
    String::from_utf8(bytes).expect("JSON is text")
}

/// Prints a line to stdout.
pub fn say(line: impl Display) {
    print_text(&format!("{line}\n"));
}

/// Prints a line to stderr. Without a reader the line is lost and the program goes on: a closed pipe does not change the exit code.
pub fn print_notice(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints text to stdout as it is. A reader that has gone, such as `head`, has what it wanted: the program ends quietly.
/// Where stdout cannot be written for another reason it says so and fails.
pub fn print_text(text: &str) {
    match try_print_text(text) {
        Ok(()) => {}
        Err(fault) if fault.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(fault) => {
            print_notice(format_args!("error: stdout: {fault}"));
            std::process::exit(Exit::Failure as i32);
        }
    }
}

/// As [`print_text`], for text that is lost where it is not read.
///
/// # Errors
/// Stdout takes no text, or its reader has gone.
pub fn try_print_text(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Whether nobody can read what goes to stdout: it is the null device, which also takes the place of a closed stdout when a program
/// starts.
#[must_use]
pub fn is_stdout_lost() -> bool {
    let device = |known: std::io::Result<Metadata>| {
        known.ok().filter(|known| known.file_type().is_char_device()).map(|known| known.rdev())
    };
    let own = std::io::stdout().as_fd().try_clone_to_owned().and_then(|own| File::from(own).metadata());
    let (own, null) = (device(own), device(std::fs::metadata("/dev/null")));
    own.is_some() && own == null
}

/// Whether to colour what goes to stderr: where that is a terminal, unless `NO_COLOR` is set to anything.
#[must_use]
pub fn colours() -> bool {
    may_colour(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

/// Whether to colour what goes to stdout.
#[must_use]
pub fn colours_on_stdout() -> bool {
    may_colour(std::io::stdout().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

fn may_colour(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// A table with aligned columns: the first to the left, numbers to the right. A zero has no minus.
#[must_use]
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let rows = rows.iter().map(|row| row.iter().map(|cell| without_minus_zero(cell)).collect());
    aligned(header, &rows.collect::<Vec<_>>())
}

fn aligned(header: &[&str], rows: &[Vec<&str>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).copied().chain([header[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let right = |column: usize| {
        let numeric = |cell: &str| cell.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        column > 0 && rows.iter().filter_map(|row| row.get(column)).all(|cell| cell.is_empty() || numeric(cell))
    };
    let aligned: Vec<bool> = (0..header.len()).map(right).collect();
    let line = |cells: &[&str]| {
        let cell = |(column, cell): (usize, &&str)| {
            let width = widths[column];
            if aligned[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        };
        let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let body = rows.iter().map(|row| line(row));
    std::iter::once(line(header)).chain(body).collect()
}

/// Progress on stderr, where that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// `steps` of something, named by `what`.
    #[must_use]
    pub fn new(what: &str, steps: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg} {eta}");
        let bar = ProgressBar::new(steps).with_prefix(what.to_owned());
        Self(style.map_or(bar.clone(), |style| bar.with_style(style)))
    }

    /// Shows the position and a message.
    pub fn step(&self, position: u64, message: String) {
        self.0.set_position(position);
        self.0.set_message(message);
    }

    /// Removes the bar.
    pub fn done(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_aligned_to_the_right() {
        let rows = vec![vec!["last-value".to_owned(), "4.5".to_owned()], vec!["x".to_owned(), "12.25".to_owned()]];
        assert_eq!(table(&["model", "mae"], &rows), "model         mae\nlast-value    4.5\nx           12.25\n");
    }

    #[test]
    fn zeros_have_no_minus_in_tables_and_in_json() {
        let nothing: [f64; 0] = [];
        let sum: f64 = nothing.iter().sum();
        let rows = vec![vec!["-0".to_owned(), format!("{sum:.1}")], vec!["x".to_owned(), "-2.5".to_owned()]];
        assert_eq!(table(&["of", "gpus"], &rows), "of  gpus\n0    0.0\nx   -2.5\n");
        let body = serde_json::json!({ "gpus": [sum, -2.5, 3], "none": {}, "all": [], "name": "-0.0" });
        assert_eq!(json_text(&body), serde_json::to_string_pretty(&body).unwrap().replace("    -0.0", "    0.0"));
        assert!(json_text(&body).contains("0.0,\n    -2.5,\n    3\n"), "{}", json_text(&body));
    }

    #[test]
    fn colours_are_for_terminals_whose_user_has_nothing_against_them() {
        assert!(may_colour(true, None) && may_colour(true, Some(OsStr::new(""))));
        assert!(!may_colour(true, Some(OsStr::new("1"))) && !may_colour(false, None));
    }
}
