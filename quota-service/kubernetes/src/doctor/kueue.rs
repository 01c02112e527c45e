//! Objects that the program writes: whether they exist, are ours, and are used.

use super::Check;
use super::api::Api;
use super::definitions::{Definitions, concerns};
use crate::admission::decide::held;
use crate::cluster::workload::Workload;
use crate::config::{Config, KueueMode};
use crate::names::{GUARANTEE_CONTROLLER, HEADROOM, MANAGED_BY, QUOTA_CONTROLLER};
use crate::publish::provider::Form;
use crate::publish::target::Target;
use crate::show;
use crate::view::facts::Reading;
use crate::workloads::WorkloadFacts;
use serde_json::Value;
use std::collections::BTreeSet;

const GROUP: &str = "/apis/kueue.x-k8s.io";
/// Objects that are named one by one.
const SHOWN: usize = 3;

/// The objects of Kueue that the modes name.
pub async fn of(api: &Api, config: &Config, definitions: &Definitions) -> Vec<Check> {
    if !concerns(config) {
        return Vec::new();
    }
    let mut checks = Vec::new();
    let mode = config.kueue;
    if mode.is_on() {
        checks.extend(resource_flavors(api, config).await);
        let has_provider = definitions.has_provider() == Some(true);
        if mode == KueueMode::CapacityProvider || mode == KueueMode::Auto && has_provider {
            // `definitions` reports a definition that is missing or has another form.
            if let Some(form) = definitions.form() {
                checks.push(provider(api, config, &form).await);
                checks.push(orchestrator(api, config, &form).await);
            }
        } else {
            checks.push(queue(api, config).await);
            checks.extend(cohort(api, config).await);
        }
    }
    if config.admission_check {
        checks.extend(admission_check(api, config).await);
        checks.extend(held_workloads(api, config).await);
    }
    checks
}

/// Reservations that Kueue keeps for Workloads that do not run.
async fn held_workloads(api: &Api, config: &Config) -> Option<Check> {
    let (reading, check) = (Reading::of(config), config.admission_check_name.as_str());
    let mut all = Vec::new();
    let read = |workload: Workload| all.push(WorkloadFacts::read(&workload, &reading, check));
    // `permissions` reports what cannot be listed.
    show::each::<Workload>(api.client(), "workloads", read).await.ok()?;
    let held = held(&all, connectors::clock::now());
    let shown: Vec<String> = held.iter().take(SHOWN).map(|one| format!("{}/{}", one.namespace, one.name)).collect();
    let found = format!("{} Workloads do not run and keep their reservation: {}", held.len(), shown.join(", "));
    let fix = "set spec.active of each to false, and to true again: Kueue gives the reservation back, and may reserve it again";
    (!held.is_empty()).then(|| Check::warn("held reservations", found, fix))
}

fn unread(name: String, why: &str) -> Check {
    Check::fail(name, format!("it cannot be read: {why}"), "add the permission that is missing")
}

/// The names in a list of objects.
fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect()
}

/// A condition of an object: whether it is `True`, and what it says.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<(bool, &'a str)> {
    let found = object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)?;
    Some((found["status"] == "True", found["message"].as_str().unwrap_or_default()))
}

async fn resource_flavors(api: &Api, config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    for flavor in config.flavors.0.keys().chain(config.at_will_flavors.0.keys()) {
        let name = format!("flavor {flavor}");
        checks.push(match api.find(&format!("{GROUP}/v1beta2/resourceflavors/{flavor}")).await {
            Ok(Some(_)) => Check::ok(name, "the ResourceFlavor exists"),
            Ok(None) => Check::fail(name, "there is no such ResourceFlavor", "create it, or correct flavors"),
            Err(why) => unread(name, &why),
        });
    }
    checks
}

/// Flavors of the settings that are not in a list.
fn missing(config: &Config, listed: &BTreeSet<&str>) -> Vec<String> {
    let all = config.flavors.0.keys().chain(config.at_will_flavors.0.keys());
    all.filter(|flavor| !listed.contains(flavor.as_str())).cloned().collect()
}

async fn provider(api: &Api, config: &Config, form: &Form) -> Check {
    let wanted = &config.capacity_provider;
    let name = format!("capacity provider {wanted}");
    let object = match api.find(&format!("{GROUP}/{}/capacityproviders/{wanted}", form.version)).await {
        Ok(Some(object)) => object,
        Ok(None) => {
            return Check::fail(
                name,
                "it does not exist",
                "create it (deploy/chart does), or correct capacity_provider",
            );
        }
        Err(why) => return unread(name, &why),
    };
    let controller = object["spec"]["controllerName"].as_str().unwrap_or_default();
    if controller != QUOTA_CONTROLLER {
        let found = format!("its controllerName is {controller:?}: another controller owns it, and it is not written");
        return Check::fail(name, found, format!("create one with controllerName {QUOTA_CONTROLLER}"));
    }
    let list = form.flavors;
    let missing = missing(config, &names(&object["spec"][list]));
    if !missing.is_empty() {
        let found = format!("spec.{list} lacks {}: Kueue ignores their capacity", missing.join(", "));
        return Check::fail(name, found, format!("add them to spec.{list}, or correct flavors"));
    }
    match condition(&object, "CapacitySynchronized") {
        Some((true, _)) => Check::ok(name, "ours, and synchronized"),
        Some((false, why)) => Check::warn(name, format!("not synchronized: {why}"), "check that Headroom answers"),
        None => Check::warn(name, "nothing was published yet", "start headroom-kubernetes run"),
    }
}

/// An orchestrator has to distribute the capacity of the provider.
async fn orchestrator(api: &Api, config: &Config, form: &Form) -> Check {
    let name = "orchestrator".to_owned();
    let all = match api.list(&format!("{GROUP}/{}/dynamicquotaorchestrators", form.version)).await {
        Ok(all) => all,
        Err(why) => {
            let fix = "let this identity list dynamicquotaorchestrators";
            return Check::warn(name, format!("they cannot be read: {why}"), fix);
        }
    };
    let provider = config.capacity_provider.as_str();
    let ours: Vec<&Value> =
        all.iter().filter(|one| names(&one["spec"]["capacityDiscovery"]["providers"]).contains(provider)).collect();
    let Some(one) = ours.first() else {
        let fix = "create a DynamicQuotaOrchestrator that names it: without one the capacity reaches no queue";
        return Check::fail(name, format!("no DynamicQuotaOrchestrator names {provider}"), fix);
    };
    let who = one["metadata"]["name"].as_str().unwrap_or_default();
    let wrong = ["EffectiveCapacityComputed", "Distributed"]
        .into_iter()
        .find_map(|kind| condition(one, kind).filter(|(is_true, _)| !is_true).map(|(_, why)| format!("{kind}: {why}")));
    match wrong {
        Some(why) => Check::fail(name, format!("{who} is not {why}"), "read its conditions: kubectl describe"),
        None if ours.len() > 1 => {
            let fix = "keep one of them: two hand the same GPUs out twice";
            Check::fail(name, format!("{} DynamicQuotaOrchestrators name {provider}", ours.len()), fix)
        }
        None => Check::ok(name, format!("{who} distributes the capacity of {provider}")),
    }
}

async fn queue(api: &Api, config: &Config) -> Check {
    let wanted = &config.cluster_queue;
    let name = format!("cluster queue {wanted}");
    let object = match api.find(&format!("{GROUP}/v1beta2/clusterqueues/{wanted}")).await {
        Ok(Some(object)) => object,
        Ok(None) => {
            return Check::fail(name, "it does not exist", "create it (deploy/chart does), or correct cluster_queue");
        }
        Err(why) => return unread(name, &why),
    };
    if object["metadata"]["labels"][MANAGED_BY] != HEADROOM {
        let found =
            format!("it has no label {MANAGED_BY}={HEADROOM}: another controller owns it, and it is not written");
        return Check::fail(name, found, "choose another name, or label it if no other writer owns its spec");
    }
    let others = Target::queue(config).other_owners(&object);
    if !others.is_empty() {
        let found = format!("{} owns resourceGroups as well, and they are not written", others.join(", "));
        return Check::fail(name, found, "take spec.resourceGroups out of its manifest, and apply it again");
    }
    let groups = object["spec"]["resourceGroups"].as_array().into_iter().flatten();
    let listed: BTreeSet<&str> = groups.flat_map(|group| names(&group["flavors"])).collect();
    let missing = missing(config, &listed);
    if !listed.is_empty() && !missing.is_empty() {
        let found = format!("it lacks the flavors {}, which are added with the next quota", missing.join(", "));
        return Check::warn(name, found, "check the setting flavors");
    }
    match condition(&object, "Active") {
        Some((false, why)) => {
            Check::fail(name, format!("it is not active: {why}"), "read its conditions: kubectl describe")
        }
        _ => Check::ok(name, "ours"),
    }
}

/// Queues of the same cohort add the nominal quota of a flavor up, so that of another one lets Kueue admit more than ours.
async fn cohort(api: &Api, config: &Config) -> Option<Check> {
    // `permissions` reports what cannot be listed.
    let queues = api.list(&format!("{GROUP}/v1beta2/clusterqueues")).await.ok()?;
    let name_of = |queue: &Value| queue["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let ours = queues.iter().find(|queue| name_of(queue) == config.cluster_queue.as_str())?;
    let cohort = ours["spec"]["cohortName"].as_str().filter(|cohort| !cohort.is_empty())?;
    let resource = config.gpu_resource.as_str();
    let is_spot = |flavor: &Value| flavor["name"].as_str().is_some_and(|name| config.flavors.0.contains_key(name));
    let has_quota = |flavor: &&Value| {
        let mut resources = flavor["resources"].as_array().into_iter().flatten();
        // A quantity of zero has no other digit.
        let is_some = |quota: &Value| quota.to_string().chars().any(|digit| matches!(digit, '1'..='9'));
        is_spot(flavor) && resources.any(|one| one["name"] == resource && is_some(&one["nominalQuota"]))
    };
    let adds = |queue: &&Value| {
        let groups = queue["spec"]["resourceGroups"].as_array().into_iter().flatten();
        let mut flavors = groups.flat_map(|group| group["flavors"].as_array().into_iter().flatten());
        queue["spec"]["cohortName"] == cohort
            && name_of(queue) != config.cluster_queue.as_str()
            && flavors.any(|flavor| has_quota(&flavor))
    };
    let others: Vec<String> = queues.iter().filter(adds).map(name_of).collect();
    let found = format!(
        "{} of the cohort {cohort} have nominal quota of its flavors, too: Kueue admits both together, more than Headroom's quota",
        others.join(", ")
    );
    let fix = "set their nominalQuota of these flavors to 0: they borrow";
    (!others.is_empty()).then(|| Check::fail(format!("cohort of {}", config.cluster_queue), found, fix))
}

async fn admission_check(api: &Api, config: &Config) -> Vec<Check> {
    let wanted = config.admission_check_name.as_str();
    let name = format!("admission check {wanted}");
    let object = match api.find(&format!("{GROUP}/v1beta2/admissionchecks/{wanted}")).await {
        Ok(Some(object)) => object,
        Ok(None) => {
            let fix = "create it (deploy/chart does), or correct admission_check_name";
            return vec![Check::fail(name, "it does not exist", fix)];
        }
        Err(why) => return vec![unread(name, &why)],
    };
    let controller = object["spec"]["controllerName"].as_str().unwrap_or_default();
    if controller != GUARANTEE_CONTROLLER {
        let found = format!("its controllerName is {controller:?}: another controller owns it, and it is not answered");
        return vec![Check::fail(name, found, format!("create one with controllerName {GUARANTEE_CONTROLLER}"))];
    }
    let active = match condition(&object, "Active") {
        Some((true, _)) => Check::ok(name, "ours, and active"),
        _ => Check::warn(name, "it is not active: queues that list it admit nothing", "start headroom-kubernetes run"),
    };
    vec![active, users(api, config, wanted).await]
}

async fn users(api: &Api, config: &Config, wanted: &str) -> Check {
    let name = format!("queues of {wanted}");
    // No mode needs that for this check.
    let Ok(queues) = api.list(&format!("{GROUP}/v1beta2/clusterqueues")).await else {
        return Check::ok(name, "not known: this identity may not list clusterqueues");
    };
    let lists = |queue: &&Value| names(&queue["spec"]["admissionChecksStrategy"]["admissionChecks"]).contains(wanted);
    let using: Vec<&str> = queues.iter().filter(lists).filter_map(|queue| queue["metadata"]["name"].as_str()).collect();
    if using.is_empty() {
        let fix = "list it in spec.admissionChecksStrategy.admissionChecks of the spot ClusterQueue";
        return Check::warn(name, "no ClusterQueue lists it: no Workload is checked for guarantees", fix);
    }
    let known: BTreeSet<&str> = config.flavors.0.keys().map(String::as_str).collect();
    let groups =
        queues.iter().filter(lists).flat_map(|queue| queue["spec"]["resourceGroups"].as_array().into_iter().flatten());
    let of_gpus = groups.filter(|group| {
        group["coveredResources"].as_array().into_iter().flatten().any(|one| one == config.gpu_resource.as_str())
    });
    let strange: BTreeSet<&str> =
        of_gpus.flat_map(|group| names(&group["flavors"])).filter(|one| !known.contains(one)).collect();
    if !strange.is_empty() {
        let flavors = strange.into_iter().collect::<Vec<_>>().join(", ");
        let found = format!(
            "the GPU models of their flavors {flavors} are not known: Workloads that name no model by themselves are retried for ever"
        );
        return Check::warn(name, found, "write them into flavors: FLAVOR=GPU_MODEL");
    }
    Check::ok(name, using.join(", "))
}
