//! Quantities of the API, as whole thousandths.

/// Thousandths of a quantity, rounded up as the API server does beyond them; `None` where the text is none, is negative, or is larger
/// than any that the API keeps.
pub fn milli(text: &str) -> Option<u128> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 27 {
        return None;
    }
    let digits: u128 = digits.parse().ok()?;
    let (factor, exponent) = scale(suffix)?;
    let tens = exponent + 3 - i32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(factor)?;
    if tens >= 0 {
        scaled.checked_mul(10_u128.checked_pow(tens.unsigned_abs())?)
    } else {
        Some(10_u128.checked_pow(tens.unsigned_abs()).map_or(u128::from(scaled > 0), |by| scaled.div_ceil(by)))
    }
}

/// Factor and power of ten of a suffix.
fn scale(suffix: &str) -> Option<(u128, i32)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [(&str, i32); 10] =
        [("", 0), ("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    if let Some(at) = BINARY.iter().position(|binary| *binary == suffix) {
        return Some((1_u128 << (10 * (at + 1)), 0));
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(decimal, _)| *decimal == suffix) {
        return Some((1, *exponent));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-30..=30).contains(&exponent).then_some((1, exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_quantity_is_read() {
        for (text, expected) in [
            ("0", 0),
            ("7", 7_000),
            ("1.5", 1_500),
            (".5", 500),
            ("250m", 250),
            ("2e0", 2_000),
            ("2E3", 2_000_000),
            ("5e-1", 500),
            ("0.002k", 2_000),
            ("40Gi", 40 * 1_024 * 1_024 * 1_024 * 1_000),
            ("1E", 1_000_000_000_000_000_000_000),
            ("1n", 1),
            ("0n", 0),
        ] {
            assert_eq!(milli(text), Some(expected), "{text}");
        }
        for text in ["", "-1", "GPU", "1 Gi", "1.2.3", "1e99", "9999999999999999999999999999"] {
            assert_eq!(milli(text), None, "{text}");
        }
    }
}
