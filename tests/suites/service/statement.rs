//! Statements: GPU time of a pool that Headroom places, to the second, over midnights and restarts; by organization, and priced.

use super::engine::{hp, placing, put_node, spot, submit, tell};
use super::*;
use std::collections::BTreeMap;
use tests::on_both_databases;

on_both_databases![
    a_statement_sums_to_the_gpu_seconds_of_the_journal_over_midnights_and_restarts,
    a_statement_by_day_has_every_stored_day_and_the_present_one,
    a_statement_of_one_organization_has_no_row_of_another,
    a_statement_of_a_pool_that_nobody_knows_is_refused_with_the_known_ones,
    a_month_form_or_organization_that_is_none_is_refused_with_what_was_expected,
];

const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3_600;

/// GPU-seconds by organization, thousandths of a GPU each, from the facts of the journal alone.
async fn counted(service: &TestService, until: UnixSeconds) -> BTreeMap<String, u64> {
    let store = &service.service.core.store;
    let placed = store.placed_pools().await.unwrap().remove(0);
    let (mut requests, mut running, mut sums) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut now = None::<i64>;
    let mut pass = |running: &BTreeMap<String, (String, u64)>, to: i64| {
        let seconds = now.map_or(0, |now| to - now) as u64;
        now = Some(to);
        for (organization, milli) in running.values() {
            *sums.entry(organization.clone()).or_insert(0) += milli * seconds;
        }
    };
    for entry in store.journal_entries(placed.id, 0).await.unwrap() {
        pass(&running, entry.at.get());
        let facts: Vec<Value> = serde_json::from_str(&entry.facts_json).unwrap();
        for fact in facts {
            let task = || fact["task"].as_str().unwrap().to_owned();
            match fact["fact"].as_str().unwrap() {
                "submitted" => {
                    let request = &fact["request"];
                    let milli = request["gpus_milli"].as_u64().unwrap() * request["pods"].as_u64().unwrap();
                    let organization = request["organization"].as_str().unwrap().to_owned();
                    requests.insert(request["task"].as_str().unwrap().to_owned(), (organization, milli));
                }
                "started" => {
                    for victim in fact["victims"].as_array().unwrap() {
                        running.remove(victim.as_str().unwrap());
                    }
                    running.insert(task(), requests[&task()].clone());
                }
                "ended" => drop(running.remove(&task())),
                _ => {}
            }
        }
    }
    pass(&running, until.get());
    sums
}

fn milli_gpu_s(gpu_hours: &Value) -> u64 {
    (number(gpu_hours) * 3_600_000.0).round() as u64
}

/// GPU time that organizations held, over statements.
fn held(statements: &[Value]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in statements.iter().flat_map(|one| one["organizations"].as_array().unwrap()) {
        let of = |used: &str| milli_gpu_s(&line["gpu_hours"][used]);
        let sum = of("hp") + of("guaranteed") + of("at_will") + of("handover");
        *sums.entry(line["organization"].as_str().unwrap().to_owned()).or_insert(0) += sum;
    }
    sums
}

/// The months in which the tests play.
async fn months(service: &TestService) -> Vec<Value> {
    let mut found = Vec::new();
    for month in ["2024-03", "2024-04"] {
        found.push(service.get(&format!("/v1/statement?month={month}")).await.expect(200));
    }
    found
}

fn of(body: Value, organization: &str) -> Value {
    let mut body = body;
    body["organization"] = organization.into();
    body
}

/// Nodes of eight GPUs: HP work of the usage leaves some of them.
const NODES: u32 = 60;

/// Tasks of two organizations over three days: promises that are kept and broken, evictions, work that is saved and lost. Answers how many
/// promises were sold and broken.
async fn days(service: &TestService) -> f64 {
    let mut broken = 0.0;
    for round in 0..3 {
        let name = |what: &str| format!("{what}-{round}");
        let sold = submit(service, &spot(&name("sweep"), 8.0, 1, Some(4))).await;
        let at_will = submit(service, &spot(&name("fill"), 8.0, 1, None)).await;
        assert_eq!(at_will["status"], "running", "{at_will}");
        service.pass_s(HOUR_S);
        if sold["status"] == "running" {
            let _ = tell(service, &name("sweep"), "checkpoint").await.expect(200);
            broken += 1.0;
        }
        service.pass_s(HOUR_S / 2);
        let train = submit(service, &of(hp(&name("train"), 8.0, NODES), "org-001")).await;
        assert_eq!(train["status"], "running", "{train}");
        service.pass_s(3 * HOUR_S + 7);
        let _ = tell(service, &name("train"), "finish").await.expect(200);
        service.pass_s(DAY_S - 5 * HOUR_S);
        service.renew().await;
        for task in ["sweep", "fill"] {
            let _ = tell(service, &name(task), "finish").await;
        }
    }
    broken
}

async fn a_statement_sums_to_the_gpu_seconds_of_the_journal_over_midnights_and_restarts(database: TestDatabase) {
    let service = placing(&database, NODES).await;
    let broken = days(&service).await;
    assert!(broken >= 1.0, "the first promise is sold");
    let now = service.service.core.clock.now();
    let before = months(&service).await;
    let expected = counted(&service, now).await;
    assert_eq!(held(&before), expected);
    assert_eq!(expected.len(), 2, "both organizations held GPUs");
    for pool in before.iter().flat_map(|one| one["pools"].as_array().unwrap()) {
        let idle = ["idle_offered", "idle_reserved", "drained"].map(|name| milli_gpu_s(&pool["pool_gpu_hours"][name]));
        let uses = ["hp", "guaranteed", "at_will", "handover"].map(|name| milli_gpu_s(&pool["gpu_hours"][name]));
        let capacity = milli_gpu_s(&pool["pool_gpu_hours"]["capacity"]);
        assert_eq!(idle.iter().chain(&uses).sum::<u64>(), capacity, "{pool}");
        assert_eq!(capacity, (number(&pool["accounted_hours"]) * 3_600.0).round() as u64 * u64::from(NODES) * 8_000);
    }
    let sum = |name: &str, field: &str| -> f64 {
        before.iter().flat_map(|one| one["pools"].as_array().unwrap()).map(|pool| number(&pool[name][field])).sum()
    };
    assert_eq!((sum("promises", "broken"), sum("gpu_hours", "broken")), (broken, broken * 32.0));
    let lost = broken * 4.0 + 3.0 * 12.0;
    assert_eq!(sum("gpu_hours", "lost_to_evictions"), lost, "half an hour of eight GPUs since the checkpoint, or all");
    let preempted = &before[0]["preemptions"][0];
    assert_eq!((&preempted["by"], &preempted["of"]), (&"org-001".into(), &"org-000".into()), "{preempted}");
    // Another service reads the same back, from a snapshot and the facts after it, and goes on.
    service.leave().await;
    let again = TestService::start_with(database.store().await, now, 5, None).await;
    assert_eq!(held(&months(&again).await), expected);
    again.renew().await;
    let _ = submit(&again, &of(hp("after", 4.0, 1), "org-001")).await;
    again.pass_s(2 * DAY_S + 11);
    let now = again.service.core.clock.now();
    assert_eq!(held(&months(&again).await), counted(&again, now).await);
    again.leave().await;
    let third = TestService::start(database.store().await, now).await;
    assert_eq!(held(&months(&third).await), counted(&third, now).await, "from a snapshot with accounts");
}

async fn a_statement_by_day_has_every_stored_day_and_the_present_one(database: TestDatabase) {
    let service = placing(&database, NODES).await;
    let _ = days(&service).await;
    let whole = service.get("/v1/statement?month=2024-03").await.expect(200);
    let daily = service.get("/v1/statement?month=2024-03&by=day").await.expect(200);
    let days: Vec<&str> = daily["pools"].as_array().unwrap().iter().map(|pool| pool["day"].as_str().unwrap()).collect();
    assert!(days.len() >= 3 && days.is_sorted(), "{days:?}");
    assert_eq!(held(std::slice::from_ref(&daily)), held(std::slice::from_ref(&whole)));
    assert_eq!(whole["sources"][0]["missing"], Value::Null);
    let csv = service.get("/v1/statement?month=2024-03&by=day&format=csv").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.expect(200).as_str().unwrap().to_owned();
    let lines = daily["organizations"].as_array().unwrap().len() + daily["pools"].as_array().unwrap().len();
    assert_eq!(text.lines().count(), 1 + lines, "{text}");
    let rows = service.get("/v1/statement?month=2024-03&format=opencost").await.expect(200);
    assert!(rows.as_str().unwrap().starts_with("Date,Namespace,Cluster,ControllerKind,ControllerName,"), "{rows}");
}

async fn a_statement_of_one_organization_has_no_row_of_another(database: TestDatabase) {
    let service = placing(&database, NODES).await;
    let _ = days(&service).await;
    let own = service.get("/v1/statement?month=2024-03&organization=org-001").await.expect(200);
    let lines = own["organizations"].as_array().unwrap();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["organization"] == "org-001"), "{own}");
    assert_eq!(own["pools"], json!([]));
}

async fn a_statement_of_a_pool_that_nobody_knows_is_refused_with_the_known_ones(database: TestDatabase) {
    let service = placing(&database, 1).await;
    put_node(&service, "n1", true).await;
    for query in ["cluster=mars", "gpu_model=H800", "month=2024-02&cluster=mars&gpu_model=H800"] {
        let refused = service.get(&format!("/v1/statement?{query}")).await.expect(404);
        assert_eq!(refused["code"], "unknown-pool", "{query}");
        assert!(!refused["known"].as_array().unwrap().is_empty(), "{query}: {refused}");
    }
}

async fn a_month_form_or_organization_that_is_none_is_refused_with_what_was_expected(database: TestDatabase) {
    let service = placing(&database, 1).await;
    put_node(&service, "n1", true).await;
    for (query, printed) in [
        ("month=march", "expected YYYY-MM"),
        ("by=week", "write day or month"),
        ("format=xlsx", "write json, csv or opencost"),
        ("format=opencost&by=month", "rows of opencost are by day"),
        ("organization=", "organization: "),
        ("mont=2024-03", "did you mean"),
    ] {
        let refused = service.get(&format!("/v1/statement?{query}")).await.expect(400);
        assert!(refused["detail"].as_str().unwrap().contains(printed), "{query}: {refused}");
    }
}
