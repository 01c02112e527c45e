//! Expressions of job arrays: `3-5,9%2`, `0-8:4`, and `0x1E` of the accounting database.

/// How many tasks an expression names. A limit of running tasks (`%2`) is no part of it.
///
/// # Errors
/// The expression is cut off (`...`), or none.
pub fn tasks_of(expression: &str) -> Result<u32, String> {
    let wrong = || format!("{expression:?} is not an expression of array tasks such as 3-5,9%2");
    let list = expression.split('%').next().unwrap_or_default().trim_matches(['[', ']']);
    if list.contains("...") {
        return Err(format!("{expression:?} is cut off: set SLURM_BITSTR_LEN=0 for the command that prints it"));
    }
    if let Some(bits) = list.strip_prefix("0x") {
        let digits: Option<u32> = bits.chars().map(|digit| digit.to_digit(16).map(u32::count_ones)).sum();
        return digits.filter(|count| *count > 0).ok_or_else(wrong);
    }
    let mut count = 0_u32;
    for part in list.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (first, last, step) = (number(first)?, number(last)?, number(step)?);
        if last < first || step == 0 {
            return Err(wrong());
        }
        count = ((last - first) / step).checked_add(1).and_then(|tasks| count.checked_add(tasks)).ok_or_else(wrong)?;
    }
    Ok(count)
}

/// The limit of running tasks, where the expression has one.
#[must_use]
pub fn limit_of(expression: &str) -> Option<u32> {
    expression
        .split_once('%')
        .and_then(|(_, limit)| limit.trim_end_matches(']').parse().ok())
        .filter(|limit| *limit > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_an_array_are_counted_in_each_way_of_writing_them() {
        let counted =
            ["3-5%3", "7", "0-8:4", "1-3,9", "[3-7%3]", "0x1E", "0xFF", "0-999"].map(|text| tasks_of(text).unwrap());
        assert_eq!(counted, [3, 1, 3, 4, 5, 4, 8, 1_000]);
        assert_eq!(["3-5%3", "[3-7%12]", "7"].map(limit_of), [Some(3), Some(12), None]);
    }

    #[test]
    fn an_expression_that_is_cut_off_or_none_is_refused_with_what_to_do() {
        assert!(tasks_of("1-9,11,...").unwrap_err().contains("SLURM_BITSTR_LEN=0"));
        for wrong in ["", "a", "5-3", "1-5:0", "0x", "0xG", "0x0", "0-4294967295,1"] {
            assert!(tasks_of(wrong).is_err(), "{wrong}");
        }
    }
}
