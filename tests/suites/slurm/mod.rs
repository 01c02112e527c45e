//! Headroom on Slurm: records out of files, and what a real Slurm prints and obeys.

mod doctor;
mod end_to_end;
mod evicted;
mod files;
mod hook;
mod observed;
mod published;
mod stub;

use serde_json::Value;
use std::time::{Duration, Instant};
use stub::Stub;
use tests::{Lent, Listening, Ran, program_with};

/// Time for what has to come.
const PATIENCE: Duration = Duration::from_mins(1);
/// Quick enough for a test.
const QUICK: [(&str, &str); 12] = [
    ("HEADROOM_SPOT_QOS", "spot1h=1,spot4h=4"),
    ("HEADROOM_SLURM_COMMAND_TIMEOUT_S", "2"),
    ("HEADROOM_LOOK_S", "1"),
    ("HEADROOM_POLL_S", "1"),
    ("HEADROOM_REPORT_S", "1"),
    ("HEADROOM_ACCOUNTING_S", "1"),
    ("HEADROOM_PUBLISH_S", "1"),
    ("HEADROOM_RAISE_AFTER_S", "1"),
    ("HEADROOM_LEASE_S", "5"),
    ("HEADROOM_WATCHDOG_AFTER_S", "8"),
    ("HEADROOM_WATCHDOG_CHECK_S", "1"),
    ("HEADROOM_HOOK_VALID_S", "15"),
];

/// Flags and variables of a program beside a cluster.
fn flags(slurm: &Lent, headroom: &str) -> Vec<String> {
    let flags = ["--cluster", "earth", "--slurm-conf", &slurm.conf(), "--headroom-url", headroom];
    flags.map(str::to_owned).to_vec()
}

fn variables<'a>(slurm: &Lent, paths: &'a mut Vec<String>, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    *paths = vec![slurm.path("heartbeat"), slurm.path("quota")];
    let own = [("HEADROOM_HEARTBEAT_FILE", paths[0].as_str()), ("HEADROOM_QUOTA_FILE", paths[1].as_str())];
    QUICK.iter().copied().chain(own).chain(more.iter().copied()).collect()
}

/// A `headroom-slurm` that runs.
fn connector(slurm: &Lent, command: &str, headroom: &str, more: &[(&str, &str)]) -> Listening {
    let flags = flags(slurm, headroom);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut paths = Vec::new();
    let variables = variables(slurm, &mut paths, more);
    Listening::of("headroom-slurm", &[&[command, "--listen", "127.0.0.1:0", "--json"], &flags[..]].concat(), &variables)
}

/// A `headroom-slurm` that ends.
fn ran(slurm: &Lent, arguments: &[&str], headroom: &str, more: &[(&str, &str)]) -> Ran {
    let flags = flags(slurm, headroom);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut paths = Vec::new();
    program_with("headroom-slurm", &[arguments, &flags[..]].concat(), &variables(slurm, &mut paths, more))
}

/// Waits until something is so; answers it, and after how long.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> (T, Duration) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(found) = look() {
            return (found, start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: not within {} s", PATIENCE.as_secs())
}

/// Waits for the next hour where the present one ends within so many seconds: hours that are over are reported, and quotas move.
fn away_from_the_end_of_the_hour(least_s: u64) {
    let left_s = 3_600 - chrono::Utc::now().timestamp().rem_euclid(3_600).unsigned_abs();
    if left_s < least_s {
        std::thread::sleep(Duration::from_secs(left_s + 1));
    }
}

/// Waits until the GPUs of a state are these.
fn until_state(stub: &Stub, pool: &str, wanted: &[(&str, Value)]) -> Duration {
    let is_so = |state: &Value| wanted.iter().all(|(key, value)| &state[*key] == value);
    let mut last = None;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("the state", || {
            last = stub.state(pool);
            last.as_ref().is_some_and(is_so).then_some(())
        })
    }));
    found.unwrap_or_else(|_| panic!("{pool}: {last:?} is not {wanted:?}")).1
}
