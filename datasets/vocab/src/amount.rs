//! Amounts of GPUs as exact integers.

use std::fmt;

/// Smallest standard deviation of a forecast, in GPUs: one thousandth, the grid of [`MilliGpus`]. Demand is measured on
/// this grid, so a smaller deviation would claim more than the measurement shows, and zero has no density.
pub const LEAST_STDDEV_GPUS: f64 = 1.0 / PER_GPU;

/// [`MilliGpus::PER_GPU`] as a float.
const PER_GPU: f64 = MilliGpus::PER_GPU as f64;

/// Why a number of GPUs was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AmountError {
    #[error("{text:?} is not a number of GPUs: write a decimal such as 4 or 0.25")]
    NotANumber { text: String },
    #[error("{gpus} GPUs is negative: amounts of GPUs are 0 or more")]
    Negative { gpus: f64 },
    #[error("{gpus} GPUs is not a whole number of thousandths: the nearest is {nearest}")]
    OffGrid { gpus: f64, nearest: MilliGpus },
    #[error("{gpus:e} GPUs exceeds the limit of {max} GPUs", max = MilliGpus::MAX_GPUS)]
    TooLarge { gpus: f64 },
    #[error("{gpus:e} GPUs exceeds the limit of {max} GPUs: write GPUs, not thousandths or bytes", max = MilliGpus::MOST_STATED_GPUS)]
    TooLargeToState { gpus: f64 },
}

/// Thousandths of one GPU: a quarter of a card is the exact integer 250.
///
/// ```
/// use vocab::MilliGpus;
///
/// let quarter = MilliGpus::parse("0.25")?;
/// assert_eq!(quarter.milli(), 250);
/// assert_eq!(MilliGpus::from_gpus(8).checked_sub(quarter).map(|left| left.to_string()), Some("7.750".to_owned()));
/// assert!(MilliGpus::parse("0.0001").is_err(), "no whole number of thousandths");
/// # Ok::<(), vocab::AmountError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MilliGpus(u64);

impl MilliGpus {
    /// A billion GPUs. Far above any fleet, and low enough that a sum over a million amounts stays inside 64 bits and
    /// that each amount is exact as a 64-bit float.
    pub const MAX_GPUS: u64 = 1_000_000_000;
    /// Thousandths of one GPU: the grid on which GPUs are counted.
    pub const PER_GPU: u64 = 1_000;
    /// No GPU.
    pub const ZERO: Self = Self(0);
    /// [`Self::MAX_GPUS`] as an amount.
    pub const MAX: Self = Self(Self::MAX_MILLI);
    /// Ten million GPUs: the most that one row, field or sample may state as demand or capacity. It is more than any pool has, and a
    /// hundredth of [`Self::MAX_GPUS`], so that forecasts, bounds and sums over organizations have room above it. Amounts that are
    /// stored or computed may exceed it.
    pub const MOST_STATED_GPUS: u64 = 10_000_000;
    const MAX_MILLI: u64 = Self::MAX_GPUS * Self::PER_GPU;

    /// # Errors
    /// [`AmountError::TooLarge`] above [`Self::MAX_GPUS`].
    pub fn from_milli(milli: u64) -> Result<Self, AmountError> {
        if milli > Self::MAX_MILLI {
            return Err(AmountError::TooLarge { gpus: milli as f64 / PER_GPU });
        }
        Ok(Self(milli))
    }

    /// Whole GPUs; always representable, since a `u32` of thousands is far below the limit of 64 bits.
    #[must_use]
    pub const fn from_gpus(gpus: u32) -> Self {
        Self(gpus as u64 * Self::PER_GPU)
    }

    /// The nearest thousandth; for what was measured and averaged, such as the answers of Prometheus.
    ///
    /// # Errors
    /// Not finite, negative, or above [`Self::MAX_GPUS`].
    pub fn nearest(gpus: f64) -> Result<Self, AmountError> {
        Self::scaled(gpus, f64::round)
    }

    /// A thousandth, or what the arithmetic of floats makes of one: `0.1 + 0.2` is 0.3. For what people and programs ask for and
    /// state: 0.9999 is not 1, and 1e-9 is not nothing. Measured averages are rounded by [`Self::nearest`].
    ///
    /// # Errors
    /// As [`Self::nearest`], and [`AmountError::OffGrid`] beyond 10⁻¹⁰ GPUs (relative 10⁻¹⁵ of large ones) from a thousandth.
    pub fn exact(gpus: f64) -> Result<Self, AmountError> {
        let nearest = Self::nearest(gpus)?;
        let scaled = gpus * PER_GPU;
        if (scaled - nearest.0 as f64).abs() > (scaled * 1e-15).max(1e-7) {
            return Err(AmountError::OffGrid { gpus, nearest });
        }
        Ok(nearest)
    }

    /// The next thousandth upwards; for bounds, which may only err on the safe side.
    ///
    /// # Errors
    /// Not finite, negative, or above [`Self::MAX_GPUS`].
    pub fn rounded_up(gpus: f64) -> Result<Self, AmountError> {
        Self::scaled(gpus, f64::ceil)
    }

    /// # Errors
    /// The text is no finite decimal number, or its value is refused as by [`Self::exact`].
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let gpus: f64 = text.trim().parse().map_err(|_| AmountError::NotANumber { text: text.to_owned() })?;
        if !gpus.is_finite() {
            return Err(AmountError::NotANumber { text: text.to_owned() });
        }
        Self::exact(gpus)
    }

    /// An amount as a source states it, of [`Self::MOST_STATED_GPUS`] at most.
    ///
    /// # Errors
    /// The fault of `read`, and [`AmountError::TooLargeToState`] above that.
    pub fn stated(read: Result<Self, AmountError>) -> Result<Self, AmountError> {
        match read {
            Ok(amount) if amount.0 > Self::MOST_STATED_GPUS * Self::PER_GPU => {
                Err(AmountError::TooLargeToState { gpus: amount.as_gpus() })
            }
            Err(AmountError::TooLarge { gpus }) => Err(AmountError::TooLargeToState { gpus }),
            other => other,
        }
    }

    fn scaled(gpus: f64, round: fn(f64) -> f64) -> Result<Self, AmountError> {
        if gpus.is_nan() {
            return Err(AmountError::NotANumber { text: gpus.to_string() });
        }
        if gpus < 0.0 {
            return Err(AmountError::Negative { gpus });
        }
        let milli = round(gpus * PER_GPU);
        if milli > Self::MAX_MILLI as f64 {
            return Err(AmountError::TooLarge { gpus });
        }
        Ok(Self(milli as u64))
    }

    /// Thousandths of one GPU.
    #[must_use]
    pub const fn milli(self) -> u64 {
        self.0
    }

    /// Exact: every amount is below 2⁵³ thousandths.
    #[must_use]
    pub fn as_gpus(self) -> f64 {
        self.0 as f64 / PER_GPU
    }

    /// Whether this is no GPU at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `None` when the sum exceeds [`Self::MAX_GPUS`].
    #[must_use]
    pub fn checked_add(self, more: Self) -> Option<Self> {
        self.0.checked_add(more.0).filter(|&milli| milli <= Self::MAX_MILLI).map(Self)
    }

    /// The sum, or [`Self::MAX`] where that is less.
    #[must_use]
    pub fn saturating_add(self, more: Self) -> Self {
        self.checked_add(more).unwrap_or(Self::MAX)
    }

    /// `None` when `taken` exceeds the amount: the caller decides what that means.
    #[must_use]
    pub fn checked_sub(self, taken: Self) -> Option<Self> {
        self.0.checked_sub(taken.0).map(Self)
    }

    /// The rest after `taken`, zero where `taken` is larger.
    #[must_use]
    pub fn left_after(self, taken: Self) -> Self {
        Self(self.0.saturating_sub(taken.0))
    }

    /// `None` when the product exceeds [`Self::MAX_GPUS`].
    #[must_use]
    pub fn checked_mul(self, factor: u32) -> Option<Self> {
        self.0.checked_mul(u64::from(factor)).filter(|&milli| milli <= Self::MAX_MILLI).map(Self)
    }

    /// `self × numerator / denominator`, rounded down; `None` when the result exceeds [`Self::MAX_GPUS`] or the
    /// denominator is zero.
    #[must_use]
    pub fn scaled_down(self, numerator: u64, denominator: u64) -> Option<Self> {
        let product = u128::from(self.0) * u128::from(numerator);
        let milli = u64::try_from(product.checked_div(u128::from(denominator))?).ok()?;
        (milli <= Self::MAX_MILLI).then_some(Self(milli))
    }
}

impl fmt::Display for MilliGpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / Self::PER_GPU, self.0 % Self::PER_GPU)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_a_card_is_the_exact_integer_250() {
        assert_eq!(MilliGpus::parse("0.25"), MilliGpus::from_milli(250));
        assert_eq!(MilliGpus::parse(" 2249.1399999999994 ").map(MilliGpus::milli), Ok(2_249_140));
        assert_eq!(MilliGpus::from_gpus(856).to_string(), "856.000");
    }

    #[test]
    fn amounts_between_two_thousandths_are_refused_and_float_noise_is_not() {
        for gpus in [1e-9, 0.9999, 0.0005, 7.999_9, 1.000_000_1] {
            assert!(matches!(MilliGpus::exact(gpus), Err(AmountError::OffGrid { .. })), "{gpus}");
        }
        for (gpus, milli) in [(0.1 + 0.2, 300), (2_249.139_999_999_999_4, 2_249_140), (1.1 * 3.0, 3_300), (0.0, 0)] {
            assert_eq!(MilliGpus::exact(gpus).map(MilliGpus::milli), Ok(milli));
        }
        for milli in [1, 999, 123_456_789, 999_999_999_999, MilliGpus::MAX_MILLI] {
            assert_eq!(MilliGpus::exact(MilliGpus(milli).as_gpus()), Ok(MilliGpus(milli)), "what is printed is read");
        }
        let fault = MilliGpus::exact(0.9999).unwrap_err().to_string();
        assert_eq!(fault, "0.9999 GPUs is not a whole number of thousandths: the nearest is 1.000");
    }

    #[test]
    fn an_invalid_amount_is_refused_with_its_text() {
        for text in ["", "1k", "NaN", "inf", "0x10", "1,5"] {
            assert_eq!(MilliGpus::parse(text), Err(AmountError::NotANumber { text: text.to_owned() }));
        }
        assert_eq!(MilliGpus::parse("-1"), Err(AmountError::Negative { gpus: -1.0 }));
        assert_eq!(MilliGpus::parse("1e308"), Err(AmountError::TooLarge { gpus: 1e308 }));
        assert!(MilliGpus::from_milli(u64::MAX).is_err());
    }

    #[test]
    fn stated_amounts_end_below_those_that_are_stored() {
        let most = MilliGpus::MOST_STATED_GPUS as f64;
        assert_eq!(MilliGpus::stated(MilliGpus::exact(most)).map(MilliGpus::as_gpus), Ok(most));
        for gpus in [most + 0.001, 999_999_999.0, 1e308] {
            assert_eq!(
                MilliGpus::stated(MilliGpus::exact(gpus)),
                Err(AmountError::TooLargeToState { gpus }),
                "refused where it is stated"
            );
        }
        assert_eq!(MilliGpus::stated(MilliGpus::exact(-1.0)), Err(AmountError::Negative { gpus: -1.0 }));
        assert!(MilliGpus::from_milli(999_999_999_000).is_ok(), "what is stored is read");
    }

    #[test]
    fn bounds_round_up_and_shares_round_down() {
        assert_eq!(MilliGpus::rounded_up(1.000_1).map(MilliGpus::milli), Ok(1_001));
        assert_eq!(MilliGpus::from_gpus(10).scaled_down(999_999, 1_000_000).map(MilliGpus::milli), Some(9_999));
        assert_eq!(MilliGpus::from_gpus(1).scaled_down(1, 0), None);
    }

    #[test]
    fn sums_and_differences_never_wrap() {
        let most = MilliGpus(MilliGpus::MAX_MILLI);
        assert_eq!(most.checked_add(MilliGpus(1)), None);
        assert_eq!(MilliGpus(1).checked_sub(MilliGpus(2)), None);
        assert_eq!(MilliGpus(1).left_after(MilliGpus(2)), MilliGpus::ZERO);
        assert_eq!(most.checked_mul(2), None);
    }
}
