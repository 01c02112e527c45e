//! Discovery: groups, versions, resources.

use crate::resources::Kind;
use crate::state::State;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const ALL_VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

fn resource_list(kinds: &[Kind], group: &str, version: &str) -> Option<Value> {
    let of_version: Vec<&Kind> = kinds.iter().filter(|one| one.group == group && one.version == version).collect();
    let mut resources = Vec::new();
    for kind in &of_version {
        let asked_only = kind.group == "authorization.k8s.io";
        let verbs: &[&str] = if asked_only { &["create"] } else { &ALL_VERBS };
        let singular = kind.kind.to_lowercase();
        resources.push(json!({
            "name": kind.plural, "singularName": singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs,
        }));
        for sub in kind.subresources() {
            let verbs: &[&str] = if sub == "status" { &["get", "patch", "update"] } else { &["create"] };
            let name = format!("{}/{sub}", kind.plural);
            let of = match sub {
                "eviction" => "Eviction",
                "binding" => "Binding",
                _ => kind.kind.as_str(),
            };
            resources.push(json!({
                "name": name, "singularName": "", "namespaced": kind.namespaced, "kind": of, "verbs": verbs,
            }));
        }
    }
    let version = of_version.first()?.api_version();
    Some(json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources }))
}

fn groups(kinds: &[Kind]) -> Vec<Value> {
    let mut by_group: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|one| !one.group.is_empty()) {
        by_group.entry(&kind.group).or_default().insert(&kind.version);
    }
    let groups = by_group.iter().map(|(group, versions)| {
        // Stable versions are longer known: v1 before v1beta2 before v1alpha1, which is the reverse of the alphabet but
        // for the first.
        let mut versions: Vec<&str> = versions.iter().copied().collect();
        versions
            .sort_by_key(|version| (version.contains("alpha"), version.contains("beta"), std::cmp::Reverse(*version)));
        let one = |version: &&str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
        let versions: Vec<Value> = versions.iter().map(one).collect();
        json!({ "name": group, "versions": versions, "preferredVersion": versions[0] })
    });
    groups.collect()
}

/// The answer to a path of discovery; `None` where it is none.
pub fn answer(kinds: &[Kind], path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["api"] => Some(json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })),
        ["api", version] => resource_list(kinds, "", version),
        ["apis"] => Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups(kinds) })),
        ["apis", group] => {
            let mut found = groups(kinds).into_iter().find(|one| one["name"] == *group)?;
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            Some(found)
        }
        ["apis", group, version] => resource_list(kinds, group, version),
        ["version"] => Some(json!({
            "major": "1", "minor": "34", "gitVersion": "v1.34.0-fake", "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "2025-08-27T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
        })),
        _ => None,
    }
}

/// Schemas of the kinds that definitions add in one `GROUP/VERSION`, as OpenAPI v3 has them; `None` where there are none. Built-in kinds
/// have no schema here.
pub fn schemas(state: &State, version: &str) -> Option<Value> {
    let of_version = state.kinds().iter().filter(|kind| kind.custom && kind.api_version() == version);
    let named = of_version.filter_map(|kind| {
        let group: Vec<&str> = kind.group.split('.').rev().collect();
        Some((format!("{}.{}.{}", group.join("."), kind.version, kind.kind), state.schema(kind)?))
    });
    let schemas: serde_json::Map<String, Value> = named.collect();
    (!schemas.is_empty()).then(|| json!({ "openapi": "3.0.0", "components": { "schemas": schemas } }))
}
