//! Objects of `resource.k8s.io` v1 and v1beta1, nodes and pods, as their schemas have them.

use super::world::{Claim, Device, Dice, Kind, Node, ORGANIZATION, Pod, Request, START, World};
use serde_json::{Value, json};

fn time(since: i64) -> String {
    vocab::UnixSeconds::new(START + since).to_string()
}

pub fn node(at: usize, node: &Node) -> Value {
    let mut meta = json!({ "name": format!("n{at}") });
    if node.has_label {
        meta["labels"] = json!({ "nvidia.com/gpu.product": node.product });
    }
    let mut allocatable = json!({ "cpu": "64" });
    if node.plugin_gpus > 0 {
        allocatable["nvidia.com/gpu"] = node.plugin_gpus.to_string().into();
    }
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {},
        "status": { "allocatable": allocatable, "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

pub fn name_of(at: usize, device: &Device) -> String {
    match device.kind {
        Kind::Part(..) => format!("gpu-{}-part-{at}", device.gpu),
        Kind::Nic => "nic-0".to_owned(),
        _ => format!("gpu-{}", device.gpu),
    }
}

fn device(at: usize, device: &Device, world: &World) -> Value {
    let kind = if matches!(device.kind, Kind::Part(..)) { "mig" } else { "gpu" };
    let product = world.nodes[device.node].product;
    let mut attributes = json!({ "type": { "string": kind }, "productName": { "string": product }, "uuid": { "string": format!("uuid-{at}") } });
    let mut body = json!({});
    let set = format!("gpu-{}-counters", device.gpu);
    let draw = |memory: u64, multiprocessors: u64| {
        // One amount in two notations.
        json!([{ "counterSet": set, "counters": {
            "memory": { "value": format!("{}Mi", memory * 10_240) }, "multiprocessors": { "value": multiprocessors.to_string() },
        }}])
    };
    match device.kind {
        Kind::All => body["consumesCounters"] = draw(8, 14),
        Kind::Part(memory, multiprocessors) => {
            attributes["multiprocessors"] = json!({ "int": multiprocessors });
            body["consumesCounters"] = draw(memory, multiprocessors);
        }
        Kind::Shared(rule) => {
            body["allowMultipleAllocations"] = true.into();
            let policy = match rule {
                0 => Value::Null,
                1 => json!({ "default": "20Gi" }),
                2 => json!({ "default": "10Gi", "validRange": { "min": "10Gi", "max": "40Gi", "step": "5Gi" } }),
                _ => json!({ "default": "10Gi", "validValues": ["10Gi", "20Gi", "80Gi"] }),
            };
            body["capacity"] = json!({ "memory": { "value": "80Gi", "requestPolicy": policy } });
        }
        Kind::Whole => body["capacity"] = json!({ "memory": { "value": "80Gi" } }),
        Kind::Nic => {}
    }
    if let Some(effect) = device.taint {
        body["taints"] = json!([{ "key": "sick", "effect": effect }]);
    }
    body["attributes"] = attributes;
    let name = name_of(at, device);
    if world.is_beta {
        return json!({ "name": name, "basic": body });
    }
    body["name"] = name.into();
    body
}

/// Slices of a node's pool: counters apart from devices, devices in two slices or one, and one of an older generation.
pub fn slices(at: usize, world: &World, dice: &mut Dice) -> Vec<Value> {
    let node = format!("n{at}");
    let here = |nic: bool| {
        let own =
            world.devices.iter().enumerate().filter(move |(_, one)| one.node == at && (one.kind == Kind::Nic) == nic);
        own.map(|(number, one)| device(number, one, world)).collect::<Vec<Value>>()
    };
    let mut gpus: Vec<usize> = world.devices.iter().filter(|one| one.node == at).map(|one| one.gpu).collect();
    gpus.dedup();
    let sets: Vec<Value> = gpus
        .iter()
        .map(|gpu| {
            let counters = json!({ "memory": { "value": "80Gi" }, "multiprocessors": { "value": "14" } });
            json!({ "name": format!("gpu-{gpu}-counters"), "counters": counters })
        })
        .collect();
    let mut devices = here(false);
    let rest = if dice.one_in(2) { devices.split_off(devices.len() / 2) } else { Vec::new() };
    let mut contents = vec![json!({ "sharedCounters": sets }), json!({ "devices": devices })];
    if !rest.is_empty() {
        contents.push(json!({ "devices": rest }));
    }
    let of = contents.len();
    let slice = |name: String, driver: &str, generation: u64, of: usize, mut spec: Value| {
        spec["driver"] = driver.into();
        spec["nodeName"] = node.clone().into();
        spec["pool"] = json!({ "name": node, "generation": generation, "resourceSliceCount": of });
        json!({ "metadata": { "name": name }, "spec": spec })
    };
    let made = contents.into_iter().enumerate();
    let mut all: Vec<Value> =
        made.map(|(part, spec)| slice(format!("{node}-gpu-{part}"), "gpu.example.com", 7, of, spec)).collect();
    if dice.one_in(2) {
        let gone = json!({ "devices": [{ "name": "gone", "attributes": { "type": { "string": "gpu" } } }] });
        all.push(slice(format!("{node}-gpu-old"), "gpu.example.com", 6, 1, gone));
    }
    all.push(slice(format!("{node}-nic"), "nic.example.com", 1, 1, json!({ "devices": here(true) })));
    all
}

pub fn claim_spec(requests: &[Request], is_beta: bool) -> Value {
    let written = requests.iter().enumerate().map(|(number, request)| {
        let mut exact = json!({ "deviceClassName": format!("{}.example.com", request.class) });
        match request.count {
            Some(1) => {}
            Some(count) => exact["count"] = count.into(),
            None => exact["allocationMode"] = "All".into(),
        }
        if let Some(wanted) = request.multiprocessors {
            let expression = format!("device.attributes[\"gpu.example.com\"].multiprocessors == {wanted}");
            exact["selectors"] = json!([{ "cel": { "expression": expression } }]);
        }
        if let Some(memory) = request.memory {
            exact["capacity"] = json!({ "requests": { "memory": format!("{memory}Gi") } });
        }
        if request.looks_only {
            exact["adminAccess"] = true.into();
        }
        if request.tolerates {
            exact["tolerations"] = json!([{ "operator": "Exists" }]);
        }
        let name = format!("r{number}");
        if is_beta {
            exact["name"] = name.into();
            exact
        } else if number == 1 {
            let mut second = exact.clone();
            second["name"] = "worse".into();
            second["count"] = 9.into();
            exact["name"] = "best".into();
            json!({ "name": name, "firstAvailable": [exact, second] })
        } else {
            json!({ "name": name, "exactly": exact })
        }
    });
    json!({ "devices": { "requests": written.collect::<Vec<Value>>() } })
}

pub fn claim(at: usize, claim: &Claim, world: &World) -> Value {
    let results = |devices: &Vec<(usize, u64)>| -> Vec<Value> {
        let one = |(device, memory): &(usize, u64)| {
            let Some(known) = world.devices.get(*device) else {
                return json!({ "request": "r0", "driver": "gpu.example.com", "pool": "gone", "device": "gone-0" });
            };
            let driver = if known.kind == Kind::Nic { "nic.example.com" } else { "gpu.example.com" };
            let mut has = json!({
                "request": "r0", "driver": driver, "pool": format!("n{}", known.node), "device": name_of(*device, known),
            });
            if matches!(known.kind, Kind::Shared(_)) {
                has["consumedCapacity"] = json!({ "memory": format!("{memory}Gi") });
            }
            has
        };
        devices.iter().map(one).collect()
    };
    let mut object = json!({
        "metadata": { "name": format!("c{at}"), "namespace": ORGANIZATION },
        "spec": claim_spec(&claim.requests, world.is_beta),
    });
    if let Some(devices) = &claim.devices {
        object["status"] = json!({ "allocation": { "devices": { "results": results(devices) } } });
    }
    object
}

/// The claim that the scheduler makes for extended resources.
pub fn special_claim(at: usize, pod: &Pod) -> Value {
    let meta = json!({
        "name": format!("p{at}-extended-resources-x"), "namespace": ORGANIZATION,
        "annotations": { "resource.kubernetes.io/extended-resource-claim": "true" },
    });
    let exact = json!({ "deviceClassName": "mig.example.com", "count": pod.parts });
    json!({ "metadata": meta, "spec": { "devices": { "requests": [{ "name": "container-0-request-0", "exactly": exact }] } } })
}

pub fn pod(at: usize, pod: &Pod) -> Value {
    let mut requests = json!({});
    if pod.plugin_gpus > 0 {
        requests["nvidia.com/gpu"] = pod.plugin_gpus.to_string().into();
    }
    if pod.parts > 0 {
        requests["example.com/part"] = pod.parts.to_string().into();
    }
    let (mut claims, mut made) = (Vec::new(), Vec::new());
    for claim in &pod.claims {
        claims.push(json!({ "name": "direct", "resourceClaimName": format!("c{claim}") }));
    }
    for (template, claim) in &pod.templates {
        claims.push(json!({ "name": "own", "resourceClaimTemplateName": format!("t{template}") }));
        made.extend(claim.map(|claim| json!({ "name": "own", "resourceClaimName": format!("c{claim}") })));
    }
    let mut object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("p{at}"), "namespace": ORGANIZATION, "uid": format!("{at:08}-0000-0000-0000-000000000000"),
            "creationTimestamp": time(pod.since) },
        "spec": {
            "priorityClassName": if pod.is_hp { "high" } else { "spot" }, "resourceClaims": claims,
            "containers": [{ "name": "main", "resources": { "requests": requests } }],
        },
        "status": { "phase": if pod.has_ended { "Succeeded" } else { "Running" }, "resourceClaimStatuses": made },
    });
    if let Some(node) = pod.node {
        object["spec"]["nodeName"] = format!("n{node}").into();
    }
    if let Some(model) = pod.selects {
        object["spec"]["nodeSelector"] = json!({ "nvidia.com/gpu.product": model });
    }
    object
}
