//! The factors of a pool as bytes, so that a restart does not begin without them: little-endian, checked when they are read.
//!
//! ```text
//! "HRRC" 1 │ p in millionths u32 │ since, measured at: times │ taught i64, i64::MIN none │ twice, offered and formerly offered:
//! hours u32 × { hours u8 │ λ f64 │ since: time │ credible: time, exposed, broken f64 │ open u32 × { time │ bound, capacity, peak
//! f64 } }; a time is i64, i64::MIN none
//! ```

use super::{Credible, Horizon, LAMBDA_MOST, RiskControl, Unsold};
use crate::DamagedBytes;
use crate::bytes::{Reader, Writer};
use std::collections::VecDeque;
use vocab::UnixSeconds;

const KIND: [u8; 4] = *b"HRRC";
const FORMAT: u8 = 1;

impl RiskControl {
    /// The same state gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        to.u32(self.rate.ppm());
        to.time(self.since);
        to.time(self.measured_at);
        to.time(self.taught.map(UnixSeconds::new));
        for all in [&self.horizons, &self.former] {
            to.count(all.len());
            for horizon in all {
                write(horizon, &mut to);
            }
        }
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let (rate, since, measured_at) = (from.rate()?, from.time()?, from.time()?);
        let taught = from.time()?.map(UnixSeconds::get);
        let mut all = || (0..from.count(41)?).map(|_| horizon(&mut from)).collect::<Result<Vec<_>, _>>();
        let (horizons, former) = (all()?, all()?);
        from.end()?;
        Ok(Self { rate, since, measured_at, taught, horizons, former })
    }
}

fn write(horizon: &Horizon, to: &mut Writer) {
    to.u8(horizon.hours.get());
    to.f64(horizon.lambda);
    to.time(horizon.since);
    to.time(horizon.credible.map(|credible| credible.at));
    to.f64(horizon.credible.map_or(0.0, |credible| credible.exposed));
    to.f64(horizon.credible.map_or(0.0, |credible| credible.broken));
    to.count(horizon.open.len());
    for unsold in &horizon.open {
        to.time(Some(unsold.at));
        for gpus in [unsold.bound_gpus, unsold.capacity_gpus, unsold.peak_gpus] {
            to.f64(gpus);
        }
    }
}

fn horizon(from: &mut Reader<'_>) -> Result<Horizon, DamagedBytes> {
    let (hours, lambda) = (from.hours()?, from.f64()?);
    if !(0.0..=LAMBDA_MOST).contains(&lambda) {
        return Err(DamagedBytes(format!("a factor of {lambda} is not within 0 and {LAMBDA_MOST}")));
    }
    let since = from.time()?;
    let (at, exposed, broken) = (from.time()?, from.f64()?, from.f64()?);
    let credible = at.map(|at| Credible { exposed, broken, at });
    let mut open = VecDeque::new();
    for _ in 0..from.count(32)? {
        let at = from.moment()?;
        let (bound_gpus, capacity_gpus, peak_gpus) = (from.f64()?, from.f64()?, from.f64()?);
        open.push_back(Unsold { at, bound_gpus, capacity_gpus, peak_gpus });
    }
    Ok(Horizon { hours, lambda, since, credible, open })
}
