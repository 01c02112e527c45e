//! Fair shares of spot.

use super::*;
use crate::service::tokens::{asked, token};
use store::Role;
use tests::on_both_databases;

on_both_databases![
    organizations_stand_by_level_and_one_above_its_share_learns_who_is_below,
    reads_of_standings_change_no_decision,
    a_token_of_an_organization_above_its_share_is_shown_nobody_that_is_below,
    a_pool_without_shares_says_so,
];

const SHARES: &str = "/v1/pools/demo:A100/shares";

/// A task at will of an organization.
fn at_will(id: &str, organization: &str, gpus: f64, pods: u32) -> Value {
    let mut body = spot(id, gpus, pods, None);
    body["organization"] = organization.into();
    body
}

async fn organizations_stand_by_level_and_one_above_its_share_learns_who_is_below(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["shares"] = json!({ "half_life_hours": 24, "weights": { "org-002": 3 } });
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    assert_eq!(submit(&service, &at_will("much", "org-001", 4.0, 3)).await["status"], "running", "none else waits");
    let wide = submit(&service, &at_will("wide", "org-002", 8.0, 1)).await;
    assert_eq!(wide["detail"]["waits"]["code"], "nothing_idle", "{wide}");
    let more = submit(&service, &at_will("more", "org-001", 2.0, 1)).await;
    assert_eq!(more["detail"]["waits"]["code"], "above_fair_share", "{more}");
    let why = service.get(&format!("/v1/tasks/more/explain?{OF_POOL}")).await.expect(200);
    let detail = why["reason"]["detail"].as_str().unwrap();
    assert!(detail.contains("org-002, with 0.00, waits for 8.000 GPUs with task wide"), "{why}");
    before_a_submission(&service).await;
    let listed = service.get(SHARES).await.expect(200);
    assert_eq!((&listed["half_life_hours"], &listed["organizations"].as_array().unwrap().len()), (&json!(24), &2));
    let [below, above] = [&listed["organizations"][0], &listed["organizations"][1]];
    assert_eq!((&below["organization"], &below["weight"]), (&json!("org-002"), &json!(3)), "the lowest level first");
    assert_eq!(below["waits_for"], json!({ "task": "wide", "gpus": 8.0 }));
    // All hold 12: by weight 9 and 3, of which the one with the weight of 3 asks for 8.
    let of_above =
        ["spot_gpus", "fair_gpus", "borrowed_gpus", "waiting_gpus"].map(|name| above[name].as_f64().unwrap());
    assert_eq!(of_above, [12.0, 4.0, 8.0, 2.0], "{above}");
    let level = above["level_gpu_hours"].as_f64().unwrap();
    assert!((12.0..12.1).contains(&level), "{above}");
    let (store, now) = (service.service.core.store.clone(), service.service.core.clock.now());
    service.leave().await;
    drop(service);
    let service = TestService::start(store, now.plus_s(600)).await;
    service.renew().await;
    let after = service.get(SHARES).await.expect(200);
    assert_eq!(after["organizations"][1]["borrowed_gpus"], 8.0, "{after}");
    let passed = after["organizations"][1]["level_gpu_hours"].as_f64().unwrap() - level;
    assert!((1.5..2.2).contains(&passed), "ten minutes of 12 GPUs: {after}");
    assert_eq!(tell(&service, "much", "finish").await.status, 200);
    assert_eq!(
        [task(&service, "wide").await["status"].clone(), task(&service, "more").await["status"].clone()],
        ["running"; 2]
    );
}

/// A task that is not submitted would wait for the same reason.
async fn before_a_submission(service: &TestService) {
    let mut asked = at_will("another", "org-001", 2.0, 1);
    assert_eq!(
        service.post("/v1/tasks/dry-run", &asked).await.expect(200)["detail"]["waits"]["code"],
        "above_fair_share"
    );
    let _ = asked.as_object_mut().unwrap().remove("id");
    let start = service.post("/v1/tasks/eta", &asked).await.expect(200);
    assert_eq!((&start["starts_now"], &start["waits"]["code"]), (&json!(false), &json!("above_fair_share")), "{start}");
    assert!(start["doubts"].to_string().contains("\"fair_shares\""), "{start}");
    let _ = asked.as_object_mut().unwrap().remove("class");
    let prices = service.post("/v1/tasks/prices", &asked).await.expect(200);
    let [at_will, of_hp] = ["spot", "hp"].map(|class| {
        let is_it = |price: &&Value| price["class"] == class && price["guarantee_hours"].is_null();
        prices["prices"].as_array().unwrap().iter().find(is_it).unwrap()
    });
    assert_eq!((&at_will["starts_now"], &of_hp["starts_now"]), (&json!(false), &json!(true)), "{prices}");
    assert!(at_will["doubts"].to_string().contains("\"fair_shares\""), "{prices}");
}

async fn a_token_of_an_organization_above_its_share_is_shown_nobody_that_is_below(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["shares"] = json!({ "half_life_hours": 24 });
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    for body in [at_will("much", "org-001", 4.0, 3), at_will("wide", "org-002", 8.0, 1)] {
        let _ = submit(&service, &body).await;
    }
    let vision = token(&service, 1, Role::Place, Some("org-001"), &[]).await;
    let mut body = at_will("more", "org-001", 2.0, 1);
    let mut answers = Vec::new();
    for path in ["/v1/tasks/dry-run", "/v1/tasks"] {
        answers.push(asked(&service, &vision, "post", path, Some(&body)).await.expect(200)["detail"]["waits"].clone());
    }
    for (path, key) in [("", "/detail/waits"), ("/explain", "/reason"), ("/eta", "/waits")] {
        let path = format!("/v1/tasks/more{path}?{OF_POOL}");
        answers.push(asked(&service, &vision, "get", &path, None).await.expect(200).pointer(key).unwrap().clone());
    }
    let _ = body.as_object_mut().unwrap().remove("id");
    answers.push(asked(&service, &vision, "post", "/v1/tasks/eta", Some(&body)).await.expect(200)["waits"].clone());
    for answer in answers {
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.starts_with("its organization is above its fair share, and another one"), "{answer}");
        assert!(!detail.contains("org-002") && !detail.contains("wide"), "{answer}");
    }
}

async fn a_pool_without_shares_says_so(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let answer = service.get(SHARES).await.expect(200);
    assert_eq!((&answer["half_life_hours"], &answer["organizations"]), (&Value::Null, &json!([])));
    assert_eq!(service.get("/v1/pools/demo:B200/shares").await.expect(404)["code"], "no-nodes");
}

async fn reads_of_standings_change_no_decision(database: TestDatabase) {
    let service = placing(&database, 3).await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["shares"] = json!({ "half_life_hours": 1, "weights": { "org-002": 2 } });
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    let (mut seed, mut above) = (5_u64, 0);
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for number in 0..120 {
        service.pass_s(draw(900) as i64);
        let body =
            at_will(&format!("task-{number}"), &format!("org-00{}", draw(3)), [1.0, 2.0, 8.0][draw(3) as usize], 1);
        let running = snapshot(&service).await["running"].clone();
        let running = running.as_array().unwrap();
        let (ends, which) = (draw(5) < 2, draw(1_000) as usize);
        match running.get(which % running.len().max(1)).filter(|_| ends) {
            Some(run) => {
                let id = run["request"]["task"].as_str().unwrap();
                let _ = tell(&service, id, "finish").await.expect(200);
            }
            None => above += u32::from(submit(&service, &body).await["detail"]["waits"]["code"] == "above_fair_share"),
        }
        // The pool has decided at this moment: what is read of it leaves it as it is.
        let decided = snapshot(&service).await;
        for _ in 0..2 {
            let _ = service.get(SHARES).await.expect(200);
        }
        assert_eq!(snapshot(&service).await, decided, "after step {number}");
    }
    assert!(above > 0, "some organization waited for its share");
}
