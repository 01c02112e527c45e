//! Numbers as people read them.

/// GPUs, with as many digits as mean something.
#[must_use]
pub fn gpus(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    no_minus_zero(format!("{value:.digits$}"))
}

/// Errors in GPUs. Of those of fractions of a GPU two digits would show the better and the worse one alike.
#[must_use]
pub fn fine_gpus(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 0.0995 => gpus(value),
        size if size >= 0.00995 => format!("{value:.3}"),
        _ => no_minus_zero(format!("{value:.4}")),
    }
}

/// As [`gpus`], with its sign.
#[must_use]
pub fn signed_gpus(value: f64) -> String {
    with_sign(gpus(value))
}

/// A share in percent.
#[must_use]
pub fn percent(share: f64) -> String {
    no_minus_zero(format!("{:.1}", share * 100.0)) + " %"
}

/// As [`percent`], with its sign.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    with_sign(no_minus_zero(format!("{:.0}", share * 100.0))) + " %"
}

/// A tick of an axis whose ticks lie `step` apart.
#[must_use]
pub fn tick(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    no_minus_zero(format!("{value:.digits$}"))
}

fn with_sign(text: String) -> String {
    let is_zero = text.chars().all(|letter| matches!(letter, '0' | '.'));
    // The minus of typography is as wide as the plus.
    match text.strip_prefix('-') {
        Some(rest) => format!("−{rest}"),
        None if is_zero => text,
        None => format!("+{text}"),
    }
}

fn no_minus_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|letter| matches!(letter, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        assert_eq!([4.4824, 12.3, 856.0, 0.0, -0.0001].map(gpus).join(" "), "4.48 12.3 856 0.00 0.00");
        let fine = [0.0, 0.0042, 0.0342, 0.342, 4.4824, -0.000_01].map(fine_gpus);
        assert_eq!(fine.join(" "), "0.00 0.0042 0.034 0.34 4.48 0.0000");
        assert_eq!([92.0, -3.25].map(signed_gpus).join(" "), "+92.0 −3.25");
        assert_eq!([0.9, 0.0].map(percent).join(" "), "90.0 % 0.0 %");
        assert_eq!([-0.546, 0.12, 0.0].map(signed_percent).join(" "), "−55 % +12 % 0 %");
    }
}
