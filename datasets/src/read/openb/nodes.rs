//! `openb_node_list_*.csv`.

use super::Listed;
use crate::read::names::Names;
use crate::read::table::{Extra, Row, Table};
use crate::read::{ReadError, RowFault};
use std::path::Path;
use vocab::{GpuModel, NodeId};

const COLUMNS: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];

/// A machine of the trace; some have no GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenbNode {
    /// Name of the node.
    pub id: NodeId,
    /// Thousandths of a CPU.
    pub cpu_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Whole GPUs.
    pub gpus: u32,
    /// `None` exactly where there is no GPU.
    pub model: Option<GpuModel>,
}

/// Reads `sn,cpu_milli,memory_mib,gpu,model`, columns in any order. A node that stands there twice is counted once.
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or a row is bad.
pub fn nodes(file: &Path) -> Result<Listed<OpenbNode>, ReadError> {
    let (mut items, mut names) = (Vec::new(), Names::default());
    Table::open(file, &COLUMNS, Extra::Refused)?.each_good(|row| {
        let node = parse(row)?;
        if names.is_new("sn", node.id.as_str(), row)? {
            items.push(node);
        }
        Ok(())
    })?;
    if items.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok(Listed { items, equal_duplicates: names.equal_duplicates })
}

fn parse(row: &Row<'_>) -> Result<OpenbNode, RowFault> {
    let gpus = row.within("gpu", 0, u64::from(u32::MAX))?;
    let model = row.given("model").map(|_| row.name("model", GpuModel::parse)).transpose()?;
    if model.is_some() != (gpus > 0) {
        return Err(RowFault::ModelOfNode { gpus, model: row.text("model").to_owned() });
    }
    Ok(OpenbNode {
        id: row.name("sn", NodeId::parse)?,
        cpu_milli: row.within("cpu_milli", 0, u64::from(u32::MAX))?,
        memory_mib: row.within("memory_mib", 0, u64::from(u32::MAX))?,
        gpus: gpus as u32,
        model,
    })
}
