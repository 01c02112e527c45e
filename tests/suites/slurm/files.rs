//! `datasets ingest --format slurm` as an operator runs it on saved records, and on a `sacct` that does not answer.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use tests::{Ran, program, program_with, workspace_root};

/// The hour of the fixtures, which the records of [`Site::records`] see to its end.
const FROM: &str = "2026-11-25T07:00:00Z";

struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The fixture of a form, with one more job an hour later, so that its hour is over; changed by `change`.
    fn records(&self, form: &str, change: impl Fn(&mut Vec<Value>)) -> String {
        let text = fixture(&format!("sacct-{form}"));
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let jobs = document["jobs"].as_array_mut().unwrap();
        let mut later = jobs.iter().find(|job| job["name"] == "cpu").unwrap().clone();
        for time in ["submission", "eligible", "start", "end"] {
            later["time"][time] = json!(later["time"][time].as_i64().unwrap() + 3_600);
        }
        jobs.push(later);
        change(jobs);
        std::fs::write(self.path("sacct.json"), document.to_string()).unwrap();
        self.path("sacct.json")
    }

    fn ingest(&self, file: &str, more: &[&str]) -> Ran {
        let database = format!("sqlite://{}", self.path("headroom.db"));
        let own = ["ingest", "--format", "slurm", file, "--database", &database];
        program("datasets", &[&own, more].concat())
    }

    fn export(&self) -> Ran {
        let database = format!("sqlite://{}", self.path("headroom.db"));
        program("datasets", &["export", "--out", "-", "--database", &database])
    }

    /// Rows that are stored, as text.
    fn stored(&self) -> String {
        self.export().ok().stdout
    }

    /// A program of Slurm, as a script.
    fn script(&self, name: &str, lines: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(workspace_root().join(format!("datasets/slurm/fixtures/{name}.json"))).unwrap()
}

const SPOT: [&str; 4] = ["--spot-qos", "spot1h,spot4h", "--from", FROM];

#[test]
fn records_without_a_whole_hour_of_hp_demand_say_what_they_are_and_what_to_do() {
    let site = Site::new();
    let nothing = |change: &dyn Fn(&mut Vec<Value>)| {
        let ran = site.ingest(&site.records("v0.0.38", change), &[&["--cluster", "earth"][..], &SPOT].concat());
        assert_eq!(ran.code, 3, "{ran:?}");
        ran.stderr
    };
    let empty = nothing(&Vec::clear);
    assert!(empty.contains("no record has GPUs") && empty.contains("AccountingStorageTRES=gres/gpu"), "{empty}");
    let spot = nothing(&|jobs| jobs.retain(|job| job["qos"] == "spot1h" || job["name"] == "cpu"));
    assert!(spot.contains("none is HP work in an hour that is over") && spot.contains("--spot-qos"), "{spot}");
}

#[test]
fn saved_records_become_the_same_usage_in_every_form_and_say_what_was_spot() {
    let mut all = Vec::new();
    for form in ["v0.0.38", "v0.0.39", "v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"] {
        let site = Site::new();
        let nodes = site.path("nodes.json");
        std::fs::write(&nodes, fixture(&format!("nodes-{form}"))).unwrap();
        let file = site.records(form, |_| {});
        let summary =
            site.ingest(&file, &[&SPOT[..], &["--nodes", &nodes, "--cluster", "earth", "--json"]].concat()).json();
        assert_eq!(summary["records"]["form"], form);
        assert_eq!(
            (&summary["inserted"], &summary["capacity_rows"], &summary["jobs_without_gpus"]),
            (&json!(6), &json!(2), &json!(2))
        );
        let spot =
            json!({"gpu_model": "a100", "qos": "spot1h", "starts": 1, "gpu_hours": 80.0 / 3_600.0, "evictions": 1});
        assert_eq!(summary["records"]["spot"][0], spot);
        all.push(site.stored());
    }
    assert!(all[0].contains("earth,a100,vision,51"), "{}", all[0]);
    all.dedup();
    assert_eq!(all.len(), 1);
}

#[test]
fn an_unreadable_record_is_refused_by_its_number_and_job_and_may_be_skipped() {
    let site = Site::new();
    let file = site.records("v0.0.42", |jobs| jobs[3]["time"]["submission"] = json!("yesterday"));
    let refused = site.ingest(&file, &SPOT);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(
        refused.stderr.contains("sacct.json, record 4, job 19: time.submission: invalid type"),
        "{}",
        refused.stderr
    );
    assert!(site.export().stderr.contains("there is no database file"), "{:?}", site.export());
    let kept = site.ingest(&file, &[&SPOT[..], &["--skip-bad-rows"]].concat()).ok();
    assert!(kept.stderr.contains("skipped: record 4, job 19"), "{}", kept.stderr);
}

#[test]
fn records_of_an_unknown_version_or_of_another_program_are_refused_with_what_to_do() {
    let site = Site::new();
    let text = fixture("sacct-v0.0.45").replace("v0.0.45", "v0.0.46");
    std::fs::write(site.path("new.json"), text).unwrap();
    let refused = site.ingest(&site.path("new.json"), &SPOT);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("v0.0.46") && refused.stderr.contains("--json=v0.0.45"), "{}", refused.stderr);
    std::fs::write(site.path("text"), "JobID|State\n1|RUNNING\n").unwrap();
    let refused = site.ingest(&site.path("text"), &SPOT);
    assert!(refused.code == 3 && refused.stderr.contains("expected the whole output of --json"), "{}", refused.stderr);
    let flags = site.ingest("sacct.json", &["--query", "up"]);
    assert!(flags.code == 2 && flags.stderr.contains("--query does not apply to --format slurm"), "{}", flags.stderr);
}

#[test]
fn organizations_are_accounts_or_their_parents() {
    let site = Site::new();
    std::fs::write(site.path("accounts"), "root|\nresearch|root\nvision|research\nvision|\n").unwrap();
    let file = site.records("v0.0.41", |_| {});
    let _ =
        site.ingest(&file, &[&SPOT[..], &["--accounts", &site.path("accounts"), "--cluster", "earth"]].concat()).ok();
    let stored = site.stored();
    assert!(stored.contains("earth,a100,research,51") && !stored.contains("vision"), "{stored}");
}

#[test]
fn a_sacct_that_does_not_answer_is_ended_with_all_that_it_started() {
    let site = Site::new();
    let _ = site.script("squeue", "echo slurm 22.05.8");
    let sacct = site.script("sacct", "sleep 600 &\necho $! >\"$0.pid\"\nwait");
    let start = Instant::now();
    let ran = site.ingest(&sacct, &[&SPOT[..], &["--timeout", "1"]].concat());
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("no answer within 1 s"), "{}", ran.stderr);
    assert!(start.elapsed() < Duration::from_mins(1));
    let child = std::fs::read_to_string(site.path("sacct.pid")).unwrap();
    let lives =
        || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).is_ok_and(|stat| !stat.contains(") Z"));
    while lives() && start.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!lives(), "what it started still runs");
    let failed = site.script("sacct", "echo 'sacct: error: Connection refused' >&2; exit 1");
    let ran = site.ingest(&failed, &SPOT);
    assert!(ran.code == 5 && ran.stderr.contains("Connection refused"), "{ran:?}");
    let missing = program_with("datasets", &["ingest", "--format", "slurm", &site.path("no/sacct")], &[]);
    assert!(missing.code == 3 && missing.stderr.contains("cannot be started"), "{missing:?}");
}
