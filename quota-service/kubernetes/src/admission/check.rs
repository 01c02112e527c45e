//! The AdmissionCheck itself: without a condition `Active` of its controller, ClusterQueues that name it admit nothing.

use crate::calls::{Calls, Fault};
use crate::lead::Fence;
use crate::names::{GUARANTEE_CONTROLLER, GUARANTEE_MANAGER};
use serde_json::{Value, json};
use serving::standing::Standing;
use std::time::{Duration, Instant};
use vocab::UnixSeconds;

const CHECKS: &str = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks";
/// Between two reads of a check that is in order.
const LOOKS_EVERY: Duration = Duration::from_secs(30);

/// Why no check is answered.
#[derive(Debug, thiserror::Error)]
enum CheckFault {
    #[error("{0}")]
    Call(#[from] Fault),
    #[error("it is not there, and could not be made ({0}): make it with spec.controllerName {GUARANTEE_CONTROLLER}")]
    Absent(Fault),
    #[error(
        "its controller is {0:?}, not {GUARANTEE_CONTROLLER}, and it is left alone: name another in admission_check_name"
    )]
    Another(String),
}

pub(super) struct Check {
    pub name: String,
    seen: Option<Instant>,
    standing: Standing,
}

impl Check {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), seen: None, standing: Standing::new() }
    }

    /// Whether it is there, ours and active; makes it so where it can.
    pub async fn is_ours(&mut self, calls: &Calls, fence: &Fence, now: UnixSeconds) -> bool {
        if self.seen.is_some_and(|seen| seen.elapsed() < LOOKS_EVERY) {
            return true;
        }
        let went = self.ensure(calls, fence, now).await;
        self.standing.note(
            "",
            &went,
            |fault| {
                tracing::error!(admission_check = self.name, %fault, "no check is answered: a message follows when they are");
            },
            |over| tracing::info!(lasted_s = over.lasted_s, "the AdmissionCheck is ours and active"),
        );
        self.seen = went.is_ok().then(Instant::now);
        went.is_ok()
    }

    async fn ensure(&self, calls: &Calls, fence: &Fence, now: UnixSeconds) -> Result<(), CheckFault> {
        let path = format!("{CHECKS}/{}", self.name);
        let check = match calls.find(&path).await? {
            Some(check) => check,
            None if fence.epoch().is_none() => return Ok(()),
            None => {
                let body = json!({
                    "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": { "name": self.name },
                    "spec": { "controllerName": GUARANTEE_CONTROLLER },
                });
                calls.create(CHECKS, GUARANTEE_MANAGER, &body).await.map_err(CheckFault::Absent)?
            }
        };
        let controller = check["spec"]["controllerName"].as_str().unwrap_or_default();
        if controller != GUARANTEE_CONTROLLER {
            return Err(CheckFault::Another(controller.to_owned()));
        }
        if !is_active(&check) && fence.epoch().is_some() {
            calls.apply(&format!("{path}/status"), GUARANTEE_MANAGER, &self.active(&check, now)).await?;
        }
        Ok(())
    }

    fn active(&self, check: &Value, now: UnixSeconds) -> Value {
        let condition = json!({
            "type": "Active", "status": "True", "reason": "Answered", "message": "Headroom answers this check",
            "observedGeneration": generation(check), "lastTransitionTime": now.to_string(),
        });
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
            "metadata": { "name": self.name, "uid": check["metadata"]["uid"] }, "status": { "conditions": [condition] },
        })
    }
}

fn generation(check: &Value) -> i64 {
    check["metadata"]["generation"].as_i64().unwrap_or(1)
}

fn is_active(check: &Value) -> bool {
    let conditions = check["status"]["conditions"].as_array().into_iter().flatten();
    let mut active = conditions.filter(|one| one["type"] == "Active" && one["status"] == "True");
    active.any(|one| one["observedGeneration"].as_i64() == Some(generation(check)))
}
