//! Remembers which hour of which series a file has set, and where.

use super::{ReadReport, RowFault};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use vocab::{HourStart, SeriesId, UsageRow};

/// Rows of one file in the making: an equal duplicate is counted, a different value for the same hour is refused.
#[derive(Default)]
pub struct Ledger {
    rows: Vec<UsageRow>,
    /// Position in `rows` and row number in the file.
    seen: BTreeMap<SeriesId, BTreeMap<HourStart, (usize, u64)>>,
    equal_duplicates: u64,
}

impl Ledger {
    pub fn add(&mut self, row: UsageRow, number: u64) -> Result<(), RowFault> {
        let next = self.rows.len();
        // Rows of a series share its names: with names of their own they took twice the memory.
        let row = match self.seen.get_key_value(&row.series) {
            Some((series, _)) => UsageRow { series: series.clone(), ..row },
            None => row,
        };
        let hours = self.seen.entry(row.series.clone()).or_default();
        match hours.entry(row.hour) {
            Entry::Vacant(place) => {
                place.insert((next, number));
                self.rows.push(row);
                Ok(())
            }
            Entry::Occupied(place) => {
                let &(index, first_row) = place.get();
                let known = &mut self.rows[index];
                let Some(both) = known.hour_demand().joined(row.hour_demand()) else {
                    let both = Box::new([known.hour_demand(), row.hour_demand()]);
                    let UsageRow { series, hour, .. } = row;
                    return Err(RowFault::Conflict { series: Box::new(series), hour, first_row, both });
                };
                self.equal_duplicates += 1;
                known.at_end = both.at_end;
                Ok(())
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn finish(self, report: &mut ReadReport) {
        report.rows = self.rows;
        report.equal_duplicates = self.equal_duplicates;
    }
}
