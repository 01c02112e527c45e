//! The losses that are kept with a run, for later runs to be compared with.

use crate::error::TrainingError;
use crate::gate::Contender;
use crate::run::KeptScores;
use datasets::{HourRange, Panel};
use forecaster::calibration::{Calibrator, replay};
use forecaster::scores::IssueLosses;
use forecaster::trained::Validation;
use forecaster::{Trained, checkpoint, roll, scores};
use serde::{Deserialize, Serialize};
use store::{RunRecord, Store};
use vocab::GuaranteeRate;

/// GPUs are kept to so many decimal places.
const KEPT_PER_GPU: f64 = 1e4;

/// The losses of the forecasts of one issue time, step by step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HourLosses {
    #[serde(rename = "issue")]
    pub issue_unix_s: i64,
    /// Series that were measured.
    pub rows: Vec<u32>,
    /// Sums of pinball losses at 0.9, in GPUs.
    #[serde(rename = "loss")]
    pub loss_gpus: Vec<f64>,
    /// Of the last value on the same rows; empty for hours after the validation part.
    #[serde(rename = "last_value", default)]
    pub last_value_gpus: Vec<f64>,
}

/// Scores as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredScores {
    #[serde(flatten)]
    pub kept: KeptScores,
    /// Not shown.
    #[serde(default)]
    pub hours: Vec<HourLosses>,
}

impl HourLosses {
    fn of(one: &IssueLosses, last_value: Option<&IssueLosses>) -> Self {
        let kept = |losses: &IssueLosses| -> Vec<f64> {
            losses.steps.iter().map(|step| (step.loss_gpus * KEPT_PER_GPU).round() / KEPT_PER_GPU).collect()
        };
        Self {
            issue_unix_s: one.issue.unix_s(),
            rows: one.steps.iter().map(|step| step.rows).collect(),
            loss_gpus: kept(one),
            last_value_gpus: last_value.map(kept).unwrap_or_default(),
        }
    }

    /// Those of a validation part.
    #[must_use]
    pub fn of_validation(validation: &Validation) -> Vec<Self> {
        let pairs = validation.losses.iter().zip(&validation.last_value_losses);
        pairs.map(|(ours, last_value)| Self::of(ours, Some(last_value))).collect()
    }
}

/// The promoted run as the gate sees it; `None` where its scores cannot be read.
///
/// # Errors
/// The database does not answer.
pub async fn promoted(
    store: &dyn Store,
    run: &RunRecord,
    panel: &Panel,
    validation: HourRange,
    rate: GuaranteeRate,
) -> Result<Option<Contender>, TrainingError> {
    let Ok(stored) = serde_json::from_str::<StoredScores>(&run.facts.scores_json) else { return Ok(None) };
    let StoredScores { kept: scores, hours: mut losses } = stored;
    // A model that cannot be loaded serves no longer, and is no measure beyond its validation part.
    if let Ok(trained) = checkpoint::load(&store.checkpoint(run.id).await?) {
        losses.extend(since(&trained, panel, validation, rate));
    }
    Ok(Some(Contender { horizon: run.facts.horizon, scores, losses }))
}

/// The losses of a run, as it serves, on those hours of a validation part that it has not learned from.
fn since(trained: &Trained, panel: &Panel, validation: HourRange, rate: GuaranteeRate) -> Vec<HourLosses> {
    let remembered = validation.from.plus_hours(-(Calibrator::WINDOW_HOURS as i64));
    let unseen = HourRange { from: trained.data.to.max(remembered).max(panel.start()), to: validation.to };
    if unseen.from >= unseen.to {
        return Vec::new();
    }
    let Ok(rolled) = roll(trained, panel, unseen) else { return Vec::new() };
    let (issued, _) = replay(trained.calibrator.clone(), panel, unseen, &rolled, rate);
    let forecasts: Vec<_> = issued.into_iter().map(|one| one.forecasts).collect();
    let losses = scores::losses(panel, unseen, &forecasts, trained.spec.horizon);
    losses.iter().filter(|one| one.issue >= validation.from).map(|one| HourLosses::of(one, None)).collect()
}
