//! Each reader on small pictures of its format, and on what can be wrong with them.

use super::*;
use crate::Calendar;
use std::path::Path;
use vocab::{ClusterName, GpuModel};

pub(super) fn options() -> ReadOptions {
    ReadOptions {
        cluster: ClusterName::parse("earth").unwrap(),
        gpu_model: GpuModel::parse("V100").unwrap(),
        calendar: Calendar::parse("Asia/Shanghai", Calendar::WEEKDAYS).unwrap(),
        skip_bad_rows: false,
        zones: crate::Zones::new(),
    }
}

/// Writes `text` as `name` in a fresh folder and reads it; the folder's path is cut out of the error.
pub(super) fn read_as<T>(name: &str, text: &[u8], read: impl Fn(&Path) -> Result<T, ReadError>) -> Result<T, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    read(&file).map_err(|fault| fault.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

fn usage_rows(text: &str) -> Result<ReadReport, String> {
    read_as("usage.csv", text.as_bytes(), |file| usage(file, &options()))
}

const HEADER: &str = "hour,cluster,gpu_model,organization,demand_gpus\n";

fn refused(rows: &str) -> String {
    usage_rows(&format!("{HEADER}{rows}")).unwrap_err()
}

fn summary(report: &ReadReport) -> Vec<String> {
    report.rows.iter().map(|row| format!("{} {} {}", row.series, row.hour, row.demand)).collect()
}

#[test]
fn values_of_a_file_are_shown_on_one_line_with_any_content() {
    let epoch = HourStart::from_unix_s(0).unwrap();
    let alibaba = |file: &std::path::Path| alibaba_hourly(file, epoch, &options());
    let columns = read_as("a.csv", b"hour,A\x1b[31m\n0,1\n", alibaba).unwrap_err();
    assert!(columns.starts_with("a.csv, row 1: column A\\u{1b}[31m: "), "{columns}");
    let models = read_as("p.csv", b"model,idle_w,full_w,cores\nA\x1b,1,8,4\n", power).unwrap_err();
    assert_eq!(
        models,
        "p.csv, row 2: A\\u{1b} is a GPU model and has no cores: leave cores empty, or name the row cpu"
    );
}

#[test]
fn the_end_of_an_hour_may_stand_in_a_column_of_its_own() {
    let header = HEADER.replace("demand_gpus", "demand_gpus,demand_at_end_gpus");
    let of = |rows: &str| usage_rows(&format!("{header}{rows}"));
    let rows = "2020-05-01T00:00:00Z,earth,V100,vc1,4,1.5\n2020-05-01T01:00:00Z,earth,V100,vc1,4,\n\
                2020-05-01T00:00:00Z,earth,V100,vc1,4,\n2020-05-01T01:00:00Z,earth,V100,vc1,4,4\n";
    let report = of(rows).unwrap();
    let ends: Vec<_> = report.rows.iter().map(|row| row.at_end.map(vocab::MilliGpus::milli)).collect();
    assert_eq!((ends, report.equal_duplicates), (vec![Some(1_500), Some(4_000)], 2));
    let above = of("2020-05-01T00:00:00Z,earth,V100,vc1,4,4.001\n").unwrap_err();
    assert_eq!(
        above,
        "usage.csv, row 2: column demand_at_end_gpus: 4.001 GPUs is above the peak of the hour, 4.000: leave it empty where it is not known"
    );
    let other = of("2020-05-01T00:00:00Z,earth,V100,vc1,4,1\n2020-05-01T00:00:00Z,earth,V100,vc1,4,2\n").unwrap_err();
    assert!(other.contains("has 4.000 GPUs with 2.000 at the end for 2020-05-01T00:00:00Z here and 4.000 GPUs with 1.000 at the end at row 2"), "{other}");
}

#[test]
fn usage_rows_are_read_with_or_without_an_offset_with_a_byte_order_mark_and_windows_line_ends() {
    let text = "\u{feff}hour,cluster,gpu_model,organization,demand_gpus\r\n\
                2020-05-01 00:00:00,earth,V100,vc1,12.5\r\n2020-04-30T17:00:00Z,earth,V100,*,0\r\n";
    assert_eq!(
        summary(&usage_rows(text).unwrap()),
        ["earth:V100:vc1 2020-04-30T16:00:00Z 12.500", "earth:V100:* 2020-04-30T17:00:00Z 0.000"]
    );
}

#[test]
fn every_bad_row_is_named_with_file_row_column_and_remedy() {
    for (row, expected) in [
        (
            "2020-05-01T00:00:00Z,earth,V100,vc1,-1",
            "usage.csv, row 2: column demand_gpus: -1 GPUs is negative: amounts of GPUs are 0 or more",
        ),
        (
            "2020-05-01T00:00:00Z,earth,V100,vc1,NaN",
            "usage.csv, row 2: column demand_gpus: \"NaN\" is not a number of GPUs: write a decimal such as 4 or 0.25",
        ),
        (
            "2020-05-01T00:00:00Z,earth,V100,vc1,1e308",
            "usage.csv, row 2: column demand_gpus: 1e308 GPUs exceeds the limit of 10000000 GPUs: write GPUs, not thousandths or bytes",
        ),
        (
            "2020-05-01T00:30:00Z,earth,V100,vc1,1",
            "usage.csv, row 2: column hour: 2020-05-01T00:30:00Z is not the start of an hour in UTC; hourly usage starts on \
             the hour",
        ),
        (
            "2020-05-01T00:00:00.999Z,earth,V100,vc1,1",
            "usage.csv, row 2: column hour: \"2020-05-01T00:00:00.999Z\" has a fraction of a second: hours start at a whole one, \
             such as 2024-03-01T00:00:00Z",
        ),
        (
            "1 May,earth,V100,vc1,1",
            "usage.csv, row 2: column hour: \"1 May\" is not a time: write 2024-03-01T00:00:00Z, or 2024-03-01 00:00:00 in \
             the cluster's time zone",
        ),
        ("2020-05-01T00:00:00Z,earth,V100,,1", "usage.csv, row 2: column organization: the organization is empty"),
        (
            "2020-05-01T00:00:00Z,earth,V100,vc1",
            "usage.csv, row 2: 4 fields, but the header has 5: quote fields that contain commas",
        ),
    ] {
        assert_eq!(refused(row), expected);
    }
}

#[test]
fn a_second_value_for_the_same_hour_is_refused_and_an_equal_one_counted() {
    let first = "2020-05-01T00:00:00Z,earth,V100,vc1,3\n";
    assert_eq!(usage_rows(&format!("{HEADER}{first}{first}")).unwrap().equal_duplicates, 1);
    assert_eq!(
        refused(&format!("{first}2020-05-01 08:00:00,earth,V100,vc1,4\n")),
        "usage.csv, row 3: earth:V100:vc1 has 4.000 GPUs for 2020-05-01T00:00:00Z here and 3.000 GPUs at row 2: keep \
         one of them"
    );
}

#[test]
fn a_header_with_an_unknown_a_missing_or_a_repeated_column_is_refused() {
    let of = |header: &str| usage_rows(&format!("{header}\n")).unwrap_err();
    assert!(of("hour,cluster,gpu_model,organization,demand_gpus,note").contains("column \"note\" is unknown"));
    assert!(of("hour,cluster,gpu_model,organization").contains("column demand_gpus is missing"));
    assert!(of("hour,hour,cluster,gpu_model,organization,demand_gpus").contains("column \"hour\" is listed twice"));
    assert_eq!(of(HEADER.trim()), "usage.csv: no rows");
    assert!(of("").contains("is missing; "), "an empty file has no header");
    assert!(
        of("hour;cluster;gpu_model").contains("is missing: its columns are separated by semicolons, not by commas; ")
    );
    assert!(of("PK\u{3}\u{4}\u{14}").contains("row 1: a workbook or another zip archive"));
    assert!(of("time,cluster").contains("column hour is missing: found time,cluster; "));
}

#[test]
fn bad_rows_that_may_be_skipped_are_listed_and_the_others_kept() {
    let text = format!(
        "{HEADER}2020-05-01T00:00:00Z,earth,V100,vc1,3\n2020-05-01T01:00:00Z,earth,V100,vc1,x\n\
         2020-05-01T02:00:00Z,earth,V100,vc1\n2020-05-01T03:00:00Z,earth,V100,vc1,4\n"
    );
    let lenient = ReadOptions { skip_bad_rows: true, ..options() };
    let report = read_as("usage.csv", text.as_bytes(), |file| usage(file, &lenient)).unwrap();
    assert_eq!(report.rows.len(), 2);
    assert_eq!(report.skipped.iter().map(|one| one.row).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_duration_or_cores_beyond_all_sense_are_refused_with_their_row_and_unit() {
    for (rest, expected) in [
        (
            "4,1,1,0,10000000000,Spot",
            "row 2: column duration: 10000000000 seconds are longer than the limit of 316224000: write",
        ),
        ("-1,1,1,0,60,Spot", "row 2: column cpu_request: \"-1\" is not a number of cores from 0 to 1000000"),
        ("1e308,1,1,0,60,Spot", "row 2: column cpu_request: \"1e308\" is not a number of cores"),
        ("1000000.001,1,1,0,60,Spot", "row 2: column cpu_request: \"1000000.001\" is not a number of cores"),
        ("4,20000000,1,0,60,HP", "row 2: column gpu_request: 2e7 GPUs exceeds the limit of 10000000 GPUs: write GPUs"),
    ] {
        let text = format!("{}\nj,o,A10,{rest}\n", super::GFS_JOB_COLUMNS.join(","));
        let read = |file: &Path| super::gfs_tasks(file, UnixSeconds::new(0), &options()).map(drop);
        let fault = read_as("jobs.csv", text.as_bytes(), read).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn a_job_that_is_more_than_ten_years_from_the_first_one_is_refused_with_both_rows() {
    let jobs = |far: i64| {
        let text = format!("{}\na,o,A10,1,1,1,0,60,HP\nb,o,A10,1,1,1,{far},60,HP\n", super::GFS_JOB_COLUMNS.join(","));
        let read = |file: &Path| super::gfs_tasks(file, UnixSeconds::new(0), &options()).map(|(tasks, _)| tasks.len());
        read_as("jobs.csv", text.as_bytes(), read)
    };
    let fault = jobs(5_000_000_000).unwrap_err();
    let expected =
        "row 3: column submit_time: 5000000000 seconds is more than ten years from the job of row 2: write seconds";
    assert!(fault.contains(expected), "{fault}");
    assert_eq!(jobs(316_224_000), Ok(2), "ten years");
    assert!(jobs(316_224_001).is_err());
}

#[test]
fn text_that_is_not_utf_8_is_refused_with_its_row() {
    let text = [HEADER.as_bytes(), b"2020-05-01T00:00:00Z,earth,V100,\xff,1\n"].concat();
    let fault = read_as("usage.csv", &text, |file| usage(file, &options())).unwrap_err();
    assert_eq!(fault, "usage.csv, row 2: not UTF-8 text: save the file as UTF-8");
}

const MINUTES: &str = "time,total_gpu_num,running_gpu_num,pending_gpu_num\n";

fn helios_folder(files: &[(&str, &str)]) -> Result<ReadReport, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in files {
        std::fs::write(folder.path().join(name), format!("{MINUTES}{rows}")).unwrap();
    }
    helios(folder.path(), &options())
        .map_err(|fault| fault.to_string().replace(&folder.path().display().to_string(), "."))
}

#[test]
fn helios_minutes_become_hourly_peaks_of_each_tenant_and_of_their_sum() {
    let report = helios_folder(&[
        ("vc1.csv", "2020-05-01 00:00:00,8,3,1\n2020-05-01 00:01:00,8,1,0\n2020-05-01 01:00:00,16,2,0\n"),
        ("vc2.csv", "2020-05-01 00:00:00,8,1,0\n2020-05-01 00:01:00,8,5,0\n2020-05-01 01:01:00,8,2,0\n"),
        ("gpu_number_per_day.csv", "not a tenant\n"),
    ])
    .unwrap();
    assert_eq!(
        summary(&report),
        [
            "earth:V100:vc1 2020-04-30T16:00:00Z 4.000",
            "earth:V100:vc1 2020-04-30T17:00:00Z 2.000",
            "earth:V100:vc2 2020-04-30T16:00:00Z 5.000",
            "earth:V100:vc2 2020-04-30T17:00:00Z 2.000",
            // The second hour has no minute that both tenants recorded, so the peak of their sum is not known.
            "earth:V100:* 2020-04-30T16:00:00Z 6.000",
        ]
    );
    let capacity: Vec<_> = report.capacity.iter().map(|row| format!("{} {}", row.from, row.capacity)).collect();
    assert_eq!(capacity, ["2020-04-30T16:00:00Z 16.000", "2020-04-30T17:00:00Z 24.000"]);
}

#[test]
fn a_minute_in_which_tenants_of_helios_exceed_all_amounts_is_refused_or_skipped_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let write = |total: &str| {
        for tenant in 0..=100 {
            let rows = format!("2020-05-01 00:00:00,{total},9000000,1000000\n2020-05-01 00:01:00,{total},4,1\n");
            let text = format!("time,total_gpu_num,running_gpu_num,pending_gpu_num\n{rows}");
            std::fs::write(folder.path().join(format!("vc{tenant:03}.csv")), text).unwrap();
        }
    };
    write("8");
    let fault = helios(folder.path(), &options()).unwrap_err().to_string();
    let expected = "vc100.csv, row 2: column pending_gpu_num: the tenants together have 1.01e9 GPUs in this minute";
    assert!(fault.contains(expected), "{fault}");
    assert!(helios_minutes(&[folder.path().to_owned()], &options()).is_err());
    let report = helios(folder.path(), &ReadOptions { skip_bad_rows: true, ..options() }).unwrap();
    assert_eq!(report.skipped.iter().map(|one| one.row).collect::<Vec<_>>(), [2]);
    let pool = report.rows.iter().filter(|row| row.series.is_pool_peak()).map(|row| row.demand.as_gpus());
    assert_eq!(pool.collect::<Vec<_>>(), [505.0], "the minute that all have");
    write("10000000");
    let fault = helios(folder.path(), &ReadOptions { skip_bad_rows: true, ..options() }).unwrap_err().to_string();
    assert!(fault.contains("the tenants together have more than 1000000000 GPUs at 2020-04-30T16:00:00Z"), "{fault}");
}

#[test]
fn a_row_of_helios_above_what_may_be_stated_is_refused() {
    let fault = helios_folder(&[("vc1.csv", "2020-05-01 00:00:00,8,6000000,5000000\n")]).unwrap_err();
    assert!(
        fault.contains("vc1.csv, row 2: column pending_gpu_num: 1.1e7 GPUs exceeds the limit of 10000000"),
        "{fault}"
    );
}

#[test]
fn helios_minutes_out_of_order_are_refused_and_a_folder_without_tenants_is_refused() {
    let fault = helios_folder(&[("vc1.csv", "2020-05-01 00:01:00,8,3,1\n2020-05-01 00:01:00,8,1,0\n")]).unwrap_err();
    assert!(fault.contains("vc1.csv, row 3: time \"2020-05-01 00:01:00\" is not after"), "{fault}");
    assert_eq!(helios_folder(&[]).unwrap_err(), ".: no file named vc*.csv");
}

#[test]
fn the_alibaba_file_has_a_series_for_each_gpu_model() {
    let epoch = HourStart::from_unix_s(1_709_222_400).unwrap();
    let read = |text: &str| read_as("hourly.csv", text.as_bytes(), |file| alibaba_hourly(file, epoch, &options()));
    let report = read("hour,A10,H800\n0,2249.1399999999994,1416.0\n2,1,0\n").unwrap();
    assert_eq!(
        summary(&report),
        [
            "earth:A10:all 2024-02-29T16:00:00Z 2249.140",
            "earth:H800:all 2024-02-29T16:00:00Z 1416.000",
            "earth:A10:all 2024-02-29T18:00:00Z 1.000",
            "earth:H800:all 2024-02-29T18:00:00Z 0.000",
        ]
    );
    assert_eq!(
        read("hour,A10,H800\n0,1,\n").unwrap_err(),
        "hourly.csv, row 2: column H800: \"\" is not a number of GPUs: write a decimal such as 4 or 0.25"
    );
    assert!(read("hour,A10\n0.5,1\n").unwrap_err().contains("column hour: \"0.5\" is not a whole number"));
    assert!(read("hour,A10\n0,1\n0,2\n").unwrap_err().contains("keep one of them"));
}

const JOBS: &str = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n";

fn jobs(rows: &str) -> Result<Jobs, String> {
    let text = format!("{JOBS}{rows}");
    read_as("job_info_df.csv", text.as_bytes(), |file| gfs_jobs(file, UnixSeconds::new(1_709_222_400), &options()))
}

use vocab::UnixSeconds;

#[test]
fn the_four_published_rows_of_the_gfs_trace_are_read_unchanged() {
    let published = "239255,13,A10,20,1,1,0,2764799,HP\n253689,13,A10,8,1,1,0,15897599,HP\n\
                     437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot\n\
                     437261,57,A100-SXM4-80GB,15,1,94,9589663,71718,Spot\n";
    let read = jobs(published).unwrap();
    assert_eq!(read.tasks.len(), 4);
    assert_eq!(read.tasks[3].gpus(), MilliGpus::from_gpus(94));
    let a10 = |row: &&UsageRow| row.series.organization.as_str() == "13";
    let hours: Vec<_> = read.report.rows.iter().filter(a10).map(|row| row.demand.milli()).collect();
    assert_eq!(hours.len(), 9_589_663 / 3_600 + 1);
    assert_eq!((hours[0], hours[767], hours[768]), (2_000, 2_000, 1_000), "the first job ends after 768 hours");
    assert!(read.report.rows.iter().all(|row| row.series.pool.gpu_model.as_str() == "A10"), "spot is no HP demand");
}

#[test]
fn a_job_with_an_unknown_type_or_no_workers_is_refused() {
    assert_eq!(
        jobs("j,o,A10,1,1,1,0,60,Batch\n").unwrap_err(),
        "job_info_df.csv, row 2: column job_type: \"Batch\" is not a job type: expected HP or Spot"
    );
    assert!(jobs("j,o,A10,1,1,0,0,60,HP\n").unwrap_err().contains("column worker_num: \"0\" is not a whole number"));
    assert!(jobs("j,o,A10,1,1,1,-5,60,HP\n").unwrap_err().contains("column submit_time"));
    assert!(jobs("j,o,A10,1,9999999,999,0,60,HP\n").unwrap_err().contains("exceeds the limit of one task"));
    assert!(jobs("j,o,A10,1,1,1,99999999999,60,HP\n").unwrap_err().contains("99999999999 seconds after the epoch lie"));
    assert!(jobs("j,o,A10,1,0.125,1,0.0,60.0,HP\n").is_ok(), "whole numbers written by a data frame");
}

#[test]
fn the_columns_of_a_node_list_may_come_in_any_order() {
    let text = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,2\nA10,4,192,0\nH800,8,192,1\n";
    let (nodes, skipped) = read_as("n.csv", text.as_bytes(), |file| gfs_nodes(file, &options())).unwrap();
    assert!(skipped.is_empty());
    let capacity = capacity_by_model(&nodes, HourStart::from_unix_s(0).unwrap()).unwrap();
    let capacity: Vec<_> = capacity.iter().map(|row| format!("{} {}", row.pool, row.capacity)).collect();
    assert_eq!(capacity, ["earth:A10 5.000", "earth:H800 8.000"]);
    let text = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,6000000,1,a\nA10,6000000,1,b\n";
    let (nodes, _) = read_as("n.csv", text.as_bytes(), |file| gfs_nodes(file, &options())).unwrap();
    let fault = capacity_by_model(&nodes, HourStart::from_unix_s(0).unwrap()).unwrap_err().to_string();
    assert!(fault.starts_with("1.2e7 GPUs exceeds the limit of 10000000 GPUs"), "{fault}");
}

#[test]
fn rows_are_counted_as_an_editor_shows_them_and_an_open_quote_swallows_nothing() {
    let good = "2020-05-01T00:00:00Z,earth,V100,vc1,1\n";
    assert!(refused(&format!("\n\n{good}\nx,earth,V100,vc1,1\n")).starts_with("usage.csv, row 6: column hour"));
    let open = format!("{HEADER}{good}2020-05-01T01:00:00Z,earth,V100,\"vc1,1\n{good}{good}");
    let lenient = ReadOptions { skip_bad_rows: true, ..options() };
    let refused = read_as("usage.csv", open.as_bytes(), |file| usage(file, &lenient)).unwrap_err();
    assert_eq!(refused, "usage.csv, row 3: a field spans 3 lines: close its quote");
}

#[test]
fn an_hour_past_the_calendar_is_refused_and_not_taken_for_its_last() {
    let refused = read_as("hourly.csv", b"hour,A10\n99999999999999,1\n", |file| {
        alibaba_hourly(file, HourStart::from_unix_s(0).unwrap(), &options())
    });
    let expected =
        "hourly.csv, row 2: column hour: 99999999999999 hours after the epoch lie beyond the years of the calendar";
    assert_eq!(refused.unwrap_err(), expected);
}

#[test]
fn a_job_or_a_node_that_stands_there_twice_is_one() {
    let job = "j,o,A10,1,2,1,0,60,HP\n";
    let read = jobs(&format!("{job}{job}")).unwrap();
    assert_eq!((read.tasks.len(), read.report.equal_duplicates), (1, 1));
    let other = jobs(&format!("{job}j,o,A10,1,3,1,0,60,HP\n")).unwrap_err();
    assert_eq!(
        other,
        "job_info_df.csv, row 3: column job_name: j is already in row 2 with other fields: keep one of them"
    );
    assert!(jobs("j,*,A10,1,2,1,0,60,HP\n").unwrap_err().contains("* stands for the pool as a whole: name the tenant"));
    let nodes = "node_name,gpu_model,gpu_capacity_num,cpu_num\nn1,A10,8,64\nn1,A10,8,64\n";
    let (nodes, _) = read_as("n.csv", nodes.as_bytes(), |file| gfs_nodes(file, &options())).unwrap();
    assert_eq!(nodes.len(), 1);
}

#[test]
fn naive_hours_are_in_the_zone_of_the_cluster_of_their_row() {
    let text = "hour,cluster,gpu_model,organization,demand_gpus\n\
                2024-03-01T12:00:00,earth,A100,vision,1\n2024-03-01T12:00:00,mars,A100,vision,2\n\
                2024-03-01T12:00:00Z,mars,A100,speech,3\n";
    let berlin = crate::calendar::zone("Europe/Berlin").unwrap();
    let zones = crate::Zones::from([(ClusterName::parse("mars").unwrap(), berlin)]);
    let options = ReadOptions { zones, ..options() };
    let report = read_as("usage.csv", text.as_bytes(), |file| usage(file, &options)).unwrap();
    let hours: Vec<String> = report.rows.iter().map(|row| row.hour.to_string()).collect();
    assert_eq!(hours, ["2024-03-01T04:00:00Z", "2024-03-01T11:00:00Z", "2024-03-01T12:00:00Z"]);
}
