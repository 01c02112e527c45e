//! The heartbeat: a file that changes while the published limits are the decided ones. The watchdog reads it.

use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use vocab::UnixSeconds;

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Counted by its writer.
    pub beat: u64,
    /// Name of the writer.
    pub writer: String,
    /// Time by the writer's clock.
    pub at: String,
}

/// The watchdog's note of it, kept between its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// The beat; none where there was no file.
    pub beat: Option<Beat>,
    /// Time at which it was seen first, in seconds since 1970, by the watchdog's clock.
    pub since_unix_s: i64,
}

/// Writes a file as a whole: a reader sees the old content or the new.
///
/// # Errors
/// The folder cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".headroom-").tempfile_in(folder)?;
    file.write_all(content)?;
    // Other users read it: the controller's hook, a watchdog.
    std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(path).map_err(|fault| fault.error)?;
    Ok(())
}

/// Reads the heartbeat; none where there is no file.
///
/// # Errors
/// The file cannot be read, or is no heartbeat.
pub fn read(path: &Path) -> Result<Option<Beat>, String> {
    match std::fs::read(path) {
        Ok(bytes) => {
            let beat = serde_json::from_slice(&bytes);
            beat.map(Some).map_err(|fault| format!("heartbeat_file: {}: {fault}", path.display()))
        }
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(format!("heartbeat_file: {}: {fault}", path.display())),
    }
}

/// Writes beats.
#[derive(Debug)]
pub struct Heartbeat {
    path: PathBuf,
    writer: String,
    beat: u64,
}

impl Heartbeat {
    /// Into a file, under a name.
    #[must_use]
    pub fn new(path: &Path, writer: String) -> Self {
        Self { path: path.to_owned(), writer, beat: 0 }
    }

    /// Whether a beat could be written.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn check(&self) -> Result<(), String> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".check");
        let file = PathBuf::from(name);
        let written = replace(&file, b"").and_then(|()| std::fs::remove_file(&file));
        written.map_err(|fault| format!("heartbeat_file: {}: {fault}", self.path.display()))
    }

    /// One beat.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn beat(&mut self, now: UnixSeconds) -> Result<(), String> {
        self.beat += 1;
        let beat = Beat { beat: self.beat, writer: self.writer.clone(), at: now.to_string() };
        let text = serde_json::to_vec(&beat).map_err(|fault| fault.to_string())?;
        replace(&self.path, &text).map_err(|fault| format!("heartbeat_file: {}: {fault}", self.path.display()))
    }
}

/// The note after a look at `now`: the same beat keeps its time.
#[must_use]
pub fn noted(before: Option<&Noted>, beat: Option<Beat>, now: UnixSeconds) -> Noted {
    match before {
        // A clock that was set back must not make it young for ever.
        Some(before) if before.beat == beat => Noted { beat, since_unix_s: before.since_unix_s.min(now.get()) },
        _ => Noted { beat, since_unix_s: now.get() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_written_whole_and_ages_by_the_watchdogs_own_clock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heartbeat");
        assert_eq!(read(&path), Ok(None));
        let mut heart = Heartbeat::new(&path, "one".to_owned());
        heart.beat(UnixSeconds::new(9_000_000)).unwrap();
        let first = read(&path).unwrap();
        let seen = noted(None, first.clone(), UnixSeconds::new(100));
        let again = noted(Some(&seen), first, UnixSeconds::new(160));
        assert_eq!(again.since_unix_s, 100, "the writer's clock is not asked");
        heart.beat(UnixSeconds::new(9_000_000)).unwrap();
        assert_eq!(noted(Some(&again), read(&path).unwrap(), UnixSeconds::new(170)).since_unix_s, 170);
        std::fs::write(&path, "torn").unwrap();
        assert!(read(&path).unwrap_err().starts_with("heartbeat_file: "));
    }
}
