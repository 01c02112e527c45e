//! Why a task waits under fair shares of spot, as its owner reads it: the command line, and an agent.

use super::command::Served;
use crate::deploy::served::{CLUSTER, GPU_MODEL};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use tests::program_path;

/// The answer of a tool of `headroom mcp` over stdin and stdout.
fn tool(served: &Served, name: &str, arguments: &Value) -> Value {
    let api = format!("http://{}", served.service.address);
    let mut command = Command::new(program_path("headroom"));
    command.args(["mcp", "--api", &api, "--api-token-file", &served.admin]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let client = json!({ "name": "test", "version": "1" });
    let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let call = json!({ "name": name, "arguments": arguments });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    let mut stdin = server.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.find(|answer| answer["id"] == 2).expect("an answer to the call");
    drop(stdin);
    server.wait().unwrap();
    answer["result"]["structuredContent"].clone()
}

#[test]
fn a_user_and_an_agent_read_whose_turn_it_is_before_theirs() {
    let served = Served::new();
    let of_token = format!("Bearer {}", std::fs::read_to_string(&served.admin).unwrap().trim());
    let settings = format!("http://{}/v1/pools/{CLUSTER}:{GPU_MODEL}/settings", served.service.address);
    let asked = ureq::get(&settings).header("authorization", &of_token).call();
    let mut body: Value = asked.unwrap().body_mut().read_json().unwrap();
    body["shares"] = json!({ "half_life_hours": 24 });
    assert_eq!(ureq::put(&settings).header("authorization", &of_token).send_json(&body).unwrap().status(), 200);
    let submit = |id: &str, organization: &str, gpus: &str, pods: &str| {
        let of = ["--organization", organization, "--gpus-per-pod", gpus, "--pods", pods];
        served.text(&[&["submit", "--id", id], &of[..]].concat())
    };
    assert!(submit("much", "org-000", "4", "3").starts_with("much is running"));
    assert!(submit("wide", "org-001", "8", "1").starts_with("wide is waiting"));
    let more = submit("more", "org-000", "2", "1");
    assert!(more.starts_with("more is waiting: its organization is above its fair share"), "{more}");
    let why = served.text(&["why", "more"]);
    assert!(why.contains("\nabove_fair_share: its organization is above its fair share: it counts with 12.0"), "{why}");
    assert!(why.contains("waits for 8.000 GPUs with task wide"), "{why}");
    let answer = tool(&served, "why", &json!({ "task": "more" }));
    assert_eq!(answer["reason"]["code"], "above_fair_share", "{answer}");
    assert!(answer["reason"]["remedy"].as_str().unwrap().contains("raise your weight"), "{answer}");
}
