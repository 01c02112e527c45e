//! Levels that change after the training.

use super::played::{Source, horizon, play};
use super::{AT, END, LARGE, LEARNED, learned, nothing_happens, usual};
use forecaster::drift::{Standing, judge};
use std::ops::Range;

const DAY: usize = vocab::HOURS_PER_DAY as usize;

fn halves_or_doubles(factor: f64) -> super::Played {
    play(learned(), &usual().change(LARGE, AT..END + 4, |gpus| (factor * gpus).round()))
}

#[test]
fn an_organization_that_doubles_has_quantiles_that_hold_again_within_three_days() {
    let played = halves_or_doubles(2.0);
    let covered = |source, range: Range<usize>| played.scores(source, Some(LARGE), range).coverage[0];
    let parts = [AT..AT + DAY, AT + DAY..AT + 3 * DAY, AT + 3 * DAY..END];
    for (part, [raw_most, least]) in parts.iter().zip([[0.1, 0.5], [0.1, 0.6], [0.7, 0.9]]) {
        played.line("doubled", Some(LARGE), part.clone());
        let (raw, issued) = (covered(Source::Raw, part.clone()), covered(Source::Issued, part.clone()));
        assert!(raw < raw_most && issued > least, "{part:?}: {raw} uncorrected, {issued} issued");
    }
    let [ours, raw] = [Source::Issued, Source::Raw].map(|source| played.scores(source, Some(LARGE), AT..AT + 3 * DAY));
    assert!(ours.pinball_gpus[0] < 0.75 * raw.pinball_gpus[0], "{ours:?} against {raw:?}");
    assert!(ours.mae_median_gpus < 0.8 * raw.mae_median_gpus, "{ours:?} against {raw:?}");
    let pool = played.pool(AT..AT + 3 * DAY);
    assert!(pool.coverage > 0.85, "{pool:?}");
}

/// Uncorrected forecasts drift, and corrected ones no longer.
#[test]
fn a_level_that_changed_is_drift_until_it_is_corrected() {
    let played = halves_or_doubles(2.0);
    let standing = |source, range: Range<usize>| {
        let share = played.scores(source, Some(LARGE), range.clone()).coverage[0];
        judge(Some((share, share)), 0.9, range.len(), horizon(), Standing::Inside).standing
    };
    let (first, later) = (AT..AT + 36, AT + 3 * DAY..AT + 10 * DAY);
    assert_eq!(standing(Source::Raw, LEARNED..AT), Standing::Inside);
    assert_eq!([standing(Source::Raw, first), standing(Source::Raw, later.clone())], [Standing::Below; 2]);
    assert_eq!(standing(Source::Issued, later), Standing::Inside);
}

#[test]
fn an_organization_that_halves_gives_back_at_the_next_hour_and_the_pool_reserves_no_more_than_before() {
    let played = halves_or_doubles(0.5);
    let [before, after] = [AT - 1, AT + 1].map(|hour| played.reserved_gpus(LARGE, hour));
    assert!(after < 0.7 * before, "{before} GPUs before, {after} after");
    played.line("halved, first day", Some(LARGE), AT..AT + DAY);
    played.line("halved, later", Some(LARGE), AT + DAY..END);
    let [ours, raw] = [Source::Issued, Source::Raw].map(|source| played.scores(source, Some(LARGE), AT..END));
    assert!(ours.mae_median_gpus < raw.mae_median_gpus && ours.pinball_gpus[0] < raw.pinball_gpus[0]);
    let [pool, usual] = [&played, nothing_happens()].map(|played| played.pool(AT + DAY..END));
    assert!(pool.over_reserved_gpus < 1.1 * usual.over_reserved_gpus, "{pool:?} against {usual:?}");
    assert!(pool.coverage > 0.85, "{pool:?}");
}
