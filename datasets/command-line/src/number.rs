//! Zero as people read it: the sum of no numbers is −0 in binary, and so is what rounds to zero from below.

use serde_json::ser::{Formatter, PrettyFormatter};
use std::io;

/// A formatted cell without the minus of a zero, such as that of `-0.00` and `-0.0 %`.
pub(crate) fn without_minus_zero(cell: &str) -> &str {
    let Some(rest) = cell.strip_prefix('-') else { return cell };
    let (digits, behind) =
        rest.split_at(rest.find(|letter: char| letter != '.' && !letter.is_ascii_digit()).unwrap_or(rest.len()));
    let is_zero = digits.starts_with('0') && digits.chars().all(|letter| matches!(letter, '0' | '.'));
    // A dash goes on in a name or a date, not in an amount.
    if is_zero && (behind.is_empty() || behind.starts_with(' ')) { rest } else { cell }
}

/// Indented JSON whose zeros have no minus.
#[derive(Default)]
pub(crate) struct Json(PrettyFormatter<'static>);

impl Formatter for Json {
    fn write_f64<W: ?Sized + io::Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        // −0 + 0 is 0, and every other number stays.
        self.0.write_f64(to, value + 0.0)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_has_no_minus_and_all_else_stays() {
        for (cell, shown) in [
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("-0.0 %", "0.0 %"),
            ("-0.01", "-0.01"),
            ("-0-team", "-0-team"),
            ("-0x", "-0x"),
            ("-", "-"),
            ("-.0", "-.0"),
            ("0.0", "0.0"),
        ] {
            assert_eq!(without_minus_zero(cell), shown, "{cell}");
        }
    }
}
