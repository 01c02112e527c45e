//! A live bound as bytes, so that a restart does not begin without it: little-endian, checked when they are read.
//!
//! ```text
//! "HRLV" 1 │ p in millionths u32 │ last: time, milli i64 │ moves f64, weight f64 │ hours u32 × { hours u8 │ judged at, since:
//! times │ losses 2 × 5 f64, alone 2 f64 │ open u32 × { time, demand i64, move f64, forecast f64, live 2 × f64, peak i64 } │
//! measured u32 × { time, rise i64 } }; a time is i64, i64::MIN none; a number that is not there is -1
//! ```

use super::{Horizon, Issued, LiveBound, Seen};
use crate::DamagedBytes;
use crate::bytes::{Reader, Writer};

const KIND: [u8; 4] = *b"HRLV";
const FORMAT: u8 = 1;
/// A bound that is not there: bounds are not negative.
const NONE: f64 = -1.0;

impl LiveBound {
    /// The same state gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        to.u32(self.rate.ppm());
        to.time(self.last.map(|(at, _)| at));
        to.i64(self.last.map_or(0, |(_, milli)| milli));
        to.f64(self.moves_milli);
        to.f64(self.weight);
        to.count(self.horizons.len());
        for horizon in &self.horizons {
            horizon.write(&mut to);
        }
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let rate = from.rate()?;
        let (at, milli) = (from.time()?, from.i64()?);
        let (moves_milli, weight) = (from.f64()?, from.f64()?);
        let horizons = (0..from.count(1)?).map(|_| Horizon::read(&mut from)).collect::<Result<_, _>>()?;
        from.end()?;
        Ok(Self { rate, horizons, last: at.map(|at| (at, milli)), moves_milli, weight })
    }
}

impl Horizon {
    fn write(&self, to: &mut Writer) {
        to.u8(self.hours.get());
        to.time(self.judged_at);
        to.time(self.judged_since);
        self.losses.iter().flatten().chain(&self.alone).for_each(|loss| to.f64(*loss));
        to.count(self.open.len());
        for issued in &self.open {
            to.time(Some(issued.seen.at));
            to.i64(issued.seen.demand_milli);
            to.f64(issued.seen.move_milli);
            to.f64(issued.seen.forecast_gpus.unwrap_or(NONE));
            issued.live_gpus.unwrap_or([NONE; 2]).iter().for_each(|gpus| to.f64(*gpus));
            to.i64(issued.peak_milli);
        }
        to.count(self.closed.len());
        for (at, rise) in &self.closed {
            to.time(Some(*at));
            to.i64(*rise);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DamagedBytes> {
        let mut horizon = Self::new(from.hours()?);
        (horizon.judged_at, horizon.judged_since) = (from.time()?, from.time()?);
        for loss in horizon.losses.iter_mut().flatten().chain(&mut horizon.alone) {
            *loss = from.f64()?;
        }
        let known = |gpus: f64| (gpus >= 0.0).then_some(gpus);
        for _ in 0..from.count(56)? {
            let (at, demand_milli, move_milli) = (from.moment()?, from.i64()?, from.f64()?);
            if move_milli <= 0.0 {
                return Err(DamagedBytes("a mean move is not positive".to_owned()));
            }
            let forecast_gpus = known(from.f64()?);
            let live = [from.f64()?, from.f64()?];
            let live_gpus = known(live[0]).map(|_| live);
            let seen = Seen { at, demand_milli, move_milli, forecast_gpus };
            horizon.open.push_back(Issued { seen, live_gpus, peak_milli: from.i64()? });
        }
        for _ in 0..from.count(16)? {
            let (at, rise) = (from.moment()?, from.i64()?);
            horizon.measured(at, rise);
        }
        Ok(horizon)
    }
}
