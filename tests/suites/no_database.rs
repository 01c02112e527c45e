//! Databases that are missing, empty or of another program: commands that read say so, and a refused command leaves no database.

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection};
use std::net::TcpListener;
use std::path::Path;
use store::Backend;
use tests::{Ran, fresh_database, program, program_with};

const USAGE: &str = "hour,cluster,gpu_model,organization,demand_gpus\n2026-01-05T00:00:00Z,earth,A100,vision,4\n";

/// Commands that need what others wrote; `{}` is a file of the folder that none of them may make.
const READERS: [&str; 18] = [
    "datasets describe",
    "datasets export --out {}",
    "datasets calendar list",
    "datasets calendar show acme",
    "datasets calendar set --cluster earth weekdays",
    "train",
    "train backtest --horizon 1h --from 2026-01-05T00:00:00Z --to 2026-01-05T01:00:00Z --out {}",
    "train ablation --horizon 1h --from 2026-01-05T00:00:00Z --to 2026-01-05T01:00:00Z",
    "train tune --horizon 1h --out {}",
    "train explain --organization vision",
    "train runs list",
    "notebooks-export report --run run-1 --out {}",
    "quota-service --as-of latest --listen 127.0.0.1:0",
    "quota-service promises",
    "quota-service token list",
    "quota-service token revoke abc",
    "quota-service database backup {}",
    "quota-service database retain --usage-days 36",
];

/// Commands that may make a database.
const WRITERS: [&str; 4] = [
    "datasets ingest --format usage FOLDER/usage.csv",
    "quota-service --listen 127.0.0.1:0",
    "quota-service token create --name x --role read",
    "quota-service database migrate",
];

fn run(line: &str, folder: &Path) -> Ran {
    run_with(line, folder, &[])
}

fn run_with(line: &str, folder: &Path, variables: &[(&str, &str)]) -> Ran {
    run_on(&format!("sqlite://{}", folder.join("headroom.db").display()), line, folder, variables)
}

fn run_on(database: &str, line: &str, folder: &Path, variables: &[(&str, &str)]) -> Ran {
    let made = folder.join("made").display().to_string();
    let line = line.replace("FOLDER", folder.to_str().unwrap());
    let words: Vec<String> = line.split(' ').map(|word| word.replace("{}", &made)).collect();
    let arguments = words[1..].iter().map(String::as_str).chain(["--database", database]);
    program_with(&words[0], &arguments.collect::<Vec<_>>(), variables)
}

fn files(folder: &Path) -> Vec<String> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(entry).collect();
    names.sort();
    names
}

#[test]
fn a_missing_file_is_named_by_every_command_that_reads_and_not_made() {
    for line in READERS {
        let folder = tempfile::tempdir().unwrap();
        let ran = run(line, folder.path());
        assert!(ran.code == 3 && ran.stderr.contains("headroom.db: name the right one"), "{line}: {ran:?}");
        assert!(files(folder.path()).is_empty(), "{line}: {:?}", files(folder.path()));
    }
}

#[test]
fn a_file_whose_folder_cannot_be_entered_is_not_called_missing() {
    for line in WRITERS.iter().chain(&READERS) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
        // A link to itself: a missing right would not stop every user.
        std::os::unix::fs::symlink("closed", folder.path().join("closed")).unwrap();
        let database = format!("sqlite://{}", folder.path().join("closed/headroom.db").display());
        let ran = run_on(&database, line, folder.path(), &[]);
        let named = ["headroom.db cannot be read: ", "is its folder there, may this user write"];
        assert!(ran.code == 1 && named.iter().any(|named| ran.stderr.contains(named)), "{line}: {ran:?}");
    }
}

#[test]
fn an_empty_file_is_no_database_to_every_command_that_reads_and_stays_empty() {
    for line in READERS {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headroom.db");
        std::fs::write(&file, "").unwrap();
        let ran = run(line, folder.path());
        assert!(ran.code == 3 && ran.stderr.contains("is no database of Headroom: it is empty"), "{line}: {ran:?}");
        assert_eq!(
            (files(folder.path()), file.metadata().unwrap().len()),
            (vec!["headroom.db".to_owned()], 0),
            "{line}"
        );
    }
}

#[test]
fn a_log_without_its_file_is_refused_by_every_command_and_stays_as_it_is() {
    for line in WRITERS.iter().chain(&READERS).chain(&["quota-service doctor"]) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("usage.csv"), USAGE).unwrap();
        std::fs::write(path("headroom.db-wal"), "frames").unwrap();
        let ran = run(line, folder.path());
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 3 && output.contains("headroom.db-wal lies there"), "{line}: {ran:?}");
        assert_eq!(files(folder.path()), ["headroom.db-wal", "usage.csv"], "{line}");
        assert_eq!(std::fs::read(path("headroom.db-wal")).unwrap(), b"frames", "{line}");
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_by_every_command_and_stays_as_it_is() {
    for table in ["notes", "_sqlx_migrations"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headroom.db");
        std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let mut other = options.connect().await.unwrap();
        let sql = format!("CREATE TABLE {table} (version INTEGER, checksum BLOB, success BOOLEAN)");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut other).await.unwrap();
        other.close().await.unwrap();
        let bytes = std::fs::read(&file).unwrap();
        for line in READERS.iter().chain(&WRITERS) {
            let ran = run(line, folder.path());
            let expected = "is no database of Headroom: it has the tables of another program, and was not changed";
            assert!(ran.code == 3 && ran.stderr.contains(expected), "{line}: {ran:?}");
            assert_eq!(std::fs::read(&file).unwrap(), bytes, "{line}");
            assert_eq!(files(folder.path()), ["headroom.db", "usage.csv"], "{line}");
        }
    }
}

/// Leaves the files of a killed program: its database, the write-ahead log with all tables, and where asked its index. Without a `command`
/// it is another program.
async fn killed(command: Option<&str>, folder: &Path, has_index: bool) {
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("headroom.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut open = options.journal_mode(SqliteJournalMode::Wal).connect().await.unwrap();
    // From its first read on a connection keeps the log, although the program below ends.
    let _ = sqlx::query("SELECT count(*) FROM sqlite_master").fetch_one(&mut open).await.unwrap();
    match command {
        Some(line) => drop(run(line, own.path()).ok()),
        None => drop(sqlx::query("CREATE TABLE notes (text TEXT)").execute(&mut open).await.unwrap()),
    }
    for suffix in ["", "-wal", "-shm"].iter().filter(|suffix| has_index || **suffix != "-shm") {
        std::fs::copy(format!("{}{suffix}", file.display()), folder.join(format!("headroom.db{suffix}"))).unwrap();
    }
    assert!(folder.join("headroom.db-wal").metadata().unwrap().len() > 0, "nothing is left behind");
    open.close().await.unwrap();
}

fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    files(folder).into_iter().map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[tokio::test]
async fn a_database_that_another_program_left_open_is_refused_with_its_log_as_it_is() {
    for has_index in [true, false] {
        let folder = tempfile::Builder::new().prefix("100%20#").tempdir().unwrap();
        std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
        killed(None, folder.path(), has_index).await;
        let before = bytes(folder.path());
        for line in READERS.iter().chain(&WRITERS).chain(&["quota-service doctor"]) {
            let ran = run(line, folder.path());
            let expected = "it has the tables of another program, and was not changed";
            let is_refused = [&ran.stdout, &ran.stderr].iter().any(|text| text.contains(expected));
            assert!(ran.code >= 3 && is_refused, "{line}: {ran:?}");
            assert!(bytes(folder.path()) == before, "{line}: {:?}", files(folder.path()));
        }
    }
}

#[tokio::test]
async fn a_database_of_headroom_whose_tables_are_in_the_log_alone_is_read() {
    for has_index in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        killed(Some("quota-service token create --name x --role read"), folder.path(), has_index).await;
        let ran = run("quota-service token list", folder.path());
        assert!(ran.code == 0 && ran.stdout.contains(" x "), "{ran:?}");
    }
}

#[test]
fn a_file_that_is_no_sqlite_database_is_named_so_and_stays_as_it_is() {
    let page = [0x5a; 8_192];
    for content in [&b"x"[..], USAGE.as_bytes(), &page] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
        std::fs::write(folder.path().join("headroom.db"), content).unwrap();
        let before = bytes(folder.path());
        for line in READERS.iter().chain(&WRITERS) {
            let ran = run(line, folder.path());
            let expected = "headroom.db is no database of Headroom: it is no SQLite database, and was not changed";
            assert!(ran.code == 3 && ran.stderr.contains(expected), "{line}: {ran:?}");
            assert!(bytes(folder.path()) == before, "{line}: {:?}", files(folder.path()));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("headroom.db")).unwrap();
    let ran = run(READERS[0], folder.path());
    assert!(ran.code == 3 && ran.stderr.contains("headroom.db is no database of Headroom: it is a folder"), "{ran:?}");
}

#[tokio::test]
async fn a_postgres_database_of_another_program_is_refused_by_every_command_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
    let history = "CREATE TABLE _sqlx_migrations (version bigint, checksum bytea, success boolean); \
                   INSERT INTO _sqlx_migrations VALUES (1, '\\x00', true)";
    for sql in ["CREATE TABLE usage (a int)", "CREATE VIEW notes AS SELECT 1", "CREATE SEQUENCE clusters", history] {
        let database = fresh_database(Backend::Postgres).await;
        for statement in sql.split("; ") {
            database.execute(statement).await;
        }
        for line in READERS.iter().chain(&WRITERS).chain(&["quota-service doctor"]) {
            let ran = run_on(&database.url, line, folder.path(), &[]);
            let expected = "is no database of Headroom: it has the tables of another program, and was not changed";
            let is_doctor = line.ends_with("doctor");
            let (code, printed) = if is_doctor { (5, &ran.stdout) } else { (3, &ran.stderr) };
            assert!(ran.code == code && printed.contains(expected), "{line}: {ran:?}");
            let relations =
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'";
            assert_eq!((database.numbers(relations).await, files(folder.path()).len()), (vec![1], 1), "{line}");
        }
    }
}

#[tokio::test]
async fn a_postgres_database_is_filled_beside_the_tables_of_other_schemas_and_of_extensions() {
    let database = fresh_database(Backend::Postgres).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
    database.execute("CREATE SCHEMA other CREATE TABLE notes (text text)").await;
    // Tables of an extension are a part of it: here one is made such, so that no extension need be installed.
    database.execute("CREATE TABLE settings_of_extension (a int)").await;
    database.execute("ALTER EXTENSION plpgsql ADD TABLE settings_of_extension").await;
    // A program that ended before its first migration leaves its history, which is empty.
    let history = "CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text NOT NULL, installed_on timestamptz \
                   NOT NULL DEFAULT now(), success boolean NOT NULL, checksum bytea NOT NULL, execution_time bigint NOT NULL)";
    database.execute(history).await;
    for line in [WRITERS[0], "quota-service token create --name x --role read", "datasets describe"] {
        let ran = run_on(&database.url, line, folder.path(), &[]);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
}

#[tokio::test]
async fn an_sqlite_database_without_tables_is_filled_like_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("usage.csv"), USAGE).unwrap();
    let file = folder.path().join("headroom.db");
    let mut other = SqliteConnectOptions::new().filename(&file).create_if_missing(true).connect().await.unwrap();
    sqlx::query("PRAGMA user_version = 1").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let ran = run("train", folder.path());
    assert!(ran.code == 3 && ran.stderr.contains("is no database of Headroom: it is empty"), "{ran:?}");
    let ran = run(WRITERS[0], folder.path());
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn an_empty_postgres_database_is_left_empty_by_every_command_that_reads_and_by_a_refused_ingest() {
    let database = fresh_database(Backend::Postgres).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("usage.csv"), USAGE.replace(",4\n", ",many\n")).unwrap();
    for line in READERS.iter().chain(&WRITERS[..1]) {
        let ran = run_on(&database.url, line, folder.path(), &[]);
        let is_reader = *line != WRITERS[0];
        let expected = if is_reader { "it has no tables of Headroom; name the right one" } else { "usage.csv, row 2" };
        assert!(ran.code == 3 && ran.stderr.contains(expected), "{line}: {ran:?}");
        let tables = database.numbers("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").await;
        assert_eq!((tables, files(folder.path())), (vec![0], vec!["usage.csv".to_owned()]), "{line}");
    }
}

#[test]
fn a_service_whose_address_is_taken_makes_no_database() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (folder, address) = (tempfile::tempdir().unwrap(), taken.local_addr().unwrap());
    let ran = run(&format!("quota-service --listen {address}"), folder.path());
    assert!(ran.code == 1 && ran.stderr.contains(&format!("{address} cannot be listened on")), "{ran:?}");
    assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
}

#[test]
fn a_refused_ingest_makes_no_database_and_one_that_is_accepted_does() {
    let usage = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("usage.csv"), text).unwrap();
        folder
    };
    let bad = USAGE.replace(",4\n", ",many\n");
    for (text, line, code) in [
        (USAGE, "ingest --format usage /no/file.csv", 3),
        (USAGE, "ingest --format usage FOLDER", 3),
        (USAGE, "ingest --format helios FOLDER/usage.csv", 3),
        (USAGE, "ingest --format slurm FOLDER/usage.csv", 3),
        (USAGE, "ingest --format parquet FOLDER/usage.csv", 3),
        (
            USAGE,
            "ingest --format prometheus http://127.0.0.1:9 --cluster earth --gpu-model A100 --hp-priority-classes high",
            5,
        ),
        (USAGE, "ingest --format usage FOLDER/usage.csv --calendar acme", 2),
        (&bad, "ingest --format usage FOLDER/usage.csv", 3),
        (&USAGE[..48], "ingest --format usage FOLDER/usage.csv", 3),
    ] {
        let folder = usage(text);
        let line = format!("datasets {line}");
        let ran = run(&line, folder.path());
        assert_eq!((ran.code, files(folder.path())), (code, vec!["usage.csv".to_owned()]), "{line}: {}", ran.stderr);
    }
    let folder = usage(USAGE);
    let file = folder.path().join("headroom.db");
    std::fs::write(&file, "").unwrap();
    let ingested = run(WRITERS[0], folder.path());
    assert!(ingested.code == 0 && file.metadata().unwrap().len() > 0, "an empty file is filled: {ingested:?}");
}

#[test]
fn a_refused_token_or_service_makes_no_database() {
    for (line, code, expected) in [
        ("quota-service token create --name x --role read --organization \u{7}", 2, "--organization: "),
        ("quota-service token create --name x --role read --pool :", 2, "--pool :: "),
        ("quota-service --listen 127.0.0.1:0", 4, "/no/prices.toml"),
        ("quota-service --listen 0.0.0.0:0", 4, "there is no token"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let is_prices = expected.contains("prices");
        let prices: &[(&str, &str)] = if is_prices { &[("HEADROOM_PRICES_FILE", expected)] } else { &[] };
        let ran = run_with(line, folder.path(), prices);
        assert!(ran.code == code && ran.stderr.contains(expected), "{line}: {ran:?}");
        assert!(files(folder.path()).is_empty(), "{line}: {:?}", files(folder.path()));
    }
}

#[test]
fn a_damaged_backup_leaves_no_database_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let url = |name: &str| format!("sqlite://{}", path(name));
    std::fs::write(path("usage.csv"), USAGE).unwrap();
    let _ = program("datasets", &["ingest", "--format", "usage", &path("usage.csv"), "--database", &url("a.db")]).ok();
    let _ = program("quota-service", &["database", "backup", &path("saved"), "--database", &url("a.db")]).ok();
    let mut bytes = std::fs::read(path("saved")).unwrap();
    let half = bytes.len() / 2;
    bytes[4_096..half].fill(0x5a);
    std::fs::write(path("saved"), bytes).unwrap();
    let ran = program("quota-service", &["database", "restore", &path("saved"), "--database", &url("b.db")]);
    assert!(ran.code == 3 && ran.stderr.contains("the backup is damaged"), "{ran:?}");
    assert_eq!(files(folder.path()), ["a.db", "saved", "usage.csv"]);
}

#[test]
fn each_setting_shows_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml").to_str().unwrap().to_owned();
    std::fs::write(&config, "[quota-service]\nrefresh_s = 60\nlog = \"warn\"\n").unwrap();
    let arguments = ["config", "show", "--origin", "--json", "--config", &config, "--refresh-s", "7"];
    let shown = program_with("quota-service", &arguments, &[("HEADROOM_LISTEN", "127.0.0.1:9")]).json();
    let origin = |key: &str| {
        let entry = shown.as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap();
        entry["origin"].as_str().unwrap().to_owned()
    };
    assert_eq!([origin("refresh_s"), origin("listen"), origin("database")], ["flag", "environment", "default"]);
    assert!(origin("log").ends_with("headroom.toml"));
}
