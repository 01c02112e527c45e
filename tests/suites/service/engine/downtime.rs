//! Hours in which no service watched a pool are gaps of its usage, and own measurements of zero are measurements.

use super::*;
use tests::fixture::loaded;
use tests::on_both_databases;
use vocab::{SeriesId, UsageRow};

on_both_databases![
    hours_of_downtime_are_a_gap_and_no_demand_that_stood_still,
    the_hour_of_a_restart_is_a_gap_where_less_than_half_of_it_was_watched,
    a_pool_that_another_service_takes_over_was_watched_throughout,
    a_pool_with_spot_tasks_alone_keeps_its_quota,
    a_pool_without_any_organization_in_its_history_keeps_its_quota,
];

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;

/// Usage of the pool since the synthetic rows: hour number and GPUs of `*`.
async fn measured(service: &TestService) -> Vec<(i64, String)> {
    let (first, last) = (end().to_string(), end().plus_s(48 * HOUR_S).to_string());
    let rows = loaded(service.service.core.store.as_ref(), "demo", &first[..13], &last[..13]).await;
    let number = |hour: &str| (0..48).find(|number| end().plus_s(number * HOUR_S).to_string()[..13] == *hour);
    let row = |line: &str| {
        let mut parts = line.strip_prefix("demo:A100:* ")?.split(' ');
        Some((number(parts.next()?)?, parts.next()?.to_owned()))
    };
    rows.lines().filter_map(row).collect()
}

fn hours(of: &[i64]) -> Vec<(i64, String)> {
    of.iter().map(|hour| (*hour, "16.000".to_owned())).collect()
}

/// A service that has an HP task of 16 GPUs since minute 1 and has run until minute 161, a renewal every ten minutes.
async fn watched(database: &TestDatabase) -> TestService {
    let service = placing(database, 10).await;
    let _ = submit(&service, &hp("hp", 8.0, 2)).await;
    for _ in 0..16 {
        service.pass_s(10 * MINUTE_S);
        service.renew().await;
    }
    service
}

async fn restarted(database: &TestDatabase, minute: i64) -> TestService {
    let service = TestService::start(database.store().await, end().plus_s(minute * MINUTE_S)).await;
    service.renew().await;
    service
}

async fn hours_of_downtime_are_a_gap_and_no_demand_that_stood_still(database: TestDatabase) {
    drop(watched(&database).await);
    let service = restarted(&database, 7 * 60 + 20).await;
    assert_eq!(measured(&service).await, hours(&[1, 2]), "41 minutes of hour 2 were watched, and none of 3 to 6");
    assert_eq!(quota(&service, 4).await["stage"], "conservative", "hours that are missing are seen to be missing");
    assert_eq!(task(&service, "hp").await["status"], "running");
    service.pass_s(40 * MINUTE_S);
    service.renew().await;
    assert_eq!(measured(&service).await, hours(&[1, 2, 7]), "40 minutes of hour 7 were watched");
    assert_eq!(quota(&service, 4).await["stage"], "fresh");
    let forecast = service.get("/v1/forecast?cluster=demo&gpu_model=A100").await.expect(200);
    assert_eq!(forecast["issue_time"], end().plus_s(8 * HOUR_S).to_string());
    // The gap stays one, however often the service is started again.
    drop(service);
    let again = restarted(&database, 8 * 60 + 1).await;
    again.pass_s(HOUR_S);
    again.renew().await;
    assert_eq!(measured(&again).await, hours(&[1, 2, 7, 8]));
}

async fn the_hour_of_a_restart_is_a_gap_where_less_than_half_of_it_was_watched(database: TestDatabase) {
    drop(watched(&database).await);
    let service = restarted(&database, 5 * 60 + 40).await;
    let _ = submit(&service, &hp("later", 1.0, 1)).await;
    let _ = tell(&service, "later", "finish").await.expect(200);
    service.pass_s(21 * MINUTE_S);
    service.renew().await;
    assert_eq!(measured(&service).await, hours(&[1, 2]), "20 minutes of hour 5 were watched");
    drop(service);
    let again = restarted(&database, 6 * 60 + 5).await;
    again.pass_s(HOUR_S);
    again.renew().await;
    assert_eq!(measured(&again).await, hours(&[1, 2, 6]), "hour 6 was watched but for four minutes");
}

async fn a_pool_that_another_service_takes_over_was_watched_throughout(database: TestDatabase) {
    let before = watched(&database).await;
    before.pass_s(15 * MINUTE_S);
    before.renew().await;
    let patience = Duration::from_millis(200);
    let now = before.service.core.clock.now().plus_s(MINUTE_S);
    let other = TestService::start_as(database.store().await, now, "other", patience).await;
    while other.service.core.leases.led(&cluster("demo")).is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.service.renewals.update_leases().await.unwrap();
    }
    other.renew().await;
    for _ in 0..7 {
        other.pass_s(10 * MINUTE_S);
        other.renew().await;
    }
    assert_eq!(measured(&other).await, hours(&[1, 2, 3]));
}

async fn a_pool_with_spot_tasks_alone_keeps_its_quota(database: TestDatabase) {
    let service = placing(&database, 60).await;
    assert_eq!(submit(&service, &spot("spot", 8.0, 1, None)).await["status"], "running");
    for hour in 1..=6 {
        service.pass_s(HOUR_S);
        service.renew().await;
        let answer = quota(&service, 4).await;
        assert_eq!(answer["stage"], "fresh", "hour {hour}: {answer}");
    }
    let zeros: Vec<_> = (1..6).map(|hour| (hour, "0.000".to_owned())).collect();
    assert_eq!(measured(&service).await, zeros);
    let forecast = service.get("/v1/forecast?cluster=demo&gpu_model=A100").await.expect(200);
    assert_eq!(forecast["issue_time"], end().plus_s(6 * HOUR_S).to_string(), "the newest hour is the measured one");
}

async fn a_pool_without_any_organization_in_its_history_keeps_its_quota(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &spot("spot", 8.0, 1, None)).await;
    let of = SeriesId::pool_peak(pool(POOL));
    let hour = |number: i64| end().hour().unwrap().plus_hours(number);
    let zero = |number| UsageRow { series: of.clone(), hour: hour(number), demand: MilliGpus::ZERO, at_end: None };
    let rows: Vec<_> = (0..500).map(zero).collect();
    let _ = service.service.core.store.append(&rows, &[]).await.unwrap();
    service.pass_s(500 * HOUR_S);
    service.renew().await;
    let answer = quota(&service, 4).await;
    assert_eq!((&answer["stage"], number(&answer["inventory_gpus"])), (&"fresh".into(), 480.0), "{answer}");
}
