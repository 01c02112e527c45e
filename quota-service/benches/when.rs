//! Questions for starts through the routes of the service, at 4,278 nodes and 5,000 waiting tasks, on a SQLite file. Prints p50 and p99
//! and their part of the bound of 50 ms (DESIGN §6); beside each the library alone on the same facts, and a task as it is.
//!
//!     cargo bench -p quota-service --bench when --profile dev     # `starts` and `placement` are optimized there, too

#[path = "../starts/benches/played/mod.rs"]
mod played;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use played::{BOUND_MS, Draws, HP_MILLI, NODES, PLAYED_S, WAITING, limits, played, report};
use quota_service::args::Config;
use quota_service::clock::Clock;
use quota_service::engine::{Order, ReadFacts, TaskCall};
use quota_service::http::router;
use quota_service::{AppState, Options};
use starts::{Ask, PoolFacts, StartExpert, futures_of};
use std::hint::black_box;
use std::time::Instant;
use store::Cluster;
use tower::ServiceExt;
use vocab::{ClusterName, Node, NodeId, PoolId, TaskClass, TaskId, UnixSeconds};

const ROUNDS: usize = 100;
/// Submissions that are under way at once.
const TOGETHER: usize = 256;
const POOL: &str = "bench:A100";

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite://{}/when.db", folder.path().display());
    let (state, mut expert) = served(&url).await;
    let waiting = filled(&state).await;
    let facts = facts(&state).await;
    expert.observe(&facts);
    let futures = futures_of(&facts, expert.memory());
    let running = facts.running().count();
    println!("starts over the routes: {NODES} nodes, {running} tasks run, {} wait, {futures} futures", waiting.len());
    let path = |id: &TaskId, what: &str| format!("/v1/tasks/{id}{what}?cluster=bench&gpu_model=A100");
    let order: Vec<TaskId> = facts.waiting().cloned().collect();
    for (what, place) in
        [("the first task", 0), ("one in the middle", order.len() / 2), ("the last task", order.len() - 1)]
    {
        let task = &order[place];
        timed(&state, what, &path(task, "/eta"), None).await;
        beside(|round| expert.of_waiting(&facts, task, round).is_some());
    }
    let plain = r#"{"cluster":"bench","gpu_model":"A100","organization":"org-1","gpus_per_pod":8"#;
    let asked = format!(r#"{plain},"class":"spot","guarantee_hours":1}}"#);
    timed(&state, "a task that is not submitted", "/v1/tasks/eta", Some(asked)).await;
    let new = Ask::now(Draws(9).request(9_999_999, TaskClass::Spot, facts.at()));
    beside(|round| !expert.of_new(&facts, std::slice::from_ref(&new), round).is_empty());
    timed(&state, "a task as it is (peer)", &path(&order[0], ""), None).await;
    let begun = Instant::now();
    state.start_times.look().await;
    println!("  a round over all waiting tasks     {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
}

/// A service with the nodes of the pool, and with what two days taught of it.
async fn served(url: &str) -> (AppState, StartExpert) {
    let clock = Clock::real();
    let store = store::connect(url).await.expect("a fresh database opens");
    let name = ClusterName::parse("bench").expect("a name");
    let cluster = Cluster { name, time_zone: "UTC".to_owned(), calendar: "weekdays".to_owned() };
    store.put_cluster(&cluster).await.expect("a cluster is put");
    let pool = PoolId::parse(POOL).expect("a pool");
    for number in 0..NODES {
        let id = NodeId::parse(&format!("node-{number:05}")).expect("a name");
        let node =
            Node { id, pool: pool.clone(), gpus: 8, cpu_milli: None, memory_mib: None, drains: false, topology: None };
        store.put_node(&node).await.expect("a node is put");
    }
    let (_, expert, until) = played(clock.now().plus_s(-PLAYED_S));
    store.put_starts(&pool, until, &expert.to_bytes()).await.expect("what was learned is put");
    let state = AppState::new(Options::new(store, clock, Config::default()));
    state.renewals.update_leases().await.expect("the database answers");
    state.access.read_tokens().await.expect("the database answers");
    (state, expert)
}

async fn facts(state: &AppState) -> PoolFacts {
    let pool = PoolId::parse(POOL).expect("a pool");
    state.engine.ask(&pool, ReadFacts::default()).await.expect("the pool answers").facts
}

/// HP on two thirds of the GPUs, spot on the rest, and a queue. Answers the names of the tasks that wait.
async fn filled(state: &AppState) -> Vec<TaskId> {
    let pool = PoolId::parse(POOL).expect("a pool");
    let placement = store::PoolPlacement {
        placed_by: vocab::PlacedBy::Headroom,
        since: Some(UnixSeconds::new(0)),
        set_by: "bench".to_owned(),
    };
    state.engine.ask(&pool, Order::PlacedBy(Some(placement))).await.expect("the pool answers");
    state.engine.ask(&pool, Order::SetLimits(limits(12_000))).await.expect("the pool answers");
    let (mut draws, mut number, mut hp_milli, mut waiting) = (Draws(11), 0, 0, Vec::new());
    while waiting.len() < WAITING {
        let class = if hp_milli < HP_MILLI { TaskClass::Hp } else { TaskClass::Spot };
        let submitted = (0..TOGETHER).map(|_| {
            number += 1;
            let request = draws.request(number, class, state.core.clock.now());
            hp_milli += u64::from(request.gang.pod.gpus.milli()) * u64::from(request.gang.pods);
            let (engine, pool) = (state.engine.clone(), pool.clone());
            tokio::spawn(async move { engine.ask(&pool, TaskCall::Submit(request)).await })
        });
        let submitted: Vec<_> = submitted.collect();
        for one in submitted {
            let record = one.await.expect("it ends").expect("it is taken").record;
            if record.status == store::TaskStatus::Waiting {
                waiting.push(record.id);
            }
        }
    }
    waiting
}

async fn timed(state: &AppState, what: &str, path: &str, body: Option<String>) {
    let routes = router(state.clone(), String::new);
    let mut times = Vec::new();
    for _ in 0..=ROUNDS {
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.header(header::HOST, "127.0.0.1");
        let request = request.body(Body::from(body.clone().unwrap_or_default())).expect("a request");
        let begun = Instant::now();
        let response = routes.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        times.push(begun.elapsed());
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&bytes));
    }
    // The first one reads what was learned, and observes what came since.
    report(what, times.split_off(1), BOUND_MS);
}

/// The library alone.
fn beside(answers: impl Fn(u64) -> bool) {
    let one = |round| {
        let begun = Instant::now();
        assert!(black_box(answers(round)), "it is forecast");
        begun.elapsed()
    };
    report("    the library alone", (0..ROUNDS as u64).map(one).collect(), BOUND_MS);
}
