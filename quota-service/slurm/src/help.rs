//! Help texts of the metrics. Names have units, counters end in `_total`.

use connectors::help::{Help, Text};

const GAUGES: [Text; 15] = [
    ("headroom_slurm_controller_up", "1 if jobs and nodes could be read at the last look, else 0"),
    ("headroom_slurm_accounting_up", "1 if the accounting could be read at the last look, else 0"),
    ("headroom_slurm_jobs", "Jobs with GPUs that wait or run, a record each"),
    ("headroom_slurm_nodes", "Nodes with GPUs"),
    (
        "headroom_slurm_untyped_jobs",
        "Jobs that wait without a GPU type and count in each pool that they could start in",
    ),
    ("headroom_slurm_capacity_gpus", "GPUs that could be used"),
    ("headroom_slurm_idle_gpus", "GPUs that a job could have now"),
    ("headroom_slurm_spot_gpus", "GPUs that spot jobs hold, promised or at will"),
    ("headroom_slurm_hp_demand_gpus", "GPUs that HP jobs hold or wait for"),
    ("headroom_slurm_hp_wait_seconds", "Wait so far of the HP job that waits longest; 0 while none waits"),
    ("headroom_slurm_leads", "1 if this connector holds the lease and writes limits, else 0"),
    ("headroom_slurm_limits_in_order", "1 if the limits were as they should be after the last round, else 0"),
    ("headroom_slurm_limit_gpus", "Limit of GPUs that stands in Slurm, by QOS or account and resource"),
    ("headroom_slurm_held_gpus", "GPUs that jobs under a limit hold, by QOS or account and resource"),
    ("headroom_slurm_heartbeat_age_seconds", "Time for which the heartbeat has stood still, as the watchdog sees it"),
];
const COUNTERS: [Text; 3] = [
    ("headroom_slurm_unreadable_total", "Records of Slurm that could not be read and are not counted"),
    ("headroom_slurm_writes_total", "Writes of limits"),
    ("headroom_slurm_watchdog_lowered_total", "Limits that the watchdog lowered"),
];
const HISTOGRAMS: [Text; 1] = [("headroom_slurm_call_seconds", "Duration of calls of Slurm's programs")];

/// All of them.
pub const HELP: Help = Help { gauges: &GAUGES, counters: &COUNTERS, histograms: &HISTOGRAMS };
