//! Definitions of Kueue's kinds, with as much of their schemas as decides how they are written: which lists are one
//! leaf, which have keys, what is required, what cannot change. Inner parts that do not matter take anything.

use serde_json::{Value, json};

/// A definition of a kind of `kueue.x-k8s.io` with one version.
#[must_use]
pub fn definition(kind: &str, plural: &str, version: &str, scope: &str, spec: &Value, status: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": {
        "apiVersion": { "type": "string" }, "kind": { "type": "string" }, "metadata": { "type": "object" },
        "spec": spec, "status": status,
    }});
    let version = json!({
        "name": version, "served": true, "storage": true,
        "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.kueue.x-k8s.io") },
        "spec": {
            "group": "kueue.x-k8s.io", "scope": scope, "versions": [version],
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
        },
        "status": { "conditions": [{ "type": "Established", "status": "True" }], "storedVersions": [] },
    })
}

/// A definition of any kind, served in these versions; a schema describes its spec, and its status takes anything.
#[must_use]
pub fn served_definition(
    group: &str,
    kind: &str,
    plural: &str,
    versions: &[&str],
    is_namespaced: bool,
    spec: &Value,
) -> Value {
    let mut made =
        definition(kind, plural, versions[0], if is_namespaced { "Namespaced" } else { "Cluster" }, spec, &anything());
    made["metadata"]["name"] = format!("{plural}.{group}").into();
    made["spec"]["group"] = group.into();
    let one = made["spec"]["versions"][0].clone();
    let of = |version: &&str| {
        let mut of = one.clone();
        of["name"] = (*version).into();
        of
    };
    made["spec"]["versions"] = versions.iter().map(of).collect();
    made
}

/// Kinds of dynamic resources (`resource.k8s.io`) in these versions.
#[must_use]
pub fn dynamic_resources(versions: &[&str]) -> Vec<Value> {
    let kinds = [
        ("DeviceClass", "deviceclasses", false),
        ("DeviceTaintRule", "devicetaintrules", false),
        ("ResourceClaim", "resourceclaims", true),
        ("ResourceClaimTemplate", "resourceclaimtemplates", true),
        ("ResourceSlice", "resourceslices", false),
    ];
    let one = |(kind, plural, is_namespaced)| {
        served_definition("resource.k8s.io", kind, plural, versions, is_namespaced, &anything())
    };
    kinds.map(one).to_vec()
}

fn anything() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn keyed(key: &str, entry: &Value) -> Value {
    json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key], "items": entry })
}

fn conditions() -> Value {
    let word = || json!({ "type": "string" });
    let entry = json!({
        "type": "object", "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": word(), "message": { "type": "string", "maxLength": 32768 },
            "observedGeneration": { "type": "integer" }, "reason": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] }, "type": word(),
        },
    });
    keyed("type", &entry)
}

fn quantities() -> Value {
    json!({ "type": "object", "additionalProperties": { "x-kubernetes-int-or-string": true } })
}

fn resource_groups() -> Value {
    let quantity = || json!({ "x-kubernetes-int-or-string": true });
    let resource = json!({
        "type": "object", "required": ["name", "nominalQuota"],
        "properties": {
            "name": { "type": "string" }, "nominalQuota": quantity(), "borrowingLimit": quantity(),
            "lendingLimit": quantity(),
        },
    });
    let flavor = json!({
        "type": "object", "required": ["name", "resources"],
        "properties": { "name": { "type": "string" }, "resources": keyed("name", &resource) },
    });
    let group = json!({
        "type": "object", "required": ["coveredResources", "flavors"],
        "properties": {
            "coveredResources": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 64 },
            "flavors": keyed("name", &flavor),
        },
    });
    // One leaf: who owns any of it owns all of it.
    json!({ "type": "array", "x-kubernetes-list-type": "atomic", "maxItems": 16, "items": group })
}

fn cluster_queue() -> Value {
    let mut spec = anything();
    let entry = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "onFlavors": { "type": "array", "items": { "type": "string" } },
    }});
    spec["properties"] = json!({
        "resourceGroups": resource_groups(),
        "admissionChecksStrategy": { "type": "object", "properties": { "admissionChecks": keyed("name", &entry) } },
    });
    let mut status = anything();
    status["properties"] = json!({ "conditions": conditions() });
    definition("ClusterQueue", "clusterqueues", "v1beta2", "Cluster", &spec, &status)
}

fn workload() -> Value {
    let check = json!({
        "type": "object", "required": ["lastTransitionTime", "message", "name", "state"],
        "properties": {
            "name": { "type": "string", "minLength": 1 }, "message": { "type": "string", "maxLength": 32768 },
            "state": { "type": "string", "enum": ["Pending", "Ready", "Retry", "Rejected"] },
            "lastTransitionTime": { "type": "string" }, "requeueAfterSeconds": { "type": "integer", "minimum": 0 },
            "retryCount": { "type": "integer", "minimum": 0 },
            "podSetUpdates": { "type": "array", "x-kubernetes-list-type": "atomic", "maxItems": 8, "items": anything() },
        },
    });
    let mut status = anything();
    status["properties"] = json!({ "conditions": conditions(), "admissionChecks": keyed("name", &check) });
    definition("Workload", "workloads", "v1beta2", "Namespaced", &anything(), &status)
}

fn admission_check() -> Value {
    let fixed = json!([{ "rule": "self == oldSelf", "message": "field is immutable" }]);
    let spec = json!({
        "type": "object", "required": ["controllerName"],
        "properties": {
            "controllerName": { "type": "string", "minLength": 1, "maxLength": 153, "x-kubernetes-validations": fixed },
            "parameters": anything(),
        },
    });
    let status = json!({ "type": "object", "properties": { "conditions": conditions() } });
    definition("AdmissionCheck", "admissionchecks", "v1beta2", "Cluster", &spec, &status)
}

/// Definitions of Kueue, all in `v1beta2`.
#[must_use]
pub fn kueue() -> Vec<Value> {
    let plain = |kind, plural, scope| definition(kind, plural, "v1beta2", scope, &anything(), &anything());
    vec![
        cluster_queue(),
        workload(),
        admission_check(),
        plain("LocalQueue", "localqueues", "Namespaced"),
        plain("ResourceFlavor", "resourceflavors", "Cluster"),
        plain("Cohort", "cohorts", "Cluster"),
    ]
}

/// Name of the list of flavors in the older draft of dynamic quota.
const OLDER_DRAFT: &str = "managedFlavors";

fn orchestrator(flavors: &str) -> Value {
    let (share, root) = if flavors == OLDER_DRAFT {
        ("usableCapacityPercent", "subtreeRootRef")
    } else {
        ("effectiveCapacityMultiplier", "subtreeRootQuotaRef")
    };
    let mut provider =
        json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } });
    provider["properties"][share] = json!({ "x-kubernetes-int-or-string": true });
    let mut distribution = json!({ "type": "object", "required": [root], "properties": {} });
    distribution["properties"][root] = json!({ "type": "object", "required": ["kind", "name"],
        "properties": { "kind": { "type": "string", "enum": ["ClusterQueue", "Cohort"] }, "name": { "type": "string" } } });
    let mut providers = keyed("name", &provider);
    providers["minItems"] = 1.into();
    providers["maxItems"] = 8.into();
    let spec = json!({ "type": "object", "required": ["capacityDiscovery"], "properties": {
        "capacityDiscovery": { "type": "object", "required": ["providers"], "properties": { "providers": providers } },
        "capacityDistribution": distribution,
    }});
    let mut status = anything();
    status["properties"] = json!({ "conditions": conditions() });
    definition("DynamicQuotaOrchestrator", "dynamicquotaorchestrators", "v1alpha1", "Cluster", &spec, &status)
}

/// The kinds of dynamic quota (`v1alpha1`) in one of their two forms, named by the list of flavors: `orchestratedFlavors`, or the
/// older draft with `managedFlavors` and a required `lastUpdateTime`. A field of the other form is dropped or refused.
#[must_use]
pub fn dynamic_quota(flavors: &str) -> Vec<Value> {
    let fixed = json!([{ "rule": "self == oldSelf", "message": "field is immutable" }]);
    let named = json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } });
    let mut listed = keyed("name", &named);
    listed["minItems"] = 1.into();
    listed["maxItems"] = 64.into();
    let mut spec = json!({
        "type": "object", "required": ["controllerName", flavors],
        "properties": {
            "controllerName": { "type": "string", "minLength": 1, "maxLength": 253, "x-kubernetes-validations": fixed },
            "parameters": anything(),
        },
    });
    spec["properties"][flavors] = listed;
    let flavor = json!({ "type": "object", "required": ["name", "resources"],
        "properties": { "name": { "type": "string" }, "resources": quantities() } });
    let mut capacity =
        json!({ "type": "object", "required": ["flavors"], "properties": { "flavors": keyed("name", &flavor) } });
    if flavors == OLDER_DRAFT {
        capacity["required"] = json!(["flavors", "lastUpdateTime"]);
        capacity["properties"]["lastUpdateTime"] = json!({ "type": "string" });
    }
    let status = json!({ "type": "object", "properties": { "capacity": capacity, "conditions": conditions() } });
    vec![
        definition("CapacityProvider", "capacityproviders", "v1alpha1", "Cluster", &spec, &status),
        orchestrator(flavors),
    ]
}
