use super::*;

const STEP_S: i64 = 300;

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

/// Numbers that look drawn and are always the same.
fn draws() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(9_u64), |last| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
        .map(|number| number >> 33)
}

/// A demand that wanders, in thousandths of a GPU.
fn wandering(steps: usize) -> Vec<u64> {
    let mut level = 500_000_i64;
    let next = draws().take(steps).map(move |draw| {
        level = (level + (draw % 21) as i64 * 1_000 - 10_000).clamp(100_000, 900_000);
        level as u64
    });
    next.collect()
}

#[test]
fn it_holds_as_often_as_promised_and_longer_hours_need_no_less() {
    let demand = wandering(6_000);
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1), hours(4)]);
    let (mut kept, mut issued) = (0, 0);
    for (step, &now) in demand.iter().enumerate() {
        let mixed = live.mix(UnixSeconds::new(step as i64 * STEP_S), now, None);
        let Some(after) = demand.get(step..step + 13).filter(|_| step > 1_000) else { continue };
        assert!(mixed[0].bound_gpus <= mixed[1].bound_gpus && mixed[0].bound_gpus >= now as f64 / 1_000.0);
        issued += 1;
        kept += usize::from(*after.iter().max().unwrap() as f64 <= mixed[0].bound_gpus * 1_000.0);
    }
    let share = f64::from(kept as u32) / f64::from(issued);
    assert!((0.87..0.93).contains(&share), "{share}");
}

#[test]
fn without_measured_rises_the_forecast_stands_and_without_both_nothing_does() {
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
    assert_eq!(live.mix(UnixSeconds::new(0), 5_000, None), []);
    let mixed = live.mix(UnixSeconds::new(STEP_S), 5_000, Some(&[9.0]));
    assert_eq!((mixed[0].bound_gpus, mixed[0].live_gpus, mixed[0].share), (9.0, None, 0.0));
}

#[test]
fn a_bound_that_was_raised_to_that_of_fewer_hours_says_from_what() {
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1), hours(2), hours(4)]);
    let mixed = live.mix(UnixSeconds::new(0), 5_000, Some(&[9.0, 8.0, 10.0]));
    let each: Vec<_> = mixed.iter().map(|one| (one.bound_gpus, one.raised_from_gpus)).collect();
    assert_eq!(each, [(9.0, None), (9.0, Some(8.0)), (10.0, None)]);
}

/// The first step of a wandering demand at which each of the offered hours has a bound.
fn first_known(live: &mut LiveBound, steps: std::ops::Range<usize>) -> Vec<Option<usize>> {
    let (demand, mut first) = (wandering(steps.end), vec![None; live.offered().len()]);
    for step in steps {
        let mixed = live.mix(UnixSeconds::new(step as i64 * STEP_S), demand[step], None);
        first.iter_mut().take(mixed.len()).for_each(|known| *known = known.or(Some(step)));
    }
    first
}

#[test]
fn each_hours_are_served_as_soon_as_they_are_known_by_themselves() {
    let alone = [1, 4].map(|of| first_known(&mut LiveBound::new(GuaranteeRate::GFS, &[hours(of)]), 0..200)[0]);
    assert_eq!(
        alone,
        [1, 4].map(|of| Some(7 + of * 12 + 11)),
        "seven moves, H, and until the twelfth rise is measured"
    );
    let all = first_known(&mut LiveBound::new(GuaranteeRate::GFS, &[hours(1), hours(4), hours(72)]), 0..200);
    assert_eq!(all, [alone[0], alone[1], None]);
}

#[test]
fn hours_that_are_new_take_the_bound_of_longer_ones_until_they_are_known() {
    let demand = wandering(200);
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(4)]);
    assert!(first_known(&mut live, 0..100)[0].is_some());
    let mut live = live.made_for(GuaranteeRate::GFS, &[hours(1), hours(4), hours(72)]);
    let mixed = live.mix(UnixSeconds::new(100 * STEP_S), demand[100], None);
    assert_eq!((mixed.len(), mixed[0]), (2, mixed[1]));
    let known = (101..200).map(|step| live.mix(UnixSeconds::new(step as i64 * STEP_S), demand[step], None));
    assert!(known.last().is_some_and(|mixed| mixed.len() == 2 && mixed[0].bound_gpus < mixed[1].bound_gpus));
}

#[test]
fn rises_before_it_is_known_how_much_demand_moves_teach_nothing() {
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
    // A pool that begins empty, fills within an hour, and moves by 10 GPUs from then on.
    let demand = |step: i64| if step < 12 { step as u64 * 50_000 } else { 590_000 + (step % 2) as u64 * 10_000 };
    let all = (0..48).map(|step| live.mix(UnixSeconds::new(step * STEP_S), demand(step), None));
    let bounds: Vec<f64> = all.filter_map(|mut mixed| mixed.pop()).map(|mixed| mixed.bound_gpus).collect();
    assert!(bounds.len() > 12 && bounds.iter().all(|bound| *bound < 1_200.0), "{bounds:?}");
}

#[test]
fn the_one_that_loses_less_has_the_larger_share() {
    let demand = wandering(3_000);
    for (offset_gpus, expected) in [(4_000.0, 1.0), (0.0, 0.0)] {
        let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
        let mut last = None;
        for (step, &now) in demand[..2_900].iter().enumerate() {
            // A forecast that knows the peak, or one that is far off.
            let peak = demand[step..step + 13].iter().max().unwrap();
            let forecast = *peak as f64 / 1_000.0 + offset_gpus;
            last = live.mix(UnixSeconds::new(step as i64 * STEP_S), now, Some(&[forecast])).pop();
        }
        assert_eq!(last.map(|mixed| mixed.share), Some(expected));
    }
}

#[test]
fn demand_that_stands_still_is_its_own_bound() {
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
    let all = (0..100).map(|step| live.mix(UnixSeconds::new(step * STEP_S), 7_000, None));
    assert_eq!(all.last().and_then(|mut mixed| mixed.pop()).map(|mixed| mixed.bound_gpus), Some(7.0));
}

#[test]
fn a_live_bound_that_was_saved_goes_on_as_if_nothing_had_happened() {
    let demand = wandering(3_000);
    let offered = [hours(1), hours(4)];
    let mut live = LiveBound::new(GuaranteeRate::GFS, &offered);
    let at = |step: usize| UnixSeconds::new(step as i64 * STEP_S);
    let forecast = |step: usize| [demand[step] as f64 / 1_000.0 + 30.0, demand[step] as f64 / 1_000.0 + 60.0];
    for (step, now) in demand.iter().enumerate().take(2_000) {
        // The forecast comes later.
        live.mix(at(step), *now, (step > 500).then(|| forecast(step)).as_ref().map(|both| &both[..]));
    }
    let bytes = live.to_bytes();
    let mut read = LiveBound::from_bytes(&bytes).unwrap();
    assert_eq!(read, live);
    for (step, now) in demand.iter().enumerate().skip(2_000) {
        let both = forecast(step);
        assert_eq!(read.mix(at(step), *now, Some(&both)), live.mix(at(step), *now, Some(&both)));
    }
    for end in 0..bytes.len() {
        assert!(LiveBound::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(LiveBound::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn rises_over_hours_in_which_nobody_looked_are_not_known() {
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
    (0..100).for_each(|step| drop(live.mix(UnixSeconds::new(step * STEP_S), 7_000, None)));
    let measured = live.horizons[0].closed.len();
    assert_eq!(live.horizons[0].open.len(), 12);
    // Demand is another after a night of downtime: the hours before it are no rise to it.
    let after = UnixSeconds::new(100 * STEP_S + 8 * 3_600);
    let mixed = live.mix(after, 900_000, None);
    assert_eq!((live.horizons[0].open.len(), live.horizons[0].closed.len()), (1, measured));
    assert_eq!(mixed[0].bound_gpus, 900.0);
}

#[test]
fn demand_that_rises_every_morning_is_expected_in_the_morning_alone() {
    let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
    let demand = |second: i64| if (9..18).contains(&(second / 3_600 % 24)) { 400_000_u64 } else { 100_000 };
    let mut issued = Vec::new();
    for step in 0..20 * 288_i64 {
        let now = step * STEP_S;
        // A forecast that knows nothing of the day.
        let mixed = live.mix(UnixSeconds::new(now), demand(now), Some(&[700.0]));
        if now >= 15 * 86_400 {
            issued.extend(mixed.first().map(|one| (now, one.bound_gpus)));
        }
    }
    let at_hour = |hour: i64| issued.iter().filter(move |(now, _)| now / 3_600 % 24 == hour);
    assert!(at_hour(8).filter(|(now, _)| now % 3_600 > 0).all(|(_, bound)| *bound > 390.0));
    assert!(at_hour(2).all(|(_, bound)| *bound < 150.0));
}
