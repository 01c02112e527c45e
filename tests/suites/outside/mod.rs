//! Attacks from outside, for seconds each: `make soak` goes on for minutes. The program that attacks shares no code with what it
//! attacks, so that a fault of one is not a fault of both.

use serde_json::Value;
use tests::program_with;

/// Runs a campaign; the lines that it printed, one for each database, in none of which a rule was broken.
fn attack(arguments: &[&str]) -> Vec<Value> {
    let postgres =
        std::env::var("HEADROOM_TEST_POSTGRES").expect("tests/with-postgres.sh starts a Postgres: run `make test`");
    let both = [arguments, &["--database", "both"]].concat();
    let ran = program_with("outside", &both, &[("HEADROOM_TEST_POSTGRES", &postgres)]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert_eq!(line["violations"].as_array().map(Vec::len), Some(0), "{line:#}");
    }
    assert_eq!((ran.code, lines.len()), (0, 2), "{}", ran.stderr);
    lines
}

/// A machine that may not mount a file system says so, in a line of its own.
fn was_run(line: &Value) -> bool {
    if let Some(reason) = line["not_run"].as_str() {
        eprintln!("{} was not run: {reason}", line["campaign"]);
    }
    line["not_run"].is_null()
}

#[test]
fn writes_of_clients_that_hang_up_are_audited() {
    for line in attack(&["hangups", "--seconds", "6"]) {
        assert!(line["counts"]["hangups"].as_u64() > Some(50), "{line:#}");
    }
}

// Other tests compute meanwhile: the ratio that counts is that of `make soak`.
#[test]
fn poison_is_refused_and_honest_clients_are_served_beside_it() {
    for line in attack(&["poison", "--seconds", "8", "--ratio", "0.4"]) {
        assert!(line["counts"]["poison_sent"].as_u64() > Some(20), "{line:#}");
    }
}

#[test]
fn unread_responses_take_bounded_memory_and_end() {
    for line in attack(&["unread", "--seconds", "8", "--clients", "60", "--quota-ms", "5000"]) {
        assert!(line["counts"]["quotas"].as_u64() > Some(10), "{line:#}");
    }
}

#[test]
fn a_disk_that_is_full_and_has_room_again_loses_nothing_and_needs_no_restart() {
    for line in attack(&["full-disk", "--seconds", "8", "--cycles", "2"]).iter().filter(|line| was_run(line)) {
        assert_eq!(line["counts"]["times_full"], 2, "{line:#}");
        for what in ["reservations_sold", "half_lives_acknowledged"] {
            assert!(line["counts"][what].as_u64() > Some(10), "{what}: {line:#}");
        }
    }
}

#[test]
fn new_organizations_by_the_thousand_cost_no_more_each_and_sigterm_ends_in_the_middle() {
    for line in attack(&["organizations", "--seconds", "60", "--sizes", "2000,16000"]) {
        assert!(line["figures"]["ended_after_sigterm_s"].is_f64(), "{line:#}");
    }
}
