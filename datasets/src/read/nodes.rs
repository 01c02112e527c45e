//! Node lists of the GFS trace.

use super::names::Names;
use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, RowFault, SkippedRow};
use std::collections::BTreeMap;
use std::path::Path;
use vocab::{AmountError, CapacityRow, HourStart, MilliGpus, Node, NodeId, PoolId};

/// The header of the published list.
pub const GFS_NODE_COLUMNS: [&str; 4] = ["node_name", "gpu_model", "gpu_capacity_num", "cpu_num"];

/// A node and the row that it stands at.
pub type NodeRow = (Node, u64);

/// Reads `node_name,gpu_model,gpu_capacity_num,cpu_num`, columns in any order. A node that stands there twice is counted
/// once.
///
/// # Errors
/// The file cannot be read, a column is missing, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn gfs_nodes(file: &Path, options: &ReadOptions) -> Result<(Vec<NodeRow>, Vec<SkippedRow>), ReadError> {
    let (mut nodes, mut skipped, mut names) = (Vec::new(), Vec::new(), Names::default());
    let mut table = Table::open(file, &GFS_NODE_COLUMNS, Extra::Ignored)?;
    table.each(options, &mut skipped, |row| {
        let node = parse(row, options)?;
        if names.is_new("node_name", node.id.as_str(), row)? {
            nodes.push((node, row.number()));
        }
        Ok(())
    })?;
    if nodes.is_empty() && skipped.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok((nodes, skipped))
}

fn parse(row: &Row<'_>, options: &ReadOptions) -> Result<Node, RowFault> {
    let gpus = row.integer("gpu_capacity_num", 0)?;
    let vcpus = row.integer("cpu_num", 0)?;
    let too_large =
        |column: &str| RowFault::Integer { column: column.to_owned(), text: row.text(column).to_owned(), least: 0 };
    Ok(Node {
        id: row.name("node_name", NodeId::parse)?,
        pool: PoolId { cluster: options.cluster.clone(), gpu_model: row.name("gpu_model", vocab::GpuModel::parse)? },
        gpus: u32::try_from(gpus).map_err(|_| too_large("gpu_capacity_num"))?,
        cpu_milli: Some(
            u64::try_from(vcpus).ok().and_then(|n| n.checked_mul(1_000)).ok_or_else(|| too_large("cpu_num"))?,
        ),
        memory_mib: None,
        drains: false,
        topology: None,
    })
}

/// The capacity of each pool of a node list, holding from `from` on.
///
/// # Errors
/// The nodes of a pool sum to more than an amount of GPUs holds.
pub fn capacity_by_model(nodes: &[NodeRow], from: HourStart) -> Result<Vec<CapacityRow>, AmountError> {
    let mut gpus: BTreeMap<PoolId, u64> = BTreeMap::new();
    for (node, _) in nodes {
        *gpus.entry(node.pool.clone()).or_default() += u64::from(node.gpus);
    }
    let row = |(pool, gpus): (PoolId, u64)| {
        Ok(CapacityRow { pool, from, capacity: MilliGpus::stated(MilliGpus::from_milli(gpus.saturating_mul(1_000)))? })
    };
    gpus.into_iter().map(row).collect()
}
