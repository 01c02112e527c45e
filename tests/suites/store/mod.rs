//! The store answers alike on both databases.

mod calendars;
mod clusters;
mod etas;
mod faults;
mod full_disk;
mod gpu_time;
mod inspect;
mod journal;
mod leases;
mod ledger;
mod node_hours;
mod outcomes;
mod overrides;
mod pools;
mod quotas;
mod reservations;
mod retention;
mod runs;
mod schema;
mod starts;
mod statements;
mod upgrade;
mod usage;

pub use upgrade::at_version;
