//! The clients of `deploy/clients`, and the one of `quota-service/examples`, against a service that requires tokens.

use super::file;
use super::served::{CLUSTER, GPU_MODEL, Prepared, QUOTA, prepare};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use tests::{Listening, free_address};

/// A client that prints an answer a line; ended with this value.
struct Polling(Child);

impl Drop for Polling {
    fn drop(&mut self) {
        // Asked to end rather than killed, so that it ends its own children. It may have ended already, which is as good.
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn has_python() -> bool {
    let ran = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = ran.is_ok_and(|ended| ended.success());
    if !is_there {
        println!("not run, since python3 is not installed: the client in Python");
    }
    is_there
}

fn shell(address: &str, token: &str, more: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .arg(file("clients/poll.sh"))
        .args(["--api", &format!("http://{address}"), "--token-file", token])
        .args(more);
    command
}

fn python(address: &str, token: &str, more: &[&str]) -> Command {
    let mut command = Command::new("python3");
    // No folder of compiled files is to be left beside it.
    command.arg("-B").arg(file("clients/headroom_client.py"));
    command.args(["--api", &format!("http://{address}"), "--token-file", token]);
    command.args(["--cluster", CLUSTER, "--gpu-model", GPU_MODEL]).args(more);
    command
}

/// The example of the service in Rust.
fn rust(address: &str, token: &str, more: &[&str]) -> Command {
    let here = std::env::current_exe().unwrap();
    let program = here.ancestors().nth(2).unwrap().join("examples/quota_client");
    assert!(program.exists(), "{} is not built: run `make test`", program.display());
    let mut command = Command::new(program);
    command.args(["--api", &format!("http://{address}"), "--token-file", token]);
    command.args(["--cluster", CLUSTER, "--hours", "4", "--gpu-model"]).args(more);
    command
}

#[test]
fn the_client_in_one_file_sends_no_id_that_makes_another_address() {
    if !has_python() {
        return;
    }
    let program = "import headroom_client as client\nfor one in ('', '.', '..'):\n    try:\n        client.quoted(one)\n    \
                   except ValueError:\n        continue\n    raise SystemExit(f'{one!r} is sent')\n\
                   assert client.quoted('../x') == '..%2Fx'";
    let mut command = Command::new("python3");
    command.args(["-B", "-c", program]).current_dir(file("clients"));
    let output = ran(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Of a client of a service that is busy, and names no pause: its first line of stderr.
fn first_pause(client: impl Fn(&str) -> Command) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = client(&listener.local_addr().unwrap().to_string());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut polling = Polling(child);
    let (mut connection, _) = listener.accept().unwrap();
    let mut request = BufReader::new(connection.try_clone().unwrap()).lines();
    while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    let busy = "HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    connection.write_all(busy.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(polling.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_busy_service_that_names_no_pause_is_asked_again_after_a_second() {
    let shell = first_pause(|address| shell(address, "/dev/null", &[CLUSTER, GPU_MODEL, "4"]));
    assert_eq!(shell, "poll.sh: the service answers 503; again in 1 s\n");
    if has_python() {
        let python = first_pause(|address| python(address, "/dev/null", &["poll", "--hours", "4"]));
        assert_eq!(python, "the service answers 503: ; again in 1 s\n");
    }
}

fn ran(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// The JSON of its only line.
fn printed_json(command: Command) -> Value {
    let output = ran(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn serve(prepared: &Prepared, address: &str, token: &str) -> Listening {
    let service = Listening::start(&["--listen", address, "--database", &prepared.database]);
    let token = std::fs::read_to_string(token).unwrap();
    for _ in 0..100 {
        if service.get_as(token.trim(), QUOTA).0 == 200 {
            return service;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("there is no quota")
}

const STATE: [&str; 7] = ["state", "--capacity", "128", "--idle", "40", "--spot", "4=8"];

#[test]
fn the_client_in_python_polls_reports_and_prints_refusals() {
    if !has_python() {
        return;
    }
    let prepared = prepare();
    let (read, admin) = (prepared.token("read"), prepared.token("admin"));
    let service = serve(&prepared, &free_address(), &read);
    let at = &service.address;
    assert_eq!(printed_json(python(at, &admin, &STATE)), json!({ "taken": true }));
    let outcome = ["outcome", "--event-id", "e-1", "--hours", "4", "--ended-at", "2026-01-05T10:00:00Z"];
    assert_eq!(printed_json(python(at, &admin, &outcome)), json!({ "e-1": "recorded" }));
    assert_eq!(printed_json(python(at, &admin, &outcome)), json!({ "e-1": "repeated" }));
    let quota = printed_json(python(at, &read, &["poll", "--hours", "4", "--count", "1"]));
    assert_eq!((&quota["used_gpus"], &quota["stage"]), (&8.0.into(), &"fresh".into()), "{quota}");
    let forbidden = ran(python(at, &read, &STATE));
    let printed = String::from_utf8_lossy(&forbidden.stderr).into_owned();
    assert_eq!((forbidden.status.code(), printed.starts_with("403 forbidden")), (Some(1), true), "{printed}");
    let wrong = [&outcome[..], &["--kind", "evicted"]].concat();
    let printed = String::from_utf8_lossy(&ran(python(at, &admin, &wrong)).stderr).into_owned();
    assert!(printed.contains("/outcomes/0/kind: \"evicted\" is not known; write one of"), "{printed}");
    let printed =
        String::from_utf8_lossy(&ran(python(at, &read, &["poll", "--hours", "5", "--count", "1"])).stderr).into_owned();
    assert!(printed.contains("choose one of `known`") && printed.contains("; known: 1, "), "{printed}");
}

#[test]
fn the_client_in_python_has_a_task_placed_and_follows_it() {
    if !has_python() {
        return;
    }
    let prepared = prepare();
    let admin = prepared.token("admin");
    let service = serve(&prepared, &free_address(), &admin);
    let token = std::fs::read_to_string(&admin).unwrap();
    let put = ureq::put(format!("http://{}/v1/nodes/n1", service.address));
    let node = json!({ "cluster": CLUSTER, "gpu_model": GPU_MODEL, "gpus": 8 });
    let put = put.header("authorization", format!("Bearer {}", token.trim())).send_json(&node);
    assert_eq!(put.unwrap().status(), 200);
    let task = ["task", "--id", "sweep-1", "--organization", "org-000", "--pods", "2", "--finish"];
    let output = ran(python(&service.address, &admin, &task));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let statuses: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["status"].clone()).collect();
    assert_eq!(statuses, ["running", "finished"]);
}

#[test]
fn the_client_of_the_shell_ends_where_trying_again_would_not_help() {
    let prepared = prepare();
    let read = prepared.token("read");
    let service = serve(&prepared, &free_address(), &read);
    let at = &service.address;
    let quota = printed_json(shell(at, &read, &["--count", "1", CLUSTER, GPU_MODEL, "4"]));
    assert_eq!((&quota["hours"], &quota["stage"]), (&4.into(), &"fresh".into()), "{quota}");
    for (token, gpu_model, expected) in [(&read, "H800", "404"), (&"/dev/null".to_owned(), GPU_MODEL, "401")] {
        let refused = ran(shell(at, token, &[CLUSTER, gpu_model, "4"]));
        let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{printed}");
        assert!(printed.contains(&format!("the service answers {expected}")), "{printed}");
    }
    assert_eq!(ran(shell(at, &read, &["demo"])).status.code(), Some(2), "a call with too few names");
}

/// Two answers of a client that polls: one before the service is killed, another one after it was started again.
fn survives(prepared: &Prepared, tokens: [&str; 2], client: impl Fn(&str) -> Command) {
    let [read, admin] = tokens;
    let address = free_address();
    let mut service = serve(prepared, &address, read);
    let mut client = client(&address);
    let child = client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut polling = Polling(child);
    let mut lines = BufReader::new(polling.0.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().expect("a line").unwrap()).unwrap() };
    let before = next();
    assert_eq!(before["used_gpus"], 0.0, "{before}");
    service.kill();
    drop(service);
    let service = serve(prepared, &address, read);
    let token = std::fs::read_to_string(admin).unwrap();
    let state = json!({
        "capacity_gpus": 128, "idle_gpus": 40, "spot_gpus_by_guarantee_hours": { "4": 8 },
        "as_of": chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    });
    let put = ureq::put(format!("http://{}/v1/pools/{CLUSTER}:{GPU_MODEL}/state", service.address));
    let put = put.header("authorization", format!("Bearer {}", token.trim())).send_json(&state);
    assert_eq!(put.unwrap().status(), 200);
    // The quota may be renewed at the start, too, which is a line of its own.
    while next()["used_gpus"] != 8.0 {}
}

#[test]
fn the_client_in_rust_ends_where_trying_again_would_not_help() {
    let prepared = prepare();
    let read = prepared.token("read");
    let service = serve(&prepared, &free_address(), &read);
    let quota = printed_json(rust(&service.address, &read, &[GPU_MODEL, "--count", "1"]));
    assert_eq!((&quota["hours"], &quota["stage"]), (&4.into(), &"fresh".into()), "{quota}");
    let refused = ran(rust(&service.address, &read, &["H800"]));
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), printed.contains(" answers 404: ")), (Some(1), true), "{printed}");
}

/// A test of its own for each client, since each waits for a while.
fn goes_on(client: impl Fn(&str, &str) -> Command) {
    let prepared = prepare();
    let (read, admin) = (prepared.token("read"), prepared.token("admin"));
    survives(&prepared, [&read, &admin], |address| client(address, &read));
}

#[test]
fn the_client_of_the_shell_goes_on_where_it_was_when_the_service_comes_back() {
    goes_on(|address, token| shell(address, token, &[CLUSTER, GPU_MODEL, "4"]));
}

#[test]
fn the_client_in_python_goes_on_where_it_was_when_the_service_comes_back() {
    if has_python() {
        goes_on(|address, token| python(address, token, &["poll", "--hours", "4"]));
    }
}

#[test]
fn the_client_in_rust_goes_on_where_it_was_when_the_service_comes_back() {
    goes_on(|address, token| rust(address, token, &[GPU_MODEL]));
}
