//! `quota-service topology`: a machine as sysfs and nvidia-smi tell it, ready for `PUT /v1/nodes/{id}`.

use std::fs;
use std::path::Path;
use tests::program;

/// Two sockets with a NUMA node of four cores each.
fn sys(folder: &Path) {
    let write = |path: String, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for socket in 0..2 {
        write(format!("devices/system/node/node{socket}/cpulist"), &format!("{}-{}\n", socket * 4, socket * 4 + 3));
        write(format!("devices/system/cpu/cpu{}/topology/physical_package_id", socket * 4), &format!("{socket}\n"));
    }
}

const MATRIX: &str = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
    GPU0\t X \tNV4\t0-3\t0\t\tN/A\nGPU1\tNV4\t X \t4-7\t1\t\tN/A\n\nLegend:\n\n  X    = Self\n";

#[test]
fn a_machine_is_described_as_nodes_are_put() {
    let place = tempfile::tempdir().unwrap();
    sys(place.path());
    let matrix = place.path().join("matrix.txt");
    fs::write(&matrix, MATRIX).unwrap();
    let (sys, matrix) = (place.path().to_str().unwrap(), matrix.to_str().unwrap());
    let words = ["topology", "--sysfs", sys, "--nvidia-smi", matrix];
    let answer = program("quota-service", &[&words[..], &["--json"]].concat()).ok().json();
    assert_eq!(answer["nvlink_islands"], serde_json::json!([[0, 1]]));
    let second = serde_json::json!({ "numa_node": 1, "socket": 1, "gpus": [1], "cores": "4-7" });
    assert_eq!(answer["numa_nodes"][1], second);
    let body: wire::TopologyBody = serde_json::from_value(answer).unwrap();
    assert_eq!(body.parse().unwrap().gpus(), 2);
    let printed = program("quota-service", &words).ok().stdout;
    assert!(printed.contains("NVLink: GPUs 0-1"), "{printed}");
}

#[test]
fn a_path_without_gpus_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    sys(place.path());
    let sys = place.path().to_str().unwrap();
    let without_gpus = program("quota-service", &["topology", "--sysfs", sys]);
    assert_eq!(
        (without_gpus.code, without_gpus.stderr.contains("the topology has no GPU")),
        (3, true),
        "{}",
        without_gpus.stderr
    );
    let missing = program("quota-service", &["topology", "--sysfs", "/missing"]);
    assert_eq!(
        (missing.code, missing.stderr.contains("/missing/devices/system/node")),
        (3, true),
        "{}",
        missing.stderr
    );
}
