//! Files that are there whole or not at all, and stdout in place of one.

use std::fs::{File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::Builder;

/// A file in the making: it takes the place of what was there only when it is finished, so that a command that is refused
/// half-way destroys nothing. Until then it has no name, so that one that is interrupted leaves nothing behind.
pub struct OutputFile {
    path: PathBuf,
    to: Target,
}

enum Target {
    Nameless {
        file: File,
        folder: PathBuf,
    },
    /// A pipe or a device cannot be replaced.
    Straight(File),
    Stdout {
        /// A reader that has gone, such as `head`, has what it wanted.
        gone: bool,
    },
}

/// `-`, which stands for stdout where a file is asked for.
#[must_use]
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl OutputFile {
    /// # Errors
    /// The folder takes no files, or `path` is one.
    pub fn create(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            return Ok(Self { path: path.to_owned(), to: Target::Stdout { gone: false } });
        }
        let known = path.metadata();
        if known.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let to = if known.is_ok_and(|known| !known.is_file()) {
            Target::Straight(File::create(path)?)
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let file = tempfile::tempfile_in(folder).map_err(|fault| match fault.kind() {
                kind @ io::ErrorKind::NotFound => {
                    io::Error::new(kind, "its folder is not there: make it, or name another place")
                }
                _ => fault,
            })?;
            Target::Nameless { file, folder: folder.to_owned() }
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
            Target::Straight(_) | Target::Stdout { .. } => Ok(()),
            Target::Nameless { file, folder } => put(file, &folder, &self.path),
        }
    }
}

/// A copy of `file` in the place of `path`, through a name of its own: a reader sees the old file or the new one.
fn put(mut file: File, folder: &Path, path: &Path) -> io::Result<()> {
    // As any new file: the umask takes its share.
    let permissions = Permissions::from_mode(0o666);
    let mut named = Builder::new().prefix(".headroom-").permissions(permissions).tempfile_in(folder)?;
    file.rewind()?;
    io::copy(&mut file, named.as_file_mut())?;
    named.persist(path).map(drop).map_err(|fault| fault.error)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::Nameless { file, .. } | Target::Straight(file) => file.write(bytes),
            Target::Stdout { gone: true } => Ok(bytes.len()),
            Target::Stdout { gone } => unless_gone(io::stdout().write(bytes), bytes.len(), gone),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Nameless { file, .. } | Target::Straight(file) => file.flush(),
            Target::Stdout { gone: true } => Ok(()),
            Target::Stdout { gone } => unless_gone(io::stdout().flush(), (), gone),
        }
    }
}

/// The outcome; a reader that has gone counts as success.
fn unless_gone<T>(outcome: io::Result<T>, done: T, gone: &mut bool) -> io::Result<T> {
    match outcome {
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => {
            *gone = true;
            Ok(done)
        }
        outcome => outcome,
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
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "it has no name yet");
        drop(given_up);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        let mut whole = OutputFile::create(&path).unwrap();
        whole.write_all(b"whole").unwrap();
        whole.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(OutputFile::create(folder.path()).is_err(), "a folder");
        let fault = OutputFile::create(&folder.path().join("missing/out.csv")).err().unwrap();
        assert!(fault.to_string().contains("its folder is not there"), "{fault}");
    }

    #[test]
    fn a_device_is_written_straight() {
        let mut null = OutputFile::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"gone").unwrap();
        null.finish().unwrap();
    }
}
