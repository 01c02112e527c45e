//! `GET /quota` against a bare axum handler that returns the same bytes: same machine, same run, taking turns
//! (DESIGN §6: at least 80 % of its requests a second, p99 within 1.5 times).

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use quota_service::args::Config;
use quota_service::clock::Clock;
use quota_service::http::router;
use quota_service::plan::Held;
use quota_service::published::{Answer, PublishedPool};
use quota_service::refresh::Service;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vocab::{MilliGpus, PoolId};
use wire::{QuotaAnswer, ReasonBody};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 8;
const ROUND: Duration = Duration::from_secs(2);
const PATH: &str = "/quota?cluster=earth&gpu_model=V100&hours=4";

fn answer(clock: &Clock) -> Answer {
    let now = clock.now();
    let fresh = QuotaAnswer {
        cluster: "earth".into(),
        gpu_model: "V100".into(),
        hours: 4,
        guarantee_rate: 0.9,
        quota_gpus: 65.719,
        used_gpus: 0.0,
        available_gpus: 65.719,
        inventory_gpus: 65.719,
        capacity_gpus: 856.0,
        demand_bound_gpus: 790.281,
        eta: 1.0,
        idle_gpus: 146.0,
        aggregation: "pooled".into(),
        run_id: Some("run-1".into()),
        computed_at: now.to_string(),
        valid_until: now.plus_s(600).to_string(),
        stage: "fresh".into(),
        stale: false,
        as_of: None,
        reasons: vec![ReasonBody { code: "inventory".into(), detail: "65.719 GPUs stay free of HP demand".into() }],
    };
    Answer::new(fresh, now, Held { spot: MilliGpus::ZERO, available: MilliGpus::ZERO }, None)
}

async fn listen(router: Router) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Our service with one published pool, and the bytes that it answers.
async fn ours() -> (Router, Answer) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite://{}", folder.path().join("bench.db").display());
    let store: Arc<dyn Store> = store::connect(&url).await.expect("a fresh database opens");
    let service = Service::new(store, Clock::real(), Config::default());
    let answer = answer(&service.clock);
    let pool = PublishedPool {
        answers: vec![answer.clone()],
        problem: None,
        ..PublishedPool::without_quota(PoolId::parse("earth:V100").expect("a pool"), String::new())
    };
    service.publish(vec![pool]);
    (router(service, String::new), answer)
}

/// A handler that does nothing but answer these bytes with these headers.
fn bare(answer: &Answer) -> Router {
    let ready = answer.at(answer.computed_at).clone();
    let headers = [
        (header::ETAG, ready.etag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ];
    Router::new().route("/quota", get(move || async move { (headers, ready.body) }))
}

/// Latencies of one round of requests over kept connections, each waiting for its answer.
async fn round(address: std::net::SocketAddr, headers: &str) -> Vec<Duration> {
    let request = format!("GET {PATH} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\n");
    let until = Instant::now() + ROUND;
    let client = |request: String| async move {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        let mut buffer = vec![0; 4_096];
        // Every answer has the same length: the first one tells it.
        stream.write_all(request.as_bytes()).await.expect("a request");
        let length = stream.read(&mut buffer).await.expect("an answer");
        let mut latencies = Vec::new();
        while Instant::now() < until {
            let started = Instant::now();
            stream.write_all(request.as_bytes()).await.expect("a request");
            stream.read_exact(&mut buffer[..length]).await.expect("an answer");
            latencies.push(started.elapsed());
        }
        latencies
    };
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(client(request.clone()))).collect();
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.expect("a client ends"));
    }
    all
}

struct Side {
    rates: Vec<f64>,
    latencies: Vec<Duration>,
}

impl Side {
    const fn new() -> Self {
        Self { rates: Vec::new(), latencies: Vec::new() }
    }

    fn add(&mut self, latencies: Vec<Duration>) {
        self.rates.push(latencies.len() as f64 / ROUND.as_secs_f64());
        self.latencies.extend(latencies);
    }

    fn rate(&mut self) -> f64 {
        self.rates.sort_by(f64::total_cmp);
        self.rates[self.rates.len() / 2]
    }

    fn quantile_us(&mut self, p: f64) -> f64 {
        self.latencies.sort_unstable();
        let place = ((self.latencies.len() - 1) as f64 * p) as usize;
        self.latencies[place].as_secs_f64() * 1e6
    }
}

async fn compare(what: &str, one: (std::net::SocketAddr, &str), other: (std::net::SocketAddr, &str)) {
    let (mut ours, mut bare) = (Side::new(), Side::new());
    for _ in 0..ROUNDS {
        ours.add(round(one.0, one.1).await);
        bare.add(round(other.0, other.1).await);
    }
    let (rate, bare_rate) = (ours.rate(), bare.rate());
    println!("{what}: {CONNECTIONS} connections, {ROUNDS} rounds of {} s each, in turns", ROUND.as_secs());
    println!("  requests/s  ours {rate:9.0}  bare {bare_rate:9.0}  ratio {:.3}", rate / bare_rate);
    for (name, p) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let (a, b) = (ours.quantile_us(p), bare.quantile_us(p));
        println!("  {name:<6} us   ours {a:9.0}  bare {b:9.0}  ratio {:.3}", a / b);
    }
}

#[tokio::main]
async fn main() {
    let (service, answer) = ours().await;
    let bare = listen(bare(&answer)).await;
    let service = listen(service).await;
    let _ = (round(service, "").await, round(bare, "").await);
    compare("GET /quota, 200", (service, ""), (bare, "")).await;
    let etag = answer.at(answer.computed_at).etag.to_str().expect("a tag is text").to_owned();
    let seen = format!("if-none-match: {etag}\r\n");
    compare("GET /quota with If-None-Match, 304, against the bare 200", (service, &seen), (bare, "")).await;
}
