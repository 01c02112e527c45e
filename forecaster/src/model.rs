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

/// What can be trained.
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

    /// The settings of an OrgLinear; `None` for anything else.
    #[must_use]
    pub const fn orglinear(self) -> Option<orglinear::Config> {
        match self {
            Self::OrgLinearPaper => Some(orglinear::Config::PAPER),
            Self::OrgLinearReleased => Some(orglinear::Config::RELEASED),
            _ => None,
        }
    }

    /// The parts of a blend; `None` for anything else.
    #[must_use]
    pub const fn recipe(self) -> Option<Recipe> {
        match self {
            Self::OrgLinear => Some(Recipe::Both),
            Self::Trees => Some(Recipe::Trees),
            Self::Network => Some(Recipe::Network),
            _ => None,
        }
    }

    /// The network of a peer that is one; `None` for anything else.
    #[must_use]
    pub const fn peer_network(self) -> Option<NetworkKind> {
        match self {
            Self::DLinear => Some(NetworkKind::DLinear),
            Self::NLinear => Some(NetworkKind::NLinear),
            Self::DeepAr => Some(NetworkKind::DeepAr),
            Self::Transformer => Some(NetworkKind::Transformer),
            _ => None,
        }
    }

    /// Whether the forecasts of organizations are corrected online where validation agrees. Peers and rules stay as they
    /// are, so that they show what they are.
    #[must_use]
    pub const fn is_calibrated(self) -> bool {
        self.recipe().is_some()
    }

    /// The rule of a baseline; `None` for what is trained.
    #[must_use]
    pub const fn rule(self) -> Option<Rule> {
        match self {
            Self::LastValue => Some(Rule::LastValue),
            Self::Seasonal24h => Some(Rule::Seasonal { period_hours: 24 }),
            Self::Seasonal168h => Some(Rule::Seasonal { period_hours: 168 }),
            Self::PeakWeek => Some(Rule::Peak { hours: 168 }),
            _ => None,
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
            let is_one_of = [
                kind.rule().is_some(),
                kind.orglinear().is_some(),
                kind.peer_network().is_some(),
                kind.recipe().is_some(),
                kind == ModelKind::AutoEts,
            ];
            assert_eq!(is_one_of.iter().filter(|is_it| **is_it).count(), 1, "{kind}");
        }
        let fault = ModelKind::parse("orglinaer").unwrap_err().to_string();
        assert!(
            fault.contains("orglinear, orglinear-paper, orglinear-released, trees, network, dlinear, nlinear"),
            "{fault}"
        );
    }
}
