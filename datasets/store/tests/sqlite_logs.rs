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

/// The fault of each way to open a database that none of them may open.
async fn faults_of_opening(database: &str, folder: &Path) -> [StoreError; 5] {
    let faults = [
        store::connect(database).await.err(),
        store::connect_existing(database).await.err(),
        store::check_existing(database).await.err(),
        store::inspect(database).await.err(),
        store::copy_sqlite(database, folder.join("copy.db").to_str().unwrap()).await.err(),
    ];
    faults.map(|fault| fault.expect("it is refused"))
}

#[tokio::test]
async fn a_log_that_was_written_beside_another_file_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    // Open until the end, as a program that is killed leaves the log.
    let (_store, file) = replaced(folder.path()).await;
    let contents = || ["", "-wal"].map(|suffix| fs::read(beside(&file, suffix)).unwrap());
    let (before, database) = (contents(), url(&file));
    for fault in faults_of_opening(&database, folder.path()).await {
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

/// A database of 480 rows that is open, and what the log of another one holds, which is as open.
async fn beside_another(folder: &Path) -> ([Arc<dyn Store>; 2], PathBuf, Vec<u8>) {
    let (file, other) = (folder.join("headroom.db"), folder.join("other.db"));
    filled(&file, 24).await.close().await;
    let stores = [filled(&file, 480).await, filled(&other, 24).await];
    (stores, file, fs::read(beside(&other, "-wal")).unwrap())
}

/// Puts another log in the place of one, as `mv` does.
fn replaces(log: &Path, other: &[u8]) {
    fs::write(log.with_extension("new"), other).unwrap();
    fs::rename(log.with_extension("new"), log).unwrap();
}

#[tokio::test]
async fn a_file_in_the_place_of_the_open_log_is_moved_aside_and_the_log_is_saved() {
    for is_proved in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let ([store, _other], file, other) = beside_another(folder.path()).await;
        let log = beside(&file, "-wal");
        fs::rename(&log, folder.path().join("mine")).unwrap();
        replaces(&log, &other);
        store.append(&rows("y", 24), &[]).await.unwrap();
        if is_proved {
            let fault = store.prove_write().await.unwrap_err().to_string();
            let expected = "another file took its place, and what it held is in the database now";
            assert!(fault.contains(expected) && fault.contains("headroom.db-wal-of-another-1 now"), "{fault}");
            assert!(store.append(&rows("z", 1), &[]).await.is_err(), "nothing is acknowledged after that");
        }
        store.close().await;
        assert!(fs::read(beside(&file, "-wal-of-another-1")).unwrap() == other, "proved: {is_proved}");
        assert!(!log.exists(), "proved: {is_proved}");
        let (copy, _kept) = copied(&file);
        assert_eq!(sound_rows(&copy).await, 504, "proved: {is_proved}");
    }
}

#[tokio::test]
async fn a_log_stays_with_the_file_that_was_restored_with_it_while_another_one_was_open() {
    let folder = tempfile::tempdir().unwrap();
    let ([store, _other], file, other) = beside_another(folder.path()).await;
    fs::rename(&file, folder.path().join("away.db")).unwrap();
    fs::copy(folder.path().join("other.db"), &file).unwrap();
    replaces(&beside(&file, "-wal"), &other);
    let fault = store.prove_write().await.unwrap_err().to_string();
    assert!(fault.contains("another file took its place"), "{fault}");
    store.close().await;
    store::check_existing(&url(&file)).await.unwrap();
    assert_eq!(sound_rows(&copied(&file).0).await, 24);
    assert_eq!(sound_rows(&copied(&folder.path().join("away.db")).0).await, 480);
}

/// Puts something in the place of the log of a program that was killed. Every program refuses it until it is moved away.
async fn refuses_after(put: impl FnOnce(&Path, &[u8], &[u8]), is_kept: bool) {
    let folder = tempfile::tempdir().unwrap();
    // Open until the end, as a program that is killed leaves the files.
    let ([store, _other], file, other) = beside_another(folder.path()).await;
    let log = beside(&file, "-wal");
    let before = fs::read(&log).unwrap();
    fs::copy(&log, folder.path().join("mine")).unwrap();
    store.append(&rows("y", 24), &[]).await.unwrap();
    fs::hard_link(&log, folder.path().join("own")).unwrap();
    put(&log, &before, &other);
    let contents = || ["", "-wal", "-shm"].map(|suffix| fs::read(beside(&file, suffix)).unwrap());
    let (before, database) = (contents(), url(&file));
    for fault in faults_of_opening(&database, folder.path()).await {
        assert!(matches!(fault, StoreError::OtherLog { .. }) && fault.is_no_database(), "{fault}");
    }
    assert!(contents() == before, "it stays as it is");
    fs::rename(&log, folder.path().join("moved-wal")).unwrap();
    store::check_existing(&database).await.unwrap();
    if is_kept {
        fs::rename(folder.path().join("own"), &log).unwrap();
        store::check_existing(&database).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_was_copied_with_its_log_and_came_back_alone_goes_on_without_the_note_and_lacks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Open until the end, as a program that is killed leaves the files.
    let ([_store, _other], file, _) = beside_another(folder.path()).await;
    fs::copy(&file, file.with_extension("new")).unwrap();
    fs::rename(file.with_extension("new"), &file).unwrap();
    let fault = store::check_existing(&url(&file)).await.unwrap_err().to_string();
    let note = beside(&file, "-opened");
    assert!(fault.contains(&format!("of one moment, move {} away instead", note.display())), "{fault}");
    fs::rename(&note, folder.path().join("moved")).unwrap();
    store::check_existing(&url(&file)).await.unwrap();
    assert_eq!(sound_rows(&copied(&file).0).await, 480);
}

#[tokio::test]
async fn a_log_that_lacks_what_the_own_one_held_is_refused_and_stays_as_it_is() {
    refuses_after(|log, _, other| replaces(log, other), true).await;
    refuses_after(|log, _, other| fs::write(log, other).unwrap(), false).await;
    refuses_after(|log, before, _| replaces(log, before), true).await;
    let cut = |log: &Path, _: &[u8], _: &[u8]| File::options().write(true).open(log).unwrap().set_len(20_000).unwrap();
    refuses_after(cut, false).await;
}

#[tokio::test]
async fn a_log_is_refused_only_where_the_index_of_its_own_one_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let ([_store, _other], file, other) = beside_another(folder.path()).await;
    replaces(&beside(&file, "-wal"), &other);
    let refused = async || store::check_existing(&url(&file)).await.is_err();
    assert!(refused().await);
    let note = fs::read_to_string(beside(&file, "-opened")).unwrap();
    let lines: Vec<&str> = note.split_inclusive('\n').collect();
    for (index, what) in ["index ", "boot "].into_iter().enumerate() {
        assert!(lines[index + 2].starts_with(what), "{note}");
        let others = lines.iter().map(|line| if line.starts_with(what) { "index 1 1\n" } else { line });
        fs::write(beside(&file, "-opened"), others.collect::<String>()).unwrap();
        assert!(!refused().await, "another index, or another start of the machine");
    }
    fs::write(beside(&file, "-opened"), lines[..2].concat()).unwrap();
    assert!(!refused().await, "the note of an earlier program");
    fs::write(beside(&file, "-opened"), &note).unwrap();
    assert!(refused().await);
    fs::rename(beside(&file, "-shm"), folder.path().join("moved-shm")).unwrap();
    assert!(!refused().await, "file and log were restored together");
}

#[tokio::test]
async fn a_database_to_which_others_write_and_whose_log_they_begin_again_is_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    let stores = [filled(&file, 24).await, store::connect(&url(&file)).await.unwrap()];
    let writing = tokio::spawn(async move {
        for hours in 1..=150 {
            stores[hours % 2].append(&rows("y", hours as i64), &[]).await.unwrap();
        }
        stores
    });
    let (mut other, mut looks) = (raw(&file).await, 0);
    while !writing.is_finished() || looks < 100 {
        store::check_existing(&url(&file)).await.unwrap();
        let begin = ["PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(TRUNCATE)"][looks % 2];
        let _ = sqlx::query(begin).execute(&mut other).await;
        looks += 1;
    }
    let [first, second] = writing.await.unwrap();
    second.close().await;
    store::check_existing(&url(&file)).await.unwrap();
    first.prove_write().await.unwrap();
    other.close().await.unwrap();
    first.close().await;
    assert_eq!(sound_rows(&file).await, 174);
}

#[tokio::test]
async fn a_note_that_is_gone_is_written_again_and_what_is_no_file_in_its_place_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.db");
    let store = filled(&file, 24).await;
    let note = beside(&file, "-opened");
    let before = fs::read(&note).unwrap();
    fs::remove_file(&note).unwrap();
    store.prove_write().await.unwrap();
    assert!(fs::read(&note).unwrap() == before);
    fs::remove_file(&note).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&note).status().unwrap().success());
    let (sender, receiver) = std::sync::mpsc::channel();
    let database = url(&file);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        sender.send(runtime.block_on(store::check_existing(&database)).is_ok()).unwrap();
    });
    assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(30)), Ok(true), "it waits for the pipe");
    store.prove_write().await.unwrap();
    assert!(fs::read(&note).unwrap() == before, "a pipe is taken away");
    fs::remove_file(&note).unwrap();
    fs::create_dir(&note).unwrap();
    store.prove_write().await.unwrap();
    assert!(note.is_dir(), "a folder stays");
}
