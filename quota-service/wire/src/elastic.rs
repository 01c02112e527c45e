//! Elastic tasks: as clients ask for them, and as the journal keeps them.

use crate::bounds::{LEAST_SPEED, MOST_MEASURED_SPEED, MOST_SPEED};
use crate::fault::{FieldFault, Place};
use placement::fleet::Gang;
use placement::pool::{Elastic, ElasticFault, ResizeReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{NodeId, TaskId};

/// The range in which the pods of a task may change while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ElasticBody {
    /// The fewest pods on which it runs; a guarantee holds for these.
    pub min_pods: u32,
    /// The most pods that it uses; without it, twice the pods that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
    /// Its speeds on 1, 2, 3 … pods, as multiples of the speed on one, such as [1, 1.9, 2.6]; without them, linear.
    /// A task is lent no more pods than it has speeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speeds: Option<Vec<f64>>,
}

/// A multiple in thousandths.
fn thousandths(speed: f64) -> Option<u32> {
    // Not a number is in no range.
    (LEAST_SPEED..=MOST_SPEED).contains(&speed).then(|| (speed * 1_000.0).round() as u32)
}

impl ElasticBody {
    /// # Errors
    /// The numbers contradict each other, or the gang cannot be elastic.
    pub fn parse(&self, place: Place<'_>, gang: &Gang) -> Result<Elastic, FieldFault> {
        Elastic::check(gang).map_err(|fault| place.fault("elastic", fault))?;
        let max = self.max_pods.unwrap_or_else(|| gang.pods.saturating_mul(2).min(Elastic::MOST));
        let one = |speed: &f64| {
            let refused =
                || place.fault("elastic/speeds", format!("invalid speed {speed}: write {LEAST_SPEED} to {MOST_SPEED}"));
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

/// `POST /v1/tasks/{id}/speed`: a speed that an elastic task has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeedBody {
    /// The pods that it had.
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
            return Err(
                place.fault("pods", format!("invalid number of pods {}: write 1 to {}", self.pods, Elastic::MOST))
            );
        }
        // Not a number is in no range.
        if !(LEAST_SPEED..=MOST_MEASURED_SPEED).contains(&self.speed) {
            let detail = format!("invalid speed {}: write {LEAST_SPEED} to {MOST_MEASURED_SPEED:e}", self.speed);
            return Err(place.fault("speed", detail));
        }
        Ok((self.pods, (self.speed * 1_000.0).round() as u64))
    }
}

/// [`Elastic`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ElasticRecord {
    /// The fewest pods on which it runs.
    pub min_pods: u32,
    /// The most pods that it uses.
    pub max_pods: u32,
    /// Speeds on 1, 2, 3 … pods, in thousandths of the speed on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speeds_thousandths: Option<Vec<u32>>,
    /// Measured speeds in thousandths of any one unit, by pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub measured_thousandths: BTreeMap<u32, u64>,
}

impl ElasticRecord {
    /// The range of a task that asks for so many pods.
    ///
    /// # Errors
    /// The numbers contradict each other.
    pub fn parse(&self, pods: u32) -> Result<Elastic, FieldFault> {
        let elastic = Elastic::new(self.min_pods, pods, self.max_pods, self.speeds_thousandths.clone());
        let elastic = elastic.map_err(|fault| FieldFault::new("/request/elastic", fault))?;
        Ok(elastic.with_measured(self.measured_thousandths.clone()))
    }

    /// The range as the client asked for it: later measurements are no part of the request.
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
    /// It is lent idle GPUs.
    Grows,
    /// An HP task needs its lent GPUs.
    For {
        /// The HP task.
        task: String,
    },
    /// A node that it used was lost.
    Lost {
        /// The node.
        node: String,
    },
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
