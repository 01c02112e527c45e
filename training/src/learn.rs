//! Fitting, scoring and calibrating a cluster: all at once, or in parts.

use crate::backtest::served::ServedOnValidation;
use crate::demand::{Demand, Lessons};
use crate::error::TrainingError;
use crate::jobs::ClusterJobs;
use crate::losses::{HourLosses, StoredScores};
use crate::run::KeptScores;
use crate::scores::PoolScoresBody;
use command_line::Progress;
use datasets::{Panel, TimeSplit};
use forecaster::blend::Settings;
use forecaster::calibration::Switch;
use forecaster::trained::{Streamed, Validation, train_streamed};
use forecaster::{Fit, FitProgress, History, ModelSpec, Source, TrainError, Trained, train};
use store::Cluster;
use vocab::{CapacityRow, GuaranteeRate};

/// The data and the settings of a training.
#[derive(Debug, Clone, Copy)]
pub struct Lesson {
    pub spec: ModelSpec,
    pub settings: Settings,
    pub calibration: Switch,
    pub split: TimeSplit,
    pub rate: GuaranteeRate,
}

/// Inputs by which bounds that would have been served are scored.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    pub capacities: &'a [CapacityRow],
    /// The HP jobs of lists, where there are some.
    pub jobs: Option<&'a ClusterJobs>,
}

/// Fits, scores and calibrates, with progress.
///
/// # Errors
/// Nothing was measured, or training diverged.
pub fn learn(
    panel: &Panel,
    cluster: &Cluster,
    lesson: &Lesson,
) -> Result<(Trained, StoredScores, Validation), TrainingError> {
    let &Lesson { spec, settings, calibration: switch, split, rate } = lesson;
    let epochs = spec.kind.orglinear().map_or(1, |config| config.epochs);
    let progress = Progress::new(&format!("{} {}", cluster.name, spec.kind), epochs as u64);
    let mut show = |at: FitProgress| {
        progress.step(at.epoch as u64, format!("loss {:.4}, validation {:.4}", at.train_loss, at.validation));
    };
    let outcome = train(&Fit { panel, split, spec, settings }, rate, switch, &mut show);
    progress.done();
    let (trained, validation) =
        outcome.map_err(|fault| TrainingError::Train { cluster: cluster.name.clone(), fault })?;
    let stored = stored(&trained, &validation, split);
    Ok((trained, stored, validation))
}

/// Scores as they are kept with a run.
fn stored(trained: &Trained, validation: &Validation, split: TimeSplit) -> StoredScores {
    let pools = trained.calibrations.iter();
    let pools = pools.flat_map(|one| one.scores.iter().map(|score| PoolScoresBody::of(&one.pool, score)));
    let scores = KeptScores {
        validation_from: split.validation.from.to_string(),
        validation_issue_times: split.validation.hours(),
        model: (&validation.scores).into(),
        last_value: (&validation.last_value).into(),
        pools: pools.collect(),
        served: Vec::new(),
        served_with_jobs: Vec::new(),
    };
    StoredScores { kept: scores, hours: HourLosses::of_validation(validation) }
}

/// As [`learn`], with what would have been served; a history in a file, and rows of other clusters, are read in parts.
///
/// # Errors
/// As [`learn`], and the model needs all series at once, or a file cannot be read.
pub fn learn_served(
    lessons: &Lessons,
    lenders: &[Demand],
    cluster: &Cluster,
    lesson: &Lesson,
    scored_with: Served<'_>,
) -> Result<(Trained, StoredScores), TrainingError> {
    let &Lesson { spec, settings, calibration, split, rate } = lesson;
    let mut served = ServedOnValidation::new(spec.horizon, rate)?;
    let panel = &lessons.panel;
    let (trained, mut stored) = if lessons.spool.is_none() && lenders.is_empty() {
        let (trained, stored, validation) = learn(panel, cluster, lesson)?;
        for (issue, issued) in split.validation.iter().zip(&validation.issued) {
            served.add(panel, &trained.calibrations, issue, issued)?;
        }
        (trained, stored)
    } else {
        let history: &dyn History = lessons.spool.as_ref().map_or(panel, |spool| spool);
        let others: Vec<&dyn History> = lenders.iter().map(Demand::history).collect();
        let source = Source { history, others: &others, split, spec, settings };
        let what = Streamed { source, recent: panel, start: lessons.start };
        let (trained, validation) = train_streamed(&what, rate, calibration, &mut |pools, issue, issued| {
            served.add(panel, pools, issue, issued).map_err(TrainError::Predict)
        })
        .map_err(|fault| TrainingError::Train { cluster: cluster.name.clone(), fault })?;
        let stored = stored(&trained, &validation, split);
        (trained, stored)
    };
    let Served { capacities, jobs } = scored_with;
    stored.kept.served = served.finish(panel, capacities, split.validation, None);
    if jobs.is_some() {
        stored.kept.served_with_jobs = served.finish(panel, capacities, split.validation, jobs);
    }
    Ok((trained, stored))
}
