//! Remembers what a file has named, and where: a job or a node that stands there twice is still one.

use super::RowFault;
use super::table::Row;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Names {
    /// The row number and the fields of each name.
    seen: BTreeMap<String, (u64, String)>,
    pub equal_duplicates: u64,
}

impl Names {
    /// Whether the row is the first of its name. An equal one is counted.
    ///
    /// # Errors
    /// Another row had this name and other fields.
    pub fn is_new(&mut self, column: &str, name: &str, row: &Row<'_>) -> Result<bool, RowFault> {
        let fields = row.fields();
        match self.seen.get(name) {
            None => {
                self.seen.insert(name.to_owned(), (row.number(), fields));
                Ok(true)
            }
            Some((_, first)) if *first == fields => {
                self.equal_duplicates += 1;
                Ok(false)
            }
            Some((first_row, _)) => {
                Err(RowFault::NameTwice { column: column.to_owned(), name: name.to_owned(), first_row: *first_row })
            }
        }
    }
}
