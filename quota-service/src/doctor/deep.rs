//! `doctor --deep`: reads the whole database, and compares what is stored with the checksums that are stored beside it.

use super::Check;
use store::{Integrity, Store, StoreError};

const RESTORE: &str = "quota-service database restore FILE, into a new database, and check the disk";

/// The integrity checks of the database, every run's checksum, and every snapshot's.
pub async fn checks(store: &dyn Store) -> Result<Vec<Check>, StoreError> {
    let mut checks: Vec<Check> = store.integrity().await?.iter().map(database).collect();
    checks.extend(checksums(store).await?);
    Ok(checks)
}

/// Every run's checksum, and every snapshot's.
pub async fn checksums(store: &dyn Store) -> Result<Vec<Check>, StoreError> {
    let (mut checks, mut damaged) = (Vec::new(), Vec::new());
    let runs = store.runs(None).await?;
    for run in &runs {
        note(store.checkpoint(run.id).await.map(drop), &mut damaged)?;
    }
    checks.push(stored("checksums of runs", runs.len(), &damaged));
    let (mut damaged, mut snapshots) = (Vec::new(), 0);
    for placed in store.placed_pools().await? {
        let read = store.pool_snapshot(placed.id).await;
        snapshots += usize::from(!matches!(read, Ok(None)));
        note(read.map(drop).map_err(|fault| with_pool(fault, &placed.pool)), &mut damaged)?;
    }
    checks.push(stored("checksums of snapshots", snapshots, &damaged));
    Ok(checks)
}

fn with_pool(fault: StoreError, pool: &vocab::PoolId) -> StoreError {
    match fault {
        StoreError::Corrupt { what, reason } => StoreError::Corrupt { what: format!("{what} of {pool}"), reason },
        other => other,
    }
}

/// Damage is collected; anything else ends the check.
fn note(read: Result<(), StoreError>, damaged: &mut Vec<String>) -> Result<(), StoreError> {
    match read {
        Err(StoreError::Corrupt { what, reason }) => damaged.push(format!("{what}: {reason}")),
        other => other?,
    }
    Ok(())
}

fn database(found: &Integrity) -> Check {
    let Integrity { check, faults, unchecked } = found;
    match (faults.as_slice(), unchecked) {
        ([], None) => Check::ok(check, "the whole database is sound"),
        ([], Some(why)) => Check::ok(check, format!("not checked: {why}")),
        _ => Check::fail(check, faults.join("; "), RESTORE),
    }
}

fn stored(name: &str, count: usize, damaged: &[String]) -> Check {
    match damaged {
        [] => Check::ok(name, format!("{count} read, none is damaged")),
        _ => Check::fail(name, damaged.join("; "), RESTORE),
    }
}
