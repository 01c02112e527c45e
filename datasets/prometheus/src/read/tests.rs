use super::*;
use crate::error::Kind;
use crate::fake::{Fake, Request, Turn, matrix, ok};
use crate::settings::SourceSettings;
use std::time::Duration;
use vocab::{ClusterName, SECONDS_PER_HOUR};

const WARNED: &str =
    r#"{"status":"success","warnings":["a store is down"],"data":{"resultType":"matrix","result":[]}}"#;

fn first() -> HourStart {
    HourStart::from_unix_s(1_700_006_400).unwrap()
}

fn source(url: &str) -> Source {
    let settings = SourceSettings {
        url: url.to_owned(),
        query: "demand".to_owned(),
        gpu_model: "A100".to_owned(),
        step_s: 1_800,
        ..SourceSettings::default()
    };
    settings.source(ClusterName::parse("earth").unwrap()).unwrap()
}

async fn read_hours(fake: &Fake, hours: i64) -> Result<Reading, SourceError> {
    let source = source(&fake.url);
    let client = Client::new(&source).unwrap().bounded(Duration::from_millis(1), 1_000_000);
    let span = Span { from: first(), until: first().plus_hours(hours) };
    read(&client, &source, Asked { span, may_begin_later: false }, &BTreeSet::new(), &|_| ()).await
}

/// Two samples an hour, the number of the hour, for what was asked.
fn as_asked(request: &Request) -> String {
    let samples: Vec<(i64, String)> = (request.number("start")..=request.number("end"))
        .step_by(1_800)
        .map(|at| (at, ((at - first().unix_s()) / SECONDS_PER_HOUR).to_string()))
        .collect();
    let samples: Vec<(i64, &str)> = samples.iter().map(|(at, value)| (*at, value.as_str())).collect();
    matrix(&[("vision", &samples)])
}

fn asked_hours(request: &Request) -> i64 {
    (request.number("end") - request.number("start") + 1_800) / SECONDS_PER_HOUR
}

fn hour_of(request: &Request) -> i64 {
    (request.number("start") - first().unix_s()) / SECONDS_PER_HOUR
}

fn demand(reading: &Reading) -> Vec<(i64, f64)> {
    let rows = reading.rows.iter().filter(|row| !row.series.is_pool_peak());
    rows.map(|row| (row.hour.hours_since(first()), row.demand.as_gpus())).collect()
}

#[tokio::test]
async fn parts_have_at_most_so_many_points_and_meet_without_overlap() {
    let fake = Fake::start(|_, request| ok(as_asked(request)));
    let reading = read_hours(&fake, 11_000).await.unwrap();
    let spans: Vec<_> = fake.requests().iter().map(|request| (hour_of(request), asked_hours(request))).collect();
    assert_eq!(spans, [(0, 5_000), (5_000, 5_000), (10_000, 1_000)]);
    assert_eq!(demand(&reading), (0..11_000).map(|hour| (hour, hour as f64)).collect::<Vec<_>>());
    assert_eq!((reading.missing_hours, reading.hours), (0, 11_000));
}

#[tokio::test]
async fn what_is_too_much_at_once_is_asked_for_in_halves() {
    let fake = Fake::start(|_, request| match asked_hours(request) {
        0..=3 => ok(as_asked(request)),
        _ => {
            Turn::Answer(422, "", r#"{"status":"error","errorType":"execution","error":"too many samples"}"#.to_owned())
        }
    });
    let reading = read_hours(&fake, 10).await.unwrap();
    assert_eq!(demand(&reading), (0..10).map(|hour| (hour, hour as f64)).collect::<Vec<_>>());
    let never = Fake::start(|_, _| ok(" ".repeat(2_000_000)));
    let fault = read_hours(&never, 10).await.unwrap_err();
    assert!(fault.to_string().contains("cannot answer one hour of demand"), "{fault}");
    assert_eq!(fault.kind(), Kind::Data);
}

#[tokio::test]
async fn a_warning_makes_gaps_of_the_least_part_that_has_it() {
    let fake = Fake::start(|_, request| {
        let hours = hour_of(request)..hour_of(request) + asked_hours(request);
        if hours.contains(&20) { ok(WARNED) } else { ok(as_asked(request)) }
    });
    let reading = read_hours(&fake, 24).await.unwrap();
    let expected: Vec<_> = (0..18).map(|hour| (hour, hour as f64)).collect();
    assert_eq!(demand(&reading), expected);
    assert_eq!((reading.missing_hours, reading.hours, reading.gaps.len()), (6, 24, 1));
    assert!(reading.may_pass && reading.gaps[0].to_string().contains("6 h, partial answer: a store is down"));
    let fault = reading.clone().with_at_most_missing(0.2).unwrap_err();
    assert!(fault.to_string().starts_with("25.0 % of the hours are missing, more than 20.0 %"), "{fault}");
    assert_eq!(fault.kind(), Kind::Unavailable, "the store may come back");
    assert!(reading.with_at_most_missing(0.25).is_ok());
}

#[tokio::test]
async fn one_part_that_is_not_answered_is_a_gap_and_two_in_a_row_are_no_source() {
    let down = |from: i64, until: i64| {
        Fake::start(
            move |_, request| {
                if (from..until).contains(&hour_of(request)) { Turn::HangUp } else { ok(as_asked(request)) }
            },
        )
    };
    let one = read_hours(&down(5_000, 5_001), 15_000).await.unwrap();
    assert_eq!((one.missing_hours, one.gaps.len(), one.rows.len()), (5_000, 1, 20_000));
    assert!(one.gaps[0].to_string().contains("no answer: http://127.0.0.1:"), "{}", one.gaps[0]);
    let two = read_hours(&down(5_000, 15_000), 20_000).await.unwrap_err();
    assert_eq!(two.kind(), Kind::Unavailable);
    let first_of_all = down(0, 5_000);
    assert_eq!(read_hours(&first_of_all, 10_000).await.unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(first_of_all.requests().len(), 4, "who has never answered is asked no more");
}

#[tokio::test]
async fn bad_data_are_refused_with_place_and_query() {
    let fake = Fake::start(|_, request| ok(matrix(&[("vision", &[(request.number("start"), "-1")])])));
    let fault = read_hours(&fake, 1).await.unwrap_err();
    assert_eq!(fault.kind(), Kind::Data);
    assert!(fault.to_string().contains("-1 GPUs is negative: amounts of GPUs are 0 or more; query: demand"), "{fault}");
}
