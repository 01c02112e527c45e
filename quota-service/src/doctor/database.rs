//! Checks of the database: it answers, has the schema of this program, and its clock agrees.

use super::{Check, span};
use command_line::Entry;
use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Backend, Inspected, Schema, StoreError};

/// A round trip that takes longer makes each decision wait.
const SLOW_MS: u128 = 100;
/// Guarantees are counted in seconds, and each service judges their ends by its own clock.
const SKEW_WARN_MS: i64 = 2_000;
/// Beyond it the age of a quota of 600 s is wrong by a tenth.
const SKEW_FAIL_MS: i64 = 60_000;

/// URL of the database, without its password.
fn url(entries: &[Entry]) -> &str {
    entries.iter().find(|entry| entry.key == "database").map_or("", |entry| entry.value.as_str())
}

/// Fix of a fault of the database.
pub fn fix(fault: &StoreError) -> &'static str {
    match fault {
        StoreError::NoFile { .. } => {
            "start quota-service or run datasets ingest to create it, set database, or run this in the folder of the file"
        }
        StoreError::Leftover { .. } => "put the database file back beside its log, or move the log away",
        StoreError::OtherLog { .. } => "put the log of the database back, or move the other one away",
        StoreError::Denied { .. } => "correct database (DATABASE_URL), or grant the rights to this user",
        StoreError::Tls { .. } => "correct sslmode, sslrootcert and the host in database (DATABASE_URL)",
        StoreError::Corrupt { .. } => "quota-service database restore FILE, into a new database",
        StoreError::Full { .. } => "free space on the disk of the database, or let this user write to it",
        StoreError::Schema { .. } => "as the error says, or run the program that made the database",
        StoreError::OtherDatabase { .. } | StoreError::OtherTables { .. } => {
            "set database (DATABASE_URL) to the database of Headroom, or to an empty one"
        }
        _ => "start the database, or set database (DATABASE_URL) to where it runs",
    }
}

/// The one check of a database that is not there.
pub fn unreachable(entries: &[Entry], fault: &StoreError) -> Check {
    Check::fail("database", format!("{}: {fault}", url(entries)), fix(fault))
}

/// The checks of one that answers.
pub fn of(inspected: &Inspected, entries: &[Entry]) -> Vec<Check> {
    let mut checks = vec![reached(inspected, entries), schema(inspected.schema)];
    // SQLite has no clock but that of this machine.
    if inspected.backend == Backend::Postgres {
        let own = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let own = own.saturating_sub(inspected.clock_at.elapsed());
        let own_unix_ms = i64::try_from(own.as_millis()).unwrap_or(i64::MAX);
        checks.push(skew(inspected.clock_unix_ms - own_unix_ms));
    }
    checks
}

fn reached(inspected: &Inspected, entries: &[Entry]) -> Check {
    let Inspected { backend, server_version, latency, .. } = inspected;
    let found = format!("{}: {backend} {server_version}, {:.1} ms", url(entries), latency.as_secs_f64() * 1e3);
    if !inspected.takes_writes {
        let fix = match backend {
            Backend::Postgres => {
                "name the server that takes writes, no standby; ALTER DATABASE or ROLE: RESET default_transaction_read_only"
            }
            Backend::Sqlite => "let this user write to the file and its folder",
        };
        return Check::fail("database", format!("{found}, takes no writes"), fix);
    }
    if latency.as_millis() > SLOW_MS {
        return Check::warn("database", found, "run quota-service nearer to its database: each decision waits for it");
    }
    Check::ok("database", found)
}

fn schema(schema: Schema) -> Check {
    let Schema { found, expected, broken } = schema;
    if let Some(version) = broken {
        let found = format!("migration {version} was applied with another text, or only in part");
        return Check::fail("schema", found, "run the program that applied it, or quota-service database restore");
    }
    let has = found.map_or_else(|| "the database is empty".to_owned(), |version| format!("version {version}"));
    match schema.age() {
        Ordering::Equal => Check::ok("schema", has),
        Ordering::Less => {
            let found = format!("{has}, and this program needs {expected}: the content was not checked");
            Check::fail("schema", found, "start quota-service: it migrates the database")
        }
        Ordering::Greater => {
            let found = format!("{has}, and this program knows {expected}: the content was not checked");
            Check::fail("schema", found, "install the newer program")
        }
    }
}

fn skew(ahead_ms: i64) -> Check {
    let (by, fix) = (ahead_ms.abs(), "timedatectl set-ntp true, on this machine and that of the database");
    let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let found = if by < SKEW_WARN_MS {
        format!("that of the database is {by} ms {way} that of this machine")
    } else {
        format!("that of the database is {} {way} that of this machine", span(by / 1_000))
    };
    match by {
        _ if by > SKEW_FAIL_MS => Check::fail("clock skew", found, fix),
        _ if by > SKEW_WARN_MS => Check::warn("clock skew", found, fix),
        _ => Check::ok("clock skew", found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_warned_of_then_fails_whichever_way() {
        let status = |ms: i64| [skew(ms).status, skew(-ms).status];
        assert_eq!([0, 2_000].map(status), [[Status::Ok; 2]; 2]);
        assert_eq!([2_001, 60_000].map(status), [[Status::Warn; 2]; 2]);
        assert_eq!(status(60_001), [Status::Fail; 2]);
        assert!(skew(-7_300_000).found.contains("2 h behind"), "{}", skew(-7_300_000).found);
    }

    #[test]
    fn a_start_migrates_an_old_schema_and_a_new_schema_needs_a_new_program() {
        let of = |found, broken| schema(Schema { found, expected: 8, broken });
        assert_eq!(of(Some(8), None).status, Status::Ok);
        assert_eq!(of(Some(7), None).fix.as_deref(), Some("start quota-service: it migrates the database"));
        assert_eq!(of(None, None).status, Status::Fail);
        assert_eq!(of(Some(9), None).fix.as_deref(), Some("install the newer program"));
        assert_eq!(of(Some(8), Some(3)).status, Status::Fail);
    }
}
