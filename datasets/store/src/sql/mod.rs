//! SQL that both databases understand, written once.
//!
//! This folder is compiled twice: as `postgres::sql` and as `sqlite::sql`. `dialect` is the parent module. It names the
//! types of its database ([`SqlStore`], [`SqlConnection`], [`SqlTransaction`]) and has the statements that differ between
//! the databases. A new column or query is added here, once.

mod audit;
mod calendars;
mod capacity;
mod clusters;
mod corrections;
mod etas;
mod journal;
mod learned;
mod leases;
mod ledger;
mod node_hours;
mod nodes;
mod outcomes;
mod overrides;
mod pool_states;
mod proofs;
mod quotas;
mod reservations;
mod runs;
mod settings;
mod sizes;
mod starts;
mod statements;
mod store;
mod tokens;
mod usage;

use super as dialect;
use dialect::{SqlConnection, SqlStore, SqlTransaction};
