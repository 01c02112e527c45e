use super::*;
use vocab::PoolId;

const NOW: i64 = 1_795_600_000;

fn queue(jobs: &[String]) -> Queue {
    let text = format!(r#"{{"jobs":[{}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#, jobs.join(","));
    let (queue, _) = Queue::read("squeue.json", text.as_bytes()).unwrap();
    assert_eq!(queue.skipped, []);
    queue
}

/// `state` with what follows it, GPUs as they are asked for or held, and fields that replace the usual ones.
fn job(id: u32, state: &str, gpus: &str, more: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("job_id", id.to_string()),
        ("account", "\"vision\"".to_owned()),
        ("qos", "\"normal\"".to_owned()),
        ("partition", "\"gpu\"".to_owned()),
        ("job_state", format!("[\"{state}\"]")),
        ("submit_time", (NOW - 500).to_string()),
        ("eligible_time", (NOW - 400).to_string()),
        ("start_time", (NOW - 300).to_string()),
        ("tres_req_str", format!("\"{gpus}\"")),
        ("tres_alloc_str", if state == "PENDING" { "\"\"".to_owned() } else { format!("\"{gpus}\"") }),
    ];
    for (key, value) in more {
        fields.retain(|(known, _)| known != key);
        fields.push((key, (*value).to_owned()));
    }
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn node(name: &str, gpu_type: &str, state: &str, used: u32) -> String {
    format!(
        r#"{{"name":"{name}","state":{state},"partitions":["gpu"],"tres":"gres/gpu=8,gres/gpu:{gpu_type}=8","tres_used":"gres/gpu={used},gres/gpu:{gpu_type}={used}"}}"#
    )
}

fn nodes(list: &[String]) -> Nodes {
    let text = format!(r#"{{"nodes":[{}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#, list.join(","));
    Nodes::read("nodes.json", text.as_bytes()).unwrap().0
}

fn view(jobs: &[String], list: &[String]) -> View {
    let config = Config { spot_qos: "spot1h=1,spot4h=4,free=0".parse().unwrap(), ..Config::default() };
    let reading = Reading::of(&config, Accounts::default());
    View::of(&queue(jobs), &nodes(list), &reading, UnixSeconds::new(NOW)).unwrap()
}

const IDLE: &str = r#"["IDLE"]"#;

fn pool(view: &View, model: &str) -> PoolView {
    view.pools[&GpuModel::parse(model).unwrap()].clone()
}

fn spot(id: u32, qos: &str, gpus: u32, age_s: i64) -> String {
    let (qos, start) = (format!("\"{qos}\""), (NOW - age_s).to_string());
    job(id, "RUNNING", &format!("gres/gpu={gpus},gres/gpu:a100={gpus}"), &[("qos", &qos), ("start_time", &start)])
}

#[test]
fn capacity_idle_and_promises_of_a_pool_are_counted_from_nodes_and_jobs() {
    let list = [
        node("g1", "a100", IDLE, 7),
        node("g2", "a100", r#"["MIXED","DRAIN"]"#, 2),
        node("g3", "a100", r#"["DOWN"]"#, 0),
    ];
    let jobs =
        [spot(1, "spot1h", 4, 60), spot(2, "spot1h", 1, 7_200), spot(3, "spot4h", 2, 7_200), spot(4, "free", 2, 60)];
    let of = pool(&view(&jobs, &list), "a100");
    assert_eq!((of.capacity_gpus(), of.idle_gpus(), of.spot_gpus()), (8 + 2, 1, 9));
    let state = of.state(PoolId::parse("earth:a100").unwrap(), UnixSeconds::new(NOW));
    let promised: Vec<(u8, String)> =
        state.spot_by_guarantee.iter().map(|(hours, gpus)| (hours.get(), gpus.to_string())).collect();
    assert_eq!(
        promised,
        [(1, "4.000".to_owned()), (4, "2.000".to_owned())],
        "one is past its hour, one has no promise"
    );
}

#[test]
fn the_higher_of_what_nodes_and_what_jobs_say_is_in_use() {
    let hp = |gpus: u32| job(1, "RUNNING", &format!("gres/gpu={gpus},gres/gpu:a100={gpus}"), &[]);
    let idle = |used, gpus| pool(&view(&[hp(gpus)], &[node("g1", "a100", IDLE, used)]), "a100").idle_gpus();
    assert_eq!([idle(0, 6), idle(7, 6), idle(6, 6)], [2, 1, 2], "right after a restart nodes say that nothing runs");
}

#[test]
fn hp_demand_is_what_runs_and_what_could_start_if_there_were_room() {
    let gpus = "gres/gpu=2,gres/gpu:a100=2";
    let jobs = [
        job(1, "RUNNING", gpus, &[]),
        job(2, "PENDING", gpus, &[]),
        job(3, "PENDING", gpus, &[("eligible_time", "0"), ("state_reason", "\"JobHeldUser\"")]),
        job(4, "PENDING", gpus, &[("eligible_time", &(NOW + 60).to_string())]),
        job(5, "COMPLETED", gpus, &[]),
        job(6, "COMPLETING", gpus, &[]),
        job(7, "PENDING", gpus, &[("array_job_id", "7"), ("array_task_string", "\"3-9%4\""), ("array_max_tasks", "4")]),
        job(
            8,
            "RUNNING",
            gpus,
            &[("array_job_id", "7"), ("array_task_id", "{\"set\":true,\"infinite\":false,\"number\":1}")],
        ),
    ];
    let of = pool(&view(&jobs, &[node("g1", "a100", IDLE, 4), node("g2", "a100", IDLE, 2)]), "a100");
    let demand: Vec<(u64, u64)> = of.hp.values().map(|demand| (demand.running_gpus, demand.waiting_gpus)).collect();
    assert_eq!(demand, [(2 + 2 + 2, 2 + 3 * 2)], "of the array one runs and three more may");
    assert_eq!(of.hp_waits_since, Some(UnixSeconds::new(NOW - 400)));
}

#[test]
fn a_job_without_a_type_counts_where_it_runs_and_in_each_pool_while_it_waits() {
    let runs = job(1, "RUNNING", "gres/gpu=3", &[("tres_alloc_str", "\"gres/gpu=3,gres/gpu:h100=3\"")]);
    let waits = job(2, "PENDING", "gres/gpu=4", &[]);
    let both = view(&[runs, waits.clone()], &[node("g1", "a100", IDLE, 0), node("g2", "h100", IDLE, 3)]);
    let demand = |view: &View, model: &str| {
        pool(view, model).hp.values().map(|of| (of.running_gpus, of.waiting_gpus)).collect::<Vec<_>>()
    };
    assert_eq!((demand(&both, "a100"), demand(&both, "h100"), both.untyped_waiting), (vec![(0, 4)], vec![(3, 4)], 1));
    let one = view(&[waits], &[node("g1", "a100", IDLE, 0)]);
    assert_eq!((demand(&one, "a100"), one.untyped_waiting), (vec![(0, 4)], 0), "the partition has one type");
}

#[test]
fn the_longest_wait_for_quota_is_that_of_a_spot_job_that_would_fit() {
    let waits = |id, gpus: u32, age: i64, reason: &str| {
        let (since, reason) = ((NOW - age).to_string(), format!("\"{reason}\""));
        let more = [("qos", "\"spot1h\""), ("eligible_time", since.as_str()), ("state_reason", reason.as_str())];
        job(id, "PENDING", &format!("gres/gpu={gpus},gres/gpu:a100={gpus}"), &more)
    };
    let jobs = [
        waits(1, 8, 900, "QOSGrpGRES"),
        waits(2, 2, 700, "QOSGrpGRES"),
        waits(3, 2, 800, "Resources"),
        waits(4, 1, 600, "AssocGrpGRES"),
    ];
    let of = pool(&view(&jobs, &[node("g1", "a100", IDLE, 4)]), "a100");
    assert_eq!((of.longest_limit_wait_s(UnixSeconds::new(NOW)), of.spot_waiting_gpus()), (700, 13));
}

#[test]
fn an_hp_job_is_reported_once_also_where_its_waiting_tasks_are_several_records() {
    let gpus = "gres/gpu=2,gres/gpu:a100=2";
    let tasks = |id, of: &str, eligible: i64| {
        let of = format!("\"{of}\"");
        let eligible = eligible.to_string();
        job(id, "PENDING", gpus, &[("array_job_id", "7"), ("array_task_string", &of), ("eligible_time", &eligible)])
    };
    let jobs = [job(1, "RUNNING", gpus, &[]), tasks(7, "3-5", NOW - 50), tasks(9, "8,9", NOW - 90)];
    let of = pool(&view(&jobs, &[node("g1", "a100", IDLE, 2)]), "a100");
    let found: Vec<(String, u64, i64, bool)> = of
        .distinct_hp_jobs()
        .into_values()
        .map(|job| {
            (
                job.task.to_string(),
                job.gpus_milli / 1_000,
                job.submitted.since_s(UnixSeconds::new(NOW)),
                job.started.is_some(),
            )
        })
        .collect();
    assert_eq!(found, [("1".to_owned(), 2, -400, true), ("7_*".to_owned(), 10, -90, false)]);
}

#[test]
fn a_job_that_waits_is_spot_in_capitals_too_and_with_several_qos_it_waits_for_the_longest_promise() {
    let waits = |id, qos: &str| job(id, "PENDING", "gres/gpu=2,gres/gpu:a100=2", &[("qos", &format!("\"{qos}\""))]);
    let jobs = [waits(1, "SPOT1H"), waits(2, "spot1h,spot4h"), waits(3, "spot1h,normal")];
    let of = pool(&view(&jobs, &[node("g1", "a100", IDLE, 0)]), "a100");
    let waiting: Vec<(&str, u32)> = of.spot_queue.iter().map(|job| (job.qos.as_ref(), job.gpus)).collect();
    assert_eq!(waiting, [("spot1h", 2), ("spot4h", 2)]);
    assert_eq!(of.hp.values().map(|demand| demand.waiting_gpus).sum::<u64>(), 2, "one may start as HP work");
}
