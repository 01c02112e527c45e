//! The models beside each other.

use super::Material;
use crate::metrics::scored;
use forecaster::ModelKind;
use forecaster::scores::{Scored, Scores, score};
use std::collections::BTreeMap;

/// One model over everything.
pub struct ModelView {
    pub name: String,
    /// A rule that learns nothing.
    pub is_baseline: bool,
    pub scores: Scores,
    /// Scores by step, from 1.
    pub by_step: Vec<(usize, Scores)>,
    /// Against each baseline but itself.
    pub skills: Vec<Skill>,
}

/// How much of a baseline's loss a model saves: 1 − loss / loss of the baseline. `None` where the baseline has no loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    pub baseline: String,
    pub mae_median: Option<f64>,
    pub pinball_q90: Option<f64>,
    pub crps: Option<f64>,
}

/// In the order of the file. A model without a scored row is left out, and so all are: they have the same rows.
pub fn models(material: &Material<'_>) -> Vec<ModelView> {
    let names = &material.forecasts.models;
    let view = |(number, name): (usize, &String)| {
        let rows: Vec<Scored> = material.scored(number).into_iter().map(scored).collect();
        let mut steps: BTreeMap<usize, Vec<Scored>> = BTreeMap::new();
        for row in &rows {
            steps.entry(row.step).or_default().push(*row);
        }
        Some(ModelView {
            name: name.clone(),
            is_baseline: is_baseline(name),
            scores: score(&rows)?,
            by_step: steps.into_iter().filter_map(|(step, rows)| Some((step, score(&rows)?))).collect(),
            skills: Vec::new(),
        })
    };
    let mut views: Vec<ModelView> = names.iter().enumerate().filter_map(view).collect();
    let baselines: Vec<(String, Scores)> =
        views.iter().filter(|view| view.is_baseline).map(|view| (view.name.clone(), view.scores)).collect();
    for view in &mut views {
        let others = baselines.iter().filter(|(name, _)| *name != view.name);
        view.skills = others.map(|(name, scores)| skill(name, &view.scores, scores)).collect();
    }
    views
}

/// Whether a name is that of a rule that learns nothing.
pub fn is_baseline(name: &str) -> bool {
    ModelKind::BASELINES.iter().any(|kind| kind.as_str() == name)
}

fn skill(baseline: &str, scores: &Scores, against: &Scores) -> Skill {
    let saved = |loss: f64, against: f64| (against > 0.0).then(|| 1.0 - loss / against);
    Skill {
        baseline: baseline.to_owned(),
        mae_median: saved(scores.mae_median_gpus, against.mae_median_gpus),
        pinball_q90: saved(scores.pinball_gpus[0], against.pinball_gpus[0]),
        crps: saved(scores.crps_gpus, against.crps_gpus),
    }
}
