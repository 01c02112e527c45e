//! A Slurm that is only watched.

use super::stub::Stub;
use super::{connector, ran, until, until_state};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::slurm;

/// Settings of a Slurm that a program may change.
fn settings(slurm: &tests::Lent) -> String {
    let qos = slurm.run("sacctmgr", &["-nP", "show", "qos", "format=name,priority,preempt,grptres,preemptexempttime"]);
    let accounts = slurm.run("sacctmgr", &["-nP", "show", "assoc", "format=account,user,grptres"]);
    qos + &accounts
}

#[test]
fn a_slurm_is_reported_to_headroom_and_nothing_is_written_to_it() {
    let Some(slurm) = slurm("observe") else { return };
    let before = settings(&slurm);
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 4.0)]);
    let hp = slurm.submit(&["--account=vision", "--gres=gpu:a100:3"], 600);
    let spot = slurm.submit(&["--account=spot", "--qos=spot1h", "--gres=gpu:a100:4"], 600);
    let long = slurm.submit(&["--account=spot-4h", "--qos=spot4h", "--gres=gpu:h100:2"], 600);
    for job in [hp, spot, long] {
        slurm.until_state(job, "R");
    }
    let observer = connector(&slurm, "run", &stub.url, &[]);
    // 1. What the cluster is becomes the state of its pools.
    until_state(
        &stub,
        "earth:a100",
        &[
            ("capacity_gpus", json!(16.0)),
            ("idle_gpus", json!(9.0)),
            ("spot_gpus_by_guarantee_hours", json!({"1": 4.0})),
        ],
    );
    until_state(
        &stub,
        "earth:h100",
        &[("idle_gpus", json!(14.0)), ("spot_gpus_by_guarantee_hours", json!({"4": 2.0}))],
    );
    // 2. Usage of hours that are over is that of the accounting, with zeros of pools without HP jobs.
    let hours = |is_zero: bool| -> BTreeSet<String> {
        let rows = stub.rows();
        let of_pool = rows.iter().filter(|row| row["gpu_model"] == "h100" && row["organization"] == "*");
        let zero = of_pool.filter(|row| !is_zero || row["demand_gpus"] == 0.0);
        zero.map(|row| row["hour"].to_string()).collect()
    };
    until("usage of the last hours", || (hours(false).len() >= 6).then_some(()));
    // Tests before this one may have run HP jobs in the last of them.
    assert!(hours(true).len() >= 5, "{:?}", stub.rows());
    // 3. A node that drains takes nothing new and keeps what it has; one job that ends leaves its GPUs.
    let node =
        format!("nodename={}", slurm.run("squeue", &["--noheader", "--job", &long.to_string(), "--format=%N"]).trim());
    let _ = slurm.run("scontrol", &["update", &node, "state=drain", "reason=test"]);
    until_state(&stub, "earth:h100", &[("capacity_gpus", json!(8.0 + 2.0)), ("idle_gpus", json!(8.0))]);
    let _ = slurm.run("scontrol", &["update", &node, "state=resume"]);
    let _ = slurm.run("scancel", &[&hp.to_string()]);
    until_state(&stub, "earth:a100", &[("idle_gpus", json!(12.0))]);
    // 4. It is ready, says what it counts, and has written nothing.
    assert_eq!(observer.get("/readyz").0, 200);
    let metrics =
        ureq::get(&format!("http://{}/metrics", observer.address)).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(metrics.contains("headroom_slurm_capacity_gpus{gpu_model=\"a100\"} 16"), "{metrics}");
    let exposed = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let without: Vec<&str> = exposed.filter(|name| !metrics.contains(&format!("# HELP {name} "))).collect();
    assert!(without.is_empty(), "{without:?} have no help: {metrics}");
    let ended = observer.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(settings(&slurm), before);
}

#[test]
fn show_prints_the_cluster_once_as_a_table_and_as_json() {
    let Some(slurm) = slurm("show") else { return };
    let spot = slurm.submit(&["--account=spot", "--qos=spot1h", "--gres=gpu:a100:4"], 600);
    slurm.until_state(spot, "R");
    let _ = slurm.submit(&["--account=vision", "--gres=gpu:a100:1", "--hold"], 600);
    let shown = ran(&slurm, &["show", "--json"], "http://127.0.0.1:9", &[]).json();
    let pool = shown["pools"].as_array().unwrap().iter().find(|pool| pool["pool"] == "earth:a100").unwrap();
    assert_eq!(
        (&pool["capacity_gpus"], &pool["idle_gpus"], &pool["hp"]),
        (&json!(16), &json!(12), &json!({})),
        "{shown}"
    );
    assert_eq!(pool["spot"][0]["inside_guarantee"], true);
    assert_eq!(shown["held"]["spot1h"]["gres/gpu:a100"], 4, "{shown}");
    let table = ran(&slurm, &["show"], "http://127.0.0.1:9", &[]).ok().stdout;
    assert!(table.contains("inside promises") && table.contains("a100"), "{table}");
}

#[test]
fn the_accounting_of_a_real_slurm_becomes_usage_by_the_program_and_by_a_saved_file_alike() {
    let Some(slurm) = slurm("sacct") else { return };
    let jobs: Vec<u32> = (0..3).map(|_| slurm.submit(&["--account=vision", "--gres=gpu:h100:1"], 1)).collect();
    for job in &jobs {
        slurm.until_state(*job, "CD");
    }
    // The controller hands its records over a while after the end of a job, and an accounting that has just begun finds them by their
    // ids seconds before it finds them by their time.
    let own = ["--allusers", "--duplicates", "--allocations", "--starttime=now-2hours", "--json"];
    let (mut document, _) = until("records of all jobs", || {
        let document: Value = serde_json::from_str(&slurm.run("sacct", &own)).unwrap();
        // A state is a text in 22.05, and a list later.
        let is_over = |state: &Value| state == "COMPLETED" || state[0] == "COMPLETED";
        let is_mine =
            |record: &&Value| jobs.iter().any(|job| record["job_id"] == *job) && is_over(&record["state"]["current"]);
        let mine = document["jobs"].as_array()?.iter().filter(is_mine).count();
        (mine == jobs.len()).then_some(document)
    });
    let folder = tempfile::tempdir().unwrap();
    let database = |name: &str| format!("sqlite://{}/{name}.db", folder.path().display());
    // The present hour is not over: that of a record that is a little later is.
    let now = chrono::Utc::now().timestamp();
    let records = document["jobs"].as_array_mut().unwrap();
    let mut later = records.last().unwrap().clone();
    for time in ["submission", "eligible", "start", "end"] {
        later["time"][time] = json!(now + 3_600);
    }
    records.push(later);
    std::fs::write(folder.path().join("sacct.json"), document.to_string()).unwrap();
    let file = folder.path().join("sacct.json").to_str().unwrap().to_owned();
    // The jobs may have run just before a full hour, and this is read just after it.
    let hour = vocab::UnixSeconds::new(now - vocab::SECONDS_PER_HOUR).hour().unwrap().to_string();
    let own = ["ingest", "--format", "slurm", &file, "--cluster", "earth", "--from", &hour, "--json", "--database"];
    let summary = tests::program("datasets", &[&own[..], &[&database("file")]].concat()).json();
    assert_eq!(summary["records"]["skipped"], json!([]), "{summary}");
    let form = summary["records"]["form"].as_str().unwrap();
    assert!(document["meta"]["plugin"].to_string().contains(form), "{summary}");
    assert!(summary["records"]["hp_gpu_hours"]["h100"].as_f64().unwrap() > 0.0, "{summary}");
    let live = ["ingest", "--format", "slurm", "sacct", "--cluster", "earth", "--database", &database("live")];
    let conf = slurm.conf();
    let ran = tests::program_with("datasets", &live, &[("SLURM_CONF", &conf)]);
    // Nothing ran in the hours before this one, or something did, or it began within the last of them: it read all, and says so.
    let is_too_young = ["no usage to store: ", "no whole hour between "].iter().any(|text| ran.stderr.contains(text));
    let is_too_young = ran.code == 3 && is_too_young;
    assert!(ran.code == 0 || is_too_young, "{ran:?}");
}
