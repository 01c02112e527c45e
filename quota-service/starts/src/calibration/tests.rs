use super::*;

const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);

fn task(number: usize) -> TaskId {
    TaskId::parse(&format!("task-{number}")).unwrap()
}

/// An hour, spread evenly.
fn hour() -> Starts {
    Starts::of((0..61).map(|path| f64::from(path) * 60.0).collect()).unwrap()
}

/// Forecasts of an hour, one in twenty minutes; true waits are so many times as long.
fn scored(count: usize, times: f64) -> Calibration {
    let (mut calibration, raw) = (Calibration::default(), hour());
    for number in 0..count {
        let at = NOW.plus_s((number as i64 - count as i64) * 1_200);
        let forecast = calibration.correct(&raw, at);
        calibration.issue(&task(number), at, &forecast);
        let wait_s = (number * 7 % 61) as f64 * 60.0;
        calibration.started(&task(number), at.plus_s(((wait_s + ALIKE_S) * times - ALIKE_S) as i64));
    }
    calibration
}

#[test]
fn levels_and_times_are_inverse_to_each_other_within_the_futures_and_beyond() {
    let points = points_of(&hour().moved(|_, start| start + 3_600.0));
    for level in [-0.7, -0.1, 0.0, 0.01, 0.3, 0.5, 0.99, 1.0, 1.4] {
        let back = level_of(&points, at_level(&points, level));
        assert!((back - level).abs() < 1e-9, "{level} became {back}");
    }
    assert_eq!(level_of(&[60.0; POINTS], 60.0), 0.5);
}

#[test]
fn forecasts_that_were_right_are_left_alone_and_those_that_were_short_grow() {
    let ratio = |times: f64| {
        let corrected = scored(488, times).correct(&hour(), NOW).corrected;
        (corrected.quantile_s(0.5) + ALIKE_S) / (hour().quantile_s(0.5) + ALIKE_S)
    };
    assert!((ratio(1.0) - 1.0).abs() < 0.1, "{}", ratio(1.0));
    assert!((2.5..3.2).contains(&ratio(3.0)), "{}", ratio(3.0));
}

#[test]
fn corrected_forecasts_cover_as_much_as_they_state_though_raw_ones_do_not() {
    let coverage = scored(976, 3.0).coverage().unwrap();
    assert!((0.43..0.57).contains(&coverage.of_50), "{coverage:?}");
    assert!((0.83..0.96).contains(&coverage.of_90), "{coverage:?}");
    assert_eq!(scored(LEAST_SCORED - 1, 1.0).coverage(), None);
}

#[test]
fn tasks_that_still_wait_count_as_waiting_at_least_as_long() {
    let mut calibration = scored(244, 1.0);
    let before = calibration.correct(&hour(), NOW).corrected.quantile_s(0.9);
    for number in 0..200 {
        let at = NOW.plus_s(-8_000 - number as i64 * 1_200);
        calibration.issue(&task(1_000 + number), at, &calibration.correct(&hour(), at));
    }
    let after = calibration.correct(&hour(), NOW).corrected.quantile_s(0.9);
    assert!(after > 1.5 * before, "{before} became {after}");
}

#[test]
fn forecasts_of_long_waits_are_not_moved_by_what_short_ones_were_worth() {
    let days = Starts::of((0..61).map(|path| 100_000.0 + f64::from(path) * 1_000.0).collect()).unwrap();
    let corrected = scored(488, 3.0).correct(&days, NOW).corrected;
    assert!((corrected.quantile_s(0.5) / days.quantile_s(0.5) - 1.0).abs() < 0.02);
}
