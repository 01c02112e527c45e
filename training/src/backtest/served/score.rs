//! The worth of served bounds: how often they held, and how much of the quota that they let be sold was kept.

use super::replay::Sample;
use forecaster::scores::{PoolPair, pinball, share_interval};
use std::collections::BTreeMap;
use vocab::{GuaranteeRate, HorizonHours, HourStart, SECONDS_PER_HOUR, UnixSeconds};

/// Ends of the buckets of time since a restart, in hours; the last one has none.
const SINCE_RESTART_HOURS: [i64; 4] = [1, 2, 4, 9];

/// Which samples stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    All,
    /// 0 to 23.
    LocalHour(u8),
    /// The number of the bucket; none before the first restart.
    SinceRestart(Option<usize>),
}

impl By {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::LocalHour(_) => "hour",
            Self::SinceRestart(_) => "restart",
        }
    }

    /// Which one of its kind.
    #[must_use]
    pub fn of(self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::LocalHour(hour) => format!("{hour:02}"),
            Self::SinceRestart(None) => "before".to_owned(),
            Self::SinceRestart(Some(bucket)) => {
                let start = bucket.checked_sub(1).map_or(0, |before| SINCE_RESTART_HOURS[before]);
                let end = SINCE_RESTART_HOURS.get(bucket);
                end.map_or_else(|| format!("{start} h on"), |end| format!("{start} to {end} h"))
            }
        }
    }

    fn since_restart(since_s: Option<i64>) -> Self {
        let bucket = |since_s: i64| SINCE_RESTART_HOURS.partition_point(|end| end * SECONDS_PER_HOUR <= since_s);
        Self::SinceRestart(since_s.map(bucket))
    }
}

/// Bounds beside the peaks that came. Above the capacity nothing is promised, and nothing runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    pub samples: usize,
    covered: usize,
    inventory_gpus: f64,
    broken_gpus: f64,
    pinball_gpus: f64,
}

impl Tally {
    fn add(&mut self, pair: &PoolPair, rate: GuaranteeRate) {
        self.samples += 1;
        self.covered += usize::from(pair.is_kept());
        self.pinball_gpus += pinball(pair.peak_gpus, pair.bound_gpus, rate.as_f64());
    }

    /// Had all of it been sold: HP takes what its peak needs beyond the bound.
    fn sell(&mut self, sample: &Sample, bound_gpus: f64, peak_gpus: f64) {
        let inventory_gpus = (sample.capacity_gpus - bound_gpus).max(0.0);
        self.inventory_gpus += inventory_gpus;
        self.broken_gpus += inventory_gpus.min((peak_gpus - bound_gpus).max(0.0));
    }

    /// Share of bounds at or above the peak.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.covered as f64 / self.samples as f64)
    }

    /// K_H: the share of GPUs that would have been kept, had every inventory been sold whole. None where there was none.
    #[must_use]
    pub fn kept_rate(&self) -> Option<f64> {
        (self.inventory_gpus > 0.0).then(|| 1.0 - self.broken_gpus / self.inventory_gpus)
    }

    /// Mean pinball loss at the guarantee rate.
    #[must_use]
    pub fn pinball_gpus(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.pinball_gpus / self.samples as f64)
    }

    /// Mean inventory.
    #[must_use]
    pub fn inventory_gpus(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.inventory_gpus / self.samples as f64)
    }
}

/// One group of samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    pub served: Tally,
    /// The forecast's own bounds at the same times.
    pub forecast: Tally,
    /// Samples whose peak was not measured: they are not scored.
    pub unmeasured: usize,
    held: Vec<(HourStart, bool)>,
}

impl Group {
    /// 90 % interval of the coverage of what was served, over days.
    #[must_use]
    pub fn coverage_interval(&self) -> [f64; 2] {
        share_interval(self.held.iter().copied())
    }

    fn add(&mut self, sample: &Sample, rate: GuaranteeRate) {
        let Some(peak_gpus) = sample.peak_gpus else {
            self.unmeasured += 1;
            return;
        };
        let Ok(issue) = sample.at.hour() else { return };
        let pair = |bound_gpus: f64| PoolPair {
            issue,
            bound_gpus: bound_gpus.min(sample.capacity_gpus),
            peak_gpus: peak_gpus.min(sample.capacity_gpus),
        };
        let served = pair(sample.bound_gpus);
        self.held.push((issue, served.is_kept()));
        self.served.add(&served, rate);
        self.served.sell(sample, sample.bound_gpus, peak_gpus);
        self.forecast.add(&pair(sample.forecast_gpus), rate);
        self.forecast.sell(sample, sample.forecast_gpus, peak_gpus);
    }
}

/// Samples from `from` on by the hours of their promise: all, by local hour, and by time since a restart where there was one.
#[must_use]
pub fn groups(samples: &[Sample], from: UnixSeconds, rate: GuaranteeRate) -> BTreeMap<(HorizonHours, By), Group> {
    let mut groups: BTreeMap<(HorizonHours, By), Group> = BTreeMap::new();
    let has_restarts = samples.iter().any(|one| one.since_restart_s.is_some());
    for sample in samples.iter().filter(|one| one.at >= from) {
        let by_restart = has_restarts.then(|| By::since_restart(sample.since_restart_s));
        for by in [By::All, By::LocalHour(sample.local_hour)].into_iter().chain(by_restart) {
            groups.entry((sample.hours, by)).or_default().add(sample, rate);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: i64 = SECONDS_PER_HOUR;

    /// A capacity of 100 GPUs and a forecast of 90.
    fn sample(hour: i64, bound_gpus: f64, peak_gpus: Option<f64>) -> Sample {
        let at = UnixSeconds::new(hour * HOUR_S);
        Sample {
            at,
            issue: at.hour().unwrap(),
            hours: HorizonHours::ONE,
            local_hour: (hour % 24) as u8,
            since_restart_s: (hour >= 24).then(|| hour % 24 * HOUR_S),
            capacity_gpus: 100.0,
            bound_gpus,
            forecast_gpus: 90.0,
            peak_gpus,
        }
    }

    #[test]
    fn what_breaks_is_what_the_peak_takes_of_the_inventory_and_not_all_of_it() {
        let samples = [sample(0, 60.0, Some(50.0)), sample(1, 60.0, Some(64.0)), sample(2, 80.0, Some(130.0))];
        let groups = groups(&samples, UnixSeconds::new(0), GuaranteeRate::GFS);
        let all = &groups[&(HorizonHours::ONE, By::All)];
        assert_eq!((all.served.samples, all.served.coverage()), (3, Some(1.0 / 3.0)));
        // Of 40 + 40 + 20 GPUs 4 and 20 were taken back.
        assert_eq!(all.served.kept_rate(), Some(1.0 - 24.0 / 100.0));
        assert_eq!(all.served.inventory_gpus(), Some(100.0 / 3.0));
        // The peak counts up to the capacity: 10 below, 4 and 20 above.
        let pinball = all.served.pinball_gpus().unwrap();
        assert!((pinball - (0.1 * 10.0 + 0.9 * 4.0 + 0.9 * 20.0) / 3.0).abs() < 1e-12, "{pinball}");
        assert_eq!((all.forecast.coverage(), all.forecast.kept_rate()), (Some(2.0 / 3.0), Some(1.0 - 10.0 / 30.0)));
    }

    #[test]
    fn samples_stand_together_by_local_hour_and_by_time_since_the_last_restart() {
        let samples: Vec<_> =
            (0..72).map(|hour| sample(hour, 60.0, Some(if hour % 24 == 10 { 70.0 } else { 50.0 }))).collect();
        let groups = groups(&samples, UnixSeconds::new(0), GuaranteeRate::GFS);
        let coverage = |by: By| groups[&(HorizonHours::ONE, by)].served.coverage().unwrap();
        assert_eq!((coverage(By::LocalHour(10)), coverage(By::LocalHour(11))), (0.0, 1.0));
        let restarts: Vec<_> =
            groups.keys().filter(|(_, by)| by.as_str() == "restart").map(|(_, by)| by.of()).collect();
        assert_eq!(restarts, ["before", "0 to 1 h", "1 to 2 h", "2 to 4 h", "4 to 9 h", "9 h on"]);
        let counts: Vec<_> =
            groups.iter().filter(|((_, by), _)| by.as_str() == "restart").map(|(_, one)| one.served.samples).collect();
        assert_eq!(counts, [24, 2, 2, 4, 10, 30]);
    }

    #[test]
    fn what_was_not_measured_or_lies_before_is_not_scored() {
        let samples = [sample(0, 60.0, Some(70.0)), sample(1, 60.0, None), sample(2, 60.0, Some(50.0))];
        let groups = groups(&samples, UnixSeconds::new(HOUR_S), GuaranteeRate::GFS);
        let all = &groups[&(HorizonHours::ONE, By::All)];
        assert_eq!((all.served.samples, all.unmeasured, all.served.coverage()), (1, 1, Some(1.0)));
        assert_eq!(all.coverage_interval(), [1.0, 1.0]);
        let nothing_to_sell = super::groups(&[sample(0, 120.0, Some(70.0))], UnixSeconds::new(0), GuaranteeRate::GFS);
        assert_eq!(nothing_to_sell[&(HorizonHours::ONE, By::All)].served.kept_rate(), None);
    }
}
