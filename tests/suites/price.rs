//! The price of a promise, as `simulate compare` prints it: guarantee rates, draws, and the wait for victims.

use crate::simulate::{Place, figures, on_philly};
use std::fs;
use std::path::Path;
use tests::public_data;

#[test]
fn each_policy_with_a_quota_is_played_at_each_rate_and_the_others_once() {
    let place = Place::new();
    let all = figures(place.run(&[
        "compare",
        "--policies",
        "gfs:live,gfs-noquota,chronus",
        "--guarantee-rates",
        "0.5,0.95",
        "--json",
    ]));
    let names: Vec<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["chronus", "gfs-noquota", "gfs:live@0.5", "gfs:live@0.95"]);
    assert_eq!(all["gfs:live@0.95"]["guarantee_rate"].as_f64(), Some(0.95));
    assert!(all["gfs-noquota"].get("guarantee_rate").is_none(), "{all}");
    let alone = figures(place.run(&["--policy", "gfs:live", "--guarantee-rate", "0.5", "--json"]));
    assert_eq!(alone["gfs:live"], all["gfs:live@0.5"]);
}

#[test]
fn draws_are_means_and_deviations_of_runs_without_some_spot_jobs() {
    let place = Place::new();
    let all =
        |more: &[&str]| place.run(&[&["compare", "--policies", "gfs-noquota", "--json"], more].concat()).ok().json();
    let drawn = all(&["--draws", "4", "--seed", "2", "--spot-scale", "0.5"]);
    let one = |seed: u64| {
        let alone = all(&["--seed", &seed.to_string(), "--spot-scale", "0.495"]);
        alone["gfs-noquota"]["finished"].as_f64().unwrap()
    };
    let finished: Vec<f64> = (2..6).map(one).collect();
    let mean = finished.iter().sum::<f64>() / 4.0;
    let sd = (finished.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    let of = &drawn["gfs-noquota"];
    assert_eq!(of["draws"].as_u64(), Some(4));
    assert!(sd > 0.0, "the draws differ: {finished:?}");
    assert_eq!(of["figures"]["finished"], serde_json::json!({"mean": mean, "sd": sd}), "{finished:?}");
}

#[test]
fn promise_costs_are_a_picture_and_a_table() {
    let place = Place::new();
    let out = place.file("out");
    let words = ["compare", "--policies", "gfs:oracle,gfs-noquota", "--guarantee-rates", "0.9,0.5", "--draws", "2"];
    let ran = place.run(&[&words[..], &["--grace-s", "60", "--out", &out]].concat()).ok();
    assert!(
        ran.stdout.lines().any(|line| line.starts_with("gfs:oracle@0.5 ") && line.contains(" ± ")),
        "{}",
        ran.stdout
    );
    let page = fs::read_to_string(format!("{out}/compare.html")).unwrap();
    for part in [
        "<h2>What a promise costs</h2>",
        "aria-label=\"Completion time of spot",
        "class=\"good\"",
        ">p 0.9<",
        ">p 0.5<",
        "gfs-noquota",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let table = fs::read_to_string(format!("{out}/price.csv")).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
    let starts: Vec<[&str; 3]> = lines.iter().map(|line| [line[0], line[1], line[2]]).collect();
    let rows = [["gfs:oracle", "0.9", "2"], ["gfs:oracle", "0.5", "2"], ["gfs-noquota", "", "2"]];
    assert_eq!(starts[1..], rows);
    // Without a quota HP evicts, and waits for its victims.
    let queue = lines[0].iter().position(|name| *name == "hp_queue_mean_s").unwrap();
    assert_eq!((lines[1][queue], lines[3][queue]), ("0", "60"), "{table}");
}

#[test]
fn guarantee_rates_that_mean_nothing_and_repeated_policies_are_refused_before_anything_runs() {
    let place = Place::new();
    for (policies, more, part) in [
        ("gfs", &["--guarantee-rates", "0.9,1.5"][..], "1.5"),
        ("gfs", &["--guarantee-rates", "0.9,high"], "high"),
        ("gfs", &["--guarantee-rates", "0.9,0.5,0.9"], "--guarantee-rates names 0.9 twice"),
        ("gfs,fifo-fair,gfs", &[], "--policies names gfs twice"),
        (
            "gfs-noquota,chronus",
            &["--guarantee-rates", "0.9"],
            "changes nothing for gfs-noquota, chronus: add a policy",
        ),
        ("gfs", &["--guarantee-rates", "0.9", "--guarantee-rate", "0.8"], "cannot be used with"),
        ("gfs", &["--guarantee-rates", "-0.5"], "--guarantee-rates"),
        ("gfs", &["--draws", "1"], "--draws"),
        ("gfs", &["--grace-s", "-1"], "--grace-s"),
    ] {
        let out = place.file("refused");
        let printed = place.run(&[&["compare", "--policies", policies, "--out", &out], more].concat());
        assert_eq!((printed.code, printed.stderr.contains(part)), (2, true), "{more:?}: {}", printed.stderr);
        assert!(!Path::new(&out).exists(), "{more:?}");
    }
}

#[test]
fn on_philly_a_smaller_p_sells_more_and_hp_pays_for_it_with_evictions() {
    let name = "on_philly_a_smaller_p_sells_more_and_hp_pays_for_it_with_evictions";
    let Some(folder) = public_data(name, "philly-gfs") else { return };
    let more = ["--guarantee-rates", "0.5,0.95", "--guarantee-hours", "4", "--grace-s", "60"];
    let all = on_philly(&folder, "gfs:live", &more);
    let of = |figure: &str| ["gfs:live@0.5", "gfs:live@0.95"].map(|name| all[name][figure].as_f64().unwrap());
    let [sells_more, keeps_more] = of("spot_jct_mean_s");
    assert!(sells_more < 0.75 * keeps_more, "{all}");
    for price in ["hp_queue_mean_s", "hp_evicting_share", "evictions_per_spot_job"] {
        let [sells_more, keeps_more] = of(price);
        assert!(sells_more > 1.3 * keeps_more && keeps_more > 0.0, "{price}: {sells_more} and {keeps_more}");
    }
}
