use store::{Cluster, StoreError};
use tests::fixture::{capacity, cluster, hour, pool, put_clusters, usage};
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    a_cluster_keeps_its_place_when_its_calendar_changes,
    the_version_grows_only_when_a_row_changes,
    a_capacity_holds_until_the_next_row,
    an_import_that_fails_leaves_no_cluster_and_changes_none,
];

async fn a_cluster_keeps_its_place_when_its_calendar_changes(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["venus", "earth", "Zeta"]).await;
    let changed = Cluster { name: cluster("earth"), time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
    store.put_cluster(&changed).await.unwrap();
    assert_eq!(store.cluster(&changed.name).await.unwrap().as_ref(), Some(&changed));
    assert_eq!(store.cluster(&cluster("mars")).await.unwrap(), None);
    let names: Vec<_> = store.clusters().await.unwrap().into_iter().map(|cluster| cluster.name.to_string()).collect();
    assert_eq!(names, ["Zeta", "earth", "venus"], "by bytes, under any locale of the server");
}

async fn the_version_grows_only_when_a_row_changes(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let earth = cluster("earth");
    let rows = usage("earth:A100:x 2024-03-01T00 4");
    let mut versions = vec![store.usage_version(&earth).await.unwrap()];
    for rows in [&rows, &rows, &usage("earth:A100:x 2024-03-01T00 5"), &usage("mars:A100:x 2024-03-01T00 5")] {
        store.append(rows, &[]).await.unwrap();
        versions.push(store.usage_version(&earth).await.unwrap());
    }
    store.append(&[], &capacity("earth:A100 2024-03-01T00 8")).await.unwrap();
    versions.push(store.usage_version(&earth).await.unwrap());
    assert_eq!(versions, [0, 1, 1, 2, 2, 3], "inserted, unchanged, changed, another cluster's, capacity");
    let unknown = store.usage_version(&cluster("pluto")).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { what: "cluster", .. })), "{unknown:?}");
}

async fn a_capacity_holds_until_the_next_row(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let rows = capacity("earth:A100 2024-03-02T00 16\nearth:A100 2024-03-01T00 8\nearth:H800 2024-03-01T00 4");
    let report = store.append(&[], &rows).await.unwrap();
    assert_eq!((report.capacity.inserted, report.usage.inserted), (3, 0));
    let report = store.append(&[], &capacity("earth:A100 2024-03-01T00 9\nearth:H800 2024-03-01T00 4")).await.unwrap();
    assert_eq!((report.capacity.changed, report.capacity.unchanged), (1, 1));
    let mut seen = Vec::new();
    for text in ["2024-02-29T23", "2024-03-01T00", "2024-03-01T23", "2024-03-02T00", "2030-01-01T00"] {
        let row = store.capacity_at(&pool("earth:A100"), hour(text)).await.unwrap();
        seen.push(row.map(|row| row.capacity.milli() / 1_000));
    }
    assert_eq!(seen, [None, Some(9), Some(9), Some(16), Some(16)]);
    assert_eq!(store.capacities(&cluster("earth")).await.unwrap().len(), 3);
}

async fn an_import_that_fails_leaves_no_cluster_and_changes_none(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let of = |name: &str| Cluster { name: cluster(name), time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
    let clusters = [of("mars"), of("earth")];
    let rows = || Ok(usage("mars:A100:x 2024-03-01T00 4"));
    let fault = store.append_batches(&clusters, &mut [rows(), Err("as a test".to_owned())].into_iter(), &[]).await;
    assert!(matches!(fault, Err(StoreError::NoBatch { .. })), "{fault:?}");
    let zones =
        async || store.clusters().await.unwrap().into_iter().map(|cluster| cluster.time_zone).collect::<Vec<_>>();
    assert_eq!(zones().await, ["Asia/Shanghai"]);
    let report = store.append_batches(&clusters, &mut [rows()].into_iter(), &[]).await.unwrap();
    assert_eq!((report.usage.inserted, zones().await), (1, vec!["UTC".to_owned(); 2]));
}
