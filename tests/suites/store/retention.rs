use tests::fixture::{cluster, hour, loaded, put_clusters, usage};
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    retention_forgets_whole_months_and_the_rest_of_one,
    retention_leaves_a_cluster_alone_that_it_takes_nothing_from,
    a_month_that_was_forgotten_can_be_appended_again,
];

const TEXT: &str = "earth:A100:x 2023-11-15T00 1
                    earth:A100:x 2023-12-31T23 2
                    earth:A100:* 2024-01-01T12 3
                    earth:A100:x 2024-01-10T00 4
                    earth:A100:x 2024-02-01T00 5
                    mars:A100:x 2024-01-10T00 6";

async fn retention_forgets_whole_months_and_the_rest_of_one(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    store.append(&usage(TEXT), &[]).await.unwrap();
    assert_eq!(store.delete_usage_before(hour("2024-01-01T12")).await.unwrap(), 2);
    assert_eq!(store.delete_usage_before(hour("2024-01-01T12")).await.unwrap(), 0);
    let left = loaded(&*store, "earth", "2023-01-01T00", "2025-01-01T00").await;
    assert_eq!(left.lines().next(), Some("earth:A100:* 2024-01-01T12 3.000"));
    let range = store.usage_range(&cluster("earth")).await.unwrap();
    assert_eq!(range, Some((hour("2024-01-10T00"), hour("2024-02-01T00"))));
    assert_eq!(store.delete_usage_before(hour("2025-01-01T00")).await.unwrap(), 4);
    assert_eq!(store.usage_range(&cluster("earth")).await.unwrap(), None);
}

async fn retention_leaves_a_cluster_alone_that_it_takes_nothing_from(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    store.append(&usage(TEXT), &[]).await.unwrap();
    store.delete_usage_before(hour("2024-01-01T00")).await.unwrap();
    assert_eq!(store.usage_version(&cluster("earth")).await.unwrap(), 2, "its panel must be loaded again");
    assert_eq!(store.usage_version(&cluster("mars")).await.unwrap(), 1);
    assert_eq!(loaded(&*store, "mars", "2023-01-01T00", "2025-01-01T00").await.lines().count(), 1);
}

async fn a_month_that_was_forgotten_can_be_appended_again(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    store.append(&usage(TEXT), &[]).await.unwrap();
    store.delete_usage_before(hour("2024-02-01T00")).await.unwrap();
    let report = store.append(&usage(TEXT), &[]).await.unwrap();
    assert_eq!((report.usage.inserted, report.usage.unchanged), (5, 1));
    let range = store.usage_range(&cluster("earth")).await.unwrap();
    assert_eq!(range, Some((hour("2023-11-15T00"), hour("2024-02-01T00"))));
}
