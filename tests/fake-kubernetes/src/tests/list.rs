use super::get;
use crate::{FakeKubernetes, Size};

#[tokio::test]
async fn pages_are_of_one_moment_until_history_is_forgotten() {
    let fake = FakeKubernetes::start().await;
    fake.load(&Size { nodes: 3, pods: 25, ..Size::default() });
    let (_, first) = get(&fake, "/api/v1/pods?limit=10").await;
    assert_eq!(first["items"].as_array().unwrap().len(), 10);
    assert_eq!(first["metadata"]["remainingItemCount"], 15);
    assert!(first["items"][0].get("kind").is_none(), "entries of built-in kinds do not say their kind");
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let last = fake.list("pods").pop().unwrap();
    let word = |field: &str| last["metadata"][field].as_str().unwrap().to_owned();
    assert!(fake.delete("pods", &word("namespace"), &word("name")));
    let (_, rest) = get(&fake, &format!("/api/v1/pods?limit=500&continue={token}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 15, "what was deleted meanwhile is still of that moment");
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    fake.compact();
    assert_eq!(get(&fake, &format!("/api/v1/pods?continue={token}")).await.0, 410);
}

#[tokio::test]
async fn lists_select_by_namespace_labels_and_fields() {
    let fake = FakeKubernetes::start().await;
    fake.load(&Size { nodes: 5, pods: 20, namespaces: 2, ..Size::default() });
    for (query, count) in [
        ("/api/v1/namespaces/team-000/pods", 10),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-00001", 4),
        ("/api/v1/pods?fieldSelector=status.phase!=Running", 0),
        ("/api/v1/pods?labelSelector=app%20in%20(app-1,app-2)", 2),
        ("/api/v1/nodes?labelSelector=nvidia.com/gpu.product%3DNVIDIA-H800", 2),
    ] {
        assert_eq!(get(&fake, query).await.1["items"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(get(&fake, "/api/v1/pods?fieldSelector=spec.nonsense=1").await.0, 400);
}

#[tokio::test]
async fn a_made_pod_is_as_large_as_a_real_one() {
    let size = crate::pod(7, &Size::default()).to_string().len();
    assert!((3_000..6_000).contains(&size), "{size} bytes");
}

#[tokio::test]
async fn pods_made_by_the_thousand_are_those_made_one_by_one() {
    let fake = FakeKubernetes::start().await;
    let size = Size { nodes: 3, pods: 9, ..Size::default() };
    fake.load(&size);
    let mut loaded = fake.list("pods");
    loaded.sort_by_key(|pod| pod["metadata"]["name"].to_string());
    for (at, pod) in loaded.iter_mut().enumerate() {
        assert!(pod["metadata"].as_object_mut().unwrap().remove("resourceVersion").is_some());
        assert_eq!(*pod, crate::pod(at, &size));
    }
}
