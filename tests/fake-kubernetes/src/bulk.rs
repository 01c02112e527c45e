//! Clusters of a size: nodes and pods as large and as wordy as real ones.

use crate::server::Server;
use crate::stored::Stored;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How large a cluster is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Pods.
    pub pods: usize,
    /// Namespaces of the pods.
    pub namespaces: usize,
    /// GPUs of each node.
    pub gpus_per_node: usize,
    /// Values of the label `nvidia.com/gpu.product`, node by node in turn.
    pub models: Vec<String>,
    /// One pod of so many is of the class `spot`; 0: none.
    pub spot_each: usize,
}

impl Default for Size {
    fn default() -> Self {
        let models = ["NVIDIA-A100-SXM4-80GB", "NVIDIA-H800"].map(str::to_owned).to_vec();
        Self { nodes: 10, pods: 20, namespaces: 4, gpus_per_node: 8, models, spot_each: 4 }
    }
}

/// Node number `at` of such a cluster.
#[must_use]
pub fn node(at: usize, size: &Size) -> Value {
    let name = format!("node-{at:05}");
    let model = size.models.get(at % size.models.len().max(1)).cloned().unwrap_or_default();
    let amounts = json!({
        "cpu": "128", "memory": "1056Gi", "ephemeral-storage": "1800Gi", "hugepages-2Mi": "0", "pods": "110",
        "nvidia.com/gpu": size.gpus_per_node.to_string(),
    });
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": format!("Kubelet{kind}"), "message": "kubelet is posting status",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let images: Vec<Value> = (0..10)
        .map(|image| json!({ "names": [format!("registry.example/team/image-{image}:v1.2.3")], "sizeBytes": 1_000_000 + image }))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("00000000-0000-4001-8000-{at:012x}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                "nvidia.com/gpu.product": model, "nvidia.com/gpu.count": size.gpus_per_node.to_string(),
            },
        },
        "spec": { "podCIDR": "10.0.0.0/24" },
        "status": {
            "capacity": amounts, "allocatable": amounts, "images": images,
            "conditions": [
                condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True"),
            ],
            "nodeInfo": { "kubeletVersion": "v1.34.0", "osImage": "Linux", "architecture": "amd64" },
        },
    })
}

/// Fields of a pod that the server, the kubelet and the scheduler own, as in the `managedFields` of a real one.
fn managed() -> Value {
    let fields = |names: &[&str]| -> Value { names.iter().map(|name| ((*name).to_owned(), json!({}))).collect() };
    let container = fields(&[
        ".",
        "f:command",
        "f:env",
        "f:image",
        "f:imagePullPolicy",
        "f:name",
        "f:resources",
        "f:securityContext",
        "f:terminationMessagePath",
        "f:terminationMessagePolicy",
        "f:volumeMounts",
    ]);
    let spec = json!({
        "f:containers": { "k:{\"name\":\"main\"}": container }, "f:dnsPolicy": {}, "f:enableServiceLinks": {},
        "f:priorityClassName": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {},
        "f:terminationGracePeriodSeconds": {}, "f:volumes": { ".": {} },
    });
    let condition = fields(&[".", "f:lastProbeTime", "f:lastTransitionTime", "f:status", "f:type"]);
    let conditions: Value = ["ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"]
        .iter()
        .map(|kind| (format!("k:{{\"type\":\"{kind}\"}}"), condition.clone()))
        .collect();
    json!([
        { "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
          "time": "2026-01-01T00:00:00Z", "fieldsV1": { "f:metadata": { "f:labels": { ".": {}, "f:app": {} } }, "f:spec": spec } },
        { "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "subresource": "status",
          "time": "2026-01-01T00:00:00Z", "fieldsV1": { "f:status": { "f:conditions": conditions,
          "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:podIPs": {}, "f:startTime": {} } } },
    ])
}

/// Fields that differ from pod to pod.
struct Words {
    name: String,
    namespace: String,
    /// The end of every UID.
    number: String,
    node: String,
    app: String,
    address: String,
}

impl Words {
    fn of(at: usize, size: &Size) -> Self {
        Self {
            name: format!("pod-{at:06}"),
            namespace: format!("team-{:03}", at % size.namespaces.max(1)),
            number: format!("{at:012x}"),
            node: format!("node-{:05}", at % size.nodes.max(1)),
            app: format!("app-{}", at % 500),
            address: format!("10.{}.{}.{}", at >> 16 & 255, at >> 8 & 255, at & 255),
        }
    }

    fn each(&self) -> [&str; 6] {
        [&self.name, &self.namespace, &self.number, &self.node, &self.app, &self.address]
    }
}

fn is_spot(at: usize, size: &Size) -> bool {
    size.spot_each > 0 && at.is_multiple_of(size.spot_each)
}

/// Pod number `at` of such a cluster; it runs on the node of its number.
#[must_use]
pub fn pod(at: usize, size: &Size) -> Value {
    pod_of(&Words::of(at, size), is_spot(at, size))
}

/// The text of a pod in pieces, and after each the number of the word that goes there: many pods are made of it
/// without a value of each being built.
struct Template(Vec<(String, Option<usize>)>);

/// Where the version goes, after the words.
const VERSION: usize = 6;

impl Template {
    fn new(spot: bool) -> Self {
        let mark = |at: usize| format!("@{at}@");
        let words =
            Words { name: mark(0), namespace: mark(1), number: mark(2), node: mark(3), app: mark(4), address: mark(5) };
        let mut pod = pod_of(&words, spot);
        pod["metadata"]["resourceVersion"] = mark(VERSION).into();
        let text = pod.to_string();
        // Pieces of text and numbers take turns; nothing else in a pod has the mark.
        let mut pieces = text.split('@');
        let mut read = Vec::new();
        while let Some(piece) = pieces.next() {
            read.push((piece.to_owned(), pieces.next().and_then(|number| number.parse().ok())));
        }
        Self(read)
    }

    fn fill(&self, words: &Words, version: u64) -> Stored {
        let version = version.to_string();
        let each = words.each();
        let mut json = String::with_capacity(6_000);
        for (piece, word) in &self.0 {
            json.push_str(piece);
            json.push_str(word.map_or("", |at| if at == VERSION { &version } else { each[at] }));
        }
        let labels = [("app", words.app.as_str()), ("pod-template-hash", TEMPLATE_HASH)];
        Stored {
            json,
            namespace: words.namespace.clone(),
            name: words.name.clone(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            node: words.node.clone(),
            phase: "Running".to_owned(),
            involved_uid: String::new(),
        }
    }
}

const TEMPLATE_HASH: &str = "5d4f8c7b9";

fn pod_of(words: &Words, spot: bool) -> Value {
    let Words { name, namespace, number, node, app, address } = words;
    let amounts = json!({ "cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1" });
    let env: Vec<Value> =
        (0..12).map(|number| json!({ "name": format!("SETTING_{number}"), "value": "a value of a setting" })).collect();
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let conditions =
        ["Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready", "PodScheduled"].map(condition);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace,
            "uid": format!("00000000-0000-4002-8000-{number}"), "creationTimestamp": "2026-01-01T00:00:00Z",
            "generateName": "pod-", "labels": { "app": app, "pod-template-hash": TEMPLATE_HASH },
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": format!("job-{number}"), "controller": true,
                "blockOwnerDeletion": true, "uid": format!("00000000-0000-4003-8000-{number}") }],
            "managedFields": managed(),
        },
        "spec": {
            "nodeName": node, "schedulerName": "default-scheduler",
            "priority": if spot { -10 } else { 1000 }, "priorityClassName": if spot { "spot" } else { "guaranteed" },
            "preemptionPolicy": "PreemptLowerPriority", "restartPolicy": "Never", "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "terminationGracePeriodSeconds": 30, "securityContext": {},
            "containers": [{
                "name": "main", "image": "registry.example/team/train:v1.2.3", "imagePullPolicy": "IfNotPresent",
                "command": ["python", "-m", "train", "--config", "/etc/train/config.yaml"], "env": env,
                "resources": { "requests": amounts, "limits": amounts },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{ "name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true }],
            }],
            "tolerations": [
                { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
                { "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" },
            ],
            "volumes": [{ "name": "token", "projected": { "defaultMode": 420, "sources": [] } }],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "startTime": "2026-01-01T00:00:00Z", "podIP": address,
            "podIPs": [{ "ip": address }], "hostIP": "10.255.0.1",
            "conditions": conditions,
            "containerStatuses": [{ "name": "main", "ready": true, "restartCount": 0, "started": true,
                "image": "registry.example/team/train:v1.2.3", "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } } }],
        },
    })
}

/// Makes the cluster: namespaces, the two priority classes, nodes, pods. Answers how many objects. Watches that stand
/// have to list again.
pub fn load(server: &Server, size: &Size) -> usize {
    let namespace =
        |at: usize| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": format!("team-{at:03}") } });
    let class = |(name, value): (&str, i64)| json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": value });
    let mut state = server.state();
    let mut loaded = state.load("namespaces", (0..size.namespaces).map(namespace));
    let classes = [("spot", -10), ("guaranteed", 1000)].into_iter().map(class);
    loaded += state.load("priorityclasses.scheduling.k8s.io", classes);
    loaded += state.load("nodes", (0..size.nodes).map(|at| node(at, size)));
    let (plain, spot) = (Template::new(false), Template::new(true));
    loaded += state.load_as("pods", 0..size.pods, |at, version| {
        let template = if is_spot(at, size) { &spot } else { &plain };
        template.fill(&Words::of(at, size), version)
    });
    loaded
}
