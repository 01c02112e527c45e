//! `simulate elastic`: labels and profiles as files that say how they were made, the same bytes for the same seed, one
//! table, clear errors.

use std::fs;
use tests::{Ran, program};

/// A folder with a list of jobs.
struct Place(tempfile::TempDir);

const HEADER: &str = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
                      expect_value_list,best_effort,job_type\n";

impl Place {
    /// Forty jobs of 1 to 8 GPUs, and one without.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let model = |number: u64| ["vgg16", "alexnet", "resnet101"][number as usize % 3];
        let row = |number: u64| {
            let (gpus, at, long) = (1 << (number % 4), number * 3, 20 + number * 37 % 90);
            let (until, best_effort) = (2 * long, u64::from(number.is_multiple_of(5)));
            format!("{number},vc_1,{gpus},{at},10,{},{long},1,{until},1,{best_effort},strict\n", model(number))
        };
        let rows: String = (0..40).map(row).collect();
        place.write("jobs.csv", &format!("{HEADER}{rows}99,vc_1,0,5,10,vgg16,30,1,1,1,0,strict\n"));
        place
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }

    fn run(&self, more: &[&str]) -> Ran {
        program("simulate", &[&["elastic", "--jobs", &self.file("jobs.csv")], more].concat())
    }

    fn made(&self, what: &str, more: &[&str]) -> String {
        let out = self.file(&format!("{what}.csv"));
        let answer = program("simulate", &[&["elastic", what, "--out", &out], more].concat()).ok();
        assert!(answer.stdout.contains(&out), "it says where it wrote: {}", answer.stdout);
        fs::read_to_string(out).unwrap()
    }
}

/// Without what differs from run to run.
fn figures(ran: Ran) -> serde_json::Value {
    let mut all = ran.ok().json();
    for by_policy in all.as_object_mut().unwrap().values_mut() {
        for one in by_policy.as_object_mut().unwrap().values_mut() {
            assert!(one.as_object_mut().unwrap().remove("cpu_s").is_some());
        }
    }
    all
}

#[test]
fn labels_and_profiles_name_their_origin_and_read_back_to_the_same_figures() {
    let place = Place::new();
    let jobs = place.file("jobs.csv");
    let labels = place.made("labels", &["--jobs", &jobs, "--seed", "3"]);
    assert!(labels.starts_with("# Made by `simulate elastic labels --seed 3`."), "{labels}");
    assert!(labels.contains("\njob_id,label\n") && labels.contains("Here: 9 of 40 jobs"), "{labels}");
    assert_eq!((labels.matches(",interactive\n").count(), labels.matches(",batch\n").count()), (9, 31));
    let profiles = place.made("profiles", &[]);
    assert!(profiles.starts_with("# Made by `simulate elastic profiles`") && profiles.contains("\nvgg16,6,5833\n"));
    let (labels, profiles) = (place.file("labels.csv"), place.file("profiles.csv"));
    let from_files = ["--gpus", "8", "--seed", "3", "--json", "--labels", &labels, "--profiles", &profiles];
    assert_eq!(figures(place.run(&from_files)), figures(place.run(&from_files[..5])));
}

#[test]
fn the_same_seed_gives_the_same_figures_and_every_job_ends() {
    let place = Place::new();
    let args =
        ["--gpus", "8,16", "--mislabelled", "0.2", "--non-elastic", "0.5", "--ramp-up", "--resize-s", "10", "--json"];
    let seeded = |seed| figures(place.run(&[&args[..], &["--seed", seed]].concat()));
    let first = seeded("1");
    assert_eq!(first, seeded("1"));
    assert_ne!(first["8"]["cornucopia"], seeded("2")["8"]["cornucopia"], "others are drawn");
    for policy in ["cornucopia", "srtf", "srtf-elastic", "tiresias", "elasticflow", "chronus"] {
        assert_eq!(first["16"][policy]["finished"], 40, "{policy}");
    }
}

#[test]
fn a_run_is_a_table_and_a_file() {
    let place = Place::new();
    let out = place.file("out");
    let ran = place.run(&["--gpus", "8", "--policies", "cornucopia,srtf", "--out", &out]).ok();
    assert!(
        ran.stdout.lines().any(|line| line.trim_start().starts_with("8 ") && line.contains(" cornucopia ")),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("1 job is left out for want of GPUs"), "{}", ran.stderr);
    let table = fs::read_to_string(format!("{out}/elastic.csv")).unwrap();
    assert!(table.starts_with("gpus,policy,figure,value\n8,cornucopia,") && table.contains("8,srtf,finished,40\n"));
}

#[test]
fn deadlines_are_read_where_a_policy_uses_them() {
    let place = Place::new();
    let row = |id: u64, until: &str| format!("{id},vc_1,1,0,10,vgg16,30,1,{until},10,0,strict\n");
    place.write("jobs.csv", &format!("{HEADER}{}{}", row(7, "soon"), row(8, "90")));
    let part = "jobs.csv, row 2: column expect_time_list: \"soon\" is not a whole number of at least 0";
    let printed = place.run(&["--policies", "chronus"]);
    assert_eq!((printed.code, printed.stderr.contains(part)), (3, true), "{}", printed.stderr);
    let answer = figures(place.run(&["--gpus", "8", "--policies", "srtf", "--json"]));
    assert_eq!((&answer["8"]["srtf"]["finished"], &answer["8"]["srtf"]["deadlines"]), (&2.into(), &0.into()));
    let ran = place.run(&["--gpus", "8", "--policies", "chronus", "--skip-bad-rows", "--json"]).ok();
    assert_eq!(ran.stderr.matches("row 2 is left out").count(), 1, "{}", ran.stderr);
    let answer = &figures(ran)["8"]["chronus"];
    assert_eq!(
        (&answer["finished"], &answer["deadlines"], &answer["deadlines_met"]),
        (&1.into(), &1.into(), &1.into())
    );
    place.write("jobs.csv", "job_id,user,num_gpu,submit_time,model_name,duration,best_effort\n7,vc_1,1,0,vgg16,30,0\n");
    let printed = place.run(&["--policies", "chronus"]);
    assert_eq!((printed.code, printed.stderr.contains("expect_time_list")), (3, true), "{}", printed.stderr);
    assert_eq!(place.run(&["--policies", "srtf"]).code, 0, "who looks at no deadlines needs none");
}

#[test]
fn impossible_simulations_are_named_with_a_remedy() {
    let place = Place::new();
    place.write("labels.csv", "job_id,label\n0,batch\n");
    place.write("bad.csv", "# by hand\nmodel_name,gpus,speed_thousandths\nvgg16,1,0\n");
    place.write("few.csv", "model_name,gpus,speed_thousandths\nvgg16,1,1000\n");
    let (labels, bad, few) = (place.file("labels.csv"), place.file("bad.csv"), place.file("few.csv"));
    for (words, code, part) in [
        (&["--policies", "best"][..], 2, "\"best\" is no policy for elastic jobs; there are cornucopia, srtf, "),
        (&["--mislabelled", "2"], 2, "write a share of 0 to 1, such as 0.05"),
        (&["--gpus", "0"], 2, "--gpus"),
        (&["--gpus", "8,4,8"], 2, "--gpus names 8 twice"),
        (&["--policies", "srtf,srtf"], 2, "--policies names srtf twice"),
        (&["--labels", &labels], 3, "labels.csv: says nothing of job 1: add a row 1,interactive or 1,batch"),
        (&["--profiles", &bad], 3, "bad.csv, row 3: column speed_thousandths: \"0\" is not a whole number from 1"),
        (
            &["--profiles", &few],
            3,
            "job 1 trains \"alexnet\", of which there is no profile but of vgg16: add its speeds",
        ),
    ] {
        let printed = place.run(words);
        assert_eq!((printed.code, printed.stderr.contains(part)), (code, true), "{words:?}: {}", printed.stderr);
    }
    place.write("jobs.csv", &format!("{HEADER}7,vc_1,x,0,10,vgg16,30,1,1,1,0,strict\n"));
    let printed = place.run(&[]);
    assert_eq!(
        (printed.code, printed.stderr.contains("jobs.csv, row 2: column num_gpu")),
        (3, true),
        "{}",
        printed.stderr
    );
    let printed = program("simulate", &["elastic"]);
    assert_eq!((printed.code, printed.stderr.contains("--jobs <FILE>")), (2, true), "{}", printed.stderr);
}
