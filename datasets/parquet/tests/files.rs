//! Files as pandas, pyarrow and polars write them (`files/make.py`).

#![allow(clippy::unwrap_used)]

use datasets::{Calendar, ReadOptions};
use parquet_source::{Files, SourceError, Wanted};
use vocab::{ClusterName, GpuModel, UsageRow};

fn options(zone: &str, skip_bad_rows: bool) -> ReadOptions {
    ReadOptions {
        cluster: ClusterName::parse("earth").unwrap(),
        gpu_model: GpuModel::parse("any").unwrap(),
        calendar: Calendar::parse(zone, Calendar::WEEKDAYS).unwrap(),
        skip_bad_rows,
        zones: datasets::Zones::new(),
    }
}

fn file(name: &str) -> String {
    format!("{}/tests/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Rows of a location as text, with their places.
fn rows(location: &str, zone: &str, cluster: Option<&str>) -> Result<Vec<String>, SourceError> {
    let (options, mut rows) = (options(zone, false), Vec::new());
    let cluster = cluster.map(|name| ClusterName::parse(name).unwrap());
    let wanted = Wanted { options: &options, cluster: cluster.as_ref() };
    let take = &mut |row: &UsageRow, place: datasets::spool::RowPlace| {
        rows.push(format!("{}:{} {} {} {}", place.file, place.row, row.hour, row.series, row.demand));
        Ok(())
    };
    Files::open(location)?.each_row(wanted, &mut Vec::new(), take)?;
    Ok(rows)
}

const ROWS: [&str; 6] = [
    "0:1 2024-03-01T00:00:00Z earth:A100-SXM4-80GB:vision 2.500",
    "0:2 2024-03-01T00:00:00Z earth:A100-SXM4-80GB:speech 4.000",
    "0:3 2024-03-01T00:00:00Z mars:A100-SXM4-80GB:* 6.125",
    "0:4 2024-03-01T01:00:00Z earth:A100-SXM4-80GB:vision 3.500",
    "0:5 2024-03-01T01:00:00Z earth:A100-SXM4-80GB:speech 5.000",
    "0:6 2024-03-01T01:00:00Z mars:A100-SXM4-80GB:* 7.125",
];

#[test]
fn files_of_pandas_and_of_polars_hold_the_same_rows() {
    for name in ["pandas.parquet", "polars.parquet"] {
        assert_eq!(rows(&file(name), "Asia/Shanghai", None).unwrap(), ROWS, "{name}");
    }
}

#[test]
fn the_end_of_an_hour_is_read_where_it_is_known() {
    let (options, mut ends) = (options("UTC", false), Vec::new());
    let take = &mut |row: &UsageRow, _: datasets::spool::RowPlace| {
        ends.push(row.at_end.map(vocab::MilliGpus::milli));
        Ok(())
    };
    let wanted = Wanted { options: &options, cluster: None };
    Files::open(&file("polars-ends.parquet")).unwrap().each_row(wanted, &mut Vec::new(), take).unwrap();
    assert_eq!(ends, [Some(2_500), Some(1_000), Some(125), Some(3_250), None, None]);
}

#[test]
fn decimals_and_unsigned_numbers_are_amounts() {
    for name in ["decimal.parquet", "decimal-small.parquet"] {
        assert_eq!(rows(&file(name), "UTC", None).unwrap(), ROWS, "{name}");
    }
    let gpus = |name: &str| -> Vec<String> {
        let rows = rows(&file(name), "UTC", None).unwrap();
        rows.iter().map(|row| row.rsplit_once(' ').unwrap().1.to_owned()).collect()
    };
    assert_eq!(gpus("unsigned.parquet"), ["0.000", "4.000", "6.000", "3.000", "200.000", "7.000"]);
    let fault = rows(&file("unsigned-large.parquet"), "UTC", None).unwrap_err().to_string();
    assert!(fault.contains("row 6") && !fault.contains("negative"), "{fault}");
}

#[test]
fn a_column_twice_and_a_page_that_fails_its_checksum_are_refused() {
    let fault = |name: &str| rows(&file(name), "UTC", None).unwrap_err().to_string();
    assert!(fault("twice.parquet").ends_with("twice.parquet: column demand_gpus is there twice: leave one of them"));
    let changed = fault("checksum.parquet");
    assert!(changed.contains("column demand_gpus") && changed.contains("CRC"), "{changed}");
}

#[test]
fn times_of_a_cluster_with_a_zone_of_its_own_are_in_that_zone() {
    let tokyo = datasets::calendar::zone("Asia/Tokyo").unwrap();
    let options = ReadOptions {
        zones: datasets::Zones::from([(ClusterName::parse("mars").unwrap(), tokyo)]),
        ..options("UTC", false)
    };
    let mut hours = Vec::new();
    let take = &mut |row: &UsageRow, _: datasets::spool::RowPlace| {
        hours.push(format!("{} {}", row.series.pool.cluster, row.hour));
        Ok(())
    };
    let wanted = Wanted { options: &options, cluster: None };
    Files::open(&file("polars-text.parquet")).unwrap().each_row(wanted, &mut Vec::new(), take).unwrap();
    assert_eq!(hours[1..3], ["earth 2024-03-01T00:00:00Z", "mars 2024-02-29T15:00:00Z"]);
}

#[test]
fn groups_without_the_wanted_cluster_are_left_out_and_rows_keep_their_numbers() {
    let all = rows(&file("pyarrow.parquet"), "UTC", None).unwrap();
    assert_eq!(all.len(), 6);
    let mars: Vec<_> = all.iter().filter(|row| row.contains("mars")).cloned().collect();
    assert_eq!(rows(&file("pyarrow.parquet"), "UTC", Some("mars")).unwrap(), mars);
    assert!(mars[0].starts_with("0:5 ") && mars[1].starts_with("0:6 "), "{mars:?}");
    assert_eq!(rows(&file("pyarrow.parquet"), "UTC", Some("venus")).unwrap(), [""; 0]);
}

#[test]
fn times_without_an_offset_are_those_of_the_clusters_zone() {
    let rows = rows(&file("polars-text.parquet"), "Asia/Shanghai", Some("earth")).unwrap();
    assert_eq!(rows[0], "0:1 2024-02-29T16:00:00Z earth:A100-SXM4-80GB:vision 2.000");
}

#[test]
fn a_folder_is_all_of_its_files_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("2024")).unwrap();
    for (name, to) in [("polars.parquet", "2024/b.parquet"), ("pandas.parquet", "2024/a.parquet")] {
        std::fs::copy(file(name), folder.path().join(to)).unwrap();
    }
    std::fs::write(folder.path().join("_SUCCESS"), "").unwrap();
    let location = folder.path().to_str().unwrap();
    let files = Files::open(location).unwrap();
    assert_eq!(files.names(), ["2024/a.parquet", "2024/b.parquet"].map(|name| folder.path().join(name)));
    // As Spark names what it writes.
    let spark = folder.path().join("usage.parquet");
    std::fs::create_dir(&spark).unwrap();
    std::fs::copy(file("polars.parquet"), spark.join("part-0.parquet")).unwrap();
    assert_eq!(rows(spark.to_str().unwrap(), "UTC", None).unwrap().len(), 6);
    std::fs::remove_dir_all(&spark).unwrap();
    let rows = rows(&format!("file://{location}"), "UTC", None).unwrap();
    assert_eq!((rows.len(), &rows[6][..]), (12, &*ROWS[0].replacen("0:", "1:", 1)));
}

#[test]
fn a_file_of_a_folder_that_is_not_there_or_cannot_be_listed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::copy(file("polars.parquet"), place("a.parquet")).unwrap();
    std::fs::write(place("notes.txt"), "").unwrap();
    let read = || Files::open(folder.path().to_str().unwrap()).map(|files| files.names().len());
    assert_eq!(read().unwrap(), 1, "others are left out");
    for (link, to, why) in [
        ("b.parquet", "/gone/b.parquet", "No such file or directory"),
        ("2024", "/gone/2024", "No such file or directory"),
        ("again", ".", "a link back to a folder that it lies in"),
        ("self.parquet", "self.parquet", "Too many levels of symbolic links"),
    ] {
        std::os::unix::fs::symlink(to, place(link)).unwrap();
        let fault = read().unwrap_err();
        let text = fault.to_string();
        assert!(text.starts_with(&format!("{}: {why}", place(link).display())), "{text}");
        assert!(!fault.is_retryable());
        std::fs::remove_file(place(link)).unwrap();
    }
    assert_eq!(read().unwrap(), 1);
}

#[test]
fn faults_name_file_row_group_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |location: &str| rows(location, "UTC", None).unwrap_err().to_string();
    let named = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let missing = refused(&named("no.parquet"));
    assert!(missing.contains("no.parquet: No such file"), "{missing}");
    assert_eq!(refused(&named("")), format!("{}: no file whose name ends in .parquet", named("")));
    assert!(refused("").starts_with("invalid location \"\": it is empty; expected"), "empty");
    assert!(refused("gs://bucket/a").contains("files are not read by gs; expected a file or folder, or s3://"), "gs");
    std::fs::write(named("text.parquet"), "hour,cluster\n").unwrap();
    assert!(refused(&named("text.parquet")).contains("text.parquet: not a Parquet file, or damaged: "));
    // A page of the second group with other bytes.
    let mut bytes = std::fs::read(file("pyarrow.parquet")).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 40].fill(0);
    std::fs::write(named("torn.parquet"), bytes).unwrap();
    let torn = refused(&named("torn.parquet"));
    assert!(torn.contains("torn.parquet, row group ") && torn.contains(", column "), "{torn}");
}
