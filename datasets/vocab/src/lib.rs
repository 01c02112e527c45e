//! Shared types of Headroom (DESIGN §2): ids, amounts, hours, usage, forecasts, tasks, nodes.
//!
//! Values here are parsed once, at the edge, and cannot be wrong afterwards: an [`HourStart`] is on the grid, a
//! [`MilliGpus`] is never negative, a [`DemandForecast`] holds no NaN. The crate knows no I/O, no SQL, no serde.

mod amount;
mod count;
mod forecast;
mod ids;
mod job;
mod node;
mod overrides;
mod pool;
mod rate;
mod reservations;
mod task;
mod text;
mod time;
mod topology;
mod usage;

pub use amount::{AmountError, LEAST_STDDEV_GPUS, MilliGpus};
pub use count::{Count, count, gpus};
pub use forecast::{DemandForecast, ForecastError, ForecastOrigin, QUANTILE_LEVELS, StepForecast};
pub use ids::{
    CalendarName, ClusterName, EventId, GpuModel, IDLE, NameError, NodeId, Organization, PoolId, SeriesId, TaskId,
    addressable, new_name,
};
pub use job::{HpJob, hp_gpus};
pub use node::Node;
pub use overrides::{Override, OverrideId, OverrideKind};
pub use pool::{CapacityRow, Outcome, OutcomeKind, PlacedBy, PoolState, spot_of_at_least};
pub use rate::{GuaranteeRate, RateError};
pub use reservations::{Repeats, Reservation, ReservationId, ReservedWindow, Weekday};
pub use task::{Task, TaskClass, TaskError};
pub use text::{TextError, new_text};
pub use time::{
    HOURS_PER_DAY, HOURS_PER_WEEK, HorizonError, HorizonHours, HourError, HourStart, SECONDS_PER_DAY, SECONDS_PER_HOUR,
    UnixSeconds,
};
pub use topology::{Affinity, Domain, List, ListError, NumaNode, Strictness, Topology, TopologyError, gpu_mask};
pub use usage::{HourDemand, UsageRow};
