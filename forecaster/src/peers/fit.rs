//! Training of networks.

use super::linear::{self, Squared};
use super::network::{Network, NetworkKind, Parts, Shape};
use super::{deepar::Autoregressive, transformer::Scored};
use crate::baseline::Spread;
use crate::descent::{Learner, Schedule, descend};
use crate::fit::{Fit, FitError, FitProgress};
use crate::gaussian::empirical_quantile;
use crate::orglinear::{InputScaling, Scale, Source, ZeroTargets, learned_series, scales};
use datasets::HourRange;
use vocab::QUANTILE_LEVELS;

/// A deviation below this is no deviation; the scorer floors at the same value.
const LEAST_STDDEV_GPUS: f64 = 1e-3;
/// Issue times whose residuals are measured at once.
const ISSUES_AT_ONCE: usize = 64;

impl NetworkKind {
    /// A learning rate for peers that learn their most in a few epochs.
    const QUICK: Schedule = Schedule {
        epochs: 16,
        patience_epochs: 5,
        batch_issues: 32,
        epoch_batches: 60,
        epoch_issues: 400,
        learning_rate: 5e-3,
        halving_epochs: 4,
    };

    /// How it is trained: chosen on the validation part of the public traces, with what a core of a processor can do in
    /// minutes.
    pub(super) const fn schedule(self) -> Schedule {
        let linear = Schedule {
            epochs: 60,
            patience_epochs: 10,
            batch_issues: 32,
            epoch_batches: 60,
            epoch_issues: usize::MAX,
            learning_rate: 1e-3,
            halving_epochs: 10,
        };
        match self {
            Self::DLinear | Self::NLinear => linear,
            // Dear by the batch, for it goes hour by hour: fewer and larger ones.
            Self::DeepAr => Schedule { epoch_batches: 30, ..Self::QUICK },
            Self::Transformer => Schedule { learning_rate: 3e-3, ..Self::QUICK },
        }
    }

    /// Windows of DeepAR are scaled by their own mean.
    const fn scaling(self) -> InputScaling {
        match self {
            Self::DeepAr => InputScaling::None,
            Self::DLinear | Self::NLinear | Self::Transformer => InputScaling::SeriesDeviation,
        }
    }
}

impl Network {
    /// Trains on the training part; the validation part chooses the epoch and, for a network that says a point, is where
    /// its residuals are measured.
    ///
    /// # Errors
    /// The lookback is too short, nothing was measured, the loss is not finite any more, or the arithmetic fails.
    pub fn fit(kind: NetworkKind, what: &Fit<'_>, progress: &mut dyn FnMut(FitProgress)) -> Result<Self, FitError> {
        Self::fit_by(kind.schedule(), kind, what, progress)
    }

    pub(super) fn fit_by(
        schedule: Schedule,
        kind: NetworkKind,
        what: &Fit<'_>,
        progress: &mut dyn FnMut(FitProgress),
    ) -> Result<Self, FitError> {
        let (have, need) = (what.spec.lookback_hours, kind.lookback_hours_least());
        if have < need {
            return Err(FitError::ShortLookback { have, need });
        }
        let learned = learned_series(what.panel, what.split.train, &what.spec);
        if learned.is_empty() {
            return Err(FitError::NothingMeasured { issues: what.split.train });
        }
        let of_panel = scales(what.panel, &what.split, kind.scaling());
        let scales: Vec<Scale> = learned.iter().map(|&place| of_panel[place]).collect();
        let series: Vec<_> = learned.iter().map(|&place| what.panel.series()[place].id().clone()).collect();
        let (horizon, lookback_hours) = (what.spec.horizon, what.spec.lookback_hours);
        let source = Source {
            panel: what.panel,
            learned: &learned,
            scales: &scales,
            lookback_hours,
            horizon,
            zero_targets: ZeroTargets::Kept,
        };
        let shape = Shape { kind, lookback_hours, steps: horizon.steps(), series: series.len() };
        let learner: Box<dyn Learner> = match kind {
            NetworkKind::DLinear | NetworkKind::NLinear => {
                Box::new(Squared { shape, average: linear::average(&shape)? })
            }
            NetworkKind::DeepAr => Box::new(Autoregressive),
            NetworkKind::Transformer => Box::new(Scored { shape }),
        };
        let weights = descend(learner.as_ref(), schedule, shape.parameters(), &source, what, progress)?;
        let (seed, scales) = (what.spec.seed, scales.clone());
        let parts = Parts { kind, horizon, lookback_hours, seed, series, scales, weights, spreads: Vec::new() };
        let network = Self::from_parts(parts)?;
        if kind.is_point() { network.measured(&source, what) } else { Ok(network) }
    }

    /// With the spread of its residuals: those of the validation part, or where a series or step has none there, of the
    /// training part, or of all its steps.
    fn measured(self, source: &Source<'_>, what: &Fit<'_>) -> Result<Self, FitError> {
        let validated = self.residuals(source, what.split.validation)?;
        let trained = self.residuals(source, what.split.train)?;
        let spreads = validated.into_iter().zip(trained).map(|(validated, trained)| {
            let all: Vec<f64> = trained.concat();
            let first_measured = |(here, there): (Vec<f64>, Vec<f64>)| {
                [here, there].into_iter().find(|residuals| !residuals.is_empty()).unwrap_or_else(|| all.clone())
            };
            validated.into_iter().zip(trained).map(|pair| spread(first_measured(pair))).collect()
        });
        let spreads = spreads.collect();
        Ok(self.with_spreads(spreads))
    }

    /// `[series][step][issue time]`, in GPUs, of the targets that were measured.
    fn residuals(&self, source: &Source<'_>, issues: HourRange) -> Result<Vec<Vec<Vec<f64>>>, FitError> {
        let mut residuals = vec![vec![Vec::new(); source.horizon.steps()]; source.learned.len()];
        let issues: Vec<_> = issues.iter().collect();
        for issues in issues.chunks(ISSUES_AT_ONCE) {
            let Some(batch) = source.batch(issues)? else { continue };
            let error = (&batch.targets - self.points(&batch.inputs)?)?.to_vec2::<f32>()?;
            let counted = batch.counted.to_vec2::<f32>()?;
            for (place, (errors, counted)) in batch.places.iter().zip(error.iter().zip(&counted)) {
                let deviation_gpus = source.scales[*place].deviation_gpus;
                for (residuals, (error, counts)) in residuals[*place].iter_mut().zip(errors.iter().zip(counted)) {
                    if *counts > 0.0 {
                        residuals.push(f64::from(*error) * deviation_gpus);
                    }
                }
            }
        }
        Ok(residuals)
    }
}

/// The spread of residuals, in GPUs. Unlike a rule's, its median may be off the point, which is a mean.
fn spread(mut residuals: Vec<f64>) -> Spread {
    residuals.sort_by(f64::total_cmp);
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let variance = squares / residuals.len().max(1) as f64;
    Spread {
        stddev_gpus: variance.sqrt().max(LEAST_STDDEV_GPUS),
        quantiles_gpus: QUANTILE_LEVELS.map(|level| empirical_quantile(&residuals, level).unwrap_or(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_points_has_the_quantiles_of_their_residuals() {
        let spread = spread(vec![4.0, -1.0, 0.0, 1.0, 2.0]);
        assert!((spread.stddev_gpus - 4.4_f64.sqrt()).abs() < 1e-12);
        assert_eq!(spread.quantiles_gpus[0], 1.0);
        assert!((spread.quantiles_gpus[1] - 3.2).abs() < 1e-12);
    }
}
