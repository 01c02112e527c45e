//! The settings of a pool, each with its default and where that comes from.

use crate::eta::Eta;
use vocab::{GuaranteeRate, HorizonHours};

/// Why settings were refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// No guarantee hours are offered.
    #[error("no guarantee hours are offered: name at least one")]
    NothingOffered,
    /// The offered hours do not rise.
    #[error("the offered hours must rise and not repeat")]
    OfferedNotRising,
    /// Offered hours reach beyond the horizon of the model.
    #[error("{offered} are offered, and forecasts reach {horizon} only")]
    BeyondHorizon {
        /// The offered hours.
        offered: HorizonHours,
        /// Hours of the promoted run.
        horizon: HorizonHours,
    },
    /// η₀ is outside its bounds.
    #[error("eta starts at {start}, outside its bounds {least} to {most}")]
    EtaOutside {
        /// The first eta.
        start: Eta,
        /// The least eta.
        least: Eta,
        /// The largest eta.
        most: Eta,
    },
    /// The lower bound of eta is zero.
    #[error("the least eta is {least}, below {}: it could not rise again in steps of a tenth", Eta::LEAST)]
    EtaTooLow {
        /// The least eta, which is below its limit.
        least: Eta,
    },
    /// A move of eta needs no outcome.
    #[error("eta needs at least one outcome to move")]
    NoOutcomes,
}

/// The event that p is the probability of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Promise {
    /// That a promised GPU stays where it is for H hours: the bound is moved until what breaks is what p allows.
    #[default]
    Kept,
    /// That HP demand stays below B_H for H hours, as in the GFS paper: far more promises are kept than p says.
    Peak,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kept, Self::Peak];

    /// Name in settings and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Peak => "peak",
        }
    }

    /// Promise of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// Settings of a pool that an operator can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// p. 0.9, GFS table 4.
    pub guarantee_rate: GuaranteeRate,
    /// The event that p is the probability of.
    pub promise: Promise,
    /// H, rising. 1, 2 and 4 h, GFS table 4.
    pub offered_hours: Vec<HorizonHours>,
    /// η₀. 1, GFS §3.3.2.
    pub eta_start: Eta,
    /// 0.1: below, a pool would sell next to nothing and never see an outcome to learn from.
    pub eta_least: Eta,
    /// 3: above, the forecast no longer matters and S0 + Sa rules.
    pub eta_most: Eta,
    /// Outcomes that a move needs. 100: at a target of 0.1 the rate is then known to about ±0.05.
    pub min_outcomes: u64,
    /// Outcomes so old no longer say how the eviction rate is. 24 h: outcomes come in bursts with HP work, and within an hour
    /// or four there is either a burst or none.
    pub outcome_window_s: i64,
    /// θ: waiting beyond this calls for more quota. 3,600 s, GFS table 4.
    pub max_quota_wait_s: u64,
    /// A reported state older than this counts for nothing. 600 s, as long as a quota is valid.
    pub state_fresh_s: i64,
}

impl Default for PoolSettings {
    fn default() -> Self {
        let hours = |hours| HorizonHours::new(hours).expect("between 1 and 168");
        Self {
            guarantee_rate: GuaranteeRate::GFS,
            promise: Promise::default(),
            offered_hours: [1, 2, 4].map(hours).to_vec(),
            eta_start: Eta::ONE,
            eta_least: Eta::from_micro(100_000),
            eta_most: Eta::from_micro(3_000_000),
            min_outcomes: 100,
            outcome_window_s: vocab::SECONDS_PER_DAY,
            max_quota_wait_s: 3_600,
            state_fresh_s: 600,
        }
    }
}

impl PoolSettings {
    /// # Errors
    /// The settings contradict each other, or offer more hours than `horizon`, where one is known.
    pub fn check(&self, horizon: Option<HorizonHours>) -> Result<(), SettingsError> {
        let last = self.offered_hours.last().copied().ok_or(SettingsError::NothingOffered)?;
        if !self.offered_hours.is_sorted_by(|one, next| one < next) {
            return Err(SettingsError::OfferedNotRising);
        }
        if let Some(horizon) = horizon.filter(|horizon| last > *horizon) {
            return Err(SettingsError::BeyondHorizon { offered: last, horizon });
        }
        if self.eta_start < self.eta_least || self.eta_start > self.eta_most {
            let (start, least, most) = (self.eta_start, self.eta_least, self.eta_most);
            return Err(SettingsError::EtaOutside { start, least, most });
        }
        if self.eta_least < Eta::LEAST {
            return Err(SettingsError::EtaTooLow { least: self.eta_least });
        }
        if self.min_outcomes == 0 {
            return Err(SettingsError::NoOutcomes);
        }
        Ok(())
    }

    /// The settings under a bound that follows the pool's own measured peaks: eta only brakes then, between a half and 1. The
    /// bound corrects itself by what came, and two that correct one error push each other to and fro. Bounds of the operator's
    /// that leave nothing of this stay as they are.
    #[must_use]
    pub fn calibrated(&self) -> Self {
        let least = self.eta_least.max(Eta::from_micro(500_000));
        let most = self.eta_most.min(Eta::ONE);
        if least > most {
            return self.clone();
        }
        Self { eta_least: least, eta_most: most, eta_start: self.eta_start.clamp(least, most), ..self.clone() }
    }

    /// The settings under a bound that learns from what became of promises: eta stays at 1, or as near to it as the operator's
    /// bounds allow.
    #[must_use]
    pub fn eta_at_rest(&self) -> Self {
        let eta = Eta::ONE.clamp(self.eta_least, self.eta_most);
        Self { eta_least: eta, eta_most: eta, eta_start: eta, ..self.clone() }
    }

    /// The longest offered guarantee: eta waits as long before it moves again, so that it sees what its last move did.
    #[must_use]
    pub fn longest_hours(&self) -> HorizonHours {
        self.offered_hours.last().copied().unwrap_or(HorizonHours::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_agree_with_each_other_and_contradictions_are_named() {
        let good = PoolSettings::default();
        assert_eq!(good.check(HorizonHours::new(4).ok()), Ok(()));
        let two = HorizonHours::new(2).unwrap();
        assert!(matches!(good.check(Some(two)), Err(SettingsError::BeyondHorizon { .. })));
        let bad = PoolSettings { offered_hours: vec![two, two], ..good.clone() };
        assert_eq!(bad.check(None), Err(SettingsError::OfferedNotRising));
        let bad = PoolSettings { offered_hours: vec![], ..good.clone() };
        assert_eq!(bad.check(None), Err(SettingsError::NothingOffered));
        let bad = PoolSettings { eta_start: Eta::from_micro(50_000), ..good.clone() };
        assert!(bad.check(None).unwrap_err().to_string().starts_with("eta starts at 0.05"));
        let bad = PoolSettings { eta_least: Eta::from_micro(9), ..good.clone() };
        assert_eq!(bad.check(None), Err(SettingsError::EtaTooLow { least: Eta::from_micro(9) }));
        assert_eq!(PoolSettings { min_outcomes: 0, ..good }.check(None), Err(SettingsError::NoOutcomes));
    }
}
