//! Numbers of a report, without text and drawings.

mod bands;
mod calibration;
mod coverage;
mod hours;
mod models;
mod partial;
mod pools;
mod worst;

pub use bands::{Band, BandPoint, bands};
pub use calibration::{Curve, PIT_BINS, curve, pit};
pub use coverage::{Coverage, coverage};
pub use hours::hour_of_week;
pub use models::{ModelView, is_baseline, models};
pub use partial::{PartialBounds, partial_bounds};
pub use pools::{BoundLine, PoolView, pools};
pub use worst::{Share, WorstHour, worst_hours};

use crate::forecasts::{ForecastRow, Forecasts};
use crate::measured::RecordingGaps;
use crate::pool_bounds::PoolBounds;
use crate::source::{Capacities, Serving};
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use chrono_tz::Tz;
use vocab::HourStart;

/// Input of the analysis.
pub struct Material<'a> {
    pub forecasts: &'a Forecasts,
    pub gaps: &'a RecordingGaps,
    pub bounds: Option<&'a PoolBounds>,
    pub capacities: &'a Capacities,
    pub serving: &'a Serving,
    /// Hours of the day and days of the week are those of this zone.
    pub zone: Tz,
    /// The model that the pictures show: its place among [`Forecasts::models`].
    pub subject: usize,
    /// The rule that the others are measured against, where there is one.
    pub reference: Option<usize>,
}

impl Material<'_> {
    /// The rows of a model that are scored, by series, issue time and step.
    pub fn scored(&self, model: usize) -> Vec<&ForecastRow> {
        let rows = self.forecasts.ordered.iter().map(|place| &self.forecasts.rows[*place]);
        rows.filter(|row| row.model == model && !self.gaps.holds(self.forecasts, row)).collect()
    }

    /// The longest step.
    pub fn horizon(&self) -> u8 {
        self.forecasts.rows.iter().map(|row| row.step).max().unwrap_or(1)
    }

    pub fn local(&self, hour: HourStart) -> NaiveDateTime {
        let utc = DateTime::from_timestamp(hour.unix_s(), 0).expect("hours lie between 1970 and 2200");
        utc.with_timezone(&self.zone).naive_local()
    }

    /// Weekday (0 is Monday) and hour of the day.
    pub fn place_in_week(&self, hour: HourStart) -> (usize, usize) {
        let local = self.local(hour);
        (local.weekday().num_days_from_monday() as usize, local.hour() as usize)
    }
}

/// The mean; zero of nothing.
fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}
