//! A database of every version that there was becomes one of this version, with what was in it.

use sqlx::migrate::Migrator;
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::borrow::Cow;
use store::{Backend, OutcomeStore};
use tests::fixture::{cluster, loaded, pool};
use tests::{TestDatabase, on_both_databases, workspace_root};
use vocab::PlacedBy;

on_both_databases![
    a_database_of_every_version_is_upgraded_with_its_contents,
    pools_of_a_database_older_than_sides_stay_with_their_scheduler,
];

/// The contents that the first version could hold, as it wrote them.
const FIRST: &str = "
    INSERT INTO clusters (name, time_zone, calendar, usage_version, first_hour, last_hour, first_demand_hour, last_demand_hour)
        VALUES ('earth', 'UTC', 'none', 1, {hour}, {hour}, {hour}, {hour});
    INSERT INTO series ({series_id}cluster, gpu_model, organization, changed_at) VALUES ({one}'earth', 'A100', 'x', {hour});
    INSERT INTO usage (hour, demand_milli, series_id) VALUES ({hour}, 4000, 1);
    INSERT INTO nodes (cluster, id, gpu_model, gpus) VALUES ('earth', 'n0', 'A100', 8);
    INSERT INTO outcomes (event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, received_at)
        VALUES ('e1', 'earth', 'A100', 1, 'kept', {hour}, {hour});";

/// The additions of the fourth version.
const FOURTH: &str = "
    INSERT INTO placed_pools ({pool_id}cluster, gpu_model, seq, announced_seq) VALUES ({one}'earth', 'A100', 1, 0);
    INSERT INTO journal (pool_id, seq, at, facts_json, events_json) VALUES (1, 1, {hour}, '[]', '');
    INSERT INTO tasks (pool_id, id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib, submitted, status,
            updated, detail_json)
        VALUES (1, 'a', 'x', 'hp', 1000, 1, 0, 0, {hour}, 'running', {hour}, '{}');";

fn filled(sql: &str, backend: Backend) -> String {
    let (hour, is_postgres) = match backend {
        Backend::Postgres => ("'2024-03-01T00:00:00Z'", true),
        Backend::Sqlite => ("1709251200", false),
    };
    let name = |name: &'static str| if is_postgres { "" } else { name };
    sql.replace("{hour}", hour)
        .replace("{series_id}", name("id, "))
        .replace("{pool_id}", name("id, "))
        .replace("{one}", name("1, "))
}

/// The versions that there are.
async fn migrator(backend: Backend) -> Migrator {
    let folder = workspace_root().join("datasets/store/migrations").join(backend.to_string());
    Migrator::new(folder).await.unwrap()
}

/// Makes the database one of a version, as the program of that time did.
pub async fn at_version(database: &TestDatabase, version: i64) {
    let all = migrator(database.backend).await;
    let until = all.iter().filter(|one| one.version <= version).cloned().collect::<Vec<_>>();
    let migrator = Migrator { migrations: Cow::Owned(until), ..Migrator::DEFAULT };
    match database.backend {
        Backend::Postgres => {
            migrator.run(&mut PgConnection::connect(&database.url).await.unwrap()).await.unwrap();
            // The program made the partition of a month when its first row came.
            database
                .execute("CREATE TABLE usage_2024_03 PARTITION OF usage FOR VALUES FROM ('2024-03-01T00:00:00Z') TO ('2024-04-01T00:00:00Z')")
                .await;
        }
        Backend::Sqlite => {
            let url = format!("{}?mode=rwc", database.url);
            migrator.run(&mut SqliteConnection::connect(&url).await.unwrap()).await.unwrap();
        }
    }
    database.execute(&filled(FIRST, database.backend)).await;
    if version >= 4 {
        database.execute(&filled(FOURTH, database.backend)).await;
    }
}

async fn a_database_of_every_version_is_upgraded_with_its_contents(database: TestDatabase) {
    let versions: Vec<i64> = migrator(database.backend).await.iter().map(|one| one.version).collect();
    assert!(versions.len() >= 8, "{versions:?}");
    for &version in &versions {
        let old = tests::fresh_database(database.backend).await;
        at_version(&old, version).await;
        let store = old.store().await;
        let usage = loaded(&*store, "earth", "2024-01-01T00", "2025-01-01T00").await;
        assert_eq!(usage, "earth:A100:x 2024-03-01T00 4.000\n", "from version {version}");
        let nodes = store.nodes(&cluster("earth")).await.unwrap();
        assert_eq!((nodes.len(), nodes[0].gpus, nodes[0].drains), (1, 8, false));
        let outcome = OutcomeStore::newest_outcome(&*store, &pool("earth:A100")).await.unwrap().unwrap();
        assert_eq!(outcome.event_id.as_str(), "e1");
        let journal = store.open_journal(&pool("earth:A100")).await.unwrap();
        assert_eq!((journal.entries.len(), journal.placed.seq), if version >= 4 { (1, 1) } else { (0, 0) });
        let task = vocab::TaskId::parse("a").unwrap();
        let record = store.task_record(&pool("earth:A100"), &task).await.unwrap();
        assert_eq!(record.map(|record| record.status.as_str()), (version >= 4).then_some("running"));
        let applied = old.numbers("SELECT version FROM _sqlx_migrations ORDER BY version").await;
        assert_eq!(applied, versions);
        store.close().await;
    }
}

/// Pools as the ninth version knew them, besides one with a running task: a task that ended, then a report; a report, then a task
/// that ended; a report alone; nodes alone.
const NINTH: &str = "
    INSERT INTO placed_pools ({pool_id}cluster, gpu_model, seq, announced_seq) VALUES ({two}'earth', 'stray', 1, 0);
    INSERT INTO placed_pools ({pool_id}cluster, gpu_model, seq, announced_seq) VALUES ({three}'earth', 'ours', 1, 0);
    INSERT INTO tasks (pool_id, id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib, submitted, status,
            updated, detail_json)
        VALUES (2, 'a', 'x', 'hp', 1000, 1, 0, 0, {hour}, 'deleted', {hour}, '{}'),
               (3, 'a', 'x', 'hp', 1000, 1, 0, 0, {hour}, 'finished', {later}, '{}');
    INSERT INTO pool_states (cluster, gpu_model, capacity_milli, idle_milli, longest_quota_wait_s, as_of, received_at)
        VALUES ('earth', 'stray', 8000, 0, 0, {later}, {later}),
               ('earth', 'ours', 8000, 0, 0, {hour}, {hour}),
               ('earth', 'theirs', 8000, 0, 0, {hour}, {hour});
    INSERT INTO nodes (cluster, id, gpu_model, gpus) VALUES ('earth', 'n1', 'nobodys', 8);";

async fn pools_of_a_database_older_than_sides_stay_with_their_scheduler(database: TestDatabase) {
    at_version(&database, 9).await;
    let later = match database.backend {
        Backend::Postgres => "'2024-03-01T05:00:00Z'",
        Backend::Sqlite => "1709269200",
    };
    let number =
        |number: &str| if database.backend == Backend::Postgres { String::new() } else { format!("{number}, ") };
    let ninth = NINTH.replace("{later}", later).replace("{two}", &number("2")).replace("{three}", &number("3"));
    database.execute(&filled(&ninth, database.backend)).await;
    let store = database.store().await;
    for (model, side) in [
        ("A100", Some(PlacedBy::Headroom)),
        ("stray", Some(PlacedBy::External)),
        ("ours", Some(PlacedBy::Headroom)),
        ("theirs", Some(PlacedBy::External)),
        ("nobodys", None),
    ] {
        let placement = store.placement(&pool(&format!("earth:{model}"))).await.unwrap();
        assert_eq!(placement.as_ref().map(|placement| placement.placed_by), side, "{model}");
        assert!(placement.is_none_or(|placement| placement.since.is_none() && placement.set_by == "migration"));
    }
}
