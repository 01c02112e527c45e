//! Stored state of a pool: its last snapshot and the facts after it.

use crate::commands::{again, holds};
use crate::is_one_line;
use placement::Policy;
use placement::pool::{Command, Fact, Pool, PoolRules, Snapshot};
use serde::Deserialize;
use vocab::UnixSeconds;
use wire::{FactRecord, SnapshotRecord};

/// Five years: every hour that passes is closed one by one.
const LONGEST_S: i64 = 5 * 366 * vocab::SECONDS_PER_DAY;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Journal {
    snapshot: Option<SnapshotRecord>,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    at_unix_s: i64,
    facts: Vec<FactRecord>,
}

/// Bytes that are read break no invariant and are stored as bytes that are read as the same; contradictions are
/// refused. The pool then decides as any other does.
pub fn journal(data: &[u8]) {
    let Ok(Journal { snapshot, entries }) = serde_json::from_slice(data) else { return };
    let rules = PoolRules::default();
    let mut pool = match snapshot.as_ref().map(Snapshot::try_from).transpose() {
        Err(fault) => return is_one_line(&fault.to_string()),
        Ok(None) => Pool::new(Policy::GFS, rules),
        Ok(Some(snapshot)) => match Pool::restore(&snapshot, Policy::GFS, rules) {
            Err(fault) => return is_one_line(&fault.to_string()),
            Ok(pool) => pool,
        },
    };
    comes_back(&pool);
    let mut last = snapshot.map(|snapshot| snapshot.demand_hour_unix_s.unwrap_or(snapshot.at_unix_s));
    for Entry { at_unix_s, facts } in entries {
        let at = UnixSeconds::new(at_unix_s);
        if at.in_calendar().is_err() || last.is_some_and(|last| at_unix_s.saturating_sub(last) > LONGEST_S) {
            break;
        }
        last = Some(at_unix_s);
        for record in facts {
            let applied = Fact::try_from(&record).map(|fact| pool.apply(at, &fact).map(drop));
            match applied {
                Err(fault) => return is_one_line(&fault.to_string()),
                Ok(Err(fault)) => return is_one_line(&fault.to_string()),
                Ok(Ok(())) => holds(&pool),
            }
        }
    }
    comes_back(&pool);
    let measured_from = pool.demand().parts().0.map_or(pool.now(), vocab::HourStart::instant);
    if pool.now().since_s(measured_from) <= LONGEST_S {
        decides(pool);
    }
}

fn comes_back(pool: &Pool) {
    holds(pool);
    let snapshot = pool.snapshot();
    let record: SnapshotRecord = again(&SnapshotRecord::from(&snapshot));
    let read = Snapshot::try_from(&record).expect("what is stored is read");
    assert_eq!(read, snapshot);
    let restored =
        Pool::restore(&read, *pool.policy(), PoolRules::default()).expect("a pool restores from its snapshot");
    assert_eq!(restored.snapshot(), snapshot, "as it was stored");
}

/// An hour passes, everybody who waits is tried, and all tasks end.
fn decides(mut pool: Pool) {
    let now = pool.now().plus_s(3_600);
    pool.retry(now);
    holds(&pool);
    let waiting: Vec<_> = pool.waiting().map(|waiting| waiting.request.gang.task.clone()).collect();
    let running: Vec<_> = pool.fleet().tasks().keys().cloned().collect();
    for task in waiting {
        pool.why_it_waits(&task);
        pool.handle(now, &Command::Delete { task }).1.expect("who waits can be taken back");
        holds(&pool);
    }
    for task in running {
        // It may have been deleted, having been evicted meanwhile.
        let _ = pool.handle(now, &Command::Finish { task });
        holds(&pool);
    }
}
