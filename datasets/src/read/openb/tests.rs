//! Nodes and pods on small pictures of their formats, and on what can be wrong with them.

use super::*;
use crate::read::tests::read_as;
use vocab::MilliGpus;

fn listed_nodes(rows: &str) -> Result<Listed<OpenbNode>, String> {
    read_as("nodes.csv", format!("sn,cpu_milli,memory_mib,gpu,model\n{rows}").as_bytes(), nodes)
}

fn listed_pods(text: &str) -> Result<Listed<OpenbPod>, String> {
    read_as("pods.csv", text.as_bytes(), pods)
}

/// Pods of the eleven columns.
fn full(rows: &str) -> Result<Listed<OpenbPod>, String> {
    let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
                  scheduled_time\n";
    listed_pods(&format!("{header}{rows}"))
}

fn fault(row: &str) -> String {
    full(row).unwrap_err().replace("pods.csv, row 2: ", "")
}

#[test]
fn a_node_without_gpus_has_no_model() {
    let listed = listed_nodes("n0,32000,262144,0,\nn1,64000,262144,2,P100\n").unwrap();
    let facts = |node: &OpenbNode| (node.gpus, node.model.as_ref().map(ToString::to_string), node.cpu_milli);
    assert_eq!(
        listed.items.iter().map(facts).collect::<Vec<_>>(),
        [(0, None, 32_000), (2, Some("P100".into()), 64_000)]
    );
    assert!(
        listed_nodes("n0,1,1,8,\n")
            .unwrap_err()
            .contains("row 2: gpu 8 with model \"\": a node with GPUs needs a model")
    );
    assert!(listed_nodes("n0,1,1,0,T4\n").unwrap_err().contains("gpu 0 with model \"T4\""));
    assert!(listed_nodes("n0,1,1,0,nan\n").is_ok(), "as a data frame shows what is empty");
}

#[test]
fn a_node_or_a_pod_that_stands_there_twice_is_one_and_with_other_fields_refused() {
    let listed = listed_nodes("n0,1,1,0,\nn0,1,1,0,\n").unwrap();
    assert_eq!((listed.items.len(), listed.equal_duplicates), (1, 1));
    assert_eq!(
        listed_nodes("n0,1,1,0,\nn0,2,1,0,\n").unwrap_err(),
        "nodes.csv, row 3: column sn: n0 is already in row 2 with other fields: keep one of them"
    );
    assert!(
        full("p,1,1,0,0,,,,,,\np,1,1,1,5,,,,,,\n").unwrap_err().contains("row 3: column name: p is already in row 2")
    );
    assert_eq!(listed_nodes("").unwrap_err(), "nodes.csv: no rows");
}

#[test]
fn a_pod_asks_for_no_gpu_a_part_of_one_or_whole_ones() {
    let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\nb,1,1,1,460\nc,1,1,1,1000\nd,1,1,8,1000\n";
    let asks: Vec<_> = listed_pods(text).unwrap().items.iter().map(|pod| (pod.gpus, pod.gpus.gpus().milli())).collect();
    let share = GpuAsk::Share(MilliGpus::from_milli(460).unwrap());
    assert_eq!(asks, [(GpuAsk::None, 0), (share, 460), (GpuAsk::Whole(1), 1_000), (GpuAsk::Whole(8), 8_000)]);
}

#[test]
fn the_other_columns_may_be_there_in_any_order_or_not() {
    let few = &listed_pods("gpu_milli,num_gpu,cpu_milli,name\n1000,1,6000,p\n").unwrap().items[0];
    assert_eq!((few.memory_mib, few.qos, few.phase, few.created_s, few.models.len()), (None, None, None, None, 0));
    let all = &full("p,6000,12288,1,460,V100M16|V100M32|V100M32,LS,Running,5,20.0,7\n").unwrap().items[0];
    assert_eq!(
        (all.memory_mib, all.qos, all.phase),
        (Some(12_288), Some(Qos::LatencySensitive), Some(PodPhase::Running))
    );
    assert_eq!((all.created_s, all.scheduled_s, all.deleted_s), (Some(5), Some(7), Some(20)));
    assert_eq!(all.models.iter().map(ToString::to_string).collect::<Vec<_>>(), ["V100M16", "V100M32"]);
    let pending = &full("p,6000,12288,1,460,nan,BE,Pending,5,20,\n").unwrap().items[0];
    assert_eq!((pending.phase, pending.scheduled_s, pending.models.len()), (Some(PodPhase::Pending), None, 0));
}

#[test]
fn an_ask_that_no_gpu_can_meet_is_refused_with_what_to_write() {
    for (row, start) in [
        (
            "p,1,1,2,500,,,,,,",
            "num_gpu 2 with gpu_milli 500: write 0 and 0 for no GPU, 1 and 1 to 1000 for a part of one",
        ),
        ("p,1,1,0,500,,,,,,", "num_gpu 0 with gpu_milli 500: write"),
        ("p,1,1,1,0,,,,,,", "num_gpu 1 with gpu_milli 0: write"),
        ("p,1,1,1,1001,,,,,,", "column gpu_milli: \"1001\" is not a whole number from 0 to 1000"),
        ("p,1,1,-1,0,,,,,,", "column num_gpu: \"-1\" is not a whole number from 0 to 4294967295"),
        ("p,,1,1,1000,,,,,,", "column cpu_milli: \"\" is not a whole number"),
        ("p,1,1,1,1000,T4||P100,,,,,", "column gpu_spec: the GPU model is empty"),
    ] {
        assert!(fault(row).starts_with(start), "{row}: {}", fault(row));
    }
}

#[test]
fn an_unknown_qos_phase_or_column_is_refused_with_those_that_there_are() {
    assert_eq!(fault("p,1,1,0,0,,ls,,,,"), "column qos: unknown value \"ls\": expected LS, BE, Burstable, Guaranteed");
    assert_eq!(
        fault("p,1,1,0,0,,,Done,,,"),
        "column pod_phase: unknown value \"Done\": expected Pending, Running, Succeeded, Failed"
    );
    let misspelt = listed_pods("name,cpu_milli,num_gpu,gpu_milli,gpu_spce\n").unwrap_err();
    assert_eq!(
        misspelt,
        "pods.csv, row 1: column \"gpu_spce\" is unknown; the header must be name,cpu_milli,num_gpu,gpu_milli and may \
         hold memory_mib,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    );
}

#[test]
fn a_pod_that_ends_before_it_begins_is_refused() {
    let expected = "column deletion_time: 4 s is before creation_time, 5 s";
    assert_eq!(fault("p,1,1,0,0,,,,5,4,"), expected);
    assert_eq!(fault("p,1,1,0,0,,,,5,9,10"), "column deletion_time: 9 s is before scheduled_time, 10 s");
    assert!(full("p,1,1,0,0,,,,5,5,5\n").is_ok(), "one second may hold all three");
}
