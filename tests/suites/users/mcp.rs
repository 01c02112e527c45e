//! `headroom mcp` against the official SDK for Python, and against requests that no SDK sends.

use super::{assert_ok, python, ran};
use crate::deploy::served::{CLUSTER, GPU_MODEL, Prepared, QUOTA, prepare};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use tests::{Listening, program, program_path, workspace_root};

/// The agent of tests/python, and what it printed: the version of the protocol.
fn agent(python: &str, arguments: &[&str]) -> String {
    let script = workspace_root().join("tests/python/agent.py");
    let output = ran(python, &[&[script.to_str().unwrap()], arguments].concat());
    assert_ok(&output);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A service with a token, all of whose GPUs an HP task holds.
fn filled(prepared: &Prepared, token: &str) -> Listening {
    let service = Listening::start(&["--database", &prepared.database]);
    let secret = std::fs::read_to_string(token).unwrap();
    let of_token = format!("Bearer {}", secret.trim());
    let quota = |_| {
        service.get_as(secret.trim(), QUOTA).0 == 200 || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }
    };
    assert!((0..100).any(quota), "the service answers no quota");
    let node = json!({ "cluster": CLUSTER, "gpu_model": GPU_MODEL, "gpus": 8 });
    let task = json!({
        "cluster": CLUSTER, "gpu_model": GPU_MODEL, "id": "fill", "organization": "org-001", "class": "hp", "gpus_per_pod": 8,
        "pods": 1,
    });
    let at = |path: &str| format!("http://{}{path}", service.address);
    let put = ureq::put(at("/v1/nodes/n0")).header("authorization", &of_token).send_json(&node).unwrap();
    let submitted = ureq::post(at("/v1/tasks")).header("authorization", &of_token).send_json(&task).unwrap();
    assert_eq!((put.status().as_u16(), submitted.status().as_u16()), (200, 200));
    service
}

#[test]
fn an_agent_reads_over_stdin_and_stdout_and_writes_where_that_is_allowed() {
    let Some(python) = python() else { return };
    let prepared = prepare();
    let token = prepared.token("admin");
    let service = filled(&prepared, &token);
    let (api, headroom) = (format!("http://{}", service.address), program_path("headroom"));
    let of = [headroom.to_str().unwrap(), &api, &token, CLUSTER, GPU_MODEL];
    assert_eq!(agent(&python, &[&of[..], &["legacy"]].concat()), "2025-11-25");
    let newest = agent(&python, &[&of[..], &["auto", "--allow-writes"]].concat());
    assert!(newest.as_str() >= "2025-11-25", "{newest}");
}

#[test]
fn an_agent_reads_over_http_on_this_machine_alone() {
    let Some(python) = python() else { return };
    let prepared = prepare();
    let token = prepared.token("admin");
    let service = filled(&prepared, &token);
    let api = format!("http://{}", service.address);
    let arguments = ["mcp", "--http", "127.0.0.1:0", "--json", "--api", &api, "--api-token-file", &token];
    let server = Listening::of("headroom", &arguments, &[]);
    let url = format!("http://{}/mcp", server.address);
    for mode in ["legacy", "auto"] {
        let version = agent(&python, &[&url, &api, &token, CLUSTER, GPU_MODEL, mode]);
        assert!(version.as_str() >= "2025-11-25", "{version}");
    }
    let page =
        ureq::post(&url).config().http_status_as_error(false).build().header("origin", "https://elsewhere.example");
    let page = page.header("accept", "application/json, text/event-stream");
    let refused = page.send_json(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).unwrap();
    assert_eq!(refused.status().as_u16(), 403, "a page of another origin");
    let open = program("headroom", &["mcp", "--http", "0.0.0.0:0"]);
    assert_eq!((open.code, open.stderr.contains("reachable from other machines")), (2, true), "{}", open.stderr);
}

/// Parameters of a client's first request.
fn initialize() -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

#[test]
fn over_http_the_protocol_is_at_its_path_alone() {
    let server = Listening::of("headroom", &["mcp", "--http", "127.0.0.1:0", "--json"], &[]);
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize() });
    let post = |path: &str| {
        let request = ureq::post(format!("http://{}{path}", server.address));
        let request = request.config().http_status_as_error(false).build();
        request.header("accept", "application/json, text/event-stream").send_json(&begin).unwrap().status().as_u16()
    };
    assert_eq!(["/mcp", "/", "/x", "/mcp/x"].map(post), [200, 404, 404, 404]);
}

#[test]
fn parameters_of_another_form_are_invalid_and_a_method_that_is_not_there_is_named() {
    let mut command = Command::new(program_path("headroom"));
    let mut server = command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let mut ask = |method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).unwrap();
        serde_json::from_str(&lines.next().expect("an answer").unwrap()).unwrap()
    };
    assert_eq!(ask("initialize", initialize())["result"]["serverInfo"]["name"], "headroom");
    for arguments in [json!([4]), json!("hours=4")] {
        let error = ask("tools/call", json!({ "name": "pools", "arguments": arguments }))["error"].take();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains("an object in `arguments`"), "{error}");
    }
    assert_eq!(ask("tools/none", json!({}))["error"]["code"], -32601);
    drop(input);
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_service_that_is_away_is_no_question_of_which_pool() {
    let mut command = Command::new(program_path("headroom"));
    command.args(["mcp", "--api", "http://127.0.0.1:1"]).env("HEADROOM_PATIENCE_S", "0");
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let mut ask = |method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).unwrap();
        serde_json::from_str(&lines.next().expect("an answer").unwrap()).unwrap()
    };
    let _ = ask("initialize", initialize());
    for tool in ["quota", "reservations"] {
        let answer = ask("tools/call", json!({ "name": tool, "arguments": {} }));
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!((&error["code"], &error["retry"]), (&json!("unavailable"), &json!(true)), "{tool}: {answer}");
    }
    drop(input);
    assert!(server.wait().unwrap().success());
}

/// Sends lines as they are, and returns as many answers.
fn answers_to(lines: &[&[u8]]) -> Vec<Value> {
    let mut command = Command::new(program_path("headroom"));
    let mut server = command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    for line in lines {
        input.write_all(&[line, &b"\n"[..]].concat()).unwrap();
    }
    drop(input);
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    output.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

#[test]
fn a_text_that_is_no_json_is_a_parse_error_and_an_empty_batch_an_invalid_request() {
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize() }).to_string();
    let long = vec![b'x'; 70_000];
    let lines: [&[u8]; 7] = [b"{\"jsonrpc\": ", b"\xff", &long, b"[]", b" ", b"4", begin.as_bytes()];
    let answers = answers_to(&lines);
    let code = |answer: &Value| (answer["error"]["code"].as_i64(), answer.get("id").cloned());
    let [unread, invalid] = [-32_700, -32_600].map(|code| (Some(code), Some(Value::Null)));
    let (faults, good) = answers.split_at(answers.len() - 1);
    let expected = vec![unread.clone(), unread.clone(), unread, invalid.clone(), invalid];
    assert_eq!(faults.iter().map(code).collect::<Vec<_>>(), expected, "{answers:?}");
    assert_eq!(good[0]["result"]["serverInfo"]["name"], "headroom");
    assert!(faults.iter().all(|fault| fault["error"]["message"].as_str().unwrap().contains("JSON")), "{faults:?}");
    let without_end = answers_to(&[b"[\n{"]);
    assert_eq!(without_end.iter().map(|fault| fault["error"]["code"].as_i64()).collect::<Vec<_>>(), [Some(-32_700); 2]);
}

#[test]
fn over_http_a_text_that_is_no_json_is_a_parse_error_and_an_empty_batch_an_invalid_request() {
    let server = Listening::of("headroom", &["mcp", "--http", "127.0.0.1:0", "--json"], &[]);
    let post = |text: &str| {
        let request = ureq::post(format!("http://{}/mcp", server.address));
        let request = request.config().http_status_as_error(false).build().header("content-type", "application/json");
        let mut answer = request.header("accept", "application/json, text/event-stream").send(text).unwrap();
        let body: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        (answer.status().as_u16(), body["error"]["code"].as_i64(), body.get("id").cloned())
    };
    for (text, code) in [("{\"jsonrpc\": ", -32_700), ("", -32_700), ("[]", -32_600), ("[{}]", -32_600), ("4", -32_600)]
    {
        assert_eq!(post(text), (400, Some(code), Some(Value::Null)), "{text}");
    }
}
