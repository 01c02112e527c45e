//! Faults of the file of an open SQLite database: its disk fills and is freed, or it is deleted, emptied or replaced.
#![allow(clippy::unwrap_used, reason = "in a test, what should have worked and did not is a failure of the test")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
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
    let row = |index| UsageRow { series: series.clone(), hour: hour(index), demand: MilliGpus::from_gpus(4) };
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
