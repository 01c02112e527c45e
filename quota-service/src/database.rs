//! `quota-service database`: backups, restores, the schema, and what is forgotten.

use crate::access::command::failed;
use crate::args::{DatabaseCommand, RetainFlags};
use crate::clock::Clock;
use crate::engine::{Rebuilt, rebuild};
use crate::retention::{self, Kind};
use crate::settings;
use command_line::{Exit, Failure, print_json, say};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use store::{AuditRecord, Backend, Schema, Store, StoreError};

/// Does what was asked, and prints it.
///
/// # Errors
/// The database does not answer, a program of Postgres is missing or fails, or what was asked does not fit.
pub async fn run(command: DatabaseCommand, database: &str, json: bool) -> Result<(), Failure> {
    match command {
        DatabaseCommand::Backup { file } => backup(database, &file, json).await,
        DatabaseCommand::Restore { file } => restore(database, &file, json).await,
        DatabaseCommand::Migrate => migrate(database, json).await,
        DatabaseCommand::Retain(flags) => retain(database, &flags, json).await,
    }
}

fn wrong(why: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, why)
}

async fn backup(database: &str, file: &Path, json: bool) -> Result<(), Failure> {
    if file.exists() {
        return Err(wrong(format!("{} is there already: name a new file", file.display())));
    }
    // Also brings the schema up to date, and finds out what is wrong with the URL.
    let store = store::connect_existing(database).await.map_err(failed)?;
    let backend = store.backend();
    if backend == Backend::Sqlite {
        // A log that lies there would be taken for one of the backup.
        store::check_leftovers(&format!("sqlite://{}", file.display())).await.map_err(failed)?;
    }
    let beside = file.with_extension("unfinished");
    let whole = match backend {
        Backend::Sqlite => {
            let name = beside.to_str().ok_or_else(|| wrong("the name of the file is no text"))?;
            store::copy_sqlite(database, name).await.map_err(failed)
        }
        Backend::Postgres => {
            let arguments = ["--format=custom", "--no-owner", "--no-privileges", "--file"].map(str::to_owned);
            postgres("pg_dump", &[&arguments[..], &[beside.display().to_string()]].concat(), database)
        }
    };
    store.close().await;
    let renamed = whole.and_then(|()| {
        let synced = std::fs::File::open(&beside).and_then(|written| written.sync_all());
        let renamed = synced.and_then(|()| std::fs::rename(&beside, file));
        renamed.map_err(|fault| Failure::new(Exit::Failure, format!("{}: {fault}", file.display())))
    });
    if renamed.is_err() {
        // Whether there was anything to remove does not matter.
        let _ = std::fs::remove_file(&beside);
    }
    renamed?;
    let bytes = std::fs::metadata(file).map(|known| known.len()).unwrap_or_default();
    if json {
        print_json(&json!({ "file": file, "bytes": bytes, "database": backend.to_string() }));
    } else {
        say(format_args!("{}: {bytes} bytes of {backend}", file.display()));
    }
    Ok(())
}

async fn restore(database: &str, file: &Path, json: bool) -> Result<(), Failure> {
    check_backup(database, file)?;
    if let Some(path) = database.strip_prefix("sqlite://") {
        if Path::new(path).exists() {
            return Err(wrong(format!("{path} is there already, and was not changed: restore into a new file")));
        }
        let source = format!("sqlite://{}", file.display());
        store::copy_sqlite(&source, path).await.map_err(|fault| match fault {
            StoreError::Corrupt { reason, .. } => Failure::new(
                Exit::DataInvalid,
                format!("{}: the backup is damaged ({reason}): use another one", file.display()),
            ),
            other => failed(other),
        })?;
    } else {
        store::check_url(database).map_err(failed)?;
        if schema(database).await.map_err(failed)?.found.is_some() {
            let why = "the database has tables of Headroom already, and was not changed: restore into an empty one (createdb)";
            return Err(wrong(why));
        }
        let arguments = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", "--dbname"];
        let mut arguments = arguments.map(str::to_owned).to_vec();
        arguments.push(without_password(database).0);
        arguments.push(file.display().to_string());
        postgres("pg_restore", &arguments, database)?;
    }
    let store = store::connect(database).await.map_err(failed)?;
    store.outdate_leases().await.map_err(failed)?;
    let mut tasks = 0;
    let placed = store.placed_pools().await.map_err(failed)?;
    for pool in &placed {
        let journal = store.open_journal(&pool.pool).await.map_err(failed)?;
        let placement = settings::load(store.as_ref(), &pool.pool).await.map_err(failed)?.placement;
        let Rebuilt { pool, .. } = rebuild(&journal, placement.policy(), placement.rules()).map_err(failed)?;
        tasks += pool.snapshot().running.len();
    }
    let clusters = store.clusters().await.map_err(failed)?.len();
    let quotas = store.latest_quotas(None).await.map_err(failed)?.len();
    note(store.as_ref(), "database restore", &file.display().to_string()).await?;
    store.close().await;
    if json {
        let body =
            json!({ "clusters": clusters, "placed_pools": placed.len(), "running_tasks": tasks, "quotas": quotas });
        print_json(&body);
    } else {
        say(format_args!(
            "restored and checked: {clusters} clusters, {} placed pools with {tasks} running tasks, {quotas} quotas",
            placed.len()
        ));
    }
    Ok(())
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

async fn migrate(database: &str, json: bool) -> Result<(), Failure> {
    // 1. As it stands. What is not there yet is made; what else is wrong, connecting says.
    let before = schema(database).await.ok().and_then(|schema| schema.found);
    // 2. Connecting migrates.
    let store = store::connect(database).await.map_err(failed)?;
    let backend = store.backend();
    store.close().await;
    // 3. As it is now.
    let after = schema(database).await.map_err(failed)?.found;
    if json {
        print_json(&json!({ "database": backend.to_string(), "schema_before": before, "schema_after": after }));
        return Ok(());
    }
    let shown = |version: Option<i64>| version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    say(format_args!("{backend}: schema version {} before, {} now", shown(before), shown(after)));
    Ok(())
}

async fn schema(database: &str) -> Result<Schema, StoreError> {
    let inspected = store::inspect(database).await?;
    inspected.store.close().await;
    Ok(inspected.schema)
}

async fn retain(database: &str, flags: &RetainFlags, json: bool) -> Result<(), Failure> {
    let store = store::connect_existing(database).await.map_err(failed)?;
    let now = Clock::real().now();
    let wanted = [
        (Kind::Usage, flags.usage_days),
        (Kind::History, flags.history_days),
        (Kind::Tasks, flags.tasks_days),
        (Kind::Audit, flags.audit_days),
        (Kind::Reports, flags.reports_days),
        (Kind::Statements, flags.statements_days),
    ];
    if wanted.iter().all(|(_, days)| days.is_none()) {
        return Err(wrong(
            "say what to forget: --usage-days, --history-days, --tasks-days, --audit-days, --reports-days or \
             --statements-days",
        ));
    }
    let mut forgotten = serde_json::Map::new();
    for (kind, days) in wanted {
        let Some(days) = days else { continue };
        let (what, before) = (kind.as_str(), retention::before(now, days));
        let count = if flags.dry_run { None } else { Some(kind.forget(store.as_ref(), before).await.map_err(failed)?) };
        let count = count.map_or(serde_json::Value::Null, Into::into);
        if !json {
            let rows =
                count.as_u64().map_or_else(|| "would be forgotten".to_owned(), |rows| format!("{rows} rows forgotten"));
            say(format_args!("{what} before {before}: {rows}"));
        }
        forgotten.insert(what.to_owned(), json!({ "before": before.to_string(), "rows": count }));
    }
    if !flags.dry_run {
        note(store.as_ref(), "database retain", &serde_json::Value::from(forgotten.clone()).to_string()).await?;
    }
    if json {
        print_json(&forgotten);
    }
    Ok(())
}

async fn note(store: &dyn Store, action: &str, target: &str) -> Result<(), Failure> {
    let record = AuditRecord {
        at: Clock::real().now(),
        actor: "command line".to_owned(),
        token_id: None,
        action: action.to_owned(),
        target: target.to_owned(),
        status: 0,
        detail_json: None,
    };
    store.record_audit(&[record]).await.map_err(failed)
}

/// Runs a program of Postgres. The password goes by the environment: arguments are seen by everybody on the machine.
fn postgres(program: &str, arguments: &[String], database: &str) -> Result<(), Failure> {
    let (url, password) = without_password(database);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    if program == "pg_dump" {
        command.arg("--dbname").arg(url);
    }
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    let missing = |fault| format!("{program} is not there ({fault}): install the client programs of Postgres");
    let ran = command.output().map_err(|fault| Failure::new(Exit::Failure, missing(fault)))?;
    if ran.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&ran.stderr);
    Err(Failure::new(Exit::Failure, format!("{program} failed: {}", output.trim())))
}

/// A URL without its password, and the password, decoded.
fn without_password(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let Some((login, place)) = rest.split_once('@') else { return (url.to_owned(), None) };
    match login.split_once(':') {
        None => (url.to_owned(), None),
        Some((user, password)) => {
            let password = crate::access::decoded(password).map(std::borrow::Cow::into_owned);
            (format!("{scheme}://{user}@{place}"), password)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_out_of_a_url() {
        let (url, password) = without_password("postgres://anna:ge%40heim+1@db.example:5433/headroom?x=1");
        assert_eq!(
            (url.as_str(), password.as_deref()),
            ("postgres://anna@db.example:5433/headroom?x=1", Some("ge@heim+1"))
        );
        assert_eq!(without_password("postgres://anna@db/x").1, None);
    }
}
