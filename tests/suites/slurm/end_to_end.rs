//! From a history to promises: accounting, training, quota, limits, spot jobs, evictions, kept and broken.

use super::{away_from_the_end_of_the_hour, connector, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::{Lent, Listening, program, slurm};
use vocab::{HourStart, UnixSeconds};

const HOUR_S: i64 = 3_600;

fn present() -> HourStart {
    UnixSeconds::new(chrono::Utc::now().timestamp()).hour().unwrap()
}

/// A record of `sacct` of 22.05: `times` are those of submission, eligibility, start and end in seconds since 1970, zero for none.
fn record(id: u64, (account, qos, state): (&str, &str, &str), times: [i64; 4], gpus: u64) -> Value {
    let [submission, eligible, start, end] = times;
    let resources = json!([{"type": "cpu", "name": null, "id": 1, "count": 1}, {"type": "gres", "name": "gpu", "id": 1001, "count": gpus},
        {"type": "gres", "name": "gpu:a100", "id": 1002, "count": gpus}]);
    let started = start > 0;
    json!({
        "account": account, "array": {"job_id": 0, "limits": {"max": {"running": {"tasks": 0}}}, "task": null, "task_id": null},
        "cluster": "t", "het": {"job_id": 0, "job_offset": null}, "job_id": id, "name": "job", "partition": "gpu", "qos": qos,
        "state": {"current": state, "reason": "None"},
        "time": {"elapsed": if end > 0 && started { end - start } else { 0 }, "eligible": eligible, "end": end,
            "start": if started { json!(start) } else { Value::Null }, "submission": submission, "suspended": 0, "limit": 60},
        "tres": {"allocated": if started { resources.clone() } else { json!([]) }, "requested": resources},
        "user": "alice"
    })
}

fn document(records: &[Value]) -> String {
    let meta = json!({"plugin": {"type": "openapi/dbv0.0.38", "name": "Slurm OpenAPI DB v0.0.38"}, "Slurm": {"release": "22.05.8"}});
    json!({"meta": meta, "errors": [], "jobs": records}).to_string()
}

/// The next number of a fixed sequence, below `most`.
fn next(state: &mut u64, most: i64) -> i64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % most.unsigned_abs()) as i64
}

const DAY_S: usize = 86_400;
/// A day of UTC.
const BEGIN: i64 = 1_795_564_800;

/// A day of jobs as records, and the GPUs of each account second by second, counted apart from the program.
fn day(jobs: u64) -> (Vec<Value>, BTreeMap<&'static str, Vec<u64>>) {
    let (mut seed, accounts) = (29, ["vision", "speech", "robots"]);
    let mut records = Vec::new();
    let mut seconds: BTreeMap<&str, Vec<u64>> = accounts.iter().map(|account| (*account, vec![0; DAY_S])).collect();
    for id in 1..=jobs {
        let account = accounts[next(&mut seed, 3) as usize];
        let (submission, gpus) = (BEGIN + next(&mut seed, DAY_S as i64 - 2_000), 1 + next(&mut seed, 8) as u64);
        let (held, waits, runs) = (next(&mut seed, 3) * 20, next(&mut seed, 300), 1 + next(&mut seed, 900));
        let (eligible, start) = (submission + held, submission + held + waits);
        let state = ["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED"][next(&mut seed, 5) as usize];
        // One in ten is cancelled while it waits, one in ten is requeued and runs twice.
        let (start, end) = if next(&mut seed, 10) == 0 { (0, start) } else { (start, start + runs) };
        let mut spans = vec![(eligible, end)];
        records.push(record(id, (account, "normal", state), [submission, eligible, start, end], gpus));
        if next(&mut seed, 10) == 0 && start > 0 {
            let again = [end, end + 120, end + 130, end + 130 + runs];
            records.push(record(id, (account, "normal", "COMPLETED"), again, gpus));
            spans.push((again[1], again[3]));
        }
        for (from, until) in spans {
            let at = |time: i64| usize::try_from(time - BEGIN).unwrap().min(DAY_S);
            for second in &mut seconds.get_mut(account).unwrap()[at(from)..at(until)] {
                *second += gpus;
            }
        }
    }
    // The records were printed an hour after the day.
    let late = BEGIN + 90_000;
    records.push(record(9_999, ("vision", "normal", "COMPLETED"), [late, late, late, late + 60], 1));
    (records, seconds)
}

/// Stored demand by organization and hour.
fn stored(database: &str) -> BTreeMap<(String, String), f64> {
    let stored = program("datasets", &["export", "--out", "-", "--database", database]).ok().stdout;
    let fields = stored.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    fields.map(|of| ((of[3].clone(), of[0].clone()), of[4].parse().unwrap())).collect()
}

#[test]
fn a_day_of_2000_short_jobs_is_the_demand_that_a_count_of_every_second_finds() {
    let (records, seconds) = day(2_000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sacct.json");
    std::fs::write(&file, document(&records)).unwrap();
    let database = format!("sqlite://{}/headroom.db", folder.path().display());
    let (from, until) = (UnixSeconds::new(BEGIN).to_string(), UnixSeconds::new(BEGIN + DAY_S as i64).to_string());
    let own = [
        "ingest",
        "--format",
        "slurm",
        file.to_str().unwrap(),
        "--cluster",
        "earth",
        "--from",
        &from,
        "--until",
        &until,
    ];
    let summary = program("datasets", &[&own[..], &["--json", "--database", &database]].concat()).json();
    // 1. To the GPU-second.
    let expected: u64 = seconds.values().flatten().sum();
    let counted = summary["records"]["hp_gpu_hours"]["a100"].as_f64().unwrap() * HOUR_S as f64;
    assert_eq!(counted.round() as u64, expected, "{summary}");
    // 2. Each peak of each hour.
    let rows = stored(&database);
    let all: Vec<u64> = (0..DAY_S).map(|second| seconds.values().map(|of| of[second]).sum()).collect();
    let hours = |name: &str, of: &[u64]| {
        for (hour, peak) in of.chunks(3_600).map(|hour| *hour.iter().max().unwrap()).enumerate() {
            let start = UnixSeconds::new(BEGIN + hour as i64 * HOUR_S).to_string();
            assert_eq!(rows[&(name.to_owned(), start.clone())], peak as f64, "{name} {start}");
        }
    };
    hours("*", &all);
    for (account, of) in &seconds {
        hours(account, of);
    }
    assert_eq!(rows.len(), 4 * 24);
}

/// Ten days of records that end now: an account that always runs four GPUs, in jobs of an hour.
fn history() -> String {
    let now = present();
    let records: Vec<Value> = (1..=240)
        .map(|ago| {
            let start = now.plus_hours(-ago).unix_s();
            record(ago.unsigned_abs(), ("vision", "normal", "COMPLETED"), [start, start, start, start + HOUR_S], 4)
        })
        .chain([record(999, ("vision", "normal", "RUNNING"), [now.unix_s(), now.unix_s(), now.unix_s(), 0], 4)])
        .collect();
    document(&records)
}

/// A service that learned from the history, and knows the capacity from the nodes of the cluster.
fn service(slurm: &Lent, folder: &std::path::Path) -> Listening {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(path("sacct.json"), history()).unwrap();
    std::fs::write(path("nodes.json"), slurm.nodes()).unwrap();
    let database = format!("sqlite://{}", path("headroom.db"));
    let own =
        ["ingest", "--format", "slurm", &path("sacct.json"), "--nodes", &path("nodes.json"), "--cluster", "earth"];
    let _ = program("datasets", &[&own[..], &["--spot-qos", "spot1h,spot4h", "--database", &database]].concat()).ok();
    let _ = program("train", &["--horizon", "4h", "--model", "last-value", "--database", &database]).ok();
    Listening::start(&["--database", &database, "--refresh-s", "1"])
}

fn spot(slurm: &Lent, gpus: u32, sleeps_s: u64) -> u32 {
    slurm.submit(&["--account=spot", "--qos=spot1h", &format!("--gres=gpu:a100:{gpus}")], sleeps_s)
}

/// Kept and broken of `/v1/promises` are those of Slurm's own records.
#[test]
fn a_history_becomes_limits_spot_runs_within_them_and_promises_are_kept_and_broken_as_slurm_records_them() {
    let Some(slurm) = slurm("end to end") else { return };
    away_from_the_end_of_the_hour(120);
    let folder = tempfile::tempdir().unwrap();
    // 1. History → training → quota.
    let service = service(&slurm, folder.path());
    let since = chrono::Utc::now().timestamp();
    let running = slurm.submit(&["--account=vision", "--gres=gpu:a100:4"], 600);
    slurm.until_state(running, "R");
    // 2. The connector reports, and the quota becomes a limit.
    let writer = connector(
        &slurm,
        "run",
        &format!("http://{}", service.address),
        &[("HEADROOM_MODE", "publish"), ("HEADROOM_SPOT_QOS", "spot1h=1")],
    );
    let of_pool = "/quota?cluster=earth&gpu_model=a100&hours=1";
    let quota = service
        .get_until(of_pool, |status, body| status == 200 && body["capacity_gpus"] == 16.0 && body["idle_gpus"] == 12.0);
    let whole = |quota: &Value| quota["quota_gpus"].as_f64().map(|gpus| gpus.floor() as u64);
    assert!(whole(&quota).is_some_and(|gpus| (1..=12).contains(&gpus)), "{quota}");
    let ((limit, offered), _) = until("the limit", || {
        let offered = whole(&service.get(of_pool).1)?;
        Some((gpus_of(&slurm.limit("spot1h")).filter(|limit| *limit == offered)?, offered))
    });
    // 3. Spot runs within it: one ends by itself, others fill it, one more waits.
    let quick = spot(&slurm, 1, 2);
    slurm.until_state(quick, "CD");
    let filling: Vec<u32> = (0..limit / 4).map(|_| spot(&slurm, 4, 600)).collect();
    for job in &filling {
        slurm.until_state(*job, "R");
    }
    let waits = spot(&slurm, 4, 600);
    slurm.until_state(waits, "PD QOSGrpGRES");
    // 4. HP work comes and takes a whole node.
    let hp = slurm.submit(&["--account=vision", "--nodes=1", "--gres=gpu:a100:8"], 600);
    slurm.until_state(hp, "R");
    let is_evicted = |job: &&u32| slurm.state(**job).starts_with("PD");
    until("the evictions", || (filling.iter().filter(is_evicted).count() > 0).then_some(()));
    // 5. Kept and broken, beside Slurm's own records.
    let promises = "/v1/promises?cluster=earth&gpu_model=a100";
    let (kept, broken) = by_records(&slurm, since);
    assert!(kept == 1 && broken > 0, "{kept} and {broken}");
    let report =
        service.get_until(promises, |status, body| status == 200 && body["broken"] == broken && body["kept"] == kept);
    let tasks = |report: &Value| {
        report["broken_ones"].as_array().unwrap().iter().map(|one| one["task"].clone()).collect::<Vec<_>>()
    };
    let filling: Vec<String> = filling.iter().map(ToString::to_string).collect();
    assert!(tasks(&report).iter().all(|task| filling.iter().any(|job| task == job)), "{report}");
    let hour = report["by_hours"].as_array().unwrap().iter().find(|of| of["hours"] == 1).unwrap();
    println!("limit {limit} GPUs of a quota of {offered}; kept {kept}, broken {broken}, K_1 {}", hour["kept_rate"]);
    assert!(hour["kept_rate"].as_f64().is_some_and(|rate| rate < 1.0), "{report}");
    assert_eq!(writer.stop().code, 0);
}

/// GPUs of a100 in a limit.
fn gpus_of(limit: &str) -> Option<u64> {
    limit.split(',').find_map(|part| part.strip_prefix("gres/gpu:a100="))?.parse().ok()
}

/// Spot starts that ended by themselves, and those that were evicted, as `sacct` counts them.
fn by_records(slurm: &Lent, since: i64) -> (u64, u64) {
    let start =
        format!("--starttime={}", chrono::DateTime::from_timestamp(since, 0).unwrap().format("%Y-%m-%dT%H:%M:%S"));
    let own = [
        "--allusers",
        "--duplicates",
        "--allocations",
        "--noheader",
        "--parsable2",
        "--qos=spot1h",
        "--format=state,submit",
    ];
    let text = slurm.run("env", &[&["TZ=UTC0", "sacct"], &own[..], &[start.as_str()]].concat());
    let from = chrono::DateTime::from_timestamp(since, 0).unwrap().format("%Y-%m-%dT%H:%M:%S").to_string();
    let mine = text.lines().filter(|line| line.split('|').nth(1).is_some_and(|submitted| submitted >= from.as_str()));
    let count = |state: &str| mine.clone().filter(|line| line.starts_with(state)).count() as u64;
    (count("COMPLETED"), count("PREEMPTED"))
}
