//! A history out of a file, of standard input, or of `sacct` itself.

use crate::command::Programs;
use crate::error::RecordsError;
use crate::form::Form;
use crate::history::History;
use crate::nodes::Nodes;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use vocab::{HourStart, UnixSeconds};

/// Hours of one question to `sacct`: the accounting daemon holds each answer in memory.
const HOURS_AT_ONCE: i64 = 7 * 24;
/// Read at once from a file or a program.
const BUFFER_BYTES: usize = 1 << 16;
/// Begin of a file that gzip has compressed (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// As some editors write it before UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Reads a file; `-` is standard input.
///
/// # Errors
/// See [`RecordsError`].
pub fn history_of_file(file: &Path) -> Result<(History, Form), RecordsError> {
    let place = file.display().to_string();
    if place == "-" {
        return History::read("standard input", BufReader::with_capacity(BUFFER_BYTES, std::io::stdin().lock()));
    }
    History::read(&place, open(file)?)
}

/// Whether a file begins as a JSON document, and not as a table.
///
/// # Errors
/// The file cannot be read.
pub fn is_document(file: &Path) -> Result<bool, RecordsError> {
    let unreadable = |source| RecordsError::Io { place: file.display().to_string(), source };
    let first = open(file)?.bytes().find(|byte| !byte.as_ref().is_ok_and(u8::is_ascii_whitespace));
    Ok(first.transpose().map_err(unreadable)? == Some(b'{'))
}

/// Reads nodes of a file.
///
/// # Errors
/// See [`RecordsError`].
pub fn nodes_of_file(file: &Path) -> Result<(Nodes, Form), RecordsError> {
    Nodes::read(&file.display().to_string(), open(file)?)
}

fn open(file: &Path) -> Result<BufReader<File>, RecordsError> {
    let opened = File::open(file);
    let opened = opened.map_err(|source| RecordsError::Io { place: file.display().to_string(), source })?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, opened);
    let begins = reader.fill_buf().map_err(|source| RecordsError::Io { place: file.display().to_string(), source })?;
    if begins.starts_with(&GZIP) {
        return Err(RecordsError::Compressed { place: file.display().to_string() });
    }
    if begins.starts_with(&BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    Ok(reader)
}

/// Asks `sacct` for the hours from `from` and before `until`, a week at a time. `progress` gets the hours that are read.
///
/// # Errors
/// See [`RecordsError`].
pub fn history_of_sacct(
    programs: &Programs,
    from: HourStart,
    until: HourStart,
    progress: &dyn Fn(u64),
) -> Result<(History, Form), RecordsError> {
    let (form, json) = programs.form()?;
    let (mut history, mut at) = (History::default(), from);
    while at < until {
        let end = until.min(at.plus_hours(HOURS_AT_ONCE));
        let (start, stop) = (asked(at.instant()), asked(end.instant()));
        let arguments =
            ["--allusers", "--duplicates", "--allocations", "--starttime", &start, "--endtime", &stop, json];
        let read = programs.read("sacct", &arguments, |place, output| {
            History::read(place, BufReader::with_capacity(BUFFER_BYTES, output))
        })?;
        history.join(read.0);
        progress(end.hours_since(at).unsigned_abs());
        at = end;
    }
    Ok((history, form))
}

/// Asks for the nodes of the cluster.
///
/// # Errors
/// See [`RecordsError`].
pub fn nodes_of_slurm(programs: &Programs) -> Result<(Nodes, Form), RecordsError> {
    let (form, json) = programs.form()?;
    let (program, arguments): (&str, &[&str]) = match form {
        // There is no JSON of scontrol yet, and sinfo prints whole nodes.
        Form::V38 => ("sinfo", &["--all", json]),
        _ => ("scontrol", &["show", "nodes", json]),
    };
    programs
        .read(program, arguments, |place, output| Nodes::read(place, BufReader::with_capacity(BUFFER_BYTES, output)))
}

/// A time as `sacct` takes it: without an offset, in the zone of the program, which runs in UTC.
fn asked(time: UnixSeconds) -> String {
    time.to_string().trim_end_matches('Z').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_is_named_as_such_and_a_byte_order_mark_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let compressed = file("jobs.json.gz", &[GZIP.as_slice(), &[8, 0]].concat());
        assert!(is_document(&compressed).unwrap_err().to_string().ends_with("decompress the file first (gunzip)"));
        assert!(matches!(history_of_file(&compressed), Err(RecordsError::Compressed { .. })));
        let marked = file("jobs.json", &[BYTE_ORDER_MARK.as_slice(), b"\n {"].concat());
        assert!(is_document(&marked).unwrap());
    }
}
