//! Fair shares of spot, as they are set and as a snapshot has them.

use crate::FieldFault;
use crate::fault::Place;
use placement::shares::{ShareSettings, UseParts, WeightFault, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::Organization;

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
