use crate::{HourStart, MilliGpus, SeriesId};

/// The demand of one series in one hour: HP GPUs running + pending, peak within the hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// Series of the row.
    pub series: SeriesId,
    /// Start of the hour.
    pub hour: HourStart,
    /// Peak demand within the hour.
    pub demand: MilliGpus,
}
