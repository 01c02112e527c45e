//! The Philly jobs, as Microsoft recorded them and in the format of the GFS trace.

use super::options;
use datasets::ReadOptions;
use datasets::read::{self, Jobs};
use std::collections::BTreeMap;
use tests::public_data;
use vocab::{MilliGpus, Task, TaskClass, TaskId, UnixSeconds};

/// 2017-10-02 16:00 UTC; any other would do.
const EPOCH: UnixSeconds = UnixSeconds::new(1_506_960_000);

#[test]
fn the_philly_jobs_ask_for_775_gpus_on_average() {
    let Some(folder) = public_data("the_philly_jobs_ask_for_775_gpus_on_average", "philly-gfs") else { return };
    let jobs = read::gfs_jobs(&folder.join("job_info_df.csv"), EPOCH, &options("philly")).unwrap();
    assert_eq!(jobs.tasks.len(), 30_756);
    let pool: Vec<_> = jobs.report.rows.iter().filter(|row| row.series.is_pool_peak()).collect();
    let peaks: Vec<f64> = pool.iter().take(14 * 24).map(|row| row.demand.as_gpus()).collect();
    let mean = peaks.iter().sum::<f64>() / peaks.len() as f64;
    // The load is the mean over time, 775; hourly peaks lie above it.
    assert!((775.0..860.0).contains(&mean), "{mean}");
    let (nodes, _) = read::gfs_nodes(&folder.join("node_info_df_1280.csv"), &options("philly")).unwrap();
    assert_eq!(read::capacity_by_model(&nodes, pool[0].hour).unwrap()[0].capacity, MilliGpus::from_gpus(1_280));
}

/// The two readings of the same jobs.
fn both(raw: &std::path::Path, gfs: &std::path::Path) -> (Jobs, Jobs) {
    let options: ReadOptions = options("philly");
    (read::philly(raw, EPOCH, &options).unwrap(), read::gfs_jobs(gfs, EPOCH, &options).unwrap())
}

/// The jobs by their number, which the GFS format writes with `philly-` before it.
fn by_number(tasks: &[Task]) -> BTreeMap<u32, Task> {
    let number = |task: &Task| task.id.as_str().trim_start_matches("philly-").parse().unwrap();
    let mut by_number: BTreeMap<u32, Task> = tasks.iter().map(|task| (number(task), task.clone())).collect();
    for task in by_number.values_mut() {
        task.id = TaskId::parse("job").unwrap();
        // The Philly file says nothing of CPU.
        task.cpu_milli_per_pod = 0;
    }
    by_number
}

#[test]
fn the_philly_file_and_its_gfs_form_are_the_same_jobs_and_the_same_demand() {
    let name = "the_philly_file_and_its_gfs_form_are_the_same_jobs_and_the_same_demand";
    let Some(raw) = public_data(name, "philly/trace_job_Philly_MIX1.csv") else { return };
    let (raw, gfs) = both(&raw, &raw.with_file_name("../philly-gfs/job_info_df.csv"));
    let of = |class| raw.tasks.iter().filter(|task| task.class == class).count();
    assert_eq!((of(TaskClass::Hp), of(TaskClass::Spot)), (21_600, 9_156));
    assert_eq!((raw.report.jobs_without_gpus, raw.report.equal_duplicates), (184, 0));
    assert!(by_number(&raw.tasks) == by_number(&gfs.tasks), "every field of every job but its name and CPU");
    assert_eq!(by_number(&raw.tasks).len(), 30_756);
    assert_eq!(raw.report.rows, gfs.report.rows);
    let peaks = raw.report.rows.iter().filter(|row| row.series.is_pool_peak()).map(|row| row.demand);
    let peaks: Vec<_> = peaks.collect();
    // pandas, minute by minute, from the file: the peak of all, in hour 232, and the sum of the hourly peaks.
    let all = peaks.iter().try_fold(MilliGpus::ZERO, |sum, peak| sum.checked_add(*peak));
    assert_eq!((peaks.len(), peaks[232]), (336, MilliGpus::from_gpus(1_341)));
    assert_eq!((peaks.iter().max(), all), (Some(&peaks[232]), Some(MilliGpus::from_gpus(261_373))));
}

/// The figures of one policy on 1,280 GPUs.
fn played(folder: &std::path::Path, policy: &str, more: &[&str]) -> serde_json::Value {
    let (nodes, jobs) = (folder.join("node_info_df_1280.csv"), folder.join("job_info_df.csv"));
    let (nodes, jobs) = (nodes.to_str().unwrap(), jobs.to_str().unwrap());
    // Under `kept` the learned state moves with every move of a task; this is about elasticity alone.
    let trace =
        ["--nodes", nodes, "--jobs", jobs, "--policy", policy, "--predictor", "live", "--promise", "peak", "--json"];
    tests::program("simulate", &[&trace[..], more].concat()).json()[policy].clone()
}

#[test]
fn elastic_spot_is_done_sooner_and_breaks_fewer_promises_and_hp_is_no_worse() {
    let name = "elastic_spot_is_done_sooner_and_breaks_fewer_promises_and_hp_is_no_worse";
    let Some(folder) = public_data(name, "philly-gfs") else { return };
    let (plain, elastic) = (played(&folder, "gfs", &[]), played(&folder, "gfs", &["--elastic", "1"]));
    let ratio = |field: &str| elastic[field].as_f64().unwrap() / plain[field].as_f64().unwrap();
    assert!(ratio("spot_jct_mean_s") < 0.6, "{plain} {elastic}");
    assert!(ratio("guarantee_eviction_rate") < 0.9 && ratio("eviction_rate") < 0.5, "{plain} {elastic}");
    // Its wait is 4 s on average, and moves by up to 0.7 s with any other placement: of a JCT of 15,562 s that is nothing.
    let waits = [&plain, &elastic].map(|one| one["hp_queue_mean_s"].as_f64().unwrap());
    assert!((ratio("hp_jct_mean_s") - 1.0).abs() < 1e-3 && waits[1] - waits[0] < 1.0, "{plain} {elastic}");
    assert_eq!((&plain["finished"], &elastic["finished"]), (&30_756.into(), &30_756.into()));
}
