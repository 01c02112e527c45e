//! SQL that both databases understand, written once.
//!
//! The folder is compiled twice: as `postgres::sql` and as `sqlite::sql`. `dialect` is the module that holds it:
//! it names the types of its database ([`SqlStore`], [`SqlConnection`]) and has the statements that the databases write in
//! different ways. A new column or query of an owner of data is added here alone.

mod audit;
mod calendars;
mod capacity;
mod clusters;
mod corrections;
mod etas;
mod journal;
mod learned;
mod ledger;
mod node_hours;
mod nodes;
mod outcomes;
mod overrides;
mod pool_states;
mod proofs;
mod quotas;
mod runs;
mod settings;
mod sizes;
mod tokens;

use super as dialect;
use dialect::{SqlConnection, SqlStore};
