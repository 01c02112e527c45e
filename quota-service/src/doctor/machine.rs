//! The clock and the disks of this machine.

use super::Check;
use crate::config::Config;
use rustix::fs::{Access, access, statvfs};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use vocab::UnixSeconds;

/// 2026-01-01 and 2100-01-01: before the first, this program was not written yet.
const SANE_UNIX_S: std::ops::Range<u64> = 1_767_225_600..4_102_444_800;
const MIB: u64 = 1_024 * 1_024;
/// A day of a busy pool's journal, or one ingest, takes more.
const FREE_FAIL_BYTES: u64 = 100 * MIB;
/// Room to notice that it becomes less.
const FREE_WARN_BYTES: u64 = 1_024 * MIB;

pub fn clock(wall: SystemTime) -> Check {
    let unix_s = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let shown = UnixSeconds::new(i64::try_from(unix_s).unwrap_or(i64::MAX));
    if SANE_UNIX_S.contains(&unix_s) {
        return Check::ok("clock", shown);
    }
    Check::fail("clock", format!("the clock shows {shown}, which is impossible"), "timedatectl set-ntp true")
}

/// The folders that the service writes into.
pub fn folders(config: &Config) -> Vec<Check> {
    let fallback = config.fallback_file.get();
    // That the URL is understood was checked with the settings.
    let database = store::sqlite_file(&config.database).ok().flatten();
    [("disk of database", database), ("disk of fallback_file", fallback)]
        .into_iter()
        .filter_map(|(name, file)| file.map(|file| folder(name, file)))
        .collect()
}

fn folder(name: &str, file: &Path) -> Check {
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let shown = folder.display();
    let free = match statvfs(folder) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(fault) => return Check::fail(name, format!("{shown}: {fault}"), format!("mkdir -p {shown}")),
    };
    let written = [(folder, Access::WRITE_OK | Access::EXEC_OK), (file, Access::WRITE_OK)];
    for (path, mode) in written.into_iter().filter(|(path, _)| path.exists()) {
        if let Err(fault) = access(path, mode) {
            let found = format!("no permission to write {}: {fault}", path.display());
            return Check::fail(name, found, format!("chown it to the user of the service: {}", path.display()));
        }
    }
    space(name, &shown.to_string(), free)
}

fn space(name: &str, folder: &str, free: u64) -> Check {
    let found = format!("{folder}: {} MiB are free", free / MIB);
    let fix = "free space there, or delete old rows: quota-service database retain";
    match free {
        0..FREE_FAIL_BYTES => Check::fail(name, found, fix),
        FREE_FAIL_BYTES..FREE_WARN_BYTES => Check::warn(name, found, fix),
        _ => Check::ok(name, found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_of_another_age_fails() {
        let at = |unix_s| clock(UNIX_EPOCH + Duration::from_secs(unix_s)).status;
        assert_eq!([0, 1_700_000_000, 5_000_000_000].map(at), [Status::Fail; 3]);
        assert_eq!(at(1_800_000_000), Status::Ok);
    }

    #[test]
    fn a_disk_is_warned_of_before_it_is_full_and_a_missing_folder_is_made() {
        let status = |free| space("disk", "/x", free).status;
        assert_eq!([0, FREE_FAIL_BYTES - 1].map(status), [Status::Fail; 2]);
        assert_eq!([FREE_FAIL_BYTES, FREE_WARN_BYTES - 1].map(status), [Status::Warn; 2]);
        assert_eq!(status(FREE_WARN_BYTES), Status::Ok);
        let missing = folder("disk", Path::new("/missing/folder/headroom.db"));
        assert_eq!(missing.fix.as_deref(), Some("mkdir -p /missing/folder"));
    }
}
