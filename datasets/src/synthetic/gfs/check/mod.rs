//! Generated against published figures: the table of `datasets generate --check`.

mod marginals;

use super::{Made, Shares};
use vocab::UsageRow;

/// GPU-seconds of a category may differ by so much of all GPU-seconds, or by a quarter of the category's share where that is
/// less. They can be this near, although a few jobs hold most of them, only since durations are calibrated last.
const GPU_SECONDS_POINTS: f64 = 0.01;
const GPU_SECONDS_OF_SHARE: f64 = 0.25;
/// Jobs of a category may differ by what as many independent jobs would in one run of sixteen thousand (four standard
/// deviations), and by what raking leaves: so much, or a fifth of the share where that is less.
const JOBS_DEVIATIONS: f64 = 4.0;
const JOBS_POINTS: f64 = 0.001;
const JOBS_OF_SHARE: f64 = 0.2;
/// Jobs of an hour of the day may differ by so much of all jobs: they come in batches, and so are no independent draws. The
/// published hours differ among themselves by three times as much.
const HOUR_POINTS: f64 = 0.0075;
/// Gaps between submissions depend on how one month's busy days fall.
const GAP_OF_PUBLISHED: f64 = 0.25;
/// Means over a class are calibrated.
const MEAN_OF_PUBLISHED: f64 = 0.02;
/// Over fewer days a few jobs hold most GPU-seconds, and no calibration brings them near what is published of half a year.
pub const LEAST_DAYS: u32 = 28;

/// Measure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Share of all jobs.
    Jobs,
    /// Share of all GPU-seconds.
    GpuSeconds,
    Seconds,
    Ratio,
}

impl Measure {
    /// Name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::GpuSeconds => "gpu_seconds",
            Self::Seconds => "seconds",
            Self::Ratio => "ratio",
        }
    }

    /// Whether the measure is a share of a total.
    #[must_use]
    pub const fn is_share(self) -> bool {
        matches!(self, Self::Jobs | Self::GpuSeconds)
    }
}

/// One figure, made and published.
#[derive(Debug, Clone)]
pub struct Row {
    /// Marginal distribution of the row.
    pub marginal: &'static str,
    /// Category of the marginal.
    pub category: String,
    /// Measure of the figures.
    pub measure: Measure,
    /// `None` where nothing is published.
    pub published: Option<f64>,
    /// Figure of the generated cluster.
    pub generated: f64,
    /// How far apart they may be; `None` where the row is only for information.
    pub tolerance: Option<f64>,
}

impl Row {
    /// Generated minus published, where both exist.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        self.published.map(|published| self.generated - published)
    }

    /// `None` where nothing is asked for.
    #[must_use]
    pub fn is_within(&self) -> Option<bool> {
        let (difference, tolerance) = (self.difference()?, self.tolerance?);
        Some(difference.abs() <= tolerance)
    }

    /// By which a row is named where it fails.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {} ({})", self.marginal, self.category, self.measure.name())
    }
}

/// All rows of `made`, whose usage is `usage`. They say something of windows of [`LEAST_DAYS`] or more.
#[must_use]
pub fn check(made: &Made, usage: &[UsageRow]) -> Vec<Row> {
    let mut rows = match made.what.shares {
        Shares::Trace => marginals::of_trace(made),
        Shares::A100 => marginals::of_table_3(made),
    };
    rows.extend(marginals::hours(made));
    rows.extend(marginals::days(made));
    rows.extend(marginals::standing(made));
    rows.extend(marginals::load(made, usage));
    rows
}

/// Names of the rows outside their tolerance.
#[must_use]
pub fn failed(rows: &[Row]) -> Vec<String> {
    rows.iter().filter(|row| row.is_within() == Some(false)).map(Row::name).collect()
}

fn jobs_row(marginal: &'static str, category: &str, published: f64, generated: f64, all_jobs: usize) -> Row {
    let deviation = (published * (1.0 - published) / all_jobs as f64).sqrt();
    Row {
        marginal,
        category: category.to_owned(),
        measure: Measure::Jobs,
        published: Some(published),
        generated,
        tolerance: Some(JOBS_DEVIATIONS * deviation + JOBS_POINTS.min(JOBS_OF_SHARE * published)),
    }
}

fn gpu_seconds_row(marginal: &'static str, category: &str, published: f64, generated: f64) -> Row {
    Row {
        marginal,
        category: category.to_owned(),
        measure: Measure::GpuSeconds,
        published: Some(published),
        generated,
        tolerance: Some(GPU_SECONDS_POINTS.min(GPU_SECONDS_OF_SHARE * published)),
    }
}

/// A figure that may differ by a share of what is published.
fn figure_row(marginal: &'static str, category: String, figures: [f64; 2], of_published: Option<f64>) -> Row {
    let [published, generated] = figures;
    let tolerance = of_published.map(|share| share * published);
    Row { marginal, category, measure: Measure::Seconds, published: Some(published), generated, tolerance }
}
