use super::*;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use vocab::Domain;

const LEGEND: &str = "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes\n  NV#  = Connection traversing a bonded set of # NVLinks\n";

/// A matrix of eight GPUs as nvidia-smi prints it: a network card after them, columns of cores and NUMA nodes at the end.
fn matrix(link: impl Fn(usize, usize) -> &'static str, end: impl Fn(usize) -> String) -> String {
    let header: Vec<String> = (0..8).map(|gpu| format!("\u{1b}[4mGPU{gpu}")).collect();
    let mut text = format!("\t{}\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n", header.join("\t"));
    for gpu in 0..8 {
        let cells: Vec<&str> = (0..8).map(|other| if gpu == other { " X " } else { link(gpu, other) }).collect();
        let _ = writeln!(text, "GPU{gpu}\t{}\tSYS\t{}\t\tN/A", cells.join("\t"), end(gpu));
    }
    text + "NIC0\tSYS\tSYS\tSYS\tSYS\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t\n" + LEGEND
}

/// A folder like /sys: NUMA nodes with their cores and sockets, and the NUMA node of each GPU.
fn sys(nodes: &[(&str, u16)], gpus: &[i32]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: String, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    };
    for (number, (cores, socket)) in nodes.iter().enumerate() {
        write(format!("devices/system/node/node{number}/cpulist"), cores);
        for core in vocab::List::parse(cores).unwrap().numbers() {
            write(format!("devices/system/cpu/cpu{core}/topology/physical_package_id"), &socket.to_string());
        }
    }
    write("devices/system/node/online".to_owned(), "0-1");
    for (number, numa) in gpus.iter().enumerate() {
        let device = format!("bus/pci/devices/0000:{:02x}:00.0", 0x17 + 16 * number);
        write(format!("{device}/vendor"), "0x10de");
        write(format!("{device}/class"), if number % 2 == 0 { "0x030200" } else { "0x030000" });
        write(format!("{device}/numa_node"), &numa.to_string());
    }
    write("bus/pci/devices/0000:00:1f.0/vendor".to_owned(), "0x8086");
    write("bus/pci/devices/0000:18:00.1/vendor".to_owned(), "0x10de");
    write("bus/pci/devices/0000:18:00.1/class".to_owned(), "0x040300");
    folder
}

fn of(folder: &Path, smi: Option<&str>) -> Result<Topology, TopologyReadError> {
    let gpus = smi.map(nvidia_smi).transpose()?;
    combined(&machine(folder)?, gpus.as_deref())
}

#[test]
fn a_server_with_a_switch_has_one_island_and_its_gpus_where_nvidia_smi_says() {
    let folder = sys(&[("0-31,64-95", 0), ("32-63,96-127", 1)], &[]);
    let smi =
        matrix(|_, _| "NV12", |gpu| format!("{}\t{}", if gpu < 4 { "0-31,64-95" } else { "32-63,96-127" }, gpu / 4));
    let read = of(folder.path(), Some(&smi)).unwrap();
    let text = "numa 0 socket 0 gpus 0-3 cores 0-31,64-95; numa 1 socket 1 gpus 4-7 cores 32-63,96-127; nvlink 0-7";
    assert_eq!(read.to_string(), text);
}

#[test]
fn a_server_without_nvlink_has_its_gpus_where_sysfs_says_if_nvidia_smi_does_not() {
    let cores: Vec<String> = (0..8).map(|numa| format!("{}-{}", numa * 8, numa * 8 + 7)).collect();
    let nodes: Vec<(&str, u16)> =
        cores.iter().zip(0..).map(|(cores, numa): (_, u16)| (cores.as_str(), numa / 4)).collect();
    let folder = sys(&nodes, &[3, 2, 1, 0, 7, 6, 5, 4]);
    let near = |one: usize, other: usize| {
        if one / 2 == other / 2 {
            "PIX"
        } else if one / 4 == other / 4 {
            "NODE"
        } else {
            "SYS"
        }
    };
    let smi = matrix(near, |_| "0-63\tN/A".to_owned());
    let read = of(folder.path(), Some(&smi)).unwrap();
    assert_eq!((read.numa_of(0b1), read.cores_of(0b1).to_string()), (vec![3], "24-31".to_owned()), "as in the paper");
    assert_eq!((read.parts(Domain::Socket), read.islands().len()), (&[0x0f, 0xf0][..], 0));
    assert_eq!(of(folder.path(), None).unwrap(), read, "without nvidia-smi only NVLink is not known");
}

#[test]
fn bridges_make_islands_of_two_and_links_over_others_one_of_all() {
    let folder = sys(&[("0-63", 0)], &[]);
    let pairs = matrix(|one, other| if one / 2 == other / 2 { "NV4" } else { "PHB" }, |_| "0-63\tN/A".to_owned());
    assert_eq!(of(folder.path(), Some(&pairs)).unwrap().islands(), [0x03, 0x0c, 0x30, 0xc0]);
    let ring = matrix(
        |one, other| if (one + 1) % 8 == other || (other + 1) % 8 == one { "NV1" } else { "SYS" },
        |_| "0-63\t0".to_owned(),
    );
    assert_eq!(of(folder.path(), Some(&ring)).unwrap().islands(), [0xff]);
}

#[test]
fn what_is_no_machine_is_named() {
    let folder = sys(&[("0-3", 0), ("4-7", 1)], &[0, -1]);
    let refused = |smi: Option<&str>| of(folder.path(), smi).unwrap_err().to_string();
    assert_eq!(refused(None), "the NUMA node of GPU 1 is unknown: neither nvidia-smi nor sysfs contains it");
    let eight = matrix(|_, _| "SYS", |_| "0-3\t0".to_owned());
    assert!(refused(Some(&eight)).starts_with("nvidia-smi shows 8 GPUs, sysfs 2"));
    assert!(refused(Some("no GPUs")).contains("expected the output of nvidia-smi topo -m"));
    let cut = eight.replace("GPU7\tSYS", "GPX7\tSYS");
    assert!(refused(Some(&cut)).contains("7 rows of GPUs, and 8 columns"), "{}", refused(Some(&cut)));
    let short = "\tGPU0\tGPU1\nGPU0\t X \nGPU1\tSYS\t X \n";
    assert!(
        refused(Some(short)).contains("line 2 of nvidia-smi topo -m: GPU0 has no column for GPU1"),
        "{}",
        refused(Some(short))
    );
    let far = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0\t9\nGPU1\tSYS\t X \t0\t0\n";
    assert!(refused(Some(far)).contains("GPU 0 is in NUMA node 9, but the machine has no such node"));
    let missing = of(&folder.path().join("missing"), None).unwrap_err().to_string();
    assert!(missing.contains("devices/system/node"), "{missing}");
}
