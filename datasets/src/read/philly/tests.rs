//! The reader of Philly jobs on small pictures of its format, and on what can be wrong with them.

use super::*;
use crate::read::tests::{options, read_as};

const HEADER: &str = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
                      expect_value_list,best_effort,job_type\n";

fn jobs(rows: &str) -> Result<Jobs, String> {
    let text = format!("{HEADER}{rows}");
    read_as("philly.csv", text.as_bytes(), |file| philly(file, UnixSeconds::new(7_200), &options()))
}

/// A job of the columns that matter.
fn job(id: &str, gpus: &str, submit: &str, duration: &str, best_effort: &str) -> String {
    format!("{id},vc_1,{gpus},{submit},5049,vgg16,{duration},14,1105,10,{best_effort},strict\n")
}

#[test]
fn minutes_count_from_the_epoch_and_best_effort_jobs_are_spot() {
    let read = jobs(&(job("7", "2", "61", "90", "0") + &job("8", "4", "0", "30", "1"))).unwrap();
    let [hp, spot] = &read.tasks[..] else { panic!("{read:?}") };
    assert_eq!((hp.submitted.get(), hp.duration_s, hp.class), (7_200 + 61 * 60, Some(5_400), TaskClass::Hp));
    assert_eq!((spot.class, spot.gpus(), spot.gpu_model.as_str()), (TaskClass::Spot, MilliGpus::from_gpus(4), "V100"));
    let own = read.report.rows.iter().filter(|row| !row.series.is_pool_peak());
    let rows: Vec<_> = own.map(|row| format!("{} {} {}", row.series, row.hour, row.demand)).collect();
    assert_eq!(rows, ["earth:V100:vc_1 1970-01-01T02:00:00Z 0.000", "earth:V100:vc_1 1970-01-01T03:00:00Z 2.000"]);
}

#[test]
fn a_request_above_one_machine_becomes_the_fewest_workers_that_are_alike() {
    for (gpus, each, workers) in [(1, 1, 1), (8, 8, 1), (12, 6, 2), (16, 8, 2), (20, 5, 4), (32, 8, 4), (11, 1, 11)] {
        let read = jobs(&job("7", &gpus.to_string(), "0", "60", "0")).unwrap();
        let task = &read.tasks[0];
        assert_eq!((task.gpus_per_pod(), task.pods()), (MilliGpus::from_gpus(each), workers), "{gpus}");
    }
}

#[test]
fn jobs_without_gpus_are_counted_and_left_out() {
    let read = jobs(&(job("7", "0", "0", "60", "0") + &job("8", "1", "0", "60", "0"))).unwrap();
    assert_eq!((read.tasks.len(), read.report.jobs_without_gpus), (1, 1));
    let all = jobs(&job("7", "0", "0", "60", "0")).unwrap();
    assert_eq!((all.report.rows.len(), all.report.jobs_without_gpus), (0, 1));
}

#[test]
fn a_job_that_is_more_than_ten_years_from_the_first_one_is_refused_with_both_rows() {
    let fault = jobs(&(job("7", "1", "0", "60", "0") + &job("8", "1", "83333333", "60", "0"))).unwrap_err();
    assert!(
        fault.contains("row 3: column submit_time: 83333333 minutes is more than ten years from the job of row 2"),
        "{fault}"
    );
}

#[test]
fn jobs_train_the_models_that_they_name() {
    let text = format!("{HEADER}{}{}", job("7", "0", "0", "60", "0"), job("8", "1", "0", "60", "0"));
    let models = read_as("philly.csv", text.as_bytes(), |file| philly_models(file, &options())).unwrap();
    let named: Vec<_> = models.iter().map(|(job, model)| format!("{job} {model}")).collect();
    assert_eq!(named, ["7 vgg16", "8 vgg16"]);
}

#[test]
fn a_deadline_is_the_first_time_expected_after_the_submission_and_best_effort_jobs_have_none() {
    let read = |rows: &str, skip_bad_rows: bool| {
        let text = format!("{HEADER}{rows}");
        let options = ReadOptions { skip_bad_rows, ..options() };
        read_as("philly.csv", text.as_bytes(), |file| {
            let mut skipped = Vec::new();
            philly_deadlines(file, &options, &mut skipped).map(|deadlines| (deadlines, skipped.len()))
        })
    };
    let row = |id: &str, expected: &str, best_effort: &str| {
        format!("{id},vc_1,1,60,5049,vgg16,60,14,{expected},10,{best_effort},strict\n")
    };
    let rows = row("7", "90", "0") + &row("8", "159-189-229", "0") + &row("9", "60", "1") + &row("10", "soon", "1");
    let deadlines: Vec<_> = read(&rows, false).unwrap().0.into_values().collect();
    assert_eq!(deadlines, [None, Some(5_400), Some(9_540), None], "10, 7, 8 and 9, in seconds");
    for bad in ["soon", "-5", "", "90.5"] {
        let rows = row("7", "90", "0") + &row("8", bad, "0");
        let fault = format!("column expect_time_list: {bad:?} is not a whole number of at least 0");
        assert_eq!(read(&rows, false).unwrap_err(), format!("philly.csv, row 3: {fault}"));
        let (deadlines, skipped) = read(&rows, true).unwrap();
        assert_eq!((deadlines.len(), skipped), (1, 1), "{bad:?} is listed and its job left out");
    }
}

#[test]
fn a_list_in_quotes_is_one_field_and_without_them_a_fault() {
    let row = |list: &str| format!("7,vc_1,1,0,5049,vgg16,60,14,{list},10,0,strict\n");
    assert_eq!(jobs(&row("\"[1105, 2210]\"")).unwrap().tasks.len(), 1);
    assert_eq!(
        jobs(&row("[1105, 2210]")).unwrap_err(),
        "philly.csv, row 2: 13 fields, but the header has 12: quote fields that contain commas"
    );
}

#[test]
fn a_bad_job_is_named_with_file_row_column_and_remedy() {
    for (row, expected) in [
        (
            job("7", "1", "0", "60", "2"),
            "column best_effort: unknown value \"2\": expected 0 (high priority) and 1 (spot)",
        ),
        (job("7", "0.5", "0", "60", "0"), "column num_gpu: \"0.5\" is not a whole number from 0 to 4294967295"),
        (job("7", "1", "-1", "60", "0"), "column submit_time: \"-1\" is not a whole number of at least 0"),
        (job("7", "1", "0", "x", "0"), "column duration: \"x\" is not a whole number of at least 0"),
        (
            job("7", "1", "9999999999", "60", "0"),
            "column submit_time: 9999999999 minutes after the epoch lie beyond the years of the calendar",
        ),
        (job("", "1", "0", "60", "0"), "column job_id: the task is empty"),
        (job("7", "2000000000", "0", "60", "0"), "8.000 GPUs × 250000000 pods exceeds the limit of one task"),
    ] {
        assert_eq!(jobs(&row).unwrap_err(), format!("philly.csv, row 2: {expected}"));
    }
    let twice = jobs(&(job("7", "1", "0", "60", "0") + &job("7", "0", "0", "60", "0"))).unwrap_err();
    assert!(
        twice.ends_with("row 3: column job_id: 7 is already in row 2 with other fields: keep one of them"),
        "{twice}"
    );
    assert_eq!(jobs("").unwrap_err(), "philly.csv: no rows");
}
