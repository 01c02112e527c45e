//! Each rule of eta as a sentence, then properties over whole histories.

use super::*;
use proptest::prelude::*;

const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;
const START: UnixSeconds = UnixSeconds::new(1_000_000_000);
/// The longest offered guarantee of the default settings.
const PATIENCE_S: i64 = 4 * HOUR_S;

fn state(micro: u32) -> EtaState {
    EtaState { eta: Eta(micro), moved_at: START }
}

fn feedback(kept: u64, broken: u64) -> Feedback {
    let newest_outcome = (kept + broken > 0).then_some(START.plus_s(PATIENCE_S - 1));
    Feedback { kept, broken, newest_outcome, longest_quota_wait_s: 0, more_would_help: true }
}

fn ended(at: UnixSeconds, broken: bool) -> Ended {
    let hours = HorizonHours::ONE;
    Ended { number: at.get() + 1, at, hours, period: Period::reported(hours, at, None, None, broken) }
}

fn decided(micro: u32, feedback: Feedback) -> EtaDecision {
    decide(&state(micro), &feedback, &PoolSettings::default(), START.plus_s(PATIENCE_S))
}

fn moved_to(micro: u32, feedback: Feedback) -> Option<u32> {
    match decided(micro, feedback) {
        EtaDecision::Move { to, .. } => Some(to.micro()),
        EtaDecision::Hold(_) => None,
    }
}

#[test]
fn twice_the_allowed_evictions_halve_eta_and_more_do_no_more_than_that() {
    assert_eq!(moved_to(1_000_000, feedback(80, 20)), Some(500_000));
    assert_eq!(moved_to(1_000_000, feedback(0, 100)), Some(500_000), "an eviction storm");
    assert_eq!(moved_to(1_000_000, feedback(840, 160)), Some(625_000), "η · q/e = 0.1/0.16");
}

#[test]
fn evictions_within_one_and_a_half_times_the_target_leave_it() {
    assert_eq!(decided(1_000_000, feedback(85, 15)), EtaDecision::Hold(HoldReason::WithinTarget));
    assert_eq!(decided(1_000_000, feedback(100, 0)), EtaDecision::Hold(HoldReason::WithinTarget), "and nobody waits");
}

#[test]
fn few_evictions_and_long_waits_raise_it() {
    let waiting = Feedback { longest_quota_wait_s: 3_601, ..feedback(100, 0) };
    assert_eq!(moved_to(1_000_000, waiting), Some(1_500_000));
    assert_eq!(moved_to(1_000_000, Feedback { kept: 98, broken: 2, ..waiting }), Some(1_300_000), "1.5 − 0.02/0.1");
    let patient = Feedback { longest_quota_wait_s: 3_600, ..waiting };
    assert_eq!(decided(1_000_000, patient), EtaDecision::Hold(HoldReason::WithinTarget));
}

#[test]
fn it_does_not_rise_while_rising_has_no_effect() {
    let held = Feedback { longest_quota_wait_s: 9_999, more_would_help: false, ..feedback(100, 0) };
    assert_eq!(decided(1_000_000, held), EtaDecision::Hold(HoldReason::RisingWouldNotHelp));
    let silent = Feedback { kept: 0, newest_outcome: None, ..held };
    assert_eq!(decided(500_000, silent), EtaDecision::Hold(HoldReason::RisingWouldNotHelp));
}

#[test]
fn it_waits_for_enough_outcomes_and_for_the_longest_guarantee() {
    assert_eq!(decided(1_000_000, feedback(0, 99)), EtaDecision::Hold(HoldReason::FewOutcomes { have: 99, need: 100 }));
    let early = decide(&state(1_000_000), &feedback(0, 100), &PoolSettings::default(), START.plus_s(PATIENCE_S - 1));
    assert_eq!(early, EtaDecision::Hold(HoldReason::MovedLately { moved_at: START }));
}

#[test]
fn without_outcomes_and_with_long_waits_it_drifts_toward_one_from_both_sides() {
    let silent = Feedback { longest_quota_wait_s: 9_999, ..feedback(0, 0) };
    assert_eq!(moved_to(100_000, silent), Some(110_000));
    assert_eq!(moved_to(950_000, silent), Some(1_000_000));
    assert_eq!(moved_to(2_000_000, silent), Some(1_800_000));
    assert_eq!(moved_to(1_000_000, silent), None);
    let lately = Feedback { newest_outcome: Some(START.plus_s(PATIENCE_S - 10)), ..silent };
    assert!(matches!(decided(100_000, lately), EtaDecision::Hold(HoldReason::FewOutcomes { .. })));
}

#[test]
fn too_few_outcomes_to_judge_are_kept_through_a_drift() {
    let now = START.plus_s(3 * PATIENCE_S);
    let old = Feedback { longest_quota_wait_s: 9_999, ..feedback(0, 99) };
    let decision = |feedback| decide(&state(500_000), &feedback, &PoolSettings::default(), now);
    assert!(matches!(decision(old), EtaDecision::Move { spends: false, .. }), "{:?}", decision(old));
    let judged = decide(&state(100_000), &Feedback { broken: 100, ..old }, &PoolSettings::default(), now);
    assert!(matches!(judged, EtaDecision::Move { to: Eta(110_000), spends: true, .. }), "{judged:?}");
}

#[test]
fn no_outcomes_at_all_are_no_division_by_zero() {
    assert!(matches!(decided(1_000_000, feedback(0, 0)), EtaDecision::Hold(HoldReason::FewOutcomes { have: 0, .. })));
}

#[test]
fn a_move_says_why_in_a_sentence() {
    let EtaDecision::Move { reason, .. } = decided(1_000_000, feedback(80, 20)) else { panic!("it moves") };
    assert_eq!(
        reason.to_string(),
        "20 of 100 guarantees were broken, more than one and a half times the 0.1 that a rate of 0.9 allows"
    );
}

#[test]
fn a_burst_is_not_hidden_behind_a_quiet_month() {
    let now = START.plus_s(PATIENCE_S);
    let settings = PoolSettings::default();
    let burst = (0..120).map(|k| ended(now.plus_s(-k), true));
    let month = (1..5_000).map(|k| ended(now.plus_s(-settings.outcome_window_s - k), false));
    let all: Vec<_> = burst.chain(month.clone()).collect();
    assert!(recent(&all, &settings, now).iter().all(|ended| ended.period.broken));
    assert_eq!(recent(&all, &settings, now).len(), 120);
    let quiet: Vec<_> = month.collect();
    assert_eq!(recent(&quiet, &settings, now).len(), 100, "the newest, where none ended lately");
    assert!(recent(&[], &settings, now).is_empty());
}

/// One tick of a history: how much time passes, what ends in it, how long tasks wait, whether more eta would help.
#[derive(Debug, Clone)]
struct Tick {
    pass_s: i64,
    kept: u64,
    broken: u64,
    wait_s: u64,
    helps: bool,
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let tick = (60_i64..20_000, 0_u64..80, 0_u64..80, 0_u64..8_000, any::<bool>());
    let tick = tick.prop_map(|(pass_s, kept, broken, wait_s, helps)| Tick { pass_s, kept, broken, wait_s, helps });
    prop::collection::vec(tick, 1..200)
}

/// Runs a history as the service does: outcomes pile up until a move spends them.
struct Watch {
    state: EtaState,
    now: UnixSeconds,
    unspent: (u64, u64),
    newest_outcome: Option<UnixSeconds>,
    moves: Vec<(EtaState, EtaDecision, u64)>,
}

impl Watch {
    fn new(eta_micro: u32) -> Self {
        Self { state: state(eta_micro), now: START, unspent: (0, 0), newest_outcome: None, moves: Vec::new() }
    }

    fn tick(&mut self, tick: &Tick, settings: &PoolSettings) {
        self.now = self.now.plus_s(tick.pass_s);
        self.unspent = (self.unspent.0 + tick.kept, self.unspent.1 + tick.broken);
        if tick.kept + tick.broken > 0 {
            self.newest_outcome = Some(self.now);
        }
        let feedback = Feedback {
            kept: self.unspent.0,
            broken: self.unspent.1,
            newest_outcome: self.newest_outcome,
            longest_quota_wait_s: tick.wait_s,
            more_would_help: tick.helps,
        };
        let decision = decide(&self.state, &feedback, settings, self.now);
        if let EtaDecision::Move { to, spends, .. } = decision {
            self.moves.push((self.state, decision, if spends { feedback.outcomes() } else { 0 }));
            self.state = EtaState { eta: to, moved_at: self.now };
            self.unspent = if spends { (0, 0) } else { self.unspent };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(19), cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn it_stays_bounded_and_moves_at_most_once_in_the_longest_guarantee(ticks in ticks(), start in 100_000_u32..=3_000_000) {
        let settings = PoolSettings::default();
        let mut watch = Watch::new(start);
        for tick in &ticks {
            let moved_before = watch.state.moved_at;
            watch.tick(tick, &settings);
            prop_assert!(watch.state.eta >= settings.eta_least && watch.state.eta <= settings.eta_most);
            let moved = watch.state.moved_at;
            prop_assert!(moved == moved_before || moved.since_s(moved_before) >= PATIENCE_S);
        }
    }

    #[test]
    fn each_outcome_moves_it_once(ticks in ticks()) {
        let settings = PoolSettings::default();
        let mut watch = Watch::new(1_000_000);
        for tick in &ticks {
            watch.tick(tick, &settings);
        }
        let seen: u64 = ticks.iter().map(|tick| tick.kept + tick.broken).sum();
        let spent: u64 = watch.moves.iter().map(|(_, _, outcomes)| outcomes).sum();
        prop_assert_eq!(spent + watch.unspent.0 + watch.unspent.1, seen);
        for (_, decision, outcomes) in &watch.moves {
            let by_silence = matches!(decision, EtaDecision::Move { reason: MoveReason::NoOutcomesLongWaits { .. }, .. });
            prop_assert!(by_silence || *outcomes >= settings.min_outcomes);
            prop_assert!(*outcomes == 0 || *outcomes >= settings.min_outcomes, "spent without being judged");
        }
    }

    #[test]
    fn it_never_winds_up_while_rising_has_no_effect(ticks in ticks(), start in 100_000_u32..=3_000_000) {
        let settings = PoolSettings::default();
        let mut watch = Watch::new(start);
        for tick in &ticks {
            let before = watch.state.eta;
            watch.tick(&Tick { helps: false, ..tick.clone() }, &settings);
            prop_assert!(watch.state.eta <= before);
        }
    }

    #[test]
    fn it_recovers_from_the_bottom_when_nothing_runs_and_tasks_wait(start in 100_000_u32..1_000_000) {
        let settings = PoolSettings::default();
        let mut watch = Watch::new(start);
        for _ in 0..30 {
            watch.tick(&Tick { pass_s: PATIENCE_S, kept: 0, broken: 0, wait_s: 9_999, helps: true }, &settings);
        }
        prop_assert_eq!(watch.state.eta, Eta::ONE);
    }

    #[test]
    fn it_recovers_from_the_bottom_with_any_outcomes_before_the_silence(kept in 0_u64..200, broken in 0_u64..200) {
        let settings = PoolSettings::default();
        let mut watch = Watch::new(settings.eta_least.micro());
        watch.tick(&Tick { pass_s: 60, kept, broken, wait_s: 9_999, helps: true }, &settings);
        for _ in 0..40 {
            watch.tick(&Tick { pass_s: PATIENCE_S, kept: 0, broken: 0, wait_s: 9_999, helps: true }, &settings);
        }
        prop_assert!(watch.state.eta >= Eta::ONE, "it stays at {}", watch.state.eta);
    }

    #[test]
    fn new_bounds_hold_at_once_and_no_move_breaks_a_rule(
        ticks in ticks(), start in 1_000_u32..=5_000_000, bounds in prop::array::uniform2(1_000_u32..=5_000_000),
    ) {
        let (eta_least, eta_most) = (Eta(bounds[0].min(bounds[1])), Eta(bounds[0].max(bounds[1])));
        let settings = PoolSettings { eta_least, eta_most, eta_start: eta_least, ..PoolSettings::default() };
        let mut watch = Watch::new(start);
        for tick in &ticks {
            watch.state = watch.state.within(&settings);
            // The invariants are asserted inside.
            watch.tick(tick, &settings);
            prop_assert!((eta_least..=eta_most).contains(&watch.state.eta));
        }
    }

    #[test]
    fn under_a_steady_rate_of_evictions_it_settles_where_the_promise_holds(
        // The share broken grows with eta: eta · slope, so that the promise of 0.1 holds at 0.1 / slope.
        slope_percent in 5_u64..50,
    ) {
        let settings = PoolSettings::default();
        let mut watch = Watch::new(1_000_000);
        for _ in 0..200 {
            let broken = (u64::from(watch.state.eta.micro()) * slope_percent / 100 / 1_000).min(1_000);
            watch.tick(&Tick { pass_s: PATIENCE_S, kept: 1_000 - broken, broken, wait_s: 9_999, helps: true }, &settings);
        }
        let rate = watch.state.eta.as_f64() * slope_percent as f64 / 100.0;
        let at_bound = [settings.eta_least, settings.eta_most].contains(&watch.state.eta);
        prop_assert!(at_bound || (0.05..=0.15).contains(&rate), "rate {rate} at eta {}", watch.state.eta);
    }
}
