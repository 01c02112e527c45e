use crate::fault::{FieldFault, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{ClusterName, GpuModel, HourDemand, HourStart, Organization, PoolId, SeriesId, UsageRow};

/// The demand of one organization in one hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageRowBody {
    /// RFC 3339, the start of the hour.
    pub hour: String,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// `*` for the pool's own hourly peak, which is at least the demand of each organization.
    pub organization: String,
    /// HP GPUs running + pending, peak within the hour; at most 10,000,000.
    pub demand_gpus: f64,
    /// HP GPUs running + pending at the end of the hour, at most `demand_gpus`; left out where it is not known. The means and medians of
    /// the next hours are better with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand_at_end_gpus: Option<f64>,
}

/// `POST /v1/usage`. A row replaces an earlier one of the same series and hour, so that a repeated batch changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageBatch {
    /// The rows.
    pub rows: Vec<UsageRowBody>,
}

/// Counts of the rows of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageReceipt {
    /// Rows that are new.
    pub inserted: u64,
    /// Rows that replaced another value.
    pub changed: u64,
    /// Rows that were stored before.
    pub unchanged: u64,
}

impl TryFrom<UsageBatch> for Vec<UsageRow> {
    type Error = Vec<FieldFault>;

    /// All faults of the batch, or its rows: it is taken whole or not at all. Two values for one hour are a fault.
    fn try_from(batch: UsageBatch) -> Result<Self, Vec<FieldFault>> {
        let mut seen = BTreeMap::new();
        let (mut rows, mut faults) = (Vec::with_capacity(batch.rows.len()), Vec::new());
        for (index, body) in batch.rows.iter().enumerate() {
            match parse(body, Place(&format!("/rows/{index}"))) {
                Ok(row) => match seen.insert((row.series.clone(), row.hour), (index, row.hour_demand())) {
                    None => rows.push(row),
                    Some((_, earlier)) if earlier == row.hour_demand() => {}
                    Some((_, earlier)) if earlier.joined(row.hour_demand()).is_some() => rows.push(row),
                    Some((first, earlier)) => faults.push(FieldFault::new(
                        format!("/rows/{index}/demand_gpus"),
                        format!(
                            "{} for the same hour as row {first}, which has {earlier}: keep one of them",
                            row.hour_demand(),
                        ),
                    )),
                },
                Err(fault) => faults.push(fault),
            }
        }
        faults.extend(low_peaks(&seen));
        if faults.is_empty() { Ok(rows) } else { Err(faults) }
    }
}

/// Peaks of pools that are below the demand of one of their organizations: those of another measurement.
fn low_peaks(rows: &BTreeMap<(SeriesId, HourStart), (usize, HourDemand)>) -> Vec<FieldFault> {
    let mut low: BTreeMap<usize, FieldFault> = BTreeMap::new();
    for ((series, hour), (index, demand)) in rows.iter().filter(|((series, _), _)| !series.is_pool_peak()) {
        let Some((place, own)) = rows.get(&(SeriesId::pool_peak(series.pool.clone()), *hour)) else { continue };
        if own.peak < demand.peak {
            let why = format!(
                "the pool has {own} where {} alone has {demand} (row {index}): state the peak of all of its organizations, or leave it out",
                series.organization
            );
            low.entry(*place).or_insert_with(|| FieldFault::new(format!("/rows/{place}/demand_gpus"), why));
        }
    }
    low.into_values().collect()
}

fn parse(body: &UsageRowBody, place: Place<'_>) -> Result<UsageRow, FieldFault> {
    let pool = PoolId {
        cluster: place.new_name("cluster", &body.cluster, ClusterName::parse)?,
        gpu_model: place.new_name("gpu_model", &body.gpu_model, GpuModel::parse)?,
    };
    let organization = place.new_name("organization", &body.organization, Organization::parse)?;
    let hour = place.hour("hour", &body.hour)?;
    let demand = place.gpus("demand_gpus", body.demand_gpus)?;
    let at_end = body.demand_at_end_gpus.map(|gpus| place.gpus("demand_at_end_gpus", gpus)).transpose()?;
    if at_end.is_some_and(|at_end| at_end > demand) {
        let why = format!("more than the peak of the hour, {demand}: leave it out where it is not known");
        return Err(place.fault("demand_at_end_gpus", why));
    }
    Ok(UsageRow { series: SeriesId { pool, organization }, hour, demand, at_end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: &[(&str, f64)]) -> Result<Vec<UsageRow>, Vec<String>> {
        let body = |(hour, demand_gpus): &(&str, f64)| UsageRowBody {
            hour: (*hour).to_owned(),
            cluster: "earth".into(),
            gpu_model: "V100".into(),
            organization: "vc1".into(),
            demand_gpus: *demand_gpus,
            demand_at_end_gpus: None,
        };
        let parsed: Result<Vec<UsageRow>, _> = UsageBatch { rows: rows.iter().map(body).collect() }.try_into();
        parsed.map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_bad_row_is_named_by_its_pointer_and_the_batch_refused_whole() {
        let faults = batch(&[
            ("2020-05-18T00:00:00Z", 1.0),
            ("2020-05-18T00:30:00Z", 1.0),
            ("2020-05-18T01:00:00Z", -1.0),
            ("yesterday", 1.0),
            ("2020-05-18T00:00:00Z", 2.0),
            ("2020-05-18T02:00:00Z", 999_999_999.0),
            ("2020-05-18T03:00:00.999Z", 1.0),
            ("2026-12-31T23:59:60Z", 1.0),
        ])
        .unwrap_err();
        assert_eq!(
            faults,
            [
                "/rows/1/hour: 2020-05-18T00:30:00Z is not the start of an hour in UTC",
                "/rows/2/demand_gpus: -1 GPUs is negative: amounts of GPUs are 0 or more",
                "/rows/3/hour: invalid time \"yesterday\": write RFC 3339 such as 2024-03-01T00:00:00Z",
                "/rows/4/demand_gpus: 2.000 GPUs for the same hour as row 0, which has 1.000 GPUs: keep one of them",
                "/rows/5/demand_gpus: 9.99999999e8 GPUs exceeds the limit of 10000000 GPUs: write GPUs, not thousandths or bytes",
                "/rows/6/hour: 2020-05-18T03:00:00.999Z has a fraction of a second: write a whole one, such as 2024-03-01T00:00:00Z",
                "/rows/7/hour: 2026-12-31T23:59:60Z is a leap second: write the start of an hour, such as 2024-03-01T00:00:00Z",
            ]
        );
    }

    #[test]
    fn the_name_of_idle_capacity_is_no_organization() {
        let row = UsageRowBody {
            hour: "2020-05-18T00:00:00Z".into(),
            cluster: "earth".into(),
            gpu_model: "V100".into(),
            organization: "__idle__".into(),
            demand_gpus: 1.0,
            demand_at_end_gpus: None,
        };
        let parsed: Result<Vec<UsageRow>, Vec<FieldFault>> = UsageBatch { rows: vec![row] }.try_into();
        let fault = parsed.unwrap_err()[0].to_string();
        assert!(fault.starts_with("/rows/0/organization: \"__idle__\" stands for idle capacity"), "{fault}");
    }

    #[test]
    fn an_equal_duplicate_counts_once() {
        assert_eq!(batch(&[("2020-05-18T00:00:00Z", 1.0), ("2020-05-18T08:00:00+08:00", 1.0)]).unwrap().len(), 1);
    }

    #[test]
    fn a_peak_of_the_pool_below_the_demand_of_an_organization_is_refused_with_both_rows() {
        let body = |organization: &str, demand_gpus: f64| UsageRowBody {
            hour: "2020-05-18T00:00:00Z".into(),
            cluster: "earth".into(),
            gpu_model: "V100".into(),
            organization: organization.into(),
            demand_gpus,
            demand_at_end_gpus: None,
        };
        let of = |peak_gpus: f64| -> Result<Vec<UsageRow>, Vec<FieldFault>> {
            UsageBatch { rows: vec![body("vc1", 3.0), body("*", peak_gpus), body("vc2", 9.0)] }.try_into()
        };
        assert_eq!(of(9.0).unwrap().len(), 3);
        let faults: Vec<String> = of(8.0).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "/rows/1/demand_gpus: the pool has 8.000 GPUs where vc2 alone has 9.000 GPUs (row 2): state the peak of all of its organizations, \
             or leave it out"
            ]
        );
    }

    fn with_ends(ends: &[Option<f64>]) -> Result<Vec<UsageRow>, Vec<String>> {
        let body = |demand_at_end_gpus: &Option<f64>| UsageRowBody {
            hour: "2020-05-18T00:00:00Z".into(),
            cluster: "earth".into(),
            gpu_model: "V100".into(),
            organization: "vc1".into(),
            demand_gpus: 4.0,
            demand_at_end_gpus: *demand_at_end_gpus,
        };
        let parsed: Result<Vec<UsageRow>, _> = UsageBatch { rows: ends.iter().map(body).collect() }.try_into();
        parsed.map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_end_of_an_hour_is_at_most_its_peak_and_stated_once() {
        let known = with_ends(&[Some(2.5)]).unwrap();
        assert_eq!(known[0].at_end.map(vocab::MilliGpus::milli), Some(2_500));
        assert_eq!(with_ends(&[None, Some(4.0), None]).unwrap().iter().filter_map(|row| row.at_end).count(), 1);
        let faults = with_ends(&[Some(4.001)]).unwrap_err();
        assert_eq!(
            faults,
            ["/rows/0/demand_at_end_gpus: more than the peak of the hour, 4.000: leave it out where it is not known"]
        );
        let faults = with_ends(&[Some(1.0), Some(2.0)]).unwrap_err();
        assert_eq!(
            faults,
            [
                "/rows/1/demand_gpus: 4.000 GPUs with 2.000 at the end for the same hour as row 0, which has 4.000 GPUs with 1.000 at the end: keep one of them"
            ]
        );
    }
}
