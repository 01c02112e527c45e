//! `quota-service database restore`: a database of the name that was asked for is there once it is whole, and not before.

use super::unfinished::Unfinished;
use super::{fault_text, note, postgres, succeeded, without_password, wrong};
use crate::access::command::failed;
use crate::doctor::{Status, deep};
use crate::engine::{Rebuilt, rebuild};
use crate::settings;
use command_line::{Exit, Failure, print_json, say};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use store::{Backend, ServerObjects, Store, StoreError};

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
    let taken = || format!("{} is there already, and was not changed: restore into a new file", path.display());
    if path.exists() {
        return Err(wrong(taken()));
    }
    store::check_url(database).map_err(failed)?;
    store::check_leftovers(database).await.map_err(failed)?;
    let source = format!("sqlite://{}", file.display());
    store::check_existing(&source).await.map_err(|fault| of_backup(file, fault))?;
    let unfinished = Unfinished::beside(path)?;
    let name = unfinished.path().to_str().ok_or_else(|| wrong("the name of the database file is no text"))?;
    store::copy_sqlite(&source, name).await.map_err(|fault| of_backup(file, fault))?;
    let restored = checked(&format!("sqlite://{name}"), file).await?;
    unfinished.finish(path, taken)?;
    Ok(restored)
}

async fn into_server(database: &str, file: &Path) -> Result<Restored, Failure> {
    let before = store::server_objects(database).await.map_err(failed)?;
    if let Some(first) = before.relations().next() {
        return Err(wrong(format!(
            "the database has tables already ({first}), and was not changed: restore into an empty one (createdb)"
        )));
    }
    check_content(database, file)?;
    let arguments = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", "--dbname"];
    let mut arguments = arguments.map(str::to_owned).to_vec();
    let backup = file.display().to_string();
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
    match checked(database, file).await {
        Err(failure) => Err(emptied(database, &before, failure).await),
        restored => restored,
    }
}

/// Refuses the dump of another program, whose tables would stay in the database.
fn check_content(database: &str, file: &Path) -> Result<(), Failure> {
    let ran = postgres("pg_restore", &["--list".to_owned(), file.display().to_string()], database)?;
    if !ran.status.success() {
        return Err(damaged(file, &fault_text(&ran)));
    }
    let list = String::from_utf8_lossy(&ran.stdout);
    let has =
        |table: &str| list.lines().any(|line| line.contains(" TABLE DATA ") && line.contains(&format!(" {table} ")));
    if ["_sqlx_migrations", "clusters"].into_iter().all(has) {
        return Ok(());
    }
    let why =
        "it has no tables of Headroom, and the database was not changed; name a file of quota-service database backup";
    Err(Failure::new(Exit::DataInvalid, format!("{}: no backup: {why}", file.display())))
}

/// Removes a content that the check refuses: a service would serve it.
async fn emptied(database: &str, before: &ServerObjects, failure: Failure) -> Failure {
    let state = match store::remove_new_objects(database, before).await {
        Ok(()) => "the database is empty again".to_owned(),
        Err(fault) => format!(
            "the refused content is still in the database, since it could not be removed ({fault}): remove the database and make a new one \
             (dropdb, createdb)"
        ),
    };
    Failure::new(failure.exit, format!("{}; {state}", failure.message))
}

/// Fences the writers of before, and reads what was restored.
async fn checked(database: &str, file: &Path) -> Result<Restored, Failure> {
    let store = store::connect_existing(database).await.map_err(|fault| of_backup(file, fault))?;
    let restored = match sound(store.as_ref(), file).await {
        Ok(()) => read(store.as_ref()).await.map_err(|fault| of_backup(file, fault)),
        Err(failure) => Err(failure),
    };
    let noted = match restored {
        Ok(restored) => note(store.as_ref(), "database restore", &file.display().to_string()).await.map(|()| restored),
        Err(failure) => Err(failure),
    };
    store.close().await;
    noted
}

/// The checks of `doctor --deep`. Those of the pages of a server are not about the backup.
async fn sound(store: &dyn Store, file: &Path) -> Result<(), Failure> {
    let checks = match store.backend() {
        Backend::Sqlite => deep::checks(store).await,
        Backend::Postgres => deep::checksums(store).await,
    };
    let checks = checks.map_err(|fault| of_backup(file, fault))?;
    match checks.iter().find(|check| check.status == Status::Fail) {
        Some(check) => Err(damaged(file, &format!("{}: {}", check.name, check.found))),
        None => Ok(()),
    }
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
