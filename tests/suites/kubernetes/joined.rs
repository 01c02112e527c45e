//! A cluster that is only watched.

use super::{CLUSTER, MODEL, Site, until};
use fake_kubernetes::{Fault, What};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::{Listening, TestDatabase, fresh_database};

/// A service on a fresh database that knows the cluster and the pool, with ten days of usage.
pub async fn service(site: &Site) -> (Listening, TestDatabase) {
    let database = fresh_database(store::Backend::Sqlite).await;
    let rows = (1..=240).map(|ago| format!("{},{CLUSTER},{MODEL},team-000,{}\n", hour(-ago), 8 + ago % 5));
    let csv = format!("hour,cluster,gpu_model,organization,demand_gpus\n{}", rows.collect::<String>());
    std::fs::write(site.path("usage.csv"), csv).unwrap();
    let ingest = ["ingest", "--format", "usage", &site.path("usage.csv"), "--database", &database.url];
    let _ = tests::program("datasets", &ingest).ok();
    let train = ["--horizon", "4h", "--model", "last-value", "--database", &database.url];
    let _ = tests::program("train", &train).ok();
    (Listening::start(&["--database", &database.url, "--refresh-s", "1"]), database)
}

/// The start of an hour from now, in RFC 3339.
fn hour(from_now: i64) -> String {
    let now = chrono::Utc::now().timestamp();
    let start = now - now.rem_euclid(3_600) + from_now * 3_600;
    vocab::UnixSeconds::new(start).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_reported_to_headroom_and_nothing_is_written_to_it() {
    let site = Site::new(4).await;
    site.pods(0..6, false);
    site.pods(6..10, true);
    let (service, _database) = service(&site).await;
    let connector = site.connector("run", &format!("http://{}", service.address), &[]);
    let pool = format!("{CLUSTER}:{MODEL}");
    // 1. What the cluster is becomes the pool's state, and the quota is cut from it.
    let wanted = json!({"capacity_gpus": 32.0, "idle_gpus": 22.0, "spot_gpus_by_guarantee_hours": {"1": 4.0}});
    let is_wanted = |state: &Value| wanted.as_object().unwrap().iter().all(|(key, value)| &state[key] == value);
    let state = service.get_until(&format!("/v1/pools/{pool}/state"), |status, body| status == 200 && is_wanted(body));
    assert_eq!(state["longest_quota_wait_s"], 0, "{state}");
    let of_pool = format!("/quota?cluster={CLUSTER}&gpu_model={MODEL}&hours=1");
    let quota = service.get_until(&of_pool, |_, body| body["capacity_gpus"] == 32.0 && body["used_gpus"] == 4.0);
    assert_eq!(quota["idle_gpus"], 22.0, "{quota}");
    // 2. A pod that HP work evicts inside its hour is a broken promise, a pod that is deleted is not.
    let evicted = site.cluster.list("pods").into_iter().find(|pod| pod["spec"]["priorityClassName"] == "spot").unwrap();
    let (namespace, name) = names(&evicted);
    let mut conditions = evicted["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}));
    site.cluster.patch("pods", &namespace, &name, &json!({"status": {"conditions": conditions}}));
    site.cluster.delete("pods", &namespace, &name);
    let promises = format!("/v1/promises?cluster={CLUSTER}&gpu_model={MODEL}");
    let answer = service.get_until(&promises, |status, body| status == 200 && body["broken"] == 1);
    assert_eq!(answer["broken_ones"][0]["event_id"], format!("pod-{}", evicted["metadata"]["uid"].as_str().unwrap()));
    // 3. The watch is lost, and history with it: the view is that of the cluster again.
    site.cluster.compact();
    site.cluster.close_watches();
    site.pods(20..24, false);
    let is_seen = |status: u16, body: &Value| status == 200 && body["idle_gpus"] == 19.0;
    let _ = service.get_until(&format!("/v1/pools/{pool}/state"), is_seen);
    // 4. A watch that is refused is a fault, which it tells.
    site.cluster.fault(Fault::new(What::Fail(500), 2).verb("watch").resource("pods"));
    site.cluster.close_watches();
    site.pods(24..25, false);
    let is_seen = |status: u16, body: &Value| status == 200 && body["idle_gpus"] == 18.0;
    let _ = service.get_until(&format!("/v1/pools/{pool}/state"), is_seen);
    // 5. It has written nothing, and says so.
    let metrics = text(&connector.address, "/metrics");
    assert!(metrics.contains(&format!("headroom_kubernetes_capacity_gpus{{gpu_model=\"{MODEL}\"}} 32")), "{metrics}");
    assert_eq!(connector.get("/readyz").0, 200);
    assert!(site.cluster.writes().is_empty(), "{:?}", site.cluster.writes());
    let verbs: BTreeMap<String, usize> = site.cluster.requests().into_iter().fold(BTreeMap::new(), |mut all, one| {
        *all.entry(one.method).or_default() += 1;
        all
    });
    assert_eq!(verbs.keys().collect::<Vec<_>>(), ["GET"]);
    let ended = connector.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("the watch broke off"), "{}", ended.stderr);
}

fn names(object: &Value) -> (String, String) {
    let of = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (of("namespace"), of("name"))
}

fn text(address: &str, path: &str) -> String {
    ureq::get(&format!("http://{address}{path}")).call().unwrap().body_mut().read_to_string().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn show_prints_the_cluster_once_as_a_table_and_as_json() {
    let site = Site::new(2).await;
    site.pods(0..3, false);
    site.pods(3..5, true);
    let shown = tokio::task::block_in_place(|| site.ran(&["show", "--json"], &[]).json());
    let pool = &shown["pools"][0];
    assert_eq!((&pool["capacity_gpus"], &pool["idle_gpus"]), (&json!(16.0), &json!(11.0)), "{shown}");
    assert_eq!(pool["spot_gpus_by_guarantee_hours"], json!({"1": 2.0}));
    let table = tokio::task::block_in_place(|| site.ran(&["show"], &[]).ok().stdout);
    assert!(table.contains(&format!("{CLUSTER}:{MODEL}")) && table.contains("HP running"), "{table}");
    assert!(site.cluster.writes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_named_with_their_remedy() {
    let site = Site::new(1).await;
    let fails = |arguments: &[&str], variables: &[(&str, &str)], code: i32, why: &str| {
        let ran = tokio::task::block_in_place(|| tests::program_with("headroom-kubernetes", arguments, variables));
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
    };
    let kubeconfig = site.path("kubeconfig");
    let show = ["show", "--cluster", CLUSTER, "--kubeconfig"];
    fails(&[&show[..], &["/missing"]].concat(), &[], 4, "kubeconfig /missing");
    fails(
        &["show", "--kubeconfig", &kubeconfig],
        &[],
        4,
        "`cluster` is not set: pass --cluster NAME or set HEADROOM_CLUSTER",
    );
    let with = [&show[..], &[&kubeconfig]].concat();
    fails(&with, &[("HEADROOM_KUEUE", "always")], 4, "write one of off, capacity-provider, cluster-queue, auto");
    fails(&with, &[("HEADROOM_KUEUE", "auto")], 4, "flavors");
    fails(&with, &[("HEADROOM_HEADROOM_URL", "headroom:8080")], 4, "write http://HOST:PORT");
    fails(&with, &[("HEADROOM_RENEW_S", "20")], 4, "retry_s < renew_s < lease_s");
    site.cluster.deny(fake_kubernetes::Rule::new("list", "", "pods"));
    fails(&with, &[], 1, "pods may not be listed");
    site.cluster.pause();
    drop(site);
    until("nothing", || Some(())).await;
}
