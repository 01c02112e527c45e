//! Evidence of the recent past about one pool's own peak.

use super::conformal::{Centre, Conformal, ConformalHours, ENOUGH_RESIDUALS};
use super::experts::{self, EXPERTS, Evidence, LEARNED_RATES, RateLosses, RateMixtures, untaught, weighed};
use super::linear::Linear;
use super::long::{Memory, Past, SHORT_HOURS};
use super::recent::{Recent, for_experts};
use super::residual::{WINDOW_HOURS, rank, slot};
use super::tiers::{Tier, tiers};
use crate::gaussian;
use crate::scores::{actual_peak_gpus, pinball};
use datasets::Panel;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, PoolId};

/// Deviations of a pool are floored here, in GPUs.
const LEAST_DEVIATION_GPUS: f64 = 0.5;
/// Shares of the pool's total in the centre that are tried.
const SHARES: [f64; 3] = [0.0, 0.5, 1.0];
/// While there are too few residuals to choose by.
const SHARE_START: f64 = 0.5;
/// The largest of H hours is that of H to this power which know nothing of each other: near the quantile of H Gaussians that correlate by a
/// half.
const OWN_HOURS: f64 = 0.75;
/// Correlation of organizations in the peak that the forecasts have.
const TOGETHER: f64 = 0.1;
/// z of the total: the 0.9 quantile of a Gaussian.
const TOTAL_DEVIATIONS: f64 = 1.281_551_565_544_600_4;

/// Evidence of one issue time about the peak over a number of hours; [`Residual::NONE`] where there is nothing.
#[derive(Debug, Clone, Copy)]
pub struct Residual {
    /// How far the peak was above the sum of the organizations' quantiles, in deviations.
    pub above_sum: f32,
    /// How far the quantile of their total was above that sum, in deviations.
    pub total: f32,
    /// The deviation of that time, in GPUs; NaN where an older program kept none.
    pub deviation_gpus: f32,
    /// How far the peak was above the hour before the issue time, in GPUs; NaN where that was not measured. It is known of hours
    /// without a forecast, too.
    pub rise_gpus: f32,
    /// How far that rise was above the linear one, in GPUs; NaN where there was none.
    pub above_linear_gpus: f32,
}

impl Residual {
    /// Nothing.
    pub const NONE: Self = Self {
        above_sum: f32::NAN,
        total: f32::NAN,
        deviation_gpus: f32::NAN,
        rise_gpus: f32::NAN,
        above_linear_gpus: f32::NAN,
    };

    /// Whether there is none of a forecast.
    pub const fn is_none(&self) -> bool {
        self.above_sum.is_nan()
    }

    /// How far the peak was above a centre with this share of the total, in deviations.
    fn above(&self, share: f64) -> f32 {
        (f64::from(self.above_sum) - share * f64::from(self.total)) as f32
    }

    /// How far the peak was above the quantile of the total, in deviations.
    pub fn above_total(&self) -> f64 {
        f64::from(self.above(1.0))
    }

    /// How far it was above such a centre, in GPUs.
    pub fn above_gpus(&self, share: f64) -> f32 {
        self.above(share) * self.deviation_gpus
    }
}

/// Residuals of a pool, in deviations of its guesses.
#[derive(Debug, Clone)]
pub struct PoolState {
    /// The pool.
    pub id: PoolId,
    /// `[issue time by slot][hours − 1]`.
    pub residuals: Vec<Residual>,
    /// `[hours − 1]`: the rise of the peak, as its history has it.
    pub linear: Vec<Linear>,
    /// `[hours − 1]`: the weights of the experts on the peak.
    pub mixtures: Vec<RateMixtures>,
    /// Its demand, for peaks over many hours.
    pub memory: Memory,
    /// Each with what follows from its `residuals`.
    tiers: Vec<(Tier, Ranked)>,
}

/// Residuals of a tier in their order, and the centre that they are above of.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// The share of the total in the centre: that whose bounds would have lost least.
    pub share: f64,
    /// `[place in the tier]`, how far the peak was above the centre, in deviations, sorted.
    pub sorted: Vec<Vec<f32>>,
}

impl Ranked {
    /// Residuals over its longest hours.
    pub fn residuals(&self) -> usize {
        self.sorted.last().map_or(0, Vec::len)
    }
}

/// Knowledge of a tier at an issue time.
pub struct Known<'a> {
    pub tier: &'a Tier,
    pub ranked: &'a Ranked,
    /// `[place in the tier]`, residuals of all pools, sorted.
    pub all: &'a [Vec<f32>],
    pub issue: HourStart,
    /// Slots of issue times whose hours are not over.
    pub without: &'a [usize],
}

/// The pool's peak over 1, 2, … hours as its forecasts have it.
#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "names carry units")]
pub struct Guess {
    /// Sum over organizations of the largest 0.9 quantile within the hours: right if all are largest together.
    pub sum_gpus: f64,
    /// The largest 0.9 quantile of their total, were they independent Gaussians.
    pub total_gpus: f64,
    /// The largest deviation of independent organizations.
    pub deviation_gpus: f64,
    /// Mean and deviation of the total in the hour with its largest 0.9 quantile, of organizations that correlate by a tenth.
    highest_gpus: [f64; 2],
}

impl Guess {
    /// The centre with this share of the total.
    pub fn centre_gpus(&self, share: f64) -> f64 {
        (1.0 - share) * self.sum_gpus + share * self.total_gpus
    }

    /// The quantile at `p` of the peak over so many hours, as the forecasts have it.
    pub fn peak_gpus(&self, hours: usize, p: f64) -> f64 {
        let [mean_gpus, deviation_gpus] = self.highest_gpus;
        mean_gpus + deviations_of_peak(hours, p) * deviation_gpus
    }
}

/// About how far the peak over so many hours as the forecasts have it is above the quantile of the total, in deviations.
pub fn forecast_peak_above_total(hours: usize) -> f64 {
    deviations_of_peak(hours, GuaranteeRate::GFS.as_f64()) - TOTAL_DEVIATIONS
}

/// Deviations above the mean of the quantile at `p` of the largest of so many hours.
fn deviations_of_peak(hours: usize, p: f64) -> f64 {
    gaussian::quantile(p.powf((hours as f64).powf(-OWN_HOURS)))
}

/// The peaks over 1, 2, … hours as forecasts of a pool's organizations have them. None of it has to be right: only its relation to the
/// peak has to last.
pub fn guesses(raw: &[&DemandForecast], horizon: HorizonHours) -> Vec<Guess> {
    // Of each step the sums over organizations of the largest quantile so far, the mean, the variance and the deviation.
    let mut sums = vec![[0.0_f64; 4]; horizon.steps()];
    for forecast in raw {
        let mut largest = 0.0_f64;
        for (sums, step) in sums.iter_mut().zip(&forecast.steps()[..horizon.steps()]) {
            largest = largest.max(step.quantiles_gpus[1]);
            let of_step = [largest, step.mean_gpus, step.stddev_gpus.powi(2), step.stddev_gpus];
            sums.iter_mut().zip(of_step).for_each(|(sum, one)| *sum += one);
        }
    }
    let (mut total_gpus, mut deviation_gpus, mut highest_gpus) =
        (0.0_f64, LEAST_DEVIATION_GPUS, [f64::NEG_INFINITY; 2]);
    let level = |[mean, deviation]: [f64; 2]| mean + TOTAL_DEVIATIONS * deviation;
    let step = |[sum_gpus, mean, variance, deviations]: [f64; 4]| {
        deviation_gpus = deviation_gpus.max(variance.sqrt());
        total_gpus = total_gpus.max(level([mean, variance.sqrt()]));
        let together = [mean, (TOGETHER * deviations.powi(2) + (1.0 - TOGETHER) * variance).sqrt()];
        if level(together) > level(highest_gpus) {
            highest_gpus = together;
        }
        Guess { sum_gpus, total_gpus, deviation_gpus, highest_gpus }
    };
    sums.into_iter().map(step).collect()
}

/// The loss of an order statistic of sorted residuals on them, in deviations.
fn least_loss(sorted: &[f32], level: f64) -> f64 {
    let Some(bound) = sorted.get(rank(sorted.len(), level)).copied().map(f64::from) else { return 0.0 };
    sorted.iter().map(|residual| pinball(f64::from(*residual), bound, level)).sum()
}

/// The largest demand of a pool in the hour before an issue time, in GPUs, where it was measured.
#[must_use]
pub fn latest_gpus(panel: &Panel, pool: &PoolId, issue: HourStart) -> Option<f64> {
    actual_peak_gpus(panel, pool, issue.plus_hours(-1), HorizonHours::ONE)
}

impl PoolState {
    /// A pool of which nothing is known.
    pub fn new(id: PoolId, horizon: HorizonHours) -> Self {
        let steps = horizon.steps();
        let unknown = |tier: Tier| Ranked { share: SHARE_START, sorted: vec![Vec::new(); tier.len()] };
        let tiers = tiers(horizon).into_iter().map(|tier| (tier.clone(), unknown(tier))).collect();
        let residuals = vec![Residual::NONE; WINDOW_HOURS * steps];
        let linear = vec![Linear::default(); steps];
        Self { id, residuals, linear, mixtures: (1..=steps).map(untaught).collect(), memory: Memory::default(), tiers }
    }

    pub const fn steps(&self) -> usize {
        self.mixtures.len()
    }

    pub fn slot_mut(&mut self, issue: HourStart) -> &mut [Residual] {
        let width = self.steps();
        let start = slot(issue) * width;
        &mut self.residuals[start..start + width]
    }

    /// Forgets what a tier knew of the issue hours before the window of `issue`.
    pub fn forget(&mut self, issue: HourStart, tier: &Tier) {
        self.slot_mut(issue)[tier.clone()].fill(Residual::NONE);
    }

    /// Learns from the forecasts of an issue hour, where the hours of the tier are over.
    pub fn learn(&mut self, panel: &Panel, issue: HourStart, guesses: &[Guess], tier: &Tier) {
        let id = self.id.clone();
        for (number, (guess, place)) in
            guesses.iter().zip(self.slot_mut(issue)).enumerate().take(tier.end).skip(tier.start)
        {
            if let Some(peak) = peak_gpus(panel, &id, issue, number) {
                let [above_sum, total] =
                    [peak, guess.total_gpus].map(|gpus| ((gpus - guess.sum_gpus) / guess.deviation_gpus) as f32);
                *place = Residual { above_sum, total, deviation_gpus: guess.deviation_gpus as f32, ..*place };
            }
        }
    }

    /// Whether all issue hours are forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.residuals.iter().all(Residual::is_none)
    }

    /// Works out what follows from the residuals of a tier.
    pub fn settle(&mut self, place: usize) {
        let ranked = self.ranked_without(&self.tiers[place].0, &[]);
        self.tiers[place].1 = ranked;
    }

    /// The residuals of a tier but those of some slots, in their order: the centre is the one whose bounds would have lost least.
    pub fn ranked_without(&self, tier: &Tier, slots: &[usize]) -> Ranked {
        let start = Ranked { share: SHARE_START, sorted: self.sorted_by(SHARE_START, tier, slots) };
        if (start.residuals() as f64) < ENOUGH_RESIDUALS {
            return start;
        }
        let level = GuaranteeRate::GFS.as_f64();
        let loss = |one: &Ranked| one.sorted.iter().map(|sorted| least_loss(sorted, level)).sum::<f64>();
        let tried = SHARES.map(|share| Ranked { share, sorted: self.sorted_by(share, tier, slots) });
        let best = tried.into_iter().min_by(|one, other| loss(one).total_cmp(&loss(other)));
        best.expect("there are shares")
    }

    /// `[place in the tier]`, how far the peak was above a centre with this share, sorted.
    fn sorted_by(&self, share: f64, tier: &Tier, without: &[usize]) -> Vec<Vec<f32>> {
        let of_hours = |number: usize| {
            let known = self.residuals_of(number, without).filter(|(_, residual)| !residual.is_none());
            let mut sorted: Vec<f32> = known.map(|(_, residual)| residual.above(share)).collect();
            sorted.sort_unstable_by(f32::total_cmp);
            sorted
        };
        tier.clone().map(of_hours).collect()
    }

    /// The residuals of a number of hours with their slots, but for those of some slots.
    fn residuals_of(&self, number: usize, without: &[usize]) -> impl Iterator<Item = (usize, Residual)> {
        let of_hours = self.residuals.iter().skip(number).step_by(self.steps()).copied().enumerate();
        of_hours.filter(move |(slot, _)| !without.contains(slot))
    }

    /// `[place in the tier]`, residuals, rising.
    pub fn sorted(&self, place: usize) -> &[Vec<f32>] {
        &self.tiers[place].1.sorted
    }

    /// Statements of the experts for an issue time, `[place in the tier]` of a function of evidence and guess, for the asked hours.
    fn of_experts<T>(
        &self,
        guesses: &[Guess],
        known: &Known<'_>,
        past: Option<&Past>,
        (recent, asked): (&Recent, Option<&[HorizonHours]>),
        mut then: impl FnMut(&Evidence<'_>, &Guess) -> T,
    ) -> Vec<Option<T>> {
        let one = |(place, number): (usize, usize)| {
            if !is_among(asked, number) {
                return None;
            }
            let (residuals, inputs) = (self.residuals_of(number, known.without), recent.inputs.get(number));
            let long = past.filter(|_| number >= SHORT_HOURS).map(|past| past.rises(number + 1, inputs));
            let rise = inputs.and_then(|inputs| self.linear[number].rise_gpus(inputs));
            let of_rises = (recent.latest_gpus, rise);
            let evidence = Evidence::new(residuals, known, place, of_rises, long);
            Some(then(&evidence, &guesses[number]))
        };
        known.tier.clone().enumerate().map(one).collect()
    }

    /// Its demand before an issue time, where peaks over many hours need it.
    fn past(&self, issue: HourStart) -> Option<Past> {
        (self.steps() > SHORT_HOURS).then(|| self.memory.before(issue))
    }

    /// The losses of the experts of a tier for an issue time whose hours are over, before its residuals are learned, by what was
    /// known then: `known` leaves out what was not. `None` while the pool knows too little, or where its peak was not measured.
    pub fn losses(&mut self, panel: &Panel, guesses: &[Guess], known: &Known<'_>) -> Option<Vec<RateLosses>> {
        if known.ranked.residuals() < experts::LEAST_RESIDUALS {
            return None;
        }
        let issue = known.issue;
        let peaks: Option<Vec<f64>> =
            known.tier.clone().map(|number| peak_gpus(panel, &self.id, issue, number)).collect();
        let recent = for_experts(panel, &self.id, issue, hours_of(known.tier.end - 1)?);
        let each = |evidence: &Evidence<'_>, guess: &Guess| LEARNED_RATES.map(|p| evidence.statements(guess, p));
        let past = self.past(issue).filter(|_| known.tier.end > SHORT_HOURS);
        let statements = self.of_experts(guesses, known, past.as_ref(), (&recent, None), each);
        let statements = statements.into_iter().collect::<Option<Vec<_>>>()?;
        let of_hours =
            self.mixtures[known.tier.clone()].iter_mut().zip(&statements).zip(peaks?).zip(known.tier.clone());
        let one =
            |(((mixtures, statements), peak), number)| experts::losses(mixtures, statements, peak, number as f64 + 1.0);
        Some(of_hours.map(one).collect())
    }

    /// The inputs of the bound, for forecasts of the pool's organizations at an issue time, and what it did before them. The experts are
    /// asked for some numbers of hours, or for all.
    pub fn conformal(
        &self,
        (raw, horizon): (&[&DemandForecast], HorizonHours),
        all: &[Vec<f32>],
        (rate, asked): (GuaranteeRate, Option<&[HorizonHours]>),
        recent: &Recent,
    ) -> Conformal {
        // No demand is below none, by however much a pool that fell to nothing was overestimated before.
        let (mut calibrated_gpus, p) = (0.0_f64, rate.as_f64());
        let (issue, guesses) = (raw.first().map(|one| one.issue()), guesses(raw, horizon));
        let past = issue.and_then(|issue| self.past(issue));
        let mut hours = Vec::with_capacity(guesses.len());
        for (tier, ranked) in &self.tiers {
            let all = &all[tier.clone()];
            let of_experts = issue.map(|issue| {
                let each = |evidence: &Evidence<'_>, guess: &Guess| (evidence.statements(guess, p), evidence.trust());
                let known = Known { tier, ranked, all, issue, without: &[] };
                self.of_experts(&guesses, &known, past.as_ref(), (recent, asked), each)
            });
            for (place, number) in tier.clone().enumerate() {
                let (guess, own_residuals) = (&guesses[number], &ranked.sorted[place]);
                let Guess { sum_gpus, total_gpus, deviation_gpus, .. } = *guess;
                let (total_share, centre_gpus) = (ranked.share, guess.centre_gpus(ranked.share));
                let (own, shared, both) = weighed(own_residuals, &all[place], p);
                let kept = own_residuals.iter().filter(|residual| f64::from(**residual) <= both).count();
                calibrated_gpus = calibrated_gpus.max(centre_gpus + both * deviation_gpus);
                let (mut statements, trust) =
                    of_experts.as_ref().and_then(|all| all[place]).unwrap_or(([None; EXPERTS], [1.0; EXPERTS]));
                statements[0] = Some(calibrated_gpus).filter(|_| is_among(asked, number));
                hours.push(ConformalHours {
                    centre: Centre { sum_gpus, total_gpus, total_share, centre_gpus },
                    deviation_gpus,
                    own,
                    shared,
                    calibrated_gpus,
                    residuals: ranked.residuals(),
                    coverage: kept as f64 / own_residuals.len().max(1) as f64,
                    experts: experts::stated(&self.mixtures[number], &statements, &trust, p),
                    returns_gpus: recent.returns_gpus.get(number).copied().flatten(),
                });
            }
        }
        Conformal { hours }
    }
}

/// The hours of a place in `[hours − 1]`.
fn hours_of(number: usize) -> Option<HorizonHours> {
    HorizonHours::new(number as u64 + 1).ok()
}

/// The peak over so many hours and one, where all were measured, in GPUs.
fn peak_gpus(panel: &Panel, pool: &PoolId, issue: HourStart, number: usize) -> Option<f64> {
    actual_peak_gpus(panel, pool, issue, hours_of(number)?)
}

/// Whether `number` + 1 hours are among the asked ones, which are all where there are none.
fn is_among(asked: Option<&[HorizonHours]>, number: usize) -> bool {
    asked.is_none_or(|all| all.iter().any(|hours| hours.steps() == number + 1))
}

/// Of sorted residuals, at p.
pub fn order_statistic(sorted: &[f32], p: f64) -> Option<f64> {
    sorted.get(rank(sorted.len(), p)).map(|residual| f64::from(*residual))
}
