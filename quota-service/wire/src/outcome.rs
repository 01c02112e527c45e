use crate::choices::{OutcomeKindBody, OutcomeResultBody};
use crate::fault::{FieldFault, Place};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{ClusterName, EventId, GpuModel, MilliGpus, NodeId, Outcome, PoolId, TaskId};

/// The end of one guarantee period of a spot run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeBody {
    /// The reporter's own id; an event counts once, for any number of reports.
    pub event_id: String,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// H of the guarantee.
    pub guarantee_hours: u64,
    /// How it ended; only `kept` and `broken` move eta.
    pub kind: OutcomeKindBody,
    /// When the period ended, RFC 3339.
    pub ended_at: String,
    /// When the guarantee was given. Without it a period counts as long as its guarantee: a task that ended early by itself then
    /// counts as kept, and the kept rate looks better than it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    /// GPUs that were promised, over all pods; without it, one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<f64>,
    /// The task, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The node, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// `POST /v1/outcomes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeBatch {
    /// The outcomes.
    pub outcomes: Vec<OutcomeBody>,
}

/// The result for one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeResult {
    /// The id of the event.
    pub event_id: String,
    /// Whether it was new.
    pub result: OutcomeResultBody,
}

/// One result for each event of a batch, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeReceipt {
    /// One result for each event.
    pub outcomes: Vec<OutcomeResult>,
}

impl TryFrom<OutcomeBatch> for Vec<Outcome> {
    type Error = Vec<FieldFault>;

    /// All faults of the batch, or its outcomes: it is taken whole or not at all.
    fn try_from(batch: OutcomeBatch) -> Result<Self, Vec<FieldFault>> {
        let (mut outcomes, mut faults) = (Vec::with_capacity(batch.outcomes.len()), Vec::new());
        for (index, body) in batch.outcomes.iter().enumerate() {
            match parse(body, Place(&format!("/outcomes/{index}"))) {
                Ok(outcome) => outcomes.push(outcome),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(outcomes) } else { Err(faults) }
    }
}

fn parse(body: &OutcomeBody, place: Place<'_>) -> Result<Outcome, FieldFault> {
    let pool = PoolId {
        cluster: place.new_name("cluster", &body.cluster, ClusterName::parse)?,
        gpu_model: place.new_name("gpu_model", &body.gpu_model, GpuModel::parse)?,
    };
    let ended_at = place.instant("ended_at", &body.ended_at)?;
    let began_at = body.began_at.as_deref().map(|text| place.instant("began_at", text)).transpose()?;
    if let Some(began) = began_at.filter(|began| *began > ended_at) {
        let detail = format!("{began} is after ended_at, {ended_at}: write the time at which the guarantee was given");
        return Err(place.fault("began_at", detail));
    }
    let gpus = body.gpus.map(|gpus| place.gpus("gpus", gpus)).transpose()?;
    if gpus.is_some_and(MilliGpus::is_zero) {
        return Err(place.fault("gpus", "a guarantee of 0 GPUs is none: write its GPUs, or leave the field out"));
    }
    Ok(Outcome {
        event_id: place.new_name("event_id", &body.event_id, EventId::parse)?,
        pool,
        guarantee_hours: place.hours("guarantee_hours", body.guarantee_hours)?,
        kind: body.kind.into(),
        ended_at,
        began_at,
        gpus,
        task: body.task.as_deref().map(|name| place.new_name("task", name, TaskId::parse)).transpose()?,
        node: body.node.as_deref().map(|name| place.new_name("node", name, NodeId::parse)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_or_an_invalid_field_is_refused() {
        let kept = OutcomeBody {
            event_id: "e1".into(),
            cluster: "earth".into(),
            gpu_model: "V100".into(),
            guarantee_hours: 1,
            kind: OutcomeKindBody::Kept,
            ended_at: "2020-05-18T00:00:00Z".into(),
            began_at: None,
            gpus: None,
            task: None,
            node: None,
        };
        let mut unknown = serde_json::to_value(&kept).unwrap();
        unknown["kind"] = "evicted".into();
        assert_eq!(
            serde_json::from_value::<OutcomeBody>(unknown).unwrap_err().to_string(),
            "unknown variant `evicted`, expected one of `kept`, `broken`, `node_failure`, `drain`, `user_deleted`"
        );
        let none = OutcomeBody { guarantee_hours: 0, ..kept.clone() };
        let later = OutcomeBody { began_at: Some("2020-05-18T00:00:01Z".into()), ..kept.clone() };
        let negative = OutcomeBody { gpus: Some(-1.0), ..kept.clone() };
        let nothing = OutcomeBody { gpus: Some(0.0), ..kept };
        for (body, field) in [(none, "guarantee_hours"), (later, "began_at"), (negative, "gpus"), (nothing, "gpus")] {
            let parsed: Result<Vec<Outcome>, _> = OutcomeBatch { outcomes: vec![body] }.try_into();
            assert_eq!(parsed.unwrap_err()[0].pointer, format!("/outcomes/0/{field}"));
        }
    }
}
