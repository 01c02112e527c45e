//! The settings of pools, between their stored text and the types that decide.

use forecaster::bound::Aggregation;
use placement::pipeline::PolicyFault;
use placement::pool::PoolRules;
use placement::shares::Weights;
use placement::{Eta, Policy, PoolSettings, Promise};
use store::{Store, StoreError};
use vocab::{HorizonHours, PlacedBy, PoolId};
use wire::{FieldFault, PolicyBody, ReservationsBody, SettingsBody, SharesBody};

/// Let the run's validation choose.
const AUTO: &str = "auto";

/// How the tasks of a pool are placed.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementSettings {
    /// One that [`Policy::parse`] knows, or the name of the parts.
    pub policy: String,
    /// The parts of one that has no name of its own.
    pub parts: Option<PolicyBody>,
    /// Over those of the policy.
    pub reservations: Option<ReservationsBody>,
    /// Over those of the policy.
    pub shares: Option<SharesBody>,
    /// Decide and log, and enforce nothing.
    pub shadow: bool,
    /// How long tasks that have to go may save their work.
    pub grace_s: u32,
    /// How long an elastic task whose pods have changed gets no more.
    pub resize_rest_s: u32,
    /// Seconds that a task loads before it works, for the timing of evictions.
    pub load_s: u32,
    /// A task that asks for more than so many times the GPUs of the pool is refused. 10: a pool that is about to grow takes its
    /// tasks, and a slip of the keyboard does not become demand.
    pub max_request_multiple: u32,
}

impl Default for PlacementSettings {
    fn default() -> Self {
        // 30 s: what Kubernetes gives a pod that has to go.
        let PoolRules { resize_rest_s, load_s, .. } = PoolRules::default();
        let seconds = |seconds: i64| u32::try_from(seconds).expect("the default times are seconds to minutes");
        Self {
            policy: "gfs".to_owned(),
            parts: None,
            reservations: None,
            shares: None,
            shadow: false,
            grace_s: 30,
            resize_rest_s: seconds(resize_rest_s),
            load_s: seconds(load_s),
            max_request_multiple: 10,
        }
    }
}

impl PlacementSettings {
    #[must_use]
    pub fn policy(&self) -> Policy {
        let policy = match &self.parts {
            Some(parts) => parts.parse("").expect("parts of a policy are checked when the settings are parsed"),
            None => Policy::parse(&self.policy).expect("the name of a policy is checked when the settings are parsed"),
        };
        let over = |body: &ReservationsBody| body.over(policy.reservations);
        let shares = self.shares.as_ref().map(SharesBody::settings).or(policy.shares);
        Policy { reservations: self.reservations.as_ref().map_or(policy.reservations, over), shares, ..policy }
    }

    /// The weights of organizations in fair shares.
    #[must_use]
    pub fn weights(&self) -> Weights {
        let shares = self.shares.as_ref().or(self.parts.as_ref().and_then(|parts| parts.shares.as_ref()));
        let weights = shares.map(|shares| shares.weights(""));
        weights
            .map_or_else(Weights::default, |weights| weights.expect("weights are checked when the settings are parsed"))
    }

    #[must_use]
    pub fn rules(&self) -> PoolRules {
        PoolRules {
            grace_s: i64::from(self.grace_s),
            resize_rest_s: i64::from(self.resize_rest_s),
            load_s: i64::from(self.load_s),
            ..PoolRules::default()
        }
    }

    fn parse(body: &SettingsBody) -> Result<Self, FieldFault> {
        let default = Self::default();
        let policy = match (&body.policy, &body.policy_parts) {
            (name, Some(parts)) => {
                parts.parse("/policy_parts")?;
                if let Some(name) = name.as_ref().filter(|name| **name != parts.name) {
                    let detail =
                        format!("{name:?} is not the name of policy_parts, {:?}: send one of them", parts.name);
                    return Err(FieldFault::new("/policy", detail));
                }
                parts.name.clone()
            }
            (Some(name), None) if Policy::parse(name).is_none() => {
                return Err(FieldFault::new("/policy", wire::no_policy(name)));
            }
            (Some(name), None) => name.clone(),
            (None, None) => default.policy,
        };
        let (parts, shadow) = (body.policy_parts.clone(), body.shadow.unwrap_or(default.shadow));
        let placement = Self {
            policy,
            parts,
            reservations: body.reservations.clone(),
            shares: body.shares.clone(),
            shadow,
            grace_s: body.grace_s.unwrap_or(default.grace_s),
            resize_rest_s: body.resize_rest_s.unwrap_or(default.resize_rest_s),
            load_s: body.load_s.unwrap_or(default.load_s),
            max_request_multiple: match body.max_request_multiple {
                Some(0) => return Err(FieldFault::new("/max_request_multiple", "0 is below 1, the least")),
                multiple => multiple.unwrap_or(default.max_request_multiple),
            },
        };
        placement.policy().check().map_err(|fault| {
            let field = match fault {
                PolicyFault::SharesBehindHead { .. } | PolicyFault::HalfLife(_) => "/shares",
                _ => "/reservations",
            };
            FieldFault::new(field, fault)
        })?;
        body.shares.as_ref().map(|shares| shares.weights("/shares")).transpose()?;
        Ok(placement)
    }
}

/// Settings of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServedSettings {
    pub pool: PoolSettings,
    /// `None`: the mixture, where validation measured a peak of the pool.
    pub aggregation: Option<Aggregation>,
    pub placement: PlacementSettings,
    /// Which side places the tasks of the pool; `None` while it is undecided.
    pub placed_by: Option<PlacedBy>,
    /// How often they were changed; `None` for the defaults.
    pub version: Option<i64>,
}

impl ServedSettings {
    /// Checks a body, field by field, then as a whole.
    ///
    /// # Errors
    /// The first field that is refused.
    pub fn parse(body: &SettingsBody, horizon: Option<HorizonHours>) -> Result<Self, FieldFault> {
        let (guarantee_rate, offered_hours) = body.rate_and_hours()?;
        let eta = |field: &str, value| Eta::nearest(value).map_err(|fault| FieldFault::new(field, fault));
        let aggregation = match body.aggregation.as_str() {
            AUTO => None,
            name => {
                let refused =
                    |fault| FieldFault::new("/aggregation", format!("{fault}; or {AUTO}, as validation chooses"));
                Some(Aggregation::parse(name).map_err(refused)?)
            }
        };
        let pool = PoolSettings {
            guarantee_rate,
            promise: body.promise.map(Promise::from).unwrap_or_default(),
            offered_hours,
            eta_start: eta("/eta_start", body.eta_start)?,
            eta_least: eta("/eta_least", body.eta_least)?,
            eta_most: eta("/eta_most", body.eta_most)?,
            min_outcomes: body.min_outcomes,
            max_quota_wait_s: body.max_quota_wait_s,
            state_fresh_s: i64::from(body.state_fresh_s),
            outcome_window_s: body.outcome_window_s.map_or(PoolSettings::default().outcome_window_s, i64::from),
        };
        pool.check(horizon).map_err(|fault| FieldFault::new("", fault))?;
        let placed_by = body.placed_by.map(PlacedBy::from);
        Ok(Self { pool, aggregation, placement: PlacementSettings::parse(body)?, placed_by, version: body.version })
    }

    #[must_use]
    pub fn body(&self) -> SettingsBody {
        let pool = &self.pool;
        SettingsBody {
            guarantee_rate: pool.guarantee_rate.as_f64(),
            promise: Some(pool.promise.into()),
            offered_hours: pool.offered_hours.iter().map(|hours| u64::from(hours.get())).collect(),
            aggregation: self.aggregation.map_or(AUTO, Aggregation::as_str).to_owned(),
            eta_start: pool.eta_start.as_f64(),
            eta_least: pool.eta_least.as_f64(),
            eta_most: pool.eta_most.as_f64(),
            min_outcomes: pool.min_outcomes,
            max_quota_wait_s: pool.max_quota_wait_s,
            state_fresh_s: u32::try_from(pool.state_fresh_s).unwrap_or(u32::MAX),
            outcome_window_s: u32::try_from(pool.outcome_window_s).ok(),
            policy: Some(self.placement.policy.clone()),
            policy_parts: self.placement.parts.clone(),
            reservations: self.placement.reservations.clone(),
            shares: self.placement.shares.clone(),
            shadow: Some(self.placement.shadow),
            grace_s: Some(self.placement.grace_s),
            resize_rest_s: Some(self.placement.resize_rest_s),
            load_s: Some(self.placement.load_s),
            max_request_multiple: Some(self.placement.max_request_multiple),
            placed_by: self.placed_by.map(Into::into),
            version: self.version,
        }
    }
}

/// The settings of a pool, or the defaults.
///
/// # Errors
/// The database does not answer, or what it holds no longer parses.
pub async fn load(store: &dyn Store, pool: &PoolId) -> Result<ServedSettings, StoreError> {
    let placed_by = store.placement(pool).await?.map(|placement| placement.placed_by);
    let Some(stored) = store.settings(pool).await? else {
        return Ok(ServedSettings { placed_by, ..ServedSettings::default() });
    };
    let corrupt = |reason: String| StoreError::Corrupt { what: format!("the settings of {pool}"), reason };
    let body = wire::from_json(&stored.settings_json).map_err(|fault| corrupt(fault.to_string()))?;
    let settings = ServedSettings::parse(&body, None).map_err(|fault| corrupt(fault.to_string()))?;
    Ok(ServedSettings { version: Some(stored.version), placed_by, ..settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back_as_they_were_written() {
        let default = ServedSettings::default();
        assert_eq!(ServedSettings::parse(&default.body(), None), Ok(default.clone()));
        let placement = PlacementSettings {
            policy: "gfs-noquota".to_owned(),
            parts: None,
            reservations: Some(ReservationsBody { hp_heads: Some(2), ..ReservationsBody::default() }),
            shares: Some(SharesBody { half_life_hours: 24, weights: [("vision".to_owned(), 3)].into() }),
            shadow: true,
            grace_s: 5,
            resize_rest_s: 6,
            load_s: 7,
            max_request_multiple: 8,
        };
        let pool = PoolSettings { outcome_window_s: 7_200, ..default.pool };
        let (aggregation, placed_by) = (Some(Aggregation::Pooled), Some(PlacedBy::External));
        let set = ServedSettings { pool, aggregation, version: Some(3), placement, placed_by };
        assert_eq!(ServedSettings::parse(&set.body(), None), Ok(set.clone()));
        assert_eq!(set.placement.policy().reservations.hp_heads, 2);
        assert_eq!(set.placement.policy().shares.map(|shares| shares.half_life_hours), Some(24));
        assert_eq!(set.placement.weights().iter().map(|(_, weight)| weight).collect::<Vec<_>>(), [3]);
        let parts = PolicyBody { name: "mine".into(), blocking: Some("class".into()), ..PolicyBody::default() };
        let placement = PlacementSettings {
            policy: "mine".into(),
            parts: Some(parts),
            reservations: None,
            shares: None,
            ..set.placement
        };
        let of_parts = ServedSettings { placement, ..set };
        assert_eq!(of_parts.placement.policy().blocking, placement::policy::Blocking::Class);
        assert_eq!(ServedSettings::parse(&of_parts.body(), None), Ok(of_parts));
    }

    #[test]
    fn what_is_refused_is_named_by_its_field() {
        let good = ServedSettings::default().body();
        let fault =
            |body: &SettingsBody| ServedSettings::parse(body, HorizonHours::new(4).ok()).unwrap_err().to_string();
        assert!(fault(&SettingsBody { guarantee_rate: 1.0, ..good.clone() }).starts_with("/guarantee_rate: "));
        assert!(
            fault(&SettingsBody { aggregation: "mean".into(), ..good.clone() })
                .starts_with("/aggregation: \"mean\" is no aggregation")
        );
        assert!(
            fault(&SettingsBody { offered_hours: vec![1, 8], ..good.clone() })
                .contains("8h are offered, and forecasts reach 4h only")
        );
        assert!(fault(&SettingsBody { eta_most: 0.0, ..good.clone() }).starts_with("/eta_most: "));
        let sent = SettingsBody { max_request_multiple: Some(0), ..good.clone() };
        assert_eq!(fault(&sent), "/max_request_multiple: 0 is below 1, the least");
        let parts = PolicyBody { name: "mine".into(), order: Some("fifo".into()), ..PolicyBody::default() };
        let sent = SettingsBody { policy: None, policy_parts: Some(parts), ..good.clone() };
        assert!(fault(&sent).starts_with("/policy_parts/order: \"fifo\" is no order"), "{}", fault(&sent));
        let parts = PolicyBody { name: "mine".into(), ..PolicyBody::default() };
        let sent = SettingsBody { policy_parts: Some(parts), ..good.clone() };
        assert!(fault(&sent).starts_with("/policy: \"gfs\" is not the name of policy_parts, \"mine\""));
        let two = Some(ReservationsBody { hp_heads: Some(2), ..ReservationsBody::default() });
        let sent = SettingsBody { policy: Some("fgd".into()), reservations: two, ..good.clone() };
        assert!(fault(&sent).starts_with("/reservations: reservations are for blocking by \"nobody\""));
        let shares = |half_life_hours, weight| {
            Some(SharesBody { half_life_hours, weights: [("vision".to_owned(), weight)].into() })
        };
        let sent = SettingsBody { shares: shares(24, 0), ..good.clone() };
        assert!(fault(&sent).starts_with("/shares/weights/vision: the weight of vision is 0: write"));
        let sent = SettingsBody { shares: shares(9_999, 1), ..good.clone() };
        assert_eq!(fault(&sent), "/shares: half_life_hours is 9999: write a number of 1 to 2160");
        let sent = SettingsBody { policy: Some("fgd".into()), shares: shares(24, 1), ..good.clone() };
        assert!(fault(&sent).starts_with("/shares: shares are for blocking by \"nobody\""), "{}", fault(&sent));
        let fault = fault(&SettingsBody { policy: Some("best".into()), ..good });
        assert!(fault.starts_with("/policy: unknown policy \"best\": choose one of gfs, "), "{fault}");
    }
}
