//! Deadlines, hostile bodies, certificates.

use super::*;
use ::serving::tls::{Files, Tls};
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::Path;
use tokio::net::TcpStream;

/// Work that waits until the gate opens.
fn gate() -> (Arc<AtomicBool>, Before) {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = is_open.clone();
    let waits = move || {
        while !gate.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    (is_open, Arc::new(waits))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_work_is_answered_neutrally_and_guarantees_are_not_given_unseen() {
    let (is_open, before) = gate();
    let world = World::new(|config| config.extender_deadline_ms = 30, Some(before));
    world.offer([100, 100], 0);
    // More than are worked on at once: the last ones are answered without a look at the clock.
    for _ in 0..AT_ONCE {
        let hp = replaced(FILTER_NAMES, r#""priorityClassName":"spot""#, r#""priorityClassName":"production""#);
        assert_eq!(world.post("filter", hp).await, all_pass());
    }
    let refused = world.post("filter", FILTER_NAMES).await;
    let why = refused["FailedAndUnresolvableNodes"]["node-1"].as_str().unwrap();
    assert!(why.starts_with("headroom: the quota for 4h was not checked in time"), "{why}");
    let scores = world.post("prioritize", PRIORITIZE).await;
    assert!(scores.as_array().unwrap().iter().all(|one| one["Score"] == 0));
    assert_eq!(scores.as_array().unwrap().len(), 4);
    let sent: Value = serde_json::from_slice(PREEMPT_META).unwrap();
    for body in [PREEMPT_META, PREEMPT_FULL] {
        let all = world.post("preempt", body).await;
        assert_eq!(all["NodeNameToMetaVictims"], sent["NodeNameToMetaVictims"], "the scheduler chooses");
    }
    let spot = replaced(PREEMPT_META, r#""priorityClassName":"production""#, r#""priorityClassName":"spot""#);
    assert_eq!(world.post("preempt", spot).await, json!({ "NodeNameToMetaVictims": {} }));
    is_open.store(true, Ordering::Relaxed);
    while world.state.permits.available_permits() < AT_ONCE {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.state.assumed_pods(), 0, "what nobody waits for any more is not assumed");
}

#[tokio::test]
async fn a_body_that_is_no_question_is_answered_all_the_same() {
    let world = World::plain();
    for body in ["", "{", "[]", "null", r#"{"Pod":7}"#, "\u{0}\u{1}", "{\"Pod\":{}}x"] {
        let filter = world.post("filter", body).await;
        assert!(filter["Error"].as_str().unwrap().starts_with("headroom: the request cannot be read"), "{filter}");
        assert_eq!(world.post("prioritize", body).await, json!([]));
        assert_eq!(world.post("preempt", body).await, json!({ "NodeNameToMetaVictims": {} }));
    }
    let nothing =
        r#"{"Pod":{"metadata":{"creationTimestamp":null},"spec":null,"status":null},"Nodes":null,"NodeNames":null}"#;
    assert_eq!(world.post("filter", nothing).await["Error"], "");
    assert_eq!(world.post("prioritize", nothing).await, json!([]));
}

/// Any changed byte causes no panic, and no node that was not named.
#[test]
fn damaged_bodies_name_no_other_nodes() {
    let world = World::offering([100, 100]);
    let by = Instant::now() + Duration::from_mins(10);
    let bodies = [PREEMPT_META, PREEMPT_FULL, FILTER_NAMES, FILTER_NODES, PRIORITIZE];
    for (number, body) in bodies.into_iter().enumerate() {
        for place in (number..body.len()).step_by(3) {
            for byte in *b"\"}0\\" {
                let mut damaged = body.to_vec();
                damaged[place] = byte;
                // Text that is skipped may be no UTF-8.
                let text = String::from_utf8_lossy(&damaged).into_owned();
                let sent = |name: &String| serde_json::from_str::<Value>(&text).is_ok_and(|sent| names_in(&sent, name));
                if let Ok(answer) = answers::filter_by_quota(&damaged, &world.state, by) {
                    let answer: Value = serde_json::from_slice(&answer).unwrap();
                    let passed = answer["NodeNames"].as_array().cloned().unwrap_or_default();
                    assert!(passed.iter().all(|name| sent(&name.as_str().unwrap().to_owned())));
                    let failed = answer["FailedAndUnresolvableNodes"].as_object().unwrap();
                    assert!(failed.keys().all(sent));
                }
                if let Ok(answer) = answers::preempt(&damaged, &world.state) {
                    let answer: Value = serde_json::from_slice(&answer).unwrap();
                    let nodes = answer["NodeNameToMetaVictims"].as_object().unwrap();
                    assert!(nodes.keys().all(sent), "{answer} of {}", String::from_utf8_lossy(&damaged));
                }
                let _ = answers::prioritize(&damaged, &world.state);
            }
        }
    }
}

/// Whether a text is anywhere in a value.
fn names_in(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(each) => each.iter().any(|one| names_in(one, name)),
        Value::Object(fields) => fields.iter().any(|(key, one)| key == name || names_in(one, name)),
        _ => false,
    }
}

/// Writes the certificates of an authority, of the extender, and of a scheduler.
fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.join("ca.crt"), authority.pem()).unwrap();
    for name in ["localhost", "scheduler"] {
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        std::fs::write(folder.join(format!("{name}.crt")), made.pem()).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

async fn asked(tls: &Tls, at: std::net::SocketAddr) -> Result<String, Box<dyn std::error::Error>> {
    let stream = tls.connect("localhost", TcpStream::connect(at).await?).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::post("/extender/v1/filter").header("host", "localhost");
    let response = sender.send_request(request.body(Full::new(Bytes::from_static(FILTER_NAMES)))?).await?;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok(String::from_utf8(body.to_vec())?)
}

#[tokio::test]
async fn a_scheduler_without_a_certificate_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    let text = |name: &str| file(name).to_str().unwrap().parse().unwrap();
    let config = Config {
        extender_listen: "127.0.0.1:0".parse().unwrap(),
        tls_certificate_file: text("localhost.crt"),
        tls_key_file: text("localhost.key"),
        tls_client_ca_file: text("ca.crt"),
        ..Config::default()
    };
    let listening = Listening::bind(&config).await.unwrap();
    let address = listening.address().unwrap();
    let world = World::offering([12, 4]);
    let ((stop, stopping), (_reloader, reloads)) = (watch::channel(false), watch::channel(0));
    let serving = tokio::spawn(listening.serve(world.state.clone(), reloads, stopping));
    let of = |certificate: &str, key: &str| {
        Tls::read(Files { certificate: file(certificate), key: file(key), client_ca: Some(file("ca.crt")) }).unwrap()
    };
    let answer = asked(&of("scheduler.crt", "scheduler.key"), address).await.unwrap();
    assert!(answer.contains(r#""NodeNames":["node-1""#), "{answer}");
    // One that another authority has signed.
    let other = tempfile::tempdir().unwrap();
    certificates(other.path());
    let stranger = Files {
        certificate: other.path().join("scheduler.crt"),
        key: other.path().join("scheduler.key"),
        client_ca: Some(file("ca.crt")),
    };
    assert!(asked(&Tls::read(stranger).unwrap(), address).await.is_err());
    stop.send_replace(true);
    serving.await.unwrap();
}

#[tokio::test]
async fn without_certificates_it_listens_on_this_machine_alone() {
    let config = Config { extender_listen: "0.0.0.0:0".parse().unwrap(), ..Config::default() };
    let refused = Listening::bind(&config).await.err().unwrap().to_string();
    assert!(refused.contains("set tls_certificate_file and tls_key_file, or listen on 127.0.0.1"), "{refused}");
    let half = Config { tls_certificate_file: "a.crt".parse().unwrap(), ..Config::default() };
    assert!(Listening::bind(&half).await.err().unwrap().to_string().contains("set tls_key_file"));
    let half = Config { tls_client_ca_file: "ca.crt".parse().unwrap(), ..Config::default() };
    assert!(Listening::bind(&half).await.err().unwrap().to_string().contains("set tls_certificate_file"));
    let local = Config { extender_listen: "127.0.0.1:0".parse().unwrap(), ..Config::default() };
    assert!(Listening::bind(&local).await.unwrap().address().unwrap().port() > 0);
}
