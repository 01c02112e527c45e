//! Usage out of a real Prometheus: by `datasets ingest`, and by the loop of the service.

mod history;

use history::{FALLBACK, History, STEP_S};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Store;
use tempfile::TempDir;
use tests::{Listening, Prometheus, Ran, TestDatabase, free_address, on_both_databases, program};
use vocab::{ClusterName, HourDemand, HourStart, SeriesId, UnixSeconds};

on_both_databases![
    hours_of_a_real_prometheus_equal_its_demand_with_gaps_and_change_nothing_again,
    the_service_catches_up_with_a_prometheus_and_reports_it_in_its_own_metrics,
];

/// GPU model, organization, hour since the start → GPUs.
type Demand = BTreeMap<(String, String, i64), f64>;

fn earth() -> ClusterName {
    ClusterName::parse("earth").unwrap()
}

fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixSeconds::new(i64::try_from(since.as_secs()).unwrap())
}

async fn stored(store: &dyn Store, start: HourStart) -> Demand {
    let mut demand = BTreeMap::new();
    let sink = &mut |series: &SeriesId, hour: HourStart, gpus: HourDemand| {
        let (model, organization) = (series.pool.gpu_model.to_string(), series.organization.to_string());
        demand.insert((model, organization, hour.hours_since(start)), gpus.peak.as_gpus());
    };
    store.load_usage(&earth(), start.plus_hours(-1_000), start.plus_hours(1_000), sink).await.unwrap();
    demand
}

async fn capacity(store: &dyn Store, start: HourStart, hour: i64) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    for pool in ["earth:A100", "earth:H800"] {
        let row = store.capacity_at(&vocab::PoolId::parse(pool).unwrap(), start.plus_hours(hour)).await.unwrap();
        all.push((pool.to_owned(), row.unwrap().capacity.as_gpus()));
    }
    all
}

fn ingest(database: &TestDatabase, url: &str, more: &[&str]) -> Ran {
    let step = STEP_S.to_string();
    let own = ["ingest", "--format", "prometheus", url, "--cluster", "earth", "--gpu-model", FALLBACK, "--step", &step];
    let all = ["--gpu-model-label", "label_gpu", "--json", "--database", &database.url];
    program("datasets", &[&own[..], &all, more].concat())
}

const CLASSES: [&str; 2] = ["--hp-priority-classes", "high,system.x"];

fn gaps(summary: &Value, start: HourStart) -> Vec<(i64, i64, String)> {
    let hour = |text: &Value| command_line::hour(text.as_str().unwrap()).unwrap().hours_since(start);
    let gap = |gap: &Value| (hour(&gap["from"]), hour(&gap["until"]), gap["why"].as_str().unwrap().to_owned());
    summary["source"]["gaps"].as_array().unwrap().iter().map(gap).collect()
}

async fn hours_of_a_real_prometheus_equal_its_demand_with_gaps_and_change_nothing_again(database: TestDatabase) {
    // Days ago, so that nothing of it depends on the time of the test.
    let start = now().hour().unwrap().plus_hours(-100);
    let history = History { start, until_s: start.plus_hours(36).unix_s() };
    let Some(prometheus) = Prometheus::start(&[], &[], &history.open_metrics()) else { return };
    let (from, until) = (start.to_string(), start.plus_hours(36).to_string());
    let span = ["--from", &from, "--until", &until];
    let url = prometheus.url();
    // 1. Rows, gaps and capacity are those that were made.
    let first = ingest(&database, &url, &[&CLASSES[..], &span].concat()).json();
    let store = database.store().await;
    let expected = history.demand(start.plus_hours(36));
    assert_eq!(stored(store.as_ref(), start).await, expected);
    assert_eq!(first["inserted"], expected.len());
    let of = |model: &str, name: &str, hour| expected.get(&(model.to_owned(), name.to_owned(), hour)).copied();
    assert_eq!(
        [of("A100", "vision", 1), of("A100", "vision", 22), of("H800", "*", 26)],
        [Some(10.0), Some(0.0), Some(0.0)]
    );
    assert_eq!([of("A100", "vision", 13), of("A100", "vision", 17)], [None, Some(10.0)]);
    let missing = [(12, 13, "2 of 30 samples".to_owned()), (13, 15, "no sample".to_owned())];
    assert_eq!(gaps(&first, start), missing, "five minutes of the hour are seen from before");
    assert_eq!((first["source"]["missing_hours"].clone(), first["source"]["hours"].clone()), (3.into(), 36.into()));
    let gpus = |a100, h800| vec![("earth:A100".to_owned(), a100), ("earth:H800".to_owned(), h800)];
    assert_eq!(capacity(store.as_ref(), start, 3).await, gpus(24.0, 32.0));
    assert_eq!(capacity(store.as_ref(), start, 30).await, gpus(16.0, 32.0), "n2 is cordoned");
    // 2. Again, in other parts, it changes nothing.
    let version = store.usage_version(&earth()).await.unwrap();
    let again = ingest(&database, &url, &[&CLASSES[..], &span].concat()).json();
    assert_eq!([&again["inserted"], &again["changed"]], [0, 0]);
    let later = start.plus_hours(22).to_string();
    let part = ingest(&database, &url, &[&CLASSES[..], &["--from", &later, "--until", &until]].concat()).json();
    assert_eq!([&part["inserted"], &part["changed"]], [0, 0], "who has left is known from before");
    assert_eq!(store.usage_version(&earth()).await.unwrap(), version);
    // 3. What is refused writes nothing, and says why.
    refusals(&database, &url, &span);
    assert_eq!(store.usage_version(&earth()).await.unwrap(), version);
    // Not the address of the one that has gone: another test may have it by now.
    let gone = ingest(&database, "http://127.0.0.1:1", &[&CLASSES[..], &span].concat());
    assert!(gone.code == 5 && gone.stderr.contains("is not available"), "{gone:?}");
}

fn refusals(database: &TestDatabase, url: &str, span: &[&str]) {
    let with_user = url.replace("http://", "http://me:hush@");
    for (url, more, code, expected) in [
        (
            url,
            vec![CLASSES[0], CLASSES[1], "--max-missing", "0.05"],
            3,
            "8.3 % of the hours are missing, more than 5.0 %",
        ),
        (url, vec!["--query", "sum("], 4, "answers 400: 1:5: parse error"),
        (url, vec!["--query", "kube_pod_info"], 3, "are both of A100 speech: write the query as sum by"),
        (url, vec!["--query", "0 - sum by (namespace) (kube_pod_info)"], 3, "GPUs is negative"),
        (url, vec!["--query", "vector(1)"], 3, "has no label namespace"),
        (url, vec!["--query", "absent_metric"], 3, "% of the hours are missing"),
        (url, vec!["--query", "sum by (namespace) (kube_pod_info) * NaN", "--max-missing", "1"], 3, "has no sample"),
        (url, vec![CLASSES[0], "nobody", "--max-missing", "1"], 3, "has no sample of the demand"),
        (url, vec![], 4, "name the priority classes of HP pods"),
        (&with_user, vec!["--query", "up"], 4, "the URL holds a user or a password"),
    ] {
        let ran = ingest(database, url, &[&more[..], span].concat());
        assert_eq!(ran.code, code, "{more:?}: {ran:?}");
        assert!(ran.stderr.contains(expected) && !ran.stderr.contains("hush"), "{more:?}: {}", ran.stderr);
    }
}

/// A settings file whose source is one Prometheus.
fn settings(folder: &TempDir, url: &str) -> String {
    let sources = folder.path().join("sources.toml");
    let labels =
        format!("gpu_model = {FALLBACK:?}\ngpu_model_label = \"label_gpu\"\nstep_s = {STEP_S}\nlookback_h = 60");
    let source = format!("[earth]\nurl = {url:?}\nhp_priority_classes = [\"high\", \"system.x\"]\n{labels}\n");
    std::fs::write(&sources, source).unwrap();
    let file = folder.path().join("headroom.toml");
    let quick = "refresh_s = 1\npromotion_check_s = 1\nshutdown_grace_s = 1";
    std::fs::write(&file, format!("[quota-service]\n{quick}\nprometheus_file = \"{}\"\n", sources.display())).unwrap();
    file.to_str().unwrap().to_owned()
}

fn start(database: &TestDatabase, address: &str, settings: &str) -> Listening {
    Listening::start(&["--listen", address, "--database", &database.url, "--config", settings])
}

/// Waits, for a minute, until the cluster has an hour.
async fn newest(store: &dyn Store) -> HourStart {
    for _ in 0..600 {
        let known = store.cluster(&earth()).await.unwrap().is_some();
        if let Some((_, newest)) = if known { store.usage_range(&earth()).await.unwrap() } else { None } {
            return newest;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no usage was read")
}

async fn the_service_catches_up_with_a_prometheus_and_reports_it_in_its_own_metrics(database: TestDatabase) {
    let began = now();
    let start_hour = began.hour().unwrap().plus_hours(-40);
    let history = History { start: start_hour, until_s: began.get() };
    let address = free_address();
    let Some(prometheus) = Prometheus::start(&[&address], &[], &history.open_metrics()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder, &prometheus.url());
    // 1. A service on an empty database reads everything that is over.
    let service = start(&database, &address, &settings);
    let store = database.store().await;
    let newest = newest(store.as_ref()).await;
    assert!(newest.plus_hours(1) >= began.plus_s(-120).hour().unwrap(), "{newest}");
    let read = stored(store.as_ref(), start_hour).await;
    assert_eq!(read, history.demand(newest.plus_hours(1)));
    // 2. Prometheus finds it in the metrics of the service.
    let success = "headroom_prometheus_last_success_timestamp_seconds{cluster=\"earth\"}";
    let seen = prometheus.query_until(success, |found| !found.is_empty());
    assert!(seen[0].1 >= began.get() as f64);
    let missing = prometheus.query_until("headroom_prometheus_gaps_total", |found| !found.is_empty());
    assert_eq!(missing[0].1, 3.0);
    let failed = prometheus.query("headroom_prometheus_queries_total{outcome=\"failed\"}");
    assert_eq!(failed[0].1, 0.0);
    // 3. After a restart there is nothing more to read but what is over by then.
    let printed = service.stop().ok().stderr;
    assert!(
        printed.contains("hours are missing in Prometheus")
            && printed.contains("created the cluster of a Prometheus source"),
        "{printed}"
    );
    let again = start(&database, &address, &settings);
    let _ = again.get_until("/v1/pools", |status, _| status == 200);
    std::thread::sleep(Duration::from_secs(3));
    let _ = again.stop().ok();
    let after = stored(store.as_ref(), start_hour).await;
    assert!(read.iter().all(|(key, gpus)| after.get(key) == Some(gpus)));
    // 4. What looks from outside finds it well.
    let probed = probe(&prometheus.url()).await;
    assert_eq!(probed.reachable.unwrap().split('.').next(), Some("2"));
    let shares: Vec<_> = probed.queries.iter().map(|one| (one.name, one.outcome.clone().unwrap())).collect();
    assert_eq!(shares.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["demand", "presence", "capacity"]);
    assert!(shares.iter().all(|(_, probed)| probed.series > 0 && probed.missing_share() < 0.1), "{shares:?}");
}

async fn probe(url: &str) -> ::prometheus::Probe {
    let settings = ::prometheus::SourceSettings {
        url: url.to_owned(),
        hp_priority_classes: vec!["high".to_owned()],
        gpu_model: FALLBACK.to_owned(),
        gpu_model_label: "label_gpu".to_owned(),
        step_s: STEP_S.unsigned_abs(),
        ..::prometheus::SourceSettings::default()
    };
    ::prometheus::probe(&settings.source(earth()).unwrap(), now(), 6).await
}
