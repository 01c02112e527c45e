//! Topology of the kernel below `/sys`.

use super::TopologyReadError;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use vocab::{List, NumaNode};

/// A machine without its NVLinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Without GPUs as yet; by their numbers.
    pub numa_nodes: Vec<NumaNode>,
    /// The NUMA node of each NVIDIA GPU, by the GPUs' addresses; none where the kernel does not know.
    pub gpu_numa: Vec<Option<u16>>,
}

/// NVIDIA among the makers of PCI devices.
const NVIDIA: &str = "0x10de";
/// Display controllers: with a screen, and for arithmetic alone.
const GPU_CLASSES: [&str; 2] = ["0x0300", "0x0302"];

/// Reads a machine from its `/sys`, or a copy of it.
///
/// # Errors
/// A file is missing, or is not as the kernel writes it.
pub fn machine(sys: &Path) -> Result<Machine, TopologyReadError> {
    let nodes = sys.join("devices/system/node");
    let mut numa_nodes = Vec::new();
    for (number, folder) in numbered(&nodes, "node")? {
        let path = folder.join("cpulist");
        let cores = List::parse(&text(&path)?).map_err(|fault| TopologyReadError::List { path, fault })?;
        let socket = match cores.numbers().next() {
            None => 0,
            Some(core) => number_in(&sys.join(format!("devices/system/cpu/cpu{core}/topology/physical_package_id")))?,
        };
        numa_nodes.push(NumaNode { number, socket, gpus: 0, cores });
    }
    if numa_nodes.is_empty() {
        return Err(TopologyReadError::NoNuma { path: nodes });
    }
    Ok(Machine { numa_nodes, gpu_numa: gpus(&sys.join("bus/pci/devices"))? })
}

/// By their addresses, which sort as text: `0000:17:00.0`.
fn gpus(devices: &Path) -> Result<Vec<Option<u16>>, TopologyReadError> {
    let mut found = Vec::new();
    // A machine without PCI has no such folder.
    if !devices.is_dir() {
        return Ok(found);
    }
    for device in entries(devices)? {
        let is = |file: &str, wanted: &[&str]| {
            fs::read_to_string(device.join(file)).is_ok_and(|text| wanted.iter().any(|one| text.starts_with(one)))
        };
        if is("vendor", &[NVIDIA]) && is("class", &GPU_CLASSES) {
            // −1 where the kernel does not know.
            let numa: i32 = number_in(&device.join("numa_node"))?;
            found.push(u16::try_from(numa).ok());
        }
    }
    Ok(found)
}

/// Folders such as node0, by their numbers.
fn numbered(folder: &Path, prefix: &str) -> Result<Vec<(u16, PathBuf)>, TopologyReadError> {
    let number = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()?;
        Some((number, path))
    };
    let mut all: Vec<(u16, PathBuf)> = entries(folder)?.into_iter().filter_map(number).collect();
    all.sort_unstable();
    Ok(all)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, TopologyReadError> {
    let refused = |fault| TopologyReadError::Read { path: folder.to_owned(), fault };
    let listed = fs::read_dir(folder).map_err(refused)?;
    let mut all = listed.map(|one| one.map(|one| one.path())).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    all.sort_unstable();
    Ok(all)
}

fn text(path: &Path) -> Result<String, TopologyReadError> {
    fs::read_to_string(path).map_err(|fault| TopologyReadError::Read { path: path.to_owned(), fault })
}

fn number_in<T: FromStr>(path: &Path) -> Result<T, TopologyReadError> {
    let text = text(path)?;
    let refused = |_| TopologyReadError::Number { path: path.to_owned(), text: text.trim().to_owned() };
    text.trim().parse().map_err(refused)
}
