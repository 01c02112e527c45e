use super::*;
use datasets::{Calendar, Panel, PanelBuilder};
use proptest::prelude::*;
use vocab::{
    ClusterName, DemandForecast, ForecastOrigin, GuaranteeRate, HorizonHours, HourStart, MilliGpus, Organization,
    PoolId, SeriesId, StepForecast,
};

fn earth() -> ClusterName {
    ClusterName::parse("earth").unwrap()
}

fn series(name: &str) -> SeriesId {
    let (gpu_model, organization) = name.split_once('/').unwrap_or(("V100", name));
    let pool = PoolId::parse(&format!("earth:{gpu_model}")).unwrap();
    SeriesId { pool, organization: Organization::parse(organization).unwrap() }
}

fn hour(hour: i64) -> HourStart {
    HourStart::from_unix_s(hour * 3_600).unwrap()
}

/// One line an organization, one column an hour, `.` where there is no row.
fn panel(picture: &str) -> Panel {
    let lines: Vec<Vec<&str>> = picture.lines().map(|line| line.split_whitespace().collect()).collect();
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let mut builder = PanelBuilder::new(earth(), calendar, hour(0), hour(lines[0].len() as i64 - 1));
    for line in lines {
        for (at, value) in line[1..].iter().enumerate().filter(|(_, value)| **value != ".") {
            builder.push(&series(line[0]), hour(at as i64), value.parse().unwrap()).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// A forecast that says the same median and 0.9 quantile for two hours.
fn forecast_of(name: &str, issue: i64, median: f64, q90: f64) -> DemandForecast {
    let step = StepForecast { mean_gpus: median, stddev_gpus: 1.0, quantiles_gpus: [median, q90, q90] };
    DemandForecast::new(series(name), hour(issue), ForecastOrigin::Model, vec![step; 2]).unwrap()
}

fn bound(issue_hours: u64, gpus: u32) -> IssuedBound {
    let hours = HorizonHours::new(issue_hours).unwrap();
    IssuedBound { pool: series("a").pool, hours, rate: GuaranteeRate::GFS, bound: MilliGpus::from_gpus(gpus) }
}

/// a: 5 then 9 against median 6, q90 9, last value 4: |6−5| + |6−9| = 4, |4−5| + |4−9| = 6, both at or below 9, one below.
#[test]
fn a_forecast_is_held_against_what_came() {
    let panel = panel("a 4 5 9 1\nb 2 2 . 1");
    let raw = vec![forecast_of("a", 1, 6.0, 9.0), forecast_of("b", 1, 3.0, 3.0)];
    let issued = Issued::of(&panel, hour(1), raw.clone(), &raw, vec![bound(1, 7), bound(2, 100)]);
    assert_eq!(issued.last_gpus, [4.0, 2.0]);
    let scored = score(&issued, &panel);
    let tally = |hours, unmeasured, covered, below, abs_error_gpus, last_value_abs_error_gpus| Tally {
        hours,
        unmeasured,
        covered,
        below,
        abs_error_gpus,
        last_value_abs_error_gpus,
    };
    assert_eq!(scored.series[0].1, tally(2, 0, 2, 1, 4.0, 6.0));
    assert_eq!(scored.series[1].1, tally(1, 1, 1, 1, 1.0, 0.0), "an hour without a row is not scored, and counted");
    let held: Vec<_> = scored.bounds.iter().map(|one| one.held).collect();
    assert_eq!(held, [Some(true), None], "5 + 2 is at most 7; of the second hour the peak is not known");
    let mut window = Window::default();
    window.add(1, &scored);
    let pool = &window.report(1)[0];
    assert_eq!(pool.all, tally(3, 1, 3, 2, 5.0, 6.0));
    assert_eq!((pool.all.mae_gpus(), pool.all.last_value_mae_gpus()), (Some(5.0 / 3.0), Some(2.0)));
    assert_eq!((pool.bound.issues, pool.bound.held, pool.bound.unmeasured), (1, 1, 1));
    let names: Vec<_> = pool.organizations.iter().map(|one| one.organization.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

/// b was corrected to 2, which is what came: no error, and covered by a tie. The raw forecast is kept, too.
#[test]
fn what_was_corrected_is_held_to_what_was_issued() {
    let panel = panel("a 4 5 9 1\nb 2 2 2 1");
    let raw = vec![forecast_of("a", 1, 6.0, 9.0), forecast_of("b", 1, 3.0, 3.0)];
    let step = StepForecast { mean_gpus: 2.0, stddev_gpus: 1.0, quantiles_gpus: [2.0, 2.0, 2.0] };
    let lower = DemandForecast::new(series("b"), hour(1), ForecastOrigin::Model, vec![step; 2]).unwrap();
    let issued = Issued::of(&panel, hour(1), raw.clone(), &[raw[0].clone(), lower], Vec::new());
    let read = Issued::from_bytes(&issued.to_bytes(&earth())).unwrap();
    assert_eq!(read.forecasts, raw);
    let [a, b] = [0, 1].map(|place| score(&read, &panel).series[place].1);
    assert_eq!((a.abs_error_gpus, b.abs_error_gpus), (4.0, 0.0));
    assert_eq!((b.covered, b.below), (2, 0), "a tie");
}

#[test]
fn recording_gaps_and_series_that_are_gone_are_not_scored() {
    let panel = panel("a 4 . 9 1\nb 2 . 2 1");
    let forecasts = vec![forecast_of("a", 1, 6.0, 9.0), forecast_of("gone", 1, 3.0, 3.0)];
    let corrected_gpus = vec![Vec::new(); 2];
    let issued =
        Issued { issue: hour(1), forecasts, corrected_gpus, last_gpus: vec![4.0, 4.0], bounds: vec![bound(2, 100)] };
    let scored = score(&issued, &panel);
    assert_eq!([scored.series[0].1.hours, scored.series[0].1.unmeasured], [1, 1]);
    assert_eq!([scored.series[1].1.hours, scored.series[1].1.unmeasured], [0, 2]);
    assert_eq!(scored.bounds[0].held, None);
}

#[test]
fn an_hour_is_whole_when_everyone_came_who_was_there_the_day_before() {
    let with_gap = panel("a 4 5 . 6\nb 2 2 2 2\nX/c 1 . . .");
    assert_eq!([0, 1, 2, 3, 4].map(|at| is_whole(&with_gap, hour(at))), [true, false, false, false, false]);
    let line = |name: &str, hours: usize, until: usize| {
        let values = (0..hours).map(|hour| if hour < until { "3" } else { "." });
        std::iter::once(name).chain(values).collect::<Vec<_>>().join(" ")
    };
    let left = panel(&format!("{}\n{}", line("stays", 40, 40), line("leaves", 40, 10)));
    assert_eq!([9, 10, 33, 34].map(|at| is_whole(&left, hour(at))), [true, false, false, true]);
}

#[test]
fn forecasts_are_due_once_their_hours_are_whole_and_two_hours_later_at_the_latest() {
    let two = HorizonHours::new(2).unwrap();
    let due = |picture: &str, issue: i64| is_due(&panel(picture), hour(issue), two);
    assert!(due("a 1 2 3\nb 1 2 3", 1));
    assert!(!due("a 1 2\nb 1 2", 1), "an hour is to come");
    assert!(!due("a 1 2 3 4\nb 1 2 . .", 1), "b may come late");
    assert!(due("a 1 2 3 4 5\nb 1 2 . . .", 1), "two hours are enough");
    assert!(due("a 1 2 3 4\nb 1 2 3 .", 1), "b came");
}

#[test]
fn only_forecasts_of_the_serving_run_are_judged_and_each_hour_counts_once() {
    let scored = |issue: i64, covered: u32| ScoredIssue {
        issue: hour(issue),
        horizon: HorizonHours::ONE,
        series: vec![(series("a"), Tally { hours: 1, covered, below: covered, ..Tally::default() })],
        bounds: vec![BoundOutcome {
            pool: series("a").pool,
            hours: HorizonHours::ONE,
            rate: GuaranteeRate::GFS,
            held: Some(covered == 1),
        }],
    };
    let mut window = Window::default();
    for issue in 0..60 {
        window.add(i64::from(issue < 30), &scored(issue, u32::from(issue < 30)));
        window.add(9, &scored(issue, 1));
    }
    let [old, new] = [1, 0].map(|run| window.report(run).remove(0));
    assert_eq!((old.all, old.issues), (new.all, 60));
    assert_eq!((old.all.coverage(), old.of_run.coverage(), new.of_run.coverage()), (Some(0.5), Some(1.0), Some(0.0)));
    assert_eq!(old.judge_coverage(Standing::Inside).standing, Standing::Inside);
    assert_eq!(new.judge_coverage(Standing::Inside).standing, Standing::Below);
    assert_eq!(old.judge_bound(Standing::Inside).standing, Standing::Inside, "a bound that always holds is no fault");
    assert_eq!(new.judge_bound(Standing::Inside).standing, Standing::Below);
    assert_eq!(window.report(7)[0].judge_coverage(Standing::Inside).standing, Standing::TooFew);
    window.forget_before(hour(50));
    assert_eq!((window.len(), window.report(0)[0].issues, window.report(0)[0].first), (10, 10, hour(50)));
}

#[test]
fn bytes_that_are_damaged_are_refused() {
    let panel = panel("a 4 5 9 1\nX/b 2 2 . 1");
    let raw = vec![forecast_of("X/b", 1, 3.0, 3.0), forecast_of("a", 1, 6.0, 9.0)];
    let corrected = [raw[0].clone(), forecast_of("a", 1, 5.0, 8.0)];
    let issued = Issued::of(&panel, hour(1), raw, &corrected, vec![bound(2, 7)]);
    let bytes = issued.to_bytes(&earth());
    let scores = score(&issued, &panel).to_bytes(&earth());
    assert_eq!(ScoredIssue::from_bytes(&scores).unwrap(), score(&issued, &panel));
    for end in 0..bytes.len() {
        assert!(Issued::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
    for end in 0..scores.len() {
        assert!(ScoredIssue::from_bytes(&scores[..end]).is_err(), "cut at {end}");
    }
    let mut other = bytes.clone();
    other[4] = 9;
    let fault = Issued::from_bytes(&other).unwrap_err().to_string();
    assert_eq!(fault, "they have format 9, and this program reads format 1");
    let longer = [&bytes[..], &[0]].concat();
    assert!(Issued::from_bytes(&longer).is_err() && Issued::from_bytes(&scores).is_err());
}

proptest! {
    #[test]
    fn issued_forecasts_read_back_as_they_were_written_to_the_precision_of_f32(
        values in prop::collection::vec((0.0_f64..5_000.0, 0.0_f64..900.0, 0.0_f64..400.0, 0.0_f64..400.0), 1..9)
    ) {
        let forecast = |(place, (median, stddev, more, yet_more)): (usize, (f64, f64, f64, f64))| {
            let step = StepForecast {
                mean_gpus: median,
                stddev_gpus: stddev,
                quantiles_gpus: [median, median + more, median + more + yet_more],
            };
            let name = series(&format!("org-{place}"));
            DemandForecast::new(name, hour(9), ForecastOrigin::ColdStart, vec![step; 3]).unwrap()
        };
        let forecasts: Vec<_> = values.into_iter().enumerate().map(forecast).collect();
        let last_gpus = vec![0.5; forecasts.len()];
        let mut corrected_gpus = vec![Vec::new(); forecasts.len()];
        corrected_gpus[0] = vec![[1.5, 2.5]; 3];
        let issued = Issued { issue: hour(9), forecasts, corrected_gpus, last_gpus, bounds: vec![bound(3, 12)] };
        let bytes = issued.to_bytes(&earth());
        let read = Issued::from_bytes(&bytes).unwrap();
        prop_assert_eq!(read.to_bytes(&earth()), bytes, "what is as exact as f32 stays as it is");
        prop_assert_eq!((&read.bounds, &read.last_gpus), (&issued.bounds, &issued.last_gpus));
        prop_assert_eq!(&read.corrected_gpus, &issued.corrected_gpus);
        for (one, other) in issued.forecasts.iter().zip(&read.forecasts) {
            prop_assert_eq!((one.series(), one.origin()), (other.series(), other.origin()));
            for (one, other) in one.steps().iter().zip(other.steps()) {
                let close = |a: f64, b: f64| (a - b).abs() <= a.abs() * f64::from(f32::EPSILON);
                prop_assert!(close(one.mean_gpus, other.mean_gpus) && close(one.stddev_gpus, other.stddev_gpus));
                prop_assert!(close(one.quantiles_gpus[1], other.quantiles_gpus[1]));
            }
        }
    }
}
