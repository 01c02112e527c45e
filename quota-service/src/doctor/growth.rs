//! Check of the days until the disk of the database is full.

use super::Check;
use crate::retention::growth_bytes_a_day;
use rustix::fs::statvfs;
use std::path::Path;
use store::{Size, Store, StoreError};

const MIB: u64 = 1_024 * 1_024;
/// Days until the disk is full that are warned of, and that fail.
const WARN_DAYS: u64 = 30;
const FAIL_DAYS: u64 = 3;

/// The check. `database` is its URL: of a file, the free space of its disk is known.
pub async fn check(store: &dyn Store, database: &str) -> Result<Check, StoreError> {
    let (sizes, bytes) = (store.sizes().await?, store.size_bytes().await?);
    let file = store::sqlite_file(database).ok().flatten();
    Ok(of(&sizes, bytes, file.and_then(free_beside)))
}

fn free_beside(file: &Path) -> Option<u64> {
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or_else(|| Path::new("."));
    statvfs(folder).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn of(sizes: &[Size], bytes: u64, free: Option<u64>) -> Check {
    let name = "growth of database";
    let held = format!("{} MiB", bytes / MIB);
    let Some(growth) = growth_bytes_a_day(sizes) else {
        return Check::ok(name, format!("{held}; growth is known once a service has run for six hours"));
    };
    let grows = format!("{held}, {:+.1} MiB a day", growth as f64 / MIB as f64);
    let fix = "keep less: retain_history_days, retain_audit_days, retain_reports_days, retain_usage_days, a larger report_refresh_s; or a larger disk";
    match (u64::try_from(growth), free) {
        (Err(_) | Ok(0), _) => Check::ok(name, format!("{grows}: no growth")),
        (Ok(_), None) => {
            Check::ok(name, format!("{grows}; the free space is known only to the server: run df on its machine"))
        }
        (Ok(growth), Some(free)) => {
            let days = free / growth;
            let found = format!("{grows}: {days} days until the {} MiB that are free are full", free / MIB);
            match days {
                0..FAIL_DAYS => Check::fail(name, found, fix),
                FAIL_DAYS..WARN_DAYS => Check::warn(name, found, fix),
                _ => Check::ok(name, found),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use vocab::UnixSeconds;

    #[test]
    fn the_days_until_the_disk_is_full_follow_from_growth_and_free_space() {
        let size = |hours: i64, mib: u64| Size { at: UnixSeconds::new(hours * 3_600), bytes: mib * MIB };
        let day = [size(0, 1_000), size(24, 1_100)];
        let known = of(&day, 1_100 * MIB, Some(2_000 * MIB));
        assert_eq!(known.status, Status::Warn);
        assert!(known.found.contains("1100 MiB, +100.0 MiB a day: 20 days until the 2000 MiB"), "{}", known.found);
        assert_eq!(of(&day, MIB, Some(200 * MIB)).status, Status::Fail);
        assert_eq!(of(&day, MIB, Some(9_000 * MIB)).status, Status::Ok);
        assert!(of(&day, MIB, None).found.contains("known only to the server"));
        assert!(of(&day[..1], MIB, Some(MIB)).found.contains("once a service has run for six hours"));
        assert!(of(&[size(0, 9), size(24, 9)], MIB, Some(0)).found.contains("no growth"));
    }
}
