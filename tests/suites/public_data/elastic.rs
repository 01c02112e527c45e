//! Elastic jobs on the Philly list: what Cornucopia reaches beside a rival that knows how long every job takes, and Chronus
//! by the deadlines that the list states.

use serde_json::Value;
use tests::{program, public_data};

#[test]
fn cornucopia_lets_interactive_philly_jobs_begin_at_once_and_beats_srtf_on_960_gpus() {
    let name = "cornucopia_lets_interactive_philly_jobs_begin_at_once_and_beats_srtf_on_960_gpus";
    let Some(jobs) = public_data(name, "philly/trace_job_Philly_MIX1.csv") else { return };
    let args = ["elastic", "--jobs", jobs.to_str().unwrap(), "--policies", "cornucopia,srtf", "--seed", "0", "--json"];
    let answer = program("simulate", &args).ok().json();
    let of = |gpus: &str, policy: &str, figure: &str| {
        let figures: &Value = &answer[gpus][policy];
        assert_eq!((&figures["finished"], &figures["unfinished"]), (&30_756.into(), &0.into()), "{gpus} {policy}");
        figures[figure].as_f64().unwrap()
    };
    for gpus in ["640", "960"] {
        let queue_s = of(gpus, "cornucopia", "interactive_queue_mean_s");
        let full_s = of(gpus, "cornucopia", "interactive_full_mean_s");
        assert!(queue_s < 1.0 && full_s < 1.0, "{gpus}: {queue_s} s, {full_s} s");
    }
    // 448 of them come within half an hour: on 320 GPUs they wait for each other, 18.75 s on average even with nobody else.
    let queue_s = of("320", "cornucopia", "interactive_queue_mean_s");
    assert!(queue_s < 20.0 && queue_s < of("320", "srtf", "interactive_queue_mean_s") / 2.0, "{queue_s} s");
    let ratio = |gpus| of(gpus, "cornucopia", "jct_mean_s") / of(gpus, "srtf", "jct_mean_s");
    let ratios = ["960", "640", "320"].map(ratio);
    assert!(ratios[0] < 1.0 && ratios[1] < 1.35 && ratios[2] < 1.75, "JCT over SRTF's: {ratios:?}");
    assert!(of("960", "cornucopia", "jct_inflation_mean") < 1.0, "what is idle speeds jobs up");
}

#[test]
fn chronus_meets_more_deadlines_of_philly_than_srtf_on_960_gpus_and_lets_the_short_ones_wait() {
    let name = "chronus_meets_more_deadlines_of_philly_than_srtf_on_960_gpus_and_lets_the_short_ones_wait";
    let Some(jobs) = public_data(name, "philly/trace_job_Philly_MIX1.csv") else { return };
    let args = ["elastic", "--jobs", jobs.to_str().unwrap(), "--gpus", "960", "--policies", "chronus,srtf", "--json"];
    let answer = &program("simulate", &args).ok().json()["960"];
    let of = |policy: &str, figure: &str| answer[policy][figure].as_f64().unwrap();
    assert_eq!((of("chronus", "deadlines"), of("chronus", "finished")), (21_600.0, 30_756.0));
    let met = ["chronus", "srtf"].map(|policy| of(policy, "deadlines_met"));
    assert!(met[0] > met[1] && met[1] > 21_200.0, "{met:?}");
    let queue_s = ["chronus", "srtf"].map(|policy| of(policy, "interactive_queue_mean_s"));
    assert!(queue_s[0] > 600.0 && queue_s[1] < 1.0, "{queue_s:?}");
}
