//! The files of a report.

use crate::error::ExportError;
use crate::metrics::{COLUMNS, Metric};
use std::path::Path;

/// Makes the folder with those above it.
pub fn folder(out: &Path) -> Result<(), ExportError> {
    std::fs::create_dir_all(out).map_err(|source| ExportError::Write { file: out.to_owned(), source })
}

/// Copies files from one folder to another.
pub fn copy(from: &Path, to: &Path, names: &[&str]) -> Result<(), ExportError> {
    for name in names {
        let file = to.join(name);
        std::fs::copy(from.join(name), &file).map_err(|source| ExportError::Write { file, source })?;
    }
    Ok(())
}

/// Writes a file of text.
pub fn text(file: &Path, text: &str) -> Result<(), ExportError> {
    std::fs::write(file, text).map_err(|source| ExportError::Write { file: file.to_owned(), source })
}

/// Writes metrics.csv.
pub fn metrics(all: &[Metric], file: &Path) -> Result<(), ExportError> {
    let failed = |source| ExportError::Write { file: file.to_owned(), source };
    let mut writer = csv::Writer::from_path(file).map_err(|fault| failed(fault.into()))?;
    let mut row = |fields: &[&str]| writer.write_record(fields).map_err(|fault| failed(fault.into()));
    row(&COLUMNS)?;
    for one in all {
        let Metric { scope, name, value, rows } = one;
        let (value, rows) = (value.to_string(), rows.to_string());
        row(&[&scope.model, &scope.cluster, &scope.gpu_model, &scope.organization, &scope.step, name, &value, &rows])?;
    }
    writer.flush().map_err(failed)
}
