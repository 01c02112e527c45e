use sqlx::{Connection, PgConnection};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{Backend, Merged, Recorded, StoreError};
use tests::fixture::{at, cluster, gpus, hour, loaded, outcomes, put_clusters, series, usage};
use tests::{TestDatabase, fresh_database, on_both_databases};
use vocab::{HourDemand, HourStart, MilliGpus, SeriesId, UsageRow};

on_both_databases![
    an_append_counts_inserted_changed_and_left_rows,
    a_row_of_an_unknown_cluster_keeps_the_others_out,
    two_values_for_one_hour_keep_all_rows_out,
    months_meet_on_the_leap_day_and_at_the_turn_of_the_year,
    rows_come_out_by_series_and_hour_in_any_order_of_arrival,
    the_same_rows_appended_twice_at_once_are_inserted_once,
    appends_that_need_the_same_new_month_all_succeed,
    appends_over_several_clusters_in_opposite_orders_all_succeed,
    any_sequence_of_appends_leaves_the_last_value_of_each_hour,
    the_end_of_an_hour_stays_known_until_its_peak_changes,
    the_ends_of_many_hours_come_back_as_they_were_copied,
    the_usage_of_one_pool_leaves_others_out,
    a_series_is_described_with_its_gaps,
    the_range_leaves_the_peak_of_the_pool_out,
    an_append_given_up_at_any_moment_leaves_all_or_nothing,
];

fn merged(inserted: u64, changed: u64, unchanged: u64) -> Merged {
    Merged { inserted, changed, unchanged }
}

async fn an_append_counts_inserted_changed_and_left_rows(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let first = usage("earth:A100:x 2024-03-01T00 4\nearth:A100:x 2024-03-01T02 5\nearth:A100:y 2024-03-01T00 6");
    assert_eq!(store.append(&first, &[]).await.unwrap().usage, merged(3, 0, 0));
    let second = usage(
        "earth:A100:x 2024-03-01T00 4
         earth:A100:x 2024-03-01T01 1
         earth:A100:x 2024-03-01T02 7
         earth:A100:x 2024-03-01T03 2
         earth:A100:x 2024-03-01T03 2
         earth:A100:z 2024-03-01T00 0",
    );
    assert_eq!(store.append(&second, &[]).await.unwrap().usage, merged(3, 1, 2), "a repeated row is unchanged");
    assert_eq!(store.append(&second, &[]).await.unwrap().usage, merged(0, 0, 6));
    assert_eq!(store.append(&[], &[]).await.unwrap().usage, merged(0, 0, 0));
}

async fn a_row_of_an_unknown_cluster_keeps_the_others_out(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let rows = usage("earth:A100:x 2024-03-01T00 4\nmars:A100:x 2024-03-01T00 4");
    let fault = store.append(&rows, &[]).await.unwrap_err();
    assert_eq!(fault.to_string(), "there is no cluster mars");
    assert_eq!(loaded(&*store, "earth", "2024-01-01T00", "2025-01-01T00").await, "");
    assert_eq!(store.usage_version(&cluster("earth")).await.unwrap(), 0);
    assert!(store.describe_usage(&cluster("earth")).await.unwrap().is_empty());
}

async fn two_values_for_one_hour_keep_all_rows_out(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let rows = usage("earth:A100:y 2024-03-01T00 1\nearth:A100:x 2024-03-01T00 4\nearth:A100:x 2024-03-01T00 5");
    let fault = store.append(&rows, &[]).await.unwrap_err();
    assert!(matches!(fault, StoreError::Contradiction { .. }), "{fault}");
    assert!(!fault.is_retryable());
    assert_eq!(store.usage_range(&cluster("earth")).await.unwrap(), None);
}

async fn months_meet_on_the_leap_day_and_at_the_turn_of_the_year(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let text = "earth:A100:x 2023-12-31T23 1.000\nearth:A100:x 2024-01-01T00 2.000\n\
                earth:A100:x 2024-02-28T23 3.000\nearth:A100:x 2024-02-29T00 4.000\n\
                earth:A100:x 2024-02-29T23 5.000\nearth:A100:x 2024-03-01T00 6.000\n\
                earth:A100:x 2025-02-28T23 7.000\nearth:A100:x 2025-03-01T00 8.000\n";
    assert_eq!(store.append(&usage(text), &[]).await.unwrap().usage, merged(8, 0, 0));
    assert_eq!(store.append(&usage(text), &[]).await.unwrap().usage, merged(0, 0, 8));
    assert_eq!(loaded(&*store, "earth", "2000-01-01T00", "2100-01-01T00").await, text);
    let leap_day = loaded(&*store, "earth", "2024-02-29T00", "2024-03-01T00").await;
    assert_eq!(leap_day, "earth:A100:x 2024-02-29T00 4.000\nearth:A100:x 2024-02-29T23 5.000\n", "`to` is excluded");
    let range = store.usage_range(&cluster("earth")).await.unwrap();
    assert_eq!(range, Some((hour("2023-12-31T23"), hour("2025-03-01T00"))));
}

async fn rows_come_out_by_series_and_hour_in_any_order_of_arrival(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    store.append(&usage("earth:V100:b 2024-03-01T01 3\nmars:V100:b 2024-03-01T00 9"), &[]).await.unwrap();
    store.append(&usage("earth:V100:a 2024-03-01T01 2\nearth:A100:é 2024-04-01T00 1"), &[]).await.unwrap();
    store.append(&usage("earth:V100:B 2024-02-01T00 6\nearth:V100:b 2024-02-01T00 4"), &[]).await.unwrap();
    assert_eq!(
        loaded(&*store, "earth", "2024-01-01T00", "2025-01-01T00").await,
        "earth:A100:é 2024-04-01T00 1.000\nearth:V100:B 2024-02-01T00 6.000\nearth:V100:a 2024-03-01T01 2.000\n\
         earth:V100:b 2024-02-01T00 4.000\nearth:V100:b 2024-03-01T01 3.000\n"
    );
    assert_eq!(loaded(&*store, "earth", "2024-05-01T00", "2024-04-01T00").await, "", "an empty span");
}

/// As many series as hours, in that many columns of one day.
fn block(cluster: &str, side: i64, from: &str) -> Vec<UsageRow> {
    let cell = |index: i64| UsageRow {
        series: series(&format!("{cluster}:A100:org{:03}", index % side)),
        hour: hour(from).plus_hours(index / side),
        demand: gpus(&index.to_string()),
        at_end: None,
    };
    (0..side * side).map(cell).collect()
}

async fn the_same_rows_appended_twice_at_once_are_inserted_once(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let rows = block("earth", 40, "2024-01-31T00");
    let (first, second) = tokio::join!(one.append(&rows, &[]), other.append(&rows, &[]));
    let (first, second) = (first.unwrap().usage, second.unwrap().usage);
    assert_eq!(first.inserted + second.inserted, 1_600);
    assert_eq!((first.unchanged + second.unchanged, first.changed + second.changed), (1_600, 0));
    assert_eq!(one.usage_version(&cluster("earth")).await.unwrap(), 1);
}

async fn appends_that_need_the_same_new_month_all_succeed(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth", "mars", "venus", "pluto"]).await;
    let rows = ["earth", "mars", "venus", "pluto"].map(|name| block(name, 20, "2023-12-31T20"));
    let reports = tokio::join!(
        one.append(&rows[0], &[]),
        other.append(&rows[1], &[]),
        one.append(&rows[2], &[]),
        other.append(&rows[3], &[])
    );
    let reports = [reports.0, reports.1, reports.2, reports.3];
    assert_eq!(reports.map(|report| report.unwrap().usage.inserted), [400; 4]);
    assert_eq!(loaded(&*one, "pluto", "2023-01-01T00", "2025-01-01T00").await.lines().count(), 400);
}

async fn appends_over_several_clusters_in_opposite_orders_all_succeed(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth", "mars"]).await;
    let forwards: Vec<_> =
        block("earth", 20, "2024-03-01T00").into_iter().chain(block("mars", 20, "2024-03-01T00")).collect();
    let backwards: Vec<_> = forwards.iter().rev().cloned().collect();
    for _ in 0..5 {
        let (first, second) = tokio::join!(one.append(&forwards, &[]), other.append(&backwards, &[]));
        assert_eq!(first.unwrap().usage.changed + second.unwrap().usage.changed, 0);
    }
    assert_eq!(one.usage_version(&cluster("mars")).await.unwrap(), 1);
}

/// Up to 30 cells among 4 series × 72 hours around the leap day, with one of three peaks each, and of some the end.
fn some_cells(state: &mut u64) -> BTreeMap<(SeriesId, HourStart), HourDemand> {
    let mut below = |limit: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % limit
    };
    let count = below(30);
    let cells = (0..count).map(|_| {
        let (organization, hours, peak, end) = (below(4), below(72) as i64, below(3) as u32, below(4) as u32);
        let series = series(&format!("earth:A100:org{organization}"));
        let at_end = (end <= peak).then(|| MilliGpus::from_gpus(end));
        let demand = HourDemand { peak: MilliGpus::from_gpus(peak), at_end };
        ((series, hour("2024-02-28T00").plus_hours(hours)), demand)
    });
    cells.collect()
}

async fn any_sequence_of_appends_leaves_the_last_value_of_each_hour(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (mut state, mut model) = (7, BTreeMap::new()); // the seed
    for _ in 0..60 {
        let (cells, mut expected) = (some_cells(&mut state), Merged::default());
        for (key, demand) in &cells {
            let old: Option<HourDemand> = model.insert(key.clone(), *demand);
            match old {
                None => expected.inserted += 1,
                Some(old)
                    if old == *demand
                        || old == (HourDemand { at_end: old.at_end, ..*demand }) && demand.at_end.is_none() =>
                {
                    expected.unchanged += 1;
                    model.insert(key.clone(), old);
                }
                Some(_) => expected.changed += 1,
            }
        }
        let rows: Vec<_> = cells.into_iter().map(|((series, hour), demand)| demand.row(series, hour)).collect();
        assert_eq!(store.append(&rows, &[]).await.unwrap().usage, expected);
    }
    let mut left = Vec::new();
    let mut sink = |series: &SeriesId, hour, demand| left.push(((series.clone(), hour), demand));
    store.load_usage(&cluster("earth"), hour("2024-01-01T00"), hour("2025-01-01T00"), &mut sink).await.unwrap();
    assert_eq!(left, model.into_iter().collect::<Vec<_>>());
}

async fn the_end_of_an_hour_stays_known_until_its_peak_changes(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let append = async |text: &str| store.append(&usage(text), &[]).await.unwrap().usage;
    let stored = async || loaded(&*store, "earth", "2024-01-01T00", "2025-01-01T00").await;
    assert_eq!(append("earth:A100:x 2024-03-01T00 4\nearth:A100:x 2024-03-01T01 5>2").await, merged(2, 0, 0));
    assert_eq!(stored().await, "earth:A100:x 2024-03-01T00 4.000\nearth:A100:x 2024-03-01T01 5.000>2.000\n");
    assert_eq!(append("earth:A100:x 2024-03-01T00 4>1\nearth:A100:x 2024-03-01T01 5").await, merged(0, 1, 1));
    assert_eq!(stored().await, "earth:A100:x 2024-03-01T00 4.000>1.000\nearth:A100:x 2024-03-01T01 5.000>2.000\n");
    assert_eq!(append("earth:A100:x 2024-03-01T00 4>0\nearth:A100:x 2024-03-01T01 6").await, merged(0, 2, 0));
    assert_eq!(stored().await, "earth:A100:x 2024-03-01T00 4.000>0.000\nearth:A100:x 2024-03-01T01 6.000\n");
    let both = usage("earth:A100:x 2024-03-01T02 7\nearth:A100:x 2024-03-01T02 7>3");
    assert_eq!(store.append(&both, &[]).await.unwrap().usage, merged(1, 0, 1), "together they know the end");
    let twice = usage("earth:A100:x 2024-03-01T02 7>3\nearth:A100:x 2024-03-01T02 7>4");
    let fault = store.append(&twice, &[]).await.unwrap_err().to_string();
    assert!(fault.contains("both 7.000 GPUs with 3.000 at the end and 7.000 GPUs with 4.000 at the end"), "{fault}");
    assert!(stored().await.ends_with("T02 7.000>3.000\n"));
}

async fn the_ends_of_many_hours_come_back_as_they_were_copied(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let end = |(index, row): (usize, UsageRow)| {
        // Of every third row the end is not known.
        UsageRow {
            at_end: (index % 3 > 0).then(|| MilliGpus::from_milli(index as u64).unwrap().min(row.demand)),
            ..row
        }
    };
    // More than one INSERT takes.
    let rows: Vec<UsageRow> = block("earth", 180, "2024-02-01T00").into_iter().enumerate().map(end).collect();
    for (inserted, unchanged) in [(32_400, 0), (0, 32_400)] {
        assert_eq!(store.append(&rows, &[]).await.unwrap().usage, merged(inserted, 0, unchanged));
    }
    let mut left = BTreeMap::new();
    let mut sink = |series: &SeriesId, hour: HourStart, demand| {
        left.insert((series.clone(), hour), demand);
    };
    store.load_usage(&cluster("earth"), hour("2024-01-01T00"), hour("2025-01-01T00"), &mut sink).await.unwrap();
    let expected: BTreeMap<_, _> =
        rows.into_iter().map(|row| ((row.series.clone(), row.hour), row.hour_demand())).collect();
    assert_eq!(left, expected);
}

async fn the_usage_of_one_pool_leaves_others_out(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let rows = "earth:A100:x 2024-03-01T00 4\nearth:A100:x 2024-03-01T01 5\nearth:A100:* 2024-03-01T01 7
        earth:H800:x 2024-03-01T01 6\nmars:A100:x 2024-03-01T01 8\nearth:A100:y 2024-03-01T02 9";
    let rows: Vec<&str> = rows.lines().map(str::trim).collect();
    store.append(&usage(&rows.join("\n")), &[]).await.unwrap();
    let mut found = BTreeMap::new();
    let mut sink = |series: &SeriesId, hour: HourStart, demand: HourDemand| {
        found.insert((series.to_string(), hour.to_string()), demand.peak.to_string());
    };
    let of = tests::fixture::pool("earth:A100");
    store.load_pool_usage(&of, hour("2024-03-01T01"), hour("2024-03-01T02"), &mut sink).await.unwrap();
    let answer: Vec<_> = found.iter().map(|((series, _), demand)| format!("{series} {demand}")).collect();
    assert_eq!(answer, ["earth:A100:* 7.000", "earth:A100:x 5.000"]);
    let unknown = tests::fixture::pool("venus:A100");
    let fault = store.load_pool_usage(&unknown, hour("2024-03-01T01"), hour("2024-03-01T02"), &mut |_, _, _| {}).await;
    assert!(matches!(fault, Err(StoreError::NotFound { .. })), "{fault:?}");
}

async fn a_series_is_described_with_its_gaps(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let rows = usage("earth:A100:x 2024-02-29T23 4\nearth:A100:x 2024-03-01T02 5\nmars:A100:y 2024-03-01T00 6");
    store.append(&rows, &[]).await.unwrap();
    let described = store.describe_usage(&cluster("earth")).await.unwrap();
    let [summary] = &described[..] else { panic!("one series, not {described:?}") };
    assert_eq!(summary.series, series("earth:A100:x"));
    assert_eq!((summary.first, summary.last, summary.rows), (hour("2024-02-29T23"), hour("2024-03-01T02"), 2));
    assert!(summary.changed_at.get() > 1_700_000_000, "the clock of the database");
}

async fn the_range_leaves_the_peak_of_the_pool_out(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    store.append(&usage("earth:A100:* 2024-03-01T00 4\nearth:A100:* 2024-03-05T00 4"), &[]).await.unwrap();
    assert_eq!(store.usage_range(&cluster("earth")).await.unwrap(), None);
    store.append(&usage("earth:A100:x 2024-03-02T00 4\nearth:A100:x 2024-03-03T00 4"), &[]).await.unwrap();
    let range = store.usage_range(&cluster("earth")).await.unwrap();
    assert_eq!(range, Some((hour("2024-03-02T00"), hour("2024-03-03T00"))));
    let measured = store.measured_range(&cluster("earth")).await.unwrap();
    assert_eq!(measured, Some((hour("2024-03-01T00"), hour("2024-03-05T00"))), "the peak of the pool is a measurement");
    let unknown = store.usage_range(&cluster("mars")).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })), "{unknown:?}");
}

/// A maker of partitions waits for this lock, after the lock of the cluster: an append stops there.
const PARTITIONS: i64 = 0x75_73_61_67_65;

#[tokio::test]
async fn an_append_under_way_keeps_no_outcome_waiting() {
    let database = fresh_database(Backend::Postgres).await;
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let mut blocker = PgConnection::connect(&database.url).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock($1)").bind(PARTITIONS).execute(&mut blocker).await.unwrap();
    let rows = usage("earth:A100:x 2024-03-01T00 4");
    let others = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut blocker).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let outcomes = outcomes("e1 earth:A100 kept", 100);
        let recorded = store.record_outcomes(&outcomes, at(200));
        let recorded = tokio::time::timeout(Duration::from_secs(5), recorded).await.expect("it does not wait");
        blocker.close().await.unwrap();
        recorded.unwrap()
    };
    let (append, recorded) = tokio::join!(store.append(&rows, &[]), others);
    assert_eq!((append.unwrap().usage.inserted, &recorded[..]), (1, &[Recorded::New][..]));
}

async fn an_append_given_up_at_any_moment_leaves_all_or_nothing(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    for (name, side) in [("earth", 40), ("mars", 200)] {
        let rows = block(name, side, "2024-01-25T00");
        for microseconds in [0, 500, 1_000, 2_000, 4_000, 6_000, 8_000, 12_000, 20_000, 30_000, 50_000, 80_000, 120_000]
        {
            let append = store.append(&rows, &[]);
            let _ = tokio::time::timeout(Duration::from_micros(microseconds), append).await;
            let count = loaded(&*store, name, "2024-01-01T00", "2025-01-01T00").await.lines().count();
            assert!([0, rows.len()].contains(&count), "given up after {microseconds} µs, {count} rows are there");
        }
        let report = store.append(&rows, &[]).await.unwrap().usage;
        assert_eq!(report.inserted + report.unchanged, rows.len() as u64);
    }
}
