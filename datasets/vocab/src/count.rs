//! Amounts with their noun in messages: 1 GPU, 2 GPUs, 0.5 GPUs.

use std::fmt::{Display, Formatter, Result};

/// An amount with its noun, in the number that the amount asks for. A precision (`{:.1}`) is the amount's.
#[derive(Debug, Clone, Copy)]
pub struct Count<A> {
    amount: A,
    noun: &'static str,
    verbs: Option<(&'static str, &'static str)>,
}

/// An amount with its noun, which is written as of one.
pub const fn count<A: Display>(amount: A, noun: &'static str) -> Count<A> {
    Count { amount, noun, verbs: None }
}

/// GPUs.
pub const fn gpus<A: Display>(amount: A) -> Count<A> {
    count(amount, "GPU")
}

impl<A: Display> Count<A> {
    /// With a verb after the noun: as of one, and as of several.
    #[must_use]
    pub fn verb(self, one: &'static str, several: &'static str) -> Self {
        Self { verbs: Some((one, several)), ..self }
    }
}

impl<A: Display> Display for Count<A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { amount, noun, verbs } = self;
        let amount = match f.precision() {
            Some(digits) => format!("{amount:.digits$}"),
            None => amount.to_string(),
        };
        let is_one = amount == "1";
        write!(f, "{amount} {noun}{}", if is_one { "" } else { "s" })?;
        match verbs {
            Some((one, several)) => write!(f, " {}", if is_one { one } else { several }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_else_is_plural() {
        let written = [0.0, 0.5, 1.0, 2.0].map(|amount| gpus(amount).to_string());
        assert_eq!(written, ["0 GPUs", "0.5 GPUs", "1 GPU", "2 GPUs"]);
        assert_eq!(format!("{:.1}, {:.0}", gpus(1.0), gpus(1.2)), "1.0 GPUs, 1 GPU");
        let pods = |pods: usize| count(pods, "pod").verb("belongs", "belong").to_string();
        assert_eq!([pods(1), pods(3)], ["1 pod belongs", "3 pods belong"]);
    }
}
