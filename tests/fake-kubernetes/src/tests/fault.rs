use super::{ask, get, post};
use crate::{FakeKubernetes, Fault, Rule, What};
use serde_json::{Value, json};

#[tokio::test]
async fn a_fault_meets_as_many_requests_as_it_is_for() {
    let fake = FakeKubernetes::start().await;
    fake.fault(Fault::new(What::Throttle(7), 1).verb("list").resource("nodes"));
    assert_eq!(get(&fake, "/api/v1/pods").await.0, 200);
    let (status, head, _) = ask(&fake, "GET", "/api/v1/nodes", "", "").await;
    assert_eq!(status, 429);
    assert!(head.to_lowercase().contains("retry-after: 7"), "{head}");
    assert_eq!(get(&fake, "/api/v1/nodes").await.0, 200);
    fake.fault(Fault::new(What::Drop, 1));
    assert_eq!(get(&fake, "/api/v1/nodes").await.0, 0);
}

#[tokio::test]
async fn a_write_can_be_done_and_its_answer_lost() {
    let fake = FakeKubernetes::start().await;
    fake.fault(Fault::new(What::FailAfter(503), 1).verb("create"));
    let map = json!({ "metadata": { "name": "m" } });
    assert_eq!(post(&fake, "/api/v1/namespaces/default/configmaps", &map).await.0, 503);
    assert!(fake.get("configmaps", "default", "m").is_some());
}

#[tokio::test]
async fn a_paused_server_answers_when_it_is_resumed() {
    let fake = FakeKubernetes::start().await;
    fake.pause();
    let asked = get(&fake, "/api/v1/nodes");
    tokio::pin!(asked);
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), &mut asked).await;
    assert!(early.is_err(), "nothing is answered while it is paused");
    fake.resume();
    assert_eq!(asked.await.0, 200);
}

#[tokio::test]
async fn rules_allow_and_deny_and_reviews_report_them() {
    let fake = FakeKubernetes::start().await;
    fake.allow_only(vec![Rule::new("get,list", "", "nodes,pods"), Rule::new("create", "authorization.k8s.io", "*")]);
    assert_eq!(get(&fake, "/api/v1/nodes").await.0, 200);
    let (status, reply) = get(&fake, "/api/v1/namespaces/default/secrets").await;
    assert_eq!(status, 403);
    assert!(reply["message"].as_str().unwrap().contains("cannot list resource \"secrets\""), "{reply}");
    for (verb, allowed) in [("list", true), ("delete", false)] {
        let attributes = json!({ "verb": verb, "resource": "pods" });
        let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes } });
        let (status, reply) = post(&fake, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
        assert_eq!((status, &reply["status"]["allowed"]), (201, &json!(allowed)));
    }
    assert!(fake.writes().is_empty(), "a question is no write");
    fake.deny(Rule::new("*", "", "nodes"));
    assert_eq!(get(&fake, "/api/v1/nodes").await.0, 403);
}

#[tokio::test]
async fn another_process_steers_by_http() {
    let fake = FakeKubernetes::start().await;
    let fault = json!({ "what": { "fail": 503 }, "times": 1, "resource": "nodes" });
    assert_eq!(post(&fake, "/fake/faults", &fault).await.0, 200);
    assert_eq!(get(&fake, "/api/v1/nodes").await.0, 503);
    assert_eq!(post(&fake, "/fake/kueue", &Value::Null).await.0, 200);
    assert_eq!(get(&fake, "/apis/kueue.x-k8s.io/v1beta2/workloads").await.0, 200);
    let (_, reply) = get(&fake, "/fake/requests").await;
    assert_eq!(reply[0]["status"], 503);
    assert_eq!(reply.as_array().unwrap().len(), 2, "requests under /fake/ are not logged");
}
