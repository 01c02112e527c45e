//! GPU time of placed pools, in GPU-seconds since their accounts began. Totals come from the accounts, so that they survive a restart.

use super::of_pool_and;
use accounts::{GpuTime, Totals};
use metrics::counter;
use vocab::PoolId;

const MILLI: u64 = 1_000;

/// Where the GPU time of a pool went.
pub fn describe_gpu_time(id: &PoolId, totals: &Totals) {
    let set = |name: &'static str, label: &'static str, value: &'static str, time: GpuTime| {
        counter!(name, &of_pool_and(id, label, &value)).absolute(time.milli_gpu_s() / MILLI);
    };
    let Totals { line, pool } = totals;
    for (used, time) in [
        ("hp", line.hp),
        ("guaranteed", line.guaranteed),
        ("at_will", line.at_will),
        ("handover", line.handover),
        ("idle_offered", pool.idle_offered),
        ("idle_reserved", pool.idle_reserved),
        ("drained", pool.drained),
    ] {
        set("headroom_gpu_seconds_total", "use", used, time);
    }
    for (outcome, time) in
        [("kept", line.kept.promised), ("broken", line.broken.promised), ("voided", line.voided.promised)]
    {
        set("headroom_promised_gpu_seconds_total", "outcome", outcome, time);
    }
    for (cause, time) in [("eviction", line.lost_to_evictions), ("node", line.lost_to_nodes)] {
        set("headroom_lost_gpu_seconds_total", "cause", cause, time);
    }
    counter!("headroom_over_reserved_gpu_seconds_total", &super::of_pool(id))
        .absolute(pool.over_reserved.milli_gpu_s() / MILLI);
}
