//! `quota-service doctor`: checks of the installation, each with its finding and a fix. It changes nothing.
//!
//! Each part answers a list of [`Check`]s; [`examine`] puts them in order. A new source of checks is one more line there.

mod access;
mod clusters;
mod collector;
mod database;
pub(crate) mod deep;
mod files;
mod growth;
mod holder;
mod leases;
mod listen;
mod machine;
mod pools;
mod prometheus;

pub use command_line::{Check, Status, ago, span};

use crate::args::DoctorFlags;
use crate::clock::Clock;
use crate::config::{Config, aged_between_renewals};
use crate::serve;
use command_line::{ConfigError, Entry, Exit, Failure, Report, Settings};
use std::time::SystemTime;
use store::{Store, StoreError};

/// Examines everything, and prints what was found.
///
/// # Errors
/// 4 where the settings are invalid, 5 where the database cannot be reached, 3 where its file is damaged, 1 where anything else fails, or where something
/// is to be warned of and `--strict` was given.
pub async fn run(
    settings: Result<Settings<Config>, ConfigError>,
    flags: &DoctorFlags,
    json: bool,
) -> Result<(), Failure> {
    let examined = async |config: &Config, entries: &[Entry]| examine(config, entries, flags.deep).await;
    command_line::doctor("quota-service", settings, (flags.strict, json), examined).await
}

/// Every check, and how the program ends where one fails.
async fn examine(config: &Config, entries: &[Entry], is_deep: bool) -> (Report, Exit) {
    // 1. The machine: what needs no database.
    let mut checks = vec![Check::settings(entries), machine::clock(SystemTime::now())];
    checks.extend(renewals(config));
    checks.extend(machine::folders(config));
    checks.extend(files::of(config, Clock::real().now()));
    checks.push(listen::check(config).await);
    checks.extend(collector::of(config).await);
    checks.extend(prometheus::of(config, Clock::real().now()).await);
    // 2. The database.
    let inspected = match store::inspect(&config.database).await {
        Ok(inspected) => inspected,
        Err(fault) => {
            checks.push(database::unreachable(entries, &fault));
            // A file that no retry repairs: the service ends in the same way.
            let is_damaged = fault.is_leftover() || fault.is_bad_data() && !fault.is_no_database();
            let exit = if is_damaged { Exit::DataInvalid } else { Exit::Unavailable };
            return (Report::of(checks), exit);
        }
    };
    checks.extend(database::of(&inspected, entries));
    // 3. What is in it.
    if inspected.schema.fits() {
        let store = inspected.store.as_ref();
        let mut found = stored(store, config, &mut checks).await;
        if is_deep && found.is_ok() {
            found = deep::checks(store).await.map(|deep| checks.extend(deep));
        }
        if let Err(fault) = found {
            checks.push(Check::fail("database content", &fault, database::fix(&fault)));
        }
    }
    inspected.store.close().await;
    (Report::of(checks), Exit::Failure)
}

/// Whether quotas are renewed while they are fresh.
fn renewals(config: &Config) -> Option<Check> {
    let fix = "set refresh_s to 600 or less, 300 by default; reports of states and usage renew quotas earlier";
    aged_between_renewals(config.refresh_s).map(|cost| Check::warn("refresh_s", cost, fix))
}

async fn stored(store: &dyn Store, config: &Config, checks: &mut Vec<Check>) -> Result<(), StoreError> {
    let clock = match serve::clock(config, store).await {
        Ok(clock) => clock,
        Err(fault) => {
            checks.push(Check::fail("as_of", fault, "set as_of = \"\" for the real clock"));
            Clock::real()
        }
    };
    checks.push(growth::check(store, &config.database).await?);
    checks.extend(access::tokens(&store.tokens().await?, config, Clock::real().now()));
    let clusters = store.clusters().await?;
    if clusters.is_empty() {
        let fix = "datasets ingest --format usage FILE";
        checks.push(Check::fail("clusters", "no clusters", fix));
    }
    for cluster in &clusters {
        let found = clusters::of(store, cluster, clock.now(), checks).await?;
        for pool in found {
            checks.extend(pools::of(store, &pool, config, &clock).await?);
        }
    }
    // Under a virtual clock a service writes nothing, and takes no lease.
    if !clock.is_virtual() {
        checks.extend(leases::of(store, config, &clusters).await?);
    }
    Ok(())
}

const SECONDS_PER_DAY: i64 = vocab::SECONDS_PER_DAY;
