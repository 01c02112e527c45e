//! What was watched as numbers, so that a restart does not begin anew; checked when they are read.
//!
//! ```text
//! p in millionths │ measured at, i64::MIN none │ hours × { hours │ open × { at, bound, capacity, peak } │
//! past × { hour, looks, covered, inventory, broken } }; each list after its length, amounts in thousandths of a GPU
//! ```

use super::{Horizon, Hour, Open, Watched};
use vocab::{GuaranteeRate, HorizonHours, UnixSeconds};

/// A time that is none.
const NEVER: i64 = i64::MIN;

impl Watched {
    /// The same state gives the same numbers: some 3,400 for each of the offered hours after four weeks.
    #[must_use]
    pub fn to_numbers(&self) -> Vec<i64> {
        let measured_at = self.measured_at.map_or(NEVER, UnixSeconds::get);
        let mut to = vec![i64::from(self.rate.ppm()), measured_at, self.horizons.len() as i64];
        for horizon in &self.horizons {
            to.extend([i64::from(horizon.hours.get()), horizon.open.len() as i64]);
            for one in &horizon.open {
                to.extend([one.at.get(), one.bound_milli as i64, one.capacity_milli as i64, one.peak_milli as i64]);
            }
            to.push(horizon.past.len() as i64);
            for hour in &horizon.past {
                let (looks, covered) = (i64::from(hour.looks), i64::from(hour.covered));
                to.extend([hour.number, looks, covered, hour.inventory_milli as i64, hour.broken_milli as i64]);
            }
        }
        to
    }

    /// `None` where they are not what [`to_numbers`](Self::to_numbers) gives.
    #[must_use]
    pub fn from_numbers(numbers: &[i64]) -> Option<Self> {
        let mut from = numbers.iter().copied();
        let rate = GuaranteeRate::new(from.next()? as f64 / f64::from(GuaranteeRate::MILLION)).ok()?;
        let measured_at = Some(from.next()?).filter(|at| *at != NEVER).map(UnixSeconds::new);
        let horizons = (0..from.next()?).map(|_| horizon(&mut from)).collect::<Option<_>>()?;
        from.next().is_none().then_some(Self { rate, measured_at, horizons })
    }
}

fn horizon(from: &mut impl Iterator<Item = i64>) -> Option<Horizon> {
    let hours = HorizonHours::new(u64::try_from(from.next()?).ok()?).ok()?;
    let open = (0..from.next()?).map(|_| open(from)).collect::<Option<_>>()?;
    let past = (0..from.next()?).map(|_| hour(from)).collect::<Option<_>>()?;
    Some(Horizon { hours, open, past })
}

fn open(from: &mut impl Iterator<Item = i64>) -> Option<Open> {
    let at = UnixSeconds::new(from.next()?);
    let mut amount = || u64::try_from(from.next()?).ok();
    Some(Open { at, bound_milli: amount()?, capacity_milli: amount()?, peak_milli: amount()? })
}

fn hour(from: &mut impl Iterator<Item = i64>) -> Option<Hour> {
    let number = from.next()?;
    let mut count = || u32::try_from(from.next()?).ok();
    let (looks, covered) = (count()?, count()?);
    let mut amount = || u64::try_from(from.next()?).ok();
    let (inventory_milli, broken_milli) = (amount()?, amount()?);
    // What is left out of a sum was in it.
    let holds = covered <= looks && broken_milli <= inventory_milli;
    holds.then_some(Hour { number, looks, covered, inventory_milli, broken_milli })
}
