//! Reports to a service that refuses some of their items, or stores others.

use super::*;
use crate::client::ServiceSettings;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use std::io::Write;
use std::sync::Mutex;
use tracing_subscriber::fmt::MakeWriter;
use vocab::{EventId, HorizonHours, OutcomeKind};

/// Batches of event ids that came in.
type Came = Arc<Mutex<Vec<Vec<String>>>>;

async fn outcomes(State(came): State<Came>, Json(batch): Json<OutcomeBatch>) -> (StatusCode, Json<Value>) {
    let ids: Vec<String> = batch.outcomes.iter().map(|one| one.event_id.clone()).collect();
    let tries = {
        let mut came = came.lock().unwrap();
        came.push(ids.clone());
        came.len()
    };
    if tries < 3 && ids.iter().any(|id| id.starts_with("later")) {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({})));
    }
    let refused = |(index, id): (usize, &String)| {
        id.starts_with("bad").then(|| json!({"pointer": format!("/outcomes/{index}/ended_at"), "detail": "ahead"}))
    };
    let errors: Vec<Value> = ids.iter().enumerate().filter_map(refused).collect();
    if !errors.is_empty() {
        let problem = json!({"type": "/problems/invalid-body", "title": "invalid", "status": 400, "detail": "refused",
            "code": "invalid-body", "errors": errors});
        return (StatusCode::BAD_REQUEST, Json(problem));
    }
    let result = |id: &String| if id.starts_with("other") { "conflicting" } else { "recorded" };
    let receipts: Vec<Value> = ids.iter().map(|id| json!({"event_id": id, "result": result(id)})).collect();
    (StatusCode::OK, Json(json!({"outcomes": receipts})))
}

/// A cluster of which nothing is reported by itself.
struct Nothing;

impl Reported for Nothing {
    fn now(&self) -> UnixSeconds {
        UnixSeconds::new(1_795_590_000)
    }
    fn pass_to(&self, _now: UnixSeconds) {}
    fn pools(&self) -> Vec<PoolId> {
        Vec::new()
    }
    fn know(&self, _pool: &PoolId, _organizations: Vec<Organization>) {}
    fn take(&self) -> (Vec<UsageRow>, Vec<Outcome>) {
        (Vec::new(), Vec::new())
    }
    fn put_back(&self, _rows: Vec<UsageRow>, _outcomes: Vec<Outcome>) {}
    fn states(&self, _offers: &Offers, _now: UnixSeconds) -> Vec<(PoolState, HpJobs)> {
        Vec::new()
    }
}

/// Outcomes that wait.
struct Pending(Mutex<Vec<Outcome>>);

impl Reported for Pending {
    fn now(&self) -> UnixSeconds {
        Nothing.now()
    }
    fn pass_to(&self, _now: UnixSeconds) {}
    fn pools(&self) -> Vec<PoolId> {
        Vec::new()
    }
    fn know(&self, _pool: &PoolId, _organizations: Vec<Organization>) {}
    fn take(&self) -> (Vec<UsageRow>, Vec<Outcome>) {
        (Vec::new(), std::mem::take(&mut self.0.lock().unwrap()))
    }
    fn put_back(&self, _rows: Vec<UsageRow>, outcomes: Vec<Outcome>) {
        self.0.lock().unwrap().extend(outcomes);
    }
    fn states(&self, _offers: &Offers, _now: UnixSeconds) -> Vec<(PoolState, HpJobs)> {
        Vec::new()
    }
}

async fn reporter() -> (Reporter<Nothing>, Came) {
    let came = Came::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let router = Router::new().route("/v1/outcomes", post(outcomes)).with_state(came.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = ServiceSettings { url: &url, token_file: None, ca_file: None, agent: "test" };
    let reporter = Reporter {
        headroom: Headroom::new(settings).unwrap(),
        reported: Arc::new(Nothing),
        offers: watch::channel(Arc::new(Offers::default())).1,
        program: "test",
        started: Nothing.now().plus_s(-1),
        standing: Standing::new(),
        known: BTreeSet::new(),
    };
    (reporter, came)
}

fn outcome(id: &str) -> Outcome {
    Outcome {
        event_id: EventId::parse(id).unwrap(),
        pool: PoolId::parse("earth:A100").unwrap(),
        guarantee_hours: HorizonHours::new(1).unwrap(),
        kind: OutcomeKind::Kept,
        ended_at: Nothing.now(),
        began_at: None,
        gpus: None,
        task: None,
        node: None,
    }
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    fn lines_with(&self, text: &str) -> usize {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

#[tokio::test]
async fn items_that_the_service_names_are_dropped_alone_and_the_others_arrive() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::fmt().with_writer(log.clone()).finish());
    let (reporter, came) = reporter().await;
    let all = ["bad-1", "good-1", "bad-2", "good-2"].map(outcome);
    let left = reporter.report_outcomes(all.to_vec(), Nothing.now()).await;
    assert_eq!(left, []);
    assert_eq!(*came.lock().unwrap(), [vec!["bad-1", "good-1", "bad-2", "good-2"], vec!["good-1", "good-2"]]);
    assert_eq!([log.lines_with("bad-1"), log.lines_with("bad-2"), log.lines_with("good-1")], [1, 1, 0]);
    let left = reporter.report_outcomes(vec![outcome("bad-3")], Nothing.now()).await;
    assert_eq!((left.len(), came.lock().unwrap().len()), (0, 3), "nothing is left to send");
}

#[tokio::test]
async fn an_outcome_that_contradicts_what_is_stored_is_logged_once() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::fmt().with_writer(log.clone()).finish());
    let (reporter, _came) = reporter().await;
    for _ in 0..2 {
        reporter.report_outcomes(["other-1", "good-1"].map(outcome).to_vec(), Nothing.now()).await;
    }
    assert_eq!([log.lines_with("other-1"), log.lines_with("good-1")], [1, 0]);
    assert_eq!(log.lines_with("WARN"), 1);
}

#[tokio::test]
async fn an_outcome_of_before_the_start_that_contradicts_what_is_stored_is_settled() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (reporter, _came) = reporter().await;
    let before = Outcome { ended_at: Nothing.now().plus_s(-1), ..outcome("other-1") };
    let left = reporter.report_outcomes(vec![before, outcome("other-2")], Nothing.now()).await;
    assert_eq!(left, [], "neither is sent again");
    let is_settled = "reported before this program started, and stays";
    assert_eq!([log.lines_with(is_settled), log.lines_with("WARN")], [1, 1]);
    assert_eq!([log.lines_with("other-1"), log.lines_with("other-2")], [1, 1]);
}

#[tokio::test]
async fn a_program_that_is_stopped_reports_until_all_is_taken() {
    let (reporter, came) = reporter().await;
    let pending = Arc::new(Pending(Mutex::default()));
    let (stopper, stop) = watch::channel(false);
    let every = Duration::from_mins(10);
    let offers = reporter.offers.clone();
    let reporting = tokio::spawn(run(reporter.headroom.clone(), pending.clone(), offers, "test", every, stop));
    // After the first round.
    tokio::time::sleep(Duration::from_millis(300)).await;
    pending.0.lock().unwrap().push(outcome("later"));
    stopper.send_replace(true);
    tokio::time::timeout(Duration::from_secs(10), reporting).await.expect("it ends").unwrap();
    assert!(pending.0.lock().unwrap().is_empty());
    assert_eq!(came.lock().unwrap().last().unwrap(), &["later"]);
    assert!(came.lock().unwrap().len() >= 3, "two tries failed: {came:?}");
}
