//! A pool of 100 GPUs, renewed every five minutes.

use super::*;

const STEP_S: i64 = 300;
const DAY_STEPS: i64 = 288;

fn gpus(gpus: u32) -> MilliGpus {
    MilliGpus::from_gpus(gpus)
}

fn offered() -> Vec<HorizonHours> {
    [1, 4].map(|hours| HorizonHours::new(hours).unwrap()).to_vec()
}

fn fresh() -> Watched {
    Watched::new(GuaranteeRate::GFS, &offered())
}

/// Serves the bounds 60 and 70 over some steps, under a demand.
fn serve(watched: &mut Watched, steps: std::ops::Range<i64>, demand: impl Fn(i64) -> u32) {
    for step in steps {
        let now = UnixSeconds::new(step * STEP_S);
        let moment = Moment { now, measured_at: now, demand: gpus(demand(step)), capacity: gpus(100) };
        watched.note(&moment, &[gpus(60), gpus(70)], Measured::ByMoment);
    }
}

fn at_step(step: i64) -> UnixSeconds {
    UnixSeconds::new(step * STEP_S)
}

#[test]
fn bounds_are_judged_once_their_hours_are_over_by_the_peak_of_these_hours() {
    let mut watched = fresh();
    // Demand rises above the first bound for one step, two and a half hours after the start.
    serve(&mut watched, 0..48, |step| if step == 30 { 68 } else { 50 });
    let [one, four] = watched.served(at_step(48)).try_into().unwrap();
    // Four looks an hour, the last hour not over yet; five of them see the peak, the one at that very step included.
    assert_eq!((one.day.looks, one.day.covered), (12, 7));
    // 8 of the 40 GPUs would have been taken back at five of twelve times.
    assert!((one.day.broken_share().unwrap() - 5.0 * 8.0 / (12.0 * 40.0)).abs() < 1e-12);
    assert_eq!((four.day.looks, four.day.coverage(), four.day.broken_share()), (0, None, None), "none is over");
    serve(&mut watched, 48..96, |_| 50);
    let [_, four] = watched.served(at_step(96)).try_into().unwrap();
    assert_eq!((four.day.looks, four.day.coverage(), four.day.broken_share()), (16, Some(1.0), Some(0.0)));
}

#[test]
fn a_gap_in_which_nobody_watched_is_not_scored() {
    let mut watched = fresh();
    serve(&mut watched, 0..12, |_| 50);
    // For half an hour the service is down: what was served before it has no known peak.
    serve(&mut watched, 18..60, |_| 50);
    let [one, _] = watched.served(at_step(60)).try_into().unwrap();
    assert_eq!(one.day.looks, 10, "of 18 to 47, and none of 0 to 11");
    // A quarter of an hour is no gap.
    let mut brief = fresh();
    serve(&mut brief, 0..12, |_| 50);
    serve(&mut brief, 14..60, |_| 50);
    assert_eq!(brief.served(at_step(60))[0].day.looks, 16);
}

#[test]
fn usage_of_whole_hours_closes_a_bound_once_it_covers_its_hours() {
    let mut watched = fresh();
    for step in 0..60 {
        let (now, hour) = (at_step(step), step / 12);
        // The newest hour that is over; of the third one the peak is above the bound.
        let measured_at = UnixSeconds::new(hour * HOUR_S);
        let demand = gpus(if hour == 3 { 80 } else { 50 });
        watched.note(
            &Moment { now, measured_at, demand, capacity: gpus(100) },
            &[gpus(60), gpus(70)],
            Measured::ByHour,
        );
    }
    let [one, four] = watched.served(at_step(60)).try_into().unwrap();
    // Bounds of 0:00 to 1:00 are judged by the first two hours, those of 1:15 to 3:00 see the third one, too.
    assert_eq!((one.day.looks, one.day.covered), (13, 5));
    assert_eq!((four.day.looks, four.day.covered), (1, 0));
}

#[test]
fn the_worst_day_and_week_are_found_and_hours_hardly_watched_are_none_of_them() {
    let mut watched = fresh();
    // From 18:00 of the tenth day to 18:00 of the next one demand is above the bound at all times.
    let bad = 9 * DAY_STEPS + 216..10 * DAY_STEPS + 216;
    serve(&mut watched, 0..20 * DAY_STEPS, |step| if bad.contains(&step) { 80 } else { 50 });
    let [one, _] = watched.served(at_step(20 * DAY_STEPS)).try_into().unwrap();
    let day = one.least_covered_day.unwrap();
    assert_eq!(day.value, 0.0);
    assert_eq!(one.most_broken_day.unwrap().value, 0.5, "20 of 40 GPUs, all day");
    // The hour before it begins sees it, too.
    let from = at_step(bad.start).get() - HOUR_S;
    assert!((from..=from + HOUR_S).contains(&day.from.get()), "{day:?}");
    let week = one.least_covered_week.unwrap();
    assert!((week.value - (1.0 - 25.0 / 168.0)).abs() < 0.01, "{week:?}");
    assert_eq!((one.day.coverage(), one.week.coverage()), (Some(1.0), Some(1.0)));
    assert!((one.month.coverage().unwrap() - (1.0 - 25.0 / 480.0)).abs() < 0.01);
    let mut brief = fresh();
    serve(&mut brief, 0..100, |_| 80);
    assert_eq!(brief.served(at_step(100))[0].least_covered_day, None, "eight hours are no day");
}

#[test]
fn what_is_older_than_four_weeks_is_forgotten_and_what_is_remembered_stays_small() {
    let mut watched = fresh();
    serve(&mut watched, 0..35 * DAY_STEPS, |step| if step < 3 * DAY_STEPS { 80 } else { 50 });
    let [one, _] = watched.served(at_step(35 * DAY_STEPS)).try_into().unwrap();
    assert_eq!((one.month.coverage(), one.least_covered_day.map(|day| day.value)), (Some(1.0), Some(1.0)));
    assert!(watched.horizons.iter().all(|horizon| horizon.past.len() as i64 <= KEPT_HOURS + 1));
    assert!(watched.horizons[1].open.len() <= 17, "{}", watched.horizons[1].open.len());
}

#[test]
fn other_hours_leave_the_learned_state_and_another_rate_begins_again() {
    let mut watched = fresh();
    serve(&mut watched, 0..96, |_| 50);
    let four = HorizonHours::new(4).unwrap();
    let longer = watched.clone().made_for(GuaranteeRate::GFS, &[four, HorizonHours::new(8).unwrap()]);
    let looks = |watched: &Watched| watched.served(at_step(96)).iter().map(|one| one.day.looks).collect::<Vec<_>>();
    assert_eq!((looks(&watched), looks(&longer)), (vec![28, 16], vec![16, 0]));
    let surer = watched.made_for(GuaranteeRate::new(0.95).unwrap(), &offered());
    assert_eq!(looks(&surer), [0, 0]);
}

#[test]
fn a_restart_goes_on_with_what_was_watched_and_damaged_numbers_are_none() {
    let mut watched = fresh();
    serve(&mut watched, 0..500, |step| if step % 50 == 0 { 75 } else { 50 });
    let numbers = watched.to_numbers();
    let mut read = Watched::from_numbers(&numbers).unwrap();
    assert_eq!(read, watched);
    serve(&mut watched, 500..700, |_| 50);
    serve(&mut read, 500..700, |_| 50);
    assert_eq!(read, watched);
    assert_eq!(Watched::from_numbers(&fresh().to_numbers()), Some(fresh()));
    for end in 0..numbers.len() {
        assert_eq!(Watched::from_numbers(&numbers[..end]), None, "cut off after {end}");
    }
    assert_eq!(Watched::from_numbers(&[&numbers[..], &[0]].concat()), None, "one too many");
    let with = |place: usize, number: i64| [&numbers[..place], &[number], &numbers[place + 1..]].concat();
    for (place, number) in [(0, 0), (2, i64::MAX), (3, 200), (4, -1), (6, -1)] {
        assert_eq!(Watched::from_numbers(&with(place, number)), None, "{number} at {place}");
    }
}
