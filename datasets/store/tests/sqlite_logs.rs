//! Faults of the write-ahead log of an SQLite database: its file is replaced beside it, or it is cut off.
#![allow(clippy::unwrap_used, reason = "in a test, what should have worked and did not is a failure of the test")]

use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use store::{Cluster, Store, StoreError};
use tempfile::TempDir;
use vocab::{ClusterName, HourStart, MilliGpus, Organization, PoolId, SeriesId, UsageRow};

fn earth() -> ClusterName {
    ClusterName::parse("earth").unwrap()
}

fn url(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

/// A database with the first `hours` hours of a series.
async fn filled(file: &Path, hours: i64) -> Arc<dyn Store> {
    let store = store::connect(&url(file)).await.unwrap();
    let cluster = Cluster { name: earth(), time_zone: "UTC".to_owned(), calendar: "weekdays".to_owned() };
    store.put_cluster(&cluster).await.unwrap();
    store.append(&rows("x", hours), &[]).await.unwrap();
    store
}

fn rows(organization: &str, hours: i64) -> Vec<UsageRow> {
    let organization = Organization::parse(organization).unwrap();
    let series = SeriesId { pool: PoolId::parse("earth:A100").unwrap(), organization };
    let hour = |index: i64| HourStart::from_unix_s(index * 3_600).unwrap();
    let row =
        |index| UsageRow { series: series.clone(), hour: hour(index), demand: MilliGpus::from_gpus(4), at_end: None };
    (0..hours).map(row).collect()
}

/// The place of a file that lies beside a database.
fn beside(file: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", file.display()))
}

async fn raw(file: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::from_str(&url(file)).unwrap().connect().await.unwrap()
}

/// The rows of a database that nobody has open, which is sound.
async fn sound_rows(file: &Path) -> u64 {
    let mut connection = raw(file).await;
    let found: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    assert_eq!(found, "ok", "{}", file.display());
    let store = store::connect_existing(&url(file)).await.unwrap();
    let stored = store.describe_usage(&earth()).await.unwrap().iter().map(|summary| summary.rows).sum();
    store.close().await;
    stored
}

/// A copy of a database and of what lies beside it, as it is found after a crash.
fn copied(file: &Path) -> (PathBuf, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("headroom.db");
    for suffix in ["", "-wal", "-opened"] {
        if beside(file, suffix).exists() {
            fs::copy(beside(file, suffix), beside(&copy, suffix)).unwrap();
        }
    }
    (copy, folder)
}

/// A database of 480 rows that is open, and in whose place lies one of 24 rows; the former as `away.db`.
async fn replaced(folder: &Path) -> (Arc<dyn Store>, PathBuf) {
    let (file, other) = (folder.join("headroom.db"), folder.join("other.db"));
    filled(&other, 24).await.close().await;
    let store = filled(&file, 480).await;
    assert!(beside(&file, "-wal").metadata().unwrap().len() > 0);
    fs::rename(&file, folder.join("away.db")).unwrap();
    fs::rename(&other, &file).unwrap();
    (store, file)
}

#[tokio::test]
async fn a_file_that_takes_the_place_of_an_open_one_does_not_get_its_log() {
    for is_proved in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (store, file) = replaced(folder.path()).await;
        if is_proved {
            let fault = store.prove_write().await.unwrap_err();
            assert!(fault.to_string().contains("another file took its place"), "{fault}");
            assert_eq!(beside(&file, "-wal").metadata().unwrap().len(), 0);
        }
        store.close().await;
        assert_eq!(sound_rows(&file).await, 24, "proved: {is_proved}");
        assert_eq!(sound_rows(&folder.path().join("away.db")).await, 480, "proved: {is_proved}");
    }
}

#[tokio::test]
async fn a_log_that_was_written_beside_another_file_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    // Open until the end, as a program that is killed leaves the log.
    let (_store, file) = replaced(folder.path()).await;
    let contents = || ["", "-wal"].map(|suffix| fs::read(beside(&file, suffix)).unwrap());
    let (before, database) = (contents(), url(&file));
    let faults = [
        store::connect(&database).await.err(),
        store::connect_existing(&database).await.err(),
        store::check_existing(&database).await.err(),
        store::inspect(&database).await.err(),
        store::copy_sqlite(&database, folder.path().join("copy.db").to_str().unwrap()).await.err(),
    ];
    for fault in faults.map(Option::unwrap) {
        assert!(matches!(fault, StoreError::Leftover { .. }), "{fault}");
        assert!(fault.to_string().contains("is another one than before, and"), "{fault}");
    }
    assert!(contents() == before, "it stays as it is");
    fs::rename(beside(&file, "-wal"), folder.path().join("moved-wal")).unwrap();
    store::check_existing(&database).await.unwrap();
}

#[tokio::test]
async fn a_database_with_its_own_log_is_opened_where_it_is_and_as_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    let store = filled(&file, 480).await;
    store::check_existing(&url(&file)).await.unwrap();
    let (copy, _kept) = copied(&file);
    assert!(beside(&copy, "-wal").metadata().unwrap().len() > 0);
    store::check_existing(&url(&copy)).await.unwrap();
    assert_eq!(sound_rows(&copy).await, 480);
    let moved = folder.path().join("moved.db");
    for suffix in ["", "-wal", "-opened"] {
        fs::rename(beside(&file, suffix), beside(&moved, suffix)).unwrap();
    }
    store::check_existing(&url(&moved)).await.unwrap();
    drop(store);
}

#[tokio::test]
async fn a_database_that_is_closed_leaves_no_note() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    let store = filled(&file, 24).await;
    assert!(beside(&file, "-opened").exists());
    store.close().await;
    assert!(!beside(&file, "-opened").exists());
}

/// How the programs with a database end after its log was cut off.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Close,
    Drop,
    WriteAndClose,
}

/// Cuts the log of a database off at `bytes`. What was in the file stays as it was, and readable.
async fn cuts(bytes: u64, end: End) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    filled(&file, 24).await.close().await;
    let store = store::connect(&url(&file)).await.unwrap();
    store.append(&rows("y", 480), &[]).await.unwrap();
    store.prove_write().await.unwrap();
    let before = fs::read(&file).unwrap();
    File::options().write(true).open(beside(&file, "-wal")).unwrap().set_len(bytes).unwrap();
    if end == End::WriteAndClose {
        for fault in [store.prove_write().await.unwrap_err(), store.append(&rows("z", 1), &[]).await.unwrap_err()] {
            let StoreError::Lost { path, reason, .. } = &fault else { panic!("{fault}") };
            assert!(path.ends_with("headroom.db-wal") && reason.contains("it was cut off"), "{fault}");
        }
    }
    if end != End::Drop {
        store.close().await;
    }
    drop(store);
    // Connections that are dropped close in threads of their own.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(fs::read(&file).unwrap() == before, "cut at {bytes}, {end:?}: the file has changed");
    let (copy, _kept) = copied(&file);
    let found = sound_rows(&copy).await;
    assert!(found == 24 || bytes > 0, "{found}");
}

#[tokio::test]
async fn a_log_that_was_cut_off_is_noticed_and_never_written_to_the_database() {
    for end in [End::Close, End::Drop, End::WriteAndClose] {
        cuts(0, end).await;
        cuts(20_000, end).await;
    }
}

#[tokio::test]
async fn a_log_that_another_program_empties_after_it_has_saved_it_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    let store = filled(&file, 24).await;
    let mut other = raw(&file).await;
    for hours in [48, 480] {
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut other).await.unwrap();
        assert_eq!(beside(&file, "-wal").metadata().unwrap().len(), 0);
        store.prove_write().await.unwrap();
        store.append(&rows("x", hours), &[]).await.unwrap();
    }
    other.close().await.unwrap();
    store.close().await;
    assert_eq!(sound_rows(&file).await, 480);
}
