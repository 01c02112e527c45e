use super::*;

const STEP_S: i64 = 300;
const CAPACITY: MilliGpus = MilliGpus::from_gpus(1_000);

fn offered() -> Vec<HorizonHours> {
    [1, 4].map(|hours| HorizonHours::new(hours).unwrap()).to_vec()
}

fn moment(step: usize, gpus: u32) -> Moment {
    let now = UnixSeconds::new(step as i64 * STEP_S);
    Moment { now, measured_at: now, demand: MilliGpus::from_gpus(gpus), capacity: CAPACITY }
}

/// Numbers that look drawn and are always the same.
fn draws() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(9_u64), |last| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
        .map(|number| number >> 33)
}

/// A demand that wanders.
fn wandering(steps: usize) -> Vec<u32> {
    let mut level = 500_i64;
    let next = draws().take(steps).map(move |draw| {
        level = (level + (draw % 41) as i64 - 20).clamp(100, 900);
        level as u32
    });
    next.collect()
}

fn stated(demand: u32, above: f64) -> Vec<Stated> {
    vec![Stated { bound_gpus: f64::from(demand) + above, is_sold: false }; 2]
}

#[test]
fn for_a_day_a_bound_stays_where_it_is() {
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
    for step in 0..288 {
        let all = risk.control(&moment(step, 300), &stated(300, 200.0));
        assert!(all.iter().all(|one| (one.bound_gpus, one.lambda) == (500.0, 1.0)), "{all:?}");
    }
    let after = risk.control(&moment(288, 300), &stated(300, 200.0));
    assert!(after[0].bound_gpus < 440.1 && after[1].bound_gpus == 500.0, "{after:?}");
}

#[test]
fn of_promises_that_nobody_buys_as_much_would_break_as_may_under_any_bound() {
    // Bounds that are far too wide, and too narrow by half.
    for above in [60.0, 400.0] {
        let demand = wandering(80_000);
        let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
        let (mut broken, mut offered_gpus) = (0.0, 0.0);
        for (step, &now) in demand.iter().enumerate() {
            let all = risk.control(&moment(step, now), &stated(now, above));
            let Some(after) = demand.get(step..=step + 48).filter(|_| step > 20_000) else { continue };
            let (peak, bound) = (f64::from(*after.iter().max().unwrap()), all[1].bound_gpus);
            let inventory = (1_000.0 - bound).max(0.0);
            broken += inventory.min((peak - bound).max(0.0));
            offered_gpus += inventory;
        }
        let share = broken / offered_gpus;
        assert!((0.075..0.105).contains(&share), "{above}: {share}");
    }
}

#[test]
fn what_is_sold_teaches_by_what_became_of_it_and_by_nothing_else() {
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
    let lambda = |risk: &RiskControl| risk.horizons.iter().map(|one| one.lambda).collect::<Vec<_>>();
    for step in 0..600 {
        let sold = stated(300, 200.0).into_iter().map(|one| Stated { is_sold: true, ..one });
        risk.control(&moment(step, 300), &sold.collect::<Vec<_>>());
    }
    assert_eq!(lambda(&risk), [LAMBDA_START; 2]);
    let mut number = 0;
    let mut ended = |risk: &mut RiskControl, broken_gpus: f64, exposed_gpus: f64| {
        number += 1;
        let one = Outcome { number, hours: HorizonHours::ONE, broken_gpus, exposed_gpus };
        risk.learn(std::iter::once(one), UnixSeconds::new(number * 3_600), CAPACITY);
    };
    ended(&mut risk, 8.0, 1.0);
    assert_eq!(lambda(&risk), [LAMBDA_START; 2], "it was there at the first look");
    // Ten promises of 8 GPUs, of which one broke: as many as may.
    (0..9).for_each(|_| ended(&mut risk, 0.0, 8.0));
    ended(&mut risk, 8.0, 8.0);
    assert!((lambda(&risk)[0] - LAMBDA_START).abs() < 1e-12 && lambda(&risk)[1] == LAMBDA_START);
    ended(&mut risk, 8.0, 4.0);
    assert!(lambda(&risk)[0] > LAMBDA_START);
    (0..9_000).for_each(|_| ended(&mut risk, 0.0, 8.0));
    assert_eq!(lambda(&risk), [0.0, LAMBDA_START]);
    let all = risk.control(&moment(600, 300), &stated(300, 200.0));
    assert_eq!(all[0].bound_gpus, 300.0, "no less than what HP needs");
}

#[test]
fn usage_that_comes_late_is_held_against_the_hours_that_it_is_of() {
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &[HorizonHours::ONE]);
    let at = |now_s: i64, measured_s: i64, gpus: u32| {
        let (now, measured_at) = (UnixSeconds::new(now_s), UnixSeconds::new(measured_s));
        Moment { now, measured_at, demand: MilliGpus::from_gpus(gpus), capacity: CAPACITY }
    };
    let one = [Stated { bound_gpus: 400.0, is_sold: false }];
    risk.control(&at(7_200, 7_200, 300), &one);
    // The hour before it is reported once more, larger: no peak of the demand that was stated at its end.
    risk.control(&at(7_500, 7_200, 900), &one);
    risk.control(&at(14_400, 10_800, 300), &one);
    assert!(risk.horizons[0].lambda < LAMBDA_START, "{risk:?}");
}

#[test]
fn each_outcome_teaches_once_however_late_it_comes() {
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &[HorizonHours::ONE]);
    let broken = |number| Outcome { number, hours: HorizonHours::ONE, broken_gpus: 8.0, exposed_gpus: 8.0 };
    let mut learn = |numbers: &[i64]| {
        risk.learn(numbers.iter().map(|number| broken(*number)), UnixSeconds::new(numbers[0] * 3_600), CAPACITY);
        risk.horizons[0].lambda
    };
    assert_eq!(learn(&[3]), LAMBDA_START, "nothing is known of who sold it");
    let once = learn(&[3, 4]);
    assert!(once > LAMBDA_START);
    assert_eq!(learn(&[4, 3]), once);
    // A later report of an earlier end: its number is the larger one.
    assert!(learn(&[4, 6, 3]) > once);
}

#[test]
fn factors_that_were_saved_go_on_as_if_nothing_had_happened() {
    let demand = wandering(2_000);
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
    for (step, &now) in demand.iter().enumerate() {
        risk.control(&moment(step, now), &stated(now, 60.0));
    }
    let bytes = risk.to_bytes();
    let mut read = RiskControl::from_bytes(&bytes).unwrap();
    assert_eq!(read, risk);
    let next = (moment(2_000, 700), stated(700, 60.0));
    assert_eq!(read.control(&next.0, &next.1), risk.control(&next.0, &next.1));
    for end in 0..bytes.len() {
        assert!(RiskControl::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(RiskControl::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn inventories_over_hours_that_were_not_measured_are_not_judged() {
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &[HorizonHours::ONE]);
    let one = [Stated { bound_gpus: 400.0, is_sold: false }];
    (0..5).for_each(|step| drop(risk.control(&moment(step, 300), &one)));
    // After a night of downtime demand is another.
    risk.control(&moment(5 + 96, 900), &one);
    assert_eq!((risk.horizons[0].lambda, risk.horizons[0].open.len()), (LAMBDA_START, 1));
}

#[test]
fn a_rate_is_supported_by_as_many_promises_as_one_of_may_break() {
    let four = offered()[1];
    let rate = |p: f64| GuaranteeRate::new(p).unwrap();
    assert!(
        is_supported(GuaranteeRate::GFS, four, 40 * 3_600) && !is_supported(GuaranteeRate::GFS, four, 40 * 3_600 - 1)
    );
    assert!(!is_supported(rate(0.99), four, 7 * 86_400) && is_supported(rate(0.99), four, 400 * 3_600));
    assert!((supported_rate(four, 7 * 86_400) - 0.976_190).abs() < 1e-6);
    assert_eq!((supported_rate(four, 4 * 3_600), supported_rate(four, -5)), (0.0, 0.0));
}

#[test]
fn a_bound_stays_until_what_was_seen_can_tell_its_rate() {
    let mut risk = RiskControl::new(GuaranteeRate::new(0.99).unwrap(), &offered());
    for step in 0..=400 * 12 {
        let all = risk.control(&moment(step, 300), &stated(300, 200.0));
        // A hundred promises that follow one another, of one hour or of four.
        let moved = [0, 1].map(|place| all[place].lambda < 1.0);
        assert_eq!(moved, [step >= 100 * 12, step >= 400 * 12], "{step}");
    }
}

#[test]
fn what_breaks_although_demand_stands_still_ends_what_is_sold_and_it_is_tried_again() {
    // HP takes whole nodes one after the other, and needs no more GPUs than before: the bound of the peak is what it needs now.
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &[HorizonHours::ONE]);
    let bound = |risk: &mut RiskControl, step: usize, is_sold: bool| {
        risk.control(&moment(step, 300), &[Stated { bound_gpus: 300.0, is_sold }])[0].bound_gpus
    };
    (0..400).for_each(|step| assert!(bound(&mut risk, step, true) >= 300.0));
    for step in 400..500 {
        let now = UnixSeconds::new(step as i64 * STEP_S);
        let one = Outcome { number: step as i64, hours: HorizonHours::ONE, broken_gpus: 70.0, exposed_gpus: 70.0 };
        risk.learn(std::iter::once(one), now, CAPACITY);
        bound(&mut risk, step, true);
    }
    assert_eq!(bound(&mut risk, 500, false), 1_000.0, "everything broke: nothing is sold");
    let after: Vec<f64> = (501..501 + 5 * 288).map(|step| bound(&mut risk, step, false)).collect();
    assert!(
        after[12] > 990.0 && after[after.len() - 1] < 500.0,
        "what is measured says that it may be tried: {after:?}"
    );
}

#[test]
fn nobody_can_report_more_promises_than_the_pool_has_room_for() {
    let absurd = |broken_gpus: f64| Outcome { number: 1, hours: HorizonHours::ONE, broken_gpus, exposed_gpus: 1e9 };
    let after = |outcome: Outcome| {
        let mut risk = RiskControl::new(GuaranteeRate::GFS, &[HorizonHours::ONE]);
        risk.learn(std::iter::empty(), UnixSeconds::new(0), CAPACITY);
        risk.learn(std::iter::once(outcome), UnixSeconds::new(300), CAPACITY);
        let again = std::iter::once(Outcome { number: 2, ..outcome });
        risk.learn(again, UnixSeconds::new(600), CAPACITY);
        risk.horizons[0].lambda
    };
    // All GPUs of the pool for an hour, and then those of five minutes.
    assert!((after(absurd(0.0)) - (LAMBDA_START - 0.1 - 0.1 / 12.0)).abs() < 1e-9);
    assert!((after(absurd(1e9)) - (LAMBDA_START + 0.9 + 0.9 / 12.0)).abs() < 1e-9);
}

#[test]
fn hours_that_are_offered_again_go_on_and_new_ones_are_watched_first() {
    let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
    (0..=600).for_each(|step| drop(risk.control(&moment(step, 300), &stated(300, 200.0))));
    let known = risk.clone();
    let without = risk.made_for(GuaranteeRate::GFS, &offered()[..1]);
    let again = without.made_for(GuaranteeRate::GFS, &offered());
    assert_eq!(again.horizons[1].lambda, known.horizons[1].lambda);
    let two = HorizonHours::new(2).unwrap();
    let mut more = known.made_for(GuaranteeRate::GFS, &[HorizonHours::ONE, two]);
    let all = more.control(&moment(601, 300), &stated(300, 200.0));
    assert!(all[0].lambda < 1.0 && all[1].lambda == 1.0, "{all:?}");
}
