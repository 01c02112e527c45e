//! Peers as tensors.

use super::CheckpointError;
use super::tensors::{Payload, SCALE, SPREAD};
use crate::model::ModelSpec;
use crate::orglinear::Weights;
use crate::peers::{AutoEts, Network, NetworkKind, Parts, Shape, Smoothed};
use vocab::{HourStart, SeriesId};

const SMOOTHING: &str = "smoothing";

impl Payload {
    /// Writes a network, and answers its series in the order of their scales: its weights by name, `scale` `[series, 2]`,
    /// and of a network that says points `spread` `[series, steps, 4]`.
    pub fn put_network(&mut self, parts: &Parts) -> Result<Vec<SeriesId>, CheckpointError> {
        for (name, tensor) in parts.weights.tensors() {
            self.put_f32(name, tensor.dims(), tensor.flatten_all()?.to_vec1()?);
        }
        self.put_scales(&parts.scales);
        if parts.kind.is_point() {
            self.put_spreads(parts.spreads.iter());
        }
        Ok(parts.series.clone())
    }

    /// Reads a network.
    pub fn network(
        &self,
        kind: NetworkKind,
        spec: &ModelSpec,
        series: Vec<SeriesId>,
    ) -> Result<Network, CheckpointError> {
        let ModelSpec { horizon, lookback_hours, seed, .. } = *spec;
        if lookback_hours < kind.lookback_hours_least() {
            return Err(CheckpointError::ShortLookback { have: lookback_hours, need: kind.lookback_hours_least() });
        }
        let shape = Shape { kind, lookback_hours, steps: horizon.steps(), series: series.len() };
        let weight = |(name, dimensions, _): (String, Vec<usize>, _)| {
            let tensor = self.tensor(&name, &dimensions)?;
            Ok((name, tensor))
        };
        let weights = shape.parameters().into_iter().map(weight).collect::<Result<_, CheckpointError>>()?;
        let spreads = if kind.is_point() { self.spread_rows(SPREAD, series.len(), horizon)? } else { Vec::new() };
        let (scales, weights) = (self.scales(SCALE, series.len())?, Weights::new(weights));
        let parts = Parts { kind, horizon, lookback_hours, seed, series, scales, weights, spreads };
        Ok(Network::from_parts(parts)?)
    }

    /// Writes the smoothing of every series, `[series, Smoothed::NUMBERS]`, and answers the series in that order. The
    /// states are those at the end of the data, which the metadata have.
    pub fn put_smoothing(&mut self, model: &AutoEts) -> Vec<SeriesId> {
        let rows: Vec<f64> = model.series().values().flat_map(Smoothed::numbers).collect();
        self.put_f64(SMOOTHING, &[model.series().len(), Smoothed::NUMBERS], rows);
        model.series().keys().cloned().collect()
    }

    /// Reads exponential smoothing.
    pub fn smoothing(
        &self,
        spec: &ModelSpec,
        series: Vec<SeriesId>,
        until: HourStart,
    ) -> Result<AutoEts, CheckpointError> {
        let rows = self.f64s(SMOOTHING, &[series.len(), Smoothed::NUMBERS])?;
        let smoothed = |(id, row): (SeriesId, &[f64])| match Smoothed::parse(row) {
            Some(smoothed) => Ok((id, smoothed)),
            None => Err(CheckpointError::BrokenSmoothing { series: id }),
        };
        let series = series.into_iter().zip(rows.chunks(Smoothed::NUMBERS)).map(smoothed);
        let series = series.collect::<Result<_, CheckpointError>>()?;
        Ok(AutoEts::from_parts(spec.horizon, spec.lookback_hours, until, series))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Family, ModelKind};
    use vocab::{HorizonHours, Organization, PoolId};

    fn spec(kind: ModelKind, lookback_hours: usize) -> ModelSpec {
        ModelSpec { kind, horizon: HorizonHours::new(4).unwrap(), lookback_hours, seed: 1 }
    }

    fn series() -> Vec<SeriesId> {
        let pool = PoolId::parse("earth:V100").unwrap();
        vec![SeriesId { pool, organization: Organization::parse("a").unwrap() }]
    }

    fn fault<T>(result: Result<T, CheckpointError>) -> String {
        result.err().unwrap().to_string()
    }

    #[test]
    fn a_network_that_lacks_a_weight_or_looks_back_too_little_is_refused() {
        let network = |payload: &Payload, kind: ModelKind, lookback_hours| {
            let Family::Network(network) = kind.family() else { panic!("{kind} is no network") };
            fault(payload.network(network, &spec(kind, lookback_hours), series()))
        };
        let mut payload = Payload::default();
        let short = "the checkpoint looks back 24 h, and its model needs 168 h";
        assert_eq!(network(&payload, ModelKind::DeepAr, 24), short);
        assert_eq!(network(&payload, ModelKind::NLinear, 2), "the checkpoint lacks the tensor head.weight");
        payload.put_f32("head.weight", &[2, 3], vec![0.0; 6]);
        let other = "tensor head.weight of the checkpoint has shape [2, 3], not [2, 4]";
        assert_eq!(network(&payload, ModelKind::NLinear, 2), other);
        payload.put_f32("head.weight", &[2, 4], vec![f32::NAN; 8]);
        let wild = "tensor head.weight of the checkpoint holds a number that is not finite";
        assert_eq!(network(&payload, ModelKind::NLinear, 2), wild);
    }

    #[test]
    fn numbers_that_are_no_smoothing_are_refused_with_their_series() {
        let mut payload = Payload::default();
        payload.put_f64(SMOOTHING, &[1, Smoothed::NUMBERS], vec![0.5; Smoothed::NUMBERS]);
        let until = HourStart::from_unix_s(0).unwrap();
        let found = fault(payload.smoothing(&spec(ModelKind::AutoEts, 168), series(), until));
        assert_eq!(found, "the checkpoint's exponential smoothing of earth:V100:a is no model");
    }
}
