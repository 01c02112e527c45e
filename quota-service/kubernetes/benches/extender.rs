//! How long the scheduler waits for prioritize and preempt, in process and over HTTP on loopback, beside the time that it takes to
//! skip the same body as JSON: an ordinary parser takes longer than that.
//!
//! `cargo bench -p kubernetes --bench extender`

use kubernetes::cluster::watch::Shared;
use kubernetes::config::Config;
use kubernetes::extender::{Clock, ExtenderState, router};
use kubernetes::headroom::Offers;
use kubernetes::view::View;
use kubernetes::view::facts::{Life, NodeFacts, OwnHours, PodFacts, Reading, Uid};
use placement::Policy;
use serde::de::IgnoredAny;
use serving::listen::{ConnectionLimits, serve};
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use vocab::{ClusterName, GpuModel, NodeId, Organization, TaskClass, UnixSeconds};

/// Longest wait of one pod (KUBERNETES.md: p99).
const WANTED_MS: f64 = 20.0;
const NOW: UnixSeconds = UnixSeconds::new(1_793_600_000);
const POD: &str = include_str!("../fixtures/extender/preempt-meta.json");

/// A cluster whose nodes are full of spot pods of one GPU each.
fn world(nodes: u32, pods_per_node: u32) -> ExtenderState {
    let config =
        Config { cluster: "earth".parse().expect("it is a name"), extender_deadline_ms: 60_000, ..Config::default() };
    let cluster = ClusterName::parse("earth").expect("a name");
    let shared = Shared::new(View::new(cluster, Reading::of(&config), Policy::GFS), || NOW);
    {
        let mut view = shared.write();
        for node in 0..nodes {
            let name = NodeId::parse(&name(node)).expect("a name");
            let gpu_model = Some(GpuModel::parse("A100").expect("a name"));
            // Prioritize ranks nodes with room: one GPU of each is free.
            let gpus = pods_per_node.min(63) + 1;
            let facts = NodeFacts {
                node: name.clone(),
                gpu_model,
                gpus,
                is_open: true,
                is_ready: true,
                is_emptied: false,
                topology: None,
            };
            view.set_node(facts, NOW);
            for place in 0..pods_per_node {
                view.set_pod(pod(node, place, &name), NOW);
            }
        }
    }
    let (_, offers) = watch::channel(Arc::new(Offers::default()));
    let clock: Clock = Arc::new(|| NOW);
    ExtenderState::new(&config, shared, offers, clock)
}

fn name(node: u32) -> String {
    format!("gpu-node-{node:05}.cluster.example")
}

/// As different as those of the API: neighbours have nothing in common.
fn uid(node: u32, place: u32) -> Uid {
    let mixed =
        (u128::from(node) << 32 | u128::from(place) | 1 << 100).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    Uid(mixed ^ mixed >> 61)
}

fn pod(node: u32, place: u32, on: &NodeId) -> PodFacts {
    PodFacts {
        uid: uid(node, place),
        namespace: "team-b".into(),
        name: "pod".into(),
        gpus: 1,
        class: TaskClass::Spot,
        guarantee: None,
        hours_fault: None,
        own_hours: OwnHours::Silent,
        organization: Organization::parse("team-b").expect("a name"),
        priority: 0,
        gpu_model: None,
        node: Some(on.clone()),
        life: Life::Runs,
        created: NOW,
        bound: Some(NOW.plus_s(-i64::from((node * 7_919 + place) % 10_000))),
        ended: None,
        saved: None,
        is_going: false,
        disruption: None,
        is_emptied: false,
        is_announced: false,
        ready_for: None,
        is_at_will: false,
        workload: None,
        owner: None,
        share_milli: 0,
        gangs: Vec::new(),
    }
}

/// The start of a body, up to where its pod ends.
fn of_pod(gpus: u32) -> String {
    let end = POD.find(r#","NodeNameToVictims""#).expect("the fixture has victims");
    POD[..end].replace(r#""nvidia.com/gpu":"8""#, &format!(r#""nvidia.com/gpu":"{gpus}""#))
}

fn preempt_body(nodes: u32, victims: u32) -> Vec<u8> {
    let mut body = of_pod(victims.min(64)) + r#","NodeNameToVictims":null,"NodeNameToMetaVictims":{"#;
    for node in 0..nodes {
        let comma = if node == 0 { "" } else { "," };
        let _ = write!(body, r#"{comma}"{}":{{"Pods":["#, name(node));
        for place in 0..victims {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(body, r#"{comma}{{"UID":"{}"}}"#, uid(node, place));
        }
        body.push_str(r#"],"NumPDBViolations":0}"#);
    }
    (body + "}}").into_bytes()
}

fn prioritize_body(nodes: u32) -> Vec<u8> {
    let names: Vec<String> = (0..nodes).map(|node| format!("{:?}", name(node))).collect();
    (of_pod(1) + r#","Nodes":null,"NodeNames":["# + &names.join(",") + "]}").into_bytes()
}

/// Half of them take no longer, 99 in 100 take no longer, in milliseconds.
fn percentiles(mut took: Vec<Duration>) -> (f64, f64) {
    took.sort_unstable();
    let at = |share: usize| took[(took.len() * share).div_ceil(100) - 1].as_secs_f64() * 1_000.0;
    (at(50), at(99))
}

fn timed(times: usize, mut run: impl FnMut()) -> (f64, f64) {
    (0..3).for_each(|_| run());
    let took = (0..times).map(|_| {
        let began = Instant::now();
        run();
        began.elapsed()
    });
    percentiles(took.collect())
}

fn ask(stream: &mut TcpStream, verb: &str, body: &[u8], answer: &mut Vec<u8>) {
    let head = format!("POST /extender/v1/{verb} HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(body).expect("the server reads");
    answer.clear();
    let mut part = vec![0; 1 << 16];
    loop {
        let read = stream.read(&mut part).expect("the server answers");
        assert!(read > 0, "the server answers wholly");
        answer.extend_from_slice(&part[..read]);
        let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&answer[..head]).expect("a head is text");
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.expect("its length is known").parse().expect("a number");
        if answer.len() >= head + 4 + length {
            return;
        }
    }
}

fn over_http(at: SocketAddr, verb: &str, body: &[u8], times: usize) -> (f64, f64) {
    let mut stream = TcpStream::connect(at).expect("it listens");
    let _ = stream.set_nodelay(true);
    let mut answer = Vec::new();
    timed(times, || ask(&mut stream, verb, body, &mut answer))
}

fn bench(runtime: &tokio::runtime::Runtime, state: &ExtenderState, verb: &str, what: &str, body: &[u8]) {
    let times = if body.len() > 4 << 20 { 100 } else { 300 };
    let skip = timed(times, || drop(black_box(serde_json::from_slice::<IgnoredAny>(body))));
    let within = timed(times, || drop(black_box(state.answer(verb, body).expect("it is a question"))));
    let (at, stop, serving) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let at = listener.local_addr().expect("it is bound");
        let (stop, stopping) = watch::channel(false);
        let limits = ConnectionLimits { connections: 4, header: Duration::from_mins(1), write: Duration::from_mins(1) };
        let serving = tokio::spawn(serve(listener, None, router(state.clone()), limits, stopping));
        (at, stop, serving)
    });
    let http = over_http(at, verb, body, times);
    stop.send_replace(true);
    let _ = runtime.block_on(serving);
    let verdict = if http.1 <= WANTED_MS { "within" } else { "ABOVE" };
    println!(
        "{verb:<10} {what:<14} {:>8.2} MB  skip {:>7.2} / {:>7.2}  in process {:>7.2} / {:>7.2} ({:>5.2} x skip)  HTTP {:>7.2} / {:>7.2} ms  {verdict} {WANTED_MS} ms",
        body.len() as f64 / 1e6,
        skip.0,
        skip.1,
        within.0,
        within.1,
        within.0 / skip.0,
        http.0,
        http.1,
    );
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be made");
    println!("p50 / p99 in ms");
    for (nodes, victims, sample) in [(5_000, 64, 500), (5_000, 8, 500)] {
        let state = world(nodes, victims);
        // The scheduler itself offers a tenth of so many nodes.
        for offered in [sample, nodes] {
            let what = format!("{offered} x {victims}");
            bench(&runtime, &state, "preempt", &what, &preempt_body(offered, victims));
        }
        // Where a part of the pods goes, each victim is looked up.
        let part = victims * 3 / 4;
        bench(&runtime, &state, "preempt", &format!("{nodes} x {part}/{victims}"), &preempt_body(nodes, part));
        bench(&runtime, &state, "prioritize", &format!("{nodes}"), &prioritize_body(nodes));
    }
}
