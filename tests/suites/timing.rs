//! `simulate timing`: the same bytes for the same seed, clear errors, and what deferrals are worth on a public trace.

use serde_json::Value;
use std::fs;
use tests::{Ran, program, public_data};

const HEADER: &str = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
                      expect_value_list,best_effort,job_type\n";

/// A list of jobs, each of GPUs, minute of submission, minutes of training.
struct Place(tempfile::TempDir);

impl Place {
    fn new(jobs: &[(u32, u32, u32)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let rows = jobs.iter().enumerate().map(|(number, (gpus, submit, minutes))| {
            format!("{number},vc_{},{gpus},{submit},9,vgg16,{minutes},14,1105,10,0,strict\n", number % 2)
        });
        place.write("jobs.csv", &(HEADER.to_owned() + &rows.collect::<String>()));
        place
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }

    fn run(&self, gpus: &str, more: &[&str]) -> Ran {
        let jobs = self.file("jobs.csv");
        program("simulate", &[&["timing", "--jobs", &jobs, "--gpus", gpus], more].concat())
    }
}

/// A long job, one that is shorter and comes later, and one that comes while that one would load.
const IN_VAIN: [(u32, u32, u32); 3] = [(1, 0, 600), (1, 10, 300), (1, 11, 60)];
/// With it the second job still loads when the third one comes.
const SLOW: &str = "model,load_s,load_large_s,save_s\nvgg16,100,100,5\n";

/// Without what differs from run to run.
fn figures(ran: Ran) -> Value {
    let mut all = ran.ok().json();
    for policy in all.as_object_mut().unwrap().values_mut() {
        assert!(policy.as_object_mut().unwrap().remove("cost").is_some());
    }
    all
}

#[test]
fn srtf_loads_in_vain_and_lazer_does_not() {
    let place = Place::new(&IN_VAIN);
    place.write("slow.csv", SLOW);
    let slow = place.file("slow.csv");
    let policies = ["--policies", "lazer,srtf,sjf", "--spread-s", "0", "--phases", &slow, "--json"];
    let all = figures(place.run("1", &policies));
    let futile = |name: &str| all[name]["futile_preemptions"].as_u64().unwrap();
    assert_eq!((futile("lazer"), futile("srtf"), futile("sjf")), (0, 1, 0), "{all}");
    // It began to load at 605 s, when job 0 had saved its state, and job 2 came at 660 s.
    assert_eq!(all["srtf"]["futile_gpu_hours"].as_f64(), Some(55.0 / 3_600.0));
    assert_eq!(all["srtf"]["finished"].as_u64(), Some(3));
    assert!(all["lazer"]["deferrals"]["count"].as_u64() >= Some(1), "{all}");
    let jct = |name: &str| all[name]["jct"]["mean_s"].as_f64().unwrap();
    assert!(jct("lazer") < jct("sjf"), "{all}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_a_table_has_a_legend() {
    let jobs: Vec<_> = (0..300_u32).map(|n| (1 + n % 4, n, 20 + (n * 37) % 400)).collect();
    let place = Place::new(&jobs);
    let out = |name: &str, seed: &str| {
        let folder = place.file(name);
        let ran = place.run("30", &["--policies", "lazer,lazer-paper,tiresias", "--seed", seed, "--out", &folder]).ok();
        let file = |name: &str| fs::read_to_string(format!("{folder}/{name}")).unwrap();
        (ran.stdout, file("timing.csv") + &file("deferrals.csv"))
    };
    let (table, first) = out("a", "3");
    assert_eq!(first, out("b", "3").1);
    assert_ne!(first, out("c", "4").1);
    assert!(first.contains("lazer,finished,300\n") && first.contains("tiresias,jct_median_s,"), "{first}");
    assert!(table.contains("300 jobs on 30 GPUs, offered load ") && table.contains("lazer, X > 0"), "{table}");
}

#[test]
fn unknown_durations_are_estimated_and_every_job_is_done() {
    let jobs: Vec<_> = (0..200_u32).map(|n| (1 + n % 4, n, 20 + (n * 37) % 400)).collect();
    let place = Place::new(&jobs);
    let all = figures(place.run("16", &["--durations", "history", "--json"]));
    let names: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(names, ["lazer", "sjf", "srtf", "srtf-360", "srtf-60", "srtf-600", "tiresias"]);
    assert!(all.as_object().unwrap().values().all(|one| one["finished"].as_u64() == Some(200)), "{all}");
}

#[test]
fn unplayable_input_is_named() {
    let place = Place::new(&IN_VAIN);
    place.write("bad.csv", "model,load_s,load_large_s,save_s\nvgg16,x,1,1\n");
    let bad = place.file("bad.csv");
    for (gpus, words, code, part) in [
        ("1", &["--policies", "best"][..], 2, "\"best\" is no policy of timing; there are lazer, lazer-paper, srtf"),
        ("1", &["--policies", "lazer,srtf,lazer"][..], 2, "--policies names lazer twice"),
        ("0", &[][..], 2, "--gpus"),
        ("1", &["--phases", &bad][..], 3, "bad.csv, row 2: column load_s"),
        ("1", &["--phases", "none.csv"][..], 3, "none.csv"),
        ("1", &["--durations", "guess"][..], 2, "history"),
    ] {
        let printed = place.run(gpus, words);
        assert_eq!((printed.code, printed.stderr.contains(part)), (code, true), "{words:?}: {}", printed.stderr);
    }
    place.write("jobs.csv", &format!("{HEADER}0,vc_1,1,0,9,vgg16,-4,14,1105,10,0,strict\n"));
    let printed = place.run("1", &[]);
    assert_eq!((printed.code, printed.stderr.contains("row 2: column duration")), (3, true), "{}", printed.stderr);
    place.write("jobs.csv", &format!("{HEADER}0,vc_1,4,0,9,vgg16,4,14,1105,10,0,strict\n"));
    let printed = place.run("2", &[]);
    assert_eq!(
        (printed.code, printed.stderr.contains("none of the 1 jobs fits on 2 GPUs")),
        (2, true),
        "{}",
        printed.stderr
    );
}

#[test]
fn lazer_finishes_philly_jobs_sooner_than_srtf_and_hardly_loads_in_vain() {
    let name = "lazer_finishes_philly_jobs_sooner_than_srtf_and_hardly_loads_in_vain";
    let Some(jobs) = public_data(name, "philly/trace_job_Philly_MIX1.csv") else { return };
    let jobs = jobs.to_str().unwrap();
    // 0.9 of what the GPUs could do is asked for.
    let words = ["timing", "--jobs", jobs, "--gpus", "1232", "--policies", "lazer,srtf,sjf", "--json"];
    let all = program("simulate", &words).ok().json();
    let of = |policy: &str, pointer: &str| all[policy].pointer(pointer).and_then(Value::as_f64).unwrap();
    for policy in ["lazer", "srtf", "sjf"] {
        assert_eq!((of(policy, "/finished"), of(policy, "/left_out")), (30_756.0, 184.0));
        assert!((0.88..0.92).contains(&of(policy, "/offered_load")), "{all}");
    }
    for rival in ["srtf", "sjf"] {
        assert!(of("lazer", "/jct/mean_s") <= of(rival, "/jct/mean_s"), "{all}");
        assert!(of("lazer", "/waiting/mean_s") <= of(rival, "/waiting/mean_s"), "{all}");
    }
    assert!(of("srtf", "/futile_gpu_hours") > 20.0, "{all}");
    assert!(of("lazer", "/futile_gpu_hours") <= 0.01 * of("srtf", "/futile_gpu_hours"), "{all}");
    // Where a load is at stake X lies within its bounds; where none is, nothing is put off.
    assert!((0.5..0.9).contains(&of("lazer", "/deferrals/at_zero")), "{all}");
    assert!(of("lazer", "/deferrals/at_most") < 0.01, "{all}");
    let deciles = all["lazer"]["deferrals"]["positive_deciles_s"].as_array().unwrap();
    assert!(deciles[1].as_f64() > Some(5.0) && deciles[9].as_f64() < Some(60.0), "{all}");
}
