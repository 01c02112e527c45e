//! The program `headroom`: the path of a user through it.

use crate::deploy::served::{CLUSTER, GPU_MODEL, Prepared, prepare};
use serde_json::{Value, json};
use tests::{Listening, Ran, program, program_with};
use vocab::UnixSeconds;

/// A service with two nodes, its tokens and prices.
pub(super) struct Served {
    pub service: Listening,
    _prepared: Prepared,
    pub admin: String,
    pub read: String,
}

impl Served {
    pub fn new() -> Self {
        let prepared = prepare();
        let (admin, read) = (prepared.token("admin"), prepared.token("read"));
        let prices = prepared.folder.path().join("prices.toml");
        std::fs::write(&prices, "currency = \"EUR\"\n[default]\nhp = 2.5\nat_will = 0.5\nowned = 1.1\n").unwrap();
        let arguments = ["--listen", "127.0.0.1:0", "--json", "--database", &prepared.database];
        let variables = [("HEADROOM_PRICES_FILE", prices.to_str().unwrap()), ("HEADROOM_REPORT_REFRESH_S", "1")];
        let service = Listening::of("quota-service", &arguments, &variables);
        let served = Self { service, _prepared: prepared, admin, read };
        for _ in 0..100 {
            if served.run(&["quota", "--hours", "4"]).code == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        for number in 0..2 {
            let token = std::fs::read_to_string(&served.admin).unwrap();
            let node = json!({ "cluster": CLUSTER, "gpu_model": GPU_MODEL, "gpus": 8 });
            let put = ureq::put(format!("http://{}/v1/nodes/n{number}", served.service.address));
            let put = put.header("authorization", format!("Bearer {}", token.trim())).send_json(&node);
            assert_eq!(put.unwrap().status(), 200);
        }
        served
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_as(&self.admin, arguments)
    }

    pub fn run_as(&self, token: &str, arguments: &[&str]) -> Ran {
        let api = format!("http://{}", self.service.address);
        let of = ["--api", &api, "--api-token-file", token];
        program("headroom", &[arguments, &of].concat())
    }

    pub fn text(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok().stdout
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).json()
    }
}

#[test]
fn a_user_asks_submits_follows_and_cancels() {
    let served = Served::new();
    let quota = served.json(&["quota", "--hours", "4"]);
    assert_eq!((&quota["hours"], &quota["stage"]), (&4.into(), &"fresh".into()));
    let pools = served.text(&["quota"]);
    assert!(
        pools.starts_with(&format!("{CLUSTER}:{GPU_MODEL} of "))
            && ["hours", "quota", "held", "free"].iter().all(|name| pools.contains(name)),
        "{pools}"
    );
    let steps = served.text(&["why", "--hours", "4"]);
    assert!(steps.lines().count() > 4, "{steps}");
    // The cluster has one pool: neither name is needed.
    let of = ["--organization", "org-000", "--gpus-per-pod", "8"];
    let tried = served.text(&[&["submit", "--id", "sweep", "--dry-run"], &of[..]].concat());
    assert!(tried.starts_with("sweep is running") && tried.ends_with("; nothing is submitted\n"), "{tried}");
    let submitted = served.text(&[&["submit", "--id", "sweep", "--pods", "2"], &of[..]].concat());
    assert!(
        submitted.starts_with("sweep is running since ") && submitted.contains("n0:0+1+2+3+4+5+6+7"),
        "{submitted}"
    );
    let drawn = served.json(&[&["submit", "--class", "hp"], &of[..]].concat());
    let id = drawn["id"].as_str().unwrap();
    assert!(id.starts_with("task-") && drawn["detail"]["victims"] == json!(["sweep"]), "{drawn}");
    let why = served.text(&["why", "sweep"]);
    assert!(why.starts_with("sweep is waiting: ") && why.contains("its last run was cut at"), "{why}");
    let when = served.text(&["when", "sweep"]);
    assert!(when.starts_with("sweep starts: 50 % ") && when.contains("(few_jobs)"), "{when}");
    assert!(served.text(&["when", id]).starts_with(&format!("{id} runs since ")));
    let prices = served.text(&[&["when", "--prices"], &of[..]].concat());
    assert!(prices.lines().any(|line| line == "hp: now") && prices.contains("spot, 4 h: "), "{prices}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let ends_by = UnixSeconds::new(now + 20 * 3_600).to_string();
    let ends = served.text(&[&["when", "--runs", "10m", "--ends-by", &ends_by], &of[..]].concat());
    assert!(ends.contains("; submit by ") && ends.contains("cheapest in time: "), "{ends}");
    let lines = served.text(&["watch", id, "--until", "running"]);
    assert!(lines.starts_with(&format!("{id} is running since ")), "{lines}");
    assert_eq!(served.json(&["watch", "--quota", "--hours", "4", "--count", "1"])["hours"], 4);
    let cancelled = served.json(&["cancel", "sweep", id]);
    let statuses: Vec<_> = cancelled.as_array().unwrap().iter().map(|task| task["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["deleted", "deleted"]);
    let ended = served.text(&["watch", "sweep"]);
    assert_eq!(ended, "sweep is deleted\n");
}

#[test]
fn a_statement_is_printed_as_text_json_and_csv() {
    let served = Served::new();
    let of = ["--organization", "org-000", "--gpus-per-pod", "8"];
    let _ = served.text(&[&["submit", "--id", "sweep"], &of[..]].concat());
    // As the organization of `alibaba-hourly` is named.
    let _ = served.text(&["submit", "--id", "other", "--organization", "all", "--class", "hp", "--gpus-per-pod", "8"]);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let answer = served.json(&["statement", "--by", "day"]);
    assert_eq!((&answer["currency"], &answer["pools"][0]["cluster"]), (&"EUR".into(), &CLUSTER.into()), "{answer}");
    let text = served.text(&["statement"]);
    assert!(text.contains("org-000") && text.contains("charged, EUR") && text.contains("owning it costs"), "{text}");
    let rows_of = |name: &str| text.lines().filter(|line| line.split_whitespace().next() == Some(name)).count();
    assert_eq!((rows_of("all"), rows_of("*")), (1, 1), "the sum of the pool is no organization: {text}");
    let csv = served.text(&["statement", "--csv"]);
    assert!(csv.starts_with("day,cluster,gpu_model,organization,") && csv.contains("__idle__"), "{csv}");
    let rows = served.text(&["statement", "--opencost"]);
    assert!(rows.starts_with("Date,Namespace,Cluster,") && rows.contains(",spot-at-will,"), "{rows}");
    let own = served.json(&["statement", "--organization", "org-001"]);
    assert_eq!((&own["pools"], &own["organizations"]), (&json!([]), &json!([])));
}

#[test]
fn a_failure_has_its_exit_code_and_what_to_do() {
    let served = Served::new();
    let unknown = served.run(&["why", "missing"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("missing was never submitted to the pool (unknown-task)"), "{}", unknown.stderr);
    let of = ["--organization", "org-000"];
    let hours = served.run(&["quota", "--hours", "5"]);
    assert!(hours.stderr.contains("; known: 1, 2, 4 (unknown-hours)"), "{}", hours.stderr);
    let number = served.run(&[&["submit", "--id", "x", "--gpus-per-pod", "nan"], &of[..]].concat());
    assert_eq!((number.code, number.stderr.contains("such as 8 or 0.25")), (2, true), "{}", number.stderr);
    let bad = served.run(&[&["submit", "--id", "x", "--pods", "0"], &of[..]].concat());
    assert_eq!(bad.code, 3, "{}", bad.stderr);
    assert!(bad.stderr.contains("/pods: a task needs at least one pod"), "{}", bad.stderr);
    let forbidden = served.run_as(&served.read, &[&["submit", "--id", "x"], &of[..]].concat());
    assert_eq!((forbidden.code, forbidden.stderr.contains("(forbidden)")), (1, true), "{}", forbidden.stderr);
    assert_eq!(served.run(&["submit", "--id", "x"]).code, 2, "no organization");
    let _ = served.text(&[&["submit", "--id", "one"], &of[..]].concat());
    let _ = served.text(&[&["submit", "--id", "two"], &of[..]].concat());
    let cancelled = served.run(&["cancel", "one", "missing", "two"]);
    assert_eq!((cancelled.code, cancelled.stdout.as_str()), (1, "one is deleted\ntwo is deleted\n"));
    assert!(cancelled.stderr.contains("missing was never submitted"), "{}", cancelled.stderr);
    let none = served.run(&["quota", "--hours", "4", "--gpu-model", "H800"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains(&format!("its pools: {CLUSTER}:{GPU_MODEL}")), "{}", none.stderr);
    let token = served.run_as("/missing/token", &["quota"]);
    assert_eq!(token.code, 4);
    assert!(token.stderr.starts_with("error: --api-token-file: /missing/token: "), "{}", token.stderr);
    let away = program_with("headroom", &["quota", "--api", "http://127.0.0.1:1"], &[("HEADROOM_PATIENCE_S", "0")]);
    assert_eq!((away.code, away.stderr.matches("does not answer").count()), (5, 1), "{}", away.stderr);
    // One that waits says so, once, however often it tries.
    let away = program_with("headroom", &["quota", "--api", "http://127.0.0.1:1"], &[("HEADROOM_PATIENCE_S", "4")]);
    let (first, last) = away.stderr.trim_end().split_once('\n').expect("a notice and an error");
    assert!(
        first.contains("does not answer") && first.ends_with(". Asking again in 1 s, until patience_s is over"),
        "{first}"
    );
    assert!(last.starts_with("error: ") && !last.contains('\n'), "{last}");
}
