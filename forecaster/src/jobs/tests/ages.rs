//! Ages of jobs are what their bounds know more than demand does.

use super::*;
use crate::scores::pinball;

const DAYS: i64 = 21;
const RENEWAL_S: i64 = 900;
const LASTS_S: i64 = 20_400;
const P: f64 = 0.9;
/// Renewals of a week and a day, which nothing is scored in: another bound needs them to learn from.
const FIRST_SCORED: i64 = 8 * 86_400 / RENEWAL_S;

/// Jobs of 16 GPUs for 5 h 40 min, in three of ten hours: nothing says when the next one comes, but its age says when it is gone. Drawn by a
/// linear congruential generator.
fn irregular(seed: u64) -> Vec<Listed> {
    let mut state = seed;
    let mut comes = |_: &i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 1_000 < 300
    };
    let hours: Vec<i64> = (0..DAYS * 24).filter(|hour| comes(hour)).collect();
    hours.into_iter().map(|hour| (hour * 3_600 + 300, LASTS_S, 16, "vision")).collect()
}

/// The same jobs, each with another age.
fn shuffled(now: i64, mut jobs: Vec<HpJob>) -> Vec<HpJob> {
    for (place, job) in (0..).zip(&mut jobs) {
        let age = ((now / RENEWAL_S * 7_919 + place * 104_729) * 61) % LASTS_S;
        (job.submitted, job.started) = (at(now - age), Some(at(now - age)));
    }
    jobs
}

/// Mean pinball losses over four hours, in GPUs: of the jobs' bound, of the mixed one, and of demand plus its usual rise.
fn losses(list: &[Listed], ages: impl Fn(i64, Vec<HpJob>) -> Vec<HpJob>) -> [f64; 3] {
    let (offered, week) = ([hours(4)], 7 * 86_400);
    let mut expert = JobExpert::new(GuaranteeRate::GFS, &offered);
    let (mut rises, mut lost, mut scored) = (Vec::<(i64, f64)>::new(), [0.0; 3], 0.0);
    for number in 0..(DAYS - 1) * 86_400 / RENEWAL_S {
        let now = number * RENEWAL_S;
        let jobs = present(list, now);
        let demand = milli(&jobs);
        let gpus = |at: i64| milli(&present(list, at)) as f64 / 1_000.0;
        let peak = (0..48).map(|step| gpus(now + step * 300)).fold(0.0, f64::max);
        let known = rises.iter().filter(|(at, _)| (now - week..=now).contains(&(at + 14_400)));
        let mut known: Vec<f64> = known.map(|(_, rise)| *rise).collect();
        known.sort_by(f64::total_cmp);
        let rank = ((known.len() as f64 + 1.0) * P).ceil() as usize;
        let usual = gpus(now) + known.get(rank.clamp(1, known.len().max(1)) - 1).copied().unwrap_or(0.0);
        rises.push((now, peak - gpus(now)));
        expert.observe(at(now), &ages(now, jobs));
        let bound = expert.mix((at(now), demand), (None, true), &[usual], 3)[0];
        if number >= FIRST_SCORED {
            let bounds = [bound.jobs_gpus.unwrap(), bound.bound_gpus, usual];
            lost = std::array::from_fn(|k| lost[k] + pinball(peak, bounds[k], P));
            scored += 1.0;
        }
    }
    lost.map(|lost| lost / scored)
}

#[test]
fn ages_lower_the_loss_where_long_jobs_come_irregularly_and_shuffled_ages_do_not() {
    for seed in [7, 8] {
        let list = irregular(seed);
        let [jobs, mixed, usual] = losses(&list, |_, jobs| jobs);
        assert!(jobs < 0.9 * usual && mixed < 0.95 * usual, "{seed}: {jobs} {mixed} {usual}");
        let [jobs, mixed, usual] = losses(&list, shuffled);
        assert!(jobs > usual && mixed > usual, "{seed}: {jobs} {mixed} {usual}");
    }
}

#[test]
fn jobs_that_all_last_three_hours_end_after_three_hours_once_many_are_known_and_few_say_little() {
    let survival = |count: i64| {
        // One after the other, so that none is there at the end.
        let list: Vec<Listed> = (0..count).map(|number| (number * 11_100, 10_800, 4, "vision")).collect();
        let history = watched(&list, count * 11_100);
        let survival = Survival::learn(&history, None, at(count * 11_100));
        let ends_by = |age_s: f64| 1.0 - (-survival.of(1, 4_000).hazard_until(age_s)).exp();
        [9_000.0, 10_800.0].map(ends_by)
    };
    let [early, whole] = survival(200);
    assert!(early < 0.05 && whole > 0.6, "{early} {whole}");
    // The ends of three jobs say that jobs end, and little of when.
    let [early, _] = survival(3);
    assert!(early > 0.2, "{early}");
}
