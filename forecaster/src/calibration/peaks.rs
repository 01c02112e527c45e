//! Lessons of forecasts about the peaks of pools, and the evidence for the next ones.

use super::conformal::Conformal;
use super::pool::{Guess, Known, PoolState, guesses};
use super::recent::{Recent, recent};
use super::residual::slot;
use super::tiers::{Tier, tiers};
use super::{Calibrator, as_kept, experts, passed};
use datasets::Panel;
use std::collections::BTreeMap;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// The peaks of pools as the forecasts of one issue time have them: all that these teach about pools.
#[derive(Debug, Clone)]
pub struct PeakGuesses {
    issue: HourStart,
    /// By id.
    pools: Vec<(PoolId, Vec<Guess>)>,
}

impl PeakGuesses {
    /// Of the model's forecasts at `issue`, before any correction.
    #[must_use]
    pub fn of(issue: HourStart, raw: &[DemandForecast], horizon: HorizonHours) -> Self {
        let kept: Vec<DemandForecast> = raw.iter().map(as_kept).collect();
        Self::of_kept(issue, &kept, horizon)
    }

    /// The same, of forecasts [as they are kept](as_kept).
    pub(super) fn of_kept(issue: HourStart, kept: &[DemandForecast], horizon: HorizonHours) -> Self {
        let of = |(id, members): (&PoolId, Vec<&DemandForecast>)| (id.clone(), guesses(&members, horizon));
        Self { issue, pools: by_pool(kept, horizon).into_iter().map(of).collect() }
    }

    fn of_pool(&self, pool: &PoolId) -> Option<&[Guess]> {
        let place = self.pools.binary_search_by(|(known, _)| known.cmp(pool)).ok()?;
        Some(&self.pools[place].1)
    }
}

impl Calibrator {
    /// Hours after which a forecast begins to teach.
    #[must_use]
    pub fn first_lesson_hours(&self) -> usize {
        tiers(self.horizon)[0].end
    }

    /// The hours after which peaks teach while later hours of the forecasts are not over, rising, each with the last issue time that has
    /// taught so far.
    #[must_use]
    pub fn peaks_taught(&self) -> Vec<(HorizonHours, Option<HourStart>)> {
        let mut tiers = tiers(self.horizon);
        // The last ends with the forecasts.
        tiers.pop();
        let of =
            |(tier, taught): (&Tier, &Option<HourStart>)| Some((HorizonHours::new(tier.end as u64).ok()?, *taught));
        tiers.iter().zip(&self.taught).filter_map(of).collect()
    }

    /// Learns of the peaks whose hours are over at `until`, while later hours of the forecasts are not. To be called in the order
    /// of issue times; what was learned before is not learned again.
    pub fn observe_peaks(&mut self, panel: &Panel, guesses: &PeakGuesses, until: HourStart) {
        let issue = guesses.issue;
        for (place, tier) in tiers(self.horizon).iter().enumerate() {
            if self.taught[place] < Some(issue) && is_over(tier, issue, until) {
                self.learn_tier(panel, guesses, (place, tier));
            }
        }
    }

    fn learn_tier(&mut self, panel: &Panel, guesses: &PeakGuesses, (place, tier): (usize, &Tier)) {
        let (issue, horizon) = (guesses.issue, self.horizon);
        for hour in passed(self.taught[place], issue) {
            self.pools.iter_mut().for_each(|pool| pool.forget(hour, tier));
        }
        let newest = self.taught[place].replace(issue);
        self.judge_experts(panel, guesses, tier);
        for (id, guesses) in &guesses.pools {
            let known = self.pools.binary_search_by(|pool| pool.id.cmp(id)).unwrap_or_else(|place| {
                self.pools.insert(place, PoolState::new(id.clone(), horizon));
                place
            });
            self.pools[known].learn_history(panel, newest, issue, tier);
            self.pools[known].learn(panel, issue, guesses, tier);
        }
        self.pools.retain(|pool| !pool.is_forgotten());
        self.settle_tier(place, tier);
    }

    /// Works out what follows from the residuals of a tier.
    pub(super) fn settle_tier(&mut self, place: usize, tier: &Tier) {
        self.pools.iter_mut().for_each(|pool| pool.settle(place));
        for (number, all) in self.all[tier.clone()].iter_mut().enumerate() {
            *all = merged(self.pools.iter().map(|pool| &pool.sorted(place)[number]));
        }
    }

    /// Weighs the experts on each pool's peak by how what they stated at the issue time fared, by what was known then: forecasts
    /// whose hours of the tier were not over then had not taught yet.
    fn judge_experts(&mut self, panel: &Panel, guesses: &PeakGuesses, tier: &Tier) {
        let issue = guesses.issue;
        let later: Vec<usize> = (1..tier.end as i64).map(|back| slot(issue.plus_hours(-back))).collect();
        let ranked: Vec<_> = self.pools.iter().map(|pool| pool.ranked_without(tier, &later)).collect();
        let all: Vec<Vec<f32>> =
            (0..tier.len()).map(|number| merged(ranked.iter().map(|one| &one.sorted[number]))).collect();
        let of_pool = |(place, pool): (usize, &mut PoolState)| {
            let known = Known { tier, ranked: &ranked[place], all: &all, issue, without: &later };
            let losses = pool.losses(panel, guesses.of_pool(&pool.id)?, &known)?;
            Some((place, losses))
        };
        let taught: Vec<_> = self.pools.iter_mut().enumerate().filter_map(of_pool).collect();
        let mean = experts::mean(&taught);
        for (place, losses) in &taught {
            let mixtures = self.pools[*place].mixtures[tier.clone()].iter_mut();
            let each = mixtures.zip(losses).zip(&mean).zip(tier.start + 1..);
            each.for_each(|(((one, own), mean), hours)| experts::learn(one, own, mean, hours));
        }
    }

    /// For each pool that was learned from, what its measured peaks say of the next one. `raw` are the forecasts before
    /// any correction, at one issue time, and `panel` holds demand up to it; [`bounds`](crate::bound::bounds) takes the result.
    #[must_use]
    pub fn conformal(&self, panel: &Panel, raw: &[DemandForecast], rate: GuaranteeRate) -> BTreeMap<PoolId, Conformal> {
        let of = |(id, members): (&PoolId, Vec<&DemandForecast>)| {
            let recent = recent(panel, id, members.first()?.issue(), self.horizon);
            Some((id.clone(), self.conformal_of(id, &members, &recent, rate, None)?))
        };
        by_pool(raw, self.horizon).into_iter().filter_map(of).collect()
    }

    /// The same for one pool, of whose organizations `members` are all forecasts, and which did [`recent`] before them;
    /// `None` where nothing was learned of it. The experts are asked for these hours alone, where there are `asked` ones: bounds under
    /// [`mixture`](crate::bound::Aggregation::Mixture) are made for no others.
    #[must_use]
    pub fn conformal_of(
        &self,
        pool: &PoolId,
        members: &[&DemandForecast],
        recent: &Recent,
        rate: GuaranteeRate,
        asked: Option<&[HorizonHours]>,
    ) -> Option<Conformal> {
        let place = self.pools.binary_search_by(|known| known.id.cmp(pool)).ok()?;
        let is_whole = members.iter().all(|one| one.steps().len() >= self.horizon.steps());
        is_whole.then(|| self.pools[place].conformal((members, self.horizon), &self.all, (rate, asked), recent))
    }
}

/// Whether the hours of a tier are over.
fn is_over(tier: &Tier, issue: HourStart, until: HourStart) -> bool {
    issue.plus_hours(tier.end as i64) <= until
}

/// All of several sorted lists, sorted.
fn merged<'a>(all: impl Iterator<Item = &'a (impl AsRef<[f32]> + ?Sized + 'a)>) -> Vec<f32> {
    let mut merged: Vec<f32> = all.flat_map(AsRef::as_ref).copied().collect();
    merged.sort_unstable_by(f32::total_cmp);
    merged
}

fn by_pool(raw: &[DemandForecast], horizon: HorizonHours) -> BTreeMap<&PoolId, Vec<&DemandForecast>> {
    let mut pools: BTreeMap<&PoolId, Vec<&DemandForecast>> = BTreeMap::new();
    for run in raw.chunk_by(|one, other| one.series().pool == other.series().pool) {
        let members = run.iter().filter(|one| one.steps().len() >= horizon.steps());
        pools.entry(&run[0].series().pool).or_default().extend(members);
    }
    pools
}
