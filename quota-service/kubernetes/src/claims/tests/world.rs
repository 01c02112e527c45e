//! Clusters drawn from a seed, and their objects, written by hand from the published schemas.

pub use crate::claims::dice::{Dice, START};
use serde_json::{Value, json};

/// Kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A GPU.
    Whole,
    /// A GPU that can be had in parts, as a whole.
    All,
    /// So many of 8 slices of memory, and of 14 multiprocessors.
    Part(u64, u64),
    /// A GPU with 80 GiB that claims share; the number of its rule.
    Shared(u64),
    /// A network card.
    Nic,
}

#[derive(Debug, Clone)]
pub struct Device {
    pub node: usize,
    pub gpu: usize,
    pub kind: Kind,
    pub taint: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub product: &'static str,
    pub has_label: bool,
    pub plugin_gpus: u64,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub class: &'static str,
    /// None: all of a node.
    pub count: Option<u64>,
    /// Parts with so many multiprocessors.
    pub multiprocessors: Option<u64>,
    /// GiB of each device.
    pub memory: Option<u64>,
    pub looks_only: bool,
    /// Whether it tolerates all taints.
    pub tolerates: bool,
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub requests: Vec<Request>,
    /// Devices with the GiB that were taken of shared ones; of a number that there is not, one whose slice has gone.
    pub devices: Option<Vec<(usize, u64)>>,
}

#[derive(Debug, Clone)]
pub struct Pod {
    pub is_hp: bool,
    pub node: Option<usize>,
    pub selects: Option<&'static str>,
    pub plugin_gpus: u64,
    /// Devices of the class `mig` by its extended resource.
    pub parts: u64,
    pub claims: Vec<usize>,
    /// Templates, with the claim that was made of each.
    pub templates: Vec<(usize, Option<usize>)>,
    pub since: i64,
    pub has_ended: bool,
    /// Whether the scheduler made a claim for its extended resources.
    pub has_special_claim: bool,
}

#[derive(Debug, Clone)]
pub struct World {
    pub nodes: Vec<Node>,
    pub devices: Vec<Device>,
    /// Nodes all of whose devices a rule taints, with its effect.
    pub rules: Vec<(usize, &'static str)>,
    pub claims: Vec<Claim>,
    pub templates: Vec<Vec<Request>>,
    pub pods: Vec<Pod>,
    /// Whether objects have the shapes of v1beta1.
    pub is_beta: bool,
}

pub const ORGANIZATION: &str = "team-a";

impl World {
    pub fn drawn(dice: &mut Dice) -> Self {
        let mut world = Self {
            nodes: Vec::new(),
            devices: Vec::new(),
            rules: Vec::new(),
            claims: Vec::new(),
            templates: Vec::new(),
            pods: Vec::new(),
            is_beta: dice.one_in(3),
        };
        for node in 0..=dice.below(4) as usize {
            world.draw_node(node, dice);
        }
        for _ in 0..=dice.below(3) {
            let requests = (0..=dice.below(2)).map(|_| request(dice)).collect();
            world.templates.push(requests);
        }
        for _ in 0..dice.below(10) {
            world.draw_pod(dice);
        }
        world
    }

    fn draw_node(&mut self, node: usize, dice: &mut Dice) {
        let product = if dice.one_in(2) { "A100" } else { "H100" };
        let plugin_gpus = if dice.one_in(3) { dice.below(5) } else { 0 };
        self.nodes.push(Node { product, has_label: !dice.one_in(4), plugin_gpus });
        let style = dice.below(4);
        for gpu in 0..dice.below(4) as usize {
            let kinds: Vec<Kind> = match style {
                0 => Vec::new(),
                1 => vec![Kind::Whole],
                2 => {
                    [Kind::All, Kind::Part(4, 6), Kind::Part(1, 2), Kind::Part(1, 1)][dice.below(4) as usize..].to_vec()
                }
                _ => vec![Kind::Shared(dice.below(4))],
            };
            for kind in kinds {
                let taint = [None, None, None, None, Some("NoSchedule"), Some("NoExecute"), Some("None")];
                self.devices.push(Device { node, gpu, kind, taint: taint[dice.below(7) as usize] });
            }
        }
        if dice.one_in(2) {
            self.devices.push(Device { node, gpu: 99, kind: Kind::Nic, taint: None });
        }
        if dice.one_in(6) {
            self.rules.push((node, if dice.one_in(2) { "NoSchedule" } else { "None" }));
        }
    }

    fn draw_claim(&mut self, requests: Vec<Request>, node: Option<usize>, dice: &mut Dice) -> usize {
        let here: Vec<usize> = (0..self.devices.len()).filter(|at| Some(self.devices[*at].node) == node).collect();
        let is_allocated = node.is_some() && !dice.one_in(5);
        let devices = is_allocated.then(|| {
            let has = |dice: &mut Dice| match dice.below(8) {
                0 => (1_000, 0),
                _ if here.is_empty() => (1_000, 0),
                _ => (here[dice.below(here.len() as u64) as usize], 10 * (1 + dice.below(8))),
            };
            (0..=dice.below(2)).map(|_| has(dice)).collect()
        });
        self.claims.push(Claim { requests, devices });
        self.claims.len() - 1
    }

    fn draw_pod(&mut self, dice: &mut Dice) {
        let node = dice.one_in(2).then(|| dice.below(self.nodes.len() as u64) as usize);
        let (mut claims, mut templates) = (Vec::new(), Vec::new());
        if dice.one_in(2) {
            let template = dice.below(self.templates.len() as u64) as usize;
            let made = (node.is_some() || dice.one_in(2)).then(|| {
                let requests = self.templates[template].clone();
                self.draw_claim(requests, node, dice)
            });
            templates.push((template, made));
        }
        if dice.one_in(3) {
            // One of its own, or one that others use, too.
            let known = self.claims.len() as u64;
            claims.push(if known > 0 && dice.one_in(2) {
                dice.below(known) as usize
            } else {
                let requests = vec![request(dice)];
                self.draw_claim(requests, node, dice)
            });
        }
        self.pods.push(Pod {
            is_hp: dice.one_in(2),
            node,
            selects: [None, None, Some("A100"), Some("H100")][dice.below(4) as usize],
            plugin_gpus: if dice.one_in(3) { dice.below(4) } else { 0 },
            parts: if dice.one_in(4) { dice.below(3) } else { 0 },
            claims,
            templates,
            since: dice.below(5) as i64,
            has_ended: dice.one_in(8),
            has_special_claim: dice.one_in(2),
        });
    }
}

fn request(dice: &mut Dice) -> Request {
    let class = ["gpu", "mig", "h100", "nic"][dice.below(4) as usize];
    Request {
        class,
        count: (!dice.one_in(6)).then(|| 1 + dice.below(3)),
        multiprocessors: (class == "mig" && dice.one_in(2)).then(|| 1 + dice.below(3)),
        memory: dice.one_in(3).then(|| 5 + dice.below(50)),
        looks_only: dice.one_in(10),
        tolerates: dice.one_in(4),
    }
}

/// Objects of a world, each with its plural.
pub fn objects(world: &World, dice: &mut Dice) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for (class, selector, resource) in [
        ("gpu", "device.attributes['gpu.example.com'].type == 'gpu'", Some("nvidia.com/gpu")),
        ("mig", "device.attributes['gpu.example.com'].type == 'mig'", Some("example.com/part")),
        ("h100", "device.attributes['gpu.example.com'].productName == 'H100'", None),
        ("nic", "device.driver == 'nic.example.com'", None),
    ] {
        let spec = json!({ "extendedResourceName": resource, "selectors": [{ "cel": { "expression": selector } }] });
        all.push(("deviceclasses", json!({ "metadata": { "name": format!("{class}.example.com") }, "spec": spec })));
    }
    for (node, effect) in &world.rules {
        let selector = json!({ "driver": "gpu.example.com", "pool": format!("n{node}") });
        let spec = json!({ "deviceSelector": selector, "taint": { "key": "broken", "effect": effect } });
        all.push(("devicetaintrules", json!({ "metadata": { "name": format!("rule-{node}") }, "spec": spec })));
    }
    for (at, node) in world.nodes.iter().enumerate() {
        all.push(("nodes", super::objects::node(at, node)));
        all.extend(super::objects::slices(at, world, dice).into_iter().map(|slice| ("resourceslices", slice)));
    }
    for (at, requests) in world.templates.iter().enumerate() {
        let meta = json!({ "name": format!("t{at}"), "namespace": ORGANIZATION });
        let spec = json!({ "spec": super::objects::claim_spec(requests, world.is_beta) });
        all.push(("resourceclaimtemplates", json!({ "metadata": meta, "spec": spec })));
    }
    for (at, claim) in world.claims.iter().enumerate() {
        all.push(("resourceclaims", super::objects::claim(at, claim, world)));
    }
    for (at, pod) in world.pods.iter().enumerate() {
        all.push(("pods", super::objects::pod(at, pod)));
        if pod.has_special_claim && pod.parts > 0 {
            all.push(("resourceclaims", super::objects::special_claim(at, pod)));
        }
    }
    all
}
