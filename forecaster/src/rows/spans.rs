//! Sums over the last hours of a window.

/// Sums over the last values of some spans, which rise: each from its first value on, as if it were alone. They are made side by side,
/// since an addition waits for the one before it.
pub fn sums_of_last<const SPANS: usize>(
    values: &[f64],
    spans: &[usize; SPANS],
    of: impl Fn(f64, usize) -> f64,
) -> [f64; SPANS] {
    let mut sums = [0.0; SPANS];
    let start = |span: usize| values.len() - spans[span].min(values.len());
    for span in (0..SPANS).rev() {
        // Values added so far lie before its first one.
        sums[span] = 0.0;
        let end = if span == 0 { values.len() } else { start(span - 1) };
        for value in &values[start(span)..end] {
            sums.iter_mut().enumerate().for_each(|(place, sum)| *sum += of(*value, place));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: [usize; 6] = [3, 6, 12, 24, 72, 168];

    #[test]
    fn sums_side_by_side_are_the_bits_of_each_alone() {
        let values: Vec<f64> = (0..200_u32).map(|hour| f64::from(hour * 37 % 101) * 0.37 + 0.1).collect();
        for hours in [1, 2, 5, 24, 100, 168, 200] {
            let (seen, mean) = (&values[..hours], |span: usize| HOURS[span] as f64 * 0.7);
            let squares = sums_of_last(seen, &HOURS, |value, span| (value - mean(span)).powi(2));
            for (span, squares) in squares.into_iter().enumerate() {
                let last = &seen[hours - HOURS[span].min(hours)..];
                let alone: f64 = last.iter().map(|value| (value - mean(span)).powi(2)).sum();
                assert_eq!(squares.to_bits(), alone.to_bits(), "{hours} hours, span {span}");
            }
        }
    }
}
