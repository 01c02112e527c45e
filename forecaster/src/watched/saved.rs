//! Watched bounds as bytes, so that a restart does not begin without them; checked when they are read.
//!
//! ```text
//! "HRWD" 1 │ numbers u32 × i64: p in millionths │ measured at, i64::MIN none │ hours × { hours │ open × { at, bound, capacity, peak } │
//! past × { hour, looks, covered, inventory, broken } }; each list after its length, amounts in thousandths of a GPU
//! ```

use super::{Horizon, Hour, Open, Watched};
use crate::DamagedBytes;
use crate::bytes::{Reader, Writer};
use vocab::{GuaranteeRate, HorizonHours, UnixSeconds};

/// A time that is none.
const NEVER: i64 = i64::MIN;

const KIND: [u8; 4] = *b"HRWD";
const FORMAT: u8 = 1;

impl Watched {
    /// The same state gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut to, numbers) = (Writer::new(KIND, FORMAT), self.to_numbers());
        to.count(numbers.len());
        for number in numbers {
            to.i64(number);
        }
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let numbers = (0..from.count(8)?).map(|_| from.i64()).collect::<Result<Vec<_>, _>>()?;
        from.end()?;
        Self::from_numbers(&numbers).ok_or_else(|| DamagedBytes("they are no hours that were watched".to_owned()))
    }

    /// Some 3,400 for each of the offered hours after four weeks.
    pub(super) fn to_numbers(&self) -> Vec<i64> {
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
    pub(super) fn from_numbers(numbers: &[i64]) -> Option<Self> {
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
    // A part that is left out of a sum was in it.
    let holds = covered <= looks && broken_milli <= inventory_milli;
    holds.then_some(Hour { number, looks, covered, inventory_milli, broken_milli })
}
