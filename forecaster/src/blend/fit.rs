//! Fitting the parts of a blend.

use super::{Blend, Parts, Recipe};
use crate::fit::FitError;
use crate::network::{Lesson, Network};
use crate::rows::{FeatureGroup, Features, OUTPUTS, Samples, Source, sized_series};
use crate::trees::{Forests, Growth};
use datasets::HourRange;
use serde::{Deserialize, Serialize};

/// How the parts learn, and from what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How the trees grow.
    pub growth: Growth,
    /// How the network learns.
    pub lesson: Lesson,
    /// Windows shorter than this teach nothing; at least [`Blend::HISTORY_HOURS_LEAST`].
    pub history_hours_least: usize,
    /// Features that are left out.
    pub without: Option<FeatureGroup>,
}

impl Settings {
    /// The settings of `train` without `--settings`, chosen on validation.
    pub const DEFAULT: Self = Self {
        growth: Growth::DEFAULT,
        lesson: Lesson::DEFAULT,
        history_hours_least: Features::HISTORY_HOURS_LEAST,
        without: None,
    };
}

/// A setting that cannot be worked with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field} is {value}, and must be {must}")]
pub struct BadSetting {
    /// Name of the setting.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// The values that it may have.
    pub must: &'static str,
}

impl Settings {
    /// # Errors
    /// Names the first setting that cannot be worked with.
    pub fn check(&self) -> Result<(), BadSetting> {
        let (growth, lesson) = (&self.growth, &self.lesson);
        let share = |field, value: f64| (field, value, value > 0.0 && value <= 1.0, "a share above 0, up to 1");
        let count = |field, value: usize| (field, value as f64, (1..=100_000_000).contains(&value), "1 or more");
        let positive = |field, value: f64| (field, value, value > 0.0 && value.is_finite(), "a number above 0");
        let below_one = |field, value: f64| (field, value, (0.0..1.0).contains(&value), "0 or more, and below 1");
        let leaves = growth.leaves as f64;
        let all = [
            count("growth.rounds", growth.rounds),
            count("growth.patience", growth.patience),
            share("growth.rate", growth.rate),
            ("growth.leaves", leaves, (2..=Forests::LEAVES_MOST).contains(&growth.leaves), "2 to 16"),
            count("growth.rows_per_leaf", growth.rows_per_leaf),
            share("growth.features", growth.features),
            share("growth.rows", growth.rows),
            count("growth.rows_most", growth.rows_most),
            positive("growth.shrinkage", growth.shrinkage),
            count("growth.members", growth.members),
            count("lesson.members", lesson.members),
            count("lesson.epochs", lesson.epochs),
            count("lesson.patience", lesson.patience),
            count("lesson.rows_per_batch", lesson.rows_per_batch),
            positive("lesson.rate", lesson.rate),
            count("lesson.warm_up", lesson.warm_up),
            below_one("lesson.weight_decay", lesson.weight_decay),
            below_one("lesson.dropout", f64::from(lesson.dropout)),
            below_one("lesson.memory", lesson.memory),
            count("lesson.rows_per_epoch", lesson.rows_per_epoch),
        ];
        match all.into_iter().find(|(_, _, good, _)| !good) {
            Some((field, value, _, must)) => Err(BadSetting { field, value, must }),
            None => Ok(()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Blend {
    /// Fits on the training part; the validation part ends the growth of trees and the lessons of networks.
    ///
    /// # Errors
    /// The lookback is too short, nothing was measured, or the arithmetic fails.
    pub fn fit(recipe: Recipe, what: &Source<'_>) -> Result<Self, FitError> {
        let need = Features::LOOKBACK_HOURS_LEAST;
        if what.spec.lookback_hours < need {
            return Err(FitError::ShortLookback { have: what.spec.lookback_hours, need });
        }
        let series = sized_series(what)?;
        let settings = &what.settings;
        let features = Features::new(what.spec.lookback_hours, what.spec.horizon).without(settings.without);
        let mut learn = Samples::of(what, &features, &series, what.split.train)?;
        learn.borrow(what, &features, &series, what.split.train)?;
        let validate = Samples::of(what, &features, &series, what.split.validation)?;
        let (seed, count) = (what.spec.seed, features.count());
        let forests =
            (recipe != Recipe::Network).then(|| Forests::fit(&settings.growth, seed, count, &learn, &validate));
        let network = match recipe {
            Recipe::Trees => None,
            _ => Some(Network::fit(&settings.lesson, seed, &features, &learn, Some(&validate), &[])?),
        };
        let (horizon, lookback_hours) = (what.spec.horizon, what.spec.lookback_hours);
        let network_share = [0.5; OUTPUTS];
        let parts =
            Parts { horizon, lookback_hours, without: settings.without, series, forests, network, network_share };
        Ok(Self::from_parts(parts))
    }

    /// Fits once more, on training and validation part together, with as many trees and epochs as validation had decided.
    ///
    /// # Errors
    /// Nothing was measured, or the arithmetic fails.
    pub fn refit(&self, what: &Source<'_>) -> Result<Self, FitError> {
        let (parts, features, settings) = (self.parts(), &self.features, &what.settings);
        let all = HourRange { from: what.split.train.from, to: what.split.validation.to };
        let mut learn = Samples::of(what, features, &parts.series, all)?;
        learn.borrow(what, features, &parts.series, all)?;
        let seed = what.spec.seed;
        let forests = parts.forests.map(|forests| forests.refit(&settings.growth, seed, features.count(), &learn));
        let network = match parts.network {
            None => None,
            Some(network) => Some(Network::fit(&settings.lesson, seed, features, &learn, None, &network.epochs)?),
        };
        Ok(Self::from_parts(Parts { forests, network, ..parts }))
    }
}
