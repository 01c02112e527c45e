//! The bounds of the whole numbers in bodies, in one place: far above what any cluster has, and so far below what the databases and
//! sums of placement hold (2⁶³ − 1) that no count of them overflows.

/// Thousandths of a virtual CPU, of a node or a pod: a million CPUs.
pub const MOST_CPU_MILLI: u64 = 1_000_000_000;
/// Memory of a node or a pod: a pebibyte.
pub const MOST_MEMORY_MIB: u64 = 1 << 30;
/// Pods of a task: more than any job has had, and so few that a place for each is no load, also where they ask for no GPU.
pub const MOST_PODS: u32 = 16_384;
/// Seconds of waiting, reported or allowed: ten years.
pub const MOST_WAIT_S: u64 = 10 * 366 * vocab::SECONDS_PER_DAY as u64;
/// HP jobs of a reported state: more would make it larger than a report every few seconds should be.
pub const MOST_HP_JOBS: usize = 10_000;
/// Outcomes that a move of eta may ask for.
pub const MOST_OUTCOMES: u64 = 1_000_000_000;

/// The largest number that the databases hold.
const HELD: u64 = i64::MAX as u64;
const _: () = assert!(MOST_CPU_MILLI < HELD / MOST_PODS as u64, "the CPUs of a task are a number of the database");
const _: () = assert!(MOST_MEMORY_MIB < HELD / MOST_PODS as u64, "the memory of a task is a number of the database");
