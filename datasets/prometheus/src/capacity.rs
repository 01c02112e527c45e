//! GPUs of each model by hour: pure.

use crate::answer::{Answer, Series};
use crate::error::DataFault;
use crate::gaps::Span;
use crate::hours::{Rhythm, amount, model, off, twice};
use crate::promql::Labels;
use std::collections::BTreeMap;
use vocab::{CapacityRow, ClusterName, GpuModel, HourStart, MilliGpus, PoolId};

/// Collects answers, part by part. What an hour has is the least of its samples: a promise has to hold in all of them.
#[derive(Debug, Default)]
pub struct Capacity {
    least: BTreeMap<GpuModel, BTreeMap<HourStart, MilliGpus>>,
}

impl Capacity {
    /// # Errors
    /// No rows can be made of the answer.
    pub fn take(&mut self, span: Span, answer: &Answer, labels: &Labels, rhythm: Rhythm) -> Result<(), DataFault> {
        let mut known: BTreeMap<GpuModel, &Series> = BTreeMap::new();
        for series in &answer.series {
            let gpu_model = model(series, labels)?;
            if let Some(first) = known.insert(gpu_model.clone(), series) {
                return Err(twice(format!("the capacity of {gpu_model}"), first, series));
            }
            let hours = self.least.entry(gpu_model).or_default();
            for sample in series.samples.iter().filter(|sample| sample.value.is_finite()) {
                let place = rhythm.index(span, sample.at_ms).ok_or_else(|| off(series, sample.at_ms))?;
                let gpus = amount(series, sample.at_ms, sample.value)?;
                let hour = span.from.plus_hours(place as i64 / i64::from(rhythm.per_hour()));
                let least = hours.entry(hour).or_insert(gpus);
                *least = (*least).min(gpus);
            }
        }
        Ok(())
    }

    /// A row for each hour in which it changes.
    #[must_use]
    pub fn rows(self, cluster: &ClusterName) -> Vec<CapacityRow> {
        let mut rows = Vec::new();
        for (gpu_model, hours) in self.least {
            let pool = PoolId { cluster: cluster.clone(), gpu_model };
            let mut last = None;
            for (from, capacity) in hours {
                if last.replace(capacity) != Some(capacity) {
                    rows.push(CapacityRow { pool: pool.clone(), from, capacity });
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Sample;

    #[test]
    fn an_hour_has_the_least_of_its_samples_and_a_row_where_it_changes() {
        let from = HourStart::from_unix_s(7_200_000).unwrap();
        let span = Span { from, until: from.plus_hours(4) };
        let rhythm = Rhythm { step_s: 1_800, least_share: 0.5 };
        let fixed_model = Some(GpuModel::parse("A100").unwrap());
        let labels = Labels { organization: "namespace".to_owned(), gpu_model: None, fixed_model };
        let sample = |(number, value): (i64, f64)| Sample { at_ms: (from.unix_s() + number * 1_800) * 1_000, value };
        let samples = [8.0, 8.0, 8.0, 4.0, 4.0, f64::NAN, 8.0, 8.0];
        let series = Series { labels: BTreeMap::new(), samples: (0..).zip(samples).map(sample).collect() };
        let cluster = ClusterName::parse("earth").unwrap();
        let mut capacity = Capacity::default();
        let answer = Answer { series: vec![series.clone()], warnings: Vec::new() };
        capacity.take(span, &answer, &labels, rhythm).unwrap();
        let rows = capacity.rows(&cluster);
        let all: Vec<_> = rows.iter().map(|row| (row.from.hours_since(from), row.capacity.as_gpus())).collect();
        assert_eq!(all, [(0, 8.0), (1, 4.0), (3, 8.0)]);
        let doubled = Answer { series: vec![series.clone(), series], warnings: Vec::new() };
        let refused = Capacity::default().take(span, &doubled, &labels, rhythm).unwrap_err();
        assert!(refused.to_string().contains("are both the capacity of A100"), "{refused}");
    }
}
