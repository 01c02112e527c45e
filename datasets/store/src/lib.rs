//! All SQL of Headroom. Postgres is the store of record, SQLite the embedded default; both behave alike.
//!
//! Each group of tables has a module with its trait and plain types, such as `nodes.rs`, and a module with its SQL,
//! `sql/nodes.rs`, written once for both databases. `postgres/` and `sqlite/` hold the connections, the transactions and
//! the few statements that differ. [`Store`] is the sum of the traits, and [`connect`] opens one.
//!
//! The crate decides and computes nothing: callers choose which run is promoted, how eta moves and how long data are kept.
//! It has no clock, except that the database notes when a series changed.
//!
//! Every operation is one transaction: it happens as a whole, or not at all.

#![allow(clippy::duplicate_mod, reason = "the folder `sql` is compiled once for each database")]

#[macro_use]
mod row;

mod audit;
mod calendars;
mod capacity;
mod clusters;
mod connect;
mod corrections;
mod error;
mod etas;
mod file;
mod inspect;
mod journal;
mod learned;
mod leases;
mod ledger;
mod log;
mod log_owner;
mod migrations;
mod node_hours;
mod nodes;
mod outcomes;
mod overrides;
mod pool_states;
mod postgres;
mod proofs;
mod quotas;
mod reservations;
mod runs;
mod settings;
mod sizes;
mod sqlite;
mod starts;
mod statements;
mod store;
mod stored;
mod tokens;
mod transaction;
mod usage;

pub use audit::{AuditEntry, AuditOf, AuditRecord, AuditStore};
pub use calendars::{CalendarStore, StoredCalendar};
pub use capacity::CapacityStore;
pub use clusters::{Cluster, ClusterStore};
pub use connect::{
    LONG_STATEMENT, check_existing, check_leftovers, check_url, connect, connect_existing, connect_within, copy_sqlite,
    inspect, remove_new_objects, server_objects, sqlite_file,
};
pub use corrections::{CorrectionStore, MakeAuditEntry, OutcomeBefore};
pub use error::StoreError;
pub use etas::{EtaMove, EtaRecord, EtaStore};
pub use inspect::{Inspected, Schema};
pub use journal::{
    JournalEntry, JournalStore, PlacedPool, PlacedPoolId, PoolSnapshot, StoredJournal, TaskRecord, TaskStatus, Turn,
};
pub use learned::{LearnedStore, NewLearned, StoredLearned};
pub use leases::{Lease, LeaseRecord, LeaseStore};
pub use ledger::{Calibration, IssuedForecasts, LedgerStore, ScoredForecasts, UnscoredIssue};
pub use node_hours::{NodeHour, NodeHourStore};
pub use nodes::NodeStore;
pub use outcomes::{EndedPeriod, EtaOutcomes, OutcomeCount, OutcomeId, OutcomeStore, Recorded, UnspentOutcome};
pub use overrides::{NewOverride, OverrideRecord, OverrideStore};
pub use pool_states::{PoolStateStore, ReceivedState};
pub use postgres::objects::ServerObjects;
pub use proofs::ProofStore;
pub use quotas::{QuotaBasis, QuotaStore, StoredQuota, StoredUnder};
pub use reservations::{NewReservation, ReservationRecord, ReservationStore};
pub use runs::{NewRun, Promotion, RunFacts, RunId, RunIdError, RunRecord, RunStore};
pub use settings::{PoolPlacement, SettingsStore, StoredSettings};
pub use sizes::{Integrity, Size, SizeStore};
pub use starts::StartStore;
pub use statements::{AccountedDay, StatementStore};
pub use store::{Backend, Store};
pub use tokens::{Role, TokenRecord, TokenStore};
pub use usage::{AppendReport, Merged, SeriesSummary, UsageBatches, UsageSink, UsageStore};
