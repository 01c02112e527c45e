use super::*;

fn fault(text: &str) -> String {
    Topology::parse(text).unwrap_err().to_string()
}

#[test]
fn both_servers_of_the_paper_are_known_and_read_back_as_they_were_written() {
    let rtx = Topology::preset("rtx4090-8").unwrap();
    assert_eq!((rtx.gpus(), rtx.numa_nodes().len(), rtx.parts(Domain::Socket)), (8, 8, &[0x0f, 0xf0][..]));
    assert_eq!(rtx.parts(Domain::NvlinkIsland).len(), 8, "no NVLink: each GPU is alone");
    let a100 = Topology::preset("a100-8").unwrap();
    assert_eq!(
        a100.to_string(),
        "numa 0 socket 0 gpus 0-3 cores 0-63; numa 1 socket 1 gpus 4-7 cores 64-127; nvlink 0-7"
    );
    for one in [rtx, a100] {
        assert_eq!(Topology::parse(&one.to_string()), Ok(one));
    }
    assert!(Topology::preset("h100").unwrap_err().to_string().ends_with("expected one of rtx4090-8, a100-8"));
}

#[test]
fn cores_are_shared_out_among_the_gpus_of_a_numa_node_with_their_hyperthreads() {
    let text = "numa 0 socket 0 gpus 0-1 cores 0-7,16-23; numa 1 socket 1 gpus 2-3 cores 8-15,24-31";
    let one = Topology::parse(text).unwrap();
    assert_eq!(one.cores_of(0b0001).to_string(), "0-3,16-19");
    assert_eq!(one.cores_of(0b0110).to_string(), "4-11,20-27");
    assert_eq!((one.numa_of(0b0110), one.sockets_of(0b0011)), (vec![0, 1], vec![0]));
    assert_eq!(one.cores_of(0b1111).numbers().count(), 32);
}

#[test]
fn a_smaller_node_has_the_first_gpus() {
    let two = Topology::preset("a100-8").unwrap().first(2).unwrap();
    assert_eq!((two.gpus(), two.parts(Domain::Numa), two.islands()), (2, &[0b11][..], &[0b11][..]));
    assert_eq!(two.first(3), Err(TopologyError::OtherSize { have: 2, gpus: 3 }));
}

#[test]
fn what_is_no_topology_is_named() {
    for (text, expected) in [
        ("numa 0 socket 0 gpus - cores 0-3", "the topology has no GPU"),
        ("numa 0 socket 0 gpus 1 cores 0-3", "GPU 0 is in no NUMA node, but GPU 1 is"),
        ("numa 0 socket 0 gpus 0 cores 0; numa 1 socket 0 gpus 0-1 cores 1", "GPU 0 is in two NUMA nodes, 0 and 1"),
        ("numa 0 socket 0 gpus 0 cores 0-4; numa 1 socket 0 gpus 1 cores 4-5", "core 4 is in two NUMA nodes"),
        ("numa 0 socket 0 gpus 0 cores 0; numa 0 socket 0 gpus 1 cores 1", "NUMA node 0 occurs twice"),
        ("numa 0 socket 0 gpus 0-1 cores 0; nvlink 0-2", "GPU 2 of an NVLink island is in no NUMA node"),
        ("numa 0 socket 0 gpus 0-2 cores 0; nvlink 0-1; nvlink 1-2", "GPU 1 is in two NVLink islands"),
        ("numa 0 socket 0 gpus 0-2 cores 0; nvlink 1", "at least two GPUs"),
        ("numa 0 socket 0 gpus 64 cores 0", "GPU 64 exceeds the limit of 64"),
        ("numa 0 socket 0 gpus 3-1 cores 0", "\"3-1\" is not a list of numbers"),
        ("numa 0 socket", "is not part of a topology"),
    ] {
        assert!(fault(text).contains(expected), "{text}: {}", fault(text));
    }
}

#[test]
fn an_affinity_is_best_effort_unless_it_says_more() {
    for text in ["numa:guaranteed", "socket:best_effort", "nvlink-island:guaranteed"] {
        assert_eq!(Affinity::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Affinity::parse("socket").unwrap().strictness, Strictness::BestEffort);
    assert_eq!((Affinity::parse("rack"), Affinity::parse("numa:maybe")), (None, None));
}
