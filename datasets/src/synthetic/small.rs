//! A small pool, calibrated to no trace.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;
use vocab::{
    ClusterName, GpuModel, HOURS_PER_DAY, HOURS_PER_WEEK, HourStart, MilliGpus, Organization, PoolId, SeriesId,
    UsageRow,
};

/// Parameters of a small cluster.
#[derive(Debug, Clone)]
pub struct SmallCluster {
    /// Name of the cluster.
    pub cluster: ClusterName,
    /// GPU model of the pool.
    pub gpu_model: GpuModel,
    /// First hour.
    pub start: HourStart,
    /// Days of usage.
    pub days: u32,
    /// Number of organizations.
    pub organizations: u32,
    /// Seed: the same seed gives the same rows.
    pub seed: u64,
}

/// The character of one organization.
struct Habit {
    level_gpus: f64,
    daily: f64,
    weekend: f64,
    phase_hours: f64,
    burst_chance: f64,
}

impl SmallCluster {
    /// Hourly demand of every organization: a level, a day and a weekend of its own, steps that last (jobs begin and end),
    /// and bursts. It is calibrated to no trace, and no figure may be quoted from it. The same seed gives the same rows.
    ///
    /// # Panics
    /// Never: every number stays far inside what the words allow.
    #[must_use]
    pub fn usage(&self) -> Vec<UsageRow> {
        let pool = PoolId { cluster: self.cluster.clone(), gpu_model: self.gpu_model.clone() };
        let mut rows = Vec::new();
        for number in 0..self.organizations {
            // A generator of its own, so that one organization more changes none of the others.
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(u64::from(number));
            let organization = Organization::parse(&format!("org-{number:03}")).expect("the name is a good one");
            let series = SeriesId { pool: pool.clone(), organization };
            rows.extend(self.series(&series, &mut rng));
        }
        rows
    }

    fn series(&self, series: &SeriesId, rng: &mut ChaCha8Rng) -> Vec<UsageRow> {
        let habit = Habit::draw(rng);
        let (mut running_gpus, mut burst_gpus) = (habit.level_gpus, 0.0);
        let hours = i64::from(self.days) * HOURS_PER_DAY;
        let row = |hour: i64| {
            let wanted = habit.wanted_gpus(hour);
            // Jobs come and go a few at a time, and a burst fades over hours.
            running_gpus += 0.35 * (wanted - running_gpus) * rng.random::<f64>();
            burst_gpus *= 0.7;
            if rng.random::<f64>() < habit.burst_chance {
                burst_gpus += habit.level_gpus * (0.5 + rng.random::<f64>());
            }
            let demand = MilliGpus::nearest((running_gpus + burst_gpus).round().max(0.0)).expect("a small number");
            UsageRow { series: series.clone(), hour: self.start.plus_hours(hour), demand, at_end: None }
        };
        (0..hours).map(row).collect()
    }
}

impl Habit {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        Self {
            // A few large organizations and many small ones.
            level_gpus: 4.0 * (2.5 * rng.random::<f64>()).exp(),
            daily: 0.4 * rng.random::<f64>(),
            weekend: 0.4 * rng.random::<f64>(),
            phase_hours: 10.0 + 6.0 * rng.random::<f64>(),
            burst_chance: 0.03 * rng.random::<f64>(),
        }
    }

    fn wanted_gpus(&self, hour: i64) -> f64 {
        let wave = (TAU * (hour as f64 - self.phase_hours) / HOURS_PER_DAY as f64).cos();
        let is_weekend = hour.rem_euclid(HOURS_PER_WEEK) >= 5 * HOURS_PER_DAY;
        let week = if is_weekend { 1.0 - self.weekend } else { 1.0 };
        self.level_gpus * (1.0 + self.daily * wave) * week
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(organizations: u32, seed: u64) -> Vec<UsageRow> {
        let start = HourStart::from_unix_s(1_709_222_400).unwrap();
        let (cluster, gpu_model) = (ClusterName::parse("demo").unwrap(), GpuModel::parse("A100").unwrap());
        SmallCluster { cluster, gpu_model, start, days: 7, organizations, seed }.usage()
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_and_one_organization_more_changes_none_of_the_others() {
        assert_eq!(rows(3, 7), rows(3, 7));
        assert_ne!(rows(3, 7), rows(3, 8));
        assert_eq!(rows(4, 7)[..3 * 168], rows(3, 7));
    }

    #[test]
    fn demand_moves_and_is_never_absurd() {
        let all = rows(10, 7);
        assert_eq!(all.len(), 10 * 168);
        assert!(all.iter().all(|row| row.demand < MilliGpus::from_gpus(1_000)));
        assert!(all.windows(2).filter(|pair| pair[0].demand != pair[1].demand).count() > all.len() / 4);
    }
}
