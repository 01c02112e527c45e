//! `quota-service database`: backups, restores, the schema, and what is forgotten.

mod restore;
mod unfinished;

use crate::access::command::failed;
use crate::args::{DatabaseCommand, RetainFlags};
use crate::clock::Clock;
use crate::retention::{self, Kind};
use command_line::{Exit, Failure, print_json, say};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use store::{AuditRecord, Backend, Schema, Store, StoreError};
use unfinished::Unfinished;

/// Does what was asked, and prints it.
///
/// # Errors
/// The database does not answer, a program of Postgres is missing or fails, or what was asked does not fit.
pub async fn run(command: DatabaseCommand, database: &str, json: bool) -> Result<(), Failure> {
    match command {
        DatabaseCommand::Backup { file } => backup(database, &file, json).await,
        DatabaseCommand::Restore { file } => restore::restore(database, &file, json).await,
        DatabaseCommand::Migrate => migrate(database, json).await,
        DatabaseCommand::Retain(flags) => retain(database, &flags, json).await,
    }
}

fn wrong(why: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, why)
}

async fn backup(database: &str, file: &Path, json: bool) -> Result<(), Failure> {
    let taken = || format!("{} is there already, and was not changed: name a new file", file.display());
    if file.exists() {
        return Err(wrong(taken()));
    }
    // Also brings the schema up to date, and finds out what is wrong with the URL.
    let store = store::connect_existing(database).await.map_err(failed)?;
    let backend = store.backend();
    let made = async {
        if backend == Backend::Sqlite {
            // A log that lies there would be taken for one of the backup.
            store::check_leftovers(&format!("sqlite://{}", file.display())).await.map_err(failed)?;
        }
        let unfinished = Unfinished::beside(file)?;
        write(database, backend, unfinished.path()).await?;
        unfinished.finish(file, taken)
    };
    let made = made.await;
    store.close().await;
    made?;
    let bytes = std::fs::metadata(file).map(|known| known.len()).unwrap_or_default();
    if json {
        print_json(&json!({ "file": file, "bytes": bytes, "database": backend.to_string() }));
    } else {
        say(format_args!("{}: {bytes} bytes of {backend}", file.display()));
    }
    Ok(())
}

/// Writes everything into an empty file.
async fn write(database: &str, backend: Backend, into: &Path) -> Result<(), Failure> {
    match backend {
        Backend::Sqlite => {
            let name = into.to_str().ok_or_else(|| wrong("the name of the file is no text"))?;
            store::copy_sqlite(database, name).await.map_err(failed)
        }
        Backend::Postgres => {
            let arguments = ["--format=custom", "--no-owner", "--no-privileges", "--file"].map(str::to_owned);
            let arguments = [&arguments[..], &[into.display().to_string()]].concat();
            postgres("pg_dump", &arguments, database).and_then(|ran| succeeded("pg_dump", &ran))
        }
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
fn postgres(program: &str, arguments: &[String], database: &str) -> Result<Output, Failure> {
    let (url, password) = without_password(database);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if program == "pg_dump" {
        command.arg("--dbname").arg(url);
    }
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    let missing = |fault| format!("{program} is not there ({fault}): install the client programs of Postgres");
    command.output().map_err(|fault| Failure::new(Exit::Failure, missing(fault)))
}

fn succeeded(program: &str, ran: &Output) -> Result<(), Failure> {
    if ran.status.success() {
        return Ok(());
    }
    Err(Failure::new(Exit::Failure, format!("{program} failed: {}", fault_text(ran))))
}

fn fault_text(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).trim().to_owned()
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
