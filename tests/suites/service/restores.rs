//! Restores that cannot end: the backup is damaged, or the program was killed.

use super::*;
use sqlx::{Connection, PgConnection};
use std::fs;
use std::path::Path;
use tests::{Backend, Ran, fresh_database, on_both_databases, program};

on_both_databases![a_restore_of_a_cut_backup_is_refused_and_leaves_nothing_in_the_way_of_a_good_one];

fn restored(file: &Path, into: &TestDatabase) -> Ran {
    program("quota-service", &["database", "restore", file.to_str().unwrap(), "--database", &into.url])
}

/// Names of what lies in the folder of an SQLite database, apart from those that are listed.
fn others_beside(database: &TestDatabase, known: &[&str]) -> Vec<String> {
    let Some(file) = database.url.strip_prefix("sqlite://").map(Path::new) else { return Vec::new() };
    let of = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let found = fs::read_dir(file.parent().unwrap()).unwrap().map(of);
    found.filter(|name| !known.contains(&name.as_str())).collect()
}

async fn a_restore_of_a_cut_backup_is_refused_and_leaves_nothing_in_the_way_of_a_good_one(database: TestDatabase) {
    drop(with_usage(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let [whole, cut] = ["whole", "cut"].map(|name| folder.path().join(name));
    let file = whole.to_str().unwrap();
    let _ = program("quota-service", &["database", "backup", file, "--database", &database.url]).ok();
    let bytes = fs::read(&whole).unwrap();
    let empty = fresh_database(database.backend).await;
    for length in [bytes.len() / 2, bytes.len() / 8, 100] {
        fs::write(&cut, &bytes[..length]).unwrap();
        let ran = restored(&cut, &empty);
        assert!(ran.code == 3 && ran.stderr.contains("cut: the backup is damaged"), "{length} bytes: {ran:?}");
        assert_eq!(others_beside(&empty, &[]), [""; 0], "{length} bytes");
    }
    if let Some(path) = empty.url.strip_prefix("sqlite://") {
        // As a restore that is killed leaves them.
        for suffix in ["", "-journal", "-wal"] {
            fs::write(format!("{path}.unfinished{suffix}"), &bytes[..5_000]).unwrap();
        }
    }
    let ran = restored(&whole, &empty);
    assert_eq!(ran.code, 0, "{ran:?}");
    let name = empty.url.rsplit('/').next().unwrap();
    assert_eq!(others_beside(&empty, &[name]), [""; 0]);
    let usage = "SELECT count(*) FROM usage";
    assert_eq!(empty.numbers(usage).await, database.numbers(usage).await);
}

#[tokio::test]
async fn a_start_while_another_program_makes_the_tables_says_so_and_may_be_tried_again() {
    let database = fresh_database(Backend::Postgres).await;
    let mut restore = PgConnection::connect(&database.url).await.unwrap();
    // As pg_restore makes it, which does not take the lock of migrations.
    let history = "BEGIN; CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text NOT NULL,
         installed_on timestamptz NOT NULL DEFAULT now(), success boolean NOT NULL, checksum bytea NOT NULL,
         execution_time bigint NOT NULL)";
    let _ = sqlx::raw_sql(history).execute(&mut restore).await.unwrap();
    let url = database.url.clone();
    let migrate = move || program("quota-service", &["database", "migrate", "--database", &url]);
    let started = std::thread::spawn(migrate.clone());
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted
         AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
    while database.numbers(waiting).await == [0] {
        assert!(!started.is_finished(), "{:?}", started.join());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let _ = sqlx::raw_sql("COMMIT").execute(&mut restore).await.unwrap();
    let ran = started.join().unwrap();
    let expected = "the database is busy: another program makes the same tables at this moment";
    assert!(ran.code == 5 && ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(migrate().code, 0);
}
