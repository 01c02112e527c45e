//! Hours that were not recorded.

use super::played::{Source, play};
use super::{AT, END, LARGE, LEARNED, Made, learned, nothing_happens, usual};
use std::ops::Range;

const ALL_MISSING: Range<usize> = AT + 72..AT + 78;
const DAY_WITHOUT_ROWS: Range<usize> = AT + 120..AT + 144;
const ONE_WITHOUT_ROWS: Range<usize> = AT + 200..AT + 210;

fn with_gaps(in_all: f64) -> Made {
    let made = usual().change_all(&ALL_MISSING, |_| in_all).change_all(&DAY_WITHOUT_ROWS, |_| f64::NAN);
    made.change(LARGE, ONE_WITHOUT_ROWS, |_| f64::NAN)
}

#[test]
fn gaps_are_not_scored_and_the_forecasts_in_them_and_after_them_stay_sane() {
    let (played, usual) = (play(learned(), &with_gaps(f64::NAN)), nothing_happens());
    // The last three issue hours of a gap reach one, two and three hours past it.
    assert_eq!([ALL_MISSING, ONE_WITHOUT_ROWS].map(|gap| played.scored_hours(LARGE, gap)), [6, 6]);
    let most = (LEARNED..END).map(|hour| usual.reserved_gpus(LARGE, hour)).fold(0.0, f64::max);
    for hour in LEARNED..END {
        let reserved = played.reserved_gpus(LARGE, hour);
        assert!((0.0..1.2 * most).contains(&reserved), "hour {hour}: {reserved}, usually {most} at most");
    }
    let after = DAY_WITHOUT_ROWS.end..DAY_WITHOUT_ROWS.end + 24;
    played.line("the day after a day without rows", None, after.clone());
    usual.line("the same, recorded", None, after.clone());
    let [ours, last] = [Source::Issued, Source::LastValue].map(|source| played.scores(source, None, after.clone()));
    assert!(ours.pinball_gpus[0] < last.pinball_gpus[0] && ours.mae_median_gpus < 0.8 * last.mae_median_gpus);
    let [with, without] = [&played, usual].map(|played| played.scores(Source::Issued, None, LEARNED..END));
    assert!(with.pinball_gpus[0] < 1.05 * without.pinball_gpus[0], "{with:?} against {without:?}");
    assert!(played.pool(LEARNED..END).coverage > 0.85);
}

#[test]
fn hours_in_which_all_are_zero_are_scored_and_taught_and_hours_without_rows_are_not() {
    let [zero, missing] = [0.0, f64::NAN].map(|in_all| play(learned(), &with_gaps(in_all)));
    assert_eq!([&zero, &missing].map(|played| played.scored_hours(LARGE, ALL_MISSING)), [24, 6]);
    assert_ne!(zero.bounds_gpus, missing.bounds_gpus);
}
