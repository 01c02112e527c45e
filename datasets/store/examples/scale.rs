//! Measures a cluster of many series in a fresh database: time to append an hour, size on disk, and time to load everything.
//!
//!     cargo run --release --package store --example scale
//!     cargo run --release --package store --example scale -- 10000 24 postgres://headroom@localhost/scale
//!
//! Arguments: series, hours, and the URL of an empty database, whose content is kept; without it, a temporary SQLite file.

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use store::{Cluster, Store};
use vocab::{ClusterName, GpuModel, HourStart, MilliGpus, Organization, PoolId, SeriesId, UsageRow};

/// 2024-02-01T00:00:00Z: all rows fall into one month.
const START_UNIX_S: i64 = 1_706_745_600;
/// Organizations of a pool, as in the bench of a renewal.
const ORGANIZATIONS: usize = 100;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn series(cluster: &ClusterName, number: usize) -> Result<SeriesId> {
    let gpu_model = GpuModel::parse(&format!("model-{:03}", number / ORGANIZATIONS))?;
    let organization = Organization::parse(&format!("organization-{:03}", number % ORGANIZATIONS))?;
    Ok(SeriesId { pool: PoolId { cluster: cluster.clone(), gpu_model }, organization })
}

/// Bytes of an SQLite file and its write-ahead log.
fn bytes(file: &Path) -> u64 {
    let parts = ["", "-wal"].map(|end| std::fs::metadata(format!("{}{end}", file.display())));
    parts.into_iter().flatten().map(|part| part.len()).sum()
}

async fn fill(store: &dyn Store, cluster: &ClusterName, count: usize, hours: i64) -> Result<Vec<f64>> {
    let start = HourStart::from_unix_s(START_UNIX_S)?;
    let series = (0..count).map(|number| series(cluster, number)).collect::<Result<Vec<_>>>()?;
    let mut took_s = Vec::new();
    for hour in 0..hours {
        let mut rows = Vec::with_capacity(count);
        for (number, series) in series.iter().enumerate() {
            let demand = MilliGpus::from_milli((number as u64 * 7_919 + hour.unsigned_abs() * 104_729) % 64_000)?;
            rows.push(UsageRow { series: series.clone(), hour: start.plus_hours(hour), demand, at_end: None });
        }
        let started = Instant::now();
        store.append(&rows, &[]).await?;
        took_s.push(started.elapsed().as_secs_f64());
    }
    took_s.sort_by(f64::total_cmp);
    Ok(took_s)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (count, hours) = (number(0, 10_000)?, number(1, 24)?);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scale.db");
    let url = arguments.get(2).cloned().unwrap_or_else(|| format!("sqlite://{}", file.display()));
    let store = store::connect(&url).await?;
    let name = ClusterName::parse("scale")?;
    store
        .put_cluster(&Cluster { name: name.clone(), time_zone: "UTC".to_owned(), calendar: "none".to_owned() })
        .await?;
    let before = bytes(&file);
    // 1. Append hour by hour, as clusters report.
    let took_s = fill(store.as_ref(), &name, count, i64::try_from(hours)?).await?;
    let rows = count * hours;
    println!("{} of {count} series x {hours} h = {rows} rows", store.backend());
    let total_s: f64 = took_s.iter().sum();
    println!("append of an hour: median {:.0} ms, longest {:.0} ms", took_s[hours / 2] * 1e3, took_s[hours - 1] * 1e3);
    println!("rows a second: {:.0}", rows as f64 / total_s);
    // 2. Load everything, as a service does when it starts.
    let start = HourStart::from_unix_s(START_UNIX_S)?;
    let (started, mut loaded) = (Instant::now(), 0_usize);
    let end = start.plus_hours(i64::try_from(hours)?);
    store.load_usage(&name, start, end, &mut |_, _, _| loaded += 1).await?;
    println!("load of all: {:.0} ms for {loaded} rows", started.elapsed().as_secs_f64() * 1e3);
    // 3. Measure the size on disk.
    store.close().await;
    if file.exists() {
        let grown = bytes(&file) - before;
        println!("size: {} bytes when empty, {grown} more: {:.1} for each row", before, grown as f64 / rows as f64);
    } else {
        println!("size: SELECT pg_database_size(current_database());");
    }
    Ok(())
}
