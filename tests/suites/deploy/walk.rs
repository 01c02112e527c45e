//! The walk through placed tasks happens as its page says.

use super::text;
use std::process::{Command, Stdio};
use tests::{free_address, program_path};

/// The first two blocks of the page as one script: the model is the fastest, the port a free one, and the start of the service is waited for.
fn script() -> String {
    let page = text("TASKS.md");
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).take(2).collect();
    let address = free_address();
    let started = format!("quota-service --listen {address} 2>service.log >service.out &\ntrap 'kill '$! EXIT\n");
    let ready =
        format!("for _ in $(seq 300); do curl -sf http://{address}/readyz >/dev/null && break; sleep 0.1; done\n");
    let mut all = blocks.concat().replace("127.0.0.1:8080", &address).replace("curl ", "echo; curl -sS ");
    for (from, to) in
        [("\ntrain\n", "\ntrain --model last-value\n"), ("quota-service &\n", &started), ("sleep 5\n", &ready)]
    {
        assert!(all.contains(from), "the page has no line {from:?}");
        all = all.replacen(from, to, 1);
    }
    format!("set -e\n{all}")
}

#[test]
fn the_tasks_of_the_page_are_placed_and_the_last_evicts_the_one_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let programs = program_path("quota-service").parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script()]).env("PATH", path).env_remove("DATABASE_URL").current_dir(folder.path());
    let ran = bash.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed} {}", String::from_utf8_lossy(&ran.stderr));
    let answer = |id: &str| -> serde_json::Value {
        let line = printed.lines().find(|line| line.contains(&format!("\"id\":\"{id}\"")));
        serde_json::from_str(line.unwrap_or_else(|| panic!("no answer of {id}: {printed}"))).unwrap()
    };
    for id in ["sweep-1", "fill-1", "train-1"] {
        assert_eq!(answer(id)["status"], "running", "{}", answer(id));
    }
    assert_eq!(answer("train-1")["detail"]["victims"], serde_json::json!(["fill-1"]));
}
