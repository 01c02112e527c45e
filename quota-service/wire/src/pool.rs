use crate::bounds::{MOST_OUTCOMES, MOST_WAIT_S};
use crate::choices::{PlacedByBody, PromiseKindBody, StageBody};
use crate::fault::{FieldFault, Place};
use crate::hp_jobs::{self, HpJobBody};
use crate::policy::{PolicyBody, ReservationsBody};
use crate::shares::SharesBody;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{GuaranteeRate, HorizonHours, HpJob, MilliGpus, PoolId, PoolState};

/// `PUT /v1/pools/{id}/state`: the report of an external scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolStateBody {
    /// C, the capacity.
    pub capacity_gpus: f64,
    /// S0.
    pub idle_gpus: f64,
    /// GPUs held by spot tasks inside their guarantee, by the hours that they were promised: `{"1": 12, "4": 8}`.
    #[serde(default)]
    pub spot_gpus_by_guarantee_hours: BTreeMap<String, f64>,
    /// l: the longest wait, in seconds, of a spot task that only the quota refuses.
    #[serde(default)]
    pub longest_quota_wait_s: u64,
    /// When the scheduler saw it, RFC 3339.
    pub as_of: String,
    /// Every HP job that runs or waits, at most 10,000: bounds then follow them from moment to moment. Without the field they follow
    /// the hours of usage alone; an empty list says that there is no HP demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hp_jobs: Option<Vec<HpJobBody>>,
}

/// The answer to a reported state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolStateReceipt {
    /// Whether it is the newest report of the pool.
    pub taken: bool,
}

impl PoolStateBody {
    /// # Errors
    /// A number is no amount, hours are no horizon, a time is invalid, or idle and spot GPUs exceed the capacity.
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

    /// The HP jobs of the report, where it has them. Those of the future count as of its time.
    ///
    /// # Errors
    /// There are too many, an id is there twice, or a job has no GPUs, an invalid name, amount or time.
    pub fn jobs(&self) -> Result<Option<Vec<HpJob>>, FieldFault> {
        let as_of = Place("").instant("as_of", &self.as_of)?;
        self.hp_jobs.as_deref().map(|bodies| hp_jobs::parse(bodies, as_of)).transpose()
    }

    /// The same state with the jobs behind it.
    #[must_use]
    pub fn with_jobs<'a>(self, jobs: Option<impl IntoIterator<Item = &'a HpJob>>) -> Self {
        Self { hp_jobs: jobs.map(|jobs| jobs.into_iter().map(HpJobBody::from).collect()), ..self }
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
            hp_jobs: None,
        }
    }
}

/// A summary of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolSummary {
    /// `CLUSTER:GPU_MODEL`.
    pub id: String,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The side that places its tasks; null while it is undecided.
    #[serde(default)]
    pub placed_by: Option<PlacedByBody>,
    /// Organizations with a forecast.
    pub organizations: usize,
    /// H, rising.
    pub offered_hours: Vec<u8>,
    /// C; null where it is not known.
    pub capacity_gpus: Option<f64>,
    /// The HP demand of the last measured hour.
    pub latest_demand_gpus: Option<f64>,
    /// The quota for each offered number of hours that has one, as `/quota` answers it: at the stage `conservative` no more than spot
    /// tasks hold.
    pub quota_gpus_by_hours: BTreeMap<String, f64>,
    /// The same as last computed, at any age since `computed_at`: for a scheduler that ages them by what it holds itself. Admit
    /// nothing by these alone.
    #[serde(default)]
    pub computed_quota_gpus_by_hours: BTreeMap<String, f64>,
    /// η; 1 before a first quota.
    pub eta: f64,
    /// When its quotas were computed; null without one.
    pub computed_at: Option<String>,
    /// The stage of its quotas; null without one.
    pub stage: Option<StageBody>,
    /// The reason for which there is no quota; null with one.
    pub no_quota: Option<String>,
    /// When its quotas become stale; null without one.
    pub valid_until: Option<String>,
    /// p.
    pub guarantee_rate: Option<f64>,
    /// S0.
    pub idle_gpus: Option<f64>,
    /// S_a(H).
    pub spot_gpus_by_hours: BTreeMap<String, f64>,
    /// GPUs that may still be admitted.
    pub available_gpus_by_hours: BTreeMap<String, f64>,
    /// B_H.
    pub demand_bound_gpus_by_hours: BTreeMap<String, f64>,
    /// HP GPUs, running and waiting, now; null in a pool of an external scheduler.
    pub hp_demand_gpus: Option<f64>,
    /// The pool's HP demand by hours ahead, as the forecasts of its organizations add up.
    pub forecast: Vec<PoolForecastStep>,
    /// Guarantees that ended in the last 24 hours, by kind.
    pub outcomes_24h: BTreeMap<String, u64>,
    /// Its tasks; null in a pool of an external scheduler.
    pub tasks: Option<PoolTasks>,
    /// Valid overrides.
    pub overrides: usize,
}

/// Tasks of a pool, of both classes, as of its last renewal. `GET /v1/pools/{id}/snapshot` has those of this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolTasks {
    /// Tasks that waited at the last renewal.
    pub waiting: u64,
    /// Tasks that ran at the last renewal.
    pub running: u64,
}

/// HP demand of a pool in one hour, in GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolForecastStep {
    /// From 1.
    pub step: u8,
    /// The start of the hour that is forecast.
    pub target_time: String,
    /// The mean: the sum of those of the organizations.
    pub mean_gpus: f64,
    /// The standard deviation.
    pub stddev_gpus: f64,
    /// The 0.9 quantile of a Gaussian of this deviation, as if organizations were independent: demand may be above it in more than a
    /// tenth of the hours. B_H is calibrated. It rests on the mean before that was lowered where demand fell within the last hour.
    pub q90_gpus: f64,
}

/// `GET /v1/pools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    /// The pools, by id.
    pub pools: Vec<PoolSummary>,
}

/// `GET|PUT /v1/pools/{id}/settings`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsBody {
    /// p.
    pub guarantee_rate: f64,
    /// The event whose probability is p. Under `peak`, as in the GFS paper, far more promises are kept than p demands. Without it,
    /// `kept`.
    #[serde(default)]
    pub promise: Option<PromiseKindBody>,
    /// H, rising.
    pub offered_hours: Vec<u64>,
    /// `auto` (`mixture`; `sum-of-bounds` where no peak of the pool was measured on validation), or the name of one.
    pub aggregation: String,
    /// η₀.
    pub eta_start: f64,
    /// The least η.
    pub eta_least: f64,
    /// The largest η.
    pub eta_most: f64,
    /// Outcomes that a move of η needs.
    pub min_outcomes: u64,
    /// θ.
    pub max_quota_wait_s: u64,
    /// A reported state older than this, in seconds, is ignored.
    pub state_fresh_s: u32,
    /// The policy by which Headroom places tasks; without it, `gfs`.
    #[serde(default)]
    pub policy: Option<String>,
    /// The policy by its parts, instead of `policy`, which is its name in answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_parts: Option<PolicyBody>,
    /// Reservations for tasks that would starve otherwise; an absent value is that of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<ReservationsBody>,
    /// Fair shares of spot among organizations, in place of those of the policy; without both, none are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharesBody>,
    /// Whether decisions on tasks are logged and not carried out.
    #[serde(default)]
    pub shadow: Option<bool>,
    /// Seconds of outcomes that the eviction rate is computed from; without it, a day.
    #[serde(default)]
    pub outcome_window_s: Option<u32>,
    /// The grace period in seconds.
    #[serde(default)]
    pub grace_s: Option<u32>,
    /// Seconds after a change of its pods in which an elastic task gets no more; without it, 60.
    #[serde(default)]
    pub resize_rest_s: Option<u32>,
    /// Seconds that a task loads before it works, for policies that defer evictions; without it, 40.
    #[serde(default)]
    pub load_s: Option<u32>,
    /// The largest request, in multiples of the GPUs of the pool; without it, 10.
    #[serde(default)]
    pub max_request_multiple: Option<u32>,
    /// The side that places the tasks of the pool. Null while it is undecided: the first task or the first reported state decides. A
    /// change without it leaves it as it is.
    #[serde(default)]
    pub placed_by: Option<PlacedByBody>,
    /// The number of changes; a request states the version that it changes, so that two writers do not overwrite each other.
    #[serde(default)]
    pub version: Option<i64>,
}

impl SettingsBody {
    /// # Errors
    /// The rate, an hour or another number is out of range.
    pub fn rate_and_hours(&self) -> Result<(GuaranteeRate, Vec<HorizonHours>), FieldFault> {
        Place("").positive("min_outcomes", self.min_outcomes, MOST_OUTCOMES)?;
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
            assert!(fault.starts_with("/as_of: ") && fault.contains("is not between 1970 and 2200"), "{fault}");
        }
    }

    #[test]
    fn a_contradicting_state_is_refused_with_its_pointer() {
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
        assert!(of("1e308", "{}").starts_with("/idle_gpus: 1e308 GPUs exceeds"));
        assert!(parse(r#"{"capacity": 1}"#).unwrap_err().contains("unknown field `capacity`"));
    }
}
