//! `simulate`: the same bytes for the same seed, one page and one table, clear errors, and figures on a public trace.

use serde_json::Value;
use std::fs;
use std::path::Path;
use tests::{Ran, program, public_data};

/// A place with two nodes and a few jobs.
pub struct Place(tempfile::TempDir);

const JOBS: &str = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n\
    spot,1,V100,4,8,1,0,10000,Spot\nshare,1,V100,4,0.5,1,100,600,Spot\nhp,2,V100,4,8,2,5000,1000,HP\n";

impl Place {
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let nodes = "node_name,gpu_model,gpu_capacity_num,cpu_num\na,V100,8,64\nb,V100,8,64\n";
        place.write("nodes.csv", nodes);
        place.write("jobs.csv", JOBS);
        place
    }

    pub fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }

    pub fn run(&self, more: &[&str]) -> Ran {
        let (nodes, jobs) = (self.file("nodes.csv"), self.file("jobs.csv"));
        let trace = ["--nodes", nodes.as_str(), "--jobs", jobs.as_str()];
        let words = match more.split_first() {
            Some((&"compare", rest)) => [&["compare"], &trace[..], rest].concat(),
            _ => [&trace[..], more].concat(),
        };
        program("simulate", &words)
    }
}

/// Without what differs from run to run.
pub fn figures(ran: Ran) -> Value {
    let mut all = ran.ok().json();
    for policy in all.as_object_mut().unwrap().values_mut() {
        for name in ["cpu_s", "train_cpu_s", "peak_rss_mib"] {
            assert!(policy.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
    }
    all
}

#[test]
fn the_same_seed_gives_the_same_figures_and_policies_differ() {
    let place = Place::new();
    let compared = || {
        let policies =
            ["--policies", "gfs,gfs:oracle,gfs-p,gfs-noquota,yarn-cs,fifo-fair,lyra,fgd,gfs-paper,chronus", "--json"];
        figures(place.run(&[&["compare", "--seed", "3"], &policies[..]].concat()))
    };
    let first = compared();
    assert_eq!(first, compared());
    let one = &first["gfs-noquota"];
    assert_eq!((one["finished"].as_u64(), one["evictions"].as_u64()), (Some(3), Some(1)), "{one}");
    assert_eq!(first["gfs:oracle"]["evictions"].as_u64(), Some(0), "who knows what comes evicts nobody");
}

#[test]
fn with_a_topology_pods_lie_as_they_ask_and_their_share_is_shown_only_then() {
    let place = Place::new();
    let pair = "a,1,V100,4,3,1,0,9000,Spot\nb,1,V100,4,3,1,0,9000,Spot\nhp,2,V100,4,2,1,5000,1000,HP\n";
    place.write("jobs.csv", &format!("{}{pair}", JOBS.lines().next().unwrap().to_owned() + "\n"));
    let compared = |more: &[&str]| {
        figures(place.run(&[&["compare", "--policies", "gfs-noquota,gfs-topology:live", "--json"], more].concat()))
    };
    assert!(compared(&[])["gfs-topology:live"].get("aligned_share").is_none());
    let asked = compared(&["--topology", "a100-8", "--affinity", "socket:guaranteed", "--nodes-minus", "1"]);
    assert_eq!(asked["gfs-topology:live"]["aligned_share"].as_f64(), Some(1.0), "{asked}");
    let blind = asked["gfs-noquota"]["aligned_share"].as_f64().unwrap();
    assert!(blind < 1.0 && asked["gfs-noquota"]["finished"] == 3, "{asked}");
    let file = place.file("topology.json");
    place
        .write("topology.json", r#"{"numa_nodes": [{"numa_node": 0, "socket": 0, "gpus": [0, 1, 2, 3, 4, 5, 6, 7]}]}"#);
    let flat = compared(&["--topology", &file, "--affinity", "numa"]);
    assert_eq!(flat["gfs-noquota"]["aligned_share"].as_f64(), Some(1.0), "all GPUs lie together: {flat}");
    for (words, part) in [
        (&["--affinity", "numa"][..], "--topology"),
        (&["--topology", "a100-8", "--affinity", "rack"], "write one of numa, socket, nvlink-island"),
        (&["--topology", "dgx"], "write a file with a topology, or one of rtx4090-8, a100-8"),
    ] {
        let printed = place.run(words);
        assert!(printed.code == 2 && printed.stderr.contains(part), "{words:?}: {}", printed.stderr);
    }
}

#[test]
fn in_a_full_cluster_every_preemptor_gets_gpus_that_lie_together_where_there_are_any() {
    let counts = || {
        let all = program("simulate", &["topology", "--cycles", "5", "--seed", "1", "--json"]).ok().json();
        let of = |engine: &str, figure: &str| all[engine]["all"][figure].as_u64().unwrap();
        ["preemptions", "possible", "aligned", "refused"].map(|figure| [of("aware", figure), of("blind", figure)])
    };
    let [preemptions, possible, aligned, refused] = counts();
    assert_eq!((preemptions, possible, refused), ([250; 2], [250; 2], [0; 2]));
    assert!(aligned[0] == 250 && aligned[1] < 200, "{aligned:?}");
    assert_eq!(counts()[2], aligned, "the same seed gives the same figures");
    let printed = program("simulate", &["topology", "--cycles", "1", "--fill", "lowest"]).ok().stdout;
    assert!(printed.lines().any(|line| line.starts_with("gfs-topology  all")), "{printed}");
}

#[test]
fn a_comparison_is_a_table_and_a_page() {
    let place = Place::new();
    let out = place.file("out");
    let ran = place.run(&["compare", "--policies", "gfs,fifo-fair", "--out", &out]).ok();
    assert!(ran.stdout.lines().any(|line| line.starts_with("fifo-fair ")), "{}", ran.stdout);
    let page = fs::read_to_string(format!("{out}/compare.html")).unwrap();
    assert!(page.contains("<h2>fifo-fair</h2>") && page.contains("<svg"), "{page}");
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    let course = fs::read_to_string(format!("{out}/course.csv")).unwrap();
    assert!(course.lines().count() > 3 && course.lines().all(|line| line.split(',').count() == 9), "{course}");
    let table = fs::read_to_string(format!("{out}/compare.csv")).unwrap();
    assert!(table.contains("gfs,finished,3\n"), "{table}");
}

#[test]
fn impossible_replays_are_named() {
    let place = Place::new();
    place.write("jobs.csv", &format!("{JOBS}bad,1,V100,4,1,1,0,-5,HP\n"));
    let printed = place.run(&["--policy", "gfs"]);
    assert_eq!(
        (printed.code, printed.stderr.contains("row 5") && printed.stderr.contains("duration")),
        (3, true),
        "{}",
        printed.stderr
    );
    place.write("jobs.csv", &format!("{JOBS}wide,1,V100,4,9,1,0,5,HP\nelse,1,H800,4,1,1,0,5,HP\n"));
    let printed = place.run(&["--policy", "gfs"]).ok().stderr;
    assert!(printed.contains("2 jobs are left out, the first one else: there is no node with H800"), "{printed}");
    for (words, code, part) in [
        (&["--policy", "best"][..], 2, "\"best\" is no policy; there are gfs, "),
        (&["--predictor", "crystal"], 2, "live, jobs, oracle"),
        (&["--nodes-minus", "2"], 2, "2 nodes less leave none of 2"),
        (&["--spot-scale", "-1"], 2, "--spot-scale"),
    ] {
        let printed = place.run(words);
        assert_eq!((printed.code, printed.stderr.contains(part)), (code, true), "{words:?}: {}", printed.stderr);
    }
    assert_eq!(program("simulate", &["--policy", "gfs"]).code, 2);
}

#[test]
fn a_policy_file_names_the_parts_and_parts_that_conflict_are_refused() {
    let place = Place::new();
    let file = place.file("mine.toml");
    let answer = |text: &str| {
        place.write("mine.toml", text);
        place.run(&["--policy", &file, "--json"])
    };
    // The rules of gfs-noquota by their parts.
    let idle = figures(answer("name = \"mine\"\nadmission = \"idle\"\n[victims]\nby = \"least-waste\"\n"));
    let noquota = figures(place.run(&["--policy", "gfs-noquota", "--json"]));
    assert_eq!(idle["mine"], noquota["gfs-noquota"]);
    let both = format!("{file}:last-value,gfs");
    let table = place.run(&["compare", "--policies", &both]).ok().stdout;
    assert!(table.lines().any(|line| line.starts_with("mine:last-value ")), "{table}");
    for (text, printed) in [
        ("order = \"size\"", "mine.toml: name is missing"),
        ("name = \"mine\"\nordr = \"size\"", "mine.toml: key \"ordr\" is not known, did you mean \"order\"?"),
        ("name = \"mine\"\norder = 3", "mine.toml, key order: 3 is not a text"),
        ("name = \"mine\"\norder = \"fifo\"", "mine.toml, key order: \"fifo\" is no order; there are small-spot-first"),
        (
            "name = \"mine\"\n[victims]\nby = \"random\"\nusage_weight = 1",
            "mine.toml, key victims.usage_weight: victims by \"random\" do not look at what is lost",
        ),
        ("name = \"mine\"\n[victims]\nby = \"random\"\nidle_first = false", "mine.toml: idle_first = false is for"),
        ("name = ", "mine.toml"),
    ] {
        let ran = answer(text);
        assert_eq!((ran.code, ran.stderr.contains(printed)), (4, true), "{text}: {}", ran.stderr);
    }
    let none = place.run(&["--policy", "none.toml"]);
    assert_eq!((none.code, none.stderr.contains("none.toml: there is no such file")), (3, true), "{}", none.stderr);
}

#[test]
fn an_input_file_that_is_missing_or_a_folder_ends_with_exit_code_three_and_its_path() {
    let place = Place::new();
    let folder = place.0.path().to_str().unwrap().to_owned();
    for flag in ["--prices", "--topology"] {
        for (file, why) in [("/none.toml", "there is no such file"), (folder.as_str(), "it is a folder: name a file")] {
            let ran = place.run(&[flag, file, "--statement", "statement.csv"]);
            assert_eq!(ran.code, 3, "{flag} {file}: {}", ran.stderr);
            assert!(ran.stderr.contains(&format!("{file}: {why}")), "{flag} {file}: {}", ran.stderr);
        }
    }
    let misspelt = place.run(&["--topology", "a100-9"]);
    assert_eq!((misspelt.code, misspelt.stderr.contains("a100-8")), (2, true), "{}", misspelt.stderr);
}

#[test]
fn the_largest_seed_is_a_seed_of_several_draws() {
    let place = Place::new();
    let seed = u64::MAX.to_string();
    let ran = place.run(&["compare", "--policies", "gfs-noquota", "--seed", &seed, "--draws", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A pool of one node that spot holds, under a quota that leaves nothing, with an HP and a spot task that wait.
fn snapshot() -> String {
    use placement::fleet::{Gang, GpuRequest, PodRequest};
    use placement::pool::{Command, Pool, PoolRules, Request};
    use placement::{Limit, Policy};
    use vocab::{HorizonHours, MilliGpus, NodeId, Organization, TaskClass, TaskId, UnixSeconds};
    let mut pool = Pool::new(Policy::GFS, PoolRules::default());
    let now = UnixSeconds::new(1_763_800_000);
    let gpus = |gpus: u32| vec![Limit { hours: HorizonHours::ONE, quota: MilliGpus::from_gpus(gpus) }];
    let submit = |name: &str, class: TaskClass, gpus: u16| {
        let pod = PodRequest::new(GpuRequest::Whole(gpus), 0, 0);
        let gang = Gang { task: TaskId::parse(name).unwrap(), class, pod, pods: 1 };
        let hours = (class == TaskClass::Spot).then_some(HorizonHours::ONE);
        Command::Submit(Request {
            gang,
            organization: Organization::parse("a").unwrap(),
            submitted: now,
            hours,
            elastic: None,
        })
    };
    let node = NodeId::parse("a").unwrap();
    for command in [
        Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None },
        Command::SetLimits(gpus(4)),
        submit("runs", TaskClass::Spot, 4),
        submit("waits", TaskClass::Spot, 2),
        submit("wide", TaskClass::Hp, 9),
    ] {
        pool.handle(now, &command).1.unwrap();
    }
    serde_json::to_string(&wire::SnapshotRecord::from(&pool.snapshot())).unwrap()
}

#[test]
fn a_live_pool_is_judged_by_another_policy() {
    let place = Place::new();
    place.write("pool.json", &snapshot());
    let file = place.file("pool.json");
    let asked = |policy: &str| program("simulate", &["--snapshot", &file, "--policy", policy, "--json"]).ok().json();
    let verdicts = |of: &Value| -> Vec<String> {
        of["tasks"].as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap().to_owned()).collect()
    };
    let own = asked("gfs");
    assert_eq!(verdicts(&own), ["over_quota", "fits_never"], "{own}");
    assert_eq!(
        (own["idle_gpus"].as_f64(), own["hp_demand_gpus"].as_f64()),
        (Some(4.0), Some(0.0)),
        "what fits never is no demand"
    );
    assert_eq!(verdicts(&asked("gfs-noquota")), ["starts", "fits_never"]);
    let printed = program("simulate", &["--snapshot", &file]).ok().stdout;
    assert!(printed.contains("2.000 GPUs more than the 4.000 that are promised for 1h"), "{printed}");
    place.write("pool.json", "{}");
    let printed = program("simulate", &["--snapshot", &file]);
    assert_eq!((printed.code, printed.stderr.contains("missing field")), (3, true), "{}", printed.stderr);
}

/// Philly on 1,280 GPUs.
pub fn on_philly(folder: &Path, policies: &str, more: &[&str]) -> Value {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (nodes, jobs) = (file("node_info_df_1280.csv"), file("job_info_df.csv"));
    let trace = ["compare", "--nodes", &nodes, "--jobs", &jobs, "--policies", policies, "--json"];
    program("simulate", &[&trace[..], more].concat()).ok().json()
}

#[test]
fn promises_on_philly_are_kept_at_the_sold_rate_and_spot_waits_less_than_under_peak() {
    let name = "promises_on_philly_are_kept_at_the_sold_rate_and_spot_waits_less_than_under_peak";
    let Some(folder) = public_data(name, "philly-gfs") else { return };
    for hours in ["1", "4"] {
        let played = |promise| {
            let all = on_philly(&folder, "gfs:live", &["--guarantee-hours", hours, "--promise", promise]);
            let one = &all["gfs:live"];
            let promised = one["promises"].as_array().unwrap().last().unwrap().clone();
            (one["spot_jct_mean_s"].as_f64().unwrap(), promised["broken_share"].as_f64().unwrap())
        };
        let ((peak_jct_s, peak), (jct_s, broken)) = (played("peak"), played("kept"));
        assert!((0.05..=0.10).contains(&broken) && broken > 1.8 * peak, "{hours} h: {broken} instead of {peak}");
        assert!(jct_s < 0.97 * peak_jct_s, "{hours} h: {jct_s} instead of {peak_jct_s}");
    }
}

#[test]
fn gfs_under_peak_keeps_more_than_it_promises_on_philly_and_starts_spot_almost_as_soon_as_an_oracle() {
    let name = "gfs_under_peak_keeps_more_than_it_promises_on_philly_and_starts_spot_almost_as_soon_as_an_oracle";
    let Some(folder) = public_data(name, "philly-gfs") else { return };
    let all = on_philly(&folder, "gfs,gfs:last-value,gfs-noquota,fifo-fair", &["--promise", "peak"]);
    let of = |policy: &str, figure: &str| all[policy][figure].as_f64().unwrap();
    for policy in ["gfs", "gfs:last-value", "gfs-noquota", "fifo-fair"] {
        assert_eq!(of(policy, "finished"), 30_756.0);
    }
    assert!(of("gfs", "hp_queue_mean_s") <= 4.5 && of("gfs", "allocation_rate") >= 0.80, "{all}");
    // One draw: others deviate by 0.003 in their evictions.
    assert!(of("gfs", "guarantee_eviction_rate") <= 0.05 && of("gfs", "eviction_rate") <= 0.22, "{all}");
    assert!(of("gfs", "spot_jct_mean_s") <= 24_000.0, "{all}");
    assert!(of("gfs", "spot_jct_mean_s") < 0.7 * of("gfs:last-value", "spot_jct_mean_s"), "{all}");
    assert!(of("gfs", "spot_jct_mean_s") < 0.5 * of("fifo-fair", "spot_jct_mean_s"), "{all}");
    assert!(of("gfs", "guarantee_eviction_rate") < 0.3 * of("gfs-noquota", "guarantee_eviction_rate"), "{all}");
}
