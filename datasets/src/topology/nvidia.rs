//! The matrix of `nvidia-smi topo -m`: columns between tabs, links as `NV12` for twelve NVLinks.

use super::TopologyReadError;

/// A GPU as the matrix shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuRow {
    /// GPUs to which it has NVLinks of its own, one bit for each.
    pub linked: u64,
    /// None where it shows N/A.
    pub numa: Option<u16>,
}

/// Reads the matrix; lines of network cards and the legend are passed over.
///
/// # Errors
/// There is no matrix, or a row of it is cut off.
pub fn parse(text: &str) -> Result<Vec<GpuRow>, TopologyReadError> {
    let text = plain(text);
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| !line.trim_start().starts_with("GPU0"));
    let (_, header) = lines.next().ok_or(TopologyReadError::NoMatrix)?;
    let header = cells(header);
    let columns: Vec<usize> = (0..header.len()).filter(|at| gpu_number(header[*at]).is_some()).collect();
    let numa_column = header.iter().position(|name| *name == "NUMA Affinity");
    let mut rows = Vec::new();
    for (number, line) in lines {
        let cells = cells(line);
        let Some(gpu) = cells.first().and_then(|name| gpu_number(name)) else { continue };
        let refused = |what: String| TopologyReadError::Matrix { line: number + 1, what };
        if gpu != rows.len() {
            return Err(refused(format!("GPU{gpu} comes where GPU{} should", rows.len())));
        }
        let mut linked = 0_u64;
        for (other, column) in columns.iter().enumerate() {
            let cell = cells.get(*column).ok_or_else(|| refused(format!("GPU{gpu} has no column for GPU{other}")))?;
            let is_link = cell.strip_prefix("NV").is_some_and(|links| links.parse::<u32>().is_ok());
            let bit = 1_u64.checked_shl(other as u32).ok_or_else(|| refused("more than 64 GPUs".to_owned()))?;
            linked |= if is_link { bit } else { 0 };
        }
        let numa = numa_column.and_then(|column| cells.get(column)).and_then(|cell| cell.parse().ok());
        rows.push(GpuRow { linked, numa });
    }
    if rows.len() != columns.len() {
        let what = format!("{} rows of GPUs, and {} columns", rows.len(), columns.len());
        return Err(TopologyReadError::Matrix { line: text.lines().count(), what });
    }
    Ok(rows)
}

/// GPUs that reach each other over NVLinks, over others if need be: one bit for each GPU.
pub(super) fn islands(gpus: &[GpuRow]) -> Vec<u64> {
    let mut islands: Vec<u64> = Vec::new();
    for (gpu, row) in gpus.iter().enumerate().filter(|(_, row)| row.linked != 0) {
        let mut island = row.linked | 1 << gpu;
        islands.retain(|known| {
            let is_apart = known & island == 0;
            island |= if is_apart { 0 } else { *known };
            is_apart
        });
        islands.push(island);
    }
    islands
}

/// Without the colours of a terminal.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        all + &part[end..]
    })
}

/// The name of the row comes first; the header has none there.
fn cells(line: &str) -> Vec<&str> {
    line.split('\t').map(str::trim).collect()
}

fn gpu_number(name: &str) -> Option<usize> {
    name.strip_prefix("GPU")?.parse().ok()
}
