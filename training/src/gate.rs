//! Whether a run may serve.

use crate::backtest::served::ServedBody;
use crate::losses::HourLosses;
use crate::run::KeptScores;
use std::collections::BTreeMap;
use vocab::HorizonHours;

/// A new run may lose this share against the promoted one: an equal model should not fail by chance.
const TOLERANCE: f64 = 0.05;
/// Issue times that both runs must have for a comparison on the same rows: a day.
const LEAST_ISSUES: usize = 24;

/// The conditions of a promotion.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gate {
    /// Of the median, in GPUs.
    pub max_mae_gpus: Option<f64>,
    /// Of the 0.9 quantile of organizations, and of the bounds of pools that would have been served.
    pub min_coverage: Option<f64>,
}

impl Gate {
    /// Why a run without any measured demand of a pool does not pass a least coverage, which an empty table would.
    #[must_use]
    pub fn unmeasured(self, scores: &KeptScores) -> Option<String> {
        (self.min_coverage.is_some() && scores.pools.is_empty()).then(|| {
            "no demand of its pools was measured over a horizon of its validation part, since rows of organizations are missing: \
             there is nothing to hold against --min-coverage"
                .to_owned()
        })
    }
}

/// A run with what its forecasts lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    pub horizon: HorizonHours,
    pub scores: KeptScores,
    /// By issue time: of its validation part, and of the promoted run also of the hours since, which it did not learn from.
    /// Empty for a run of an older version.
    pub losses: Vec<HourLosses>,
}

/// Why a run does not pass; `None` where it does. Without thresholds of the caller's, the promoted run is the measure, on the
/// steps and issue times that both have.
#[must_use]
pub fn refusal(gate: Gate, new: &Contender, promoted: Option<&Contender>) -> Option<String> {
    let scores = &new.scores.model;
    if let Some(most) = gate.max_mae_gpus.filter(|most| scores.mae_median_gpus > *most) {
        return Some(format!("its MAE of {:.3} GPUs is above --max-mae {most}", scores.mae_median_gpus));
    }
    if let Some(least) = gate.min_coverage.filter(|least| scores.coverage_q90 < *least) {
        return Some(format!("its coverage of {:.3} is below --min-coverage {least}", scores.coverage_q90));
    }
    let served = [&new.scores.served, &new.scores.served_with_jobs];
    if let Some(why) = gate.min_coverage.and_then(|least| served.iter().find_map(|one| served_below(least, one))) {
        return Some(why);
    }
    if gate != Gate::default() {
        return None;
    }
    worse_than(new, promoted?)
}

/// Where the bounds that would have been served over the validation part held less often than `least`. Forecasts of
/// organizations may be covered as promised while promises of the pool are not.
fn served_below(least: f64, served: &[ServedBody]) -> Option<String> {
    let worst = served.iter().min_by(|one, other| one.coverage.total_cmp(&other.coverage))?;
    (worst.coverage < least).then(|| {
        format!(
            "what it would have served over its validation part has a coverage of {:.3} over {} h, below --min-coverage {least}",
            worst.coverage, worst.hours
        )
    })
}

fn worse_than(new: &Contender, promoted: &Contender) -> Option<String> {
    let steps = usize::from(new.horizon.get().min(promoted.horizon.get()));
    if let Some(Common { rows, ours_gpus, theirs_gpus }) = common(new, promoted, steps) {
        return (ours_gpus > theirs_gpus * (1.0 + TOLERANCE)).then(|| {
            format!(
                "its pinball loss at 0.9 is {ours_gpus:.3} GPUs, that of the promoted run {theirs_gpus:.3} GPUs on the same \
                 {rows} forecasts of up to {steps} h"
            )
        });
    }
    let (Some(ours), Some(theirs)) = (relative(new, steps), relative(promoted, steps)) else {
        return Some(format!(
            "it forecasts {} h and the promoted run, of an older version, {} h, and they have no hours in common to be \
             compared on: promote it with `train runs promote`",
            new.horizon.get(),
            promoted.horizon.get()
        ));
    };
    (ours > theirs * (1.0 + TOLERANCE)).then(|| {
        format!(
            "its pinball loss at 0.9 is {ours:.3} times the last value's over {steps} h, that of the promoted run {theirs:.3} \
             times, each on its own validation part"
        )
    })
}

/// Mean losses on the rows that both runs have.
struct Common {
    rows: u64,
    ours_gpus: f64,
    theirs_gpus: f64,
}

/// `None` where they have less than [`LEAST_ISSUES`] issue times in common. A step with other rows, since usage came later or
/// was corrected, does not count.
fn common(new: &Contender, promoted: &Contender, steps: usize) -> Option<Common> {
    let theirs: BTreeMap<i64, &HourLosses> = promoted.losses.iter().map(|one| (one.issue_unix_s, one)).collect();
    let (mut issues, mut rows, mut ours_gpus, mut theirs_gpus) = (0, 0_u64, 0.0, 0.0);
    for one in &new.losses {
        let Some(other) = theirs.get(&one.issue_unix_s) else { continue };
        let before = rows;
        for step in 0..steps.min(one.rows.len()).min(other.rows.len()) {
            if one.rows[step] == other.rows[step] {
                rows += u64::from(one.rows[step]);
                ours_gpus += one.loss_gpus[step];
                theirs_gpus += other.loss_gpus[step];
            }
        }
        issues += usize::from(rows > before);
    }
    let mean = |sum: f64| sum / rows as f64;
    (issues >= LEAST_ISSUES).then(|| Common { rows, ours_gpus: mean(ours_gpus), theirs_gpus: mean(theirs_gpus) })
}

/// The loss over the first `steps` steps as a share of the last value's; of a run of an older version over all of them, where
/// it has no more.
fn relative(run: &Contender, steps: usize) -> Option<f64> {
    let of = |sums: fn(&HourLosses) -> &Vec<f64>| -> f64 {
        run.losses.iter().flat_map(|one| sums(one).iter().take(steps)).sum()
    };
    let last_value = of(|one| &one.last_value_gpus);
    if last_value > 0.0 {
        let judged = |one: &&HourLosses| !one.last_value_gpus.is_empty();
        let ours: f64 = run.losses.iter().filter(judged).flat_map(|one| one.loss_gpus.iter().take(steps)).sum();
        return Some(ours / last_value);
    }
    (usize::from(run.horizon.get()) == steps).then(|| run.scores.relative_pinball())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::kept;

    fn run(horizon: u64, scores: KeptScores) -> Contender {
        Contender { horizon: HorizonHours::new(horizon).unwrap(), scores, losses: Vec::new() }
    }

    /// Issue times `hours`; each step loses `loss_gpus(step)`, the last value `last_value_gpus(step)`.
    fn judged(
        horizon: u64,
        hours: std::ops::Range<i64>,
        loss_gpus: fn(f64) -> f64,
        last_value_gpus: fn(f64) -> f64,
    ) -> Contender {
        let by_step = |of: fn(f64) -> f64| (1..=horizon).map(|step| of(step as f64)).collect::<Vec<_>>();
        let one = |hour: i64| HourLosses {
            issue_unix_s: hour * 3_600,
            rows: vec![1; horizon as usize],
            loss_gpus: by_step(loss_gpus),
            last_value_gpus: by_step(last_value_gpus),
        };
        let (ours, last): (f64, f64) = (by_step(loss_gpus).iter().sum(), by_step(last_value_gpus).iter().sum());
        Contender { losses: hours.map(one).collect(), ..run(horizon, kept(5.0, 0.9, ours / last)) }
    }

    #[test]
    fn thresholds_are_named_when_they_are_missed() {
        let gate = |max_mae_gpus, min_coverage| Gate { max_mae_gpus, min_coverage };
        let new = run(4, kept(5.0, 0.88, 1.0));
        assert_eq!(refusal(gate(Some(4.0), None), &new, None).unwrap(), "its MAE of 5.000 GPUs is above --max-mae 4");
        assert!(refusal(gate(None, Some(0.9)), &new, None).unwrap().contains("below --min-coverage 0.9"));
        assert_eq!(refusal(gate(Some(5.0), Some(0.88)), &new, Some(&run(4, kept(1.0, 0.9, 0.1)))), None);
    }

    #[test]
    fn the_bounds_that_would_have_been_served_are_held_against_the_least_coverage() {
        let served = |hours, coverage| ServedBody { hours, samples: 165, coverage, kept_rate: None, pinball_gpus: 1.0 };
        let scores = KeptScores { served: vec![served(1, 0.93), served(4, 0.84)], ..kept(5.0, 0.95, 1.0) };
        let refused =
            |least| refusal(Gate { min_coverage: Some(least), ..Gate::default() }, &run(4, scores.clone()), None);
        let text = refused(0.85).unwrap();
        assert!(text.ends_with("has a coverage of 0.840 over 4 h, below --min-coverage 0.85"), "{text}");
        assert_eq!(refused(0.84), None);
    }

    #[test]
    fn a_least_coverage_is_no_condition_that_a_run_without_measured_pools_meets() {
        let scores = kept(5.0, 0.9, 1.0);
        assert!(scores.pools.is_empty());
        let gate = Gate { max_mae_gpus: None, min_coverage: Some(0.5) };
        assert!(gate.unmeasured(&scores).unwrap().contains("was measured"));
        assert_eq!(Gate::default().unmeasured(&scores), None);
    }

    #[test]
    fn without_thresholds_a_run_may_not_be_clearly_worse_than_the_promoted_one() {
        let promoted = run(4, kept(5.0, 0.9, 1.0));
        let text = |relative| refusal(Gate::default(), &run(4, kept(5.0, 0.9, relative)), Some(&promoted));
        assert_eq!(text(1.04), None);
        assert!(text(1.06).unwrap().contains("1.060 times"));
        assert_eq!(refusal(Gate::default(), &run(4, kept(5.0, 0.9, 9.0)), None), None, "a first run has no rival");
    }

    /// The last value is good for the next hours and bad for the next day, so a share of its loss says nothing across horizons.
    #[test]
    fn a_run_of_five_hours_is_compared_with_one_of_a_day_on_the_hours_and_steps_that_both_have() {
        let last_value: fn(f64) -> f64 = |step| step;
        let day = judged(24, 0..165, |step| 0.7 * step + 0.5, last_value);
        let better = judged(5, 3..165, |step| 0.7 * step + 0.4, last_value);
        assert!(better.scores.relative_pinball() > 1.05 * day.scores.relative_pinball(), "as shares it looks worse");
        assert_eq!(refusal(Gate::default(), &better, Some(&day)), None);
        let worse = judged(5, 3..165, |step| 0.7 * step + 0.8, last_value);
        let text = refusal(Gate::default(), &worse, Some(&day)).unwrap();
        assert!(
            text.contains("2.900 GPUs, that of the promoted run 2.600 GPUs on the same 810 forecasts of up to 5 h"),
            "{text}"
        );
        let refused = refusal(Gate::default(), &day, Some(&better));
        assert!(refused.is_none(), "within the tolerance the other way round");
    }

    #[test]
    fn runs_without_hours_in_common_are_compared_by_the_steps_that_both_have() {
        let last_value: fn(f64) -> f64 = |step| step;
        let day = judged(24, 0..165, |step| 0.7 * step + 0.5, last_value);
        let later = judged(5, 400..500, |step| 0.7 * step + 0.4, last_value);
        assert_eq!(refusal(Gate::default(), &later, Some(&day)), None);
        let text = refusal(Gate::default(), &later, Some(&run(24, kept(5.0, 0.9, 1.0)))).unwrap();
        assert!(text.contains("train runs promote"), "{text}");
    }
}
