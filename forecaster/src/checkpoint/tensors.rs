//! The numbers of a checkpoint: named, shaped, finite.

use super::CheckpointError;
use crate::baseline::Spread;
use crate::orglinear::Scale;
use candle_core::{Device, Tensor};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use vocab::{HorizonHours, SeriesId};

/// Scale of each series.
pub const SCALE: &str = "scale";
/// Spread of each series.
pub const SPREAD: &str = "spread";
/// Followed by the place of the pool in the metadata.
pub const CORRELATION: &str = "correlation.";
/// The state of the online calibration, bytes as it writes them.
pub const CALIBRATOR: &str = "calibrator";
/// Followed by the pool: the HP jobs of a list, bytes as they write them. Only where there was a list.
pub const JOBS: &str = "jobs.";
/// Of everything else in the file. A tensor, since a second key of the metadata would make their order a matter of chance.
const DIGEST: &str = "sha256";
const DIGEST_BYTES: usize = 32;
/// The one key of the file's metadata: with a single one their order, and so the bytes, are certain.
const METADATA: &str = "headroom";

/// A tensor as the file holds it, little-endian.
struct Stored {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// All tensors of a checkpoint, by name.
#[derive(Default)]
pub struct Payload(BTreeMap<String, Stored>);

impl Payload {
    /// The tensors and the metadata of a file, not yet verified: a file of another format may have another digest.
    pub fn parse(bytes: &[u8]) -> Result<(Self, String), CheckpointError> {
        let broken = |fault: safetensors::SafeTensorError| CheckpointError::NotSafetensors(fault.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let metadata = header.metadata().as_ref().and_then(|keys| keys.get(METADATA));
        let metadata = metadata.ok_or(CheckpointError::NoMetadata)?.clone();
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let stored = |view: &TensorView<'_>| Stored {
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        let payload = Self(file.tensors().iter().map(|(name, view)| (name.clone(), stored(view))).collect());
        Ok((payload, metadata))
    }

    /// The file as bytes.
    pub fn serialize(mut self, metadata: &str) -> Result<Vec<u8>, CheckpointError> {
        let digest = Stored { dtype: Dtype::U8, shape: vec![DIGEST_BYTES], bytes: self.digest(metadata) };
        self.0.insert(DIGEST.to_owned(), digest);
        let broken = |fault: safetensors::SafeTensorError| CheckpointError::NotSafetensors(fault.to_string());
        let mut views = Vec::with_capacity(self.0.len());
        for (name, stored) in &self.0 {
            views.push((name, TensorView::new(stored.dtype, stored.shape.clone(), &stored.bytes).map_err(broken)?));
        }
        let keys = HashMap::from([(METADATA.to_owned(), metadata.to_owned())]);
        serialize(views, Some(keys)).map_err(broken)
    }

    /// SHA-256 over the metadata and every tensor's name, type, shape and numbers.
    fn digest(&self, metadata: &str) -> Vec<u8> {
        let mut hash = Sha256::new_with_prefix(metadata);
        for (name, stored) in self.0.iter().filter(|(name, _)| *name != DIGEST) {
            hash.update(format!("{name} {:?} {:?}\n", stored.dtype, stored.shape));
            hash.update(&stored.bytes);
        }
        hash.finalize().to_vec()
    }

    /// # Errors
    /// Anything is not as it was written.
    pub fn verify(&self, metadata: &str) -> Result<(), CheckpointError> {
        let expected = &self.stored(DIGEST, Dtype::U8, &[DIGEST_BYTES])?.bytes;
        if *expected == self.digest(metadata) { Ok(()) } else { Err(CheckpointError::Changed) }
    }

    /// Shape of a tensor.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.0.get(name).map(|stored| &stored.shape[..])
    }

    /// Adds numbers of 32 bits.
    pub fn put_f32(&mut self, name: &str, shape: &[usize], values: Vec<f32>) {
        let bytes = values.into_iter().flat_map(f32::to_le_bytes).collect();
        self.0.insert(name.to_owned(), Stored { dtype: Dtype::F32, shape: shape.to_vec(), bytes });
    }

    /// Adds numbers of 64 bits.
    pub fn put_f64(&mut self, name: &str, shape: &[usize], values: Vec<f64>) {
        let bytes = values.into_iter().flat_map(f64::to_le_bytes).collect();
        self.0.insert(name.to_owned(), Stored { dtype: Dtype::F64, shape: shape.to_vec(), bytes });
    }

    /// Adds bytes.
    pub fn put_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.0.insert(name.to_owned(), Stored { dtype: Dtype::U8, shape: vec![bytes.len()], bytes });
    }

    /// However many there are.
    pub fn bytes(&self, name: &str) -> Result<&[u8], CheckpointError> {
        let stored = self.0.get(name).filter(|stored| stored.dtype == Dtype::U8);
        let missing = || CheckpointError::MissingTensor { name: name.to_owned() };
        stored.map(|stored| &stored.bytes[..]).ok_or_else(missing)
    }

    /// The bytes whose names begin so, each with the rest of its name.
    pub fn named<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let of_bytes = self.0.iter().filter(|(_, stored)| stored.dtype == Dtype::U8);
        of_bytes.filter_map(move |(name, stored)| Some((name.strip_prefix(begin)?, &stored.bytes[..])))
    }

    /// `[series, 2]`: centre and deviation, in GPUs.
    pub fn put_scales(&mut self, scales: &[Scale]) {
        let values = scales.iter().flat_map(|scale| [scale.centre_gpus, scale.deviation_gpus]).collect();
        self.put_f64(SCALE, &[scales.len(), 2], values);
    }

    /// `[series, steps, 4]`: deviation and what is added at each quantile, in GPUs.
    pub fn put_spreads<'a>(&mut self, spreads: impl ExactSizeIterator<Item = &'a Vec<Spread>>) {
        let series = spreads.len();
        let values: Vec<f64> =
            spreads.flatten().flat_map(|one| [&[one.stddev_gpus][..], &one.quantiles_gpus].concat()).collect();
        let steps = values.len() / 4 / series.max(1);
        self.put_f64(SPREAD, &[series, steps, 4], values);
    }

    fn stored(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<&Stored, CheckpointError> {
        let missing = || CheckpointError::MissingTensor { name: name.to_owned() };
        let stored = self.0.get(name).filter(|stored| stored.dtype == dtype).ok_or_else(missing)?;
        if stored.shape != shape {
            let (expected, found) = (shape.to_vec(), stored.shape.clone());
            return Err(CheckpointError::OtherShape { name: name.to_owned(), expected, found });
        }
        Ok(stored)
    }

    /// Whether there is a tensor of that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Finite numbers of 64 bits, of this shape.
    pub fn f64s(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>, CheckpointError> {
        let (numbers, _) = self.stored(name, Dtype::F64, shape)?.bytes.as_chunks();
        let values: Vec<f64> = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        finite(name, values.iter().copied())?;
        Ok(values)
    }

    /// A row of numbers, however many there are.
    pub fn f64_row(&self, name: &str) -> Result<Vec<f64>, CheckpointError> {
        let missing = || CheckpointError::MissingTensor { name: name.to_owned() };
        let count = self.0.get(name).and_then(|stored| stored.shape.first()).ok_or_else(missing)?;
        self.f64s(name, &[*count])
    }

    /// Rows of so many numbers, however many there are.
    pub fn f32_rows<const N: usize>(&self, name: &str) -> Result<Vec<[f32; N]>, CheckpointError> {
        let missing = || CheckpointError::MissingTensor { name: name.to_owned() };
        let rows = self.0.get(name).and_then(|stored| stored.shape.first()).ok_or_else(missing)?;
        Ok(self.f32s(name, &[*rows, N])?.as_chunks().0.to_vec())
    }

    /// Finite numbers of 32 bits, of this shape.
    pub fn f32s(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, CheckpointError> {
        let (numbers, _) = self.stored(name, Dtype::F32, shape)?.bytes.as_chunks();
        let values: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        finite(name, values.iter().map(|value| f64::from(*value)))?;
        Ok(values)
    }

    /// A tensor of this shape.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, CheckpointError> {
        Ok(Tensor::from_vec(self.f32s(name, shape)?, shape, &Device::Cpu)?)
    }

    /// Scale of each series.
    pub fn scales(&self, name: &str, series: usize) -> Result<Vec<Scale>, CheckpointError> {
        let values = self.f64s(name, &[series, 2])?;
        Ok(values
            .as_chunks()
            .0
            .iter()
            .map(|[centre_gpus, deviation_gpus]| Scale { centre_gpus: *centre_gpus, deviation_gpus: *deviation_gpus })
            .collect())
    }

    /// Spread of each series.
    pub fn spreads(
        &self,
        name: &str,
        series: &[SeriesId],
        horizon: HorizonHours,
    ) -> Result<BTreeMap<SeriesId, Vec<Spread>>, CheckpointError> {
        Ok(series.iter().cloned().zip(self.spread_rows(name, series.len(), horizon)?).collect())
    }

    /// `[series][step]`.
    pub fn spread_rows(
        &self,
        name: &str,
        series: usize,
        horizon: HorizonHours,
    ) -> Result<Vec<Vec<Spread>>, CheckpointError> {
        let values = self.f64s(name, &[series, horizon.steps(), 4])?;
        let spread = |[stddev_gpus, q50, q90, q95]: &[f64; 4]| Spread {
            stddev_gpus: *stddev_gpus,
            quantiles_gpus: [*q50, *q90, *q95],
        };
        Ok(values.chunks(horizon.steps() * 4).map(|row| row.as_chunks().0.iter().map(spread).collect()).collect())
    }
}

fn finite(name: &str, mut values: impl Iterator<Item = f64>) -> Result<(), CheckpointError> {
    if values.all(f64::is_finite) { Ok(()) } else { Err(CheckpointError::NotFinite { name: name.to_owned() }) }
}
