//! A pool in the shadow decides, logs, and enforces nothing.

use super::*;
use tests::on_both_databases;

on_both_databases![in_the_shadow_tasks_are_decided_and_nothing_is_written_or_announced];

async fn in_the_shadow_tasks_are_decided_and_nothing_is_written_or_announced(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("real", 1.0, 1)).await;
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get(path).await.expect(200);
    settings["shadow"] = true.into();
    let settings = service.put(path, &settings).await.expect(200);
    let before = snapshot(&service).await;
    let written = service.service.core.store.open_journal(&pool(POOL)).await.unwrap();
    let first = submit(&service, &spot("first", 7.0, 1, None)).await;
    assert_eq!((&first["status"], &first["shadow"]), (&"running".into(), &true.into()), "{first}");
    let second = submit(&service, &hp("second", 7.0, 1)).await;
    assert_eq!(second["detail"]["victims"], json!(["first"]), "the shadow remembers: {second}");
    assert_eq!(task(&service, "first").await["status"], "waiting");
    let explained = service.get(&format!("/v1/tasks/first/explain?{OF_POOL}")).await.expect(200);
    assert_eq!((&explained["reason"]["code"], &explained["task"]["shadow"]), (&"rests".into(), &true.into()));
    assert_eq!(tell(&service, "second", "finish").await.expect(200)["status"], "finished");
    assert_eq!(snapshot(&service).await, before, "the pool itself has not changed");
    assert_eq!(service.service.core.store.open_journal(&pool(POOL)).await.unwrap(), written);
    assert_eq!(submit(&service, &hp("whole", 8.0, 1)).await["status"], "waiting", "a real task has one of the GPUs");
    assert_eq!(tell(&service, "real", "finish").await.expect(200)["shadow"], false, "a real task is a real one still");
    assert_eq!(task(&service, "whole").await["status"], "running", "the shadow knows that it has ended");
    let mut settings = settings;
    settings["shadow"] = false.into();
    let _ = service.put(path, &settings).await.expect(200);
    assert_eq!(service.get(&format!("/v1/tasks/first?{OF_POOL}")).await.status, 404, "what was in the shadow is gone");
    assert_eq!(submit(&service, &spot("first", 7.0, 1, None)).await["shadow"], false);
}
