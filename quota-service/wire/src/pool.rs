use crate::bounds::{MOST_OUTCOMES, MOST_WAIT_S};
use crate::fault::{FieldFault, Place};
use crate::policy::{PolicyBody, ReservationsBody};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, PoolId, PoolState};

/// `PUT /v1/pools/{id}/state`: the view of a scheduler that places by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolStateBody {
    pub capacity_gpus: f64,
    /// S0.
    pub idle_gpus: f64,
    /// GPUs held by spot tasks inside their guarantee, by the hours that they were promised: `{"1": 12, "4": 8}`.
    #[serde(default)]
    pub spot_gpus_by_guarantee_hours: BTreeMap<String, f64>,
    /// l: the longest that a spot task waits now because quota refused it, though it would fit.
    #[serde(default)]
    pub longest_quota_wait_s: u64,
    pub as_of: String,
}

/// Whether a state was taken: one that is older than what is known is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolStateReceipt {
    pub taken: bool,
}

impl PoolStateBody {
    /// # Errors
    /// A number is no amount, hours are no horizon, a time is no time, or idle and spot GPUs exceed the capacity.
    pub fn parse(&self, pool: PoolId) -> Result<PoolState, FieldFault> {
        let place = Place("");
        let capacity = place.gpus("capacity_gpus", self.capacity_gpus)?;
        let idle = place.gpus("idle_gpus", self.idle_gpus)?;
        let spot_by_guarantee = self.spot()?;
        let held = spot_by_guarantee.values().try_fold(idle, |sum: MilliGpus, gpus| sum.checked_add(*gpus));
        if held.is_none_or(|held| held > capacity) {
            return Err(place.fault("idle_gpus", format!("idle and spot GPUs exceed the capacity of {capacity}")));
        }
        Ok(PoolState {
            pool,
            capacity,
            idle,
            spot_by_guarantee,
            longest_quota_wait_s: place.whole("longest_quota_wait_s", self.longest_quota_wait_s, MOST_WAIT_S)?,
            as_of: place.instant("as_of", &self.as_of)?,
        })
    }

    fn spot(&self) -> Result<BTreeMap<HorizonHours, MilliGpus>, FieldFault> {
        let field = "/spot_gpus_by_guarantee_hours";
        let mut spot = BTreeMap::new();
        for (hours, gpus) in &self.spot_gpus_by_guarantee_hours {
            let key = hours.replace('~', "~0").replace('/', "~1");
            let refused = |fault: &dyn std::fmt::Display| FieldFault::new(format!("{field}/{key}"), fault);
            let gpus = Place(field).gpus(&key, *gpus)?;
            // `4`, `04` and `4h` are the same hours.
            if spot.insert(HorizonHours::parse(hours).map_err(|fault| refused(&fault))?, gpus).is_some() {
                return Err(refused(&"these hours stand there twice: keep one of them"));
            }
        }
        Ok(spot)
    }
}

impl From<&PoolState> for PoolStateBody {
    fn from(state: &PoolState) -> Self {
        let entry = |(hours, gpus): (&HorizonHours, &MilliGpus)| (hours.get().to_string(), gpus.as_gpus());
        Self {
            capacity_gpus: state.capacity.as_gpus(),
            idle_gpus: state.idle.as_gpus(),
            spot_gpus_by_guarantee_hours: state.spot_by_guarantee.iter().map(entry).collect(),
            longest_quota_wait_s: state.longest_quota_wait_s,
            as_of: state.as_of.to_string(),
        }
    }
}

/// A pool at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolSummary {
    /// `CLUSTER:GPU_MODEL`.
    pub id: String,
    pub cluster: String,
    pub gpu_model: String,
    /// Which side places its tasks: `headroom` or `external`; null while it is undecided.
    #[serde(default)]
    pub placed_by: Option<String>,
    pub organizations: usize,
    pub offered_hours: Vec<u8>,
    pub capacity_gpus: Option<f64>,
    pub latest_demand_gpus: Option<f64>,
    /// The quota for each offered number of hours, where one was computed.
    pub quota_gpus_by_hours: BTreeMap<String, f64>,
    pub eta: f64,
    pub computed_at: Option<String>,
    pub stage: Option<String>,
    /// Why there is no quota, where there is none.
    pub no_quota: Option<String>,
    pub valid_until: Option<String>,
    /// p.
    pub guarantee_rate: Option<f64>,
    /// S0.
    pub idle_gpus: Option<f64>,
    /// S_a(H).
    pub spot_gpus_by_hours: BTreeMap<String, f64>,
    pub available_gpus_by_hours: BTreeMap<String, f64>,
    /// B_H.
    pub demand_bound_gpus_by_hours: BTreeMap<String, f64>,
    /// HP GPUs, running and waiting, now; null where tasks are not placed here.
    pub hp_demand_gpus: Option<f64>,
    /// The pool's HP demand by hours ahead, as the forecasts of its organizations add up.
    pub forecast: Vec<PoolForecastStep>,
    /// How guarantees ended in the last 24 hours, by kind.
    pub outcomes_24h: BTreeMap<String, u64>,
    /// Null where they are not placed here.
    pub tasks: Option<PoolTasks>,
    /// Overrides whose time is now.
    pub overrides: usize,
}

/// Tasks of a pool, of both classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolTasks {
    pub waiting: u64,
    pub running: u64,
}

/// HP demand of a pool in one hour, in GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolForecastStep {
    /// From 1.
    pub step: u8,
    pub target_time: String,
    pub mean_gpus: f64,
    pub stddev_gpus: f64,
    /// Of a Gaussian of this mean and deviation.
    pub q90_gpus: f64,
}

/// `GET /v1/pools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    pub pools: Vec<PoolSummary>,
}

/// `GET|PUT /v1/pools/{id}/settings`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsBody {
    /// p.
    pub guarantee_rate: f64,
    /// What p is the probability of: `kept`, that a promised GPU stays where it is for its hours, or `peak`, that HP demand stays
    /// below the bound, as in the GFS paper, under which far more promises are kept than p says. Without it, `kept`.
    #[serde(default)]
    pub promise: Option<String>,
    /// H, rising.
    pub offered_hours: Vec<u64>,
    /// `auto` (chosen on validation), or the name of one.
    pub aggregation: String,
    /// η₀.
    pub eta_start: f64,
    pub eta_least: f64,
    pub eta_most: f64,
    /// Outcomes that a move of η needs.
    pub min_outcomes: u64,
    /// θ.
    pub max_quota_wait_s: u64,
    /// A reported state older than this counts for nothing.
    pub state_fresh_s: u32,
    /// By which tasks are placed, where the service does so: `gfs` and others; without it, `gfs`.
    #[serde(default)]
    pub policy: Option<String>,
    /// The same by its parts, instead of `policy`, which then answers its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_parts: Option<PolicyBody>,
    /// For whom places are kept that would starve otherwise; what is left out is as in the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<ReservationsBody>,
    /// Decide on tasks and log it, and do nothing.
    #[serde(default)]
    pub shadow: Option<bool>,
    /// Seconds over which outcomes say how many guarantees are broken; without it, a day.
    #[serde(default)]
    pub outcome_window_s: Option<u32>,
    /// Seconds that tasks have to save their work before they are evicted.
    #[serde(default)]
    pub grace_s: Option<u32>,
    /// Seconds for which an elastic task whose pods have changed gets no more; without it, 60.
    #[serde(default)]
    pub resize_rest_s: Option<u32>,
    /// Seconds that a task loads before it works, for policies that put evictions off; without it, 40.
    #[serde(default)]
    pub load_s: Option<u32>,
    /// A task that asks for more than so many times the GPUs of the pool is refused; without it, 10.
    #[serde(default)]
    pub max_request_multiple: Option<u32>,
    /// Which side places the tasks of the pool: `headroom`, or `external`, a scheduler that reports the state of the pool. Null
    /// while it is undecided: then the first task or the first reported state decides. A change that states none leaves it.
    #[serde(default)]
    pub placed_by: Option<String>,
    /// Counts the changes; a request states the version that it changes, so that two writers notice each other.
    #[serde(default)]
    pub version: Option<i64>,
}

impl SettingsBody {
    /// # Errors
    /// The rate, an hour or another number is out of range.
    pub fn rate_and_hours(&self) -> Result<(GuaranteeRate, Vec<HorizonHours>), FieldFault> {
        Place("").whole("min_outcomes", self.min_outcomes, MOST_OUTCOMES)?;
        Place("").whole("max_quota_wait_s", self.max_quota_wait_s, MOST_WAIT_S)?;
        let rate =
            GuaranteeRate::new(self.guarantee_rate).map_err(|fault| FieldFault::new("/guarantee_rate", fault))?;
        let hours = self.offered_hours.iter().enumerate();
        let hours = hours.map(|(index, &hours)| Place("/offered_hours").hours(&index.to_string(), hours));
        Ok((rate, hours.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<PoolState, String> {
        let body: PoolStateBody = serde_json::from_str(json).map_err(|fault| fault.to_string())?;
        body.parse(PoolId::parse("earth:V100").unwrap()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_state_reads_back_as_it_was_written() {
        let json = r#"{"capacity_gpus": 90, "idle_gpus": 10.5, "spot_gpus_by_guarantee_hours": {"1": 5, "4": 3}, "as_of": "2020-05-18T00:00:00Z"}"#;
        let state = parse(json).unwrap();
        assert_eq!(PoolStateBody::from(&state).parse(state.pool.clone()), Ok(state));
    }

    #[test]
    fn a_time_that_would_not_read_back_is_refused() {
        for as_of in ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "1969-12-31T23:59:59Z"] {
            let fault = parse(&format!(r#"{{"capacity_gpus": 9, "idle_gpus": 1, "as_of": "{as_of}"}}"#)).unwrap_err();
            assert!(fault.starts_with("/as_of: ") && fault.contains("outside the years 1970 to 2200"), "{fault}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_pointer() {
        let of = |idle: &str, spot: &str| {
            parse(&format!(
                r#"{{"capacity_gpus": 90, "idle_gpus": {idle}, "spot_gpus_by_guarantee_hours": {spot}, "as_of": "2020-05-18T00:00:00Z"}}"#
            ))
            .unwrap_err()
        };
        assert_eq!(of("100", "{}"), "/idle_gpus: idle and spot GPUs exceed the capacity of 90.000");
        assert!(of("1", r#"{"x": 5}"#).starts_with("/spot_gpus_by_guarantee_hours/x: \"x\" is not a number of hours"));
        assert!(of("1", r#"{"1": -5}"#).starts_with("/spot_gpus_by_guarantee_hours/1: -5 GPUs is negative"));
        assert!(
            of("1", r#"{"1": 5, "1h": 6}"#)
                .starts_with("/spot_gpus_by_guarantee_hours/1h: these hours stand there twice")
        );
        assert!(of("1", r#"{"a/b~": 5}"#).starts_with("/spot_gpus_by_guarantee_hours/a~1b~0: \"a/b~\" is not"));
        assert!(of("1e308", "{}").starts_with("/idle_gpus: 1e308 GPUs is more than"));
        assert!(parse(r#"{"capacity": 1}"#).unwrap_err().contains("unknown field `capacity`"));
    }
}
