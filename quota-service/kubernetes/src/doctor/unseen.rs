//! Pods that the extender does not see, or sees in part.

use super::Check;
use super::api::Api;
use crate::cluster::slim::Pod;
use crate::config::Config;
use crate::show;
use crate::view::facts::gpus_of_pod;

/// Pods that are named one by one.
const SHOWN: usize = 3;
/// The first minor version whose scheduler places pods in batches.
const BATCHES_SINCE: u32 = 35;

/// Pods of one kind.
#[derive(Default)]
struct Found {
    count: usize,
    shown: Vec<String>,
}

impl Found {
    fn add(&mut self, pod: &Pod) {
        self.count += 1;
        if self.shown.len() < SHOWN {
            let name = |text: &Option<String>| text.clone().unwrap_or_default();
            self.shown.push(format!("{}/{}", name(&pod.metadata.namespace), name(&pod.metadata.name)));
        }
    }

    fn check(&self, name: &str, what: [&'static str; 2], fix: &str) -> Option<Check> {
        let shown = self.shown.join(", ");
        (self.count > 0).then(|| {
            Check::warn(name, format!("{}: {shown}", vocab::count(self.count, "pod").verb(what[0], what[1])), fix)
        })
    }
}

/// One line for each kind of pods that there are, where the extender is on.
pub async fn of(api: &Api, config: &Config) -> Vec<Check> {
    if !config.extender {
        return Vec::new();
    }
    let (mut claiming, mut grouped) = (Found::default(), Found::default());
    let looked = show::each::<Pod>(api.client(), "pods", |pod| {
        if matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
            return;
        }
        let asks = gpus_of_pod(&pod, "", config.gpu_resource.as_str()).is_ok_and(|gpus| gpus > 0);
        if !asks && !pod.spec.resource_claims.is_empty() {
            claiming.add(&pod);
        }
        if asks && (pod.spec.scheduling_group.pod_group_name.is_some() || pod.spec.workload_ref.is_some()) {
            grouped.add(&pod);
        }
    });
    // `gpus` reports what cannot be listed.
    if looked.await.is_err() {
        return Vec::new();
    }
    let mut checks = Vec::new();
    let by_claims = ["asks by claims alone, unseen by the extender", "ask by claims alone, unseen by the extender"];
    checks.extend(claiming.check(
        "pods unseen by the extender",
        by_claims,
        "hold them by Kueue: modes.kueue of the chart",
    ));
    let by_groups = [
        "is of a PodGroup: when a group preempts, the extender is not asked for victims",
        "are of a PodGroup: when a group preempts, the extender is not asked for victims",
    ];
    checks.extend(grouped.check(
        "pods of groups",
        by_groups,
        "guarantee them by Kueue's admission check: modes.admissionCheck",
    ));
    checks.extend(batches(api).await);
    checks
}

async fn batches(api: &Api) -> Option<Check> {
    let version = api.find("/version").await.ok()??;
    let minor: u32 = version["minor"].as_str()?.trim_end_matches('+').parse().ok()?;
    let found = "since 1.35 the scheduler may place pods that are alike in one go: the extender ranks nodes for the first alone";
    (minor >= BATCHES_SINCE).then(|| Check::ok("batched pods", found))
}
