//! Row numbers as an editor shows them.

use super::quotes::{QuoteFault, Quotes};
use std::collections::VecDeque;
use std::io::Read;

/// A file that is no text, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// Compressed by gzip (RFC 1952).
    Gzip,
    /// A zip archive, which a workbook of a spreadsheet is, too.
    Zip,
}

impl Archive {
    fn of(first: &[u8]) -> Option<Self> {
        match first {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'P', b'K', 3, 4, ..] => Some(Self::Zip),
            _ => None,
        }
    }
}

/// Passes bytes on and remembers where the lines begin that are not blank, and which quotes are out of place.
///
/// The csv crate counts lines by itself, but one too few where lines end in CR LF, and one too few for each blank line
/// before a row.
pub struct Lines<R> {
    inner: R,
    /// Bytes read so far.
    offset: u64,
    /// The line that the next byte lies in.
    line: u64,
    at_start: bool,
    after_cr: bool,
    /// Offset of the first byte and number of each line that is not blank, the oldest first.
    starts: VecDeque<(u64, u64)>,
    quotes: Quotes,
    archive: Option<Archive>,
}

impl<R> Lines<R> {
    pub const fn new(inner: R) -> Self {
        Self::of(inner, false)
    }

    /// As [`Self::new`]; lines that begin with # are notes to people, with any quotes.
    pub const fn with_notes(inner: R) -> Self {
        Self::of(inner, true)
    }

    const fn of(inner: R, has_notes: bool) -> Self {
        Self {
            inner,
            offset: 0,
            line: 1,
            at_start: true,
            after_cr: false,
            starts: VecDeque::new(),
            quotes: Quotes::new(has_notes),
            archive: None,
        }
    }

    /// The archive that was read instead of text.
    pub const fn archive(&self) -> Option<Archive> {
        self.archive
    }

    /// The gravest fault of the quotes before a byte; those before it are forgotten.
    pub fn quote_fault(&mut self, byte: u64) -> Option<QuoteFault> {
        self.quotes.take(byte)
    }

    /// The number of the first line that is not blank, at or after a byte; those before it are forgotten.
    pub fn number_from(&mut self, byte: u64) -> u64 {
        while self.starts.front().is_some_and(|(start, _)| *start < byte) {
            self.starts.pop_front();
        }
        self.starts.front().map_or(self.line, |(_, number)| *number)
    }

    fn look_at(&mut self, bytes: &[u8]) {
        if self.offset == 0 {
            self.archive = Archive::of(bytes);
        }
        for byte in bytes {
            self.quotes.follow(*byte, self.offset);
            match byte {
                // The second half of one line end.
                b'\n' if self.after_cr => {}
                b'\n' | b'\r' => {
                    self.line += 1;
                    self.at_start = true;
                }
                _ if self.at_start => {
                    self.starts.push_back((self.offset, self.line));
                    self.at_start = false;
                }
                _ => {}
            }
            self.after_cr = *byte == b'\r';
            self.offset += 1;
        }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.look_at(&buffer[..count]);
        if count == 0 && !buffer.is_empty() {
            self.quotes.end();
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first field of each record with its line.
    fn numbered(text: &str) -> String {
        let lines = Lines::new(text.as_bytes());
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(lines);
        let (mut record, mut fields) = (csv::StringRecord::new(), Vec::new());
        loop {
            let start = reader.position().byte();
            if !reader.read_record(&mut record).unwrap() {
                return fields.join(" ");
            }
            fields.push(format!("{}:{}", reader.get_mut().number_from(start), record[0].escape_debug()));
        }
    }

    #[test]
    fn lines_are_counted_as_an_editor_counts_them_for_any_line_ending() {
        for text in ["h,i\n1,2\n3,4\n", "h,i\r\n1,2\r\n3,4", "h,i\r1,2\r3,4\r", "\u{feff}h,i\r\n1,2\r\n3,4\r\n"] {
            assert_eq!(numbered(text), "1:h 2:1 3:3", "{text:?}");
        }
        assert_eq!(numbered("h,i\n\n\n1,2\n\n3,4\n\n"), "1:h 4:1 6:3");
        assert_eq!(numbered("h,i\r\n\r\n1,2\r\n\r\n\r\n3,4"), "1:h 3:1 6:3");
        assert_eq!(numbered("h,i\n\"a\nb\",2\n3,4\n"), "1:h 2:a\\nb 4:3", "a field may hold a line end");
        assert_eq!(numbered(""), "");
    }
}
