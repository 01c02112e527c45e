//! How a machine says that its GPUs lie.

use crate::is_one_line;
use datasets::topology::{Machine, combined, nvidia_smi};
use vocab::{List, NumaNode, Topology};
use wire::TopologyBody;

/// Output of `nvidia-smi topo -m` on a machine with two NUMA nodes.
pub fn topology(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let rows = match nvidia_smi(text) {
        Ok(rows) => rows,
        Err(fault) => return is_one_line(&fault.to_string()),
    };
    assert!(rows.len() <= 64);
    for known in [0, rows.len(), rows.len() + 1] {
        let numa = |number: u16| NumaNode {
            number,
            socket: number,
            gpus: 0,
            cores: List::of_ranges(vec![(u32::from(number) * 32, u32::from(number) * 32 + 31)]),
        };
        let gpu_numa = (0..known).map(|gpu| Some((gpu % 2) as u16)).collect();
        let machine = Machine { numa_nodes: vec![numa(0), numa(1)], gpu_numa };
        match combined(&machine, Some(&rows)) {
            Err(fault) => is_one_line(&fault.to_string()),
            Ok(topology) => {
                assert_eq!(topology.gpus() as usize, rows.len());
                assert_eq!(Topology::parse(&topology.to_string()).as_ref(), Ok(&topology), "as it is stored");
                assert_eq!(TopologyBody::from(&topology).parse().as_ref(), Ok(&topology), "as it is sent");
            }
        }
    }
}
