//! Evictions that are put off, where the pool asks for that.

use super::*;
use tests::on_both_databases;

on_both_databases![hp_waits_for_idle_gpus_where_the_policy_puts_evictions_off];

const SETTINGS: &str = "/v1/pools/demo:A100/settings";

async fn hp_waits_for_idle_gpus_where_the_policy_puts_evictions_off(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let mut settings = service.get(SETTINGS).await.expect(200);
    assert_eq!((&settings["policy"], &settings["load_s"]), (&"gfs".into(), &40.into()), "off unless asked for");
    settings["policy"] = "gfs-lazer".into();
    let _ = service.put(SETTINGS, &settings).await.expect(200);
    for id in ["one", "two"] {
        let _ = submit(&service, &spot(id, 8.0, 1, None)).await;
    }
    let waiting = submit(&service, &hp("first", 8.0, 1)).await;
    assert_eq!((&waiting["status"], &waiting["detail"]["waits"]["code"]), (&"waiting".into(), &"deferred".into()));
    let _ = submit(&service, &hp("second", 8.0, 1)).await;
    // GPUs that fall idle are taken, and no task is evicted for it.
    let _ = tell(&service, "one", "finish").await.expect(200);
    let started = task(&service, "first").await;
    assert_eq!((&started["status"], &started["detail"]["victims"]), (&"running".into(), &Value::Null));
    // A restart keeps the deferral; it ends by itself.
    let before = snapshot(&service).await;
    let deferral = |snapshot: &Value| snapshot["waiting"][0]["deferral"].clone();
    assert_eq!(deferral(&before)["holds"], json!(["two"]), "{before}");
    let again = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!(snapshot(&again).await, before);
    again.pass_s(100);
    again.renew().await;
    assert_eq!(task(&again, "second").await["status"], "running", "a hundred seconds are the most");
    assert_eq!(task(&again, "two").await["detail"]["cut"]["by"], "second");
    // Switched off again, HP does not wait.
    let mut settings = again.get(SETTINGS).await.expect(200);
    settings["policy"] = "gfs".into();
    let _ = again.put(SETTINGS, &settings).await.expect(200);
    let _ = tell(&again, "first", "finish").await.expect(200);
    let _ = submit(&again, &spot("three", 8.0, 1, None)).await;
    let third = submit(&again, &hp("third", 8.0, 1)).await;
    assert_eq!((&third["status"], &third["detail"]["victims"]), (&"running".into(), &json!(["three"])));
}
