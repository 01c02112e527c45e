//! `GET /quota` against a bare axum handler that returns the same bytes: same machine, same run, taking turns
//! (DESIGN §6: at least 80 % of its requests a second, p99 within 1.5 times).

mod served;

use axum::Router;
use served::{PATH, bare, ours};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 8;
const ROUND: Duration = Duration::from_secs(2);

async fn listen(router: Router) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
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
    let (_service, service, answer) = ours().await;
    let bare = listen(bare(&answer)).await;
    let service = listen(service).await;
    let _ = (round(service, "").await, round(bare, "").await);
    compare("GET /quota, 200", (service, ""), (bare, "")).await;
    let etag = answer.at(answer.computed_at).etag.to_str().expect("a tag is text").to_owned();
    let seen = format!("if-none-match: {etag}\r\n");
    compare("GET /quota with If-None-Match, 304, against the bare 200", (service, &seen), (bare, "")).await;
}
