//! `quota-service topology`: how the GPUs and cores of this machine lie, as `PUT /v1/nodes/{id}` takes it.

use crate::args::TopologyFlags;
use command_line::{Exit, Failure, print_json, print_text, say, table};
use datasets::topology::{TopologyReadError, combined, machine, nvidia_smi};
use vocab::{List, Topology};
use wire::TopologyBody;

/// Reads the machine and prints it.
///
/// # Errors
/// A file cannot be read, or what it says is no topology.
pub fn show(flags: &TopologyFlags, json: bool) -> Result<(), Failure> {
    let topology = read(flags).map_err(|fault| Failure::new(Exit::DataInvalid, fault))?;
    if json {
        print_json(&TopologyBody::from(&topology));
        return Ok(());
    }
    let row = |numa: &vocab::NumaNode| {
        let gpus = List::of_mask(numa.gpus).to_string();
        vec![numa.number.to_string(), numa.socket.to_string(), gpus, numa.cores.to_string()]
    };
    let rows: Vec<_> = topology.numa_nodes().iter().map(row).collect();
    print_text(&table(&["NUMA node", "socket", "GPUs", "cores"], &rows));
    for island in topology.islands() {
        say(format_args!("NVLink: GPUs {}", List::of_mask(*island)));
    }
    Ok(())
}

fn read(flags: &TopologyFlags) -> Result<Topology, TopologyReadError> {
    let gpus = match &flags.nvidia_smi {
        None => None,
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|fault| TopologyReadError::Read { path: path.clone(), fault })?;
            Some(nvidia_smi(&text)?)
        }
    };
    combined(&machine(&flags.sysfs)?, gpus.as_deref())
}
