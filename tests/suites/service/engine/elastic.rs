//! Elastic tasks: lent idle pods, asked to give them back, and obeyed by the example of a client.

use super::eviction::events;
use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::{Listening, on_both_databases};

on_both_databases![
    an_elastic_task_grows_on_idle_gpus_and_shrinks_before_it_dies,
    its_least_alone_is_promised_and_asks_for_quota,
    tasks_whose_pods_add_nothing_give_them_first,
    a_contradiction_is_refused_by_its_field,
    the_example_starts_and_ends_a_worker_for_each_pod,
];

fn elastic(id: &str, pods: u32, guarantee_hours: Option<u64>, how: Value) -> Value {
    let mut body = spot(id, 1.0, pods, guarantee_hours);
    body["elastic"] = how;
    body
}

fn pods(task: &Value) -> [usize; 2] {
    ["places", "lent"].map(|field| task["detail"]["run"][field].as_array().map_or(0, Vec::len))
}

async fn an_elastic_task_grows_on_idle_gpus_and_shrinks_before_it_dies(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let body = elastic("sweep", 8, None, json!({ "min_pods": 2 }));
    let started = submit(&service, &body).await;
    assert_eq!((pods(&started), &started["elastic"]["max_pods"]), ([2, 14], &16.into()), "{started}");
    assert_eq!(submit(&service, &body).await, started, "the same request again changes nothing");
    let other = elastic("sweep", 8, None, json!({ "min_pods": 3 }));
    assert_eq!(service.post("/v1/tasks", &other).await.status, 422, "another one under the same name is refused");
    let explained = service.get(&format!("/v1/tasks/sweep/explain?{OF_POOL}")).await.expect(200);
    let detail = explained["reason"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("running on 2 places and 14 lent ones since "), "{detail}");
    assert_eq!(explained["idle_gpus"], 14.0, "what is lent is idle");
    service.pass_s(100);
    let now = end().plus_s(160);
    let urgent = submit(&service, &hp("urgent", 8.0, 1)).await;
    assert_eq!(urgent["detail"]["run"]["starts"], now.plus_s(30).to_string(), "when the pods have gone");
    assert_eq!(urgent["detail"]["victims"], Value::Null, "nobody was evicted");
    assert_eq!(pods(&task(&service, "sweep").await), [2, 6]);
    let received: Vec<Value> = events(&service, Some("0.0"), 5).await.into_iter().map(|(_, event)| event).collect();
    let of = |kind: &str| {
        received.iter().find(|event| event["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {received:?}"))
    };
    assert_eq!((&of("grown")["task"], &of("grown")["pods"]), (&"sweep".into(), &16.into()));
    let shrunk = of("shrunk");
    assert_eq!((&shrunk["task"], &shrunk["by"], &shrunk["pods"]), (&"sweep".into(), &"urgent".into(), &8.into()));
    assert_eq!(shrunk["deadline"], now.plus_s(30).to_string());
    assert_eq!(shrunk["places"].as_array().unwrap().len(), 8, "{shrunk}");
    // A restart knows what is lent, and goes on from there.
    let before = snapshot(&service).await;
    let again = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!(snapshot(&again).await, before);
    again.pass_s(60);
    let _ = tell(&again, "urgent", "finish").await.expect(200);
    assert_eq!(pods(&task(&again, "sweep").await), [2, 14]);
    // It dies where even its least is asked for.
    let _ = submit(&again, &hp("all", 8.0, 2)).await;
    let cut = task(&again, "sweep").await;
    assert_eq!((&cut["status"], &cut["detail"]["cut"]["code"]), (&"waiting".into(), &"evicted".into()));
}

async fn its_least_alone_is_promised_and_asks_for_quota(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let body = elastic("sweep", 8, Some(4), json!({ "min_pods": 2 }));
    assert_eq!(pods(&submit(&service, &body).await), [2, 14]);
    let explained = service.get(&format!("/v1/tasks/sweep/explain?{OF_POOL}")).await.expect(200);
    assert_eq!((&explained["promises"][0]["promised_gpus"], &explained["idle_gpus"]), (&2.0.into(), &478.0.into()));
}

async fn tasks_whose_pods_add_nothing_give_them_first(database: TestDatabase) {
    let service = placing(&database, 1).await;
    for id in ["flat", "steep"] {
        let body = elastic(id, 2, None, json!({ "min_pods": 1, "max_pods": 4 }));
        let _ = submit(&service, &body).await;
        service.pass_s(61);
        service.renew().await;
    }
    let speed = async |id: &str, body: Value| service.post(&format!("/v1/tasks/{id}/speed?{OF_POOL}"), &body).await;
    for (pods, speed_of) in [(1, 100.0), (4, 101.5)] {
        let _ = speed("flat", json!({ "pods": pods, "speed": speed_of })).await.expect(200);
        let _ = speed("steep", json!({ "pods": pods, "speed": 97.0 * f64::from(pods) })).await.expect(200);
    }
    let _ = submit(&service, &hp("urgent", 2.0, 1)).await;
    assert_eq!([pods(&task(&service, "flat").await), pods(&task(&service, "steep").await)], [[1, 1], [1, 3]]);
    let printed = speed("flat", json!({ "pods": 0, "speed": 1 })).await.expect(400);
    assert_eq!(printed["errors"][0]["pointer"], "/pods", "{printed}");
    let printed = speed("flat", json!({ "pods": 1, "speed": -1 })).await.expect(400);
    assert_eq!(printed["errors"][0]["pointer"], "/speed", "{printed}");
    let printed = speed("urgent", json!({ "pods": 1, "speed": 1 })).await.expect(409);
    assert!(printed["detail"].as_str().unwrap().starts_with("task urgent is not elastic"), "{printed}");
    // Measured speeds are no part of the request, and outlive a restart.
    let before = snapshot(&service).await;
    let again = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!(snapshot(&again).await, before);
    let body = elastic("flat", 2, None, json!({ "min_pods": 1, "max_pods": 4 }));
    assert_eq!(submit(&again, &body).await["status"], "running", "the same request again is answered as it stands");
}

async fn a_contradiction_is_refused_by_its_field(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let mut of_hp = hp("hp", 1.0, 2);
    of_hp["elastic"] = json!({ "min_pods": 1 });
    let mut shares = elastic("shares", 2, None, json!({ "min_pods": 1 }));
    shares["gpus_per_pod"] = 0.5.into();
    let mut aligned = elastic("aligned", 2, None, json!({ "min_pods": 1 }));
    aligned["affinity"] = json!({ "domain": "socket" });
    let cases = [
        (of_hp, "/elastic", "only spot tasks are elastic"),
        (shares, "/elastic", "pods of an elastic task need whole GPUs"),
        (aligned, "/elastic", "an elastic task cannot ask for an affinity"),
        (elastic("a", 2, None, json!({ "min_pods": 3 })), "/elastic/min_pods", "3 to 4 pods, and 2 asked for"),
        (elastic("b", 2, None, json!({ "min_pods": 1, "max_pods": 1 })), "/elastic/min_pods", "1 to 1 pods"),
        (elastic("c", 2, None, json!({ "min_pods": 1, "speeds": [1.0] })), "/elastic/speeds", "there are 1 speeds for"),
        (elastic("d", 2, None, json!({ "min_pods": 1, "speeds": [1, 9] })), "/elastic/speeds", "the speed on 2 pods"),
    ];
    for (body, pointer, printed) in cases {
        let refused = service.post("/v1/tasks", &body).await.expect(400);
        let fault = &refused["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{refused}");
        assert!(fault["detail"].as_str().unwrap().starts_with(printed), "{refused}");
    }
}

/// The example of a client, and its output so far.
struct Example {
    child: Child,
    printed: Arc<Mutex<Vec<String>>>,
}

impl Example {
    fn start(arguments: &[&str]) -> Self {
        let here = std::env::current_exe().unwrap();
        let program = here.ancestors().nth(2).unwrap().join("examples/elastic_client");
        assert!(program.exists(), "{} is not built: run `make test`", program.display());
        let mut child =
            Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let printed = Arc::new(Mutex::new(Vec::new()));
        let heard = printed.clone();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line)));
        Self { child, printed }
    }

    /// Waits until so many lines of its output begin so.
    fn has_printed(&self, begin: &str, count: usize) {
        for _ in 0..300 {
            let printed = self.printed.lock().unwrap().iter().filter(|line| line.starts_with(begin)).count();
            assert!(printed <= count, "{begin} more than {count} times: {:?}", self.printed.lock().unwrap());
            if printed == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{begin} {count} times: {:?}", self.printed.lock().unwrap())
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It has ended by itself, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn the_example_starts_and_ends_a_worker_for_each_pod(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    let node: wire::NodeBody =
        serde_json::from_value(json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 })).unwrap();
    store.put_node(&node.parse(vocab::NodeId::parse("n0").unwrap()).unwrap()).await.unwrap();
    let service = Listening::start(&["--database", &database.url]);
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get_until(path, |status, _| status == 200);
    (settings["grace_s"], settings["resize_rest_s"]) = (3.into(), 1.into());
    assert_eq!(service.send("PUT", path, Some(&settings)).unwrap().0, 200);
    let api = format!("http://{}", service.address);
    let mut example = Example::start(
        &[
            &["--api", api.as_str(), "--cluster", "demo", "--gpu-model", "A100", "--id", "sweep", "--pods", "4"][..],
            &["--", "sh", "-c", "cat > /dev/null"],
        ]
        .concat(),
    );
    example.has_printed("starts n0:", 8);
    let _ = service.send("POST", "/v1/tasks", Some(&hp("urgent", 6.0, 1))).unwrap();
    example.has_printed("stopped n0:", 6);
    assert_eq!(pods(&service.get(&format!("/v1/tasks/sweep?{OF_POOL}")).1), [1, 1]);
    let _ = service.send("POST", &format!("/v1/tasks/urgent/finish?{OF_POOL}"), None).unwrap();
    example.has_printed("starts n0:", 14);
    let _ = service.send("POST", "/v1/tasks", Some(&hp("all", 8.0, 1))).unwrap();
    example.has_printed("stopped n0:", 14);
    let _ = service.send("DELETE", &format!("/v1/tasks/sweep?{OF_POOL}"), None).unwrap();
    assert!(example.child.wait().unwrap().success());
    assert_eq!(service.stop().code, 0);
}
