//! The files of a report.

use crate::error::ExportError;
use crate::metrics::{COLUMNS, Metric};
use command_line::OutputFile;
use std::io::{self, Write};
use std::path::Path;

/// Makes the folder with those above it.
pub fn folder(out: &Path) -> Result<(), ExportError> {
    // Devices and pipes are no folders either.
    if out.exists() && !out.is_dir() {
        return Err(ExportError::NotAFolder { out: out.to_owned() });
    }
    std::fs::create_dir_all(out).map_err(|source| ExportError::Write { file: out.to_owned(), source })
}

/// Copies files from one folder to another.
pub fn copy(from: &Path, to: &Path, names: &[&str]) -> Result<(), ExportError> {
    for name in names {
        let read = std::fs::File::open(from.join(name));
        let mut read = read.map_err(|source| ExportError::Read { file: from.join(name), source })?;
        written(&to.join(name), |output| io::copy(&mut read, output).map(drop))?;
    }
    Ok(())
}

/// Writes a file of text.
pub fn text(file: &Path, text: &str) -> Result<(), ExportError> {
    written(file, |output| output.write_all(text.as_bytes()))
}

/// A file that takes its place when it is whole.
fn written(file: &Path, fill: impl FnOnce(&mut OutputFile) -> io::Result<()>) -> Result<(), ExportError> {
    let whole = OutputFile::create(file).and_then(|mut output| {
        fill(&mut output)?;
        output.finish()
    });
    whole.map_err(|source| ExportError::Write { file: file.to_owned(), source })
}

/// Writes metrics.csv.
pub fn metrics(all: &[Metric], file: &Path) -> Result<(), ExportError> {
    let failed = |source| ExportError::Write { file: file.to_owned(), source };
    let mut writer = csv::Writer::from_writer(OutputFile::create(file).map_err(failed)?);
    let mut row = |fields: &[&str]| writer.write_record(fields).map_err(|fault| failed(fault.into()));
    row(&COLUMNS)?;
    for one in all {
        let Metric { scope, name, value, rows } = one;
        let (value, rows) = (value.to_string(), rows.to_string());
        row(&[&scope.model, &scope.cluster, &scope.gpu_model, &scope.organization, &scope.step, name, &value, &rows])?;
    }
    let whole = writer.into_inner().map_err(csv::IntoInnerError::into_error);
    whole.and_then(OutputFile::finish).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_device_in_place_of_the_folder_is_named_and_left_as_it_is() {
        let device = folder(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(device, "--out /dev/null: a file has this name; name a folder");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "rows").unwrap();
        let fault = folder(file.path()).unwrap_err().to_string();
        assert_eq!(fault, format!("--out {}: a file has this name; name a folder", file.path().display()));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "rows");
    }
}
