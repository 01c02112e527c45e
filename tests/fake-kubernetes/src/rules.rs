//! Rules for objects beyond their schema: names, namespaces, pods, leases.

use crate::quota;
use crate::resources::Kind;
use crate::state::State;
use crate::status::Refusal;
use serde_json::{Value, json};

/// The longest name: a DNS subdomain.
const MOST_NAME: usize = 253;

fn is_name(name: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.');
    let edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    name.len() <= MOST_NAME
        && name.chars().all(inner)
        && edge(name.chars().next())
        && edge(name.chars().last())
        && !name.contains("..")
}

/// Gives an object its name where it asks for one, and refuses what is no name, or in no namespace.
pub fn name(state: &mut State, kind: &Kind, object: &mut Value) -> Result<(), Refusal> {
    let word = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let prefix = word(object, "generateName");
    if word(object, "name").is_empty() && !prefix.is_empty() {
        object["metadata"]["name"] = format!("{prefix}{:05x}", state.next_id()).into();
    }
    let name = word(object, "name");
    // Roles may hold colons; what is written here is otherwise a DNS subdomain.
    let is_role = kind.group == "rbac.authorization.k8s.io";
    if name.is_empty() || !(is_role || is_name(&name)) {
        let why = if name.is_empty() {
            "Required value: name or generateName is required".to_owned()
        } else {
            format!("Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case letters")
        };
        return Err(Refusal::invalid(&kind.kind, &name, &[("metadata.name".to_owned(), why)]));
    }
    Ok(())
}

/// 404 for a namespace that is not there.
pub fn namespace(state: &State, kind: &Kind, namespace: &str) -> Result<(), Refusal> {
    if kind.namespaced && state.get("namespaces", &(String::new(), namespace.to_owned())).is_none() {
        return Err(Refusal::not_found("namespaces", "namespaces", "", namespace));
    }
    Ok(())
}

/// The rules of the kind.
pub fn check(state: &State, kind: &Kind, before: Option<&Value>, after: &mut Value) -> Result<(), Refusal> {
    match (kind.table().as_str(), before) {
        ("pods", None) => new_pod(state, after),
        ("pods", Some(before)) => changed_pod(before, after),
        ("nodes", _) => quota::allocatable(after),
        ("leases.coordination.k8s.io", _) => lease(after),
        ("events.events.k8s.io", None) => event(after),
        _ => Ok(()),
    }
}

/// A pod gets the priority of its class, which must be there.
fn new_pod(state: &State, pod: &mut Value) -> Result<(), Refusal> {
    if pod.pointer("/spec/containers").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Refusal::invalid("Pod", name, &[("spec.containers".to_owned(), "Required value".to_owned())]));
    }
    quota::extended_resources(pod)?;
    let class = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if class.is_empty() {
        return quota::admit(state, pod);
    }
    let found = state.get("priorityclasses.scheduling.k8s.io", &(String::new(), class.clone()));
    let text = || format!("pods is forbidden: no PriorityClass with name {class} was found");
    let found = found.ok_or_else(|| Refusal::new(403, "Forbidden", &text()))?;
    pod["spec"]["priority"] = found.value()["value"].clone();
    quota::admit(state, pod)
}

/// Only a few fields of a pod's spec can change; the node is set by a binding.
fn changed_pod(before: &Value, after: &Value) -> Result<(), Refusal> {
    let fixed = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        spec.as_object_mut().into_iter().for_each(|spec| {
            spec.retain(|field, _| {
                !matches!(field.as_str(), "tolerations" | "activeDeadlineSeconds" | "schedulingGates")
            });
        });
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                container["image"] = Value::Null;
            }
        }
        spec
    };
    if fixed(before) == fixed(after) {
        return Ok(());
    }
    let name = after["metadata"]["name"].as_str().unwrap_or_default();
    let why = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.tolerations`";
    Err(Refusal::invalid("Pod", name, &[("spec".to_owned(), why.to_owned())]))
}

/// Times of a lease have exactly six digits of a second, and durations are above zero.
fn lease(lease: &Value) -> Result<(), Refusal> {
    let spec = &lease["spec"];
    for field in ["renewTime", "acquireTime"] {
        let Some(time) = spec[field].as_str() else { continue };
        let digits = time.split_once('.').map_or(0, |(_, rest)| rest.chars().take_while(char::is_ascii_digit).count());
        if digits != 6 || chrono::DateTime::parse_from_rfc3339(time).is_err() {
            let text = format!("parsing time {time:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse");
            return Err(Refusal::bad_request(&text));
        }
    }
    let mut causes = Vec::new();
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        causes.push(("spec.leaseDurationSeconds".to_owned(), "Invalid value: must be greater than 0".to_owned()));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
        causes
            .push(("spec.leaseTransitions".to_owned(), "Invalid value: must be greater than or equal to 0".to_owned()));
    }
    let name = lease["metadata"]["name"].as_str().unwrap_or_default();
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid("Lease", name, &causes)) }
}

/// Rules of the API for events.
fn event(event: &Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    let mut wrong = |field: &str, why: &str| causes.push((field.to_owned(), why.to_owned()));
    for (field, most) in [("reportingController", 256), ("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        match event[field].as_str().unwrap_or_default().len() {
            0 => wrong(field, "Required value"),
            length if length > most => wrong(field, "Too long"),
            _ => {}
        }
    }
    if event["note"].as_str().is_some_and(|note| note.len() > 1_024) {
        wrong("note", "Too long: may not be more than 1024 bytes");
    }
    if !matches!(event["type"].as_str(), Some("Normal" | "Warning")) {
        wrong("type", "Unsupported value");
    }
    let time = event["eventTime"].as_str().unwrap_or_default();
    if chrono::DateTime::parse_from_rfc3339(time).is_err() {
        wrong("eventTime", "Required value");
    }
    let (of, namespace) =
        (event["regarding"]["namespace"].as_str().unwrap_or_default(), &event["metadata"]["namespace"]);
    let expected = if of.is_empty() { "default" } else { of };
    if namespace != expected {
        wrong("regarding.namespace", "Invalid value: does not match event.namespace");
    }
    let name = event["metadata"]["name"].as_str().unwrap_or_default();
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid("Event", name, &causes)) }
}

/// Metadata that the server sets: identity at first, the generation whenever something but metadata and status changes.
pub fn stamp(state: &mut State, before: Option<&Value>, after: &mut Value) {
    let Some(before) = before else {
        let id = state.next_id();
        after["metadata"]["uid"] = format!("00000000-0000-4000-8000-{id:012x}").into();
        after["metadata"]["creationTimestamp"] = crate::write::now().into();
        after["metadata"]["generation"] = 1.into();
        return;
    };
    let body = |object: &Value| {
        let mut object = object.clone();
        object
            .as_object_mut()
            .into_iter()
            .for_each(|fields| fields.retain(|name, _| name != "metadata" && name != "status"));
        object
    };
    if body(before) != body(after) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
        after["metadata"]["generation"] = json!(generation + 1);
    }
}
