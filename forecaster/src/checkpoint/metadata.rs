//! The serde twin of what a checkpoint says of itself.

use super::{CheckpointError, FORMAT};
use crate::bound::{Aggregation, AggregationScore, PoolCalibration};
use crate::model::{ModelKind, ModelSpec};
use crate::scores::PoolScores;
use crate::trained::Trained;
use datasets::HourRange;
use serde::{Deserialize, Serialize};
use vocab::{ClusterName, GpuModel, HorizonHours, HourStart, Organization, PoolId, SeriesId};

/// Read first, so that a file of another format is distinguished from a damaged one.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// All of a checkpoint that is no tensor.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    format: u32,
    code_version: String,
    model: String,
    horizon_hours: u8,
    lookback_hours: usize,
    seed: u64,
    data_from_unix_s: i64,
    data_until_unix_s: i64,
    /// Cluster, GPU model, organization.
    series: Vec<[String; 3]>,
    /// Calibration of each pool.
    pub calibrations: Vec<Calibration>,
}

/// Calibration of a pool as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    cluster: String,
    gpu_model: String,
    /// Organizations of the correlation, in the order of its rows.
    pub organizations: Vec<String>,
    mean_correlation: f64,
    step_correlation: f64,
    chosen: String,
    scores: Vec<Score>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Score {
    aggregation: String,
    issues: usize,
    days: usize,
    coverage: f64,
    coverage_interval: [f64; 2],
    pinball_gpus: f64,
    over_reserved_gpus: f64,
    shortfall_gpus: f64,
}

impl Metadata {
    /// Metadata of a trained model.
    pub fn of(trained: &Trained, series: &[SeriesId], code_version: &str) -> Self {
        let names = |id: &SeriesId| {
            [id.pool.cluster.as_str(), id.pool.gpu_model.as_str(), id.organization.as_str()].map(str::to_owned)
        };
        Self {
            format: FORMAT,
            code_version: code_version.to_owned(),
            model: trained.spec.kind.as_str().to_owned(),
            horizon_hours: trained.spec.horizon.get(),
            lookback_hours: trained.spec.lookback_hours,
            seed: trained.spec.seed,
            data_from_unix_s: trained.data.from.unix_s(),
            data_until_unix_s: trained.data.to.unix_s(),
            series: series.iter().map(names).collect(),
            calibrations: trained.calibrations.iter().map(Calibration::of).collect(),
        }
    }

    /// Parses metadata of this format.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let Version { format: found } = serde_json::from_str(text)?;
        if found != FORMAT {
            return Err(CheckpointError::OtherFormat { found });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Specification of the model.
    pub fn spec(&self) -> Result<ModelSpec, CheckpointError> {
        Ok(ModelSpec {
            kind: ModelKind::parse(&self.model)?,
            horizon: HorizonHours::new(u64::from(self.horizon_hours))?,
            lookback_hours: self.lookback_hours,
            seed: self.seed,
        })
    }

    /// Hours on which the model was trained.
    pub fn data(&self) -> Result<HourRange, CheckpointError> {
        let hour = HourStart::from_unix_s;
        Ok(HourRange { from: hour(self.data_from_unix_s)?, to: hour(self.data_until_unix_s)? })
    }

    /// Series on which the model was trained.
    pub fn series(&self) -> Result<Vec<SeriesId>, CheckpointError> {
        let id = |[cluster, gpu_model, organization]: &[String; 3]| {
            let pool = PoolId { cluster: ClusterName::parse(cluster)?, gpu_model: GpuModel::parse(gpu_model)? };
            Ok(SeriesId { pool, organization: Organization::parse(organization)? })
        };
        self.series.iter().map(id).collect()
    }
}

impl Calibration {
    fn of(one: &PoolCalibration) -> Self {
        Self {
            cluster: one.pool.cluster.as_str().to_owned(),
            gpu_model: one.pool.gpu_model.as_str().to_owned(),
            organizations: one.organizations.iter().map(|name| name.as_str().to_owned()).collect(),
            mean_correlation: one.mean_correlation,
            step_correlation: one.step_correlation,
            chosen: one.chosen.as_str().to_owned(),
            scores: one.scores.iter().map(Score::of).collect(),
        }
    }

    /// Calibration with its correlation.
    pub fn restore(&self, correlation: Vec<f64>) -> Result<PoolCalibration, CheckpointError> {
        let pool = PoolId { cluster: ClusterName::parse(&self.cluster)?, gpu_model: GpuModel::parse(&self.gpu_model)? };
        Ok(PoolCalibration {
            pool,
            organizations: self.organizations.iter().map(|name| Organization::parse(name)).collect::<Result<_, _>>()?,
            correlation,
            mean_correlation: self.mean_correlation,
            step_correlation: self.step_correlation,
            scores: self.scores.iter().map(Score::restore).collect::<Result<_, _>>()?,
            chosen: Aggregation::parse(&self.chosen)?,
        })
    }
}

impl Score {
    fn of(one: &AggregationScore) -> Self {
        let PoolScores { issues, days, coverage, coverage_interval, pinball_gpus, over_reserved_gpus, shortfall_gpus } =
            one.scores;
        let aggregation = one.aggregation.as_str().to_owned();
        Self {
            aggregation,
            issues,
            days,
            coverage,
            coverage_interval,
            pinball_gpus,
            over_reserved_gpus,
            shortfall_gpus,
        }
    }

    fn restore(&self) -> Result<AggregationScore, CheckpointError> {
        let &Self {
            issues, days, coverage, coverage_interval, pinball_gpus, over_reserved_gpus, shortfall_gpus, ..
        } = self;
        let scores =
            PoolScores { issues, days, coverage, coverage_interval, pinball_gpus, over_reserved_gpus, shortfall_gpus };
        Ok(AggregationScore { aggregation: Aggregation::parse(&self.aggregation)?, scores })
    }
}
