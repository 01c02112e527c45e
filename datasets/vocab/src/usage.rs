use crate::{HourStart, MilliGpus, SeriesId};

/// The demand of one series in one hour: HP GPUs running + pending, peak within the hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub series: SeriesId,
    pub hour: HourStart,
    pub demand: MilliGpus,
}
