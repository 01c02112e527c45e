//! From what is known to quotas: pure, so that a test, a bench and the simulator can run it without a database.

mod chance;
mod cluster;
mod details;
mod explain;
mod forecasts;
mod kept;
mod live;
mod overrides;
#[cfg(test)]
mod tests;
mod what_if;

pub use chance::chance_of_room;
pub use cluster::{ClusterInputs, ClusterPlan, EtaMoved, NoQuota, PoolInputs, PoolPlan, PoolQuota, Run, plan};
pub use details::Details;
pub use explain::{
    Held, amount, answer, at_stage, calibration, explanation, forecast_answer, lowered_by_demand, lowered_reason,
};
pub use forecasts::{Corrected, Predictions, Remembered};
pub use overrides::{has_its_time, override_body};
pub use what_if::{Changes, what_if};
