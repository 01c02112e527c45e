//! A calibrator as bytes: little-endian, checked when they are read.
//!
//! ```text
//! "HRCAL" 9 │ horizon u8 │ correcting u8 │ newest i64 (i64::MIN: none) │ tiers × newest i64 │ series u32 × { cluster, gpu model, organization:
//! length u8 and text │ median f64 │ error f64 │ error hours f64 │ whole u8 │ 168 × 2 × steps residuals i8
//! │ weights of the experts on its quantiles f64 │ 2 × steps rises f32 │ 2 × (days + 1) rises above earlier days and a week f32 }
//! │ pools u32 × { cluster, gpu model │ 168 × hours × { residual, total, deviation, rise, above the linear rise f32 }, NaN: none
//! │ hours × { products, targets f64 } │ hours × rates × { weight of each expert, lost, outcomes f64 }
//! │ end of the remembered hours i64 (i64::MIN: none) │ hours u32 × { demand f32 }, NaN: not measured }
//! │ steps × { squares of falls, means, medians f64 }
//! ```
//!
//! States of older formats are read, and what they lack is learned again: format 2 knew residual and total alone, format 3 no linear
//! rise, weighed other experts, and had none on quantiles, format 4 remembered no demand, format 5 knew of no falls, format 6 of no
//! earlier days, format 7 of no expert on the peak as the forecasts have it, format 8 of no tiers; these have a say over more than four hours. Where they have none
//! format 6 is written, and format 5 where no fall was seen.

use super::Calibrator;
use super::experts::{EXPERTS_BEFORE, LEARNED_RATES, prior, stating};
use super::fallen::{Fallen, STORED_NUMBERS as STORED_FALLS};
use super::linear::{Linear, STORED_NUMBERS};
use super::long::{MEMORY_HOURS, Memory};
use super::pool::{PoolState, Residual};
use super::quantiles::{self, QuantileExperts, SHORT_EXPERTS};
use super::reach::Reach;
use super::residual::MISSING;
use super::seasonal::Seasonal;
use super::series::{LEVELS, SeriesState, recorded_steps};
use super::tiers::tiers;
use crate::mixture::{Mixture, stored_numbers};
use vocab::{ClusterName, GpuModel, HorizonHours, HourStart, Organization, PoolId, SeriesId};

const MAGIC: &[u8; 5] = b"HRCAL";
/// Numbers of the formats: the one that is written, and those that are read, too.
const FORMAT: u8 = 9;
const FORMAT_WITH_FORECAST_PEAKS: u8 = 8;
const FORMAT_WITH_DAYS: u8 = 7;
const FORMAT_WITH_FALLS: u8 = 6;
const FORMAT_WITH_MEMORY: u8 = 5;
const FORMAT_OF_EXPERTS: u8 = 4;
const FORMAT_WITH_RISES: u8 = 3;
const FORMAT_OF_RESIDUALS: u8 = 2;
/// Numbers of a mixture of format 3: six weights and three sums.
const OLD_MIXTURE_NUMBERS: usize = 9;
const NEVER: i64 = i64::MIN;

/// Why bytes are no calibrator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalibratorError {
    /// The bytes have another format.
    #[error("the calibration state is not one that this program writes: train again, or use the version that wrote it")]
    OtherFormat,
    /// The bytes end too early.
    #[error("the calibration state ends early, at byte {at}")]
    CutOff {
        /// The byte at which the bytes end.
        at: usize,
    },
    /// A value is out of its range.
    #[error("the calibration state is damaged before byte {at}: {what}")]
    Damaged {
        /// The byte of the damage.
        at: usize,
        /// The damaged field.
        what: &'static str,
    },
}

impl Calibrator {
    /// The same state gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let format = self.format();
        bytes.push(format);
        bytes.extend([self.horizon.get(), u8::from(self.is_correcting)]);
        bytes.extend(self.newest.map_or(NEVER, HourStart::unix_s).to_le_bytes());
        if format >= FORMAT {
            bytes.extend(self.taught.iter().flat_map(|taught| taught.map_or(NEVER, HourStart::unix_s).to_le_bytes()));
        }
        bytes.extend((self.series.len() as u32).to_le_bytes());
        for series in &self.series {
            put_pool(&mut bytes, &series.id.pool);
            put_text(&mut bytes, series.id.organization.as_str());
            for number in [series.median, series.error_gpus, series.error_hours] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.push(u8::from(series.is_whole));
            bytes.extend(series.codes.iter().map(|code| code.cast_unsigned()));
            bytes.extend(series.quantiles.weights(experts_of(format)).flat_map(f64::to_le_bytes));
            let rises = series.quantiles.rises_gpus().iter().chain(series.quantiles.seasonal().numbers());
            bytes.extend(rises.copied().flat_map(f32::to_le_bytes));
        }
        bytes.extend((self.pools.len() as u32).to_le_bytes());
        for pool in &self.pools {
            put_pool(&mut bytes, &pool.id);
            for one in &pool.residuals {
                let numbers = [one.above_sum, one.total, one.deviation_gpus, one.rise_gpus, one.above_linear_gpus];
                bytes.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
            }
            bytes.extend(pool.linear.iter().flat_map(Linear::numbers).flat_map(f64::to_le_bytes));
            for (number, mixtures) in pool.mixtures.iter().enumerate() {
                let numbers = mixtures.iter().flat_map(|mixture| mixture.first_numbers(stating(number + 1)));
                bytes.extend(numbers.flat_map(f64::to_le_bytes));
            }
            bytes.extend(pool.memory.until().map_or(NEVER, HourStart::unix_s).to_le_bytes());
            bytes.extend((pool.memory.gpus().len() as u32).to_le_bytes());
            bytes.extend(pool.memory.gpus().flat_map(f32::to_le_bytes));
        }
        if format >= FORMAT_WITH_FALLS {
            bytes.extend(self.fallen.numbers().flat_map(f64::to_le_bytes));
        }
        bytes
    }

    /// The oldest format that holds what is known.
    fn format(&self) -> u8 {
        let is_empty = self.series.is_empty() && self.pools.is_empty();
        if Reach::over(self.horizon).days > 0 && !is_empty {
            FORMAT
        } else if self.fallen.is_untaught() {
            FORMAT_WITH_MEMORY
        } else {
            FORMAT_WITH_FALLS
        }
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CalibratorError> {
        let (format, rest) =
            bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first).ok_or(CalibratorError::OtherFormat)?;
        if !(FORMAT_OF_RESIDUALS..=FORMAT).contains(format) {
            return Err(CalibratorError::OtherFormat);
        }
        let mut reader = Reader { bytes: rest, len: bytes.len() };
        let hours = u64::from(reader.byte()?);
        let horizon = HorizonHours::new(hours).map_err(|_| reader.damaged("a horizon outside 1 to 168 h"))?;
        let mut calibrator = Self::new(horizon, reader.flag()?);
        calibrator.newest = reader.hour()?;
        for taught in &mut calibrator.taught {
            *taught = if *format >= FORMAT { reader.hour()? } else { calibrator.newest };
        }
        let steps = recorded_steps(horizon);
        for _ in 0..reader.count()? {
            let series = reader.series(horizon, *format)?;
            if calibrator.series.last().is_some_and(|before| before.id >= series.id) {
                return Err(reader.damaged("series out of order"));
            }
            for (row, codes) in series.codes.chunks(steps.len()).enumerate() {
                let counts = &mut calibrator.shared[row % LEVELS.len()];
                codes.iter().copied().for_each(|code| counts.add(code));
            }
            calibrator.series.push(series);
        }
        for _ in 0..reader.count()? {
            let pool = reader.pool_state(horizon, *format)?;
            if calibrator.pools.last().is_some_and(|before| before.id >= pool.id) {
                return Err(reader.damaged("pools out of order"));
            }
            calibrator.pools.push(pool);
        }
        if *format >= FORMAT_WITH_FALLS {
            let steps = (0..horizon.steps()).map(|_| reader.numbers::<STORED_FALLS>()).collect::<Result<_, _>>()?;
            calibrator.fallen =
                Fallen::from_numbers(steps).ok_or_else(|| reader.damaged("sums of falls that are none"))?;
        }
        if !reader.bytes.is_empty() {
            return Err(reader.damaged("more bytes than its parts need"));
        }
        calibrator.settle();
        for (place, tier) in tiers(horizon).iter().enumerate() {
            calibrator.settle_tier(place, tier);
        }
        Ok(calibrator)
    }
}

/// How many experts on the quantiles of an organization a format knows.
const fn experts_of(format: u8) -> usize {
    if format >= FORMAT_WITH_DAYS { quantiles::EXPERTS } else { SHORT_EXPERTS }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // Names have at most 200 bytes.
    bytes.push(text.len() as u8);
    bytes.extend(text.as_bytes());
}

fn put_pool(bytes: &mut Vec<u8>, pool: &PoolId) {
    put_text(bytes, pool.cluster.as_str());
    put_text(bytes, pool.gpu_model.as_str());
}

struct Reader<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    const fn at(&self) -> usize {
        self.len - self.bytes.len()
    }

    const fn damaged(&self, what: &'static str) -> CalibratorError {
        CalibratorError::Damaged { at: self.at(), what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CalibratorError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(CalibratorError::CutOff { at: self.len })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CalibratorError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| CalibratorError::CutOff { at: self.len })
    }

    fn byte(&mut self) -> Result<u8, CalibratorError> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool, CalibratorError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.damaged("a flag that is neither 0 nor 1")),
        }
    }

    fn count(&mut self) -> Result<u32, CalibratorError> {
        self.array().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Result<f64, CalibratorError> {
        let number = f64::from_le_bytes(self.array()?);
        if number.is_finite() { Ok(number) } else { Err(self.damaged("a number that is not finite")) }
    }

    fn hour(&mut self) -> Result<Option<HourStart>, CalibratorError> {
        match i64::from_le_bytes(self.array()?) {
            NEVER => Ok(None),
            unix_s => HourStart::from_unix_s(unix_s).map(Some).map_err(|_| self.damaged("a time that is no hour")),
        }
    }

    fn memory(&mut self) -> Result<Memory, CalibratorError> {
        let (until, count) = (self.hour()?, self.count()? as usize);
        if count > MEMORY_HOURS {
            return Err(self.damaged("more remembered hours than there are"));
        }
        let gpus = self.floats(count)?;
        Memory::from_numbers(until, gpus).ok_or_else(|| self.damaged("remembered demand that is none"))
    }

    fn text(&mut self) -> Result<&'a str, CalibratorError> {
        let length = usize::from(self.byte()?);
        let taken = self.take(length)?;
        std::str::from_utf8(taken).map_err(|_| self.damaged("a name that is no UTF-8"))
    }

    fn pool(&mut self) -> Result<PoolId, CalibratorError> {
        let cluster = ClusterName::parse(self.text()?).map_err(|_| self.damaged("no name of a cluster"))?;
        let gpu_model = GpuModel::parse(self.text()?).map_err(|_| self.damaged("no name of a GPU model"))?;
        Ok(PoolId { cluster, gpu_model })
    }

    fn series(&mut self, horizon: HorizonHours, format: u8) -> Result<SeriesState, CalibratorError> {
        let pool = self.pool()?;
        let name = Organization::parse(self.text()?).map_err(|_| self.damaged("no name of an organization"))?;
        let mut state = SeriesState::new(SeriesId { pool, organization: name }, horizon);
        (state.median, state.error_gpus, state.error_hours) = (self.number()?, self.number()?, self.number()?);
        if state.error_hours < 0.0 {
            return Err(self.damaged("a negative number of hours"));
        }
        state.is_whole = self.flag()?;
        let count = state.codes.len();
        state.codes = self.take(count)?.iter().map(|byte| byte.cast_signed()).collect();
        if state.codes.iter().all(|code| *code == MISSING) {
            return Err(self.damaged("a series without residuals"));
        }
        if format >= FORMAT_OF_EXPERTS {
            state.quantiles = self.quantiles(state.quantiles.rises_gpus().len(), &Reach::over(horizon), format)?;
        }
        Ok(state)
    }

    fn quantiles(&mut self, rises: usize, reach: &Reach, format: u8) -> Result<QuantileExperts, CalibratorError> {
        let weights = LEVELS.len() * stored_numbers(experts_of(format));
        let weights = (0..weights).map(|_| self.array().map(f64::from_le_bytes)).collect::<Result<Vec<_>, _>>()?;
        let rises = self.floats(rises)?;
        let seasonal = if format >= FORMAT_WITH_DAYS {
            let rises = self.floats(Seasonal::numbers_of(reach))?;
            Seasonal::from_numbers(rises).ok_or_else(|| self.damaged("rises above earlier days that are none"))?
        } else {
            Seasonal::unknown(reach)
        };
        QuantileExperts::from_numbers(&weights, rises, seasonal, reach)
            .ok_or_else(|| self.damaged("weights of quantiles that are no distribution"))
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, CalibratorError> {
        (0..count).map(|_| self.array().map(f32::from_le_bytes)).collect()
    }

    fn pool_state(&mut self, horizon: HorizonHours, format: u8) -> Result<PoolState, CalibratorError> {
        let mut state = PoolState::new(self.pool()?, horizon);
        for place in 0..state.residuals.len() {
            state.residuals[place] = self.residual(format)?;
        }
        if state.is_forgotten() {
            return Err(self.damaged("a pool without residuals"));
        }
        if format == FORMAT_WITH_RISES {
            let rates = LEARNED_RATES.len() * state.mixtures.len();
            self.take(rates * OLD_MIXTURE_NUMBERS * size_of::<f64>())?;
        }
        if format >= FORMAT_OF_EXPERTS {
            for linear in &mut state.linear {
                let numbers = self.numbers::<STORED_NUMBERS>()?;
                *linear = Linear::from_numbers(&numbers).ok_or_else(|| self.damaged("sums of rises that are none"))?;
            }
            for (number, mixtures) in state.mixtures.iter_mut().enumerate() {
                let experts = if format >= FORMAT_WITH_FORECAST_PEAKS { stating(number + 1) } else { EXPERTS_BEFORE };
                for mixture in mixtures {
                    let numbers: Result<Vec<f64>, _> =
                        (0..stored_numbers(experts)).map(|_| self.array().map(f64::from_le_bytes)).collect();
                    *mixture = Mixture::from_first_numbers(&numbers?, prior(number + 1))
                        .ok_or_else(|| self.damaged("weights of experts that are no distribution"))?;
                }
            }
        }
        if format >= FORMAT_WITH_MEMORY {
            state.memory = self.memory()?;
        }
        Ok(state)
    }

    fn residual(&mut self, format: u8) -> Result<Residual, CalibratorError> {
        let mut number = || self.array().map(f32::from_le_bytes);
        let mut residual = Residual { above_sum: number()?, total: number()?, ..Residual::NONE };
        if format >= FORMAT_WITH_RISES {
            (residual.deviation_gpus, residual.rise_gpus) = (number()?, number()?);
        }
        if format >= FORMAT_OF_EXPERTS {
            residual.above_linear_gpus = number()?;
        }
        let Residual { above_sum, total, deviation_gpus, rise_gpus, above_linear_gpus } = residual;
        let all = [above_sum, total, deviation_gpus, rise_gpus, above_linear_gpus];
        if all.iter().any(|one| one.is_infinite()) || above_sum.is_nan() != total.is_nan() {
            return Err(self.damaged("a residual that is not finite"));
        }
        Ok(residual)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[f64; N], CalibratorError> {
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = f64::from_le_bytes(self.array()?);
        }
        Ok(numbers)
    }
}
