//! The basis of quotas that another service computes: where it has changed since, that service promises nothing by them, and no answer
//! here offers anything.

use crate::published::Hold;
use crate::quotas::Quotas;
use std::collections::BTreeMap;
use store::{QuotaBasis, StoreError, StoredUnder};
use vocab::PoolId;

/// Knowledge of the newest quotas of a pool.
struct Known {
    /// As it was when they were new here, with the settings that they know.
    basis: QuotaBasis,
    /// Of the lease under which they were stored; where that is not known, of the lease when they were new here.
    epoch: u64,
    /// Whether they did not know the newest override then.
    is_outdated: bool,
}

/// Each pool's quotas, by their basis when they were new here.
#[derive(Default)]
pub(super) struct FollowedBases(BTreeMap<PoolId, Known>);

impl FollowedBases {
    /// Shows which quotas of other services are held back. Returns whether any is no more.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn look(&mut self, quotas: &Quotas) -> Result<bool, StoreError> {
        let (mut all, mut holds) = (BTreeMap::new(), BTreeMap::new());
        for now in quotas.core.store.quota_bases().await? {
            let Some(leader) = quotas.core.leases.leader(&now.pool.cluster) else { continue };
            let pool = now.pool.clone();
            let known = Known::of(self.0.remove(&pool), &now, leader.epoch);
            if let Some(hold) = known.hold(&now, leader.epoch) {
                holds.insert(pool.clone(), hold);
            }
            all.insert(pool, known);
        }
        self.0 = all;
        Ok(quotas.follow_holds(holds))
    }
}

impl Known {
    /// As before, unless quotas are new.
    fn of(before: Option<Self>, now: &QuotaBasis, epoch: u64) -> Self {
        if let Some(before) = before {
            if before.basis.quota_id == now.quota_id {
                return before;
            }
            // An override from before the quotas before them is known to these: the clocks of two services may differ.
            let is_outdated = is_overridden(&before.basis, now) && is_overridden_since(now);
            return Self::new(now, epoch, is_outdated);
        }
        Self::new(now, epoch, is_overridden_since(now))
    }

    fn new(now: &QuotaBasis, epoch: u64, is_outdated: bool) -> Self {
        let StoredUnder { epoch, settings_version } =
            now.stored_under.unwrap_or(StoredUnder { epoch, settings_version: now.settings_version });
        Self { basis: QuotaBasis { settings_version, ..now.clone() }, epoch, is_outdated }
    }

    /// Why nothing is promised by the quotas that are still the newest; `None` where they rest on what they did.
    fn hold(&self, now: &QuotaBasis, epoch: u64) -> Option<Hold> {
        let has_settings = self.basis.settings_version != now.settings_version;
        if self.is_outdated || has_settings || is_overridden(&self.basis, now) {
            return Some(Hold::Change);
        }
        (self.epoch != epoch).then_some(Hold::NotRenewed)
    }
}

/// Whether an override was made or withdrawn between the two.
fn is_overridden(before: &QuotaBasis, now: &QuotaBasis) -> bool {
    before.override_id < now.override_id || before.withdrawn < now.withdrawn
}

/// Whether an override is newer than the quotas.
fn is_overridden_since(basis: &QuotaBasis) -> bool {
    basis.overridden_at.is_some_and(|at| at > basis.computed_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::UnixSeconds;

    fn basis(quota_id: i64, computed_s: i64) -> QuotaBasis {
        let pool = PoolId::parse("earth:A100").unwrap();
        let computed_at = UnixSeconds::new(computed_s);
        let (settings_version, override_id, withdrawn, overridden_at) =
            (Some(1), Some(1), 0, Some(UnixSeconds::new(50)));
        let stored_under = None;
        QuotaBasis {
            pool,
            quota_id,
            computed_at,
            stored_under,
            settings_version,
            override_id,
            withdrawn,
            overridden_at,
        }
    }

    #[test]
    fn quotas_that_are_seen_for_the_first_time_are_held_back_by_what_they_were_stored_under() {
        let stored = |epoch, settings_version| {
            let under = StoredUnder { epoch, settings_version };
            let basis = QuotaBasis { stored_under: Some(under), ..basis(1, 100) };
            Known::of(None, &basis, 7).hold(&basis, 7)
        };
        assert_eq!(stored(7, Some(1)), None);
        assert_eq!(stored(6, Some(1)), Some(Hold::NotRenewed), "a takeover since");
        assert_eq!(stored(7, None), Some(Hold::Change), "settings since");
    }

    #[test]
    fn quotas_are_held_back_from_a_change_until_others_are_stored() {
        let first = basis(1, 100);
        let known = || Known::of(None, &first, 7);
        assert_eq!(known().hold(&first, 7), None);
        assert_eq!(known().hold(&first, 8), Some(Hold::NotRenewed));
        let changes = [
            QuotaBasis { settings_version: Some(2), ..first.clone() },
            QuotaBasis { override_id: Some(2), overridden_at: Some(UnixSeconds::new(120)), ..first.clone() },
            QuotaBasis { withdrawn: 1, overridden_at: Some(UnixSeconds::new(120)), ..first.clone() },
        ];
        for changed in changes {
            let held = Known::of(Some(known()), &changed, 8);
            assert_eq!(held.hold(&changed, 8), Some(Hold::Change), "{changed:?}");
            let renewed = QuotaBasis { quota_id: 2, computed_at: UnixSeconds::new(120), ..changed };
            let known = Known::of(Some(held), &renewed, 8);
            assert_eq!(known.hold(&renewed, 8), None, "{renewed:?}");
        }
    }

    #[test]
    fn an_override_that_is_newer_than_quotas_seen_for_the_first_time_holds_them_back() {
        let early = basis(1, 49);
        let known = Known::of(None, &early, 7);
        assert_eq!(known.hold(&early, 7), Some(Hold::Change));
        // The clock of the service that leads now is behind: its renewals know that override.
        let (second, third) = (basis(2, 40), basis(3, 41));
        let known = Known::of(Some(known), &second, 8);
        assert_eq!(known.hold(&second, 8), None);
        assert_eq!(Known::of(Some(known), &third, 8).hold(&third, 8), None);
        // Quotas that are new together with an override which came while they were computed.
        let with = QuotaBasis { override_id: Some(2), overridden_at: Some(UnixSeconds::new(60)), ..basis(4, 59) };
        let known = Known::of(Some(Known::of(None, &basis(3, 58), 8)), &with, 8);
        assert_eq!(known.hold(&with, 8), Some(Hold::Change));
    }
}
