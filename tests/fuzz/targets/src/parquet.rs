//! Parquet files of usage.

use crate::tables::options;
use crate::{file_of, is_one_line};
use parquet_source::{Files, SourceError, Wanted};
use std::path::Path;
use vocab::UsageRow;

/// A file is refused with its fault on one line, or has the same rows whether bad ones may be skipped or not.
pub fn parquet(data: &[u8]) {
    let path = file_of("usage.parquet", data);
    match rows(&path, false) {
        Err(fault) => is_one_line(&fault.to_string()),
        Ok(strict) => {
            let lenient = rows(&path, true).expect("what is read strictly is read leniently");
            assert_eq!((strict.0, 0), (lenient.0, lenient.1), "a file without a bad row");
        }
    }
}

/// The rows of a file, and how many were skipped.
fn rows(path: &Path, skip_bad_rows: bool) -> Result<(Vec<UsageRow>, usize), SourceError> {
    let (options, mut rows, mut skipped) = (options(skip_bad_rows), Vec::new(), Vec::new());
    let take = &mut |row: &UsageRow, _| {
        rows.push(row.clone());
        Ok(())
    };
    let files = Files::open(path.to_str().expect("a temporary folder has a name in UTF-8"))?;
    files.each_row(Wanted { options: &options, cluster: None }, &mut skipped, take)?;
    Ok((rows, skipped.len()))
}
