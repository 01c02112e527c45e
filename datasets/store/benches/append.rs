//! Rows a second into Postgres, beside what the same server does with the same rows by plain COPY.
//!
//!     HEADROOM_TEST_FSYNC=on tests/with-postgres.sh cargo bench -p store --bench append
//!
//! Every round begins with a fresh database; figures are medians over the rounds.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::collections::BTreeMap;
use std::time::Instant;
use store::{Cluster, Merged, Store};
use vocab::{ClusterName, GpuModel, HourStart, MilliGpus, Organization, PoolId, SeriesId, UsageRow};

const ROUNDS: usize = 5;
/// 2024-02-15T00:00:00Z: 48 hours stay in one month, 720 reach into the next.
const START_UNIX_S: i64 = 1_707_955_200;

struct Shape {
    name: &'static str,
    series: u64,
    hours: i64,
}

const SHAPES: [Shape; 2] = [
    Shape { name: "10,000 series x 48 h", series: 10_000, hours: 48 },
    Shape { name: "1,000 series x 720 h", series: 1_000, hours: 720 },
];

#[tokio::main]
async fn main() {
    let server = std::env::var("HEADROOM_TEST_POSTGRES").expect("run under tests/with-postgres.sh");
    let mut maintenance = PgConnection::connect(&server).await.expect("the server answers");
    print_settings(&mut maintenance).await;
    for shape in &SHAPES {
        let rows = usage_rows(shape, 0);
        let changed = usage_rows(shape, 1);
        let mut figures = BTreeMap::new();
        for round in 0..ROUNDS {
            let name = format!("headroom_bench_{round}");
            run(&mut maintenance, &format!("CREATE DATABASE {name}")).await;
            let url = format!("{}/{name}", server.rsplit_once('/').expect("postgres://USER@HOST/NAME").0);
            measure(&url, &rows, &changed, &mut figures).await;
            run(&mut maintenance, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
        report(shape, rows.len(), figures);
    }
}

async fn print_settings(connection: &mut PgConnection) {
    let version: String = sqlx::query_scalar("SELECT version()").fetch_one(&mut *connection).await.expect("a version");
    println!("{version}");
    for name in ["fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "wal_level"] {
        let show = AssertSqlSafe(format!("SHOW {name}"));
        let value: String = sqlx::query_scalar(show).fetch_one(&mut *connection).await.expect("a setting");
        println!("{name} = {value}");
    }
}

/// Rows as a reader hands them out: hour by hour, series names shared.
fn usage_rows(shape: &Shape, salt: u64) -> Vec<UsageRow> {
    let cluster = ClusterName::parse("bench").expect("a name");
    let pool = PoolId { cluster, gpu_model: GpuModel::parse("A100-SXM4-80GB").expect("a name") };
    let series = |number| SeriesId {
        pool: pool.clone(),
        organization: Organization::parse(&format!("organization-{number:05}")).expect("a name"),
    };
    let series: Vec<SeriesId> = (0..shape.series).map(series).collect();
    let start = HourStart::from_unix_s(START_UNIX_S).expect("on the grid");
    let row = |hour: i64, (number, series): (usize, &SeriesId)| UsageRow {
        series: series.clone(),
        hour: start.plus_hours(hour),
        demand: MilliGpus::from_milli((number as u64 * 7_919 + hour as u64 * 104_729) % 64_000 + salt).expect("small"),
        at_end: None,
    };
    (0..shape.hours).flat_map(|hour| series.iter().enumerate().map(move |named| row(hour, named))).collect()
}

type Figures = BTreeMap<&'static str, Vec<f64>>;

async fn measure(url: &str, rows: &[UsageRow], changed: &[UsageRow], figures: &mut Figures) {
    let store = store::connect(url).await.expect("a fresh database");
    let name = rows[0].series.pool.cluster.clone();
    let cluster = Cluster { name, time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
    store.put_cluster(&cluster).await.expect("a cluster");
    let count = rows.len() as u64;
    let all = |inserted, changed, unchanged| Merged { inserted, changed, unchanged };
    let mut note = |what, seconds: f64| figures.entry(what).or_default().push(count as f64 / seconds);

    note("1 append: new rows", append(&*store, rows, all(count, 0, 0)).await);
    note("2 append: unchanged rows", append(&*store, rows, all(0, 0, count)).await);
    note("3 append: changed rows", append(&*store, changed, all(0, count, 0)).await);
    note("4 append: new rows amid old", amid(&*store, rows, &all).await);
    note("5 append: hour by hour", hour_by_hour(&*store, rows).await);
    note("6 load", load(&*store, &cluster.name, 3 * count).await / 3.0);
    store.close().await;

    let mut connection = PgConnection::connect(url).await.expect("the database");
    run(&mut connection, "CREATE TABLE bare (hour timestamptz NOT NULL, milli bigint NOT NULL, id int NOT NULL)").await;
    run(&mut connection, "CREATE TABLE keyed (LIKE bare, PRIMARY KEY (hour, id))").await;
    note("7 plain COPY, bare table", copy(&mut connection, "bare", rows).await);
    note("8 plain COPY, same key", copy(&mut connection, "keyed", rows).await);
}

async fn append(store: &dyn Store, rows: &[UsageRow], expected: Merged) -> f64 {
    let started = Instant::now();
    let report = store.append(rows, &[]).await.expect("an append");
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(report.usage, expected);
    seconds
}

fn shifted(rows: &[UsageRow], times: i64) -> Vec<UsageRow> {
    let hours = rows.chunk_by(|a, b| a.hour == b.hour).count() as i64;
    rows.iter().map(|row| UsageRow { hour: row.hour.plus_hours(times * hours), ..row.clone() }).collect()
}

/// The same number of rows again, between hours that are there: what a gap, or an organization found late, brings.
async fn amid(store: &dyn Store, rows: &[UsageRow], all: &impl Fn(u64, u64, u64) -> Merged) -> f64 {
    let shifted = shifted(rows, 1);
    let (last, amid) = shifted.split_last().expect("a shape has rows");
    append(store, std::slice::from_ref(last), all(1, 0, 0)).await;
    append(store, amid, all(amid.len() as u64, 0, 0)).await
}

/// The same number of rows again, later, in one append for each hour: as a live cluster sends them.
async fn hour_by_hour(store: &dyn Store, rows: &[UsageRow]) -> f64 {
    let rows = shifted(rows, 2);
    let started = Instant::now();
    for hour in rows.chunk_by(|a, b| a.hour == b.hour) {
        assert_eq!(store.append(hour, &[]).await.expect("an append").usage.inserted, hour.len() as u64);
    }
    started.elapsed().as_secs_f64()
}

async fn load(store: &dyn Store, cluster: &ClusterName, expected: u64) -> f64 {
    let (mut seen, from) = (0, HourStart::from_unix_s(START_UNIX_S).expect("on the grid"));
    let started = Instant::now();
    let mut sink = |_: &SeriesId, _, _| seen += 1;
    store.load_usage(cluster, from, from.plus_hours(100_000), &mut sink).await.expect("a load");
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(seen, expected);
    seconds
}

/// The bound: the same rows, already encoded and in the order of the key, and nothing else.
async fn copy(connection: &mut PgConnection, table: &str, rows: &[UsageRow]) -> f64 {
    let mut encoded = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    let width = rows.iter().take_while(|row| row.hour == rows[0].hour).count();
    for (index, row) in rows.iter().enumerate() {
        encoded.extend(3_i16.to_be_bytes());
        encoded.extend(8_i32.to_be_bytes());
        encoded.extend(((row.hour.unix_s() - 946_684_800) * 1_000_000).to_be_bytes());
        encoded.extend(8_i32.to_be_bytes());
        encoded.extend((row.demand.milli() as i64).to_be_bytes());
        encoded.extend(4_i32.to_be_bytes());
        encoded.extend(((index % width) as i32).to_be_bytes());
    }
    encoded.extend((-1_i16).to_be_bytes());
    let started = Instant::now();
    let statement = format!("COPY {table} FROM STDIN (FORMAT binary)");
    let mut copy = connection.copy_in_raw(&statement).await.expect("COPY begins");
    for chunk in encoded.chunks(512 * 1_024) {
        copy.send(chunk).await.expect("COPY takes data");
    }
    assert_eq!(copy.finish().await.expect("COPY ends"), rows.len() as u64);
    started.elapsed().as_secs_f64()
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.expect("the SQL of the bench");
}

fn report(shape: &Shape, rows: usize, figures: Figures) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let medians: BTreeMap<_, _> = figures.into_iter().map(|(what, values)| (what, median(values))).collect();
    let (bare, keyed) = (medians["7 plain COPY, bare table"], medians["8 plain COPY, same key"]);
    println!("\n{} = {rows} rows, medians of {ROUNDS} rounds", shape.name);
    println!("{:<28} {:>12} {:>10} {:>10}", "", "rows/s", "x bare", "x keyed");
    for (what, rate) in medians {
        println!("{what:<28} {rate:>12.0} {:>10.2} {:>10.2}", rate / bare, rate / keyed);
    }
}
