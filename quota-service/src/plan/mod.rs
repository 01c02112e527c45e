//! From what is known to quotas: pure, so that a test, a bench and the simulator can run it without a database.

mod cluster;
mod explain;
mod live;

pub use cluster::{
    ClusterInputs, ClusterPlan, Corrected, EtaMoved, NoQuota, PoolInputs, PoolPlan, PoolQuota, Run, Said, plan,
};
pub use explain::{Held, amount, answer, at_stage, calibration, explanation, forecast_answer};
pub use live::Live;
