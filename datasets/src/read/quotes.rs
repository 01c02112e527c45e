//! Quotes of a CSV file that are open or stand within a field: the csv crate takes each for content.

use std::collections::VecDeque;

/// UTF-8 byte order mark, which may stand before the first field.
const BYTE_ORDER_MARK: &[u8; 3] = b"\xef\xbb\xbf";

/// A quote that belongs to no quoted field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuoteFault {
    /// It is closed on another line, or never.
    #[error("a field spans {}: close its quote", vocab::count(*lines, "line"))]
    Open {
        /// Lines up to its end, or to that of the file.
        lines: usize,
    },
    /// It stands neither at the beginning nor at the end of its field, or at one of them alone.
    #[error(
        "a quote stands within a field: put quotes around the whole field and double those within it, or remove it"
    )]
    Within,
}

/// A place in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    RecordBegin,
    FieldBegin,
    Unquoted,
    Quoted,
    /// Behind a quote that closes the field, or is the first of two.
    Closed,
    /// Behind blanks that follow a quoted field.
    Blank,
    /// In a line for people.
    Note,
}

/// Follows the bytes of a file, and notes faults.
#[derive(Debug)]
pub(super) struct Quotes {
    place: Place,
    has_notes: bool,
    /// The byte before.
    last: u8,
    /// Offset of the last quote that opened a field.
    opened: u64,
    /// Lines of that field so far.
    lines: usize,
    /// With their offsets, in no order.
    faults: VecDeque<(u64, QuoteFault)>,
}

impl Quotes {
    /// Of a file in which, with `has_notes`, lines that begin with # are notes to people.
    pub const fn new(has_notes: bool) -> Self {
        Self { place: Place::RecordBegin, has_notes, last: 0, opened: 0, lines: 1, faults: VecDeque::new() }
    }

    /// The gravest fault before a byte; what lies before it is forgotten.
    pub fn take(&mut self, before: u64) -> Option<QuoteFault> {
        let found = self.faults.iter().filter(|(offset, _)| *offset < before).map(|(_, fault)| *fault);
        // An open quote has taken other rows into its own.
        let worst = found.max_by_key(|fault| matches!(fault, QuoteFault::Open { .. }));
        self.faults.retain(|(offset, _)| *offset >= before);
        worst
    }

    /// Follows the byte at an offset.
    pub fn follow(&mut self, byte: u8, offset: u64) {
        // CR LF is one line end.
        let is_line_end = byte == b'\r' || (byte == b'\n' && self.last != b'\r');
        self.last = byte;
        self.place = match (self.place, byte) {
            (Place::Quoted, b'"') => Place::Closed,
            (Place::Quoted, _) => {
                self.lines += usize::from(is_line_end);
                Place::Quoted
            }
            (Place::Closed, b'"') => Place::Quoted,
            // The csv crate ends them at a line feed alone.
            (Place::Note, b'\n') => Place::RecordBegin,
            (Place::Note, _) => Place::Note,
            (place, _) => {
                if place == Place::Closed {
                    self.close();
                }
                self.unquoted(place, byte, offset)
            }
        };
    }

    /// The place behind a byte outside of quotes.
    fn unquoted(&mut self, place: Place, byte: u8, offset: u64) -> Place {
        let is_begin = matches!(place, Place::RecordBegin | Place::FieldBegin);
        let is_behind = matches!(place, Place::Closed | Place::Blank);
        match byte {
            b'\r' | b'\n' => Place::RecordBegin,
            b',' => Place::FieldBegin,
            b'"' if is_begin => {
                (self.opened, self.lines) = (offset, 1);
                Place::Quoted
            }
            b'#' if self.has_notes && place == Place::RecordBegin => Place::Note,
            b' ' | b'\t' if is_behind => Place::Blank,
            _ if usize::try_from(offset).is_ok_and(|at| BYTE_ORDER_MARK.get(at) == Some(&byte)) => place,
            _ => {
                if byte == b'"' || is_behind {
                    self.faults.push_back((offset, QuoteFault::Within));
                }
                Place::Unquoted
            }
        }
    }

    /// Follows the end of the file.
    pub fn end(&mut self) {
        match self.place {
            Place::Quoted => {
                let is_behind_last = matches!(self.last, b'\r' | b'\n');
                let lines = self.lines - usize::from(is_behind_last);
                self.faults.push_back((self.opened, QuoteFault::Open { lines }));
            }
            Place::Closed => self.close(),
            _ => {}
        }
        self.place = Place::RecordBegin;
    }

    /// A quoted field is over.
    fn close(&mut self) {
        if self.lines > 1 {
            self.faults.push_back((self.opened, QuoteFault::Open { lines: self.lines }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, read_as};
    use super::super::{GFS_NODE_COLUMNS, ReadOptions, ReadReport, SkippedRow, gfs_nodes, usage};

    const HEADER: &str = "hour,cluster,gpu_model,organization,demand_gpus";
    const OPEN: &str = "spans";
    const STRAY: &str =
        "a quote stands within a field: put quotes around the whole field and double those within it, or remove it";

    fn row(hour: u8, organization: &str, gpus: &str) -> String {
        format!("2026-01-05T0{hour}:00:00Z,earth,V100,{organization},{gpus}")
    }

    fn read(rows: &[String], end: &str, skip_bad_rows: bool) -> Result<ReadReport, String> {
        let text = [&[HEADER.to_owned()], rows].concat().join(end);
        read_as("usage.csv", text.as_bytes(), |file| usage(file, &ReadOptions { skip_bad_rows, ..options() }))
    }

    #[test]
    fn a_quote_that_is_open_is_refused_with_its_row_for_each_line_ending_and_at_the_end() {
        for end in ["\n", "\r\n", "\r"] {
            for rows in [
                [row(0, "a", "1"), row(1, "\"b", "2"), row(2, "c", "3"), row(3, "\"d\"", "4")],
                [row(0, "a", "1"), row(1, "b", "\"2"), String::new(), String::new()],
                [row(0, "a", "1"), row(1, "b", "\"2"), row(2, "c", "3"), row(3, "d", "4\"")],
            ] {
                for skip_bad_rows in [false, true] {
                    let fault = read(&rows, end, skip_bad_rows).map(|read| read.rows.len()).unwrap_err();
                    assert!(fault.starts_with("usage.csv, row 3: a field") && fault.contains(OPEN), "{end:?} {fault}");
                }
            }
        }
        let fault = read(&[row(0, "a", "1"), row(1, "b", "\"2")], "\n", true).map(|read| read.rows.len()).unwrap_err();
        assert_eq!(fault, "usage.csv, row 3: a field spans 1 line: close its quote");
    }

    #[test]
    fn a_quote_that_is_open_in_the_header_swallows_no_rows() {
        let of = |text: &str| {
            let text = format!("{}{text}", GFS_NODE_COLUMNS.join(","));
            read_as("nodes.csv", text.as_bytes(), |file| gfs_nodes(file, &options()).map(|(nodes, _)| nodes.len()))
        };
        assert_eq!(of(",note\nn0,V100,8,64,x\nn1,V100,8,64,y\n"), Ok(2));
        let fault = "nodes.csv, row 1: a field spans 2 lines: close its quote".to_owned();
        assert_eq!(of(",\"note\nn0,V100,8,64,x\"\nn1,V100,8,64,y\n"), Err(fault));
    }

    #[test]
    fn a_quote_within_a_field_is_refused_or_skipped_with_its_row() {
        for bad in ["b\"x", "\"b\"x", "b\"", " \"b\"", "b\"\"x"] {
            let rows = [row(0, "a", "1"), row(1, bad, "2"), row(2, "c", "3")];
            let fault = read(&rows, "\n", false).map(|read| read.rows.len()).unwrap_err();
            assert_eq!(fault, format!("usage.csv, row 3: {STRAY}"), "{bad}");
            let report = read(&rows, "\n", true).unwrap();
            let rows: Vec<u64> = report.skipped.iter().map(|SkippedRow { row, .. }| *row).collect();
            assert_eq!((rows, report.rows.len()), (vec![3], 2), "{bad}");
        }
    }

    #[test]
    fn fields_that_are_quoted_as_a_whole_are_read_with_the_quotes_that_are_doubled_within_them() {
        let good = [row(0, "\"b\"\"x, y\"", "\"2\""), row(1, "\"\"\"\"", "\"3\" ")];
        let report = read(&good, "\r\n", false).unwrap();
        let names: Vec<_> = report.rows.iter().map(|row| row.series.organization.as_str()).collect();
        assert_eq!(names, ["b\"x, y", "\""]);
        let text = format!("\u{feff}\"hour\"{}\n\n{}\n", &HEADER[4..], row(0, "a", "1"));
        let report = read_as("usage.csv", text.as_bytes(), |file| usage(file, &options())).unwrap();
        assert_eq!(report.rows.len(), 1);
    }
}
