//! Folders of this machine: a list of their files leaves out a link that leads to nothing, and half of a history would be read as all of it.

use crate::error::SourceError;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks that every folder can be listed, and that all in them is there; a path that is no folder is not looked into.
/// `above` are the folders that lead here, by where their links lead.
///
/// # Errors
/// The first that is not, by name.
pub(crate) fn check(path: &Path, above: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let missing = |file: &Path, fault: &dyn Error| SourceError::Missing { file: file.to_owned(), why: unread(fault) };
    if !path.is_dir() {
        return Ok(());
    }
    let listed = fs::read_dir(path).map_err(|fault| missing(path, &fault))?;
    let mut entries = Vec::new();
    for entry in listed {
        entries.push(entry.map_err(|fault| missing(path, &fault))?.path());
    }
    entries.sort();
    for entry in entries {
        match fs::metadata(&entry) {
            Ok(known) if known.is_dir() => {
                let whole = entry.canonicalize().map_err(|fault| missing(&entry, &fault))?;
                if above.contains(&whole) {
                    let why = "a link back to a folder that it lies in; remove it".to_owned();
                    return Err(SourceError::Missing { file: entry, why });
                }
                above.push(whole);
                check(&entry, above)?;
                above.pop();
            }
            Ok(_) => {}
            // A link that leads to nothing may have been to a folder of files, of any name.
            Err(fault) => return Err(missing(&entry, &fault)),
        }
    }
    Ok(())
}

/// Why a file or folder of this machine is not read.
pub(crate) fn unread(fault: &dyn Error) -> String {
    format!("{fault}; name a file or folder that can be read")
}
