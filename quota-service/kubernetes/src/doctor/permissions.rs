//! Permissions of this identity, reviewed verb by verb: missing ones, and excessive ones.

use super::Check;
use super::api::Api;
use super::definitions::Definitions;
use crate::config::{Config, KueueMode};
use crate::publish::{AT_WILL_QUOTA, RESOURCE_QUOTA};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NAME: &str = "permissions";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Reviews that are asked for at once.
const AT_ONCE: usize = 8;
const KUEUE: &str = "kueue.x-k8s.io";

/// One verb on one resource, and its mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    group: String,
    /// With its subresource, as rules write it.
    resource: String,
    /// Empty for the whole cluster.
    namespace: String,
    /// Empty for any.
    name: String,
    verb: String,
    /// The mode that wants it.
    wanted_by: &'static str,
}

#[cfg(test)]
impl Need {
    /// The rule that allows it.
    pub fn rule(&self) -> fake_kubernetes::Rule {
        let mut rule = fake_kubernetes::Rule::new(&self.verb, &self.group, &self.resource);
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty()).into_iter().collect();
        (rule.resource_names, rule.namespaces) = (some(&self.name), some(&self.namespace));
        rule
    }
}

/// Collects needs of one mode.
struct Needs {
    all: Vec<Need>,
    wanted_by: &'static str,
    namespace: String,
}

/// Verbs of one that watches.
const LOOK: &str = "get,list,watch";

impl Needs {
    fn add(&mut self, verbs: &str, group: &str, resource: &str, name: &str) {
        for verb in verbs.split(',') {
            self.all.push(Need {
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: self.namespace.clone(),
                name: name.to_owned(),
                verb: verb.to_owned(),
                wanted_by: self.wanted_by,
            });
        }
    }
}

/// Permissions to publish to Kueue.
fn of_kueue(config: &Config, has_provider: Option<bool>, needs: &mut Needs) {
    let mode = config.kueue;
    needs.wanted_by = "kueue";
    let is_auto = mode == KueueMode::Auto;
    if mode != KueueMode::ClusterQueue {
        needs.add("get", "apiextensions.k8s.io", "customresourcedefinitions", "capacityproviders.kueue.x-k8s.io");
    }
    needs.add("get", KUEUE, "resourceflavors", "");
    if mode == KueueMode::CapacityProvider || is_auto && has_provider != Some(false) {
        needs.add(LOOK, KUEUE, "capacityproviders", "");
        needs.add("patch", KUEUE, "capacityproviders", config.capacity_provider.as_str());
        needs.add("patch", KUEUE, "capacityproviders/status", config.capacity_provider.as_str());
    }
    if mode == KueueMode::ClusterQueue || is_auto && has_provider != Some(true) {
        needs.add(LOOK, KUEUE, "clusterqueues", "");
        needs.add("patch", KUEUE, "clusterqueues", config.cluster_queue.as_str());
    }
}

/// Permissions that the active modes need. With `kueue = "auto"`, those of the object that the cluster has, or of both if that is unknown.
pub fn needs(config: &Config, has_provider: Option<bool>) -> Vec<Need> {
    let mut needs = Needs { all: Vec::new(), wanted_by: "run", namespace: String::new() };
    needs.add(LOOK, "", "nodes", "");
    needs.add(LOOK, "", "pods", "");
    needs.add(LOOK, "scheduling.k8s.io", "priorityclasses", "");
    counted(config, &mut needs);
    if config.kueue.is_on() {
        of_kueue(config, has_provider, &mut needs);
    }
    if config.admission_check {
        needs.wanted_by = "admission_check";
        needs.add(LOOK, KUEUE, "workloads", "");
        needs.add("patch", KUEUE, "workloads/status", "");
        needs.add(LOOK, KUEUE, "admissionchecks", "");
        needs.add("patch", KUEUE, "admissionchecks/status", config.admission_check_name.as_str());
    }
    if config.priority_boost {
        needs.wanted_by = "priority_boost";
        needs.add(LOOK, KUEUE, "workloads", "");
        needs.add("patch", KUEUE, "workloads", "");
    }
    if config.evict {
        needs.wanted_by = "evict";
        needs.add("patch", "", "pods", "");
        needs.add("create", "", "pods/eviction", "");
        needs.add("patch", "", "pods/status", "");
        needs.add("create,patch", "lifecycle.k8s.io", "evictionrequests", "");
    }
    if config.resource_quota {
        needs.wanted_by = "resource_quota";
        for namespace in config.resource_quota_shares.0.keys() {
            needs.namespace.clone_from(namespace);
            needs.add("list,watch,create", "", "resourcequotas", "");
            needs.add("get,patch", "", "resourcequotas", RESOURCE_QUOTA);
            if config.is_apart() {
                needs.add("get,patch", "", "resourcequotas", AT_WILL_QUOTA);
            }
        }
    }
    if config.writes() && config.events {
        needs.wanted_by = "events";
        needs.namespace = String::new();
        needs.add("create", "events.k8s.io", "events", "");
    }
    if config.writes() {
        needs.wanted_by = "the lease";
        needs.namespace = config.lease_namespace.to_string();
        needs.add("create", "coordination.k8s.io", "leases", "");
        for name in [config.lease_name.to_string(), config.heartbeat_name()] {
            needs.add("get,update", "coordination.k8s.io", "leases", &name);
        }
    }
    needs.all
}

/// Permissions to look at what settings count beyond pods.
fn counted(config: &Config, needs: &mut Needs) {
    if !config.device_classes.0.is_empty() {
        needs.wanted_by = "device_classes";
        for resource in
            ["deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"]
        {
            needs.add(LOOK, "resource.k8s.io", resource, "");
        }
    }
    if config.gangs {
        needs.wanted_by = "gangs";
        for (group, resource) in [
            ("scheduling.k8s.io", "podgroups"),
            ("scheduling.k8s.io", "workloads"),
            ("jobset.x-k8s.io", "jobsets"),
            ("leaderworkerset.x-k8s.io", "leaderworkersets"),
            (KUEUE, "workloads"),
        ] {
            needs.add(LOOK, group, resource, "");
        }
    }
}

/// Permissions that no mode needs, and that make a stolen token more dangerous.
fn excesses() -> Vec<(Need, &'static str)> {
    let need = |verb: &str, group: &str, resource: &str| Need {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: String::new(),
        name: String::new(),
        verb: verb.to_owned(),
        wanted_by: "nothing",
    };
    vec![
        (need("*", "*", "*"), "everything"),
        (need("get", "", "secrets"), "read secrets"),
        (need("create", "", "pods"), "make pods"),
        (need("delete", "", "nodes"), "delete nodes"),
        (need("patch", "", "nodes"), "change nodes"),
        (need("update", "rbac.authorization.k8s.io", "clusterroles"), "change roles"),
    ]
}

async fn is_allowed(api: &Api, need: &Need) -> Result<bool, String> {
    let (resource, subresource) = need.resource.split_once('/').unwrap_or((&need.resource, ""));
    let attributes = json!({
        "verb": need.verb, "group": need.group, "resource": resource, "subresource": subresource,
        "namespace": need.namespace, "name": need.name,
    });
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": attributes },
    });
    let answer = api.review(REVIEWS, &review).await?;
    answer["status"]["allowed"].as_bool().ok_or_else(|| "a review without an answer".to_owned())
}

/// Which of these are allowed, in their order.
async fn reviewed(api: &Api, needs: &[Need]) -> Result<Vec<bool>, String> {
    let answers = stream::iter(needs).map(|need| is_allowed(api, need)).buffered(AT_ONCE);
    answers.collect::<Vec<_>>().await.into_iter().collect()
}

/// One line for each rule that is missing, or one that none is; and what is too much.
pub async fn of(api: &Api, config: &Config, definitions: &Definitions) -> Vec<Check> {
    let needs = needs(config, definitions.has_provider());
    let unknown = |why: String| {
        let fix = "let this identity create selfsubjectaccessreviews (system:basic-user allows it to all authenticated users)";
        vec![Check::fail(NAME, format!("they cannot be reviewed: {why}"), fix)]
    };
    let allowed = match reviewed(api, &needs).await {
        Ok(allowed) => allowed,
        Err(why) => return unknown(why),
    };
    let missing: Vec<&Need> =
        needs.iter().zip(allowed).filter(|(_, is_allowed)| !is_allowed).map(|(need, _)| need).collect();
    let mut checks = lines(&missing);
    if checks.is_empty() {
        checks.push(Check::ok(NAME, format!("all {} that the modes need", needs.len())));
    }
    let (excess, named): (Vec<Need>, Vec<&str>) = excesses().into_iter().unzip();
    match reviewed(api, &excess).await {
        Ok(allowed) => {
            let held: Vec<&str> =
                named.into_iter().zip(allowed).filter(|(_, held)| *held).map(|(named, _)| named).collect();
            checks.extend(too_much(&held));
        }
        Err(why) => return unknown(why),
    }
    checks
}

fn too_much(held: &[&str]) -> Option<Check> {
    let found = match held {
        [] => return None,
        // The first includes the rest.
        ["everything", ..] => "this identity may do everything".to_owned(),
        held => format!("this identity may also {}", held.join(", ")),
    };
    Some(Check::warn("permissions beyond", found, "bind a ServiceAccount of its own to the roles of deploy/chart"))
}

/// Namespace, group, resource and name of a rule.
type Rule<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Missing verbs of one rule are one line.
fn lines(missing: &[&Need]) -> Vec<Check> {
    let mut rules: BTreeMap<Rule<'_>, (Vec<&str>, &str)> = BTreeMap::new();
    for need in missing {
        let rule = rules.entry((&need.namespace, &need.group, &need.resource, &need.name)).or_default();
        if !rule.0.contains(&need.verb.as_str()) {
            rule.0.push(&need.verb);
        }
        rule.1 = need.wanted_by;
    }
    rules
        .into_iter()
        .map(|((namespace, group, resource, name), (verbs, wanted_by))| {
            let verbs = verbs.join(", ");
            let (place, role) = match namespace {
                "" => (String::new(), "the ClusterRole".to_owned()),
                namespace => (format!(" in {namespace}"), format!("a Role in {namespace}")),
            };
            let names = if name.is_empty() { String::new() } else { format!(", resourceNames: [{name}]") };
            let group = Value::from(group);
            let fix =
                format!("add to {role}: {{apiGroups: [{group}], resources: [{resource}]{names}, verbs: [{verbs}]}}");
            Check::fail(format!("permission {resource}"), format!("{wanted_by} needs {verbs}{place}"), fix)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_mode_nothing_but_looking_is_needed() {
        let needs = needs(&Config::default(), None);
        assert_eq!(needs.len(), 9);
        assert!(needs.iter().all(|need| ["get", "list", "watch"].contains(&need.verb.as_str())));
    }

    #[test]
    fn verbs_of_one_rule_are_one_line_with_the_rule_to_add() {
        let config = Config { evict: true, ..Config::default() };
        let needs = needs(&config, None);
        let missing: Vec<&Need> =
            needs.iter().filter(|need| need.resource == "leases" || need.verb == "watch").collect();
        let lines = lines(&missing);
        let fixes: Vec<&str> = lines.iter().filter_map(|line| line.fix.as_deref()).collect();
        assert_eq!(fixes.len(), 6, "{fixes:?}");
        assert!(fixes.contains(&r#"add to the ClusterRole: {apiGroups: [""], resources: [pods], verbs: [watch]}"#));
        let lease = r#"add to a Role in headroom-system: {apiGroups: ["coordination.k8s.io"], resources: [leases], resourceNames: [headroom-kubernetes-heartbeat], verbs: [get, update]}"#;
        assert!(fixes.contains(&lease), "{fixes:?}");
    }

    #[test]
    fn auto_needs_that_of_the_object_which_the_cluster_has() {
        let config = Config { kueue: KueueMode::Auto, flavors: "a=A100".parse().unwrap(), ..Config::default() };
        let resources = |has_provider| -> Vec<String> {
            let all = needs(&config, has_provider);
            let patched = all.into_iter().filter(|need| need.verb == "patch");
            patched.map(|need| need.resource).collect()
        };
        assert_eq!(resources(Some(true)), ["capacityproviders", "capacityproviders/status"]);
        assert_eq!(resources(Some(false)), ["clusterqueues"]);
        assert_eq!(resources(None).len(), 3);
    }
}
