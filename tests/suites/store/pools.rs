use std::collections::BTreeMap;
use store::{AuditRecord, PoolPlacement, StoreError};
use tests::fixture::{at, cluster, gpus, hours, pool, put_clusters};
use tests::{Backend, TestDatabase, on_both_databases};
use vocab::{HpJob, Node, NodeId, Organization, PlacedBy, PoolState, TaskId};

on_both_databases![
    an_older_state_does_not_replace_a_newer_one,
    reported_jobs_are_those_of_the_state_that_they_came_with,
    a_stored_state_from_the_future_does_not_block_a_correct_one,
    the_side_of_a_pool_is_decided_once_and_replaced_with_its_settings,
    settings_are_replaced_only_from_their_last_version,
    two_writers_of_the_same_settings_do_not_both_win,
    a_node_is_known_by_its_name_in_its_cluster,
    rows_of_an_unknown_cluster_are_refused,
];

fn state(as_of: i64, idle: &str, spot: &[(u64, &str)]) -> PoolState {
    PoolState {
        pool: pool("earth:A100"),
        capacity: gpus("16"),
        idle: gpus(idle),
        spot_by_guarantee: spot.iter().map(|&(h, amount)| (hours(h), gpus(amount))).collect::<BTreeMap<_, _>>(),
        longest_quota_wait_s: 3_600,
        as_of: at(as_of),
    }
}

async fn an_older_state_does_not_replace_a_newer_one(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (old, new) = (state(100, "3", &[(1, "2"), (4, "0.25")]), state(101, "5", &[(2, "1.5")]));
    assert!(store.put_pool_state(&old, None, at(110)).await.unwrap());
    assert_eq!(store.pool_state(&old.pool).await.unwrap().map(|received| received.state), Some(old.clone()));
    assert!(store.put_pool_state(&new, None, at(111)).await.unwrap());
    assert!(!store.put_pool_state(&old, None, at(112)).await.unwrap());
    let received = store.pool_state(&new.pool).await.unwrap().unwrap();
    assert_eq!((received.state, received.received_at), (new.clone(), at(111)));
    assert_eq!(store.pool_states().await.unwrap(), BTreeMap::from([(new.pool.clone(), new.clone())]));
    assert!(store.put_pool_state(&state(101, "6", &[]), None, at(113)).await.unwrap(), "the same instant, corrected");
    assert_eq!(store.pool_state(&pool("earth:H800")).await.unwrap(), None);
}

async fn reported_jobs_are_those_of_the_state_that_they_came_with(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let job = |number: i64, started: Option<i64>| HpJob {
        task: TaskId::parse(&format!("team a/job-{number}")).unwrap(),
        organization: Organization::parse("vision").unwrap(),
        gpus_milli: 8_500,
        submitted: at(number),
        started: started.map(at),
    };
    let known = async || store.pool_state(&pool("earth:A100")).await.unwrap().unwrap().hp_jobs;
    let jobs = [job(1, Some(7)), job(2, None)];
    assert!(store.put_pool_state(&state(100, "3", &[]), Some(&jobs), at(110)).await.unwrap());
    assert_eq!(known().await, Some(jobs.to_vec()));
    // As a program does that knows no jobs.
    let later = if database.backend == Backend::Postgres { "to_timestamp(101)" } else { "101" };
    database.execute(&format!("UPDATE pool_states SET as_of = {later}")).await;
    assert_eq!(known().await, None);
    assert!(store.put_pool_state(&state(102, "3", &[]), Some(&[]), at(112)).await.unwrap());
    assert_eq!(known().await, Some(Vec::new()));
    assert!(store.put_pool_state(&state(103, "3", &[]), None, at(113)).await.unwrap());
    assert_eq!(known().await, None);
}

async fn a_stored_state_from_the_future_does_not_block_a_correct_one(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    assert!(store.put_pool_state(&state(5_000, "3", &[]), None, at(110)).await.unwrap(), "as an older program took it");
    let correct = state(111, "5", &[(2, "1.5")]);
    assert!(store.put_pool_state(&correct, None, at(112)).await.unwrap());
    assert_eq!(store.pool_state(&correct.pool).await.unwrap().map(|received| received.state), Some(correct));
}

fn audit(seconds: i64) -> AuditRecord {
    AuditRecord {
        at: at(seconds),
        actor: "ops".to_owned(),
        token_id: None,
        action: "PUT".to_owned(),
        target: "/".to_owned(),
        status: 200,
        detail_json: None,
    }
}

async fn the_side_of_a_pool_is_decided_once_and_replaced_with_its_settings(database: TestDatabase) {
    let (store, other) = (database.store().await, database.store().await);
    put_clusters(&*store, &["earth"]).await;
    let pool = pool("earth:A100");
    assert_eq!(store.placement(&pool).await.unwrap(), None);
    let (ours, theirs) = (audit(1), audit(2));
    let decided = tokio::join!(
        store.decide_placement(&pool, PlacedBy::Headroom, &ours),
        other.decide_placement(&pool, PlacedBy::External, &theirs)
    );
    let decided = decided.0.unwrap();
    assert_eq!(store.placement(&pool).await.unwrap(), Some(decided.clone()), "two first uses, one decision");
    assert_eq!(store.sides().await.unwrap(), BTreeMap::from([(pool.clone(), decided.placed_by)]));
    let audited = async || store.audit(at(0), at(100), 10).await.unwrap().len();
    assert_eq!(audited().await, 1);
    let changed = PoolPlacement { placed_by: PlacedBy::External, since: Some(at(3)), set_by: "ops".to_owned() };
    let changing = store.audited(audit(3));
    let fault = changing.put_settings_and_placement(&pool, "{}", Some(4), Some(&changed)).await.unwrap_err();
    assert!(matches!(fault, StoreError::Conflict { .. }), "{fault}");
    assert_eq!((store.placement(&pool).await.unwrap(), audited().await), (Some(decided), 1), "whole or not at all");
    assert_eq!(changing.put_settings_and_placement(&pool, "{}", None, Some(&changed)).await.unwrap(), 1);
    assert_eq!((store.placement(&pool).await.unwrap(), audited().await), (Some(changed), 2));
    let elsewhere = tests::fixture::pool("mars:A100");
    let fault = store.decide_placement(&elsewhere, PlacedBy::Headroom, &ours).await.unwrap_err();
    assert!(matches!(fault, StoreError::NotFound { .. }), "{fault}");
}

async fn settings_are_replaced_only_from_their_last_version(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let pool = pool("earth:A100");
    assert_eq!(store.settings(&pool).await.unwrap(), None);
    let too_early = store.put_settings(&pool, "{}", Some(1)).await;
    assert!(matches!(too_early, Err(StoreError::Conflict { .. })), "{too_early:?}");
    assert_eq!(store.put_settings(&pool, "{}", None).await.unwrap(), 1);
    assert_eq!(store.put_settings(&pool, "{ \"p\": 0.9 }", Some(1)).await.unwrap(), 2);
    for expected in [None, Some(1), Some(3)] {
        let fault = store.put_settings(&pool, "late", expected).await.unwrap_err();
        assert!(matches!(fault, StoreError::Conflict { .. }), "{fault}");
    }
    let stored = store.settings(&pool).await.unwrap().unwrap();
    assert_eq!((stored.version, &*stored.settings_json), (2, "{ \"p\": 0.9 }"));
}

async fn two_writers_of_the_same_settings_do_not_both_win(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let pool = pool("earth:A100");
    let first = tokio::join!(one.put_settings(&pool, "a", None), other.put_settings(&pool, "b", None));
    assert_eq!(usize::from(first.0.is_ok()) + usize::from(first.1.is_ok()), 1);
    let second = tokio::join!(one.put_settings(&pool, "c", Some(1)), other.put_settings(&pool, "d", Some(1)));
    let texts = [second.0.is_ok().then_some("c"), second.1.is_ok().then_some("d")];
    let stored = one.settings(&pool).await.unwrap().unwrap();
    assert_eq!(texts.into_iter().flatten().collect::<Vec<_>>(), [stored.settings_json]);
    assert_eq!(stored.version, 2);
}

fn node(pool_text: &str, id: &str, gpus: u32, cpu_milli: Option<u64>) -> Node {
    Node {
        id: NodeId::parse(id).unwrap(),
        pool: pool(pool_text),
        gpus,
        cpu_milli,
        memory_mib: cpu_milli,
        drains: gpus == 4,
        topology: (gpus == 8).then(|| std::sync::Arc::new(vocab::Topology::preset("a100-8").unwrap())),
    }
}

async fn a_node_is_known_by_its_name_in_its_cluster(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let moved = node("earth:H800", "n2", 4, None);
    for node in [&node("earth:A100", "n2", 8, Some(96_000)), &node("mars:A100", "n2", 2, None), &moved] {
        store.put_node(node).await.unwrap();
    }
    let first = node("earth:A100", "n1", 8, Some(1));
    store.put_node(&first).await.unwrap();
    assert_eq!(store.nodes(&cluster("earth")).await.unwrap(), [first, moved.clone()]);
    assert_eq!(store.pool_nodes(&pool("earth:H800")).await.unwrap(), std::slice::from_ref(&moved));
    store.delete_node(&cluster("earth"), &moved.id).await.unwrap();
    let fault = store.delete_node(&cluster("earth"), &moved.id).await.unwrap_err();
    assert_eq!(fault.to_string(), "there is no node earth:n2");
    assert_eq!(store.nodes(&cluster("mars")).await.unwrap().len(), 1);
}

async fn rows_of_an_unknown_cluster_are_refused(database: TestDatabase) {
    let store = database.store().await;
    let faults = [
        store.put_node(&node("earth:A100", "n1", 8, None)).await.unwrap_err(),
        store.put_settings(&pool("earth:A100"), "{}", None).await.unwrap_err(),
        store.put_pool_state(&state(100, "3", &[]), None, at(110)).await.unwrap_err(),
    ];
    for fault in faults {
        assert_eq!(fault.to_string(), "there is no cluster earth");
        assert!(!fault.is_retryable());
    }
}
