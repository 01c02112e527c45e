use std::fmt;

/// Why a guarantee rate was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RateError {
    #[error("{text:?} is not a rate: write a decimal between 0 and 1 such as 0.9")]
    NotANumber { text: String },
    #[error("a guarantee rate of {rate} is not between 0.000001 and 0.999999")]
    OutOfRange { rate: f64 },
}

/// The probability p with which a promise holds, 0 < p < 1, in millionths: decisions are exact in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuaranteeRate(u32);

impl GuaranteeRate {
    /// p = 0.9, the target guarantee rate of GFS (table 4).
    pub const GFS: Self = Self(900_000);
    /// Millionths of a rate of 1.
    pub const MILLION: u32 = 1_000_000;

    /// # Errors
    /// The rate, rounded to a millionth, is not inside (0, 1).
    pub fn new(rate: f64) -> Result<Self, RateError> {
        let ppm = (rate * f64::from(Self::MILLION)).round();
        if ppm >= 1.0 && ppm < f64::from(Self::MILLION) {
            return Ok(Self(ppm as u32));
        }
        Err(RateError::OutOfRange { rate })
    }

    /// # Errors
    /// The text is no number, or not inside (0, 1).
    pub fn parse(text: &str) -> Result<Self, RateError> {
        let rate = text.trim().parse().map_err(|_| RateError::NotANumber { text: text.to_owned() })?;
        Self::new(rate)
    }

    /// The rate as a number between 0 and 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::MILLION)
    }

    /// p in millionths.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// The target eviction rate q = 1 − p, in millionths.
    #[must_use]
    pub const fn target_eviction_ppm(self) -> u32 {
        Self::MILLION - self.0
    }
}

impl fmt::Display for GuaranteeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lies_inside_zero_and_one() {
        let nine_tenths = GuaranteeRate::parse("0.9").unwrap();
        assert_eq!((nine_tenths, nine_tenths.target_eviction_ppm()), (GuaranteeRate::GFS, 100_000));
        assert_eq!(nine_tenths.to_string(), "0.9");
        for text in ["0", "1", "1.5", "-0.1", "NaN", "0.0000001", "90%"] {
            assert!(GuaranteeRate::parse(text).is_err(), "{text} is no rate");
        }
    }
}
