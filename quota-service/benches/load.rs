//! The service under load from a second process: quotas answered a second, latencies at half of that, ten thousand open streams,
//! and ten times as much of everything else as it can do.
//!
//! Open loop: a request is due at its time whether the one before was answered or not, and its latency counts from then.
//! `HEADROOM_LOAD_JSON=FILE` writes the figures.

mod served;

use quota_service::AppState;
use quota_service::args::Config;
use serde_json::{Value, json};
use served::{PATH, answer, bare, ours, pool};
use serving::listen::{ConnectionLimits, serve};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const CONNECTIONS: usize = 64;
/// Of those who ask for too much else.
const FLOOD: usize = 1_000;
const STREAMS: usize = 10_000;
const SECONDS: u64 = 6;
/// Read from the database, and refused where too much is asked.
const OTHER: &str = "/v1/quota/history?cluster=earth&gpu_model=V100&hours=4";
const CLIENT: &str = "HEADROOM_LOAD_CLIENT";

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// One kept connection.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, buffer: vec![0; 16 * 1_024] }
    }

    /// The status of the answer to a request, read whole.
    async fn ask(&mut self, request: &[u8]) -> u16 {
        self.stream.write_all(request).await.expect("a request");
        let mut have = 0;
        loop {
            have += self.stream.read(&mut self.buffer[have..]).await.expect("an answer");
            let text = &self.buffer[..have];
            let Some(head) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let lines = std::str::from_utf8(&text[..head]).expect("a head is text");
            let length = lines.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if have >= head + 4 + length.unwrap_or(0) {
                return lines[9..12].parse().expect("a status");
            }
        }
    }
}

fn request(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n").into_bytes()
}

/// Figures of requests of one kind.
#[derive(Default)]
struct Answers {
    latencies_us: Vec<u64>,
    refused: u64,
}

/// Sends so many requests a second over so many connections, or as many as are answered where `rate` is 0.
async fn send(address: SocketAddr, request: Vec<u8>, connections: usize, rate: f64, seconds: f64) -> Answers {
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let client = |number: usize| {
        let request = request.clone();
        async move {
            let (mut connection, mut answers) = (Connection::open(address).await, Answers::default());
            for turn in 0_u64.. {
                let due = if rate > 0.0 {
                    let nth = turn as f64 * connections as f64 + number as f64;
                    start + Duration::from_secs_f64(nth / rate)
                } else {
                    Instant::now()
                };
                if due.max(Instant::now()) >= end {
                    return answers;
                }
                tokio::time::sleep_until(due.into()).await;
                match connection.ask(&request).await {
                    200 | 304 => answers.latencies_us.push(due.elapsed().as_micros() as u64),
                    _ => answers.refused += 1,
                }
            }
            answers
        }
    };
    let clients: Vec<_> = (0..connections).map(|number| tokio::spawn(client(number))).collect();
    let mut all = Answers::default();
    for client in clients {
        let one = client.await.expect("a client ends");
        all.latencies_us.extend(one.latencies_us);
        all.refused += one.refused;
    }
    all.latencies_us.sort_unstable();
    all
}

fn figures(answers: &Answers, seconds: f64) -> Value {
    let at = |p: f64| answers.latencies_us.get(((answers.latencies_us.len().max(1) - 1) as f64 * p) as usize);
    json!({
        "per_s": answers.latencies_us.len() as f64 / seconds, "refused_per_s": answers.refused as f64 / seconds,
        "p50_us": at(0.5), "p99_us": at(0.99), "p999_us": at(0.999),
    })
}

/// Opens streams, says so, and when the next quota has reached all of them.
async fn streams(address: SocketAddr, count: usize) -> Value {
    let mut open = Vec::with_capacity(count);
    let path = PATH.replace("/quota", "/v1/quota/stream");
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        stream.write_all(&request(&path, "")).await.expect("a request");
        open.push(stream);
    }
    let mut buffer = vec![0; 8 * 1_024];
    for stream in &mut open {
        read_until(stream, &mut buffer, b"\"quota_gpus\":65.719").await;
    }
    println!("{}", json!({ "open": count }));
    let waiting: Vec<_> = open
        .into_iter()
        .map(|mut stream| {
            tokio::spawn(async move {
                read_until(&mut stream, &mut vec![0; 8 * 1_024], b"\"quota_gpus\":64.0").await;
                (now_us(), stream)
            })
        })
        .collect();
    let mut received_us = Vec::with_capacity(count);
    for one in waiting {
        received_us.push(one.await.expect("a client ends").0);
    }
    received_us.sort_unstable();
    json!({ "median_us": received_us[count / 2], "last_us": received_us[count - 1] })
}

async fn read_until(stream: &mut TcpStream, buffer: &mut [u8], wanted: &[u8]) {
    let mut have = 0;
    while !buffer[..have].windows(wanted.len()).any(|part| part == wanted) {
        let read = stream.read(&mut buffer[have..]).await.expect("an event");
        assert!(read > 0, "the stream ended: {}", String::from_utf8_lossy(&buffer[..have]));
        have += read;
    }
}

/// The work of the second process.
async fn client(order: &Value) -> Value {
    let address: SocketAddr = order["address"].as_str().expect("an address").parse().expect("an address");
    let headers = order["headers"].as_str().unwrap_or_default();
    let seconds = SECONDS as f64;
    let quotas = |rate| send(address, request(PATH, headers), CONNECTIONS, rate, seconds);
    match order["what"].as_str().unwrap_or_default() {
        "most" => figures(&quotas(0.0).await, seconds),
        "open" => figures(&quotas(order["rate"].as_f64().unwrap_or(0.0)).await, seconds),
        "others" => figures(&send(address, request(OTHER, ""), CONNECTIONS / 2, 0.0, seconds).await, seconds),
        "overload" => {
            let others = send(address, request(OTHER, ""), FLOOD, order["others"].as_f64().unwrap_or(0.0), seconds);
            let (quotas, others) = tokio::join!(quotas(order["rate"].as_f64().unwrap_or(0.0)), others);
            json!({ "quotas": figures(&quotas, seconds), "others": figures(&others, seconds) })
        }
        _ => streams(address, STREAMS).await,
    }
}

/// Starts the second process.
fn second(order: &Value) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    Command::new(program).env(CLIENT, order.to_string()).stdout(Stdio::piped()).spawn().expect("it starts")
}

async fn asked(order: Value) -> Value {
    let run = move || {
        let output = second(&order).wait_with_output().expect("it ends");
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    };
    tokio::task::spawn_blocking(run).await.expect("it is waited for")
}

fn memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok()).map_or(f64::NAN, |kib| kib / 1_024.0)
}

/// Opens streams, and tells all of them a new quota.
async fn new_quota(service: &AppState, address: &str) -> Value {
    let before_mib = memory_mib();
    let order = json!({ "what": "streams", "address": address });
    let (opened, wait) = tokio::sync::oneshot::channel();
    let streaming = tokio::task::spawn_blocking(move || {
        let mut child = second(&order);
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next();
        let _ = opened.send(first.is_some());
        let last: Value = serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON");
        let _ = child.wait();
        last
    });
    let _ = wait.await;
    let open_mib = memory_mib();
    let published_us = now_us();
    service.quotas.publish(vec![pool(answer(&service.core.clock, 64.0))]);
    let received = streaming.await.expect("it is waited for");
    let after = |field: &str| (received[field].as_u64().unwrap_or(0).saturating_sub(published_us)) as f64 / 1_000.0;
    let (median_ms, last_ms) = (after("median_us"), after("last_us"));
    println!(
        "{STREAMS} streams: {:.0} MiB more ({before_mib:.0} before); a new quota reached half of them after {median_ms:.0} ms, all after {last_ms:.0} ms",
        open_mib - before_mib
    );
    json!({ "open": STREAMS, "mib": open_mib - before_mib, "median_ms": median_ms, "last_ms": last_ms })
}

async fn server() -> Value {
    let (service, router, first) = ours().await;
    let stop = watch::Sender::new(false);
    let limits =
        ConnectionLimits { connections: 2 * STREAMS, header: Duration::from_mins(1), write: Duration::from_mins(1) };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(serve(listener, None, router, limits, stop.subscribe()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let bare_address = listener.local_addr().expect("an address").to_string();
    let bare = bare(&first);
    tokio::spawn(async move { axum::serve(listener, bare).await });
    let etag = first.at(first.computed_at).etag.to_str().expect("a tag is text").to_owned();
    let seen = format!("if-none-match: {etag}\r\n");
    // 1. As many as are answered, in turns; the best of three each, since other work on the machine only slows.
    let mut most = [0.0_f64; 3];
    for _ in 0..3 {
        for (most, (to, headers)) in
            most.iter_mut().zip([(&address, ""), (&address, seen.as_str()), (&bare_address, "")])
        {
            let counted = asked(json!({ "what": "most", "address": to, "headers": headers })).await;
            *most = most.max(counted["per_s"].as_f64().unwrap_or(0.0));
        }
    }
    let [ours_200, ours_304, of_bare] = most;
    println!(
        "200s {ours_200:.0}/s, 304s {ours_304:.0}/s, bare handler {of_bare:.0}/s: {:.3} and {:.3}",
        ours_200 / of_bare,
        ours_304 / of_bare
    );
    // 2. Half of it.
    let rate = ours_200 / 2.0;
    let half = asked(json!({ "what": "open", "address": &address, "rate": rate })).await;
    let bare_half = asked(json!({ "what": "open", "address": &bare_address, "rate": rate })).await;
    println!("at {rate:.0}/s, open loop: {half}\n  bare: {bare_half}");
    // 3. Ten times as many others as there can be, beside a quarter of the quotas.
    let others = asked(json!({ "what": "others", "address": &address })).await;
    let can = others["per_s"].as_f64().unwrap_or(0.0);
    let calm = asked(json!({ "what": "open", "address": &address, "rate": rate / 4.0 })).await;
    let overload =
        asked(json!({ "what": "overload", "address": &address, "rate": rate / 4.0, "others": 10.0 * can })).await;
    println!("others {others}\n  quotas alone {calm}\n  with {:.0} others a second: {overload}", 10.0 * can);
    let received = new_quota(&service, &address).await;
    json!({
        "campaign": "load", "ours_200_per_s": ours_200, "ours_304_per_s": ours_304, "bare_per_s": of_bare,
        "half": half, "bare_half": bare_half, "others": others, "calm": calm, "overload": overload,
        "streams": received,
        "max_reads": Config::default().max_reads,
    })
}

#[tokio::main]
async fn main() {
    if let Ok(order) = std::env::var(CLIENT) {
        let order = serde_json::from_str(&order).expect("an order is JSON");
        println!("{}", client(&order).await);
        let _ = std::io::stdout().flush();
        return;
    }
    let figures = server().await;
    if let Ok(file) = std::env::var("HEADROOM_LOAD_JSON") {
        std::fs::write(file, format!("{figures}\n")).expect("the figures are written");
    }
}
