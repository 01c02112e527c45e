//! Which resources there are: those built in, by a table, and those that a stored definition (CRD) adds.

use serde_json::Value;

/// One kind of object as the server serves it.
#[allow(clippy::struct_field_names, reason = "objects call it kind")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Served version, as `v1`.
    pub version: String,
    /// Plural, as in paths.
    pub plural: String,
    /// As in objects.
    pub kind: String,
    pub namespaced: bool,
    /// Whether status is written apart from the rest.
    pub has_status: bool,
    /// Whether a definition made it, which has a schema.
    pub custom: bool,
}

impl Kind {
    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The table its objects are in: the same for each version.
    #[must_use]
    pub fn table(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Subresources in paths.
    #[must_use]
    pub fn subresources(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        if self.has_status {
            all.push("status");
        }
        if self.table() == "pods" {
            all.extend(["eviction", "binding"]);
        }
        all
    }
}

/// Group, version, plural, kind, namespaced, has a status of its own.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, bool);

const BUILT_IN: [Row; 25] = [
    ("", "v1", "nodes", "Node", false, true),
    ("", "v1", "pods", "Pod", true, true),
    ("", "v1", "namespaces", "Namespace", false, true),
    ("", "v1", "resourcequotas", "ResourceQuota", true, true),
    ("", "v1", "events", "Event", true, false),
    ("", "v1", "configmaps", "ConfigMap", true, false),
    ("", "v1", "secrets", "Secret", true, false),
    ("", "v1", "services", "Service", true, true),
    ("", "v1", "serviceaccounts", "ServiceAccount", true, false),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, true),
    ("apps", "v1", "deployments", "Deployment", true, true),
    ("apps", "v1", "daemonsets", "DaemonSet", true, true),
    ("apps", "v1", "statefulsets", "StatefulSet", true, true),
    ("batch", "v1", "jobs", "Job", true, true),
    ("batch", "v1", "cronjobs", "CronJob", true, true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false),
    ("events.k8s.io", "v1", "events", "Event", true, false),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true, false),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, true),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false, false),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false, false),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true, false),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", true, false),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, false),
    // Asked, not stored.
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false, false),
];

/// The table of what is built in.
pub fn built_in() -> Vec<Kind> {
    let kinds = BUILT_IN.iter().map(|&(group, version, plural, kind, namespaced, has_status)| Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        has_status,
        custom: false,
    });
    kinds.collect()
}

fn word(of: &Value, at: &str) -> String {
    of.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The kinds that a definition serves, one for each version of it that is served.
pub fn kinds_of_definition(definition: &Value) -> Vec<Kind> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let served = versions.iter().filter(|one| one["served"] == true);
    let kinds = served.map(|one| Kind {
        group: word(definition, "/spec/group"),
        version: word(one, "/name"),
        plural: word(definition, "/spec/names/plural"),
        kind: word(definition, "/spec/names/kind"),
        namespaced: definition["spec"]["scope"] == "Namespaced",
        has_status: one.pointer("/subresources/status").is_some(),
        custom: true,
    });
    kinds.collect()
}

/// The schema that a definition has for one version.
pub fn schema_of(definition: &Value, version: &str) -> Option<Value> {
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    versions.iter().find(|one| one["name"] == version)?.pointer("/schema/openAPIV3Schema").cloned()
}
