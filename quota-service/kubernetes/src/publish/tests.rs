//! Against an API server: what is written, by whom, and what is left alone.

mod forms;

use super::plan::Basis;
use super::*;
use crate::lead::{epoch_of, run as run_lead};
use crate::names::{EPOCH, MANAGED_BY, QUOTA_MANAGER};
use crate::tests::{client, config, eventually};
use fake_kubernetes::{FakeKubernetes, Fault as Asked, Request, What};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A publisher that leads, on a server of its own.
struct Stage {
    fake: FakeKubernetes,
    config: Config,
    wanted: watch::Sender<Arc<Wanted>>,
    lead: watch::Sender<Option<Epoch>>,
    outpaced: Arc<watch::Sender<u32>>,
    _stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn settings(kueue: &str) -> Config {
    Config {
        kueue: kueue.parse().unwrap(),
        flavors: "a100-spot=A100,h800-spot=H800".parse().unwrap(),
        publish_s: 1,
        raise_after_s: 2,
        least_change_ratio: 0.0,
        ..config("a")
    }
}

fn amounts(a100: u64, h800: u64) -> Arc<Wanted> {
    let of = |quota_gpus| Amounts {
        quota_gpus,
        held_gpus: quota_gpus / 4,
        allocatable_gpus: 1_000,
        basis: Basis::Known,
        ..Amounts::default()
    };
    let model = |name| GpuModel::parse(name).unwrap();
    let by_model = [(model("A100"), of(a100)), (model("H800"), of(h800))].into();
    Arc::new(Wanted { is_known: true, by_model, ..Wanted::default() })
}

async fn stage(fake: FakeKubernetes, config: Config) -> Stage {
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "headroom-system" } }));
    stage_with(fake, config, amounts(40, 16)).await
}

async fn stage_with(fake: FakeKubernetes, config: Config, first: Arc<Wanted>) -> Stage {
    let (wanted, wants) = watch::channel(first);
    let (lead, led) = watch::channel(None);
    let (stop, stopped) = watch::channel(false);
    let outpaced = Arc::new(watch::channel(0).0);
    let task = tokio::spawn(run(client(&fake).await, Arc::new(config.clone()), wants, led, Events::none(), stopped));
    let stage = Stage { fake, config, wanted, lead, outpaced, _stop: stop, task };
    stage.leads(3);
    stage
}

impl Stage {
    fn leads(&self, epoch: u32) {
        let until = Instant::now() + Duration::from_mins(10);
        self.lead.send_replace(Some(Epoch::new(epoch, until, Arc::clone(&self.outpaced))));
    }

    fn object(&self, kind: &str) -> Option<Value> {
        let name = if kind == "clusterqueues" {
            self.config.cluster_queue.as_str()
        } else {
            self.config.capacity_provider.as_str()
        };
        self.fake.get(kind, "", name)
    }

    fn gpus(&self, kind: &str) -> Gpus {
        let target = match kind {
            "clusterqueues" => Target::queue(&self.config),
            _ => Target::provider(
                &self.config,
                form(&fake_kubernetes::crds::dynamic_quota("orchestratedFlavors")[0]).unwrap(),
            ),
        };
        self.object(kind).map(|live| target.published(&live)).unwrap_or_default()
    }

    async fn publishes(&self, kind: &str, a100: u64, h800: u64) {
        let wanted: Gpus = [("a100-spot".to_owned(), a100), ("h800-spot".to_owned(), h800)].into();
        eventually(&format!("{a100} and {h800} in {kind}"), || self.gpus(kind) == wanted).await;
    }

    fn writes(&self, resource: &str) -> Vec<Request> {
        self.fake.writes().into_iter().filter(|one| one.resource.starts_with(resource)).collect()
    }

    fn beats(&self) -> usize {
        self.writes("leases").len()
    }

    async fn beats_on(&self) {
        let before = self.beats();
        eventually("the next beats", || self.beats() > before + 1).await;
    }

    /// Rounds that only read.
    async fn rounds(&self, count: usize) {
        let gets = || self.fake.requests().iter().filter(|one| one.verb == "get").count();
        let before = gets();
        eventually("more rounds", || gets() >= before + count).await;
    }
}

async fn with_provider(flavors: &str) -> FakeKubernetes {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    fake.install_dynamic_quota(flavors);
    fake
}

fn condition(live: &Value) -> (&str, &str) {
    let one = &live["status"]["conditions"][0];
    (one["status"].as_str().unwrap(), one["message"].as_str().unwrap())
}

#[tokio::test]
async fn a_provider_is_made_lowered_at_once_and_raised_later_by_one_manager_that_forces_nothing() {
    let stage = stage(with_provider("orchestratedFlavors").await, settings("auto")).await;
    stage.publishes("capacityproviders", 40, 16).await;
    let live = stage.object("capacityproviders").unwrap();
    assert_eq!(live["spec"]["controllerName"], "headroom.dev/spot-quota");
    assert_eq!((epoch_of(&live), condition(&live).0), (3, "True"));
    assert_eq!(held_of(&live).unwrap()["a100-spot"], 10);
    stage.wanted.send_replace(amounts(39, 48));
    stage.publishes("capacityproviders", 39, 48).await;
    let lowered = Wanted { lowered_because: "no answer from Headroom".to_owned(), ..(*amounts(8, 4)).clone() };
    stage.wanted.send_replace(Arc::new(lowered));
    stage.publishes("capacityproviders", 8, 4).await;
    let live = stage.object("capacityproviders").unwrap();
    assert_eq!(condition(&live), ("True", "lowered, and to be held to: no answer from Headroom"));
    let managed = live["metadata"]["managedFields"].as_array().unwrap();
    assert!(managed.iter().all(|one| one["manager"] == QUOTA_MANAGER && one["operation"] == "Apply"), "{managed:?}");
    assert!(stage.fake.writes().iter().all(|one| !one.force && one.manager == QUOTA_MANAGER));
    stage.beats_on().await;
    let before = stage.writes("capacityproviders").len();
    stage.rounds(3).await;
    assert_eq!(stage.writes("capacityproviders").len(), before, "what is in order is not written");
}

#[tokio::test]
async fn a_cluster_queue_of_our_own_is_made_whole_and_keeps_the_flavors_it_had() {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    let stage = stage(fake, settings("auto")).await;
    stage.publishes("clusterqueues", 40, 16).await;
    let live = stage.object("clusterqueues").unwrap();
    assert_eq!(live["metadata"]["labels"][MANAGED_BY], "headroom");
    assert_eq!(live["spec"]["resourceGroups"][0]["coveredResources"], json!(["nvidia.com/gpu"]));
    assert_eq!(live["spec"]["namespaceSelector"], json!({}));
    let mut changed = live.clone();
    changed["spec"]["resourceGroups"][0]["flavors"][0]["name"] = "old-spot".into();
    changed["metadata"]["resourceVersion"] = Value::Null;
    // As if an earlier publisher of ours had had another flavor.
    stage.fake.apply_as(QUOTA_MANAGER, &json!({
        "apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": { "name": live["metadata"]["name"], "labels": live["metadata"]["labels"] },
        "spec": { "resourceGroups": changed["spec"]["resourceGroups"], "namespaceSelector": {} },
    }));
    let names = || -> Vec<String> {
        let live = stage.object("clusterqueues").unwrap();
        let flavors = live["spec"]["resourceGroups"][0]["flavors"].as_array().unwrap().clone();
        flavors
            .iter()
            .map(|one| {
                format!("{}={}", one["name"].as_str().unwrap(), one["resources"][0]["nominalQuota"].as_str().unwrap())
            })
            .collect()
    };
    eventually("old-spot at 0", || names() == ["old-spot=0", "h800-spot=16", "a100-spot=40"]).await;
}

#[tokio::test]
async fn fields_of_an_admin_are_left_alone_and_reported_and_written_again_once_they_are_free() {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    let stage = stage(fake, settings("cluster-queue")).await;
    stage.publishes("clusterqueues", 40, 16).await;
    let mut groups = stage.object("clusterqueues").unwrap()["spec"]["resourceGroups"].clone();
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "64".into();
    let metadata = json!({ "name": stage.config.cluster_queue.as_str() });
    let theirs = |spec: Value| json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": metadata, "spec": spec });
    stage.fake.apply_as("argocd", &theirs(json!({ "resourceGroups": groups })));
    let refused = || stage.writes("clusterqueues").iter().filter(|one| one.status == 409).count();
    eventually("a refused apply", || refused() == 1).await;
    stage.wanted.send_replace(amounts(1, 1));
    stage.beats_on().await;
    assert_eq!(
        (refused(), stage.gpus("clusterqueues")["a100-spot"]),
        (1, 64),
        "it is read again much later, never forced"
    );
    stage.fake.apply_as("argocd", &theirs(json!({ "stopPolicy": "None" })));
    stage.publishes("clusterqueues", 1, 1).await;
    assert!(stage.fake.writes().iter().all(|one| !one.force));
}

#[tokio::test]
async fn a_conflict_stays_one_while_another_owns_the_quota_also_where_nothing_is_to_be_written() {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    let config = settings("cluster-queue");
    let (calls, (outpaced, _)) = (Calls::new(client(&fake).await, Duration::from_secs(5)), watch::channel(0));
    let epoch = Epoch::new(3, Instant::now() + Duration::from_mins(10), Arc::new(outpaced));
    let (_lead, led) = watch::channel(Some(epoch));
    let mut kept = Kept::new(Target::queue(&config), rules_of(&config));
    let looks = async |kept: &mut Kept, a100: u64| {
        let gpus: Gpus = [("a100-spot".to_owned(), a100)].into();
        let means = Means {
            calls: &calls,
            fence: &Fence::new(led.clone()),
            events: &Events::none(),
            rules: rules_of(&config),
            set_aside_for: Duration::ZERO,
        };
        kept.look(means, Wish { gpus: &gpus, held: &Gpus::new(), basis: &BTreeMap::new(), message: "" }).await.0
    };
    assert_eq!(looks(&mut kept, 40).await, Stands::InOrder);
    let mut groups = fake.get("clusterqueues", "", "headroom-spot").unwrap()["spec"]["resourceGroups"].clone();
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "30".into();
    let theirs = |spec: Value| json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": { "name": "headroom-spot" }, "spec": spec });
    fake.apply_as("argocd", &theirs(json!({ "resourceGroups": groups })));
    assert_eq!(looks(&mut kept, 20).await, Stands::NotOurs);
    // A raise is not due yet: there is nothing to write, and the conflict stands.
    assert_eq!([looks(&mut kept, 40).await, looks(&mut kept, 40).await], [Stands::NotOurs; 2]);
    fake.apply_as("argocd", &theirs(json!({})));
    assert_eq!(looks(&mut kept, 40).await, Stands::InOrder);
}

#[tokio::test]
async fn a_first_offer_replaces_the_0_that_was_published_for_want_of_one_at_once() {
    let config = Config { raise_after_s: 3_600, ..settings("capacity-provider") };
    let none = amounts(0, 0);
    let by_model = none.by_model.iter().map(|(model, of)| (model.clone(), Amounts { basis: Basis::Missing, ..*of }));
    let none = Arc::new(Wanted { by_model: by_model.collect(), ..(*none).clone() });
    let stage = stage_with(with_provider("orchestratedFlavors").await, config, none).await;
    stage.publishes("capacityproviders", 0, 0).await;
    stage.wanted.send_replace(amounts(40, 16));
    stage.publishes("capacityproviders", 40, 16).await;
}

#[tokio::test]
async fn objects_of_others_are_refused() {
    let fake = with_provider("orchestratedFlavors").await;
    let spec = json!({ "controllerName": "example.com/other", "orchestratedFlavors": [{ "name": "x" }] });
    let provider = json!({ "apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "CapacityProvider", "metadata": { "name": "headroom-spot" }, "spec": spec });
    fake.put(provider);
    let stage = stage(fake, settings("capacity-provider")).await;
    stage.beats_on().await;
    assert!(stage.writes("capacityproviders").is_empty());
    assert_eq!(stage.object("capacityproviders").unwrap()["spec"]["controllerName"], "example.com/other");
}

#[tokio::test]
async fn races_throttling_and_failures_end_with_the_quota_written_and_few_requests() {
    let stage = stage(with_provider("orchestratedFlavors").await, settings("capacity-provider")).await;
    stage.publishes("capacityproviders", 40, 16).await;
    stage.fake.fault(Asked::new(What::Conflict(String::new()), 2).resource("capacityproviders/status"));
    stage.wanted.send_replace(amounts(30, 16));
    stage.publishes("capacityproviders", 30, 16).await;
    for fault in [What::Throttle(2), What::Fail(500), What::FailAfter(503), What::Drop] {
        let wanted = stage.gpus("capacityproviders")["a100-spot"] - 1;
        let before = stage.writes("capacityproviders").len();
        stage.fake.fault(Asked::new(fault.clone(), 1).resource("capacityproviders").verb("patch"));
        stage.wanted.send_replace(amounts(wanted, 16));
        stage.publishes("capacityproviders", wanted, 16).await;
        let writes = stage.writes("capacityproviders").len() - before;
        assert!(writes <= 6, "{writes} writes for one change with {fault:?}");
    }
    stage.beats_on().await;
}

#[tokio::test]
async fn who_was_outpaced_or_leads_no_more_writes_nothing() {
    let stage = stage(with_provider("orchestratedFlavors").await, settings("capacity-provider")).await;
    stage.publishes("capacityproviders", 40, 16).await;
    stage.beats_on().await;
    let annotations = json!({ "metadata": { "annotations": { EPOCH: "5" } } });
    stage.fake.patch("capacityproviders", "", "headroom-spot", &annotations).unwrap();
    stage.fake.forget_requests();
    stage.wanted.send_replace(amounts(10, 16));
    eventually("the elector learns it", || *stage.outpaced.borrow() == 5).await;
    stage.lead.send_replace(None);
    stage.rounds(0).await;
    stage.leads(4);
    stage.rounds(2).await;
    assert!(stage.fake.writes().is_empty(), "not even a heartbeat: {:?}", stage.fake.writes());
    assert_eq!(stage.gpus("capacityproviders")["a100-spot"], 40);
}

#[tokio::test]
async fn nothing_is_written_before_anything_is_known() {
    let stage = stage(with_provider("orchestratedFlavors").await, settings("capacity-provider")).await;
    stage.publishes("capacityproviders", 40, 16).await;
    stage.wanted.send_replace(Arc::new(Wanted::default()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.fake.forget_requests();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(stage.fake.requests().is_empty());
    stage.wanted.send_replace(amounts(7, 7));
    stage.publishes("capacityproviders", 7, 7).await;
}

#[tokio::test]
async fn namespaces_get_their_shares_of_all_models_and_one_that_is_not_there_holds_nothing_back() {
    let fake = FakeKubernetes::start().await;
    for name in ["team-a", "team-b"] {
        fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }
    let shares = "team-a=0.5,team-b=0.25,team-gone=0.25".parse().unwrap();
    let stage = stage(fake, Config { resource_quota: true, resource_quota_shares: shares, ..settings("off") }).await;
    let hard = |namespace: &str| {
        let live = stage.fake.get("resourcequotas", namespace, RESOURCE_QUOTA)?;
        Some(live["spec"]["hard"]["requests.nvidia.com/gpu"].as_str()?.to_owned())
    };
    eventually("the shares of 56", || {
        hard("team-a").as_deref() == Some("28") && hard("team-b").as_deref() == Some("14")
    })
    .await;
    let live = stage.fake.get("resourcequotas", "team-a", RESOURCE_QUOTA).unwrap();
    let selects = json!([{ "scopeName": "PriorityClass", "operator": "In", "values": ["spot"] }]);
    assert_eq!(live["spec"]["scopeSelector"]["matchExpressions"], selects);
    stage.beats_on().await;
}

#[tokio::test]
async fn a_missing_provider_is_reported_and_holds_nothing_back() {
    let fake = FakeKubernetes::start().await;
    let stage = stage(fake, settings("capacity-provider")).await;
    stage.beats_on().await;
    assert!(stage.writes("capacityproviders").is_empty());
}

#[tokio::test]
async fn the_replica_that_takes_over_stamps_its_epoch_and_the_killed_one_writes_no_more() {
    let fake = with_provider("orchestratedFlavors").await;
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "headroom-system" } }));
    let (_stop, stopped) = watch::channel(false);
    let (_wanted, wants) = watch::channel(amounts(40, 16));
    let mut runs = Vec::new();
    for name in ["a", "b"] {
        let settings = Config { identity: name.to_owned(), ..settings("capacity-provider") };
        let (lead, elects) = run_lead(client(&fake).await, &settings, stopped.clone());
        let (client, stopped) = (client(&fake).await, stopped.clone());
        let publishes = run(client, Arc::new(settings), wants.clone(), lead.clone(), Events::none(), stopped);
        let publishes = tokio::spawn(publishes);
        runs.push((lead, elects, publishes));
    }
    let epoch = || fake.get("capacityproviders", "", "headroom-spot").map_or(0, |live| epoch_of(&live));
    eventually("the first epoch", || epoch() == 1).await;
    let at = usize::from(runs[0].0.borrow().is_none());
    runs[at].1.abort();
    runs[at].2.abort();
    eventually("the second epoch", || epoch() == 2).await;
    for (_, elects, publishes) in runs {
        elects.abort();
        publishes.abort();
    }
}

#[tokio::test]
async fn a_write_that_was_under_way_when_another_took_over_is_refused_and_its_writer_steps_down() {
    let stage = stage(with_provider("orchestratedFlavors").await, settings("capacity-provider")).await;
    stage.publishes("capacityproviders", 40, 16).await;
    let held_up = || stage.fake.requests().iter().any(|one| one.verb == "patch" && one.status == 0);
    stage.fake.fault(Asked::new(What::Delay(2_000), 1).resource("capacityproviders/status"));
    stage.wanted.send_replace(amounts(10, 16));
    eventually("a write under way", held_up).await;
    let annotations = json!({ "metadata": { "annotations": { EPOCH: "9" } } });
    stage.fake.patch("capacityproviders", "", "headroom-spot", &annotations).unwrap();
    eventually("the elector learns it", || *stage.outpaced.borrow() == 9).await;
    assert_eq!(stage.gpus("capacityproviders")["a100-spot"], 40);
}
