//! Every published file of Alibaba's GPU-sharing trace that is at hand, without a refused row. Sums are those of pandas.

use datasets::read::openb::{self, GpuAsk, Listed, OpenbPod, PodPhase, Qos};
use std::collections::BTreeMap;
use std::path::Path;
use tests::public_data;

/// GPUs by model.
fn gpus_by_model(file: &Path) -> BTreeMap<String, u32> {
    let mut gpus = BTreeMap::new();
    for node in openb::nodes(file).unwrap().items.iter().filter(|node| node.gpus > 0) {
        *gpus.entry(node.model.as_ref().unwrap().to_string()).or_default() += node.gpus;
    }
    gpus
}

#[test]
fn the_node_lists_of_openb_have_6212_gpus_of_seven_models() {
    let Some(folder) = public_data("the_node_lists_of_openb_have_6212_gpus_of_seven_models", "openb") else { return };
    let models =
        [("A10", 2), ("G2", 4_392), ("G3", 312), ("P100", 265), ("T4", 842), ("V100M16", 195), ("V100M32", 204)];
    for (name, nodes, cpu_milli) in [("all", 1_523, 125_514_000), ("gpu", 1_213, 107_018_000)] {
        let file = folder.join(format!("openb_node_list_{name}_node.csv"));
        let listed = openb::nodes(&file).unwrap();
        assert_eq!((listed.items.len(), listed.equal_duplicates), (nodes, 0));
        assert_eq!(listed.items.iter().map(|node| node.cpu_milli).sum::<u64>(), cpu_milli);
        assert_eq!(gpus_by_model(&file), models.map(|(model, gpus)| (model.to_owned(), gpus)).into());
    }
}

/// Pods, those with GPUs, those that share one, and GPUs asked for in thousandths.
fn counts(pods: &[OpenbPod]) -> (usize, usize, usize, u64) {
    let shares = pods.iter().filter(|pod| matches!(pod.gpus, GpuAsk::Share(_))).count();
    let with_gpus = pods.iter().filter(|pod| pod.gpus != GpuAsk::None).count();
    (pods.len(), with_gpus, shares, pods.iter().map(|pod| pod.gpus.gpus().milli()).sum())
}

#[test]
fn the_pod_lists_of_openb_are_read_in_each_of_their_forms() {
    let Some(folder) = public_data("the_pod_lists_of_openb_are_read_in_each_of_their_forms", "openb") else { return };
    for (name, expected) in [
        ("default", (8_152, 7_064, 3_078, 6_086_800)),
        ("gpushare40", (8_152, 7_064, 4_001, 5_641_250)),
        ("gpushare100", (8_152, 7_064, 7_064, 3_952_670)),
        ("gpuspec33", (8_152, 7_064, 3_078, 6_086_800)),
        ("multigpu20", (8_324, 7_236, 3_078, 7_086_800)),
    ] {
        let Listed { items, equal_duplicates } =
            openb::pods(&folder.join(format!("openb_pod_list_{name}.csv"))).unwrap();
        assert_eq!((counts(&items), equal_duplicates), (expected, 0), "{name}");
    }
}

#[test]
fn the_pods_of_openb_have_classes_phases_times_and_models() {
    let name = "the_pods_of_openb_have_classes_phases_times_and_models";
    let Some(file) = public_data(name, "openb/openb_pod_list_gpuspec33.csv") else { return };
    let pods = openb::pods(&file).unwrap().items;
    let of = |wanted: fn(&OpenbPod) -> bool| pods.iter().filter(|pod| wanted(pod)).count();
    assert_eq!(
        (of(|pod| pod.qos == Some(Qos::LatencySensitive)), of(|pod| pod.qos == Some(Qos::BestEffort))),
        (4_647, 3_398)
    );
    assert_eq!((of(|pod| pod.qos == Some(Qos::Burstable)), of(|pod| pod.qos == Some(Qos::Guaranteed))), (100, 7));
    assert_eq!(of(|pod| pod.phase == Some(PodPhase::Pending) && pod.scheduled_s.is_none()), 897);
    assert_eq!(of(|pod| pod.scheduled_s.is_none() || pod.created_s.is_none() || pod.deleted_s.is_none()), 897);
    assert_eq!((of(|pod| !pod.models.is_empty()), of(|pod| pod.models.len() > 1)), (2_388, 378));
    // 25 pods name V100M32 twice.
    assert_eq!((of(|pod| pod.models.len() == 5), of(|pod| pod.models.len() == 6)), (63, 3));
    assert_eq!(pods.iter().filter_map(|pod| pod.deleted_s).max(), Some(12_902_960));
    let plain = openb::pods(&file.with_file_name("openb_pod_list_multigpu20.csv")).unwrap().items;
    assert!(plain.iter().all(|pod| pod.qos.is_none() && pod.created_s.is_none() && pod.memory_mib.is_some()));
}
