//! What the process uses, as Linux counts it.

use std::time::Duration;

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
