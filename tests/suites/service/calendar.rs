//! A calendar that changes while the service runs.

use super::*;
use tests::on_both_databases;
use vocab::CalendarName;

on_both_databases![a_changed_calendar_is_noticed_at_the_next_renewal];

async fn day_off(service: &TestService) -> Value {
    service.renew().await;
    service.get("/v1/quota/explain?cluster=demo&gpu_model=A100&hours=1").await.expect(200)["calendar"]["day_off"]
        .clone()
}

/// The forecast begins at midnight, Friday 15 March 2024 in Shanghai.
async fn a_changed_calendar_is_noticed_at_the_next_renewal(database: TestDatabase) {
    let (service, store) = (serving(&database, 500).await, database.store().await);
    assert_eq!(day_off(&service).await, false);
    let acme = CalendarName::parse("acme").unwrap();
    let days = |kind: &str| format!("date,kind,name\n2024-03-15,{kind},x\n");
    store.put_calendar(&acme, &days("off")).await.unwrap();
    let demo = Cluster { name: cluster("demo"), time_zone: "Asia/Shanghai".to_owned(), calendar: "CN+acme".to_owned() };
    store.put_cluster(&demo).await.unwrap();
    assert_eq!(day_off(&service).await, true, "another calendar");
    store.put_calendar(&acme, &days("work")).await.unwrap();
    assert_eq!(day_off(&service).await, false, "the same calendar with other days");
}
