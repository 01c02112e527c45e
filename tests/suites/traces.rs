//! `datasets ingest` on small pictures of public traces, through the program.

use std::path::Path;
use tempfile::TempDir;
use tests::{Ran, program};

const PHILLY: &str = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
                      expect_value_list,best_effort,job_type\n\
                      0,vc_a,12,0,1,vgg16,600,14,1105,10,0,strict\n1,vc_a,0,5,1,vgg16,60,14,1105,10,0,strict\n\
                      2,vc_b,4,130,1,vgg16,60,14,1105,10,1,best\n";
const NODES: &str = "node_name,gpu_model,gpu_capacity_num,cpu_num\nn0,V100,8,64\nn1,V100,8,64\n";

/// Jobs and nodes in a folder, ingested into a fresh database there.
fn ingest(folder: &TempDir, more: &[&str]) -> Ran {
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("philly.csv"), PHILLY).unwrap();
    std::fs::write(path("nodes.csv"), NODES).unwrap();
    let database = format!("sqlite://{}", path("headroom.db"));
    let file = path("philly.csv");
    let fixed = ["ingest", "--format", "philly", &file, "--database", &database];
    program("datasets", &[&fixed, more].concat())
}

#[test]
fn philly_jobs_become_usage_and_left_out_jobs_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = folder.path().join("nodes.csv");
    let nodes = ["--gpu-model", "V100", "--nodes", nodes.to_str().unwrap()];
    let epoch = ["--epoch", "2017-10-02T00:00:00Z", "--cluster", "philly"];
    let summary = ingest(&folder, &[&epoch[..], &nodes, &["--json"]].concat()).json();
    assert_eq!((&summary["inserted"], &summary["jobs_without_gpus"]), (&6.into(), &1.into()));
    assert_eq!((&summary["capacity_rows"], &summary["clusters"][0]["name"]), (&1.into(), &"philly".into()));
    let answer = ingest(&folder, &[&epoch[..], &nodes].concat()).ok().stdout;
    assert!(answer.contains("jobs without GPUs: 1 skipped\n"), "{answer}");
    let database = format!("sqlite://{}", Path::new(folder.path()).join("headroom.db").display());
    let pool = &program("datasets", &["describe", "--json", "--database", &database]).json()[0]["pools"][0];
    assert_eq!(
        (&pool["gpu_model"], &pool["capacity_gpus"], &pool["peak_demand_gpus"]),
        (&"V100".into(), &16.0.into(), &12.0.into())
    );
}

#[test]
fn philly_jobs_need_an_epoch_and_nodes_of_their_model() {
    let folder = tempfile::tempdir().unwrap();
    let without = ingest(&folder, &[]);
    assert_eq!(without.code, 2, "{without:?}");
    assert!(without.stderr.contains("--format philly needs --epoch: its time zero"), "{without:?}");
    let nodes = folder.path().join("nodes.csv");
    let other = ingest(&folder, &["--epoch", "2017-10-02T00:00:00Z", "--nodes", nodes.to_str().unwrap()]);
    assert_eq!(other.code, 3, "{other:?}");
    assert!(other.stderr.contains("nodes.csv: the nodes have V100, the jobs ask for any: "), "{other:?}");
}
