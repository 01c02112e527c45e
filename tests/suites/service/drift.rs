//! The ledger of forecasts: each is scored once, and drift is reported.

use super::*;
use std::io::Write;
use std::sync::Mutex;
use tests::on_both_databases;

on_both_databases![
    coverage_that_leaves_its_band_is_warned_of_once_and_once_when_it_is_back,
    a_restart_in_the_middle_counts_nothing_twice,
    services_that_take_turns_count_each_hour_once,
    a_service_that_ends_writes_nothing_over_what_another_one_has_learned_since,
    late_usage_is_awaited_for_two_hours_and_missing_usage_is_counted_and_not_scored,
    forecasts_are_kept_once_the_hour_has_its_usage_whole,
    a_new_run_is_judged_by_its_own_forecasts,
    a_damaged_ledger_costs_no_quota_and_its_hours_are_not_scored,
];

const ORGANIZATIONS: [&str; 3] = ["org-000", "org-001", "org-002"];
const EXPLAIN: &str = "/v1/quota/explain?cluster=demo&gpu_model=A100&hours=4";

/// Rows of an hour, counted from the end of the synthetic usage.
fn rows(hour: i64, organizations: &[&str], demand_gpus: f64) -> Value {
    let at = end().plus_s(hour * 3_600).to_string();
    let row = |organization: &&str| json!({ "hour": at, "cluster": "demo", "gpu_model": "A100", "organization": organization, "demand_gpus": demand_gpus });
    json!({ "rows": organizations.iter().map(row).collect::<Vec<_>>() })
}

async fn report(service: &TestService, hour: i64, organizations: &[&str], demand_gpus: f64) {
    let _ = service.post("/v1/usage", &rows(hour, organizations, demand_gpus)).await.expect(200);
}

/// Lets an hour pass in which every organization has the same demand, and renews.
async fn pass_hour(service: &TestService, hour: i64, demand_gpus: f64) {
    service.pass_s(3_600);
    report(service, hour, &ORGANIZATIONS, demand_gpus).await;
    service.renew().await;
}

async fn drift(service: &TestService) -> Value {
    service.get(EXPLAIN).await.expect(200)["drift"].clone()
}

/// The log of this thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub fn lines_with(&self, words: &[&str]) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

/// 30 hours without a move, then demand that climbs by 40 GPUs an hour, which "the last value stays" never sees coming,
/// until it is warned of; then hours without a move until the share is back.
async fn coverage_that_leaves_its_band_is_warned_of_once_and_once_when_it_is_back(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let log = Log::default();
    let _listening = log.listen();
    assert_eq!(drift(&service).await, Value::Null, "nothing was scored yet");
    let (mut hour, mut demand) = (0, 30.0);
    while hour < 30 {
        pass_hour(&service, hour, demand).await;
        hour += 1;
    }
    let calm = drift(&service).await;
    assert_eq!((&calm["drifts"], &calm["coverage"]["standing"]), (&false.into(), &"inside".into()), "{calm}");
    while drift(&service).await["coverage"]["standing"] != "below" {
        assert!(hour < 70, "{}", drift(&service).await);
        demand += 40.0;
        pass_hour(&service, hour, demand).await;
        hour += 1;
    }
    let left = drift(&service).await;
    let (share, band) = (number(&left["coverage"]["share"]), &left["coverage"]["band"]);
    assert!(left["drifts"] == true && share < number(&band[0]) && left["outside_since"].is_string(), "{left}");
    assert!(number(&left["mae_gpus"]) > 10.0 && left["mae_gpus"] == left["last_value_mae_gpus"], "{left}");
    assert_eq!(log.lines_with(&["WARN", "drift:", "0.9 quantile", "below the band"]), 1);
    for _ in 0..3 {
        demand += 40.0;
        pass_hour(&service, hour, demand).await;
        service.renew().await;
        hour += 1;
    }
    while drift(&service).await["drifts"] == true {
        assert!(hour < 200, "{}", drift(&service).await);
        pass_hour(&service, hour, demand).await;
        hour += 1;
    }
    assert_eq!(log.lines_with(&["WARN", "drift:", "0.9 quantile"]), 1, "reported once, however long it lasted");
    assert_eq!(log.lines_with(&["WARN", "drift:", "bound held"]), 1);
    assert_eq!(log.lines_with(&["INFO", "drift is over:", "0.9 quantile", "inside the band"]), 1);
    assert_eq!(drift(&service).await["outside_since"], Value::Null);
}

async fn a_restart_in_the_middle_counts_nothing_twice(database: TestDatabase) {
    let steady = serving(&database, 500).await;
    let restarted = async |hour: i64| {
        let fresh = TestService::start(database.store().await, end().plus_s(60 + 3_600 * hour)).await;
        fresh.renew().await;
        fresh.renew().await;
        let drift = drift(&fresh).await;
        fresh.leave().await;
        drift
    };
    for hour in 0..9 {
        let demand = 30.0 + 7.3 * f64::from(u8::try_from(hour % 4).unwrap());
        pass_hour(&steady, hour, demand).await;
        let expected = drift(&steady).await;
        let scored = (hour - 2).max(0);
        assert_eq!(
            expected["issue_hours"].as_i64().unwrap_or(0),
            scored,
            "issues whose four hours are over: {expected}"
        );
        assert_eq!(restarted(hour + 1).await, expected);
        // Once to see that it has lost its lease, and once to take it again.
        steady.service.renewals.update_leases().await.unwrap();
        steady.service.renewals.update_leases().await.unwrap();
        steady.renew().await;
        assert_eq!(drift(&steady).await, expected);
    }
    assert_eq!(drift(&steady).await["scored_hours"], 6 * 4 * 3);
}

async fn take_over(next: &TestService, last: &TestService) {
    last.leave().await;
    next.service.renewals.update_leases().await.unwrap();
    next.service.renewals.update_leases().await.unwrap();
}

async fn a_service_that_ends_writes_nothing_over_what_another_one_has_learned_since(database: TestDatabase) {
    let (one, pool) = (serving(&database, 500).await, vocab::PoolId::parse("demo:A100").unwrap());
    let other = TestService::start(database.store().await, end().plus_s(60)).await;
    one.pass_s(300);
    one.renew().await;
    take_over(&other, &one).await;
    other.pass_s(600);
    other.renew().await;
    take_over(&one, &other).await;
    let learned = database.store().await.learned(&pool).await.unwrap();
    // It leads again, and has not renewed since.
    one.leave().await;
    assert_eq!(database.store().await.learned(&pool).await.unwrap(), learned);
}

async fn services_that_take_turns_count_each_hour_once(database: TestDatabase) {
    let one = serving(&database, 500).await;
    let other = TestService::start(database.store().await, end().plus_s(60)).await;
    for hour in 0..8 {
        // The service that computed the last hour leaves the next one to the other.
        let (next, last) = if hour % 2 == 0 { (&one, &other) } else { (&other, &one) };
        take_over(next, last).await;
        last.pass_s(3_600);
        pass_hour(next, hour, 33.0).await;
    }
    take_over(&one, &other).await;
    one.renew().await;
    take_over(&other, &one).await;
    other.renew().await;
    let (one, other) = (drift(&one).await, drift(&other).await);
    assert_eq!((&one["issue_hours"], &one["scored_hours"]), (&5.into(), &60.into()));
    assert_eq!(one, other);
}

/// org-002 is an hour late once, and says nothing of another hour.
async fn late_usage_is_awaited_for_two_hours_and_missing_usage_is_counted_and_not_scored(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(3_600);
    for hour in 0..15 {
        let all = if [5, 9].contains(&hour) { &ORGANIZATIONS[..2] } else { &ORGANIZATIONS };
        report(&service, hour, all, 30.0).await;
        if hour == 6 {
            report(&service, 5, &["org-002"], 30.0).await;
        }
        service.renew().await;
        // Half an hour later the present usage has to do.
        service.pass_s(1_800);
        service.renew().await;
        service.pass_s(1_800);
        if hour == 5 {
            assert_eq!(drift(&service).await["issue_hours"], 2, "those that end before the hour that is not whole");
        }
        if hour == 6 {
            assert_eq!(drift(&service).await["issue_hours"], 4);
        }
    }
    let drift = drift(&service).await;
    assert_eq!((&drift["issue_hours"], &drift["unmeasured_hours"]), (&12.into(), &4.into()), "four issue hours saw it");
    assert_eq!(drift["scored_hours"], 12 * 4 * 3 - 4);
    assert_eq!(drift["bound_unmeasured"], 4, "the pool's peak is not known without it");
    let by_name = drift["organizations"].as_array().unwrap();
    let unmeasured: Vec<_> = by_name.iter().map(|one| one["unmeasured_hours"].as_u64().unwrap()).collect();
    assert_eq!(unmeasured, [0, 0, 4]);
}

async fn forecasts_are_kept_once_the_hour_has_its_usage_whole(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let store = database.store().await;
    let newest = async || store.newest_issue(&cluster("demo")).await.unwrap().unwrap().instant();
    service.pass_s(3_600);
    report(&service, 0, &ORGANIZATIONS[..2], 30.0).await;
    service.renew().await;
    assert_eq!(newest().await, end(), "a third organization may still come");
    service.pass_s(300);
    report(&service, 0, &ORGANIZATIONS[2..], 77.0).await;
    service.renew().await;
    assert_eq!(newest().await, end().plus_s(3_600));
    let issue = end().plus_s(3_600).hour().unwrap();
    let stored = store.issued_forecasts(&cluster("demo"), issue).await.unwrap().unwrap();
    let issued = forecaster::drift::Issued::from_bytes(&stored.forecasts).unwrap();
    assert_eq!(issued.forecasts[2].steps()[0].quantiles_gpus[0], 77.0, "the last value stays");
    assert_eq!(stored.issued_at, end().plus_s(60 + 3_600 + 300));
    service.pass_s(3_600);
    report(&service, 1, &ORGANIZATIONS[..2], 30.0).await;
    service.renew().await;
    assert_eq!(newest().await, end().plus_s(3_600), "six minutes after the hour");
    service.pass_s(1_800);
    service.renew().await;
    assert_eq!(newest().await, end().plus_s(7_200), "half an hour after it the present usage has to do");
}

async fn a_new_run_is_judged_by_its_own_forecasts(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for hour in 0..40 {
        pass_hour(&service, hour, 30.0 + 40.0 * hour as f64).await;
    }
    let before = drift(&service).await;
    assert_eq!(before["coverage"]["standing"], "below");
    let store = service.service.core.store.as_ref();
    promote(store, &cluster("demo"), ModelKind::Seasonal24h, end().hour().unwrap()).await;
    service.renew().await;
    let after = drift(&service).await;
    assert_eq!((&after["drifts"], &after["coverage"]["standing"]), (&false.into(), &"too_few_hours".into()));
    assert_eq!(after["scored_hours"], before["scored_hours"], "the seven days are still those of the pool");
    let detail = after["coverage"]["detail"].as_str().unwrap();
    assert_eq!(detail, "0 issue hours of the run that serves were scored, and 24 are needed to judge");
}

async fn a_damaged_ledger_costs_no_quota_and_its_hours_are_not_scored(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for hour in 0..6 {
        pass_hour(&service, hour, 30.0).await;
    }
    let cut = match database.backend {
        tests::Backend::Postgres => "UPDATE issued_forecasts SET forecasts = '\\x485253' WHERE scores IS NULL",
        tests::Backend::Sqlite => "UPDATE issued_forecasts SET forecasts = x'485253' WHERE scores IS NULL",
    };
    database.execute(cut).await;
    for hour in 6..14 {
        pass_hour(&service, hour, 30.0).await;
    }
    assert_eq!(quota(&service, 4).await["stage"], "fresh");
    assert_eq!(drift(&service).await["issue_hours"], 3 + 4, "of 14 that were issued, 3 are under way and 4 damaged");
    assert_eq!(database.store().await.unscored_issues(&cluster("demo")).await.unwrap().len(), 4);
    database.execute("DROP TABLE issued_forecasts").await;
    pass_hour(&service, 14, 30.0).await;
    let answer = quota(&service, 4).await;
    assert_eq!(
        (&answer["stage"], &answer["computed_at"]),
        (&"fresh".into(), &end().plus_s(60 + 15 * 3_600).to_string().into())
    );
}
