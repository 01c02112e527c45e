//! Files that are there whole or not at all.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file in the making: it takes the place of what was there only when it is finished, so that a command that is refused
/// half-way destroys nothing.
pub struct OutputFile {
    path: PathBuf,
    to: Target,
}

enum Target {
    Beside(NamedTempFile),
    /// A pipe or a device cannot be replaced.
    Straight(File),
}

impl OutputFile {
    /// # Errors
    /// The folder takes no files, or `path` is one.
    pub fn create(path: &Path) -> io::Result<Self> {
        let known = path.metadata();
        if known.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let to = if known.is_ok_and(|known| !known.is_file()) {
            Target::Straight(File::create(path)?)
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // As any new file: the umask takes its share.
            let permissions = Permissions::from_mode(0o666);
            Target::Beside(Builder::new().prefix(".headroom-").permissions(permissions).tempfile_in(folder)?)
        };
        Ok(Self { path: path.to_owned(), to })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.to {
            Target::Straight(_) => Ok(()),
            Target::Beside(file) => file.persist(&self.path).map(drop).map_err(|fault| fault.error),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::Beside(file) => file.write(bytes),
            Target::Straight(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Beside(file) => file.flush(),
            Target::Straight(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_the_new_file_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        std::fs::write(&path, "precious").unwrap();
        let mut given_up = OutputFile::create(&path).unwrap();
        given_up.write_all(b"half").unwrap();
        drop(given_up);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        let mut whole = OutputFile::create(&path).unwrap();
        whole.write_all(b"whole").unwrap();
        whole.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(OutputFile::create(folder.path()).is_err(), "a folder");
    }

    #[test]
    fn a_device_is_written_straight() {
        let mut null = OutputFile::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"gone").unwrap();
        null.finish().unwrap();
    }
}
