//! Durable decisions over HTTP on Postgres, beside the bare commits of single rows that the same server takes.
//!
//!     HEADROOM_TEST_FSYNC=on tests/with-postgres.sh cargo bench --workspace --bench place
//!
//! Many clients submit a task, wait for its places, and tell its end; every answer is on disk before it comes.

use quota_service::args::Config;
use quota_service::clock::Clock;
use quota_service::http::router;
use quota_service::{AppState, Options};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use store::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vocab::{ClusterName, Node, NodeId, PoolId};

const ROUND: Duration = Duration::from_secs(5);
const NODES: u32 = 535; // 4,280 GPUs
const CLIENTS: [usize; 3] = [16, 64, 256];
const COMMITTERS: [usize; 2] = [1, 16];
const DATABASE: &str = "headroom_bench_place";

#[tokio::main]
async fn main() {
    let server = std::env::var("HEADROOM_TEST_POSTGRES").expect("run under tests/with-postgres.sh");
    let mut maintenance = PgConnection::connect(&server).await.expect("the server answers");
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        let show = AssertSqlSafe(format!("SHOW {name}"));
        let value: String = sqlx::query_scalar(show).fetch_one(&mut maintenance).await.expect("a setting");
        println!("{name} = {value}");
    }
    run(&mut maintenance, &format!("CREATE DATABASE {DATABASE}")).await;
    let url = format!("{}/{DATABASE}", server.rsplit_once('/').expect("postgres://USER@HOST/NAME").0);
    let address = serve(&url).await;
    for round in 0..2 {
        for committers in COMMITTERS {
            commits(&url, committers).await;
        }
        for clients in CLIENTS {
            decisions(address, clients, round).await;
        }
    }
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.expect("the server does it");
}

/// A service with one pool of idle nodes.
async fn serve(url: &str) -> SocketAddr {
    let store = store::connect(url).await.expect("a fresh database opens");
    let name = ClusterName::parse("bench").expect("a name");
    let cluster = Cluster { name, time_zone: "UTC".to_owned(), calendar: "weekdays".to_owned() };
    store.put_cluster(&cluster).await.expect("a cluster is put");
    let pool = PoolId::parse("bench:A100").expect("a pool");
    for number in 0..NODES {
        let id = NodeId::parse(&format!("node-{number}")).expect("a name");
        let node =
            Node { id, pool: pool.clone(), gpus: 8, cpu_milli: None, memory_mib: None, drains: false, topology: None };
        store.put_node(&node).await.expect("a node is put");
    }
    let service = AppState::new(Options::new(store, Clock::real(), Config::default()));
    service.renewals.update_leases().await.expect("the database answers");
    service.access.read_tokens().await.expect("the database answers");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router(service, String::new)).await });
    address
}

/// One row a commit, over and over.
async fn commits(url: &str, committers: usize) {
    let mut connection = PgConnection::connect(url).await.expect("the server answers");
    run(&mut connection, "CREATE TABLE IF NOT EXISTS bare (id bigint GENERATED ALWAYS AS IDENTITY, text text)").await;
    let until = Instant::now() + ROUND;
    let committer = |url: String| async move {
        let mut connection = PgConnection::connect(&url).await.expect("the server answers");
        let mut taken = Vec::new();
        while Instant::now() < until {
            let started = Instant::now();
            let insert = sqlx::query("INSERT INTO bare (text) VALUES ('a row')");
            insert.execute(&mut connection).await.expect("a row is written");
            taken.push(started.elapsed());
        }
        taken
    };
    let all = join((0..committers).map(|_| tokio::spawn(committer(url.to_owned()))).collect()).await;
    report(&format!("bare commits of a row, {committers} connections"), all);
}

async fn decisions(address: SocketAddr, clients: usize, round: usize) {
    let until = Instant::now() + ROUND;
    let client = |number: usize| async move {
        let mut connection = TcpStream::connect(address).await.expect("the service listens");
        connection.set_nodelay(true).expect("a socket option");
        let (mut submitted, mut ended, mut task) = (Vec::new(), Vec::new(), 0_u64);
        while Instant::now() < until {
            let id = format!("{round}-{clients}-{number}-{task}");
            task += 1;
            let class = if task.is_multiple_of(2) { "hp" } else { "spot" };
            let body = format!(
                r#"{{"cluster":"bench","gpu_model":"A100","id":"{id}","organization":"o{number}","class":"{class}","gpus_per_pod":1}}"#
            );
            let started = Instant::now();
            let answer = ask(&mut connection, address, "/v1/tasks", &body).await;
            submitted.push(started.elapsed());
            assert!(answer.contains(r#""status":"running""#), "{answer}");
            let started = Instant::now();
            let path = format!("/v1/tasks/{id}/finish?cluster=bench&gpu_model=A100");
            let answer = ask(&mut connection, address, &path, "").await;
            ended.push(started.elapsed());
            assert!(answer.contains(r#""status":"finished""#), "{answer}");
        }
        submitted.extend(ended);
        submitted
    };
    let all = join((0..clients).map(|number| tokio::spawn(client(number))).collect()).await;
    report(&format!("durable decisions over HTTP (submit, finish), {clients} clients"), all);
}

async fn join(tasks: Vec<tokio::task::JoinHandle<Vec<Duration>>>) -> Vec<Duration> {
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a client ends"));
    }
    all
}

/// The body of the answer to a POST on a kept connection.
async fn ask(connection: &mut TcpStream, address: SocketAddr, path: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    connection.write_all(request.as_bytes()).await.expect("a request");
    let mut read = Vec::with_capacity(2_048);
    loop {
        let count = connection.read_buf(&mut read).await.expect("an answer");
        assert!(count > 0, "the service closed the connection");
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
            if body.len() >= length {
                return body.to_owned();
            }
        }
    }
}

fn report(what: &str, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    let rate = taken.len() as f64 / ROUND.as_secs_f64();
    let ms = |p: f64| taken[((taken.len() - 1) as f64 * p) as usize].as_secs_f64() * 1e3;
    println!("{what}: {rate:.0}/s, p50 {:.2} ms, p99 {:.2} ms", ms(0.5), ms(0.99));
}
