//! Faults of the file of an open SQLite database: its disk fills and is freed, or it is deleted, emptied or replaced.
#![allow(clippy::unwrap_used, reason = "in a test, what should have worked and did not is a failure of the test")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use store::{Cluster, Store, StoreError};
use tempfile::TempDir;
use vocab::{ClusterName, HourStart, MilliGpus, Organization, PoolId, SeriesId, UsageRow};

/// Times that the disk fills and is freed.
const ROUNDS: u32 = 10;

/// A tmpfs of a few MiB, unmounted when it goes out of scope.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None`, with a line that says so, where this user may not mount one.
    fn mount(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        if mounted.is_ok_and(|ran| ran.status.success()) {
            return Some(Self(folder));
        }
        eprintln!("not run on a full file system: this user may not mount one");
        None
    }

    /// Fills the last byte.
    fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.0.path().join("filler")).unwrap();
        for size in [1 << 20, 4_096, 1] {
            let zeros = vec![0; size];
            while filler.write_all(&zeros).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.path().display());
    }
}

fn earth() -> ClusterName {
    ClusterName::parse("earth").unwrap()
}

async fn open(folder: &Path) -> Arc<dyn Store> {
    let store = store::connect(&format!("sqlite://{}", folder.join("headroom.db").display())).await.unwrap();
    let cluster = Cluster { name: earth(), time_zone: "UTC".to_owned(), calendar: "weekdays".to_owned() };
    store.put_cluster(&cluster).await.unwrap();
    store
}

/// The first `hours` hours of a series.
fn rows(series: u32, hours: i64) -> Vec<UsageRow> {
    let organization = Organization::parse(&format!("x{series}")).unwrap();
    let series = SeriesId { pool: PoolId::parse("earth:A100").unwrap(), organization };
    let hour = |index: i64| HourStart::from_unix_s(index * 3_600).unwrap();
    let row =
        |index| UsageRow { series: series.clone(), hour: hour(index), demand: MilliGpus::from_gpus(4), at_end: None };
    (0..hours).map(row).collect()
}

async fn stored(store: &Arc<dyn Store>) -> u64 {
    store.describe_usage(&earth()).await.unwrap().iter().map(|summary| summary.rows).sum()
}

async fn fills_and_is_freed(mib: u32, hours: i64) {
    let Some(disk) = SmallDisk::mount(mib) else { return };
    let store = open(disk.0.path()).await;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        disk.fill();
        // Free space in existing pages may hold some rows.
        let (mut refused, mut tries) = (0, 0);
        while refused < 3 {
            match store.append(&rows(round * 1_000 + tries, hours), &[]).await {
                Ok(report) => acknowledged += report.usage.inserted,
                Err(fault) => {
                    assert!(matches!(fault, StoreError::Full { .. }), "round {round}: {fault}");
                    refused += 1;
                }
            }
            tries += 1;
            assert!(tries < 900, "a full disk accepts every write");
        }
        assert_eq!(stored(&store).await, acknowledged, "round {round}: nothing half-written");
        disk.free();
        let report = store.append(&rows(round * 1_000 + 999, 1), &[]).await;
        acknowledged += report.unwrap_or_else(|fault| panic!("round {round}: {fault}")).usage.inserted;
        store.prove_write().await.unwrap_or_else(|fault| panic!("round {round}: {fault}"));
    }
    assert_eq!(stored(&store).await, acknowledged);
    store.close().await;
}

#[tokio::test]
async fn a_full_disk_fails_commits_and_every_write_with_room_goes_through() {
    fills_and_is_freed(4, 1).await;
}

#[tokio::test]
async fn a_full_disk_fails_statements_and_every_write_with_room_goes_through() {
    fills_and_is_freed(8, 200_000).await;
}

async fn refuses_writes_once(expected: &str, lose: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.prove_write().await.unwrap();
    let file = folder.path().join("headroom.db");
    lose(&file);
    let size = || fs::metadata(&file).map(|known| known.len()).ok();
    let before = size();
    let refused = [
        store.prove_write().await.unwrap_err(),
        store.append(&rows(0, 1), &[]).await.unwrap_err(),
        store.beat(&[]).await.unwrap_err(),
        store.outdate_leases().await.unwrap_err(),
    ];
    for fault in refused {
        assert!(matches!(&fault, StoreError::Lost { reason, .. } if reason.contains(expected)), "{fault}");
        assert!(!fault.is_retryable(), "{fault}");
    }
    assert_eq!(size(), before, "no new file took its place");
}

#[tokio::test]
async fn a_database_file_that_was_deleted_takes_no_writes() {
    refuses_writes_once("it was deleted or moved", |file| fs::remove_file(file).unwrap()).await;
}

#[tokio::test]
async fn a_database_file_that_was_emptied_takes_no_writes() {
    refuses_writes_once("it was emptied", |file| fs::write(file, "").unwrap()).await;
}

#[tokio::test]
async fn a_database_file_that_was_replaced_takes_no_writes() {
    refuses_writes_once("another file took its place", |file| {
        let copy = file.with_extension("copy");
        fs::copy(file, &copy).unwrap();
        fs::rename(copy, file).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_database_file_whose_first_bytes_were_overwritten_proves_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let file = folder.path().join("headroom.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[..6].copy_from_slice(b"nothin");
    File::options().write(true).open(&file).unwrap().write_all(&bytes).unwrap();
    for fault in [store.prove_write().await.unwrap_err(), store.proved_writes().await.unwrap_err()] {
        assert!(matches!(&fault, StoreError::Lost { reason, .. } if reason.contains("its header")), "{fault}");
    }
}

/// Locks that this process holds on a file.
fn locks_held(file: &Path) -> Vec<String> {
    let inode = format!(":{}", file.metadata().unwrap().ino());
    let own = std::process::id().to_string();
    let is_held = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&own.as_str()) && words.iter().any(|word| word.ends_with(&inode))
    };
    let all = fs::read_to_string("/proc/locks").unwrap();
    all.lines().filter(is_held).map(|line| line.split_once(':').unwrap().1.to_owned()).collect()
}

#[tokio::test]
async fn a_proof_of_writes_keeps_the_locks_on_the_database_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let file = folder.path().join("headroom.db");
    let before = locks_held(&file);
    assert!(
        !before.is_empty(),
        "without a lock another program that closes the database takes its write-ahead log away"
    );
    for _ in 0..3 {
        store.prove_write().await.unwrap();
        store.proved_writes().await.unwrap();
        assert_eq!(locks_held(&file), before);
    }
    store.close().await;
}

/// The place of a file that SQLite keeps beside a database.
fn beside(file: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", file.display()))
}

/// A database without what lies beside it, as it is found after a crash.
async fn after_a_crash(file: &Path) -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("headroom.db");
    fs::copy(file, &copy).unwrap();
    (store::connect_existing(&format!("sqlite://{}", copy.display())).await.unwrap(), folder)
}

async fn saves_a_log_after(lose: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.prove_write().await.unwrap();
    store.append(&rows(0, 24), &[]).await.unwrap();
    let file = folder.path().join("headroom.db");
    lose(&beside(&file, "-wal"));
    store.append(&rows(1, 24), &[]).await.unwrap();
    let refused = [store.prove_write().await.unwrap_err(), store.append(&rows(2, 1), &[]).await.unwrap_err()];
    for fault in refused {
        let StoreError::Lost { path, reason, .. } = &fault else { panic!("{fault}") };
        assert!(path.ends_with("headroom.db-wal") && reason.contains("it was deleted or moved"), "{fault}");
        assert!(reason.contains("is in the database now"), "{fault}");
    }
    let (copy, _folder) = after_a_crash(&file).await;
    assert_eq!(stored(&copy).await, 48, "all that was acknowledged");
    copy.close().await;
}

#[tokio::test]
async fn a_log_that_was_deleted_or_moved_is_noticed_and_what_it_held_is_saved() {
    saves_a_log_after(|log| fs::remove_file(log).unwrap()).await;
    saves_a_log_after(|log| fs::rename(log, log.with_extension("old")).unwrap()).await;
    let made_again = |log: &Path| {
        fs::remove_file(log).unwrap();
        fs::write(log, "").unwrap();
    };
    saves_a_log_after(made_again).await;
}

#[tokio::test]
async fn a_log_that_other_programs_cut_or_leave_alone_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (open(folder.path()).await, open(folder.path()).await);
    for series in 0..3 {
        store.append(&rows(series, 24), &[]).await.unwrap();
        other.prove_write().await.unwrap();
        store.prove_write().await.unwrap();
    }
    other.close().await;
    store.prove_write().await.unwrap();
    assert_eq!(stored(&store).await, 72);
    store.close().await;
    let store = open(folder.path()).await;
    store.prove_write().await.unwrap();
    store.close().await;
}

/// Bytes of a file and of the log and journal beside it.
fn contents(file: &Path) -> [Option<Vec<u8>>; 3] {
    ["", "-wal", "-journal"].map(|suffix| fs::read(beside(file, suffix)).ok())
}

async fn refuses_a_leftover(prepare: impl FnOnce(&Path), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    prepare(&file);
    let before = contents(&file);
    let url = format!("sqlite://{}", file.display());
    let faults = [
        store::connect(&url).await.err(),
        store::connect_existing(&url).await.err(),
        store::check_existing(&url).await.err(),
        store::inspect(&url).await.err(),
    ];
    for fault in faults.map(Option::unwrap) {
        assert!(matches!(fault, StoreError::Leftover { .. }) && fault.to_string().contains(expected), "{fault}");
        assert!(fault.is_no_database() && !fault.may_be_made() && !fault.is_retryable(), "{fault}");
    }
    assert!(contents(&file) == before, "it stays as it is");
}

#[tokio::test]
async fn no_database_is_made_beside_the_log_of_a_file_that_is_not_there() {
    let log = |file: &Path| fs::write(beside(file, "-wal"), "frames").unwrap();
    refuses_a_leftover(log, "is missing, and").await;
    let emptied = |file: &Path| {
        log(file);
        fs::write(file, "").unwrap();
    };
    refuses_a_leftover(emptied, "is empty, and").await;
    let through_a_link = |file: &Path| {
        std::os::unix::fs::symlink("data.db", file).unwrap();
        log(&file.with_file_name("data.db"));
    };
    refuses_a_leftover(through_a_link, "data.db-wal lies there").await;
    refuses_a_leftover(|file| fs::write(beside(file, "-journal"), "pages").unwrap(), "-journal lies there").await;
}

#[tokio::test]
async fn a_database_is_copied_to_no_place_beside_the_log_of_another() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.close().await;
    let target = folder.path().join("restored.db");
    fs::write(beside(&target, "-wal"), "frames").unwrap();
    let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
    let fault = store::copy_sqlite(&url, target.to_str().unwrap()).await.unwrap_err();
    assert!(matches!(fault, StoreError::Leftover { .. }), "{fault}");
    assert!(!target.exists() && fs::read(beside(&target, "-wal")).unwrap() == b"frames");
}

#[tokio::test]
async fn a_file_that_was_moved_away_and_back_has_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.append(&rows(0, 24), &[]).await.unwrap();
    let (file, away) = (folder.path().join("headroom.db"), folder.path().join("away.db"));
    fs::rename(&file, &away).unwrap();
    assert!(matches!(store.prove_write().await, Err(StoreError::Lost { .. })));
    store.close().await;
    let url = format!("sqlite://{}", file.display());
    assert!(matches!(store::connect(&url).await.err(), Some(StoreError::Leftover { .. })), "as a restart does");
    fs::rename(&away, &file).unwrap();
    let store = store::connect(&url).await.unwrap();
    assert_eq!(stored(&store).await, 24);
    store.close().await;
}

#[tokio::test]
async fn a_database_is_read_while_its_last_connection_takes_the_log_away() {
    for _ in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        // Its connections close in threads of their own.
        drop(store);
        let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
        store::check_existing(&url).await.unwrap();
    }
}
