//! Fair shares of spot, as they are set and as a snapshot has them.

use crate::FieldFault;
use crate::fault::Place;
use placement::pool::Standing;
use placement::shares::{ShareSettings, UseParts, WeightFault, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{MilliGpus, Organization, TaskId};

/// Fair shares of spot among organizations: those with the least decayed GPU time per unit of weight are served first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SharesBody {
    /// Hours after which GPU time counts half, 1 to 2,160. A day to a week suits most pools.
    pub half_life_hours: u32,
    /// Weights by organization, 1 to 1,000,000; 1 for each that is not named. One that the pool does not know yet counts from its
    /// first task on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, u32>,
}

impl SharesBody {
    /// The half-life; the policy checks its range.
    #[must_use]
    pub const fn settings(&self) -> ShareSettings {
        ShareSettings { half_life_hours: self.half_life_hours }
    }

    /// The weights; `at` is where the body stands in what was sent, as a JSON pointer.
    ///
    /// # Errors
    /// A name that no organization can have, or a weight out of range.
    pub fn weights(&self, at: &str) -> Result<Weights, FieldFault> {
        let at = format!("{at}/weights");
        let place = Place(&at);
        let mut weights = BTreeMap::new();
        for (name, weight) in &self.weights {
            let organization = place.name(name, name, Organization::parse)?;
            if organization.is_pool_peak() {
                return Err(place.fault(name, "\"*\" is the pool itself: name an organization"));
            }
            weights.insert(organization, *weight);
        }
        let refused = |fault: WeightFault| place.fault(fault.organization.as_str(), &fault);
        Weights::new(weights).map_err(refused)
    }
}

/// [`UseParts`]: the use of spot by organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UseRecord {
    /// The half-life under which it was measured.
    pub half_life_hours: u32,
    /// Counts by organization: milli-GPU-seconds times 4,096 in the first sixteenth of a half-life, rising to 8,192 at its end, and
    /// halved there.
    pub counts: BTreeMap<String, u64>,
}

impl UseRecord {
    /// The use in a snapshot; none where no policy with shares has measured.
    #[must_use]
    pub fn of(parts: &UseParts) -> Option<Self> {
        let counts = parts.counts.iter().map(|(organization, counts)| (organization.to_string(), *counts)).collect();
        parts.settings.map(|settings| Self { half_life_hours: settings.half_life_hours, counts })
    }

    /// The use as `placement` has it.
    ///
    /// # Errors
    /// A name that no organization can have.
    pub fn parse(&self) -> Result<UseParts, FieldFault> {
        let place = Place("/shares/counts");
        let one = |(name, counts): (&String, &u64)| Ok((place.name(name, name, Organization::parse)?, *counts));
        let counts = self.counts.iter().map(one).collect::<Result<_, FieldFault>>()?;
        Ok(UseParts { settings: Some(ShareSettings { half_life_hours: self.half_life_hours }), counts })
    }
}

/// `GET /v1/pools/{id}/shares`: how organizations stand under the fair shares of spot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShareList {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// Hours after which GPU time counts half; null where the pool keeps no shares.
    pub half_life_hours: Option<u32>,
    /// Organizations with use that still counts, with spot that waits, or with a weight: the one that is served next first.
    pub organizations: Vec<ShareStanding>,
}

/// An organization under fair shares of spot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShareStanding {
    /// The organization.
    pub organization: String,
    /// Its weight; 1 where the settings name none.
    pub weight: u32,
    /// Decayed spot GPU hours, and an hour of the GPUs that it holds, per unit of weight. The lowest level is served first.
    pub level_gpu_hours: f64,
    /// Spot GPUs that it holds, those on loan left out.
    pub spot_gpus: f64,
    /// GPUs that its waiting spot tasks ask for, those at rest left out.
    pub waiting_gpus: f64,
    /// Its part of the spot GPUs that all hold now: weighted max-min by what each holds and waits for.
    pub fair_gpus: f64,
    /// GPUs that it holds beyond its part. Others get them back as its tasks and guarantees end.
    pub borrowed_gpus: f64,
    /// The task that organizations above it leave room for; null where none of its tasks could start.
    pub waits_for: Option<ShareTask>,
}

/// A task that its organization waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShareTask {
    /// The task.
    pub task: String,
    /// GPUs that it asks for.
    pub gpus: f64,
}

const MILLI_PER_GPU: f64 = MilliGpus::PER_GPU as f64;
const MILLI_GPU_S_PER_GPU_HOUR: f64 = MILLI_PER_GPU * vocab::SECONDS_PER_HOUR as f64;

impl From<&Standing> for ShareStanding {
    fn from(of: &Standing) -> Self {
        let gpus = |milli: u64| milli as f64 / MILLI_PER_GPU;
        let task = |(task, gpus): &(TaskId, MilliGpus)| ShareTask { task: task.to_string(), gpus: gpus.as_gpus() };
        Self {
            organization: of.organization.to_string(),
            weight: of.weight,
            level_gpu_hours: of.level_milli_gpu_s as f64 / MILLI_GPU_S_PER_GPU_HOUR,
            spot_gpus: gpus(of.held_milli),
            waiting_gpus: gpus(of.waiting_milli),
            fair_gpus: gpus(of.fair_milli),
            borrowed_gpus: gpus(of.borrowed_milli()),
            waits_for: of.waits_for.as_ref().map(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(json: &str) -> Result<Weights, String> {
        let body: SharesBody = serde_json::from_str(json).map_err(|fault| fault.to_string())?;
        body.weights("/shares").map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_wrong_weight_is_refused_with_its_pointer() {
        let of = |weight: &str| weights(&format!(r#"{{"half_life_hours": 24, "weights": {{"vision": {weight}}}}}"#));
        assert!(of("3").is_ok());
        assert_eq!(
            of("0").unwrap_err(),
            "/shares/weights/vision: the weight of vision is 0: write a number of 1 to 1000000"
        );
        assert!(of("1000001").unwrap_err().contains("is 1000001: write"));
        assert!(of("-1").unwrap_err().contains("-1"), "{:?}", of("-1"));
        assert!(of("1.5").is_err());
        let named =
            |name: &str| weights(&format!(r#"{{"half_life_hours": 24, "weights": {{"{name}": 1}}}}"#)).unwrap_err();
        assert!(named("*").starts_with("/shares/weights/*: "), "{}", named("*"));
        assert!(named("").starts_with("/shares/weights/"), "{}", named(""));
        assert!(weights(r#"{"weights": {}}"#).unwrap_err().contains("half_life_hours"));
    }

    #[test]
    fn use_reads_back_as_it_was_written() {
        let settings = Some(ShareSettings { half_life_hours: 24 });
        let parts = UseParts { settings, counts: vec![(Organization::parse("vision").unwrap(), u64::MAX)] };
        let record = UseRecord::of(&parts).unwrap();
        let read: UseRecord = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(read.parse(), Ok(parts));
        assert_eq!(UseRecord::of(&UseParts::default()), None);
    }
}
