//! A synthetic cluster by the metrics of kube-state-metrics, and its demand, computed another way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use vocab::HourStart;

/// Between two scrapes, and between two samples that are asked for.
pub const STEP_S: i64 = 120;
/// Prometheus takes the newest sample of five minutes; of these there are two older ones.
const LOOKBACK: [i64; 3] = [0, STEP_S, 2 * STEP_S];
/// The GPU model of pods that say none.
pub const FALLBACK: &str = "A100";

/// One pod; times in hours since the start.
struct Pod {
    namespace: &'static str,
    name: &'static str,
    class: &'static str,
    gpus: &'static [u32],
    model: &'static str,
    /// Whether it says its model while it waits.
    selects: bool,
    from: f64,
    runs_from: f64,
    /// From then on it is there as one that has succeeded.
    done: f64,
    gone: f64,
}

const HIGH: &str = "high";
const FOREVER: f64 = 1e6;

/// HP pods are none at all between the hours 25 and 28.
const PODS: [Pod; 7] = [
    Pod {
        namespace: "vision",
        name: "train-0",
        class: HIGH,
        gpus: &[8, 2],
        model: "A100",
        selects: true,
        from: 0.0,
        runs_from: 2.5,
        done: 20.0,
        gone: 24.0,
    },
    Pod {
        namespace: "vision",
        name: "train-1",
        class: "system.x",
        gpus: &[4],
        model: "H800",
        selects: true,
        from: 3.2,
        runs_from: 3.7,
        done: 9.5,
        gone: 9.5,
    },
    Pod {
        namespace: "speech",
        name: "train-0",
        class: HIGH,
        gpus: &[1],
        model: "A100",
        selects: false,
        from: 1.0,
        runs_from: FOREVER,
        done: FOREVER,
        gone: 8.0,
    },
    Pod {
        namespace: "speech",
        name: "serve",
        class: HIGH,
        gpus: &[3],
        model: "A100",
        selects: true,
        from: 0.0,
        runs_from: 0.0,
        done: FOREVER,
        gone: 24.9,
    },
    Pod {
        namespace: "text",
        name: "serve",
        class: HIGH,
        gpus: &[16],
        model: "H800",
        selects: true,
        from: 28.0,
        runs_from: 28.1,
        done: FOREVER,
        gone: FOREVER,
    },
    Pod {
        namespace: "spot",
        name: "sweep",
        class: "low",
        gpus: &[8],
        model: "A100",
        selects: true,
        from: 0.0,
        runs_from: 0.0,
        done: FOREVER,
        gone: FOREVER,
    },
    Pod {
        namespace: "spot",
        name: "systemax",
        class: "systemax",
        gpus: &[8],
        model: "A100",
        selects: true,
        from: 0.0,
        runs_from: 0.0,
        done: FOREVER,
        gone: FOREVER,
    },
];

/// Hours without any scrape, each from and before.
const HOLES: [(f64, f64); 2] = [(12.0, 15.0), (17.0, 17.4)];
/// Node, GPU model, GPUs; whether it is cordoned from hour 10 on.
const NODES: [(&str, &str, u32, bool); 3] =
    [("n1", "A100", 16, false), ("n2", "A100", 8, true), ("n3", "H800", 32, false)];

/// The cluster from `start` on, scraped until `until_s`.
pub struct History {
    pub start: HourStart,
    pub until_s: i64,
}

impl History {
    fn hours(&self, at_s: i64) -> f64 {
        (at_s - self.start.unix_s()) as f64 / 3_600.0
    }

    fn is_scraped(&self, at_s: i64) -> bool {
        let at = self.hours(at_s);
        (self.start.unix_s()..self.until_s).contains(&at_s)
            && !HOLES.iter().any(|(from, until)| at >= *from && at < *until)
    }

    fn scrapes(&self) -> impl Iterator<Item = i64> {
        (self.start.unix_s()..self.until_s).step_by(STEP_S as usize).filter(|at_s| self.is_scraped(*at_s))
    }

    /// As OpenMetrics, exported by two instances of kube-state-metrics.
    pub fn open_metrics(&self) -> String {
        let mut families: BTreeMap<&str, String> = BTreeMap::new();
        for at_s in self.scrapes() {
            for instance in ["ksm-0", "ksm-1"] {
                let mut sample = |metric: &'static str, labels: &str, value: u32| {
                    let text = families.entry(metric).or_default();
                    writeln!(text, "{metric}{{instance=\"{instance}\",{labels}}} {value} {at_s}").unwrap();
                };
                let at = self.hours(at_s);
                PODS.iter()
                    .filter(|pod| at >= pod.from && at < pod.gone)
                    .for_each(|pod| tell_pod(pod, at, &mut sample));
                for (node, model, gpus, is_cordoned) in NODES {
                    let cordoned = u32::from(is_cordoned && at >= 10.0);
                    sample("kube_node_labels", &format!("node=\"{node}\",label_gpu=\"{model}\""), 1);
                    sample("kube_node_spec_unschedulable", &format!("node=\"{node}\""), cordoned);
                    let resource = format!("node=\"{node}\",resource=\"nvidia_com_gpu\",unit=\"integer\"");
                    sample("kube_node_status_allocatable", &resource, gpus);
                }
            }
        }
        let answer = families.iter().map(|(metric, lines)| format!("# TYPE {metric} gauge\n{lines}"));
        answer.collect::<String>() + "# EOF\n"
    }

    /// Demand of a pod at a time as Prometheus sees it: by its newest sample of five minutes, if it has one.
    fn seen(&self, pod: &Pod, at_s: i64) -> u32 {
        let mut samples = LOOKBACK.iter().map(|back| at_s - back).filter(|at_s| {
            let at = self.hours(*at_s);
            self.is_scraped(*at_s) && at >= pod.from && at < pod.gone
        });
        let counts = [HIGH, "system.x"].contains(&pod.class);
        samples.next().filter(|at_s| counts && self.hours(*at_s) < pod.done).map_or(0, |_| pod.gpus.iter().sum())
    }

    /// Whether an hour has at least half of its samples.
    pub fn is_measured(&self, hour: HourStart) -> bool {
        let seen = times(hour).filter(|at_s| LOOKBACK.iter().any(|back| self.is_scraped(at_s - back))).count();
        2 * seen >= times(hour).count()
    }

    /// Model, organization, hour since the start → GPUs; for hours that are measured, before `until`.
    pub fn demand(&self, until: HourStart) -> BTreeMap<(String, String, i64), f64> {
        let organizations: BTreeSet<_> =
            PODS.iter().filter(|pod| pod.namespace != "spot").map(|pod| (pod.model, pod.namespace)).collect();
        let mut demand = BTreeMap::new();
        for number in 0..until.hours_since(self.start) {
            let hour = self.start.plus_hours(number);
            if !self.is_measured(hour) {
                continue;
            }
            let peak = |of: &dyn Fn(&Pod) -> bool| {
                let sum = |at_s| PODS.iter().filter(|pod| of(pod)).map(|pod| self.seen(pod, at_s)).sum::<u32>();
                f64::from(times(hour).map(sum).max().unwrap())
            };
            for (model, name) in &organizations {
                let key = ((*model).to_owned(), (*name).to_owned(), number);
                demand.insert(key, peak(&|pod| pod.model == *model && pod.namespace == *name));
                demand.insert(((*model).to_owned(), "*".to_owned(), number), peak(&|pod| pod.model == *model));
            }
        }
        demand
    }
}

fn times(hour: HourStart) -> impl Iterator<Item = i64> {
    (hour.unix_s()..hour.unix_s() + 3_600).step_by(STEP_S as usize)
}

fn tell_pod(pod: &Pod, at: f64, sample: &mut impl FnMut(&'static str, &str, u32)) {
    let id = format!("namespace=\"{}\",pod=\"{}\"", pod.namespace, pod.name);
    let runs = at >= pod.runs_from;
    let node = NODES.iter().find(|(_, model, ..)| runs && *model == pod.model).map_or("", |(node, ..)| node);
    let phase = if at >= pod.done {
        "Succeeded"
    } else if runs {
        "Running"
    } else {
        "Pending"
    };
    for name in ["Pending", "Running", "Succeeded"] {
        sample("kube_pod_status_phase", &format!("{id},phase=\"{name}\""), u32::from(name == phase));
    }
    sample("kube_pod_info", &format!("{id},node=\"{node}\",priority_class=\"{}\"", pod.class), 1);
    if pod.selects {
        sample("kube_pod_nodeselectors", &format!("{id},nodeselector_gpu=\"{}\"", pod.model), 1);
    }
    for (number, gpus) in pod.gpus.iter().enumerate() {
        let container = format!("{id},container=\"c{number}\",node=\"{node}\",resource");
        sample("kube_pod_container_resource_requests", &format!("{container}=\"nvidia_com_gpu\""), *gpus);
        sample("kube_pod_container_resource_requests", &format!("{container}=\"cpu\""), 7);
    }
}
