//! How long a broken watch is tolerated. Instants are passed in by the events.

use super::*;
use crate::config::Config;
use crate::view::View;
use crate::view::facts::{NodeFacts, Reading};
use placement::Policy;
use tokio::time::Instant;
use vocab::{ClusterName, GpuModel, UnixSeconds};

const HOUR: i64 = 1_793_600_000 - 1_793_600_000 % 3_600;

fn shared() -> Arc<Shared> {
    let config = Config::default();
    let now = || UnixSeconds::new(HOUR + 60);
    let shared = Shared::new(View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS), now);
    let facts = NodeFacts {
        node: NodeId::parse("n1").unwrap(),
        gpu_model: Some(GpuModel::parse("A100").unwrap()),
        gpus: 8,
        is_open: true,
        is_ready: true,
        is_emptied: false,
        topology: None,
    };
    shared.write().set_node(facts, UnixSeconds::new(HOUR));
    shared.write().begin(UnixSeconds::new(HOUR));
    shared
}

/// Whether the hour that runs counts.
fn counts(shared: &Shared) -> bool {
    let mut view = shared.read().clone();
    view.pass_to(UnixSeconds::new(HOUR + 3_600));
    !view.take_rows().is_empty()
}

fn lost<K>(seconds: u64) -> Event<K> {
    let since = Instant::now().checked_sub(Duration::from_secs(seconds)).expect("the machine has run for longer");
    Event::Lost { since, fault: "refused".to_owned() }
}

#[test]
fn an_outage_of_half_a_minute_ends_with_the_reconnect_and_drops_no_hour() {
    let (shared, standing, mut pods) = (shared(), Standing::new(), Pods::default());
    handle::<Pod, _>(lost(5), &mut pods, &shared, &standing);
    assert!(!shared.is_stale());
    let (shared, standing) = (self::shared(), Standing::new());
    handle::<Pod, _>(lost(31), &mut pods, &shared, &standing);
    assert!(shared.is_stale() && counts(&shared));
    assert_eq!(shared.blind_for().unwrap().0, "pods");
    handle::<Pod, _>(Event::Resumed, &mut pods, &shared, &standing);
    assert!(!shared.is_stale() && shared.blind_for().is_none(), "no pod had to change for that");
    handle::<Pod, _>(Event::InitDone, &mut pods, &shared, &standing);
    assert!(counts(&shared));
}

#[test]
fn an_outage_of_more_than_a_minute_drops_the_hour() {
    let (shared, standing, mut nodes) = (shared(), Standing::new(), Nodes::default());
    handle::<Node, _>(lost(61), &mut nodes, &shared, &standing);
    assert!(!counts(&shared));
}

#[test]
fn a_watch_of_priority_classes_makes_nothing_stale_and_drops_no_hour() {
    let (shared, standing, mut classes) = (shared(), Standing::new(), Classes::default());
    handle::<PriorityClass, _>(lost(300), &mut classes, &shared, &standing);
    assert!(!shared.is_stale() && counts(&shared));
}

#[tokio::test]
async fn readiness_says_what_has_not_been_watched_and_for_how_long() {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let (shared, standing, mut pods) = (shared(), Standing::new(), Pods::default());
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let router = crate::health::router(Arc::new(recorder.handle()), Some(shared.clone()));
    let ready = async || {
        let answer = router.clone().oneshot(Request::get("/readyz").body(Body::empty()).unwrap()).await.unwrap();
        let (status, body) = (answer.status().as_u16(), answer.into_body().collect().await.unwrap().to_bytes());
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    assert_eq!(ready().await, (503, "not all nodes and pods are known yet\n".to_owned()));
    shared.synced.send_modify(|synced| (synced.nodes, synced.pods) = (true, true));
    assert_eq!(ready().await.0, 200);
    handle::<Pod, _>(lost(29), &mut pods, &shared, &standing);
    assert_eq!(ready().await.0, 200, "a short outage takes nobody out of service");
    shared.lost().clear();
    handle::<Pod, _>(lost(42), &mut pods, &shared, &standing);
    assert_eq!(ready().await, (503, "pods have not been watched for 42 s: the view is stale\n".to_owned()));
    handle::<Pod, _>(Event::Resumed, &mut pods, &shared, &standing);
    assert_eq!(ready().await.0, 200);
}

#[test]
fn the_lowest_class_that_is_a_default_is_that_of_pods_that_name_none() {
    let (shared, standing, mut classes) = (shared(), Standing::new(), Classes::default());
    let class = |name: &str, value: i32, is_default: bool| -> PriorityClass {
        let meta = serde_json::json!({ "name": name });
        let class = serde_json::json!({ "metadata": meta, "value": value, "globalDefault": is_default });
        serde_json::from_value(class).unwrap()
    };
    let mut after = |event: Event<PriorityClass>| {
        handle(event, &mut classes, &shared, &standing);
        shared.read().default_class().map(str::to_owned)
    };
    after(Event::Init);
    assert_eq!(after(Event::InitApply(class("high", 10, true))), None, "half of a list");
    after(Event::InitApply(class("spot", -10, true)));
    assert_eq!(after(Event::InitDone).as_deref(), Some("spot"));
    assert_eq!(after(Event::Apply(class("spot", -10, false))).as_deref(), Some("high"));
    assert_eq!(after(Event::Delete(class("high", 10, true))), None);
}
