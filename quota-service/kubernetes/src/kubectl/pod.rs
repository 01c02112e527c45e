//! `why` and `promise`.

use super::quota::word;
use super::verdict::Verdict;
use super::{Plugin, PluginError};
use crate::calls::{Calls, Fault};
use crate::claims;
use crate::cluster::served::ListFault;
use crate::cluster::slim::{Node, Pod};
use crate::gangs::may_replace;
use crate::headroom::encoded;
use crate::show::{self, ShowError};
use crate::view::View;
use crate::view::facts::{Life, NodeFacts, PodFacts, Reading};
use command_line::{print_json, print_text};
use connectors::clock;
use kube::Client;
use placement::Policy;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use vocab::{GpuModel, TaskClass, UnixSeconds};
use wire::{PoolSummary, PromiseHours, PromiseReport};

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Events that are printed.
const EVENTS: usize = 5;

/// A pod and its pool.
struct Asked {
    object: Value,
    facts: PodFacts,
    model: Option<GpuModel>,
    pool: Option<PoolSummary>,
    /// Whether it may have what is left of the promise of an earlier pod of its gang. Gangs themselves are for the connector to read.
    may_replace: bool,
    /// Why its claims are not counted, where they are not.
    uncounted: Option<String>,
    now: UnixSeconds,
}

/// Of pods of a gang or job: users may not read its objects, and a pod that went is on no list.
const LEFT_OF_A_GANG: &str = "where the connector reads gangs (gangs.enabled), the promise began with the first pod of its gang, or of its job that \
    Kueue admitted: a pod that replaces an earlier one has what is left of it";
/// Remedy where a user may not list claims or devices.
const RIGHTS: &str = "ask an administrator for the ClusterRole headroom-user (deploy/chart/users.yaml)";

fn api(fault: &Fault) -> PluginError {
    PluginError::Api(fault.to_string())
}

async fn asked(plugin: &Plugin, client: &Client, name: &str) -> Result<Asked, PluginError> {
    let own = &plugin.config.namespace;
    let namespace = if own.is_empty() { client.default_namespace().to_owned() } else { own.clone() };
    let calls = Calls::new(client.clone(), ANSWERS_WITHIN);
    let path = format!("/api/v1/namespaces/{}/pods/{}", encoded(&namespace), encoded(name));
    let object = calls.find(&path).await.map_err(|fault| api(&fault))?;
    let object =
        object.ok_or_else(|| PluginError::Unknown(format!("there is no pod {name} in namespace {namespace}")))?;
    let foreign = |fault: serde_json::Error| PluginError::Api(format!("pod {namespace}/{name}: {fault}"));
    let pod: Pod = serde_json::from_value(object.clone()).map_err(foreign)?;
    let (connector, now) = (plugin.config.connector(), clock::now());
    let mut reading = Reading::of(&connector);
    let mut view = View::new(plugin.cluster.clone(), reading.clone(), Policy::GFS);
    let (mut uncounted, mut without_nodes) = (None, None);
    let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
    if !pod.spec.resource_claims.is_empty() && !connector.device_classes.0.is_empty() {
        match read_claims(client, &mut view, &pod, now).await {
            Ok(unlisted) => without_nodes = unlisted,
            Err(fault @ ListFault::Refused { .. }) => {
                uncounted = Some(format!("GPUs by claims are not counted, since {fault}; {RIGHTS}"));
                // Half of the kinds would count claims without their devices.
                reading.device_classes.clear();
                view = View::new(plugin.cluster.clone(), reading.clone(), Policy::GFS);
            }
            Err(fault) => return Err(PluginError::Api(fault.to_string())),
        }
    }
    let seen = view.see_pod(&pod, now).map_err(|fault| PluginError::Unknown(fault.to_string()))?;
    view.settle_claims(true, now);
    uncounted = uncounted.or_else(|| missing(&view.missing_claims(seen.as_ref()?.uid), pod.spec.node_name.is_some()));
    let counted = seen.and_then(|seen| view.pod(&seen.uid).cloned().or(seen.facts));
    let facts = counted.ok_or_else(|| {
        let by_claims = !pod.spec.resource_claims.is_empty();
        let asks_for = if is_over && by_claims {
            "has ended, and with it its promise; its claims are deleted, so its GPUs are not known here".to_owned()
        } else {
            format!("asks for no GPUs (gpu_resource {}, device_classes)", connector.gpu_resource)
        };
        PluginError::Unknown(format!("pod {namespace}/{name}: {}", uncounted.clone().unwrap_or(asks_for)))
    })?;
    let here = model_here(&calls, &facts, &reading).await?;
    let pools = plugin.pools().await?;
    let only = if let [only] = pools.as_slice() { GpuModel::parse(&only.gpu_model).ok() } else { None };
    let model = here.or_else(|| facts.gpu_model.clone()).or(reading.default_gpu_model).or(only);
    let pool = pools.into_iter().find(|pool| model.as_ref().is_some_and(|model| model.as_str() == pool.gpu_model));
    let unknown = without_nodes.filter(|_| model.is_none());
    let uncounted =
        uncounted.or_else(|| unknown.map(|fault| format!("its GPU model is not known, since {fault}; {RIGHTS}")));
    Ok(Asked { object, facts, model, pool, may_replace: may_replace(&pod), uncounted, now })
}

/// Why GPUs are not known, where claims or templates that a pod names do not exist. Those of a pod that has its node did.
fn missing(claims: &[String], has_node: bool) -> Option<String> {
    let (is_one, names) = (claims.len() == 1, claims.join(" and "));
    let verb = match (has_node, is_one) {
        (false, true) => "does not exist yet",
        (false, false) => "do not exist yet",
        (true, true) => "no longer exists",
        (true, false) => "no longer exist",
    };
    (!claims.is_empty()).then(|| format!("GPUs by claims are not known, since {names} {verb}"))
}

/// Devices and claims, as far as one pod needs them; while it waits nodes, too: it belongs to the model of all nodes with devices that
/// match. Answers why nodes are not known, where a user may not list them.
pub(super) async fn read_claims(
    client: &Client,
    view: &mut View,
    pod: &Pod,
    now: UnixSeconds,
) -> Result<Option<ListFault>, ListFault> {
    claims::watch::read_for(client, view, pod.metadata.namespace.as_deref().unwrap_or_default(), now).await?;
    if pod.spec.node_name.is_some() {
        return Ok(None);
    }
    // A node that cannot be read is left out here as it is in the connector.
    let listed = show::each::<Node>(client, "nodes", |node| _ = view.see_node(&node, now)).await;
    match listed {
        Err(ShowError::List(fault @ ListFault::Refused { .. })) => Ok(Some(fault)),
        Err(ShowError::List(fault)) => Err(fault),
        Ok(()) | Err(_) => Ok(None),
    }
}

/// The GPU model of the node that a pod has.
async fn model_here(calls: &Calls, facts: &PodFacts, reading: &Reading) -> Result<Option<GpuModel>, PluginError> {
    let Some(node) = &facts.node else { return Ok(None) };
    let node = calls.find(&format!("/api/v1/nodes/{}", encoded(node.as_str()))).await.map_err(|fault| api(&fault))?;
    let node = node.and_then(|node| serde_json::from_value::<Node>(node).ok());
    let read = node.and_then(|node| NodeFacts::read_any(&node, reading).ok().flatten());
    Ok(read.and_then(|(facts, _)| facts.gpu_model))
}

impl Asked {
    fn name(&self) -> String {
        format!("{}/{}", self.facts.namespace, self.facts.name)
    }

    fn title(&self) -> String {
        let class = if self.facts.class == TaskClass::Hp { "high-priority" } else { "spot" };
        let hours = match self.facts.guarantee {
            Some(hours) => format!(", guaranteed for {hours}"),
            None if self.facts.class == TaskClass::Spot => ", at will".to_owned(),
            None => String::new(),
        };
        let model = self.model.as_ref().map_or_else(|| "of an unknown model".to_owned(), |model| format!("of {model}"));
        format!("pod {}: {class}, {} {model}{hours}", self.name(), vocab::gpus(self.facts.amount().as_gpus()))
    }

    /// The condition by which the scheduler speaks.
    fn scheduled(&self) -> (String, String) {
        let all = self.object["status"]["conditions"].as_array().into_iter().flatten();
        let found = all.into_iter().find(|one| one["type"] == "PodScheduled");
        let text = |field: &str| found.and_then(|one| one[field].as_str()).unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }
}

pub(super) async fn why(plugin: &Plugin, name: &str, json: bool) -> Result<(), PluginError> {
    let client = plugin.client().await?;
    let asked = asked(plugin, &client, name).await?;
    let (reason, message) = asked.scheduled();
    let verdict = Verdict::of(&asked.facts, asked.pool.as_ref(), reason == "SchedulingGated");
    let events = events(&client, &asked).await?;
    let sentence = verdict.sentence(&asked.facts);
    if json {
        print_json(&json!({
            "pod": asked.name(), "gpus": asked.facts.amount().as_gpus(), "gpu_model": asked.model.as_ref().map(GpuModel::as_str),
            "class": if asked.facts.class == TaskClass::Hp { "hp" } else { "spot" },
            "guarantee_hours": asked.facts.guarantee.map(vocab::HorizonHours::get),
            "verdict": verdict.code(), "detail": sentence, "scheduler": message,
            "available_gpus_by_hours": asked.pool.as_ref().map(|pool| &pool.available_gpus_by_hours), "events": events,
            "not_counted": asked.uncounted, "hours_fault": asked.facts.hours_fault,
        }));
        return Ok(());
    }
    let mut text = format!("{}\n{sentence}\n", asked.title());
    if let Some(why) = &asked.uncounted {
        let _ = writeln!(text, "{why}");
    }
    if let Some(fault) = &asked.facts.hours_fault {
        let _ = writeln!(text, "{fault}: nothing is promised to it");
    }
    if let Some(pool) = asked.pool.as_ref().filter(|_| asked.facts.life == Life::Waits) {
        let stage = pool.stage.as_ref().map(word).unwrap_or_default();
        for (hours, left) in &pool.available_gpus_by_hours {
            let _ = writeln!(text, "left for {hours} h: {} ({stage})", vocab::gpus(left));
        }
    }
    if !message.is_empty() {
        let _ = writeln!(text, "scheduler: {message}");
    }
    for event in &events {
        let _ = writeln!(text, "event: {event}");
    }
    print_text(&text);
    Ok(())
}

/// The last events of a pod, the newest last.
async fn events(client: &Client, asked: &Asked) -> Result<Vec<String>, PluginError> {
    let uid = asked.object["metadata"]["uid"].as_str().unwrap_or_default();
    let (namespace, uid) = (encoded(&asked.facts.namespace), encoded(uid));
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid%3D{uid}");
    let found = match Calls::new(client.clone(), ANSWERS_WITHIN).get(&path).await {
        Ok(found) => found,
        // A caller that may not read events gets the rest.
        Err(Fault::Refused { code: 403, .. }) => return Ok(Vec::new()),
        Err(fault) => return Err(api(&fault)),
    };
    let mut items: Vec<&Value> = found["items"].as_array().into_iter().flatten().collect();
    // A server that does not know the field answers all of the namespace.
    items.retain(|event| event["involvedObject"]["uid"] == asked.object["metadata"]["uid"]);
    items.sort_by_key(|event| event["lastTimestamp"].as_str().or(event["eventTime"].as_str()).unwrap_or_default());
    let from = items.len().saturating_sub(EVENTS);
    let one = |event: &&Value| {
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        format!("{}: {}", text("reason"), text("message"))
    };
    Ok(items[from..].iter().map(one).collect())
}

pub(super) async fn promise(plugin: &Plugin, name: &str, json: bool) -> Result<(), PluginError> {
    let client = plugin.client().await?;
    let asked = asked(plugin, &client, name).await?;
    let hours = asked.facts.guarantee.filter(|_| asked.facts.class == TaskClass::Spot);
    let report: Option<PromiseReport> = match (&asked.model, hours) {
        (Some(model), Some(_)) if asked.pool.is_some() => {
            let (cluster, model) = (encoded(plugin.cluster.as_str()), encoded(model.as_str()));
            Some(plugin.headroom.get(&format!("/v1/promises?cluster={cluster}&gpu_model={model}")).await?)
        }
        _ => None,
    };
    let began = Some(asked.facts.since()).filter(|_| asked.facts.life == Life::Runs && hours.is_some());
    let until = began.zip(hours).map(|(began, hours)| began.plus_s(hours.seconds()));
    let kept = report
        .as_ref()
        .and_then(|report| report.by_hours.iter().find(|one| hours.is_some_and(|hours| hours.get() == one.hours)));
    let rate = report.as_ref().map(|report| report.guarantee_rate);
    if json {
        print_json(&json!({
            "pod": asked.name(), "guarantee_hours": hours.map(vocab::HorizonHours::get),
            "began_at": began.map(|time| time.to_string()), "until": until.map(|time| time.to_string()),
            "is_open": until.is_some_and(|until| until > asked.now), "may_end_earlier": hours.is_some() && asked.may_replace,
            "guarantee_rate": rate,
            "kept_rate": kept.and_then(|kept| kept.kept_rate), "kept": kept.map(|kept| kept.kept), "broken": kept.map(|kept| kept.broken),
            "not_counted": asked.uncounted,
        }));
        return Ok(());
    }
    print_text(&promise_text(&asked, until, rate, kept));
    Ok(())
}

fn promise_text(asked: &Asked, until: Option<UnixSeconds>, rate: Option<f64>, kept: Option<&PromiseHours>) -> String {
    let mut text = format!("{}\n", asked.title());
    if let Some(why) = &asked.uncounted {
        let _ = writeln!(text, "{why}");
    }
    let promised = match (asked.facts.class, asked.facts.guarantee, until) {
        (TaskClass::Hp, ..) => "high-priority pods are not evicted, and need no promise".to_owned(),
        (_, None, _) => match &asked.facts.hours_fault {
            Some(fault) => format!("nothing is promised to it, and it is evicted first: {fault}"),
            None => "nothing is promised to it: it runs at will, and is evicted first".to_owned(),
        },
        (_, Some(hours), None) if asked.facts.life == Life::Ended => {
            format!("it has ended, and with it its promise of {hours}")
        }
        (_, Some(hours), None) => format!("promised for {hours} from when it gets its node"),
        (_, _, Some(until)) if until > asked.now => {
            let latest = if asked.may_replace { " at the latest" } else { "" };
            format!("promised until {until}{latest}, {} min more", until.since_s(asked.now) / 60)
        }
        (_, _, Some(until)) if asked.may_replace => {
            format!("its promise was over at {until} at the latest; it runs on at will")
        }
        (_, _, Some(until)) => format!("the promise was kept until {until}; it runs on at will"),
    };
    let _ = writeln!(text, "{promised}");
    let is_promised = asked.facts.class == TaskClass::Spot && asked.facts.guarantee.is_some();
    if is_promised && asked.may_replace && asked.facts.life != Life::Ended {
        let _ = writeln!(text, "{LEFT_OF_A_GANG}");
    }
    if let (Some(rate), Some(kept)) = (rate, kept) {
        let share = kept.kept_rate.map_or_else(
            || "none has ended yet".to_owned(),
            |share| format!("{:.1} % of promised GPUs stay so long", share * 100.0),
        );
        let _ = writeln!(
            text,
            "promises of {} h in 28 days: {} ended without an eviction, {} broken; {share} (one that ends early counts until then), aim {:.1} %",
            kept.hours,
            kept.kept,
            kept.broken,
            rate * 100.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::facts::Uid;
    use crate::view::tests::fixture;
    use vocab::HorizonHours;

    /// A spot pod that got its node at the start, asked about 10 min later.
    fn asked(may_replace: bool) -> Asked {
        let facts = PodFacts {
            guarantee: HorizonHours::new(1).ok(),
            life: Life::Runs,
            bound: Some(UnixSeconds::new(0)),
            ..fixture::pod(Uid(1), 8, TaskClass::Spot, None)
        };
        let now = UnixSeconds::new(600);
        Asked { object: Value::Null, facts, model: None, pool: None, may_replace, uncounted: None, now }
    }

    #[test]
    fn a_pod_that_may_replace_one_of_its_gang_is_promised_until_its_own_hours_at_the_latest() {
        let until = |hours: i64| Some(UnixSeconds::new(hours * 3_600));
        let text = |asked: &Asked, until| promise_text(asked, until, None, None);
        let alone = text(&asked(false), until(1));
        assert!(alone.contains("promised until 1970-01-01T01:00:00Z, 50 min more\n"), "{alone}");
        assert!(!alone.contains("gangs"), "{alone}");
        let of_gang = text(&asked(true), until(1));
        assert!(of_gang.contains("promised until 1970-01-01T01:00:00Z at the latest, 50 min more\n"), "{of_gang}");
        assert!(of_gang.contains("has what is left of it"), "{of_gang}");
        let over = Asked { now: UnixSeconds::new(7_200), ..asked(true) };
        let over = text(&over, until(1));
        assert!(!over.contains("kept until"), "nobody here knows that: {over}");
    }

    #[test]
    fn a_promise_names_claims_that_do_not_exist_beside_gpus_that_count() {
        let why = missing(&["ResourceClaim one".to_owned()], true);
        let text = promise_text(&Asked { uncounted: why, ..asked(false) }, None, None, None);
        let mut lines = text.lines().skip(1);
        assert_eq!(
            lines.next(),
            Some("GPUs by claims are not known, since ResourceClaim one no longer exists"),
            "{text}"
        );
        let waits = missing(&["ResourceClaim one".to_owned(), "ResourceClaimTemplate two".to_owned()], false);
        assert!(waits.unwrap().ends_with("ResourceClaim one and ResourceClaimTemplate two do not exist yet"));
        assert_eq!(missing(&[], true), None);
    }

    #[test]
    fn pods_of_gangs_and_jobs_may_replace_others_and_single_pods_none() {
        let owned = |kind: &str| {
            json!({ "name": "p", "ownerReferences": [
                { "apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": true },
            ] })
        };
        let labelled = |label: &str| json!({ "name": "p", "labels": { label: "one" } });
        let of = |metadata: Value| may_replace(&serde_json::from_value(json!({ "metadata": metadata })).unwrap());
        assert!(of(labelled("jobset.sigs.k8s.io/jobset-name")) && of(owned("Job")));
        assert!(!of(labelled("kueue.x-k8s.io/managed")) && !of(owned("ReplicaSet")));
    }
}
