//! Kept shares of the sold promises, as people, Prometheus and the command see them.

use super::retrain::{present_hour, with_run};
use super::*;
use quota_service::promises;
use std::collections::BTreeMap;
use tests::{Listening, on_both_databases, program};
use vocab::{EventId, HorizonHours, Outcome, OutcomeKind};

on_both_databases![
    a_promise_that_fails_since_a_week_is_reported_with_its_beginning,
    served_bounds_are_held_against_the_demand_that_came,
    metrics_and_the_command_show_a_promise_that_fails,
];

const OF_POOL: &str = "cluster=demo&gpu_model=A100";

/// A gang of 8 GPUs for an hour, each hour of 28 days up to `until`: one of twenty breaks, and in the last week two of five.
fn month(until: UnixSeconds) -> Vec<Outcome> {
    let one = |hours_ago: i64| {
        let breaks = if hours_ago <= 7 * 24 { hours_ago % 5 < 2 } else { hours_ago % 20 == 0 };
        let ended_at = until.plus_s(-3_600 * hours_ago);
        Outcome {
            event_id: EventId::parse(&format!("e-{hours_ago}")).unwrap(),
            pool: pool(POOL),
            guarantee_hours: HorizonHours::ONE,
            kind: if breaks { OutcomeKind::Broken } else { OutcomeKind::Kept },
            ended_at,
            began_at: Some(ended_at.plus_s(if breaks { -1_800 } else { -3_600 })),
            gpus: Some(MilliGpus::from_gpus(8)),
            task: None,
            node: None,
        }
    };
    (1..=28 * 24).map(one).collect()
}

async fn a_promise_that_fails_since_a_week_is_reported_with_its_beginning(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let store = &service.service.core.store;
    let _ = store.record_outcomes(&month(end()), end()).await.unwrap();
    // Whichever days are asked for, the last weeks say how the promise stands.
    for days in [1, 28] {
        let report = service.get(&format!("/v1/promises?{OF_POOL}&days={days}")).await.expect(200);
        let hour = &report["by_hours"][0];
        assert_eq!(hour["hours"], 1, "{report}");
        assert!(number(&hour["e_value"]) >= 20.0, "{hour}");
        let since = command_line::instant(hour["e_value_since"].as_str().unwrap()).unwrap();
        let days_ago = end().since_s(since) as f64 / 86_400.0;
        assert!((6.0..9.0).contains(&days_ago), "{days_ago} days ago: {hour}");
        assert!((number(&hour["last_7_days"]["kept_rate"]) - 0.6).abs() < 0.02, "{hour}");
        assert_eq!(hour["sold_gpus"], 0.0);
    }
    let report = service.get(&format!("/v1/promises?{OF_POOL}&days=28")).await.expect(200);
    let week = &report["by_hours"][0]["worst_week"];
    assert!((number(&week["kept_rate"]) - 0.6).abs() < 0.03 && number(&week["periods"]) > 150.0, "{week}");
    // Hours that are offered and of which nothing was promised have nothing to say.
    let four = report["by_hours"].as_array().unwrap().iter().find(|one| one["hours"] == 4).unwrap();
    assert!(four["e_value"].is_null() && four["last_7_days"].is_null() && four["kept"] == 0, "{four}");
    // The inputs of the metrics agree.
    promises::look(&service.service.quotas, &mut BTreeMap::new()).await;
    let kept = service.service.quotas.kept.load();
    let lately = &kept[&pool(POOL)][0];
    let found = lately.evidence.unwrap();
    assert!(found.is_alarm() && (lately.week.unwrap().rate - 0.6).abs() < 0.02, "{lately:?}");
    assert_eq!(Some(found.e_value), report["by_hours"][0]["e_value"].as_f64());
}

async fn served_bounds_are_held_against_the_demand_that_came(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let report = async || service.get(&format!("/v1/promises?{OF_POOL}")).await.expect(200)["by_hours"].clone();
    let before = report().await;
    assert_eq!(
        (&before[0]["served"]["last_24_hours"]["looks"], &before[0]["hours"]),
        (&json!(0), &json!(1)),
        "{before}"
    );
    // Usage is measured up to now for five hours more.
    for hour in 0..5 {
        service.pass_s(3_600);
        let start = end().hour().unwrap().plus_hours(hour);
        let row = |organization: u32| {
            json!({ "hour": start.to_string(), "cluster": "demo", "gpu_model": "A100",
                    "organization": format!("org-00{organization}"), "demand_gpus": 30.0 })
        };
        let rows: Vec<_> = (0..3).map(row).collect();
        let _ = service.post("/v1/usage", &json!({ "rows": rows })).await.expect(200);
        service.renew().await;
    }
    let after = report().await;
    let looks = |place: usize| after[place]["served"]["last_7_days"]["looks"].as_u64().unwrap();
    assert!(looks(0) >= 3 && looks(0) > looks(2), "{after}");
    assert!(number(&after[0]["served"]["last_7_days"]["coverage"]) > 0.0, "{after}");
}

async fn metrics_and_the_command_show_a_promise_that_fails(database: TestDatabase) {
    let store = with_run(&database, 1).await;
    let _ = store.record_outcomes(&month(present_hour().instant()), present_hour().instant()).await.unwrap();
    let service = Listening::start(&["--database", &database.url]);
    let value = |metrics: &str, name: &str, more: &str| -> Option<f64> {
        let start = format!("{name}{{cluster=\"demo\",gpu_model=\"A100\",hours=\"1\"{more}}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
    };
    let mut metrics = String::new();
    for _ in 0..600 {
        service.get("/metrics").1.as_str().unwrap().clone_into(&mut metrics);
        if value(&metrics, "headroom_promise_e_value", "").is_some_and(|value| value >= 20.0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let week = ",window=\"7d\"";
    let [rate, periods] = ["headroom_kept_rate", "headroom_kept_rate_periods"].map(|name| value(&metrics, name, week));
    assert!(rate.is_some_and(|rate| (rate - 0.6).abs() < 0.02) && periods.is_some_and(|all| all > 160.0), "{metrics}");
    assert_eq!(value(&metrics, "headroom_bound_lambda", ""), Some(1.0), "on its first day nothing moves the bound");
    let e_value = value(&metrics, "headroom_promise_e_value", "").unwrap();
    assert!(e_value >= 20.0, "{metrics}");
    // Of hours without promises the same names are there, and no number.
    assert!(
        metrics.contains("headroom_promise_e_value{cluster=\"demo\",gpu_model=\"A100\",hours=\"4\"} NaN"),
        "{metrics}"
    );
    let answer = program("quota-service", &["promises", "--database", &database.url]).ok().stdout;
    assert!(answer.contains("demo:A100: the promise of 1 h fails since 20"), "{answer}");
    assert!(answer.contains("worst 7 days"), "{answer}");
}
