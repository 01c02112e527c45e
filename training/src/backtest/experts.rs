//! The mixture of experts on the peak of a pool, beside the best of them.

use super::play::Played;
use command_line::table;
use forecaster::calibration::{EXPERTS, Stated};
use forecaster::mixture::{FIXED_SHARE, RATE};
use forecaster::scores::pinball;
use serde::Serialize;
use std::collections::BTreeSet;
use vocab::{GuaranteeRate, HorizonHours, HourStart, PoolId};

/// The statements of the experts on one peak.
pub struct PlayedExperts {
    pub pool: PoolId,
    pub issue: HourStart,
    pub stated: [Stated; EXPERTS],
    pub mixture_gpus: f64,
    pub peak_gpus: f64,
}

/// Loss of the mixture of a pool, and of its experts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixtureBody {
    pub model: String,
    pub pool: String,
    /// Issue times at which every expert stated a bound.
    pub issues: usize,
    pub pinball_gpus: f64,
    /// The expert that lost least.
    pub best: String,
    /// By what share of the loss of the best expert the mixture lost more; below zero where it lost less.
    pub regret: f64,
    /// Share that the regret bound of [`forecaster::mixture`] allows where each outcome is known at once and no exponent is cut off. Outcomes of
    /// H hours are known H hours late, and a jump of demand is cut off, so that the regret may exceed it.
    pub regret_bound_at_once: f64,
    /// The same where outcomes are known H hours late, with what was cut off of the exponents of the best expert.
    pub regret_bound: f64,
    pub experts: Vec<ExpertBody>,
}

/// One expert of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExpertBody {
    pub expert: String,
    /// On average over the issue times.
    pub weight: f64,
    /// Share of issue times with bound < peak.
    pub under: f64,
    pub pinball_gpus: f64,
}

/// The mixtures of all pools of a cluster; `most` is the capacity of a pool at an issue time, in GPUs.
pub fn of(played: &Played, horizon: HorizonHours, most: impl Fn(&PoolId, HourStart) -> f64) -> Vec<MixtureBody> {
    let pools: BTreeSet<&PoolId> = played.experts.iter().map(|one| &one.pool).collect();
    let pool = |pool: &PoolId| {
        let mine = played.experts.iter().filter(|one| one.pool == *pool);
        let all: Vec<Outcome> =
            mine.filter_map(|one| Outcome::of(one, (most(pool, one.issue), played.rate, horizon))).collect();
        mixture(&played.name, pool, &all, horizon)
    };
    pools.into_iter().filter_map(pool).collect()
}

/// Losses at one issue time, in GPUs, of the experts that state bounds over so many hours.
struct Outcome {
    weights: Vec<f64>,
    names: Vec<&'static str>,
    lost: Vec<f64>,
    is_under: Vec<bool>,
    mixture_lost: f64,
}

impl Outcome {
    /// `None` where an expert stated nothing: it could not be compared.
    fn of(one: &PlayedExperts, (most, rate, horizon): (f64, GuaranteeRate, HorizonHours)) -> Option<Self> {
        let peak = one.peak_gpus.min(most);
        let lost = |gpus: f64| pinball(peak, gpus.min(most), rate.as_f64());
        let asked: Vec<&Stated> = one.stated.iter().filter(|stated| stated.expert.states_over(horizon)).collect();
        let gpus: Option<Vec<f64>> = asked.iter().map(|stated| Some(stated.bound_gpus?.min(most))).collect();
        gpus.map(|gpus| Self {
            weights: asked.iter().map(|stated| stated.weight).collect(),
            names: asked.iter().map(|stated| stated.expert.as_str()).collect(),
            lost: gpus.iter().copied().map(lost).collect(),
            is_under: gpus.iter().map(|gpus| *gpus < peak).collect(),
            mixture_lost: lost(one.mixture_gpus),
        })
    }
}

fn mixture(model: &str, pool: &PoolId, all: &[Outcome], horizon: HorizonHours) -> Option<MixtureBody> {
    let first = all.first()?;
    let mean = |of: &dyn Fn(&Outcome) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let experts: Vec<ExpertBody> = (0..first.names.len())
        .map(|k| ExpertBody {
            expert: first.names[k].to_owned(),
            weight: mean(&|one| one.weights[k]),
            under: mean(&|one| f64::from(u8::from(one.is_under[k]))),
            pinball_gpus: mean(&|one| one.lost[k]),
        })
        .collect();
    let (place, best) =
        experts.iter().enumerate().min_by(|one, other| one.1.pinball_gpus.total_cmp(&other.1.pinball_gpus))?;
    let pinball_gpus = mean(&|one| one.mixture_lost);
    let usual = mean(&|one| weighted(&one.weights, &one.lost));
    let rate = RATE / (horizon.steps() as f64 * usual.max(f64::MIN_POSITIVE));
    let at_once = exponents_most(all, rate) - first.weights[place].ln();
    let late = at_once + price_of_delay(all, rate, horizon.steps() - 1) + cut_off(all, rate, place);
    let share = |exponents: f64| exponents / rate / (all.len() as f64 * best.pinball_gpus);
    Some(MixtureBody {
        model: model.to_owned(),
        pool: pool.to_string(),
        issues: all.len(),
        pinball_gpus,
        best: best.expert.clone(),
        regret: pinball_gpus / best.pinball_gpus - 1.0,
        regret_bound_at_once: share(at_once),
        regret_bound: share(late),
        experts,
    })
}

fn weighted(weights: &[f64], of: &[f64]) -> f64 {
    weights.iter().zip(of).map(|(weight, one)| weight * one).sum()
}

/// Exponents of the experts before they are cut off.
fn exponents(one: &Outcome, rate: f64) -> Vec<f64> {
    let mean = weighted(&one.weights, &one.lost);
    one.lost.iter().map(|lost| rate * (mean - lost)).collect()
}

/// The factor that leaves none of them above 1.
fn scale(exponents: &[f64]) -> f64 {
    1.0 / exponents.iter().copied().fold(1.0, f64::max)
}

/// Σ v + n ln 1/(1 − α): what the exponents of an expert may sum to beside its first weight.
fn exponents_most(all: &[Outcome], rate: f64) -> f64 {
    let squares = |one: &Outcome| {
        let exponents = exponents(one, rate);
        let squares: Vec<f64> = exponents.iter().map(|x| (x * scale(&exponents)).powi(2)).collect();
        weighted(&one.weights, &squares)
    };
    all.iter().map(squares).sum::<f64>() - all.len() as f64 * (1.0 - FIXED_SHARE).ln()
}

/// Σ r Σ (r_j/4 + α) over the outcomes that were not known yet.
fn price_of_delay(all: &[Outcome], rate: f64, delay: usize) -> f64 {
    let range = |one: &Outcome| {
        let exponents = exponents(one, rate);
        let [least, most] = [f64::min, f64::max].map(|pick| exponents.iter().copied().fold(exponents[0], pick));
        (most - least) * scale(&exponents)
    };
    let ranges: Vec<f64> = all.iter().map(range).collect();
    let moved =
        |place: usize| ranges[place.saturating_sub(delay)..place].iter().map(|r| r / 4.0 + FIXED_SHARE).sum::<f64>();
    ranges.iter().enumerate().map(|(place, range)| range * moved(place)).sum()
}

/// Loss of an expert's exponents by that factor.
fn cut_off(all: &[Outcome], rate: f64, place: usize) -> f64 {
    let rest = |one: &Outcome| {
        let exponents = exponents(one, rate);
        exponents[place] * (1.0 - scale(&exponents))
    };
    all.iter().map(rest).sum::<f64>().max(0.0)
}

/// One line for each pool and model.
pub fn mixtures_table(rows: &[MixtureBody]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // Of a best expert that lost nothing there is no share.
    let percent = |share: f64, text: String| if share.is_finite() { text } else { "-".to_owned() };
    let row = |one: &MixtureBody| {
        let best = one.experts.iter().find(|expert| expert.expert == one.best);
        vec![
            one.pool.clone(),
            one.model.clone(),
            format!("{:.2}", one.pinball_gpus),
            one.best.clone(),
            best.map(|best| format!("{:.2}", best.pinball_gpus)).unwrap_or_default(),
            best.map(|best| format!("{:.2}", best.weight)).unwrap_or_default(),
            percent(one.regret, format!("{:+.1} %", 100.0 * one.regret)),
            percent(one.regret_bound, format!("{:.0} %", 100.0 * one.regret_bound)),
        ]
    };
    let header = ["pool", "model", "mixture", "best expert", "pinball", "weight", "regret", "at most"];
    table(&header, &rows.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forecaster::calibration::Expert;
    use forecaster::mixture::Mixture;
    use vocab::{ClusterName, GpuModel};

    fn pool() -> PoolId {
        PoolId { cluster: ClusterName::parse("earth").unwrap(), gpu_model: GpuModel::parse("V100").unwrap() }
    }

    /// Experts state 10, 20, … above a demand of 100; the mixture learns at once.
    fn played(hours: i64) -> Vec<PlayedExperts> {
        // The last one states nothing over four hours.
        let prior = [0.2, 0.2, 0.2, 0.2, 0.2, 0.0];
        let mut mixture = Mixture::new(prior);
        let bounds: [f64; EXPERTS] = std::array::from_fn(|k| 110.0 + 10.0 * k as f64);
        let hour = |hour| {
            let weights = *mixture.weights();
            let losses = mixture.in_usual(&bounds.map(|bound| Some(pinball(100.0, bound, 0.9))));
            mixture.learn(&losses.map(|loss| loss / 4.0), &prior);
            PlayedExperts {
                pool: pool(),
                issue: HourStart::from_unix_s(3600 * hour).unwrap(),
                stated: std::array::from_fn(|k| Stated {
                    expert: Expert::ALL[k],
                    bound_gpus: Some(bounds[k]),
                    weight: weights[k],
                }),
                mixture_gpus: weighted(&weights, &bounds),
                peak_gpus: 100.0,
            }
        };
        (0..hours).map(hour).collect()
    }

    fn body(experts: &[PlayedExperts], most: f64) -> Option<MixtureBody> {
        let horizon = HorizonHours::new(4).unwrap();
        let all: Vec<_> =
            experts.iter().filter_map(|one| Outcome::of(one, (most, GuaranteeRate::GFS, horizon))).collect();
        mixture("orglinear", &pool(), &all, horizon)
    }

    #[test]
    fn regret_is_what_the_mixture_lost_more_than_the_best_expert_and_lies_below_its_bound_if_outcomes_are_known_at_once()
     {
        let one = body(&played(200), f64::INFINITY).unwrap();
        assert_eq!((one.best.as_str(), one.issues), ("conformal", 200));
        assert!((one.experts[0].pinball_gpus - 1.0).abs() < 1e-9);
        assert!((one.regret - (one.pinball_gpus - 1.0)).abs() < 1e-9);
        let most = one.regret_bound_at_once;
        assert!(0.0 < one.regret && one.regret < most, "{} {most}", one.regret);
        assert!(one.regret_bound > most, "delay has its price");
    }

    #[test]
    fn the_price_of_delay_counts_what_was_not_known_and_a_jump_is_cut_off() {
        let outcome = |best: f64| Outcome {
            weights: vec![0.2; 5],
            names: vec!["e"; 5],
            lost: vec![best, 1.0, 1.0, 1.0, 1.0],
            is_under: vec![false; 5],
            mixture_lost: 1.0,
        };
        let all: Vec<Outcome> = (0..10).map(|_| outcome(0.0)).collect();
        assert_eq!(price_of_delay(&all, 0.5, 0), 0.0);
        // The range of each is 0.5; nine of them have one before them, and eight have two.
        let of_one = 0.5 * (0.5 / 4.0 + FIXED_SHARE);
        assert!((price_of_delay(&all, 0.5, 2) - 17.0 * of_one).abs() < 1e-12);
        assert_eq!(cut_off(&all, 0.5, 0), 0.0);
        // The best one has 0.8 of the mean of the losses: 1.6 of exponents, of which 0.6 are cut off.
        assert!((cut_off(&all, 2.0, 0) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn no_bound_counts_above_the_capacity_and_an_hour_without_a_statement_is_left_out() {
        let mut experts = played(9);
        experts[3].stated[4].bound_gpus = None;
        let one = body(&experts, 105.0).unwrap();
        assert_eq!((one.issues, one.regret), (8, 0.0));
        assert!(one.experts.iter().all(|expert| (expert.pinball_gpus - 0.5).abs() < 1e-9));
        assert_eq!(body(&[], 105.0), None);
    }

    #[test]
    fn a_share_of_a_best_expert_that_lost_nothing_is_a_dash() {
        let one = MixtureBody { regret: f64::NAN, regret_bound: f64::INFINITY, ..body(&played(9), 105.0).unwrap() };
        let shown = mixtures_table(&[one]);
        assert!(!shown.contains("NaN") && !shown.contains("inf") && shown.trim_end().ends_with('-'), "{shown}");
    }
}
