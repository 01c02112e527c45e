//! Fitting the parts of a blend.

use super::{Blend, Parts, Recipe, curve, share};
use crate::fit::FitError;
use crate::left;
use crate::network::{Lesson, Network};
use crate::rows::{FeatureGroup, Features, Learned, Samples, Source, StepGroups, learned};
use crate::side_by_side::side_by_side;
use crate::trees::{Forests, Growth};
use datasets::HourRange;
use serde::{Deserialize, Serialize};
use vocab::SeriesId;

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
    /// Steps of a longer horizon share forests and heads of the network in groups; up to here each has its own.
    pub steps_alone: usize,
    /// Of a far group of steps every so many at most are answered by trees and network; those in between lie on a curve through them,
    /// unless that loses more on validation.
    pub stride_most: usize,
}

impl Settings {
    /// The settings of `train` without `--settings`, chosen on validation.
    pub const DEFAULT: Self = Self {
        growth: Growth::DEFAULT,
        lesson: Lesson::DEFAULT,
        history_hours_least: Features::HISTORY_HOURS_LEAST,
        without: None,
        steps_alone: 8,
        stride_most: 4,
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
            count("steps_alone", self.steps_alone),
            count("stride_most", self.stride_most),
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
        let Learned { series, days_off } = learned(what)?;
        let settings = &what.settings;
        let (horizon, lookback_hours) = (what.spec.horizon, what.spec.lookback_hours);
        let step_groups = StepGroups::of(horizon, settings.steps_alone, settings.stride_most);
        let features = Features::new(lookback_hours, horizon, step_groups.clone());
        let features = features.with_days_off(days_off).without(settings.without);
        let ground = Ground { what, features: &features, series: &series };
        let learn = ground.lessons(&features, what.split.train)?;
        let validate = Samples::of(what, &features, &series, what.split.validation)?;
        let forests = match recipe {
            Recipe::Network => None,
            _ => Some(ground.forests(&learn, Some(&validate), None)?),
        };
        let network = match recipe {
            Recipe::Trees => None,
            _ => Some(ground.network(&learn, Some(&validate), &[])?),
        };
        let network_share = match (&forests, &network) {
            (Some(forests), Some(network)) => share::of_network(forests, network, &features.of_one_target(), &validate),
            _ => share::LEVEL_SHARES,
        };
        let without = settings.without;
        let returned = left::returned(what, HourRange { to: what.split.validation.from, ..what.split.train })?;
        let parts = Parts {
            horizon,
            lookback_hours,
            step_groups,
            without,
            days_off,
            series,
            forests,
            network,
            network_share,
            returned,
        };
        curve::judged(Self::from_parts(parts), what)
    }

    /// Fits once more, on training and validation part together, with as many trees and epochs as validation had decided.
    ///
    /// # Errors
    /// Nothing was measured, or the arithmetic fails.
    pub fn refit(&self, what: &Source<'_>) -> Result<Self, FitError> {
        let (parts, features) = (self.parts(), &self.features);
        let ground = Ground { what, features, series: &parts.series };
        let learn = ground.lessons(features, all_issues(what))?;
        let forests = match parts.forests {
            None => None,
            Some(forests) => Some(ground.forests(&learn, None, Some(&forests))?),
        };
        let network = match parts.network {
            None => None,
            Some(network) => Some(ground.network(&learn, None, &network.epochs)?),
        };
        let returned = left::returned(what, HourRange { to: what.split.until, ..what.split.train })?;
        Ok(Self::from_parts(Parts { forests, network, returned, ..parts }))
    }
}

const fn all_issues(what: &Source<'_>) -> HourRange {
    HourRange { from: what.split.train.from, to: what.split.validation.to }
}

/// Inputs that the parts learn from.
struct Ground<'a> {
    what: &'a Source<'a>,
    features: &'a Features,
    series: &'a [(SeriesId, f64)],
}

impl Ground<'_> {
    /// Rows of the model's own series, and those that other clusters lend; where holidays begin and end they count several times.
    fn lessons(&self, features: &Features, issues: HourRange) -> Result<Samples, FitError> {
        let mut learn = Samples::of(self.what, features, self.series, issues)?;
        learn.borrow(self.what, features, self.series, issues)?;
        Ok(learn.with_crossings_counted())
    }

    /// Forests that end where validation says so, or have as many trees as those before. Those of a group learn from rows
    /// of their own, drawn for them alone, so that no more than a few groups are in memory at once.
    fn forests(
        &self,
        learn: &Samples,
        validate: Option<&Samples>,
        before: Option<&Forests>,
    ) -> Result<Forests, FitError> {
        let (what, seed, count) = (self.what, self.what.spec.seed, self.features.of_one_target().count());
        let growth = &what.settings.growth;
        let grow = |seed: u64, learn: &Samples, validate: Option<&Samples>, before: Option<&Forests>| match before {
            Some(before) => before.refit(growth, seed, count, learn),
            None => Forests::fit(growth, seed, count, learn, validate.unwrap_or(learn)),
        };
        let groups = self.features.step_groups().ranges();
        if groups.is_empty() {
            return Ok(grow(seed, learn, validate, before));
        }
        let of_group = |group: usize| {
            let features = self.features.of_group(&groups[group]);
            // A stream of its own for each group.
            let seed = seed.wrapping_add((group as u64) << 40);
            if let Some(before) = before {
                let learn = self.lessons(&features, all_issues(what))?;
                return Ok(grow(seed, &learn, None, Some(&before.group(group))));
            }
            let learn = self.lessons(&features, what.split.train)?;
            let validate = Samples::of(what, &features, self.series, what.split.validation)?;
            Ok(grow(seed, &learn, Some(&validate), None))
        };
        let groups = side_by_side(groups.len(), of_group).into_iter().collect::<Result<Vec<_>, FitError>>()?;
        Ok(Forests::joined(groups, self.features.target_columns()))
    }

    fn network(&self, learn: &Samples, validate: Option<&Samples>, epochs: &[usize]) -> Result<Network, FitError> {
        let (settings, seed) = (&self.what.settings, self.what.spec.seed);
        Network::fit(&settings.lesson, seed, &self.features.of_one_target(), learn, validate, epochs)
    }
}
