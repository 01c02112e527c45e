//! Restores that cannot end: the backup is damaged, or the program was killed.

use super::*;
use sqlx::{Connection, PgConnection};
use std::fs;
use std::path::Path;
use std::process::Command;
use tests::{Backend, Ran, fresh_database, on_both_databases, program};

on_both_databases![
    a_restore_of_a_cut_backup_is_refused_and_leaves_nothing_in_the_way_of_a_good_one,
    a_restore_of_a_damaged_checkpoint_is_refused_and_leaves_the_database_empty,
    of_two_restores_at_once_one_is_refused_and_the_other_whole,
];

/// Tables, views and sequences of a Postgres database, with their indexes.
const RELATIONS: &str = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";

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
    let mut left = vec![empty.url.rsplit('/').next().unwrap().to_owned()];
    if let Some(path) = empty.url.strip_prefix("sqlite://") {
        // As a restore that is killed leaves them: they may be those of one that runs.
        for suffix in ["", "-journal", "-wal"] {
            fs::write(format!("{path}.unfinished{suffix}"), &bytes[..5_000]).unwrap();
            left.push(format!("headroom.db.unfinished{suffix}"));
        }
    }
    let ran = restored(&whole, &empty);
    assert_eq!(ran.code, 0, "{ran:?}");
    let left: Vec<&str> = left.iter().map(String::as_str).collect();
    assert_eq!(others_beside(&empty, &left), [""; 0]);
    for name in &left[1..] {
        let folder = Path::new(empty.url.strip_prefix("sqlite://").unwrap()).parent().unwrap();
        assert_eq!(fs::read(folder.join(name)).unwrap(), &bytes[..5_000], "{name}");
    }
    let usage = "SELECT count(*) FROM usage";
    assert_eq!(empty.numbers(usage).await, database.numbers(usage).await);
}

fn backup(database: &TestDatabase, file: &Path) {
    let file = file.to_str().unwrap();
    let _ = program("quota-service", &["database", "backup", file, "--database", &database.url]).ok();
}

async fn a_restore_of_a_damaged_checkpoint_is_refused_and_leaves_the_database_empty(database: TestDatabase) {
    let _ = retrain::with_run(&database, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let [sound, damaged] = ["sound", "damaged"].map(|name| folder.path().join(name));
    backup(&database, &sound);
    doctor::flip_a_byte_of_runs(&database).await;
    backup(&database, &damaged);
    let empty = fresh_database(database.backend).await;
    let ran = restored(&damaged, &empty);
    let expected = "damaged: the backup is damaged (checksums of runs: the checkpoint of run-1";
    assert!(ran.code == 3 && ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(others_beside(&empty, &[]), [""; 0]);
    if database.backend == Backend::Postgres {
        assert!(ran.stderr.contains("the database is empty again"), "{ran:?}");
        assert_eq!(empty.numbers(RELATIONS).await, [0]);
    }
    let ran = restored(&sound, &empty);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn a_refused_content_that_cannot_be_removed_is_named_with_what_to_do() {
    let database = fresh_database(Backend::Postgres).await;
    let _ = retrain::with_run(&database, 0).await;
    doctor::flip_a_byte_of_runs(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged");
    backup(&database, &file);
    let guarded = fresh_database(Backend::Postgres).await;
    let guard = "CREATE FUNCTION keep() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'tables stay'; END $$;
         CREATE EVENT TRIGGER keep ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION keep()";
    guarded.execute(guard).await;
    let ran = restored(&file, &guarded);
    let named = ["the backup is damaged", "still in the database", "tables stay", "dropdb, createdb"];
    assert!(ran.code == 3 && named.iter().all(|named| ran.stderr.contains(named)), "{ran:?}");
    assert_ne!(guarded.numbers(RELATIONS).await, [0]);
    guarded.execute("DROP EVENT TRIGGER keep; DROP SCHEMA public CASCADE; CREATE SCHEMA public").await;
    let other = "CREATE FUNCTION public.own() RETURNS integer LANGUAGE sql AS 'SELECT 1'";
    guarded.execute(other).await;
    let ran = restored(&file, &guarded);
    assert!(ran.code == 3 && ran.stderr.contains("the database is empty again"), "{ran:?}");
    let found = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace";
    assert_eq!((guarded.numbers(RELATIONS).await, guarded.numbers(found).await), (vec![0], vec![1]));
}

#[tokio::test]
async fn a_restore_of_a_malformed_file_is_refused() {
    let database = fresh_database(Backend::Sqlite).await;
    drop(database.store().await);
    let schema = |from: &str, to: &str| {
        format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, '{from}', '{to}') WHERE name = 'sizes'; \
             PRAGMA writable_schema = RESET;"
        )
    };
    let [strict, lax] = ["bytes integer NOT NULL", "bytes integer"];
    let row = "INSERT INTO sizes (at, bytes) VALUES (1, NULL);";
    database.execute(&[schema(strict, lax), row.to_owned(), schema(lax, strict)].join(" ")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("malformed");
    backup(&database, &file);
    let empty = fresh_database(Backend::Sqlite).await;
    let ran = restored(&file, &empty);
    let expected = "malformed: the backup is damaged (integrity_check: NULL value in sizes.bytes";
    assert!(ran.code == 3 && ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(others_beside(&empty, &[]), [""; 0]);
}

async fn of_two_restores_at_once_one_is_refused_and_the_other_whole(database: TestDatabase) {
    drop(with_usage(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("saved");
    backup(&database, &file);
    let usage = "SELECT count(*) FROM usage";
    for _ in 0..3 {
        let empty = fresh_database(database.backend).await;
        let ran = std::thread::scope(|scope| {
            let running = [0, 1].map(|_| scope.spawn(|| restored(&file, &empty)));
            running.map(|one| one.join().unwrap())
        });
        assert_eq!(ran.iter().filter(|ran| ran.code == 0).count(), 1, "{ran:?}");
        assert_eq!(others_beside(&empty, &["headroom.db"]), [""; 0]);
        assert_eq!(empty.numbers(usage).await, database.numbers(usage).await);
    }
}

#[tokio::test]
async fn a_restore_beside_tables_or_of_another_program_is_refused_and_changes_nothing() {
    let own = fresh_database(Backend::Postgres).await;
    drop(own.store().await);
    let folder = tempfile::tempdir().unwrap();
    let [saved, foreign] = ["saved", "foreign"].map(|name| folder.path().join(name));
    backup(&own, &saved);
    let other = fresh_database(Backend::Postgres).await;
    other.execute("CREATE SCHEMA other; CREATE TABLE other.notes (text text)").await;
    let ran = restored(&saved, &other);
    let expected = "the database has tables already (other.notes), and was not changed: restore into an empty one";
    assert!(ran.code == 2 && ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(other.numbers(RELATIONS).await, [0]);
    other.execute("CREATE TABLE clusters (text text)").await;
    let mut dump = Command::new("pg_dump");
    let _ = dump.args(["--format=custom", "--dbname", &other.url, "--file"]).arg(&foreign);
    assert!(dump.status().unwrap().success());
    let empty = fresh_database(Backend::Postgres).await;
    let ran = restored(&foreign, &empty);
    let expected = "foreign: no backup: it has no tables of Headroom, and the database was not changed";
    assert!(ran.code == 3 && ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(empty.numbers(RELATIONS).await, [0]);
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
