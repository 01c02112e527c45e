//! Prices of GPU time.

use crate::day::{Line, PoolLine};
use crate::time::{GpuTime, MILLI_GPU_S_PER_GPU_HOUR};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg};
use vocab::GpuModel;

/// Money, in millionths of the currency's unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(i64);

/// The largest price of a GPU-hour: a million units.
const MOST: f64 = 1e6;

/// Why a number is no price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceError {
    price: f64,
}

impl fmt::Display for PriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid price {}: expected 0 to {MOST} for a GPU-hour", self.price)
    }
}

impl std::error::Error for PriceError {}

impl Micros {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The price of a GPU-hour, rounded to a millionth.
    ///
    /// # Errors
    /// It is negative, no number, or above a million.
    pub fn price(price: f64) -> Result<Self, PriceError> {
        if (0.0..=MOST).contains(&price) { Ok(Self((price * 1e6).round() as i64)) } else { Err(PriceError { price }) }
    }

    /// From millionths.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Millionths.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Units of the currency.
    #[must_use]
    pub fn units(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This price of a GPU-hour for so much GPU time; half a millionth is rounded up.
    #[must_use]
    pub fn of(self, time: GpuTime) -> Self {
        let per_hour = i128::from(MILLI_GPU_S_PER_GPU_HOUR);
        let amount = (i128::from(time.milli_gpu_s()) * i128::from(self.0) + per_hour / 2).div_euclid(per_hour);
        Self(i64::try_from(amount).unwrap_or(i64::MAX))
    }
}

impl Add for Micros {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Neg for Micros {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Micros {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// Two digits: `12.30`.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (i128::from(self.0).abs() + 5_000) / 10_000;
        let sign = if self.0 < 0 && hundredths > 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// Prices of a GPU-hour of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GpuPrices {
    /// Of an HP task.
    pub hp: Micros,
    /// Of a spot task inside its guarantee.
    pub guaranteed: Micros,
    /// Of a spot task at will.
    pub at_will: Micros,
    /// Credit for each GPU-hour that a broken promise still owed.
    pub broken_credit: Micros,
    /// Of owning a GPU, used or not.
    pub owned: Micros,
}

/// Prices by GPU model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// ISO 4217, such as `EUR`.
    pub currency: String,
    /// Of models without prices of their own.
    pub default: Option<GpuPrices>,
    /// By GPU model.
    pub models: BTreeMap<GpuModel, GpuPrices>,
}

impl Prices {
    /// The prices of a model; `None` where none are set.
    #[must_use]
    pub fn of(&self, model: &GpuModel) -> Option<&GpuPrices> {
        self.models.get(model).or(self.default.as_ref())
    }
}

/// The charges of an organization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charges {
    /// HP tasks.
    pub hp: Micros,
    /// Spot inside its guarantee.
    pub guaranteed: Micros,
    /// Spot at will.
    pub at_will: Micros,
    /// Credit for broken promises, not negative.
    pub credit: Micros,
}

impl Charges {
    /// The charges of a line. Handover is charged to nobody.
    #[must_use]
    pub fn of(line: &Line, prices: &GpuPrices) -> Self {
        Self {
            hp: prices.hp.of(line.hp),
            guaranteed: prices.guaranteed.of(line.guaranteed),
            at_will: prices.at_will.of(line.at_will),
            credit: prices.broken_credit.of(line.broken.promised.less(line.broken.served)),
        }
    }

    /// All charges less the credit.
    #[must_use]
    pub fn total(&self) -> Micros {
        self.hp + self.guaranteed + self.at_will + -self.credit
    }
}

impl AddAssign<&Self> for Charges {
    fn add_assign(&mut self, other: &Self) {
        self.hp += other.hp;
        self.guaranteed += other.guaranteed;
        self.at_will += other.at_will;
        self.credit += other.credit;
    }
}

/// The costs of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCharges {
    /// Of owning all its GPUs.
    pub owned: Micros,
    /// Of owning those that no task held.
    pub idle: Micros,
    /// Of the work that evictions and lost nodes cost.
    pub lost: Micros,
}

impl PoolCharges {
    /// The costs of a pool whose organizations add up to `total`.
    #[must_use]
    pub fn of(pool: &PoolLine, total: &Line, prices: &GpuPrices) -> Self {
        Self {
            owned: prices.owned.of(pool.capacity),
            idle: prices.owned.of(pool.idle() + pool.drained),
            lost: prices.owned.of(total.lost()),
        }
    }
}

impl AddAssign<&Self> for PoolCharges {
    fn add_assign(&mut self, other: &Self) {
        self.owned += other.owned;
        self.idle += other.idle;
        self.lost += other.lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_rounded_once_and_prints_with_two_digits() {
        let price = Micros::price(2.5).unwrap();
        assert_eq!(price.of(GpuTime::of(8_000, 3_600)).to_string(), "20.00");
        assert_eq!(price.of(GpuTime::from_milli_gpu_s(1)).micros(), 1, "0.69 millionths");
        assert_eq!(
            [12_345_000, -12_344_999, -4_999, 999_999].map(|micros| Micros(micros).to_string()),
            ["12.35", "-12.34", "0.00", "1.00"]
        );
    }

    #[test]
    fn a_number_that_is_no_price_is_refused() {
        for wrong in [-0.01, f64::NAN, f64::INFINITY, 1e7] {
            let fault = Micros::price(wrong).unwrap_err().to_string();
            assert!(fault.ends_with("expected 0 to 1000000 for a GPU-hour"), "{fault}");
        }
    }

    #[test]
    fn a_broken_promise_is_credited_for_what_it_still_owed() {
        let hour = |gpus: u64| GpuTime::of(gpus * 1_000, 3_600);
        let mut line = Line { guaranteed: hour(3), ..Line::default() };
        (line.broken.promised, line.broken.served) = (hour(4), hour(3));
        let price = |price| Micros::price(price).unwrap();
        let prices = GpuPrices { guaranteed: price(1.0), broken_credit: price(0.5), ..GpuPrices::default() };
        let charges = Charges::of(&line, &prices);
        assert_eq!([charges.guaranteed, charges.credit, charges.total()].map(Micros::units), [3.0, 0.5, 2.5]);
    }
}
