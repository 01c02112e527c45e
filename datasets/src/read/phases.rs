//! How long a model loads before it trains, and saves when it is paused: a small table that a user writes.

use super::ReadError;
use super::names::Names;
use super::table::{Extra, Table};
use std::path::Path;

/// The header.
pub const PHASE_COLUMNS: [&str; 4] = ["model", "load_s", "load_large_s", "save_s"];
/// A day: a phase that takes longer is a mistake.
const MOST_S: u64 = vocab::SECONDS_PER_DAY as u64;

/// The phases of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseRow {
    /// `*` stands for every model that has no row of its own.
    pub model: String,
    /// Loading time of the model.
    pub load_ms: u64,
    /// Above 8 GPUs.
    pub load_large_ms: u64,
    /// Time of a checkpoint.
    pub save_ms: u64,
}

/// Reads a table of phases, in seconds with at most three decimals.
///
/// # Errors
/// The file cannot be read, its header is another, it has no rows, a row is bad, or a model stands there twice.
pub fn phases(file: &Path) -> Result<Vec<PhaseRow>, ReadError> {
    let (mut found, mut names) = (Vec::new(), Names::default());
    let mut table = Table::open(file, &PHASE_COLUMNS, Extra::Refused)?;
    table.each_good(|row| {
        let ms = |column: &'static str| row.thousandths(column, "seconds", MOST_S);
        let [load_ms, load_large_ms, save_ms] = [ms("load_s")?, ms("load_large_s")?, ms("save_s")?];
        let model = row.text("model").to_owned();
        if names.is_new("model", &model, row)? {
            found.push(PhaseRow { model, load_ms, load_large_ms, save_ms });
        }
        Ok(())
    })?;
    if found.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::read_as;

    fn read(text: &str) -> Result<Vec<PhaseRow>, String> {
        read_as("phases.csv", text.as_bytes(), phases)
    }

    #[test]
    fn a_table_of_phases_is_in_seconds_and_what_is_wrong_is_named_with_its_row() {
        let read_ok = read("model,load_s,load_large_s,save_s\nvgg16,43.5,63.5,10\n*,40,60,8\n").unwrap();
        let first = PhaseRow { model: "vgg16".to_owned(), load_ms: 43_500, load_large_ms: 63_500, save_ms: 10_000 };
        assert_eq!((read_ok.len(), &read_ok[0]), (2, &first));
        for (text, expected) in [
            ("model,load_s,load_large_s,save_s\nvgg16,-1,2,3\n", "phases.csv, row 2: column load_s"),
            ("model,load_s,load_large_s,save_s\na,1,86401,3\n", "row 2: column load_large_s: \"86401\" is not a"),
            ("model,load_s,load_large_s,save_s\na,1,2,3\na,1,2,4\n", "row 3: column model: a is already in row 2"),
            ("model,load_s,save_s\na,1,2\n", "row 1: column load_large_s is missing"),
            ("model,load_s,load_large_s,save_s\n", "phases.csv: no rows"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
