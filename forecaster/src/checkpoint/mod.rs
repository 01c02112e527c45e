//! A trained model as one row of bytes: safetensors with versioned metadata, verified on load.

mod blend;
mod metadata;
mod peers;
mod tensors;
mod trees;

use crate::DamagedBytes;
use crate::baseline::Baseline;
use crate::bound::{PoolCalibration, UnknownAggregation};
use crate::calibration::{Calibrator, CalibratorError};
use crate::jobs::PastJobs;
use crate::model::{Family, Model, ModelSpec, UnknownModel};
use crate::orglinear::{OrgLinear, Shape, Weights};
use crate::trained::Trained;
use datasets::HourRange;
use metadata::Metadata;
use tensors::{CALIBRATOR, CORRELATION, JOBS, Payload, SCALE, SPREAD};
use vocab::{HorizonError, HourError, NameError, PoolId, SeriesId};

/// The format that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 2;

/// Why bytes are no model that can serve. In each case the model that serves now stays.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The bytes are no safetensors file.
    #[error("the checkpoint is no safetensors file: {}", .0.escape_debug())]
    NotSafetensors(String),
    /// The file has no metadata of this program.
    #[error("the checkpoint has no metadata of Headroom")]
    NoMetadata,
    #[error(
        "the checkpoint has format {found}, and this program reads format {FORMAT}: train again, or use the version that wrote it"
    )]
    /// The checkpoint has another format.
    OtherFormat {
        /// The format of the bytes.
        found: u32,
    },
    /// The metadata are damaged.
    #[error("the metadata of the checkpoint are damaged: {}", .0.to_string().escape_debug())]
    Metadata(#[from] serde_json::Error),
    /// The digest does not match the content.
    #[error("the checkpoint is not what was written: its SHA-256 differs")]
    Changed,
    /// A tensor is missing.
    #[error("the checkpoint lacks the tensor {name}")]
    MissingTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A tensor has another shape.
    #[error("tensor {name} of the checkpoint has shape {found:?}, not {expected:?}")]
    OtherShape {
        /// Name of the tensor.
        name: String,
        /// The shape that the metadata need.
        expected: Vec<usize>,
        /// The shape of the bytes.
        found: Vec<usize>,
    },
    /// A tensor has a number that is not finite.
    #[error("tensor {name} of the checkpoint holds a number that is not finite")]
    NotFinite {
        /// Name of the tensor.
        name: String,
    },
    /// The nodes of a forest lead out of it, or back.
    #[error("forest {name} of the checkpoint is no forest: a node leads out of its tree, or back")]
    BrokenForest {
        /// Name of the forest.
        name: String,
    },
    /// The lookback is shorter than the model needs.
    #[error("the checkpoint looks back {have} h, and its model needs {need} h")]
    ShortLookback {
        /// Hours of the lookback.
        have: usize,
        /// Hours that the model needs.
        need: usize,
    },
    /// The smoothing of a series is damaged.
    #[error("the checkpoint's exponential smoothing of {series} is no model")]
    BrokenSmoothing {
        /// The series of the refused parameters.
        series: SeriesId,
    },
    /// The state of the calibration is damaged.
    #[error(transparent)]
    Calibrator(#[from] CalibratorError),
    /// The jobs of a list are damaged.
    #[error("the jobs of {pool} in the checkpoint are damaged: {fault}")]
    Jobs {
        /// Cluster and GPU model.
        pool: String,
        /// The fault of its bytes.
        fault: DamagedBytes,
    },
    /// The model is unknown.
    #[error(transparent)]
    Model(#[from] UnknownModel),
    /// The aggregation is unknown.
    #[error(transparent)]
    Aggregation(#[from] UnknownAggregation),
    /// The horizon is out of its range.
    #[error(transparent)]
    Horizon(#[from] HorizonError),
    /// An hour is off the grid.
    #[error(transparent)]
    Hour(#[from] HourError),
    /// A name is malformed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The weights cannot be loaded.
    #[error("the weights of the checkpoint do not fit together: {0}")]
    Weights(#[from] candle_core::Error),
}

/// The bytes of a trained model. The same model gives the same bytes.
///
/// # Errors
/// A tensor cannot be read back or serialised.
pub fn save(trained: &Trained, code_version: &str) -> Result<Vec<u8>, CheckpointError> {
    let mut payload = Payload::default();
    let series = match &trained.model {
        Model::OrgLinear(model) => {
            for (name, tensor) in model.weights().tensors() {
                payload.put_f32(name, tensor.dims(), tensor.flatten_all()?.to_vec1()?);
            }
            payload.put_scales(model.scales());
            model.series().to_vec()
        }
        Model::Blend(model) => payload.put_blend(model.parts()),
        Model::Peer(model) => payload.put_network(model.parts())?,
        Model::AutoEts(model) => payload.put_smoothing(model),
        Model::Baseline(model) => {
            payload.put_spreads(model.spreads().values());
            model.spreads().keys().cloned().collect()
        }
    };
    for (place, calibration) in trained.calibrations.iter().enumerate() {
        let size = calibration.organizations.len();
        payload.put_f64(&format!("{CORRELATION}{place}"), &[size, size], calibration.correlation.clone());
    }
    payload.put_bytes(CALIBRATOR, trained.calibrator.to_bytes());
    for (pool, past) in &trained.jobs {
        payload.put_bytes(&format!("{JOBS}{pool}"), past.to_bytes());
    }
    let metadata = Metadata::of(trained, &series, code_version);
    payload.serialize(&serde_json::to_string(&metadata)?)
}

/// Reads a trained model back, and checks everything that can be checked.
///
/// # Errors
/// Any of [`CheckpointError`].
pub fn load(bytes: &[u8]) -> Result<Trained, CheckpointError> {
    let (payload, text) = Payload::parse(bytes)?;
    let metadata = Metadata::parse(&text)?;
    payload.verify(&text)?;
    let (spec, data, series) = (metadata.spec()?, metadata.data()?, metadata.series()?);
    let model = model(&payload, &spec, data, series)?;
    let calibrations = (metadata.calibrations.iter().enumerate())
        .map(|(place, one)| -> Result<PoolCalibration, CheckpointError> {
            let size = one.organizations.len();
            one.restore(payload.f64s(&format!("{CORRELATION}{place}"), &[size, size])?)
        })
        .collect::<Result<_, _>>()?;
    let calibrator = Calibrator::from_bytes(payload.bytes(CALIBRATOR)?)?;
    let jobs = payload.named(JOBS).map(|(pool, bytes)| -> Result<_, CheckpointError> {
        let broken = |fault| CheckpointError::Jobs { pool: pool.to_owned(), fault };
        Ok((PoolId::parse(pool)?, PastJobs::from_bytes(bytes).map_err(broken)?))
    });
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok(Trained { spec, data, model, calibrations, calibrator, jobs })
}

fn model(
    payload: &Payload,
    spec: &ModelSpec,
    data: HourRange,
    series: Vec<SeriesId>,
) -> Result<Model, CheckpointError> {
    let (horizon, lookback_hours) = (spec.horizon, spec.lookback_hours);
    let config = match spec.kind.family() {
        Family::Rule(rule) => {
            let spreads = payload.spreads(SPREAD, &series, horizon)?;
            return Ok(Model::Baseline(Baseline::from_parts(rule, horizon, lookback_hours, spreads)));
        }
        Family::Blend(recipe) => {
            return payload.blend(recipe, series, horizon, lookback_hours).map(Box::new).map(Model::Blend);
        }
        Family::Network(kind) => return payload.network(kind, spec, series).map(Box::new).map(Model::Peer),
        Family::AutoEts => return payload.smoothing(spec, series, data.to).map(Box::new).map(Model::AutoEts),
        Family::OrgLinear(config) => config,
    };
    let shape = Shape::new(&config, horizon, lookback_hours, &series);
    let mut weights = std::collections::BTreeMap::new();
    for (name, dimensions, _) in shape.parameters() {
        weights.insert(name.to_owned(), payload.tensor(name, &dimensions)?);
    }
    let scales = payload.scales(SCALE, series.len())?;
    let model = OrgLinear::from_parts(config, horizon, lookback_hours, series, scales, Weights::new(weights))?;
    Ok(Model::OrgLinear(Box::new(model)))
}

#[cfg(test)]
mod tests;
