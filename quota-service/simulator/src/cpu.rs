//! CPU time of the process, as Linux counts it.

use std::time::Duration;

/// Ticks a second in `/proc/self/stat`, on every machine that Linux runs on.
const TICKS: f64 = 100.0;

/// CPU time of all threads of this process so far, those that have ended included, to a hundredth of a second; zero where the
/// system does not tell. Fits run on several threads.
#[must_use]
pub fn of_process() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program stands in brackets and may hold blanks; user and system time are the 12th and 13th after it.
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: f64 = after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Duration::from_secs_f64(ticks / TICKS)
}

/// CPU time of this thread so far; zero where the system does not tell.
#[must_use]
pub fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    nanoseconds.map_or(Duration::ZERO, Duration::from_nanos)
}

/// The largest memory of this process so far, in MiB; none where the system does not tell.
#[must_use]
pub fn peak_rss_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1_024.0)
}
