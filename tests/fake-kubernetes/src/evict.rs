//! Pods that go and pods that are placed: eviction by budgets, deletion with a grace, binding.

use crate::ask::Ask;
use crate::resources::Kind;
use crate::select::{Selector, selector_takes};
use crate::server::Server;
use crate::state::State;
use crate::status::Refusal;
use crate::stored::Stored;
use crate::write::{Write, Written, has_finalizers, now};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const BUDGETS: &str = "poddisruptionbudgets.policy";

/// POST to `pods/NAME/eviction`.
pub fn evict(server: &Arc<Server>, kind: &Kind, ask: &Ask) -> Written {
    let mut state = server.state();
    let write = Write { state: &mut state, kind, ask };
    let pod = write.found()?;
    write.preconditions(&pod)?;
    let body: Value = serde_json::from_str(&ask.body).map_err(|error| Refusal::bad_request(&error.to_string()))?;
    if body["metadata"]["name"].as_str().is_some_and(|name| name != ask.name) {
        return Err(Refusal::bad_request("name in URL does not match name in Eviction object"));
    }
    let going = pod["metadata"].get("deletionTimestamp").is_some();
    let idle = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"));
    let dry_run = dry_run(ask, &body)?;
    if !going && !idle {
        spend_budget(&mut state, &pod, dry_run)?;
    }
    let done = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    if dry_run {
        return Ok((201, done));
    }
    let mut pod = pod;
    let message = "Eviction API: evicting";
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": message, "lastTransitionTime": now(),
    });
    let conditions = pod["status"]["conditions"].as_array_mut();
    match conditions {
        Some(conditions) => {
            conditions.retain(|one| one["type"] != "DisruptionTarget");
            conditions.push(condition);
        }
        None => pod["status"]["conditions"] = json!([condition]),
    }
    let seconds = body.pointer("/deleteOptions/gracePeriodSeconds").and_then(Value::as_u64);
    terminate(server, &mut state, pod, seconds);
    Ok((201, done))
}

/// Whether nothing is to happen. The two places that say so have to agree.
fn dry_run(ask: &Ask, body: &Value) -> Result<bool, Refusal> {
    let in_body = body.pointer("/deleteOptions/dryRun/0").and_then(Value::as_str);
    match (ask.dry_run(), in_body) {
        (false, Some(_)) => Err(Refusal::bad_request("Non-matching dry-run options in request and content")),
        (_, Some(other)) if other != "All" => Err(Refusal::bad_request("dryRun: Unsupported value")),
        (dry_run, _) => Ok(dry_run),
    }
}

/// Takes one from the budget that covers the pod, or refuses.
fn spend_budget(state: &mut State, pod: &Value, dry_run: bool) -> Result<(), Refusal> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let stored = Stored::new(pod.clone(), 0);
    let all = state.all(BUDGETS, &Selector::default());
    let of_pod = all.iter().filter(|one| one.namespace == namespace).map(|one| one.value());
    let covering: Vec<Value> =
        of_pod.filter(|budget| selector_takes(&budget["spec"]["selector"], stored.labels())).collect();
    let mut covering = covering.into_iter();
    let Some(mut budget) = covering.next() else { return Ok(()) };
    if covering.next().is_some() {
        let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Refusal::new(500, "InternalError", text));
    }
    let number = |at: &str| budget.pointer(at).and_then(Value::as_i64);
    // Budgets of tests that do not say are up to date.
    if number("/status/observedGeneration")
        .is_some_and(|seen| number("/metadata/generation").is_some_and(|is| seen < is))
    {
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let name = budget["metadata"]["name"].as_str().unwrap_or_default();
        let message = format!("The disruption budget {name} is still being processed by the server.");
        let mut refusal = Refusal::new(429, "TooManyRequests", text).retry_after(10);
        refusal.body["details"]["causes"] = json!([{ "reason": "DisruptionBudget", "message": message }]);
        return Err(refusal);
    }
    let allowed = budget.pointer("/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0);
    if allowed <= 0 {
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let name = budget["metadata"]["name"].as_str().unwrap_or_default();
        let message = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            budget["status"]["desiredHealthy"], budget["status"]["currentHealthy"]
        );
        let mut refusal = Refusal::new(429, "TooManyRequests", text);
        refusal.body["details"] = json!({ "causes": [{ "reason": "DisruptionBudget", "message": message }] });
        return Err(refusal);
    }
    if !dry_run {
        budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
        state.put(BUDGETS, budget);
    }
    Ok(())
}

/// DELETE of a pod.
pub fn delete(server: &Arc<Server>, kind: &Kind, ask: &Ask) -> Written {
    let mut state = server.state();
    let write = Write { state: &mut state, kind, ask };
    let pod = write.found()?;
    write.preconditions(&pod)?;
    if ask.dry_run() {
        return Ok((200, pod));
    }
    let options: Value = serde_json::from_str(&ask.body).unwrap_or_default();
    let in_query = ask.word("gracePeriodSeconds").parse().ok();
    let last = terminate(server, &mut state, pod, options["gracePeriodSeconds"].as_u64().or(in_query));
    Ok((200, last))
}

/// Marks a pod as going. It goes at once if it has no node or the writer gives it no time, otherwise after the grace that
/// the test has set.
fn terminate(server: &Arc<Server>, state: &mut State, mut pod: Value, seconds: Option<u64>) -> Value {
    let word = |at: &str| pod.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let key = (word("/metadata/namespace"), word("/metadata/name"));
    let (uid, node) = (word("/metadata/uid"), word("/spec/nodeName"));
    let of_pod = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64);
    let allowed_s = seconds.or(of_pod).unwrap_or(30);
    if pod["metadata"].get("deletionTimestamp").is_none() {
        let ends = chrono::Utc::now() + chrono::TimeDelta::seconds(allowed_s as i64);
        pod["metadata"]["deletionTimestamp"] = ends.to_rfc3339_opts(chrono::SecondsFormat::Secs, true).into();
        pod["metadata"]["deletionGracePeriodSeconds"] = allowed_s.into();
    }
    let last = state.put("pods", pod).value();
    let at_once = node.is_empty() || allowed_s == 0;
    match server.manner().grace {
        _ if has_finalizers(&last) => {}
        Some(grace) if !at_once && grace > Duration::ZERO => {
            let server = Arc::downgrade(server);
            tokio::spawn(async move {
                tokio::time::sleep(grace).await;
                if let Some(server) = server.upgrade() {
                    finish(&mut server.state(), &key, &uid);
                    server.tell();
                }
            });
        }
        None if !at_once => {}
        _ => finish(state, &key, &uid),
    }
    last
}

/// Takes a pod away, if it is still the same one.
fn finish(state: &mut State, key: &(String, String), uid: &str) {
    let same = state.get("pods", key).is_some_and(|pod| pod.value()["metadata"]["uid"] == uid);
    if same {
        state.remove("pods", key);
    }
}

/// Takes all pods away that are going. Answers how many.
pub fn finish_all(state: &mut State) -> usize {
    let going =
        state.all("pods", &Selector::default()).into_iter().filter(|one| one.json.contains("deletionTimestamp"));
    let going: Vec<Value> = going.map(|one| one.value()).collect();
    let going = going.iter().filter(|pod| pod["metadata"].get("deletionTimestamp").is_some() && !has_finalizers(pod));
    let mut finished = 0;
    for pod in going {
        let word = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        finish(state, &(word("namespace"), word("name")), &word("uid"));
        finished += 1;
    }
    finished
}

/// POST to `pods/NAME/binding`: the pod gets its node, once.
pub fn bind(server: &Arc<Server>, kind: &Kind, ask: &Ask) -> Written {
    let mut state = server.state();
    let mut pod = Write { state: &mut state, kind, ask }.found()?;
    let body: Value = serde_json::from_str(&ask.body).map_err(|error| Refusal::bad_request(&error.to_string()))?;
    let node = body["target"]["name"].as_str().unwrap_or_default();
    let assigned = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !assigned.is_empty() || pod["metadata"].get("deletionTimestamp").is_some() {
        let why = format!("pod {} is already assigned to node {assigned:?} or going", ask.name);
        let text = format!("Operation cannot be fulfilled on pods/binding {:?}: {why}", ask.name);
        return Err(Refusal::new(409, "Conflict", &text));
    }
    pod["spec"]["nodeName"] = node.into();
    let condition = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now() });
    pod["status"]["conditions"] = json!([condition]);
    if !ask.dry_run() {
        state.put("pods", pod);
    }
    let done = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok((201, done))
}
