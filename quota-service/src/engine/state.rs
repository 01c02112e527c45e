//! A pool in memory, and how it is read back from what was written.

use super::tally::{self, Queued};
use super::watched::{Downtime, Measured, watched_until};
use crate::published::TasksNow;
use crate::reservations;
use crate::settings::{self, PlacementSettings};
use accounts::Accounts;
use placement::pool::{Command, Fact, Pool, PoolRules, Snapshot};
use placement::power::NodePower;
use placement::{Limit, Policy};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{JournalEntry, PlacedPool, PoolPlacement, PoolSnapshot, Store, StoreError, StoredJournal};
use vocab::{HourStart, PlacedBy, PoolId, ReservedWindow, UnixSeconds};
use wire::{AccountsRecord, FactRecord, SnapshotRecord};

/// Entries that stay behind a snapshot: events that a client or the webhook may still ask for.
const ENTRIES_KEPT: u64 = 100_000;

/// A snapshot as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// The first hour whose demand was seen whole.
    measured_from_unix_s: Option<i64>,
    pool: SnapshotRecord,
}

/// A pool as its writer holds it.
pub struct State {
    pub placed: PlacedPool,
    pub pool: Pool,
    /// Where the GPU time of the pool went.
    pub accounts: Accounts,
    /// The last entry that was written.
    pub seq: u64,
    /// Since the last snapshot.
    pub facts: u64,
    pub measured_from: Option<HourStart>,
    /// Before the pool was loaded; none where that cost no hour, and once its hours are behind.
    pub downtime: Option<Downtime>,
    /// None while it is undecided.
    pub placed_by: Option<PoolPlacement>,
    pub placement: PlacementSettings,
    /// Since when tasks wait.
    pub queued: Queued,
    /// Windows that are sold ahead.
    pub windows: Vec<ReservedWindow>,
    /// Power of the nodes, if known for their GPU model.
    power: Option<NodePower>,
    /// The pool as it would be, where nothing is enforced. In memory only.
    pub shadow: Option<Pool>,
}

/// A pool as it is read back.
pub struct Rebuilt {
    pub pool: Pool,
    pub accounts: Accounts,
    /// The first hour whose demand was seen whole.
    pub measured_from: Option<HourStart>,
    /// Facts after the snapshot.
    pub facts: u64,
}

/// A pool from its last snapshot and the entries after it.
///
/// # Errors
/// The journal is damaged.
pub fn rebuild(journal: &StoredJournal, policy: Policy, rules: PoolRules) -> Result<Rebuilt, StoreError> {
    let damaged =
        |reason: String| StoreError::Corrupt { what: format!("the journal of {}", journal.placed.pool), reason };
    let (mut pool, mut measured_from) = match &journal.snapshot {
        None => (Pool::new(policy, rules), None),
        Some(stored) => {
            let stored: Stored = wire::from_json(&stored.snapshot_json).map_err(|fault| damaged(fault.to_string()))?;
            let from = stored.measured_from_unix_s.map(HourStart::from_unix_s);
            let from = from.transpose().map_err(|fault| damaged(fault.to_string()))?;
            let snapshot = Snapshot::try_from(&stored.pool).map_err(|fault| damaged(fault.to_string()))?;
            (Pool::restore(&snapshot, policy, rules).map_err(|fault| damaged(fault.to_string()))?, from)
        }
    };
    let stored = journal.snapshot.as_ref().and_then(|stored| stored.accounts_json.as_deref());
    let mut accounts =
        stored.and_then(|text| accounts_of(journal, text, &pool)).unwrap_or_else(|| Accounts::begin(&pool));
    let mut facts = 0;
    for entry in &journal.entries {
        for fact in facts_of(entry).map_err(|reason| damaged(format!("entry {}: {reason}", entry.seq)))? {
            measured_from = measured_from.or_else(|| first_whole_hour(&fact, entry.at));
            let then = pool.apply(entry.at, &fact);
            let then = then.map_err(|fault| damaged(format!("entry {}: {fault}", entry.seq)))?;
            accounts.apply(&pool, &fact, &then);
            facts += 1;
        }
    }
    Ok(Rebuilt { pool, accounts, measured_from, facts })
}

/// Goes on with a pool that was read back, by the entries that came since.
///
/// # Errors
/// The journal is damaged, or the entries do not follow what was read.
pub fn read_on(pool: &mut Pool, id: &PoolId, entries: &[JournalEntry]) -> Result<(), StoreError> {
    for entry in entries {
        let damaged = |reason: String| StoreError::Corrupt {
            what: format!("entry {} of the journal of {id}", entry.seq),
            reason,
        };
        for fact in facts_of(entry).map_err(damaged)? {
            pool.apply(entry.at, &fact).map_err(|fault| damaged(fault.to_string()))?;
        }
    }
    Ok(())
}

/// The accounts beside a snapshot. Accounts that cannot be read begin again: no decision depends on them.
fn accounts_of(journal: &StoredJournal, text: &str, pool: &Pool) -> Option<Accounts> {
    let parts = wire::from_json::<AccountsRecord>(text).map_err(|fault| fault.to_string());
    let parts = parts.and_then(|record| accounts::Parts::try_from(&record).map_err(|fault| fault.to_string()));
    let restored = parts.and_then(|parts| {
        Accounts::restore(parts, pool).ok_or_else(|| "they are of another state of the pool".to_owned())
    });
    restored
        .inspect_err(|why| tracing::warn!(pool = %journal.placed.pool, why, "the accounts of GPU time begin again"))
        .ok()
}

fn facts_of(entry: &JournalEntry) -> Result<Vec<Fact>, String> {
    let records: Vec<FactRecord> = wire::from_json(&entry.facts_json).map_err(|fault| fault.to_string())?;
    records.iter().map(|record| Fact::try_from(record).map_err(|fault| fault.to_string())).collect()
}

/// The hour after the one in which the first task came: of that one, only a part was seen.
pub fn first_whole_hour(fact: &Fact, at: UnixSeconds) -> Option<HourStart> {
    matches!(fact, Fact::Submitted { .. }).then(|| at.hour().ok()).flatten().map(|hour| hour.plus_hours(1))
}

fn rules(placement: &PlacementSettings, power: Option<NodePower>) -> PoolRules {
    PoolRules { power, ..placement.rules() }
}

impl State {
    /// Reads what is stored of a pool, `now`; this service has watched it until `watched`, if it did before.
    ///
    /// # Errors
    /// The database does not answer, or what it holds is damaged.
    pub async fn load(
        store: &dyn Store,
        id: &PoolId,
        power: Option<NodePower>,
        watched: Option<UnixSeconds>,
        now: UnixSeconds,
    ) -> Result<Self, StoreError> {
        let (placement, placed_by) = (settings::load(store, id).await?.placement, store.placement(id).await?);
        let journal = store.open_journal(id).await?;
        let Rebuilt { pool, accounts, measured_from, facts } =
            rebuild(&journal, placement.policy(), rules(&placement, power))?;
        let pool = pool.with_weights(Arc::new(placement.weights()));
        let placed = journal.placed;
        let shadow = placement.shadow.then(|| pool.clone());
        let queued = tally::queued(&pool);
        let seq = placed.seq;
        let mut state = Self {
            placed,
            pool,
            accounts,
            seq,
            facts,
            measured_from,
            downtime: None,
            placed_by,
            placement,
            queued,
            windows: reservations::ahead(store, id, now).await?,
            power,
            shadow,
        };
        state.tell_windows();
        state.downtime = state.downtime_before(store, watched, now).await?;
        Ok(state)
    }

    /// The time before `now` in which no writer ran, where hours of it would be usage.
    async fn downtime_before(
        &self,
        store: &dyn Store,
        watched: Option<UnixSeconds>,
        now: UnixSeconds,
    ) -> Result<Option<Downtime>, StoreError> {
        let known = watched.map_or(self.pool.now(), |watched| watched.max(self.pool.now()));
        if self.measured().from.is_none() || Downtime::between(known, now).is_none() {
            return Ok(None);
        }
        let until = watched_until(store, &self.placed.pool, known, now).await?;
        let downtime = Downtime::between(until, now);
        if downtime.is_some() {
            tracing::warn!(pool = %self.placed.pool, from = %until, to = %now, "no writer ran for the pool: its usage has a gap");
        }
        Ok(downtime)
    }

    /// Once time has passed beyond a downtime, its hours are behind: stores the state, so that no later start takes them for hours
    /// that were watched.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn end_downtime(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let Some(downtime) = self.downtime.filter(|downtime| downtime.to() <= self.pool.now()) else { return Ok(()) };
        self.measured_from =
            self.measured_from.map(|from| downtime.measured_from().map_or(from, |next| next.max(from)));
        self.save(store).await?;
        self.downtime = None;
        Ok(())
    }

    /// Stores the state, and forgets the entries that it stands for.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn save(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let stored = Stored {
            measured_from_unix_s: self.measured_from.map(HourStart::unix_s),
            pool: SnapshotRecord::from(&self.pool.snapshot()),
        };
        let snapshot_json = serde_json::to_string(&stored).expect("a snapshot has strings and numbers");
        let accounts = AccountsRecord::from(&self.accounts.parts());
        let accounts_json = Some(serde_json::to_string(&accounts).expect("accounts have strings and numbers"));
        let snapshot = PoolSnapshot { seq: self.seq, snapshot_json, accounts_json };
        store.put_pool_snapshot(self.placed.id, &snapshot, self.seq.saturating_sub(ENTRIES_KEPT)).await?;
        self.facts = 0;
        Ok(())
    }

    /// Goes on under other settings.
    pub fn set(&mut self, placement: PlacementSettings) {
        let rules = rules(&placement, self.power);
        match Pool::restore(&self.pool.snapshot(), placement.policy(), rules) {
            Ok(pool) => self.pool = pool.with_weights(Arc::new(placement.weights())),
            // A pool restores from its own snapshot, unless there is a bug: the old settings then stay.
            Err(fault) => {
                return tracing::error!(pool = %self.placed.pool, %fault, "the policy is not changed: the pool does not restore from its snapshot");
            }
        }
        self.tell_windows();
        self.shadow = placement.shadow.then(|| self.pool.clone());
        if placement.policy().shares != self.placement.policy().shares {
            // Use under other shares is measured from now on: a snapshot after this turn keeps what it was until now.
            self.facts = u64::MAX;
        }
        self.placement = placement;
    }

    /// Tells the pool its windows, and the shadow.
    pub fn tell_windows(&mut self) {
        self.pool.set_windows(self.windows.clone());
        if let Some(shadow) = &mut self.shadow {
            shadow.set_windows(self.windows.clone());
        }
    }

    /// The side that places the pool; none while it is undecided.
    #[must_use]
    pub fn side(&self) -> Option<PlacedBy> {
        self.placed_by.as_ref().map(|placement| placement.placed_by)
    }

    /// The tasks of the pool; `None` where Headroom does not place them.
    pub fn shown(&mut self) -> Option<TasksNow> {
        let is_here = self.side() == Some(PlacedBy::Headroom);
        is_here.then(|| TasksNow::of(&mut self.pool, self.placed.pool.clone()))
    }

    /// The hours whose demand is usage: those from the first whole one on in which Headroom places, downtime left out. What an
    /// external scheduler places is not seen here, and is no demand of zero.
    #[must_use]
    pub fn measured(&self) -> Measured {
        let placement = self.placed_by.as_ref().filter(|placement| placement.placed_by == PlacedBy::Headroom);
        let from = placement.and_then(|placement| {
            let since = placement.since.and_then(|since| since.hour().ok()).map(|hour| hour.plus_hours(1));
            self.measured_from.max(self.measured_from.and(since))
        });
        Measured { from, downtime: self.downtime }
    }

    /// Real events reach the shadow: limits, nodes, time, and tasks from before it that save and end.
    pub fn follow(&mut self, now: UnixSeconds, command: &Command) {
        let Some(shadow) = &mut self.shadow else { return };
        // It may know less than the pool: what does not fit it does not matter.
        let done = shadow.handle(now, command).1;
        if let (Err(_), Command::Finish { task }) = (done, command) {
            // One that runs for real and was evicted here is over here, too.
            let _ = shadow.handle(now, &Command::Delete { task: task.clone() });
        }
    }

    /// The present limits.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        self.pool.limits()
    }
}
