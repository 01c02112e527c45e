//! The models by name.

use crate::baseline::{Baseline, Rule};
use crate::blend::{Blend, Recipe};
use crate::orglinear::{self, OrgLinear};
use crate::peers::{AutoEts, Network, NetworkKind};
use crate::predict::{Predict, PredictError};
use datasets::window::Window;
use std::fmt;
use vocab::{DemandForecast, HorizonHours, SeriesId};

/// A name that is no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no model; there are {}", ModelKind::ALL.map(ModelKind::as_str).join(", "))]
pub struct UnknownModel {
    /// The name that was refused.
    pub name: String,
}

/// The models that can be trained.
///
/// ```
/// use forecaster::ModelKind;
///
/// assert_eq!(ModelKind::parse("orglinear"), Ok(ModelKind::DEFAULT));
/// let unknown = ModelKind::parse("arima").expect_err("no such model");
/// assert!(unknown.to_string().starts_with("\"arima\" is no model; there are orglinear, "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelKind {
    /// OrgLinear as the GFS paper has it, with the corrections of DESIGN §4.
    OrgLinearPaper,
    /// OrgLinear with the settings of the code that its authors released, for comparison.
    OrgLinearReleased,
    /// OrgLinear of our own: boosted trees and a small network, averaged.
    OrgLinear,
    /// Its trees alone.
    Trees,
    /// Its network alone.
    Network,
    /// A peer: linear heads for trend and season.
    DLinear,
    /// A peer: one linear head on differences to the last value.
    NLinear,
    /// A peer: a recurrent network whose paths are drawn.
    DeepAr,
    /// A peer: a Transformer encoder over patches of the window.
    Transformer,
    /// A peer: exponential smoothing, each series for itself.
    AutoEts,
    /// The last value stays.
    LastValue,
    /// The same hour of the day before.
    Seasonal24h,
    /// The same hour of the week before.
    Seasonal168h,
    /// The peak of the last week.
    PeakWeek,
}

impl ModelKind {
    /// All models.
    pub const ALL: [Self; 14] = [
        Self::OrgLinear,
        Self::OrgLinearPaper,
        Self::OrgLinearReleased,
        Self::Trees,
        Self::Network,
        Self::DLinear,
        Self::NLinear,
        Self::DeepAr,
        Self::Transformer,
        Self::AutoEts,
        Self::LastValue,
        Self::Seasonal24h,
        Self::Seasonal168h,
        Self::PeakWeek,
    ];
    /// Rules that a model has to beat.
    pub const BASELINES: [Self; 4] = [Self::LastValue, Self::Seasonal24h, Self::Seasonal168h, Self::PeakWeek];
    /// The model of `train` without `--model`.
    pub const DEFAULT: Self = Self::OrgLinear;

    /// Name on the command line and in checkpoints.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrgLinearPaper => "orglinear-paper",
            Self::OrgLinearReleased => "orglinear-released",
            Self::OrgLinear => "orglinear",
            Self::Trees => "trees",
            Self::Network => "network",
            Self::DLinear => "dlinear",
            Self::NLinear => "nlinear",
            Self::DeepAr => "deepar",
            Self::Transformer => "transformer",
            Self::AutoEts => "auto-ets",
            Self::LastValue => "last-value",
            Self::Seasonal24h => "seasonal-24h",
            Self::Seasonal168h => "seasonal-168h",
            Self::PeakWeek => "peak-week",
        }
    }

    /// # Errors
    /// The name is no model.
    pub fn parse(name: &str) -> Result<Self, UnknownModel> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| UnknownModel { name: name.to_owned() })
    }

    /// Family of the model: a new model is named here, and the compiler names each place that has to know a new family.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::OrgLinearPaper => Family::OrgLinear(orglinear::Config::PAPER),
            Self::OrgLinearReleased => Family::OrgLinear(orglinear::Config::RELEASED),
            Self::OrgLinear => Family::Blend(Recipe::Both),
            Self::Trees => Family::Blend(Recipe::Trees),
            Self::Network => Family::Blend(Recipe::Network),
            Self::DLinear => Family::Network(NetworkKind::DLinear),
            Self::NLinear => Family::Network(NetworkKind::NLinear),
            Self::DeepAr => Family::Network(NetworkKind::DeepAr),
            Self::Transformer => Family::Network(NetworkKind::Transformer),
            Self::AutoEts => Family::AutoEts,
            Self::LastValue => Family::Rule(Rule::LastValue),
            Self::Seasonal24h => Family::Rule(Rule::Seasonal { period_hours: 24 }),
            Self::Seasonal168h => Family::Rule(Rule::Seasonal { period_hours: 168 }),
            Self::PeakWeek => Family::Rule(Rule::Peak { hours: 168 }),
        }
    }

    /// Settings of an OrgLinear as published; `None` for other families.
    #[must_use]
    pub const fn orglinear(self) -> Option<orglinear::Config> {
        match self.family() {
            Family::OrgLinear(config) => Some(config),
            Family::Blend(_) | Family::Network(_) | Family::AutoEts | Family::Rule(_) => None,
        }
    }

    /// Parts of a blend; `None` for other families.
    #[must_use]
    pub const fn recipe(self) -> Option<Recipe> {
        match self.family() {
            Family::Blend(recipe) => Some(recipe),
            Family::OrgLinear(_) | Family::Network(_) | Family::AutoEts | Family::Rule(_) => None,
        }
    }

    /// Rule of a baseline; `None` for models that are trained.
    #[must_use]
    pub const fn rule(self) -> Option<Rule> {
        match self.family() {
            Family::Rule(rule) => Some(rule),
            Family::OrgLinear(_) | Family::Blend(_) | Family::Network(_) | Family::AutoEts => None,
        }
    }

    /// Whether the forecasts of organizations are corrected online where validation agrees. Peers and rules stay as they
    /// are, so that they show what they are.
    #[must_use]
    pub const fn is_calibrated(self) -> bool {
        self.recipe().is_some()
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Family of models that are fitted, stored and read in the same way, with what tells its members apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// OrgLinear as published, with its settings.
    OrgLinear(orglinear::Config),
    /// Trees and a network over the same rows, or one of the two.
    Blend(Recipe),
    /// A network of a peer.
    Network(NetworkKind),
    /// Exponential smoothing that chooses itself.
    AutoEts,
    /// A rule without training.
    Rule(Rule),
}

/// Everything that decides what a fit gives, besides the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSpec {
    /// Kind of the model.
    pub kind: ModelKind,
    /// Steps of a forecast, in hours.
    pub horizon: HorizonHours,
    /// Hours that a window shows; at least what the rule of a baseline needs.
    pub lookback_hours: usize,
    /// Seed of initialization and order of samples.
    pub seed: u64,
}

impl ModelSpec {
    /// Hours that a window must show at least: a blend learns from and answers for a series that is younger than its
    /// lookback.
    #[must_use]
    pub fn least_hours(&self) -> usize {
        let least = self.kind.recipe().map_or(self.lookback_hours, |_| Blend::HISTORY_HOURS_LEAST);
        least.min(self.lookback_hours)
    }
}

/// A fitted model of any kind.
#[derive(Debug, Clone)]
pub enum Model {
    /// OrgLinear as published.
    OrgLinear(Box<OrgLinear>),
    /// Trees and a network, averaged: the default.
    Blend(Box<Blend>),
    /// A network of another kind.
    Peer(Box<Network>),
    /// Exponential smoothing that chooses itself.
    AutoEts(Box<AutoEts>),
    /// A rule without training.
    Baseline(Baseline),
}

impl Model {
    fn inner(&self) -> &dyn Predict {
        match self {
            Self::OrgLinear(model) => model.as_ref(),
            Self::Blend(model) => model.as_ref(),
            Self::Peer(model) => model.as_ref(),
            Self::AutoEts(model) => model.as_ref(),
            Self::Baseline(model) => model,
        }
    }
}

impl Predict for Model {
    fn lookback_hours(&self) -> usize {
        self.inner().lookback_hours()
    }

    fn least_hours(&self) -> usize {
        self.inner().least_hours()
    }

    fn horizon(&self) -> HorizonHours {
        self.inner().horizon()
    }

    fn notices_leaving(&self) -> bool {
        self.inner().notices_leaving()
    }

    fn has_returned(&self, series: &SeriesId) -> bool {
        self.inner().has_returned(series)
    }

    fn knows(&self, series: &SeriesId) -> bool {
        self.inner().knows(series)
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        self.inner().predict(windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_reads_back_from_its_name_and_is_of_one_family() {
        for kind in ModelKind::ALL {
            assert_eq!(ModelKind::parse(kind.as_str()), Ok(kind));
            let is_one_of = [kind.rule().is_some(), kind.orglinear().is_some(), kind.recipe().is_some()];
            let is_peer = matches!(kind.family(), Family::Network(_) | Family::AutoEts);
            assert_eq!(is_one_of.iter().filter(|is_it| **is_it).count() + usize::from(is_peer), 1, "{kind}");
        }
        let fault = ModelKind::parse("orglinaer").unwrap_err().to_string();
        assert!(
            fault.contains("orglinear, orglinear-paper, orglinear-released, trees, network, dlinear, nlinear"),
            "{fault}"
        );
    }
}
