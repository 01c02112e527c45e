//! Organizations that leave, and one that comes back.

use super::played::play;
use super::{AT, END, LARGE, learned, nothing_happens, usual};
use forecaster::LEFT_AFTER_HOURS;
use vocab::ForecastOrigin;

/// Two days after the last demand.
const GONE: usize = AT + LEFT_AFTER_HOURS;

#[test]
fn nothing_stays_reserved_for_an_organization_two_days_after_it_left() {
    for (how, after) in [("its demand is zero", 0.0), ("its rows stop", f64::NAN)] {
        let played = play(learned(), &usual().change(LARGE, AT..END + 4, |_| after));
        assert_eq!(played.of(LARGE, GONE - 1).origin(), ForecastOrigin::Model, "{how}");
        assert!((GONE..END).all(|hour| played.reserved_gpus(LARGE, hour) == 0.0), "{how}");
        assert_eq!(played.of(LARGE, GONE).origin(), ForecastOrigin::Left, "{how}");
        let [pool, usual] = [&played, nothing_happens()].map(|played| played.pool(GONE..END));
        println!("left, {how}: {pool:?}; usual: {usual:?}");
        assert_eq!(pool.issues, END - GONE, "{how}: it hides no peak of the others");
        assert!(pool.over_reserved_gpus < usual.over_reserved_gpus && pool.coverage > 0.84, "{how}: {pool:?}");
    }
}

#[test]
fn while_it_is_not_known_whether_rows_are_missing_or_an_organization_has_left_it_stays_reserved() {
    let played = play(learned(), &usual().change(LARGE, AT..END + 4, |_| f64::NAN));
    let last = usual().demand[LARGE][AT - 1];
    assert!((AT..GONE).all(|hour| played.reserved_gpus(LARGE, hour) >= last));
}

#[test]
fn one_that_comes_back_is_forecast_by_the_model_at_the_next_hour() {
    let back = GONE + 20;
    for away in [0.0, f64::NAN] {
        let made = usual().change(LARGE, AT..back, |_| away);
        let played = play(learned(), &made);
        assert_eq!(played.of(LARGE, back).origin(), ForecastOrigin::Left);
        assert_eq!(played.of(LARGE, back + 1).origin(), ForecastOrigin::Model);
        let reserved = played.reserved_gpus(LARGE, back + 1);
        assert!(reserved > 0.6 * made.demand[LARGE][back], "{reserved}");
    }
}
