//! Organizations that are new, and clusters that are.

use super::made::{Made, WEEK, hour, id};
use super::played::{Source, Unknowing, horizon, play, play_by, trained_on};
use super::{AT, END, LATE, LEARNED, WEEKS, learned, nothing_happens, usual};
use datasets::TimeSplit;
use forecaster::ModelKind;
use forecaster::blend::{Blend, Settings};
use vocab::ForecastOrigin;

const NEW: &str = "new";

fn with_a_new_one(seed: u64) -> Made {
    let demand = Made::new(9, WEEKS, seed).demand["org-008"].clone();
    usual().add(NEW, demand).change(NEW, 0..AT, |_| f64::NAN)
}

#[test]
fn a_new_organization_is_bounded_by_its_peak_for_three_days_and_then_forecast_as_the_others_are() {
    let (mut ours, mut by_peak) = (0.0, 0.0);
    for seed in [11, 15] {
        let made = with_a_new_one(seed);
        let played = play(learned(), &made);
        let known_from = AT + Blend::HISTORY_HOURS_LEAST;
        for (number, origin) in [(known_from - 1, ForecastOrigin::ColdStart), (known_from, ForecastOrigin::Model)] {
            assert_eq!(played.of(NEW, number).origin(), origin, "{} h after it came", number - AT);
        }
        let seen = &made.demand[NEW][AT..known_from];
        let peak = seen.iter().copied().fold(0.0, f64::max);
        assert!(played.reserved_gpus(NEW, known_from - 1) >= peak - 1e-9);
        let pool = played.pool(AT..known_from);
        assert!(pool.coverage > 0.88, "the pool's bound while it is new: {pool:?}");
        let later = played.scores(Source::Issued, Some(NEW), known_from..END);
        assert!((0.82..0.98).contains(&later.coverage[0]), "{later:?}");
        ours += later.pinball_gpus[0];
        let rule = play_by(&Unknowing(learned(), id(NEW)), learned(), &made);
        by_peak += rule.scores(Source::Issued, Some(NEW), known_from..END).pinball_gpus[0];
        played.line(&format!("new ({seed}), first three days"), Some(NEW), AT..known_from);
        played.line(&format!("new ({seed}), later"), Some(NEW), known_from..END);
        rule.line(&format!("new ({seed}), later, still by its peak"), Some(NEW), known_from..END);
    }
    assert!(ours < 0.6 * by_peak, "pinball {ours} against {by_peak} by the peak");
}

#[test]
fn one_that_came_five_days_before_the_end_of_the_training_is_forecast_from_the_first_hour() {
    let played = nothing_happens();
    assert_eq!(played.of(LATE, LEARNED).origin(), ForecastOrigin::Model);
    played.line("came late", Some(LATE), LEARNED..END);
    let [ours, last] =
        [Source::Issued, Source::LastValue].map(|source| played.scores(source, Some(LATE), LEARNED..END));
    assert!(ours.mae_median_gpus < 0.7 * last.mae_median_gpus, "{ours:?} against {last:?}");
    assert!((0.85..0.96).contains(&ours.coverage[0]), "{ours:?}");
}

#[test]
fn the_shortest_history_that_can_be_trained_gives_a_model_as_good_as_the_last_value() {
    let made = Made::new(6, 2, 7);
    let least = Blend::HISTORY_HOURS_LEAST;
    let until = (least..WEEK).find(|until| TimeSplit::new(hour(0), hour(*until), least, horizon()).is_ok()).unwrap();
    assert_eq!(until, 126, "three days to look back, one to learn from, one to choose by, and their targets");
    let trained = trained_on(&made.panel(), until, ModelKind::DEFAULT, Settings::DEFAULT);
    let played = play(&trained, &made);
    let rest = until..made.hours() - 4;
    played.line("after 126 h", None, rest.clone());
    let [ours, last] = [Source::Issued, Source::LastValue].map(|source| played.scores(source, None, rest.clone()));
    assert!(ours.mae_median_gpus < 1.03 * last.mae_median_gpus, "{ours:?} against {last:?}");
    assert!((0.87..0.96).contains(&ours.coverage[0]), "{ours:?}");
    let pool = played.pool(rest);
    // Nine days: the promise holds where the interval over days reaches it.
    assert!(pool.coverage > 0.84 && pool.coverage_interval[1] > 0.9, "{pool:?}");
}
