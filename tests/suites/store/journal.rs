use store::{JournalEntry, PoolSnapshot, StoreError, TaskRecord, TaskStatus, Turn};
use tests::fixture::{at, gpus, hours, loaded, outcomes, pool, put_clusters, usage};
use tests::{TestDatabase, on_both_databases};
use vocab::{Organization, TaskClass, TaskId};

on_both_databases![
    a_turn_is_read_back_as_it_was_written,
    a_turn_is_written_whole_or_not_at_all,
    an_append_names_the_last_entry,
    a_snapshot_stands_for_the_entries_before_it,
    a_snapshot_whose_text_has_changed_is_refused_as_damaged,
    events_are_read_on_from_where_they_were_left,
    a_journal_hangs_on_its_cluster,
];

fn entry(seq: u64, events_json: &str) -> JournalEntry {
    let facts_json = format!("[\"fact {seq}\"]");
    JournalEntry { seq, at: at(1_000 + seq as i64), facts_json, events_json: events_json.to_owned() }
}

fn turn(seqs: impl IntoIterator<Item = u64>) -> Turn {
    Turn { entries: seqs.into_iter().map(|seq| entry(seq, "")).collect(), ..Turn::default() }
}

fn task(id: &str, status: TaskStatus) -> TaskRecord {
    TaskRecord {
        id: TaskId::parse(id).unwrap(),
        organization: Organization::parse("vision").unwrap(),
        class: TaskClass::Spot,
        gpus_per_pod: gpus("0.25"),
        pods: 3,
        cpu_milli: 1_500,
        memory_mib: 64,
        guarantee_hours: Some(hours(4)),
        affinity: vocab::Affinity::parse("socket:guaranteed"),
        elastic_json: Some("{}".to_owned()),
        submitted: at(900),
        status,
        updated: at(1_000),
        detail_json: format!("{{\"of\": \"{id}\"}}"),
    }
}

async fn a_turn_is_read_back_as_it_was_written(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let pool = pool("earth:A100");
    let empty = store.open_journal(&pool).await.unwrap();
    assert_eq!((empty.placed.seq, empty.entries.len(), &empty.snapshot), (0, 0, &None));
    let (waits, runs) = (task("a", TaskStatus::Waiting), task("b", TaskStatus::Running));
    let written = Turn {
        entries: vec![entry(1, ""), entry(2, "[1]")],
        tasks: vec![
            waits.clone(),
            TaskRecord {
                guarantee_hours: None,
                affinity: None,
                elastic_json: None,
                class: TaskClass::Hp,
                ..runs.clone()
            },
        ],
        outcomes: outcomes("e1 earth:A100 kept", 950),
        usage: usage("earth:A100:vision 2024-03-01T00 4"),
        ..Turn::default()
    };
    store.append_turn(&empty.placed, 0, &written, at(1_000)).await.unwrap();
    let read = store.open_journal(&pool).await.unwrap();
    assert_eq!((read.placed.seq, &read.entries), (2, &written.entries));
    assert_eq!(store.task_records(read.placed.id, &[runs.id, waits.id.clone()]).await.unwrap(), written.tasks);
    let finished = TaskRecord { status: TaskStatus::Finished, updated: at(2_000), ..waits };
    let later = Turn { tasks: vec![finished.clone()], ..Turn::default() };
    store.append_turn(&read.placed, 2, &later, at(2_000)).await.unwrap();
    assert_eq!(store.task_record(&pool, &finished.id).await.unwrap(), Some(finished));
    assert_eq!(store.newest_outcome(&pool).await.unwrap().as_ref(), written.outcomes.first());
    assert_eq!(
        loaded(&*store, "earth", "2024-03-01T00", "2024-03-01T01").await,
        "earth:A100:vision 2024-03-01T00 4.000\n"
    );
    assert_eq!(store.placed_pools().await.unwrap(), [store.open_journal(&pool).await.unwrap().placed]);
}

async fn a_turn_is_written_whole_or_not_at_all(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let placed = store.open_journal(&pool("earth:A100")).await.unwrap().placed;
    let twice = Turn {
        entries: vec![entry(1, ""), entry(1, "")],
        tasks: vec![task("a", TaskStatus::Running)],
        outcomes: outcomes("e1 earth:A100 broken", 950),
        usage: usage("earth:A100:vision 2024-03-01T00 4"),
        ..Turn::default()
    };
    let _ = store.append_turn(&placed, 0, &twice, at(1_000)).await.unwrap_err();
    let read = store.open_journal(&placed.pool).await.unwrap();
    assert_eq!((read.placed.seq, read.entries.len()), (0, 0));
    assert_eq!(store.task_record(&placed.pool, &TaskId::parse("a").unwrap()).await.unwrap(), None);
    assert_eq!(store.newest_outcome(&placed.pool).await.unwrap(), None);
    assert_eq!(loaded(&*store, "earth", "2024-03-01T00", "2024-03-01T01").await, "");
}

async fn an_append_names_the_last_entry(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let placed = one.open_journal(&pool("earth:A100")).await.unwrap().placed;
    let (first, second) = (turn([1]), turn([1, 2]));
    let both = tokio::join!(one.append_turn(&placed, 0, &first, at(1)), other.append_turn(&placed, 0, &second, at(1)));
    assert_eq!(usize::from(both.0.is_ok()) + usize::from(both.1.is_ok()), 1, "{both:?}");
    let last = one.open_journal(&placed.pool).await.unwrap().placed.seq;
    let late = one.append_turn(&placed, 0, &turn([last + 1]), at(1)).await.unwrap_err();
    assert!(matches!(late, StoreError::Conflict { .. }), "{late}");
    one.append_turn(&placed, last, &turn([last + 1]), at(1)).await.unwrap();
}

async fn a_snapshot_stands_for_the_entries_before_it(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let placed = store.open_journal(&pool("earth:A100")).await.unwrap().placed;
    store.append_turn(&placed, 0, &turn(1..=5), at(1)).await.unwrap();
    for (seq, forget_to) in [(2, 0), (4, 3)] {
        let snapshot = PoolSnapshot { seq, snapshot_json: format!("{{\"at\": {seq}}}"), accounts_json: None };
        store.put_pool_snapshot(placed.id, &snapshot, forget_to).await.unwrap();
        let read = store.open_journal(&placed.pool).await.unwrap();
        assert_eq!(read.snapshot, Some(snapshot));
        assert_eq!(read.entries.first().map(|entry| entry.seq), Some(seq + 1));
    }
    let left = store.journal_entries(placed.id, 0).await.unwrap();
    assert_eq!(left.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [4, 5]);
    store.append_turn(&placed, 5, &turn([6]), at(1)).await.unwrap();
}

async fn events_are_read_on_from_where_they_were_left(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let placed = store.open_journal(&pool("earth:A100")).await.unwrap().placed;
    let entries = vec![entry(1, "[1]"), entry(2, ""), entry(3, "[3]"), entry(4, "[4]")];
    store.append_turn(&placed, 0, &Turn { entries, ..Turn::default() }, at(1)).await.unwrap();
    let after = async |seq, limit| {
        let read = store.entries_with_events(placed.id, seq, limit).await.unwrap();
        read.into_iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };
    assert_eq!((after(0, 9).await, after(1, 1).await, after(4, 9).await), (vec![1, 3, 4], vec![3], vec![]));
    store.put_announced(placed.id, 3).await.unwrap();
    assert_eq!(store.open_journal(&placed.pool).await.unwrap().placed.announced_seq, 3);
}

async fn a_journal_hangs_on_its_cluster(database: TestDatabase) {
    let store = database.store().await;
    let fault = store.open_journal(&pool("earth:A100")).await.unwrap_err();
    assert_eq!(fault.to_string(), "there is no cluster earth");
    assert_eq!(store.task_record(&pool("earth:A100"), &TaskId::parse("a").unwrap()).await.unwrap(), None);
}

async fn a_snapshot_whose_text_has_changed_is_refused_as_damaged(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let placed = store.open_journal(&pool("earth:A100")).await.unwrap().placed;
    let snapshot = PoolSnapshot { seq: 0, snapshot_json: "{\"at\": 12}".to_owned(), accounts_json: None };
    store.put_pool_snapshot(placed.id, &snapshot, 0).await.unwrap();
    assert_eq!(store.pool_snapshot(placed.id).await.unwrap(), Some(snapshot));
    database.execute("UPDATE pool_snapshots SET snapshot_json = '{\"at\": 13}'").await;
    for fault in
        [store.pool_snapshot(placed.id).await.unwrap_err(), store.open_journal(&placed.pool).await.unwrap_err()]
    {
        assert!(matches!(&fault, StoreError::Corrupt { .. }) && fault.to_string().contains("checksum"), "{fault}");
    }
}
