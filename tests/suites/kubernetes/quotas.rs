//! Quotas that are published, and what the cluster sees of them when everybody who publishes is killed.

use super::joined::service;
use super::{CLUSTER, MODEL, Site, until};
use serde_json::{Value, json};
use std::time::Instant;
use tests::Listening;

const QUEUE: &str = "headroom-spot";
/// Quick enough for a test: the lease 3 s, the heartbeat old after 4 s, checked each second.
const AFTER_S: u64 = 4;
const CHECK_S: u64 = 1;
pub const SETTINGS: [(&str, &str); 8] = [
    ("HEADROOM_KUEUE", "cluster-queue"),
    ("HEADROOM_FLAVORS", "a100-spot=NVIDIA-A100-SXM4-80GB"),
    ("HEADROOM_LEASE_S", "3"),
    ("HEADROOM_RENEW_S", "2"),
    ("HEADROOM_RETRY_S", "1"),
    ("HEADROOM_RAISE_AFTER_S", "1"),
    ("HEADROOM_WATCHDOG_AFTER_S", "4"),
    ("HEADROOM_WATCHDOG_CHECK_S", "1"),
];

pub async fn site() -> Site {
    let site = Site::new(4).await;
    site.pods(0..6, false);
    site.pods(6..10, true);
    site.cluster.install_kueue();
    let flavor =
        json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a100-spot"}});
    site.cluster.put(flavor);
    site.cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "headroom-system"}}));
    site
}

/// The nominal quota of the queue.
pub fn nominal(site: &Site) -> Option<u64> {
    let queue = site.cluster.get("clusterqueues", "", QUEUE)?;
    let quota = &queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"];
    quota.as_u64().or_else(|| quota.as_str()?.parse().ok())
}

/// The offer of the service, in whole GPUs, as it stands.
pub fn offered(service: &Listening) -> u64 {
    let path = format!("/quota?cluster={CLUSTER}&gpu_model={MODEL}&hours=1");
    let quota = service.get_until(&path, |_, body| body["capacity_gpus"] == 32.0 && body["used_gpus"] == 4.0);
    quota["quota_gpus"].as_f64().unwrap().floor() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn with_every_replica_killed_the_quota_that_the_cluster_sees_falls_within_the_stated_time() {
    let site = site().await;
    let (service, _database) = service(&site).await;
    let headroom = format!("http://{}", service.address);
    let mut replicas = [site.connector("run", &headroom, &SETTINGS), site.connector("run", &headroom, &SETTINGS)];
    let watchdog = site.connector("watchdog", &headroom, &SETTINGS);
    // 1. The queue has what Headroom offers.
    let wanted = offered(&service);
    assert!(wanted > 4, "there is something to lower: {wanted}");
    until("the quota is published", || (nominal(&site) == Some(wanted)).then_some(())).await;
    let queue = site.cluster.get("clusterqueues", "", QUEUE).unwrap();
    assert_eq!(queue["metadata"]["labels"]["app.kubernetes.io/managed-by"], "headroom");
    // 2. What Kueue says is in use is what the quota falls to.
    let usage = json!([{"name": "a100-spot", "resources": [{"name": "nvidia.com/gpu", "total": "4"}]}]);
    site.cluster.patch("clusterqueues", "", QUEUE, &json!({"status": {"flavorsUsage": usage}}));
    // 3. Nobody is left but the watchdog.
    let killed = Instant::now();
    replicas.iter_mut().for_each(Listening::kill);
    until("the quota has fallen", || (nominal(&site) == Some(4)).then_some(())).await;
    let fell_after = killed.elapsed();
    println!("the quota fell {:.1} s after the kill; stated {} s", fell_after.as_secs_f64(), AFTER_S + CHECK_S);
    // 4. Nobody forced anything, and each wrote under its name.
    let writes = site.cluster.writes();
    assert!(writes.iter().all(|one| !one.force), "{writes:?}");
    // 5. A replica that comes back raises it again, by its rules.
    let back = site.connector("run", &headroom, &SETTINGS);
    until("the quota is raised again", || nominal(&site).filter(|gpus| *gpus > 4)).await;
    for one in [back, watchdog] {
        let ended = one.stop();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_writes_when_one_is_stopped_and_an_admin_s_list_is_left_alone() {
    let site = site().await;
    let (service, _database) = service(&site).await;
    let headroom = format!("http://{}", service.address);
    let first = site.connector("run", &headroom, &SETTINGS);
    let wanted = offered(&service);
    until("the quota is published", || (nominal(&site) == Some(wanted)).then_some(())).await;
    let holder = |site: &Site| {
        let lease = site.cluster.get("leases", "headroom-system", "headroom-kubernetes")?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    };
    let was = holder(&site).unwrap();
    let second = site.connector("run", &headroom, &[&SETTINGS[..], &[("HEADROOM_IDENTITY", "second")]].concat());
    let _ = second.get_until("/readyz", |status, _| status == 200);
    assert_eq!(holder(&site).as_deref(), Some(was.as_str()), "who leads goes on");
    let ended = first.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    until("the other one leads", || holder(&site).filter(|holder| holder == "second")).await;
    // An admin takes the list: a conflict is reported, and the list is theirs.
    let queue = site.cluster.get("clusterqueues", "", QUEUE).unwrap();
    let mut groups: Value = queue["spec"]["resourceGroups"].clone();
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = json!("1");
    let theirs = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": QUEUE},
        "spec": {"resourceGroups": groups}
    });
    site.cluster.apply_as("admin", &theirs);
    let conflict = "headroom_publish_conflict{target=\"cluster-queue\"} 1";
    until("the conflict is reported", || metrics(&second).contains(conflict).then_some(())).await;
    assert_eq!(nominal(&site), Some(1));
    let writes = site.cluster.writes();
    assert!(writes.iter().all(|one| !one.force), "{writes:?}");
}

fn metrics(of: &Listening) -> String {
    ureq::get(&format!("http://{}/metrics", of.address)).call().unwrap().body_mut().read_to_string().unwrap()
}
