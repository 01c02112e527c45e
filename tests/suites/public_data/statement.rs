//! The statement of a replay against the job list: GPU time to the second.

use super::options;
use datasets::read;
use tests::public_data;
use vocab::{TaskClass, UnixSeconds};

/// Thousandths of a GPU times seconds.
fn of_hours(gpu_hours: &serde_json::Value) -> i128 {
    (gpu_hours.as_f64().unwrap() * 3_600_000.0).round() as i128
}

#[test]
fn the_statement_of_a_replay_has_the_gpu_hours_of_the_job_list_to_the_second() {
    let name = "the_statement_of_a_replay_has_the_gpu_hours_of_the_job_list_to_the_second";
    let Some(folder) = public_data(name, "philly-gfs") else { return };
    let (nodes, jobs) = (folder.join("node_info_df_1280.csv"), folder.join("job_info_df.csv"));
    let out = tempfile::tempdir().unwrap();
    let (file, prices) = (out.path().join("statement.json"), out.path().join("prices.toml"));
    std::fs::write(&prices, "currency = \"EUR\"\n[default]\nhp = 2.0\nat_will = 0.5\nowned = 1.0\n").unwrap();
    let [nodes, jobs_file, file_name, prices] = [&nodes, &jobs, &file, &prices].map(|path| path.to_str().unwrap());
    let trace = ["--nodes", nodes, "--jobs", jobs_file, "--policy", "gfs", "--predictor", "live"];
    // A job that loads again after an eviction holds GPUs, and does nothing of what the list asks for.
    let at_once = ["--restart-s", "0", "--restart-large-s", "0"];
    let of = ["--statement", file_name, "--prices", prices];
    let _ = tests::program("simulate", &[&trace[..], &at_once, &of].concat()).ok();
    let read_back = std::fs::read_to_string(&file).unwrap();
    let statement: serde_json::Value = serde_json::from_str(&read_back).unwrap();
    let (pool, organizations) = (&statement["pools"][0], statement["organizations"].as_array().unwrap());

    let listed = read::gfs_jobs(&jobs, UnixSeconds::new(0), &options("philly")).unwrap().tasks;
    let run = |class| {
        let of = listed.iter().filter(|task| task.class == class);
        of.map(|task| i128::from(task.gpus().milli()) * i128::from(task.duration_s.unwrap())).sum::<i128>()
    };
    let held = |field: &str| of_hours(&pool["gpu_hours"][field]);
    assert_eq!(held("hp"), run(TaskClass::Hp), "HP tasks run once, from begin to end");
    let spot = held("guaranteed") + held("at_will") - held("lost_to_evictions");
    assert_eq!(spot, run(TaskClass::Spot), "what ran beyond the job list was lost");
    assert_eq!(organizations.iter().map(|one| of_hours(&one["gpu_hours"]["hp"])).sum::<i128>(), held("hp"));

    let rest = |field: &str| of_hours(&pool["pool_gpu_hours"][field]);
    let tasks = held("hp") + held("guaranteed") + held("at_will") + held("handover");
    assert_eq!(tasks + rest("idle_offered") + rest("idle_reserved") + rest("drained"), rest("capacity"));
    let charged = pool["charges"]["hp"].as_f64().unwrap() - 2.0 * pool["gpu_hours"]["hp"].as_f64().unwrap();
    assert!(charged.abs() < 1e-3, "{pool}");
}
