//! Quantities of the Kubernetes API. The API keeps a quantity as it was written: `8`, `8e0`, `8000m` and `0.008k` are one amount.

use std::fmt;

/// Digits of a quantity at most. A longer text is refused: nothing that counts GPUs needs it.
const MOST_BYTES: usize = 256;

/// Suffixes for powers of ten, as exponents.
const DECIMAL: [(&str, i64); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Suffixes for powers of two, as exponents.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// An amount that is not negative: whole units, and whether a part of one is left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    whole: u64,
    has_rest: bool,
}

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityFault {
    /// It does not follow the grammar.
    #[error("it is no quantity: expected digits with a suffix, such as 8, 8000m, 0.008k or 8e0")]
    Form,
    /// It is below zero.
    #[error("it is negative")]
    Negative,
}

impl Quantity {
    /// Reads `<number><suffix>`: a number with or without a decimal point, and a suffix for a power of ten (`m`, `k`), a power of two
    /// (`Ki`), or an exponent (`e3`, `E-3`). An amount above the range of 64 bits counts as the largest.
    ///
    /// # Errors
    /// It has another form, or is negative.
    pub fn parse(text: &str) -> Result<Self, QuantityFault> {
        Self::parse_times(text, 0)
    }

    /// Thousandths of a quantity, rounded up.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn thousandths(text: &str) -> Result<u64, QuantityFault> {
        Self::parse_times(text, 3).map(Self::ceil)
    }

    /// The quantity times a power of ten.
    fn parse_times(text: &str, tens: usize) -> Result<Self, QuantityFault> {
        if text.len() > MOST_BYTES || !text.is_ascii() {
            return Err(QuantityFault::Form);
        }
        let (is_negative, text) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (before, after) = number.split_once('.').unwrap_or((number, ""));
        if before.len() + after.len() == 0 || after.contains('.') {
            return Err(QuantityFault::Form);
        }
        let point = before.len() + tens;
        let mut digits: Vec<u8> = before.bytes().chain(after.bytes()).map(|digit| digit - b'0').collect();
        digits.resize(digits.len().max(point), 0);
        let scale = Scale::parse(suffix).ok_or(QuantityFault::Form)?;
        let quantity = scale.of(&digits, point);
        if is_negative && quantity != (Self { whole: 0, has_rest: false }) {
            return Err(QuantityFault::Negative);
        }
        Ok(quantity)
    }

    /// Rounded up, as the scheduler counts.
    #[must_use]
    pub const fn ceil(self) -> u64 {
        self.whole.saturating_add(self.has_rest as u64)
    }

    /// Rounded down.
    #[must_use]
    pub const fn floor(self) -> u64 {
        self.whole
    }
}

/// Power that a number is multiplied by.
enum Scale {
    Ten(i64),
    Two(u32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        if suffix.is_empty() {
            return Some(Self::Ten(0));
        }
        if let Some((_, power)) = DECIMAL.into_iter().find(|(name, _)| *name == suffix) {
            return Some(Self::Ten(power));
        }
        if let Some((_, power)) = BINARY.into_iter().find(|(name, _)| *name == suffix) {
            return Some(Self::Two(power));
        }
        // `E` alone is exa, `e` alone is nothing.
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        Some(Self::Ten(exponent.parse().ok()?))
    }

    /// The value of digits with the decimal point after the first `point` of them.
    fn of(&self, digits: &[u8], point: usize) -> Quantity {
        match self {
            Self::Ten(power) => {
                let point = i64::try_from(point).unwrap_or(i64::MAX).saturating_add(*power);
                let has_digits = digits.iter().any(|digit| *digit != 0);
                if point <= 0 {
                    return Quantity { whole: 0, has_rest: has_digits };
                }
                let point = usize::try_from(point).unwrap_or(usize::MAX);
                let (before, after) = digits.split_at(point.min(digits.len()));
                let zeros = point - before.len();
                let whole = if has_digits { appended(number(before), zeros) } else { 0 };
                Quantity { whole, has_rest: after.iter().any(|digit| *digit != 0) }
            }
            Self::Two(power) => {
                let (before, after) = digits.split_at(point);
                let mut fraction = after.to_vec();
                let mut whole = number(before);
                for _ in 0..*power {
                    whole = whole.saturating_mul(2).saturating_add(doubled(&mut fraction));
                }
                Quantity { whole, has_rest: fraction.iter().any(|digit| *digit != 0) }
            }
        }
    }
}

/// The number of some digits, or the largest.
fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0_u64, |all, digit| all.saturating_mul(10).saturating_add(u64::from(*digit)))
}

/// A number above zero with zeros appended.
fn appended(number: u64, zeros: usize) -> u64 {
    // 20 zeros exceed 64 bits for any number.
    (0..zeros.min(20)).fold(number, |all, _| all.saturating_mul(10))
}

/// Doubles the decimal fraction `0.DIGITS`; answers what went over the point.
fn doubled(fraction: &mut [u8]) -> u64 {
    let mut carry = 0;
    for digit in fraction.iter_mut().rev() {
        let twice = *digit * 2 + carry;
        (*digit, carry) = (twice % 10, twice / 10);
    }
    u64::from(carry)
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.whole, if self.has_rest { "+" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<(u64, u64)> {
        Quantity::parse(text).ok().map(|one| (one.floor(), one.ceil()))
    }

    #[test]
    fn every_form_that_the_api_keeps_is_one_amount() {
        for text in [
            "2",
            "+2",
            "2.",
            "2.0",
            "002",
            "2e0",
            "2E0",
            "2E+0",
            "20e-1",
            "0.2e1",
            ".2E1",
            "2000m",
            "0.002k",
            "0.000002M",
            "2000000u",
            "2000000000n",
            "0.001953125Ki",
            "0.000000000000000001734723475976807094411924481391906738281250Ei",
        ] {
            assert_eq!(read(text), Some((2, 2)), "{text}");
        }
        assert_eq!(read("2Ki"), Some((2_048, 2_048)));
        assert_eq!(read("2E"), Some((2_000_000_000_000_000_000, 2_000_000_000_000_000_000)));
        assert_eq!(read("1500m"), Some((1, 2)));
        assert_eq!(read("1n"), Some((0, 1)), "the API rounds small amounts up");
        assert_eq!(read("0e99"), Some((0, 0)));
        assert_eq!(read("-0"), Some((0, 0)));
        assert_eq!(read("9e99"), Some((u64::MAX, u64::MAX)));
        assert_eq!(read("9e-99999999999"), Some((0, 1)));
    }

    #[test]
    fn requests_that_the_api_refuses_are_refused() {
        for text in [
            "", " 2", "2 ", ".", "+", "e0", "2e", "2ee1", "2e1.5", "2K", "2ki", "2mm", "1.2.3", "0x2", "٢", "2e1Ki",
            "inf",
        ] {
            assert_eq!(Quantity::parse(text), Err(QuantityFault::Form), "{text:?}");
        }
        assert_eq!(Quantity::parse("-1"), Err(QuantityFault::Negative));
        assert_eq!(Quantity::parse("-1n"), Err(QuantityFault::Negative));
        assert_eq!(Quantity::parse(&"1".repeat(10_000)), Err(QuantityFault::Form));
    }

    #[test]
    fn thousandths_are_those_of_every_form() {
        let gib = 1_024 * 1_024 * 1_024;
        for (text, expected) in [
            ("0", 0),
            ("7", 7_000),
            ("1.5", 1_500),
            (".5", 500),
            ("250m", 250),
            ("2E3", 2_000_000),
            ("5e-1", 500),
            ("0.0001k", 100),
            ("40Gi", 40 * gib * 1_000),
            ("0.0005Ki", 512),
            ("1n", 1),
            ("1E", u64::MAX),
        ] {
            assert_eq!(Quantity::thousandths(text), Ok(expected), "{text}");
        }
        assert_eq!(Quantity::thousandths("-1"), Err(QuantityFault::Negative));
        assert_eq!(Quantity::thousandths("1 Gi"), Err(QuantityFault::Form));
    }

    /// `mantissa` · 10^`power`, by integers alone.
    fn expected(mantissa: u32, power: i32, two: u32) -> (u64, u64) {
        let by = 10_u128.pow(power.unsigned_abs());
        let scaled = u128::from(mantissa) << two;
        let (floor, ceil) = if power >= 0 { (scaled * by, scaled * by) } else { (scaled / by, scaled.div_ceil(by)) };
        (u64::try_from(floor).unwrap_or(u64::MAX), u64::try_from(ceil).unwrap_or(u64::MAX))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn an_amount_is_read_alike_in_every_notation(mantissa in any::<u32>(), shift in 0_usize..8, exponent in -9_i32..9, zeros in 0_usize..4) {
            let digits = format!("{mantissa:0>9}");
            let (before, after) = digits.split_at(digits.len() - shift);
            let point = format!("{}{before}.{after}{}", "0".repeat(zeros), "0".repeat(zeros));
            let shift = shift as i32;
            for sign in ["e", "E"] {
                let text = format!("{point}{sign}{exponent}");
                prop_assert_eq!(read(&text), Some(expected(mantissa, exponent - shift, 0)), "{}", text);
            }
            for (suffix, power) in DECIMAL {
                let text = format!("{point}{suffix}");
                prop_assert_eq!(read(&text), Some(expected(mantissa, power as i32 - shift, 0)), "{}", text);
            }
            for (suffix, power) in BINARY {
                let text = format!("{point}{suffix}");
                prop_assert_eq!(read(&text), Some(expected(mantissa, -shift, power)), "{}", text);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.eEKMGTPkmunix ]{0,12}") {
            let _ = Quantity::parse(&text);
        }
    }
}
