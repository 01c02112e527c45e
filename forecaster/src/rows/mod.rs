//! Windows as rows of numbers that are alike for all series, large and small, so that series teach each other.

mod choice;
mod days_off;
mod drawn;
mod features;
mod history;
mod samples;
mod spans;
mod step_groups;

pub use features::{FeatureGroup, Features};
pub use history::{History, HistoryFault, Source};
pub use samples::{Learned, Samples, learned, series_scale_gpus};
pub use step_groups::StepGroups;

/// Numbers that a model of rows says of each step, in the order mean, quantiles 0.5, 0.9 and 0.95, spread: differences to
/// the last value in deviations of the series, the last one a deviation.
pub const OUTPUTS: usize = 5;
/// Place of the spread among them.
pub const SPREAD: usize = 4;
