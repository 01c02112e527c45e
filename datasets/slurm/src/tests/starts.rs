//! Which records are of a run.

use super::*;

#[test]
fn a_job_that_never_had_gpus_has_no_start_and_one_of_less_than_a_second_has() {
    let list = [
        job(1, "FAILED", [0, 0, 0, 0]),
        job(2, "COMPLETED", [0, 0, 60, 60]),
        job(3, "CANCELLED", [0, 0, 60, 60]),
        job(4, "COMPLETED", [0, 0, 60, 60])
            .replace("\"allocated\":[]", "\"allocated\":[{\"type\":\"gres\",\"name\":\"gpu:a100\",\"count\":2}]"),
    ]
    .map(|one| one.replace("normal", "spot1h"));
    let mut read = history(&jobs(&list.iter().map(String::as_str).collect::<Vec<_>>()));
    let started: Vec<bool> = read.jobs.iter().map(|job| job.started.is_some()).collect();
    assert_eq!(started, [false, false, false, true]);
    read.latest = Some(UnixSeconds::new(HOUR + 7_200));
    let reading = Reading { rules: spot_rules(), from: Some(hour(HOUR)), ..Reading::default() };
    assert_eq!(demand(&read, &reading).unwrap().spot.len(), 0, "none held GPUs for a second");
    assert_eq!(tasks(&read, &reading).unwrap(), []);
}
