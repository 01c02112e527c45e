//! Against an API server that holds events to its rules.

use super::*;
use crate::tests::{client, config, eventually};
use fake_kubernetes::{FakeKubernetes, Rule};

async fn cluster() -> FakeKubernetes {
    let fake = FakeKubernetes::start().await;
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }));
    fake
}

#[tokio::test]
async fn an_event_is_of_its_object_and_repeated_ones_are_written_once() {
    let fake = cluster().await;
    let (_stop, stopped) = watch::channel(false);
    let events = Events::start(client(&fake).await, &config("a"), stopped);
    for _ in 0..3 {
        let note = Note::warning("EvictionAnnounced", "Announce", "é".repeat(NOTE_MOST));
        events.tell(Regarding::pod("team-a", "p", "u"), note);
    }
    let provider = Regarding {
        api_version: "kueue.x-k8s.io/v1alpha1".to_owned(),
        kind: "CapacityProvider",
        namespace: String::new(),
        ..Regarding::pod("", "headroom-spot", "")
    };
    events.tell(provider, Note::normal("QuotaLowered", "Lower", "a100-spot: 8 to 4".to_owned()));
    let written = || fake.list("events.events.k8s.io");
    eventually("two events", || written().len() == 2).await;
    let of_pod = written().into_iter().find(|one| one["regarding"]["kind"] == "Pod").unwrap();
    assert_eq!((&of_pod["type"], &of_pod["reason"]), (&json!("Warning"), &json!("EvictionAnnounced")));
    assert_eq!(of_pod["note"].as_str().unwrap().len(), NOTE_MOST);
    let of_cluster = written().into_iter().find(|one| one["regarding"]["kind"] != "Pod").unwrap();
    assert_eq!(of_cluster["metadata"]["namespace"], "default");
}

#[tokio::test]
async fn without_the_right_or_the_setting_nothing_is_held_up() {
    let fake = cluster().await;
    fake.deny(Rule::new("create", "events.k8s.io", "events"));
    let (_stop, stopped) = watch::channel(false);
    let events = Events::start(client(&fake).await, &config("a"), stopped.clone());
    let tell = |events: &Events, name: &str| {
        events.tell(Regarding::pod("team-a", name, "u"), Note::normal("Evicted", "Evict", String::new()));
    };
    (0..200).for_each(|number| tell(&events, &number.to_string()));
    let refused = || fake.requests().iter().filter(|one| one.status == 403).count();
    eventually("a burst is tried", || refused() == 20).await;
    let silent = Events::start(client(&fake).await, &Config { events: false, ..config("a") }, stopped);
    tell(&silent, "x");
    assert!(silent.0.is_none());
}
