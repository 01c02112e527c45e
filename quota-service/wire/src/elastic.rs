//! Tasks that shrink and grow: as clients ask for it, and as the journal keeps it.

use crate::fault::{FieldFault, Place};
use placement::fleet::Gang;
use placement::pool::{Elastic, ElasticFault, ResizeReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{NodeId, TaskId};

/// How far the pods of a task may come and go while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ElasticBody {
    /// Without so many it does not run; they are what a guarantee holds for.
    pub min_pods: u32,
    /// Twice the pods that it asks for, unless this says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
    /// How fast it is on 1, 2, 3 … pods, as multiples of the speed on one, such as [1, 1.9, 2.6]; without, it is taken to be linear.
    /// A task is lent no more pods than it has speeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speeds: Option<Vec<f64>>,
}

/// The largest multiple: no pod makes a task a million times as fast.
const MOST_SPEED: f64 = 1e6;

/// A multiple in thousandths.
fn thousandths(speed: f64) -> Option<u32> {
    // Not a number is in no range.
    (0.001..=MOST_SPEED).contains(&speed).then(|| (speed * 1_000.0).round() as u32)
}

impl ElasticBody {
    /// # Errors
    /// The numbers contradict each other, or the gang cannot be elastic.
    pub fn parse(&self, place: Place<'_>, gang: &Gang) -> Result<Elastic, FieldFault> {
        Elastic::check(gang).map_err(|fault| place.fault("elastic", fault))?;
        let max = self.max_pods.unwrap_or_else(|| gang.pods.saturating_mul(2).min(Elastic::MOST));
        let one = |speed: &f64| {
            let refused = || place.fault("elastic/speeds", format!("{speed} is no speed: write 0.001 to {MOST_SPEED}"));
            thousandths(*speed).ok_or_else(refused)
        };
        let speeds = self.speeds.as_ref().map(|speeds| speeds.iter().map(one).collect::<Result<_, _>>()).transpose()?;
        Elastic::new(self.min_pods, gang.pods, max, speeds).map_err(|fault| {
            let field = match fault {
                ElasticFault::Unmeasured { .. } | ElasticFault::Speed { .. } => "elastic/speeds",
                _ => "elastic/min_pods",
            };
            place.fault(field, fault)
        })
    }
}

impl From<&Elastic> for ElasticBody {
    fn from(elastic: &Elastic) -> Self {
        let multiples = |speeds: &[u32]| speeds.iter().map(|speed| f64::from(*speed) / 1_000.0).collect();
        Self {
            min_pods: elastic.min_pods(),
            max_pods: Some(elastic.max_pods()),
            speeds: elastic.speeds().map(multiples),
        }
    }
}

/// `POST /v1/tasks/{id}/speed`: what an elastic task has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeedBody {
    /// How many it had.
    pub pods: u32,
    /// Steps, samples or tokens a second: any one unit, the same each time.
    pub speed: f64,
}

impl SpeedBody {
    /// Pods, and thousandths of the unit.
    ///
    /// # Errors
    /// A number is out of range.
    pub fn parse(&self) -> Result<(u32, u64), FieldFault> {
        let place = Place("");
        if self.pods == 0 || self.pods > Elastic::MOST {
            return Err(place.fault("pods", format!("{} pods: write 1 to {}", self.pods, Elastic::MOST)));
        }
        // Not a number is in no range.
        if !(0.001..=1e12).contains(&self.speed) {
            return Err(place.fault("speed", format!("{} is no speed: write 0.001 to 1e12", self.speed)));
        }
        Ok((self.pods, (self.speed * 1_000.0).round() as u64))
    }
}

/// [`Elastic`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ElasticRecord {
    pub min_pods: u32,
    pub max_pods: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speeds_thousandths: Option<Vec<u32>>,
    /// What was measured, in thousandths of any one unit, by pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured_thousandths: BTreeMap<u32, u64>,
}

impl ElasticRecord {
    /// What it was for a task that asks for so many pods.
    ///
    /// # Errors
    /// The numbers contradict each other.
    pub fn parse(&self, pods: u32) -> Result<Elastic, FieldFault> {
        let elastic = Elastic::new(self.min_pods, pods, self.max_pods, self.speeds_thousandths.clone());
        let elastic = elastic.map_err(|fault| FieldFault::new("/request/elastic", fault))?;
        Ok(elastic.with_measured(self.measured_thousandths.clone()))
    }

    /// As it was asked for: what was learned since is no part of the request.
    #[must_use]
    pub fn asked(elastic: &Elastic) -> Self {
        Self { measured_thousandths: BTreeMap::new(), ..Self::from(elastic) }
    }
}

impl From<&Elastic> for ElasticRecord {
    fn from(elastic: &Elastic) -> Self {
        Self {
            min_pods: elastic.min_pods(),
            max_pods: elastic.max_pods(),
            speeds_thousandths: elastic.speeds().map(<[u32]>::to_vec),
            measured_thousandths: elastic.measured().clone(),
        }
    }
}

/// [`ResizeReason`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ResizeRecord {
    Grows,
    For { task: String },
    Lost { node: String },
}

impl ResizeRecord {
    /// # Errors
    /// A name is none.
    pub fn parse(&self) -> Result<ResizeReason, FieldFault> {
        let place = Place("/why");
        Ok(match self {
            Self::Grows => ResizeReason::Grows,
            Self::For { task } => ResizeReason::For { task: place.name("task", task, TaskId::parse)? },
            Self::Lost { node } => ResizeReason::Lost { node: place.name("node", node, NodeId::parse)? },
        })
    }
}

impl From<&ResizeReason> for ResizeRecord {
    fn from(why: &ResizeReason) -> Self {
        match why {
            ResizeReason::Grows => Self::Grows,
            ResizeReason::For { task } => Self::For { task: task.to_string() },
            ResizeReason::Lost { node } => Self::Lost { node: node.to_string() },
        }
    }
}
