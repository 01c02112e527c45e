//! Objects that carry quotas: path, content and form. Pure: JSON in, JSON out.

use super::plan::{Gpus, Part};
use super::provider::Form;
use crate::config::Config;
use crate::events::Regarding;
use crate::lead::{epoch_of, stamp};
use crate::names::{HEADROOM, HELD_GPUS, MANAGED_BY, QUOTA_CONTROLLER, QUOTA_MANAGER};
use crate::quantity::Quantity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Name of each `ResourceQuota`.
pub const RESOURCE_QUOTA: &str = "headroom-spot";
/// Name of each `ResourceQuota` of spot at will, where that is apart.
pub const AT_WILL_QUOTA: &str = "headroom-spot-at-will";
/// Under which the whole of a namespace is published.
pub const ALL: &str = "all";

/// Which kind of object, with what is of that kind alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Kueue distributes its capacity.
    Provider(Form),
    /// A `ClusterQueue` of our own.
    Queue,
    /// A `ResourceQuota` in this namespace.
    Quota { namespace: String, classes: BTreeSet<String> },
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Kind of the object.
    pub kind: Kind,
    name: String,
    gpu_resource: String,
}

/// Content to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// GPUs to publish.
    pub gpus: Gpus,
    /// GPUs that spot holds.
    pub held: Gpus,
    /// Epoch of the writer.
    pub epoch: u32,
    /// Why it is so, for people.
    pub message: String,
}

impl Target {
    /// The `CapacityProvider` of the settings.
    #[must_use]
    pub fn provider(config: &Config, form: Form) -> Self {
        let (name, gpu_resource) = (config.capacity_provider.to_string(), config.gpu_resource.to_string());
        Self { kind: Kind::Provider(form), name, gpu_resource }
    }

    /// The `ClusterQueue` of the settings.
    #[must_use]
    pub fn queue(config: &Config) -> Self {
        Self {
            kind: Kind::Queue,
            name: config.cluster_queue.to_string(),
            gpu_resource: config.gpu_resource.to_string(),
        }
    }

    /// The `ResourceQuota` of a namespace.
    #[must_use]
    pub fn quota(config: &Config, namespace: &str, part: Part) -> Self {
        let (name, classes) = match part {
            Part::Main => (RESOURCE_QUOTA, config.spot_priority_classes.names()),
            Part::AtWill => (AT_WILL_QUOTA, &config.at_will_priority_classes.0),
        };
        let kind = Kind::Quota { namespace: namespace.to_owned(), classes: classes.clone() };
        Self { kind, name: name.to_owned(), gpu_resource: config.gpu_resource.to_string() }
    }

    /// Name in metrics and the log.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.kind {
            Kind::Provider(_) => "capacity-provider".to_owned(),
            Kind::Queue => "cluster-queue".to_owned(),
            Kind::Quota { namespace, .. } if self.name == RESOURCE_QUOTA => format!("resource-quota/{namespace}"),
            Kind::Quota { namespace, .. } => format!("resource-quota-at-will/{namespace}"),
        }
    }

    /// The object, for events of it.
    #[must_use]
    pub fn regarding(&self) -> Regarding {
        let (api_version, kind) = match &self.kind {
            Kind::Provider(form) => (format!("kueue.x-k8s.io/{}", form.version), "CapacityProvider"),
            Kind::Queue => ("kueue.x-k8s.io/v1beta2".to_owned(), "ClusterQueue"),
            Kind::Quota { .. } => ("v1".to_owned(), "ResourceQuota"),
        };
        let namespace = if let Kind::Quota { namespace, .. } = &self.kind { namespace.clone() } else { String::new() };
        Regarding { api_version, kind, namespace, name: self.name.clone(), uid: String::new() }
    }

    /// Path of the object.
    #[must_use]
    pub fn path(&self) -> String {
        let name = &self.name;
        match &self.kind {
            Kind::Provider(form) => format!("/apis/kueue.x-k8s.io/{}/capacityproviders/{name}", form.version),
            Kind::Queue => format!("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{name}"),
            Kind::Quota { namespace, .. } => format!("/api/v1/namespaces/{namespace}/resourcequotas/{name}"),
        }
    }

    /// Whether an object of this name is ours to write.
    ///
    /// # Errors
    /// Another writer owns it; the text names the field that shows it.
    pub fn is_ours(&self, live: &Value) -> Result<(), String> {
        let controller = live["spec"]["controllerName"].as_str().unwrap_or_default();
        let manager = live["metadata"]["labels"][MANAGED_BY].as_str().unwrap_or_default();
        match &self.kind {
            Kind::Provider(_) if controller != QUOTA_CONTROLLER => {
                Err(format!("its controllerName is {controller:?}: choose another name, or delete it"))
            }
            Kind::Queue if manager != HEADROOM => {
                Err(format!("it has no label {MANAGED_BY}={HEADROOM}: choose another name, or delete it"))
            }
            Kind::Quota { namespace, .. } if manager != HEADROOM => Err(format!(
                "it has no label {MANAGED_BY}={HEADROOM}: delete it, or take {namespace} out of resource_quota_shares"
            )),
            _ => Ok(()),
        }
    }

    /// Other field managers that own the amounts.
    #[must_use]
    pub fn other_owners(&self, live: &Value) -> Vec<String> {
        let request = format!("f:{}", self.request());
        let path: &[&str] = match &self.kind {
            Kind::Provider(_) => &["f:status", "f:capacity"],
            Kind::Queue => &["f:spec", "f:resourceGroups"],
            Kind::Quota { .. } => &["f:spec", "f:hard", &request],
        };
        let entries = live["metadata"]["managedFields"].as_array().into_iter().flatten();
        let others = entries.filter(|one| one["manager"] != QUOTA_MANAGER);
        let owns = |one: &&Value| path.iter().try_fold(&one["fieldsV1"], |at, step| at.get(*step)).is_some();
        others.filter(owns).filter_map(|one| one["manager"].as_str().map(str::to_owned)).collect()
    }

    /// GPUs that the object publishes; entries that are no number are left out.
    #[must_use]
    pub fn published(&self, live: &Value) -> Gpus {
        let resource = self.gpu_resource.as_str();
        let of = |flavors: &Value, amount: &dyn Fn(&Value) -> Option<u64>| {
            let entries = flavors.as_array().into_iter().flatten();
            entries.filter_map(|one| Some((one["name"].as_str()?.to_owned(), amount(one)?))).collect()
        };
        match &self.kind {
            Kind::Provider(_) => of(&live["status"]["capacity"]["flavors"], &|one| whole(&one["resources"][resource])),
            Kind::Queue => of(&live["spec"]["resourceGroups"][0]["flavors"], &|one| {
                whole(&of_resource(&one["resources"], resource)?["nominalQuota"])
            }),
            Kind::Quota { .. } => whole(&live["spec"]["hard"][self.request()]).map(all).unwrap_or_default(),
        }
    }

    /// GPUs held of it now, by the best source: the object's own count of usage, then the annotation.
    #[must_use]
    pub fn used(&self, live: &Value) -> Gpus {
        match &self.kind {
            Kind::Quota { .. } => all(whole(&live["status"]["used"][self.request()]).unwrap_or(0)),
            Kind::Queue if live["status"]["flavorsUsage"].is_array() => {
                let entries = live["status"]["flavorsUsage"].as_array().into_iter().flatten();
                let one = |one: &Value| {
                    let used = of_resource(&one["resources"], &self.gpu_resource);
                    let used = used.and_then(|used| whole(&used["total"])).unwrap_or(0);
                    Some((one["name"].as_str()?.to_owned(), used))
                };
                entries.filter_map(one).collect()
            }
            Kind::Queue | Kind::Provider(_) => held_of(live).unwrap_or_default(),
        }
    }

    fn request(&self) -> String {
        format!("requests.{}", self.gpu_resource)
    }

    /// Message for people.
    #[must_use]
    pub fn message<'a>(&self, live: &'a Value) -> Option<&'a str> {
        let condition = matches!(self.kind, Kind::Provider(_)).then(|| condition(live))??;
        (condition["status"] == "True").then(|| condition["message"].as_str())?
    }

    /// Whether more is to be written than the amounts: another epoch, what is held, or why.
    #[must_use]
    pub fn is_outdated(&self, live: &Value, content: &Content, is_large: impl Fn(u64, u64) -> bool) -> bool {
        let is_provider = matches!(self.kind, Kind::Provider(_));
        let tells_held = !matches!(self.kind, Kind::Quota { .. });
        let held_differs = || {
            let Some(noted) = held_of(live) else { return true };
            content.held.iter().any(|(name, held)| is_large(noted.get(name).copied().unwrap_or(0), *held))
        };
        epoch_of(live) != content.epoch
            || (tells_held && held_differs())
            || (is_provider && self.message(live) != Some(content.message.as_str()))
    }

    /// The object without its status: all that we own of it, since an apply takes away what it leaves out.
    #[must_use]
    pub fn main(&self, live: Option<&Value>, content: &Content) -> Value {
        let mut object = json!({
            "metadata": { "name": self.name, "labels": { MANAGED_BY: HEADROOM }, "annotations": {} },
        });
        stamp(&mut object, content.epoch);
        (object["apiVersion"], object["kind"]) = self.api();
        if let Some(version) = live.and_then(|live| live["metadata"].get("resourceVersion")) {
            object["metadata"]["resourceVersion"] = version.clone();
        }
        if matches!(self.kind, Kind::Provider(_) | Kind::Queue) {
            object["metadata"]["annotations"][HELD_GPUS] = json!(content.held).to_string().into();
        }
        // A provider that an admin or Helm made stays theirs but for its status and our annotations: a manager that applies the fields of
        // another owns them too, and conflicts with it from then on.
        let is_theirs = live.is_some_and(|live| live["metadata"]["labels"][MANAGED_BY] != HEADROOM);
        if is_theirs && matches!(self.kind, Kind::Provider(_)) {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("labels");
            }
            return object;
        }
        object["spec"] = self.spec(live, content);
        object
    }

    fn api(&self) -> (Value, Value) {
        let Regarding { api_version, kind, .. } = self.regarding();
        (api_version.into(), kind.into())
    }

    fn spec(&self, live: Option<&Value>, content: &Content) -> Value {
        match &self.kind {
            Kind::Provider(form) => {
                let names: Vec<Value> = content.gpus.keys().map(|name| json!({ "name": name })).collect();
                json!({ "controllerName": QUOTA_CONTROLLER, form.flavors: names })
            }
            Kind::Queue => self.queue_spec(live, content),
            Kind::Quota { classes, .. } => {
                let gpus = content.gpus.get(ALL).copied().unwrap_or(0);
                json!({
                    "hard": { self.request(): gpus.to_string() },
                    "scopeSelector": { "matchExpressions": [
                        { "scopeName": "PriorityClass", "operator": "In", "values": classes },
                    ]},
                })
            }
        }
    }

    fn queue_spec(&self, live: Option<&Value>, content: &Content) -> Value {
        let order = flavors_in_order(live, &content.gpus);
        let flavor = |name: &String| {
            let quota = content.gpus[name].to_string();
            json!({ "name": name, "resources": [{ "name": self.gpu_resource, "nominalQuota": quota }] })
        };
        let flavors: Vec<Value> = order.iter().map(flavor).collect();
        // The whole list: it is owned as one. Each flavor lists its resources in the order of those covered.
        let mut spec = json!({ "resourceGroups": [{ "coveredResources": [self.gpu_resource], "flavors": flavors }] });
        // A queue without a selector takes workloads of no namespace, so a new one gets one that takes all. It is the admin's from the
        // moment that they change it.
        match live {
            None => spec["namespaceSelector"] = json!({}),
            Some(live) if owns_selector(live) => spec["namespaceSelector"] = live["spec"]["namespaceSelector"].clone(),
            Some(_) => {}
        }
        spec
    }

    /// The status, written apart; `None` where we write none. `live` is what stands since the rest was written.
    #[must_use]
    pub fn status(&self, live: &Value, content: &Content) -> Option<Value> {
        let Kind::Provider(form) = &self.kind else { return None };
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let amount = |gpus: &u64| json!({ self.gpu_resource.clone(): gpus.to_string() });
        let flavors: Vec<Value> =
            content.gpus.iter().map(|(name, gpus)| json!({ "name": name, "resources": amount(gpus) })).collect();
        let mut capacity = json!({ "flavors": flavors });
        if form.has_update_time {
            capacity["lastUpdateTime"] = now.as_str().into();
        }
        let stands = condition(live).filter(|condition| condition["status"] == "True");
        let since = stands.and_then(|condition| condition["lastTransitionTime"].as_str()).unwrap_or(&now);
        // True also where Headroom does not answer: Kueue keeps the last effective quota under a condition that is False,
        // and a capacity lowered for that very reason would not take effect.
        let (api_version, kind) = self.api();
        Some(json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": { "name": self.name, "resourceVersion": live["metadata"]["resourceVersion"] },
            "status": { "capacity": capacity, "conditions": [{
                "type": CONDITION, "status": "True", "reason": "Synchronized", "message": content.message,
                "lastTransitionTime": since,
            }]},
        }))
    }
}

const CONDITION: &str = "CapacitySynchronized";

fn condition(live: &Value) -> Option<&Value> {
    live["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == CONDITION)
}

fn all(gpus: u64) -> Gpus {
    [(ALL.to_owned(), gpus)].into()
}

fn of_resource<'a>(resources: &'a Value, name: &str) -> Option<&'a Value> {
    resources.as_array()?.iter().find(|one| one["name"] == name)
}

/// The order that stands is kept, since Kueue tries flavors in it; new ones come last.
fn flavors_in_order(live: Option<&Value>, gpus: &Gpus) -> Vec<String> {
    let stands = live.and_then(|live| live["spec"]["resourceGroups"][0]["flavors"].as_array());
    let stands = stands.into_iter().flatten().filter_map(|one| one["name"].as_str().map(str::to_owned));
    let mut order: Vec<String> = stands.filter(|name| gpus.contains_key(name)).collect();
    let new: Vec<String> = gpus.keys().filter(|name| !order.contains(name)).cloned().collect();
    order.extend(new);
    order
}

fn owns_selector(live: &Value) -> bool {
    let entries = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut ours = entries.filter(|one| one["manager"] == QUOTA_MANAGER && one["operation"] == "Apply");
    ours.any(|one| one["fieldsV1"]["f:spec"].get("f:namespaceSelector").is_some())
}

/// GPUs held when it was written, by the annotation.
#[must_use]
pub fn held_of(live: &Value) -> Option<Gpus> {
    serde_json::from_str(live["metadata"]["annotations"][HELD_GPUS].as_str()?).ok()
}

/// Whole GPUs of a quantity of the API; a part of one does not count.
fn whole(quantity: &Value) -> Option<u64> {
    let text = quantity.as_str().map(str::to_owned).or_else(|| quantity.as_number().map(ToString::to_string))?;
    Quantity::parse(&text).ok().map(Quantity::floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_whole_numbers() {
        let read = |text: &str| whole(&json!(text));
        assert_eq!(
            [read("8"), read("2k"), read("8e0"), read("1500m"), read("x"), read("")],
            [Some(8), Some(2_000), Some(8), Some(1), None, None]
        );
        assert_eq!([whole(&json!(4)), whole(&json!(1e3))], [Some(4), Some(1_000)]);
    }

    #[test]
    fn the_order_of_flavors_stays_and_new_ones_come_last() {
        let live = json!({ "spec": { "resourceGroups": [{ "flavors": [{ "name": "z" }, { "name": "b" }] }] } });
        let gpus = ["a", "b", "z"].map(|name| (name.to_owned(), 1)).into();
        assert_eq!(flavors_in_order(Some(&live), &gpus), ["z", "b", "a"]);
    }

    #[test]
    fn what_is_held_is_what_kueue_counts_and_else_what_was_noted() {
        let queue = Target::queue(&Config::default());
        let mut live = json!({ "metadata": { "annotations": { HELD_GPUS: r#"{"a":5}"# } } });
        assert_eq!(queue.used(&live)["a"], 5);
        live["status"]["flavorsUsage"] =
            json!([{ "name": "a", "resources": [{ "name": "nvidia.com/gpu", "total": "7", "borrowed": "0" }] }]);
        assert_eq!(queue.used(&live)["a"], 7);
        assert_eq!(Target::quota(&Config::default(), "team-a", Part::Main).used(&json!({}))[ALL], 0);
    }
}
