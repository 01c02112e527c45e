//! `ResourceQuota`, as admission and its controller hold it: pods beyond it are refused, and its status says what is used.

use crate::select::Selector;
use crate::state::State;
use crate::status::Refusal;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const QUOTAS: &str = "resourcequotas";
/// Prefix of the resources that are counted here.
const REQUESTS: &str = "requests.";

/// An amount as a number: precise for what tests ask for.
fn amount(quantity: &Value) -> Option<f64> {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    if let Ok(number) = text.parse::<f64>() {
        return Some(number).filter(|number| number.is_finite());
    }
    let powers = [
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let twos = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    let twos = twos.map(|(suffix, power)| (suffix, 2_f64.powi(power)));
    let (number, factor) =
        twos.into_iter().chain(powers).find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    number.parse::<f64>().ok().map(|number| number * factor)
}

/// Whether a resource is neither CPU nor memory nor another one that may be shared: those have a domain in their name.
fn is_extended(resource: &str) -> bool {
    resource.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
}

/// Rules of extended resources in a pod: whole amounts, limits as large as requests, and none of the pod as a whole.
pub fn extended_resources(pod: &Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    for (at, container) in containers(pod).enumerate() {
        let of = |kind: &str| container["resources"][kind].as_object().cloned().unwrap_or_default();
        let (requests, limits) = (of("requests"), of("limits"));
        let is_ours = |(name, _): &(&String, &Value)| is_extended(name);
        for (kind, list) in [("requests", &requests), ("limits", &limits)] {
            for (name, quantity) in list.iter().filter(is_ours) {
                let wrong = match amount(quantity) {
                    None => "quantities must match the regular expression",
                    Some(number) if number < 0.0 => "must be greater than or equal to 0",
                    Some(number) if number.fract() != 0.0 => "must be an integer",
                    Some(_) => continue,
                };
                let field = format!("spec.containers[{at}].resources.{kind}[{name}]");
                causes.push((field, format!("Invalid value: {quantity}: {wrong}")));
            }
        }
        for (name, quantity) in requests.iter().filter(is_ours) {
            let field = format!("spec.containers[{at}].resources.limits");
            match limits.get(name) {
                None => causes
                    .push((field, "Required value: Limit must be set for non overcommitable resources".to_owned())),
                Some(limit) if amount(limit) != amount(quantity) => {
                    causes
                        .push((field, format!("Invalid value: {quantity}: must be equal to {name} limit of {limit}")));
                }
                Some(_) => {}
            }
        }
    }
    for kind in ["requests", "limits"] {
        for name in pod["spec"]["resources"][kind].as_object().into_iter().flatten().map(|(name, _)| name) {
            if is_extended(name) {
                causes.push((
                    format!("spec.resources.{kind}[{name}]"),
                    "Unsupported value: pod-level resources are cpu, memory and hugepages".to_owned(),
                ));
            }
        }
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid("Pod", name, &causes)) }
}

/// Rules of extended resources in a node.
pub fn allocatable(node: &Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    for kind in ["capacity", "allocatable"] {
        for (name, quantity) in
            node["status"][kind].as_object().into_iter().flatten().filter(|(name, _)| is_extended(name))
        {
            if amount(quantity).is_none_or(|number| number < 0.0 || number.fract() != 0.0) {
                causes
                    .push((format!("status.{kind}.{name}"), format!("Invalid value: {quantity}: must be an integer")));
            }
        }
    }
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid("Node", name, &causes)) }
}

/// Requests of a pod; of an extended resource the limit is the request.
fn requests(pod: &Value) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let mut own: Map<String, Value> = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
        own.extend(container["resources"]["requests"].as_object().cloned().unwrap_or_default());
        for (name, quantity) in own {
            *all.entry(name).or_insert(0.0) += amount(&quantity).unwrap_or(0.0);
        }
    }
    all
}

/// Whether a quota is for pods of this class. Other scopes than the class are not known here, and match no pod.
fn is_for(quota: &Value, pod: &Value) -> bool {
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default();
    let scoped = quota["spec"]["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let matches = |one: &Value| {
        let named = one["values"].as_array().into_iter().flatten().any(|value| value == class);
        one["scopeName"] == "PriorityClass"
            && match one["operator"].as_str() {
                Some("In") => named,
                Some("NotIn") => !named,
                Some("Exists") => !class.is_empty(),
                _ => class.is_empty(),
            }
    };
    let mut scoped = scoped.map(matches);
    scoped.all(|matches| matches) && quota["spec"]["scopes"].as_array().is_none_or(Vec::is_empty)
}

fn used(state: &State, quota: &Value) -> BTreeMap<String, f64> {
    let mut used: BTreeMap<String, f64> =
        quota["spec"]["hard"].as_object().into_iter().flatten().map(|(name, _)| (name.clone(), 0.0)).collect();
    let everything = Selector::default();
    let pods = state
        .all("pods", &everything)
        .into_iter()
        .filter(|pod| quota["metadata"]["namespace"] == pod.namespace.as_str());
    for pod in pods.filter(|pod| !matches!(pod.phase.as_str(), "Succeeded" | "Failed")).map(|pod| pod.value()) {
        if !is_for(quota, &pod) {
            continue;
        }
        for (name, number) in requests(&pod) {
            if let Some(sum) = used.get_mut(&format!("{REQUESTS}{name}")) {
                *sum += number;
            }
        }
        if let Some(sum) = used.get_mut("pods") {
            *sum += 1.0;
        }
    }
    used
}

fn of_namespace(state: &State, namespace: &str) -> Vec<Value> {
    let all = state.all(QUOTAS, &Selector::default());
    all.iter().filter(|quota| quota.namespace == namespace).map(|quota| quota.value()).collect()
}

/// Refuses a new pod that would exceed a quota of its namespace.
pub fn admit(state: &State, pod: &Value) -> Result<(), Refusal> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let asked = requests(pod);
    for quota in of_namespace(state, namespace).iter().filter(|quota| is_for(quota, pod)) {
        for (name, number) in used(state, quota) {
            let more = if name == "pods" { Some(1.0) } else { asked.get(name.trim_start_matches(REQUESTS)).copied() };
            let hard = amount(&quota["spec"]["hard"][&name]).unwrap_or(f64::INFINITY);
            let Some(more) = more.filter(|more| *more > 0.0 && number + more > hard) else { continue };
            let (of, pod) = (&quota["metadata"]["name"], pod["metadata"]["name"].as_str().unwrap_or_default());
            let text = format!(
                "pods {pod:?} is forbidden: exceeded quota: {}, requested: {name}={more}, used: {name}={number}, limited: {name}={hard}",
                of.as_str().unwrap_or_default()
            );
            return Err(Refusal::new(403, "Forbidden", &text).details("pods", "", pod, vec![]));
        }
    }
    Ok(())
}

/// Writes what is used into the status of each quota, as its controller does.
pub fn settle(state: &mut State) {
    for stored in state.all(QUOTAS, &Selector::default()) {
        let mut quota = stored.value();
        let used: Map<String, Value> =
            used(state, &quota).into_iter().map(|(name, number)| (name, number.to_string().into())).collect();
        let status = json!({ "hard": quota["spec"]["hard"], "used": used });
        if quota["status"] != status {
            quota["status"] = status;
            state.put(QUOTAS, quota);
        }
    }
}
