//! Days off beside the weekends.

use super::WEEKS;
use super::made::Made;
use super::played::{Source, play, trained_on};
use forecaster::ModelKind;
use forecaster::blend::Settings;

/// Counted from a Monday: Wednesdays to Fridays.
const LEARNED_FROM: [usize; 5] = [2, 9, 17, 24, 25];
const HELD_OUT: usize = 37;
const DAY: usize = vocab::HOURS_PER_DAY as usize;

/// Demand halves on days off; the network alone, once, is enough to compare two calendars.
#[test]
fn a_calendar_that_names_the_holiday_foresees_the_turn_into_it() {
    let weekends: Vec<usize> = (0..7 * WEEKS).filter(|day| day % 7 >= 5).collect();
    let mut settings = Settings::DEFAULT;
    settings.lesson.members = 1;
    let [plain, named] = [false, true].map(|is_named| {
        let made = Made::new(6, WEEKS, 7).days_off(&weekends, 0.5, false);
        let made = made.days_off(&[&LEARNED_FROM[..], &[HELD_OUT]].concat(), 0.5, is_named);
        let played = play(&trained_on(&made.panel(), 35 * DAY, ModelKind::Network, settings), &made);
        played.line(&format!("holiday, named: {is_named}"), None, HELD_OUT * DAY - 3..HELD_OUT * DAY + DAY);
        played.line(&format!("turn into it, named: {is_named}"), None, HELD_OUT * DAY - 3..HELD_OUT * DAY + 1);
        played
    });
    let turn = HELD_OUT * DAY - 3..HELD_OUT * DAY + 1;
    let [without, with] = [&plain, &named].map(|played| played.scores(Source::Issued, None, turn.clone()));
    assert!(with.mae_median_gpus < 0.6 * without.mae_median_gpus, "{with:?} against {without:?}");
    let whole = HELD_OUT * DAY - 3..HELD_OUT * DAY + DAY;
    let [ours, last] = [Source::Issued, Source::LastValue].map(|source| named.scores(source, None, whole.clone()));
    assert!(ours.mae_median_gpus < 0.85 * last.mae_median_gpus, "{ours:?} against {last:?}");
    assert!(ours.pinball_gpus[0] < 0.75 * last.pinball_gpus[0], "{ours:?} against {last:?}");
}
