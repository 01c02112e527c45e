//! `quota-service database restore`: a database of the name that was asked for is there once it is whole, and not before.

use super::{fault_text, note, postgres, put_in_place, schema, succeeded, without_password, wrong};
use crate::access::command::failed;
use crate::engine::{Rebuilt, rebuild};
use crate::settings;
use command_line::{Exit, Failure, print_json, say};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use store::{Store, StoreError};

/// Follows the name of an SQLite file that is not whole yet.
const UNFINISHED: &str = ".unfinished";
/// Endings of the file, and of those that SQLite and the store keep beside it.
const BESIDE: [&str; 5] = ["", "-journal", "-wal", "-shm", "-opened"];

/// Contents of a restored database.
#[derive(Debug)]
struct Restored {
    clusters: usize,
    placed_pools: usize,
    running_tasks: usize,
    quotas: usize,
}

/// Restores a backup into a database that is empty or not there, and checks it.
///
/// # Errors
/// The file is no backup or a damaged one, which leaves nothing behind; the database has tables already or does not answer; a program
/// of Postgres is missing.
pub async fn restore(database: &str, file: &Path, json: bool) -> Result<(), Failure> {
    check_backup(database, file)?;
    let restored = match store::sqlite_file(database).map_err(failed)? {
        Some(path) => into_file(database, path, file).await?,
        None => into_server(database, file).await?,
    };
    let Restored { clusters, placed_pools, running_tasks, quotas } = restored;
    if json {
        let body = json!({
            "clusters": clusters, "placed_pools": placed_pools, "running_tasks": running_tasks, "quotas": quotas,
        });
        print_json(&body);
    } else {
        say(format_args!(
            "restored and checked: {clusters} clusters, {placed_pools} placed pools with {running_tasks} running tasks, {quotas} quotas"
        ));
    }
    Ok(())
}

async fn into_file(database: &str, path: &Path, file: &Path) -> Result<Restored, Failure> {
    let is_free = || {
        let why = || format!("{} is there already, and was not changed: restore into a new file", path.display());
        if path.exists() { Err(wrong(why())) } else { Ok(()) }
    };
    is_free()?;
    store::check_url(database).map_err(failed)?;
    store::check_leftovers(database).await.map_err(failed)?;
    // Files of a restore that was killed.
    remove(path);
    let made = async {
        let (source, unfinished) = (format!("sqlite://{}", file.display()), format!("{database}{UNFINISHED}"));
        store::check_existing(&source).await.map_err(|fault| of_backup(file, fault))?;
        let beside = format!("{}{UNFINISHED}", path.display());
        store::copy_sqlite(&source, &beside).await.map_err(|fault| of_backup(file, fault))?;
        let restored = checked(&unfinished, file).await?;
        is_free()?;
        put_in_place(Path::new(&beside), path)?;
        Ok(restored)
    };
    let made = made.await;
    if made.is_err() {
        remove(path);
    }
    made
}

/// Removes a file that is not whole, with those beside it.
fn remove(path: &Path) {
    for suffix in BESIDE {
        // Most are not there.
        let _ = std::fs::remove_file(format!("{}{UNFINISHED}{suffix}", path.display()));
    }
}

async fn into_server(database: &str, file: &Path) -> Result<Restored, Failure> {
    if schema(database).await.map_err(failed)?.found.is_some() {
        let why =
            "the database has tables of Headroom already, and was not changed: restore into an empty one (createdb)";
        return Err(wrong(why));
    }
    let backup = file.display().to_string();
    let arguments = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", "--dbname"];
    let mut arguments = arguments.map(str::to_owned).to_vec();
    arguments.extend([without_password(database).0, backup.clone()]);
    let ran = postgres("pg_restore", &arguments, database)?;
    if !ran.status.success() {
        // Without a database, what fails is the backup.
        let read = postgres("pg_restore", &["--file=/dev/null".to_owned(), backup], database)?;
        if !read.status.success() {
            return Err(damaged(file, &fault_text(&read)));
        }
    }
    succeeded("pg_restore", &ran)?;
    checked(database, file).await
}

/// Fences the writers of before, and reads what was restored.
async fn checked(database: &str, file: &Path) -> Result<Restored, Failure> {
    let store = store::connect(database).await.map_err(failed)?;
    let restored = read(store.as_ref()).await.map_err(|fault| of_backup(file, fault));
    let noted = match restored {
        Ok(restored) => note(store.as_ref(), "database restore", &file.display().to_string()).await.map(|()| restored),
        Err(fault) => Err(fault),
    };
    store.close().await;
    noted
}

async fn read(store: &dyn Store) -> Result<Restored, StoreError> {
    store.outdate_leases().await?;
    let mut running_tasks = 0;
    let placed = store.placed_pools().await?;
    for pool in &placed {
        let journal = store.open_journal(&pool.pool).await?;
        let placement = settings::load(store, &pool.pool).await?.placement;
        let Rebuilt { pool, .. } = rebuild(&journal, placement.policy(), placement.rules())?;
        running_tasks += pool.snapshot().running.len();
    }
    let clusters = store.clusters().await?.len();
    let quotas = store.latest_quotas(None).await?.len();
    Ok(Restored { clusters, placed_pools: placed.len(), running_tasks, quotas })
}

fn of_backup(file: &Path, fault: StoreError) -> Failure {
    match fault {
        StoreError::Corrupt { reason, .. } => damaged(file, &reason),
        other => failed(other),
    }
}

fn damaged(file: &Path, reason: &str) -> Failure {
    Failure::new(Exit::DataInvalid, format!("{}: the backup is damaged ({reason}): use another one", file.display()))
}

/// Refuses a file that is no backup of the kind of database that it is restored into.
fn check_backup(database: &str, file: &Path) -> Result<(), Failure> {
    let refused = |why: &str| Failure::new(Exit::DataInvalid, format!("{}: {why}", file.display()));
    let mut head = Vec::new();
    let opened = std::fs::File::open(file).and_then(|opened| opened.take(16).read_to_end(&mut head));
    opened.map_err(|fault| refused(&format!("{fault}; name a file of quota-service database backup")))?;
    let is_sqlite = database.starts_with("sqlite://");
    match (head.starts_with(b"SQLite format 3"), head.starts_with(b"PGDMP")) {
        (true, _) if !is_sqlite => Err(refused("a backup of SQLite: restore it with --database sqlite://NEW-FILE")),
        (_, true) if is_sqlite => Err(refused("a backup of Postgres: restore it into a database of Postgres")),
        (false, false) => Err(refused("no backup: name a file of quota-service database backup")),
        _ => Ok(()),
    }
}
