use super::*;
use crate::events::Events;
use crate::lead::run as run_lead;
use crate::publish::{Amounts, RESOURCE_QUOTA, Wanted, run as publish};
use crate::tests::{client, client_of, config, eventually};
use fake_kubernetes::{FakeKubernetes, Rule};
use serde_json::json;
use std::sync::Arc;
use tokio::task::JoinHandle;
use vocab::GpuModel;

fn settings(kueue: &str) -> Config {
    Config {
        kueue: kueue.parse().unwrap(),
        flavors: "a100-spot=A100".parse().unwrap(),
        resource_quota: true,
        resource_quota_shares: "team-a=0.5".parse().unwrap(),
        publish_s: 1,
        raise_after_s: 2,
        watchdog_after_s: 4,
        watchdog_check_s: 1,
        ..config("a")
    }
}

async fn cluster() -> FakeKubernetes {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    for name in ["headroom-system", "team-a"] {
        fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }
    fake
}

/// A publisher and its elector.
struct Publishes {
    tasks: Vec<JoinHandle<()>>,
    _never: watch::Sender<bool>,
}

impl Publishes {
    fn end(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn publisher(fake: &FakeKubernetes, settings: &Config) -> Publishes {
    // It is killed, without a stop signal.
    let (never, stop) = watch::channel(false);
    let amounts = Amounts { quota_gpus: 40, held_gpus: 12, allocatable_gpus: 100, ..Amounts::default() };
    let by_model = [(GpuModel::parse("A100").unwrap(), amounts)].into();
    let wanted = watch::channel(Arc::new(Wanted { is_known: true, by_model, ..Wanted::default() })).1;
    let (lead, elects) = run_lead(client(fake).await, settings, stop.clone());
    let publishes = publish(client(fake).await, Arc::new(settings.clone()), wanted, lead, Events::none(), stop);
    Publishes { tasks: vec![elects, tokio::spawn(publishes)], _never: never }
}

fn in_queue(fake: &FakeKubernetes) -> Option<String> {
    let live = fake.get("clusterqueues", "", "headroom-spot")?;
    let flavor = &live["spec"]["resourceGroups"][0]["flavors"][0];
    Some(flavor["resources"][0]["nominalQuota"].as_str()?.to_owned())
}

fn in_namespace(fake: &FakeKubernetes) -> Option<String> {
    let live = fake.get("resourcequotas", "team-a", RESOURCE_QUOTA)?;
    Some(live["spec"]["hard"]["requests.nvidia.com/gpu"].as_str()?.to_owned())
}

#[test]
fn a_heartbeat_is_as_old_as_its_last_change_by_the_own_clock() {
    let (mut still, start) = (Still::default(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    let version = |name: &str| Some(name.to_owned());
    assert!(!still.note(at(0), version("1")), "the first look says nothing of before");
    assert!(!still.note(at(50), version("1")));
    assert_eq!(still.age(at(59)).as_secs(), 59);
    assert!(still.note(at(60), version("2")));
    assert!(still.note(at(65), None), "one that was deleted changed");
    assert_eq!(still.age(at(70)).as_secs(), 5);
}

#[tokio::test]
async fn with_every_publisher_gone_quotas_fall_to_what_is_held_and_one_that_is_back_raises_them_again() {
    let (fake, settings) = (cluster().await, settings("cluster-queue"));
    let (_stop, stopped) = watch::channel(false);
    let watchdog = {
        let (client, settings) = (client(&fake).await, settings.clone());
        tokio::spawn(async move { run(client, &settings, false, stopped).await })
    };
    let tasks = publisher(&fake, &settings).await;
    let both = |queue: &str, namespace: &str| {
        in_queue(&fake).as_deref() == Some(queue) && in_namespace(&fake).as_deref() == Some(namespace)
    };
    eventually("what is wanted", || both("40", "20")).await;
    // Longer than the watchdog waits: while it beats nothing falls.
    tokio::time::sleep(Duration::from_secs(settings.watchdog_after_s + 2)).await;
    assert!(both("40", "20"));
    let amount = json!({ "nvidia.com/gpu": "3" });
    fake.put(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "held", "namespace": "team-a" }, "spec": {
        "priorityClassName": "spot", "containers": [{ "name": "main", "resources": { "requests": amount, "limits": amount } }],
    }}));
    tasks.end();
    eventually("what is held", || both("12", "3")).await;
    let live = fake.get("clusterqueues", "", "headroom-spot").unwrap();
    let managers: Vec<&Value> =
        live["metadata"]["managedFields"].as_array().unwrap().iter().map(|one| &one["manager"]).collect();
    assert_eq!(managers, ["headroom-quota"], "no other manager takes a field");
    let tasks = publisher(&fake, &settings).await;
    eventually("what is wanted again", || both("40", "20")).await;
    assert!(fake.writes().iter().all(|one| !one.force));
    watchdog.abort();
    tasks.end();
}

#[tokio::test]
async fn once_lowers_without_a_heartbeat_and_leaves_all_with_one() {
    let fake = cluster().await;
    fake.install_dynamic_quota("orchestratedFlavors");
    let settings = Config { resource_quota: false, ..settings("auto") };
    let published = |fake: &FakeKubernetes| {
        let live = fake.get("capacityproviders", "", "headroom-spot")?;
        Some(live["status"]["capacity"]["flavors"][0]["resources"]["nvidia.com/gpu"].as_str()?.to_owned())
    };
    let (_stop, stopped) = watch::channel(false);
    let tasks = publisher(&fake, &settings).await;
    eventually("what is wanted", || published(&fake).as_deref() == Some("40")).await;
    assert_eq!(run(client(&fake).await, &settings, true, stopped.clone()).await, Ok(0));
    tasks.end();
    assert_eq!(run(client(&fake).await, &settings, true, stopped.clone()).await, Ok(1));
    assert_eq!(published(&fake).as_deref(), Some("12"));
    assert_eq!(run(client(&fake).await, &settings, true, stopped).await, Ok(0), "what is low is left");
}

/// A real API server answers 403 for a namespace that was deleted, since its Role has gone with it.
#[tokio::test]
async fn a_namespace_that_may_not_be_written_costs_the_others_nothing_and_is_lowered_alone() {
    let fake = cluster().await;
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-b" } }));
    let shares = "team-a=0.5,team-b=0.5".parse().unwrap();
    let settings = Config { resource_quota_shares: shares, ..settings("cluster-queue") };
    let of = |namespace: &str| {
        let live = fake.get("resourcequotas", namespace, RESOURCE_QUOTA)?;
        Some(live["spec"]["hard"]["requests.nvidia.com/gpu"].as_str()?.to_owned())
    };
    let tasks = publisher(&fake, &settings).await;
    eventually("what is wanted", || of("team-b").as_deref() == Some("20")).await;
    fake.add_user("watchdog", "watchdog", None);
    let (_stop, stopped) = watch::channel(false);
    let watchdog = {
        let (client, settings) = (client_of(&fake.kubeconfig_of("watchdog")).await, settings.clone());
        tokio::spawn(async move { run(client, &settings, false, stopped).await })
    };
    let mut rule = Rule::new("get,patch", "", "resourcequotas");
    rule.namespaces = vec!["team-b".to_owned()];
    fake.deny(rule);
    eventually("what is held there", || of("team-b").as_deref() == Some("0")).await;
    assert_eq!((in_queue(&fake).as_deref(), of("team-a").as_deref()), (Some("40"), Some("20")));
    fake.deny_nothing();
    eventually("what is wanted again", || of("team-b").as_deref() == Some("20")).await;
    let excepted =
        || fake.get("leases", "headroom-system", "headroom-kubernetes-heartbeat").map(|lease| not_renewed(&lease));
    eventually("nothing is excepted", || excepted() == Some(BTreeSet::new())).await;
    watchdog.abort();
    tasks.end();
}
