//! The bounds of the numbers in bodies, in one place. Those of whole numbers are far above what any cluster has, and so far below
//! what the databases and sums of placement hold (2⁶³ − 1) that no count of them overflows. The OpenAPI document and the refusals of
//! the parser have them from [`WHOLE_NUMBERS`].

use crate::start::MOST_RUN_S;
use placement::fleet::GpuRequest;
use placement::policy::ReservationSettings;
use placement::pool::Elastic;
use placement::shares::{ShareSettings, Weights};
use vocab::{HorizonHours, MilliGpus};

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
/// The least speed: one thousandth.
pub const LEAST_SPEED: f64 = 0.001;
/// The largest multiple of a speed: no pod makes a task a million times as fast.
pub const MOST_SPEED: f64 = 1e6;
/// The largest measured speed.
pub const MOST_MEASURED_SPEED: f64 = 1e12;
/// Seconds of the lease of a connector: one that is gone keeps the others waiting for so long.
pub const MOST_LEASE_S: u64 = 600;

/// The whole numbers of bodies that have a range of their own: schema of the OpenAPI document, field, least, most. Of a list it is
/// that of the items, of a map that of the values; `u64::MAX` stands for none.
pub const WHOLE_NUMBERS: [(&str, &str, u64, u64); 33] = [
    ("TaskBody", "pods", 1, MOST_PODS as u64),
    ("TaskBody", "cpu_milli", 0, MOST_CPU_MILLI),
    ("TaskBody", "memory_mib", 0, MOST_MEMORY_MIB),
    ("TaskBody", "guarantee_hours", 1, HorizonHours::MAX as u64),
    ("StartQuestion", "pods", 1, MOST_PODS as u64),
    ("StartQuestion", "cpu_milli", 0, MOST_CPU_MILLI),
    ("StartQuestion", "memory_mib", 0, MOST_MEMORY_MIB),
    ("StartQuestion", "guarantee_hours", 1, HorizonHours::MAX as u64),
    ("PriceQuestion", "pods", 1, MOST_PODS as u64),
    ("PriceQuestion", "cpu_milli", 0, MOST_CPU_MILLI),
    ("PriceQuestion", "memory_mib", 0, MOST_MEMORY_MIB),
    ("PriceQuestion", "runs_s", 1, MOST_RUN_S),
    ("ElasticBody", "min_pods", 1, Elastic::MOST as u64),
    ("ElasticBody", "max_pods", 1, Elastic::MOST as u64),
    ("SpeedBody", "pods", 1, Elastic::MOST as u64),
    ("NodeBody", "gpus", 0, GpuRequest::MOST as u64),
    ("NodeBody", "cpu_milli", 0, MOST_CPU_MILLI),
    ("NodeBody", "memory_mib", 0, MOST_MEMORY_MIB),
    ("OutcomeBody", "guarantee_hours", 1, HorizonHours::MAX as u64),
    ("PoolStateBody", "longest_quota_wait_s", 0, MOST_WAIT_S),
    ("ConnectorLeaseRequest", "lease_s", 1, MOST_LEASE_S),
    ("SettingsBody", "offered_hours", 1, HorizonHours::MAX as u64),
    ("SettingsBody", "min_outcomes", 1, MOST_OUTCOMES),
    ("SettingsBody", "max_quota_wait_s", 0, MOST_WAIT_S),
    ("SettingsBody", "max_request_multiple", 1, u32::MAX as u64),
    ("ReservationsBody", "hp_heads", 0, ReservationSettings::MOST_HEADS as u64),
    ("ReservationsBody", "spot_heads", 0, ReservationSettings::MOST_HEADS as u64),
    ("ReservationsBody", "hp_after_s", 0, ReservationSettings::MOST_AFTER_S as u64),
    ("ReservationsBody", "spot_after_s", 0, ReservationSettings::MOST_AFTER_S as u64),
    ("ReservationsBody", "quota_percent", 1, 100),
    ("SharesBody", "half_life_hours", 1, ShareSettings::MOST_HALF_LIFE_HOURS as u64),
    ("SharesBody", "weights", 1, Weights::MOST as u64),
    ("VictimsBody", "usage_window_s", 1, u64::MAX),
];

/// The least amount of GPUs that is not 0.
const LEAST_GPUS: f64 = 0.001;
/// The largest that a field may state.
const MOST_GPUS: f64 = MilliGpus::MOST_STATED_GPUS as f64;

/// As [`WHOLE_NUMBERS`], of the other numbers of bodies. It states the ranges for the OpenAPI document; each has its refusal where it is
/// parsed.
pub const DECIMALS: [(&str, &str, f64, f64); 20] = [
    ("TaskBody", "gpus_per_pod", LEAST_GPUS, GpuRequest::MOST as f64),
    ("StartQuestion", "gpus_per_pod", LEAST_GPUS, GpuRequest::MOST as f64),
    ("PriceQuestion", "gpus_per_pod", LEAST_GPUS, GpuRequest::MOST as f64),
    ("OverrideRequest", "gpus", LEAST_GPUS, MOST_GPUS),
    ("ReservationRequest", "gpus", LEAST_GPUS, MOST_GPUS),
    ("HpJobBody", "gpus", LEAST_GPUS, MOST_GPUS),
    ("OutcomeBody", "gpus", LEAST_GPUS, MOST_GPUS),
    ("PoolStateBody", "capacity_gpus", 0.0, MOST_GPUS),
    ("PoolStateBody", "idle_gpus", 0.0, MOST_GPUS),
    ("PoolStateBody", "spot_gpus_by_guarantee_hours", 0.0, MOST_GPUS),
    ("UsageRowBody", "demand_gpus", 0.0, MOST_GPUS),
    ("UsageRowBody", "demand_at_end_gpus", 0.0, MOST_GPUS),
    ("SettingsBody", "guarantee_rate", 0.000_001, 0.999_999),
    ("SettingsBody", "eta_start", 0.001, 1_000.0),
    ("SettingsBody", "eta_least", 0.001, 1_000.0),
    ("SettingsBody", "eta_most", 0.001, 1_000.0),
    ("SpeedBody", "speed", LEAST_SPEED, MOST_MEASURED_SPEED),
    ("ElasticBody", "speeds", LEAST_SPEED, MOST_SPEED),
    ("ScoreBody", "alpha", 0.0, 1.0),
    ("VictimsBody", "usage_weight", 0.0, 1_000.0),
];

/// The largest number that the databases hold.
const HELD: u64 = i64::MAX as u64;
const _: () = assert!(MOST_CPU_MILLI < HELD / MOST_PODS as u64, "the CPUs of a task are a number of the database");
const _: () = assert!(MOST_MEMORY_MIB < HELD / MOST_PODS as u64, "the memory of a task is a number of the database");
