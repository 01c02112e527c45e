//! Power of GPUs and CPU: a table that a user writes.

use super::names::Names;
use super::table::{Extra, Row, Table};
use super::{ReadError, RowFault};
use std::path::Path;
use vocab::GpuModel;

/// One row: a GPU of a model, or, under the name `cpu`, a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerRow {
    /// GPU model or CPU.
    pub of: Powered,
    /// Watts without load.
    pub idle_w: u32,
    /// Watts at full load.
    pub full_w: u32,
}

/// Consumer of power.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Powered {
    Gpu(GpuModel),
    /// A socket with so many cores, 16 where the file does not say.
    Cpu {
        cores: u32,
    },
}

/// The name of the row for sockets.
const CPU: &str = "cpu";
const CORES: u32 = 16;
const MOST_W: u64 = 100_000;
const MOST_CORES: u64 = 4_096;

/// Reads `model,idle_w,full_w`, and `cores` for the row `cpu`, columns in any order.
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or a row is bad.
pub fn power(file: &Path) -> Result<Vec<PowerRow>, ReadError> {
    let (mut rows, mut names) = (Vec::new(), Names::default());
    Table::open(file, &["model", "idle_w", "full_w"], Extra::Among(&["cores"]))?.each_good(|row| {
        let parsed = parse(row)?;
        if names.is_new("model", row.text("model"), row)? {
            rows.push(parsed);
        }
        Ok(())
    })?;
    if rows.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok(rows)
}

fn parse(row: &Row<'_>) -> Result<PowerRow, RowFault> {
    let watts = |column: &str| row.within(column, 0, MOST_W).map(|watts| watts as u32);
    let (idle_w, full_w) = (watts("idle_w")?, watts("full_w")?);
    if idle_w > full_w {
        return Err(RowFault::Watts { idle_w, full_w });
    }
    let of = match (row.text("model"), row.given("cores")) {
        (CPU, Some(_)) => Powered::Cpu { cores: row.within("cores", 1, MOST_CORES)? as u32 },
        (CPU, None) => Powered::Cpu { cores: CORES },
        (_, None) => Powered::Gpu(row.name("model", GpuModel::parse)?),
        (model, Some(_)) => return Err(RowFault::CoresOfGpu { model: model.to_owned() }),
    };
    Ok(PowerRow { of, idle_w, full_w })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::read_as;

    fn read(text: &str) -> Result<Vec<PowerRow>, String> {
        read_as("power.csv", text.as_bytes(), power)
    }

    #[test]
    fn a_table_of_power_has_gpus_and_sockets_and_a_bad_row_is_named() {
        let rows = read("model,idle_w,full_w,cores\nH800,60,700,\ncpu,20,200,32\n").unwrap();
        let gpu = PowerRow { of: Powered::Gpu(GpuModel::parse("H800").unwrap()), idle_w: 60, full_w: 700 };
        assert_eq!(rows, [gpu, PowerRow { of: Powered::Cpu { cores: 32 }, idle_w: 20, full_w: 200 }]);
        assert_eq!(read("idle_w,model,full_w\n20,cpu,200\n").unwrap()[0].of, Powered::Cpu { cores: 16 });
        for (row, expected) in [
            ("A,9,8,", "row 2: 9 W idle exceed 8 W at full load: swap them"),
            ("A,1,8,4", "row 2: A is a GPU model and has no cores: leave cores empty, or name the row cpu"),
            ("A,-1,8,", "row 2: column idle_w: \"-1\" is not a whole number from 0 to 100000"),
            ("cpu,1,8,0", "row 2: column cores: \"0\" is not a whole number from 1 to 4096"),
            ("A,1,8,\nA,1,9,", "row 3: column model: A is already in row 2 with other fields: keep one of them"),
        ] {
            assert_eq!(
                read(&format!("model,idle_w,full_w,cores\n{row}\n")).unwrap_err(),
                format!("power.csv, {expected}")
            );
        }
        assert_eq!(read("model,idle_w,full_w\n").unwrap_err(), "power.csv: no rows");
    }
}
