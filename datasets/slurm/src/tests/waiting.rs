//! GPUs of jobs that wait.

use super::*;

/// As Slurm 22.05.8 prints `-n28 --ntasks-per-node=4 --gres=gpu:a100:2`: it requests the GPUs of one node, and allocates those of seven.
#[test]
fn a_waiting_job_asks_for_gpus_on_every_node_that_its_tasks_need() {
    let mut document: serde_json::Value = serde_json::from_str(&fixture("squeue-v0.0.38")).unwrap();
    for job in document["jobs"].as_array_mut().unwrap() {
        let nodes = match job["job_id"].as_u64() {
            Some(25) => 7,
            Some(29) => 2,
            _ => continue,
        };
        job["node_count"] = nodes.into();
    }
    let (queue, _) = Queue::read("squeue.json", document.to_string().as_bytes()).unwrap();
    let requested = |id: u32| queue.jobs.iter().find(|job| job.id == id).unwrap().requested.clone();
    assert_eq!((requested(25).total, requested(25).of_type("a100")), (7, 7));
    assert_eq!(requested(29).total, 16, "eight on each of two nodes, as it says itself");
}
