//! A file that is not whole yet: it has a name of its own, beside the name that it gets once it is whole.

use command_line::{Exit, Failure};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Endings of the file, and of those that SQLite and the store keep beside it.
const BESIDE: [&str; 5] = ["", "-journal", "-wal", "-shm", "-opened"];
/// Names to try. Programs in containers often have the same process id, and killed ones leave their files.
const NAMES: u32 = 1_000;

/// A new file that no other program writes. It is removed when it goes out of scope, with those beside it.
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// Makes an empty file named `FILE.unfinished-PROCESS`.
    ///
    /// # Errors
    /// The folder takes no file.
    pub fn beside(file: &Path) -> Result<Self, Failure> {
        let failed = |path: &Path, fault: std::io::Error| {
            Err(Failure::new(Exit::Failure, format!("{}: {fault}", path.display())))
        };
        for number in 1..=NAMES {
            let again = if number == 1 { String::new() } else { format!("-{number}") };
            let path = with_suffix(file, &format!(".unfinished-{}{again}", std::process::id()));
            // SQLite would take a journal that lies there for one of this file.
            if BESIDE.iter().any(|suffix| with_suffix(&path, suffix).symlink_metadata().is_ok()) {
                continue;
            }
            match File::options().write(true).create_new(true).mode(0o644).open(&path) {
                Ok(_) => return Ok(Self { path }),
                Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {}
                Err(fault) if fault.kind() == ErrorKind::NotFound => {
                    let why = std::io::Error::other("its folder is not there: make it, or name another place");
                    return failed(file, why);
                }
                Err(fault) => return failed(&path, fault),
            }
        }
        failed(
            file,
            std::io::Error::other(
                "too many unfinished files lie beside it: remove those that end in .unfinished-NUMBER",
            ),
        )
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file, which is whole, its name. A file of that name stays as it is.
    ///
    /// # Errors
    /// `Usage` where there is one already, with the text of `taken`; the file cannot be written to the disk or get its name.
    pub fn finish(self, file: &Path, taken: impl FnOnce() -> String) -> Result<(), Failure> {
        let named = File::open(&self.path).and_then(|written| written.sync_all()).and_then(|()| self.name(file));
        named.map_err(|fault| match fault.kind() {
            ErrorKind::AlreadyExists => Failure::new(Exit::Usage, taken()),
            _ => Failure::new(Exit::Failure, format!("{}: {fault}", file.display())),
        })
    }

    /// A link replaces no file, as a rename does.
    fn name(&self, file: &Path) -> std::io::Result<()> {
        match fs::hard_link(&self.path, file) {
            Err(fault) if fault.kind() != ErrorKind::AlreadyExists => {
                // Some file systems have no links: an empty file holds the name until it is replaced.
                let _ = File::options().write(true).create_new(true).open(file)?;
                fs::rename(&self.path, file).inspect_err(|_| {
                    let _ = fs::remove_file(file);
                })
            }
            linked => linked,
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for suffix in BESIDE {
            // Most are not there.
            let _ = fs::remove_file(with_suffix(&self.path, suffix));
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
