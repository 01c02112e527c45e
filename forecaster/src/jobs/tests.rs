mod ages;
mod listed;

use super::*;
use proptest::prelude::*;
use vocab::{GuaranteeRate, Organization, TaskId};

const RENEWAL_S: i64 = 300;

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(seconds)
}

/// `(submitted, lasts, GPUs, organization)`, in seconds.
type Listed = (i64, i64, u64, &'static str);

fn job(number: usize, (submitted, _, gpus, organization): Listed, started: Option<i64>) -> HpJob {
    HpJob {
        task: TaskId::parse(&format!("job-{number}")).unwrap(),
        organization: Organization::parse(organization).unwrap(),
        gpus_milli: gpus * 1_000,
        submitted: at(submitted),
        started: started.map(at),
    }
}

/// The jobs of a list that are there at a time; none waits.
fn present(list: &[Listed], now: i64) -> Vec<HpJob> {
    let is_there = |(_, one): &(usize, &Listed)| one.0 <= now && now < one.0 + one.1;
    list.iter().enumerate().filter(is_there).map(|(number, one)| job(number, *one, Some(one.0))).collect()
}

fn milli(jobs: &[HpJob]) -> u64 {
    jobs.iter().map(|job| job.gpus_milli).sum()
}

/// The history at `until` of a list that is read every five minutes.
fn watched(list: &[Listed], until: i64) -> JobHistory {
    let mut history = JobHistory::default();
    (0..=until / RENEWAL_S)
        .for_each(|number| history.observe(at(number * RENEWAL_S), &present(list, number * RENEWAL_S)));
    history
}

/// Observes the jobs of a moment, and mixes their bounds with others, without a list.
fn mixed(expert: &mut JobExpert, now: i64, jobs: &[HpJob], others_gpus: &[f64], seed: u64) -> Vec<SharedBound> {
    expert.observe(at(now), jobs);
    expert.mix((at(now), milli(jobs)), (None, true), others_gpus, seed)
}

/// Without a list.
fn alone(history: &JobHistory) -> Known<'_> {
    Known { history, past: None, is_early: true }
}

/// One job an hour of 8 GPUs and 30 minutes, at a quarter past.
fn hourly(days: i64) -> Vec<Listed> {
    (0..days * 24).map(|hour| (hour * 3_600 + 900, 1_800, 8, "vision")).collect()
}

fn peaks_at(list: &[Listed], now: i64, offered: &[HorizonHours]) -> Vec<Peaks> {
    let demand = milli(&present(list, now));
    peaks(alone(&watched(list, now)), at(now), demand, offered, 7).unwrap()
}

#[test]
fn a_job_that_comes_each_hour_is_the_peak_of_the_next_hours() {
    let peaks = peaks_at(&hourly(3), 2 * 86_400, &[hours(1), hours(4)]);
    assert_eq!(peaks[1].quantile_gpus(GuaranteeRate::GFS), 8.0, "{peaks:?}");
    // A window that begins as a job comes has the next one as its first hour ends.
    assert!(peaks[0].mean_gpus() > 5.0 && peaks[1].mean_gpus() > 7.0, "{peaks:?}");
}

#[test]
fn bursts_stay_whole() {
    // Forty jobs of 1 GPU at once, twice a day, for ten minutes.
    let burst = |number: i64| (0..40).map(move |_| (number * 43_200 + 7_200, 600, 1, "speech"));
    let list: Vec<Listed> = (0..12).flat_map(burst).collect();
    let peaks = peaks_at(&list, 5 * 86_400 + 3_600, &[hours(4)]);
    assert!(peaks[0].sorted_gpus.iter().all(|peak| [0.0, 40.0].contains(peak)), "{peaks:?}");
    assert!(peaks[0].quantile_gpus(GuaranteeRate::GFS) >= 40.0);
}

#[test]
fn jobs_that_always_end_after_an_hour_make_room_for_those_that_come() {
    // Two jobs of 100 GPUs, one after the other without a break: never both.
    let list: Vec<Listed> = (0..200).map(|number| (number * 3_600, 3_600, 100, "vision")).collect();
    let young = peaks_at(&list, 5 * 86_400 + 300, &[hours(1)]);
    assert!(young[0].mean_gpus() <= 200.0 && young[0].mean_gpus() >= 100.0, "{young:?}");
    // A waiting job is demand already and stays so until it has run.
    let history = watched(&list, 5 * 86_400);
    let demand = milli(&present(&list, 5 * 86_400));
    let drawn = bounds(alone(&history), at(5 * 86_400), demand + 64_000, &[hours(1)], (GuaranteeRate::GFS, 1)).unwrap();
    assert!(drawn[0] >= 164.0);
}

#[test]
fn bounds_are_drawn_from_windows_of_an_hour_until_there_are_those_of_four_hours() {
    let drawn = |now: i64| {
        let history = watched(&hourly(1), now);
        let demand = milli(&present(&hourly(1), now));
        let drawn = bounds(alone(&history), at(now), demand, &[hours(1), hours(4), hours(24)], (GuaranteeRate::GFS, 1));
        drawn.map(|bounds| (bounds[0], bounds.len()))
    };
    assert_eq!(drawn(6_000), None);
    assert_eq!(drawn(6_300), Some((8.0, 2)), "an hour says nothing of 24");
    assert_eq!(drawn(27_600), Some((8.0, 2)), "the one that runs will have ended as the next one comes");
    assert_eq!(drawn(27_900), Some((8.0, 3)), "sixteen windows of four hours");
    let history = watched(&hourly(1), 27_600);
    let beside_a_forecast = Known { is_early: false, ..alone(&history) };
    assert_eq!(bounds(beside_a_forecast, at(27_600), 0, &[hours(1)], (GuaranteeRate::GFS, 1)), None);
}

#[test]
fn after_an_hour_without_observations_arrivals_are_watched_again_and_ends_are_not_guessed() {
    let list = hourly(3);
    let mut history = watched(&list, 86_400);
    let ended = history.seen().ended;
    history.observe(at(86_400 + 7_200), &present(&list, 86_400 + 7_200));
    assert_eq!((history.watched_s(), history.seen().ended), (0, ended));
    history.observe(at(86_400), &[]);
    assert_eq!(history.watched_s(), 0, "a clock that goes back teaches nothing");
}

#[test]
fn organizations_beyond_the_most_share_a_place_and_ended_jobs_are_bounded() {
    let mut history = JobHistory::default();
    for number in 0..40_i64 {
        let jobs = |of: usize| HpJob {
            task: TaskId::parse(&format!("{number}-{of}")).unwrap(),
            organization: Organization::parse(&format!("o{of}")).unwrap(),
            ..job(of, (number * RENEWAL_S, 0, 1, "any"), Some(number * RENEWAL_S))
        };
        let jobs: Vec<HpJob> = (0..500).map(jobs).collect();
        history.observe(at(number * RENEWAL_S), &jobs);
    }
    assert_eq!((history.seen().ended, history.organizations.len()), (16_384, 255));
    assert!(history.watched_s() < 39 * RENEWAL_S, "what was forgotten is no longer whole");
}

#[test]
fn the_bounds_of_jobs_begin_with_half_and_get_the_weight_that_their_losses_earn() {
    let list = hourly(5);
    let offered = [hours(1)];
    let played = |other_gpus: f64| {
        let mut expert = JobExpert::new(GuaranteeRate::GFS, &offered);
        let (mut first, mut last) = (None, Vec::new());
        for number in 0..4 * 288 {
            let (now, jobs) = (number * RENEWAL_S, present(&list, number * RENEWAL_S));
            last = mixed(&mut expert, now, &jobs, &[other_gpus], 3);
            first = first.or(Some(last[0].share).filter(|share| *share > 0.0));
        }
        (expert, first.unwrap(), last[0])
    };
    let (expert, first, last) = played(80.0);
    assert!((first - 0.5).abs() < 1e-9, "before anything was judged: {first}");
    assert!(last.share > 0.99 && last.bound_gpus < 17.0, "{last:?}");
    let (_, _, worse) = played(8.0);
    assert!(worse.share < 0.4, "the other bound is right at all times: {worse:?}");
    let alone = mixed(&mut expert.clone(), 4 * 86_400, &[], &[], 3);
    assert_eq!(alone[0].share, 1.0);
    let mut other = expert.made_for(GuaranteeRate::new(0.5).unwrap(), &offered);
    let again = mixed(&mut other, 4 * 86_400, &[], &[80.0], 3);
    assert!((again[0].share - 0.5).abs() < 1e-9, "for another rate nothing was judged");
}

#[test]
fn learned_jobs_survive_bytes_and_damage_is_noticed() {
    let list = hourly(3);
    let mut expert = JobExpert::new(GuaranteeRate::GFS, &[hours(1), hours(4)]);
    for number in 0..600 {
        let jobs = present(&list, number * RENEWAL_S);
        let _ = mixed(&mut expert, number * RENEWAL_S, &jobs, &[9.0, 9.0], 3);
    }
    let bytes = expert.to_bytes();
    assert!(bytes.len() < 6_000, "{}", bytes.len());
    let mut read = JobExpert::from_bytes(&bytes).unwrap().unwrap();
    assert_eq!(read, expert);
    let [of_read, of_expert] = [&mut read, &mut expert].map(|one| mixed(one, 600 * RENEWAL_S, &[], &[9.0, 9.0], 5));
    assert_eq!(of_read, of_expert);
    for cut in 0..bytes.len() {
        assert!(JobExpert::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    assert!(JobExpert::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    let of_before = [&bytes[..4], &[1], &bytes[5..]].concat();
    assert_eq!(JobExpert::from_bytes(&of_before), Ok(None), "nothing of an older program");
}

#[test]
fn what_is_learned_is_bounded_for_any_number_of_jobs_and_hours() {
    let all: Vec<HorizonHours> = [1, 2, 4, 8, 12, 24, 48, 72].map(hours).into();
    let mut expert = JobExpert::new(GuaranteeRate::GFS, &all);
    for step in 0..24_i64 {
        let now = step * RENEWAL_S;
        let one = |number: i64| HpJob {
            submitted: at(now - 50_000 - number * 40),
            started: Some(at(now - 40_000 - number * 40)),
            ..job((step * 12_000 + number) as usize, (0, 0, 127, "vision"), None)
        };
        let jobs: Vec<HpJob> = (0..12_000).map(one).collect();
        expert.history.observe(at(now), &jobs);
    }
    let _ = expert.share.mix(at(24 * RENEWAL_S), 9_000, &[1.0; 8], Some(&[2.0; 8]));
    let seen = expert.history().seen();
    assert_eq!((seen.running, seen.waiting, seen.ended), (10_000, 0, 16_384));
    let bytes = expert.to_bytes();
    assert!(bytes.len() < 400_000, "{}", bytes.len());
    assert_eq!(JobExpert::from_bytes(&bytes).unwrap().unwrap(), expert);
}

#[test]
fn a_bound_with_jobs_that_was_raised_to_that_of_fewer_hours_says_from_what() {
    let mut share = share::Share::new(GuaranteeRate::GFS, &[hours(1), hours(2), hours(4)]);
    let each = share.mix(at(0), 3_000, &[9.0, 9.0, 11.0], Some(&[9.0, 5.0]));
    assert_eq!(each.iter().map(|one| one.bound_gpus).collect::<Vec<_>>(), [9.0, 9.0, 11.0]);
    let raised = each[1].raised_from_gpus.unwrap();
    assert!((raised - (each[1].share * 5.0 + (1.0 - each[1].share) * 9.0)).abs() < 1e-9, "{raised}");
    assert_eq!((each[0].raised_from_gpus, each[2].raised_from_gpus), (None, None));
}

/// A list as `train --jobs` reads it.
fn listed(list: &[Listed]) -> Vec<ListedJob> {
    let one = |(submitted, lasts, gpus, organization): &Listed| ListedJob {
        organization: Organization::parse(organization).unwrap(),
        gpus_milli: gpus * 1_000,
        submitted: at(*submitted),
        ran_s: *lasts as u64,
    };
    list.iter().map(one).collect()
}

#[test]
fn with_a_list_bounds_are_drawn_from_the_first_look_on_as_after_days_of_watching() {
    let list = hourly(9);
    let past = PastJobs::of(&listed(&list), at(7 * 86_400)).unwrap();
    assert_eq!((past.len(), past.span()), (7 * 24, (at(900), at(7 * 86_400))));
    // A service begins two days after the end of the list.
    let now = 9 * 86_400 + 600;
    let mut history = JobHistory::default();
    history.observe(at(now), &[]);
    let offered = [hours(1), hours(4)];
    assert_eq!(peaks(alone(&history), at(now), 0, &offered, 7), None);
    let drawn =
        peaks(Known { history: &history, past: Some(&past), is_early: false }, at(now), 0, &offered, 7).unwrap();
    assert!(drawn[1].quantile_gpus(GuaranteeRate::GFS) == 8.0 && drawn[0].mean_gpus() > 4.0, "{drawn:?}");
    // Those that run end as they did: after half an hour at most.
    let young = job(0, (now - 60, 0, 8, "vision"), Some(now - 60));
    history.observe(at(now), &[young]);
    let drawn =
        peaks(Known { history: &history, past: Some(&past), is_early: false }, at(now), 8_000, &offered, 7).unwrap();
    assert!(drawn[1].mean_gpus() < 14.0, "{drawn:?}");
}

#[test]
fn a_list_counts_until_the_pool_was_watched_and_what_is_later_in_it_is_not_looked_at() {
    let list = hourly(9);
    let history = watched(&list, 3 * 86_400);
    let (now, offered) = (at(3 * 86_400), [hours(1), hours(24)]);
    let later = PastJobs::of(&listed(&hourly(9)), at(9 * 86_400)).unwrap();
    let mut known = Known { history: &history, past: None, is_early: false };
    let drawn = peaks(known, now, 0, &offered, 7);
    known.past = Some(&later);
    assert_eq!(peaks(known, now, 0, &offered, 7), drawn, "the pool was watched from the first job on");
    let cut = PastJobs::of(&listed(&[(0, 50_000, 8, "vision"), (100, 20, 1, "vision")]), at(1_000)).unwrap();
    assert_eq!(
        cut.jobs.iter().map(|past| (past.job.ran_s, past.is_ended)).collect::<Vec<_>>(),
        [(1_000, false), (20, true)]
    );
    assert_eq!(PastJobs::of(&listed(&list), at(0)), None);
}

#[test]
fn a_list_that_ends_before_the_usage_does_says_nothing_of_the_time_after_it() {
    let end = |until| {
        let past = PastJobs::of(&listed(&hourly(7)), at(until)).unwrap();
        assert_eq!(PastJobs::from_bytes(&past.to_bytes()).as_ref(), Ok(&past));
        past.span().1
    };
    let last = hourly(7).last().unwrap().0;
    assert_eq!(end(9 * 86_400), at(last + 1), "two days without a job, and never one in an hour before");
    assert_eq!(end(last + 4 * 3_600), at(last + 4 * 3_600), "a pause as short as a window may be one");
    let mut weekly = hourly(1);
    weekly
        .extend(hourly(1).into_iter().map(|(submitted, lasts, gpus, who)| (submitted + 7 * 86_400, lasts, gpus, who)));
    let until = 10 * 86_400;
    assert_eq!(PastJobs::of(&listed(&weekly), at(until)).unwrap().span().1, at(until), "it was as silent before");
}

#[test]
fn a_list_survives_bytes_and_damage_is_noticed() {
    let mixed: Vec<Listed> = hourly(4)
        .into_iter()
        .zip(0..)
        .map(|(one, n)| if n % 3 == 0 { (one.0, 7_200, 3, "speech") } else { one })
        .collect();
    let past = PastJobs::of(&listed(&mixed), at(3 * 86_400 + 1_000)).unwrap();
    let bytes = past.to_bytes();
    assert!(bytes.len() < 12 * past.len(), "{}", bytes.len());
    assert_eq!(PastJobs::from_bytes(&bytes).unwrap(), past);
    for cut in 0..bytes.len() {
        assert!(PastJobs::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    assert!(PastJobs::from_bytes(&[bytes, vec![0]].concat()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: proptest::test_runner::RngSeed::Fixed(26),
        ..ProptestConfig::default()
    })]

    #[test]
    fn bounds_rise_with_the_hours_and_the_rate_lie_at_demand_at_least_and_are_the_same_for_a_seed(
        jobs in prop::collection::vec((0_i64..100_000, 1_i64..50_000, 1_u64..40), 0..120),
        seed in 0_u64..1_000,
        waiting in 0_u64..50,
    ) {
        let list: Vec<Listed> = jobs.iter().map(|&(s, d, g)| (s, d, g, if g % 2 == 0 { "a" } else { "b" })).collect();
        let history = watched(&list, 90_000);
        let demand = milli(&present(&list, 90_000)) + waiting * 1_000;
        let offered = [hours(1), hours(4), hours(24), hours(168)];
        let [low, high] = [0.5, 0.95].map(|rate| {
            let of = (GuaranteeRate::new(rate).unwrap(), seed);
            let drawn = bounds(alone(&history), at(90_000), demand, &offered, of).unwrap();
            assert_eq!(bounds(alone(&history), at(90_000), demand, &offered, of).unwrap(), drawn);
            drawn
        });
        prop_assert!(low.is_sorted() && high.is_sorted(), "{low:?} {high:?}");
        prop_assert!(low[0] * 1_000.0 >= demand as f64 - 0.5);
        prop_assert!(low.iter().zip(&high).all(|(low, high)| low <= high));
        // Never more than all that is there and all that ever came at once, window after window.
        let most: u64 = demand / 1_000 + 42 * list.iter().map(|one| one.2).sum::<u64>();
        prop_assert!(high[3] <= most as f64);
    }
}
