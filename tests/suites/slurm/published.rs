//! Limits that are published, what Slurm makes of them, and what becomes of them when nobody publishes any more.

use super::doctor::changed;
use super::stub::Stub;
use super::{connector, ran, until, until_state};
use serde_json::json;
use std::time::Duration;
use tests::{Lent, Listening, slurm};

const PUBLISH: (&str, &str) = ("HEADROOM_MODE", "publish");

fn until_limit(slurm: &Lent, qos: &str, wanted: &str) -> Duration {
    let mut last = String::new();
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("a limit", || {
            last = slurm.limit(qos);
            (last == wanted).then_some(())
        })
    }));
    found.unwrap_or_else(|_| panic!("{qos}: {last}, not {wanted}")).1
}

fn spot(slurm: &Lent, hours: u8, gpus: &str) -> u32 {
    let (account, qos) = if hours == 1 { ("spot", "spot1h") } else { ("spot-4h", "spot4h") };
    let arguments = [format!("--account={account}"), format!("--qos={qos}"), format!("--gres=gpu:{gpus}")];
    slurm.submit(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), 600)
}

fn metric(of: &Listening, name: &str) -> Option<f64> {
    let text = ureq::get(&format!("http://{}/metrics", of.address)).call().ok()?.body_mut().read_to_string().ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn limits_follow_the_quota_and_slurm_holds_jobs_to_them() {
    let Some(slurm) = slurm("publish") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 10.0), (4, 4.0)]);
    stub.offer("h100", &[(1, 6.0), (4, 2.0)]);
    let writer = connector(&slurm, "run", &stub.url, &[PUBLISH]);
    // 1. One QOS beside the other: no more of four hours than their quota, no more of both than that of one.
    until_limit(&slurm, "spot1h", "gres/gpu:a100=6,gres/gpu:h100=4,gres/gpu=10");
    until_limit(&slurm, "spot4h", "gres/gpu:a100=4,gres/gpu:h100=2,gres/gpu=6");
    // 2. What fits starts. What waits gets what the other QOS leaves, which is lowered first.
    let (first, second) = (spot(&slurm, 1, "a100:6"), spot(&slurm, 1, "a100:1"));
    slurm.until_state(first, "R");
    slurm.until_state(second, "R");
    let long = spot(&slurm, 4, "a100:3");
    slurm.until_state(long, "R");
    until_state(&stub, "earth:a100", &[("spot_gpus_by_guarantee_hours", json!({"1": 7.0, "4": 3.0}))]);
    // 3. What is beyond the quota waits for the limit, and its wait is reported: it would fit.
    let third = spot(&slurm, 1, "a100:1");
    slurm.until_state(third, "PD QOSGrpGRES");
    until("the wait for quota", || (stub.state("earth:a100")?["longest_quota_wait_s"].as_u64()? > 0).then_some(()));
    // 4. A quota below what runs: nothing is evicted, and what ends is not replaced before all that runs is within it.
    stub.offer("a100", &[(1, 3.0), (4, 1.0)]);
    // The sum has what runs beyond it, so that jobs of h100 do not wait for it.
    let lowered = until_limit(&slurm, "spot1h", "gres/gpu:a100=0,gres/gpu:h100=4,gres/gpu=11");
    println!("a lower quota holds {:.1} s after it was offered", lowered.as_secs_f64());
    assert_eq!((slurm.state(first).as_str(), slurm.state(long).as_str()), ("R None", "R None"));
    assert!(slurm.state(third).starts_with("PD"));
    let of_others = spot(&slurm, 1, "h100:4");
    slurm.until_state(of_others, "R");
    let _ = slurm.run("scancel", &[&of_others.to_string()]);
    let _ = slurm.run("scancel", &[&first.to_string()]);
    until_state(&stub, "earth:a100", &[("spot_gpus_by_guarantee_hours", json!({"1": 1.0, "4": 3.0}))]);
    assert!(slurm.state(third).starts_with("PD"), "four of three are promised");
    let _ = slurm.run("scancel", &[&long.to_string()]);
    slurm.until_state(third, "R");
    let fourth = spot(&slurm, 1, "a100:2");
    slurm.until_state(fourth, "PD QOSGrpGRES");
    // 5. Raised again, after it was wanted for a while.
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    until_limit(&slurm, "spot4h", "gres/gpu:a100=0,gres/gpu:h100=2,gres/gpu=2");
    until_limit(&slurm, "spot1h", "gres/gpu:a100=8,gres/gpu:h100=4,gres/gpu=12");
    slurm.until_state(fourth, "R");
    // 6. Limits of an administrator's own stay, and so does ours after a stop.
    let _ = slurm.run("sacctmgr", &["-i", "modify", "qos", "spot1h", "set", "GrpTRES=cpu=500"]);
    stub.offer("a100", &[(1, 7.0), (4, 0.0)]);
    until_limit(&slurm, "spot1h", "cpu=500,gres/gpu:a100=7,gres/gpu:h100=4,gres/gpu=11");
    let _ = slurm.run("sacctmgr", &["-i", "modify", "qos", "spot1h", "set", "GrpTRES=cpu=-1"]);
    assert_eq!(writer.stop().code, 0);
    assert_eq!(slurm.limit("spot1h"), "gres/gpu:a100=7,gres/gpu:h100=4,gres/gpu=11");
}

#[test]
fn two_jobs_larger_than_an_even_part_of_the_quota_run_one_after_the_other() {
    let Some(slurm) = slurm("large jobs") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 12.0), (4, 12.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let _writer = connector(&slurm, "run", &stub.url, &[PUBLISH]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=6,gres/gpu:h100=0,gres/gpu=6");
    let both = [spot(&slurm, 1, "a100:8"), spot(&slurm, 4, "a100:8")];
    let (first, _) = until("one of them runs", || both.iter().position(|job| slurm.state(*job).starts_with('R')));
    let other = both[1 - first];
    assert!(slurm.state(other).starts_with("PD"), "16 of 12 GPUs");
    let _ = slurm.run("scancel", &[&both[first].to_string()]);
    slurm.until_state(other, "R");
}

#[test]
fn a_chain_of_accounts_holds_an_hour_and_four_one_inside_the_other() {
    let Some(slurm) = slurm("nesting accounts") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 6.0), (4, 4.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let chain = [PUBLISH, ("HEADROOM_NESTING", "accounts"), ("HEADROOM_SPOT_ACCOUNTS", "spot=1,spot-4h=4")];
    let _writer = connector(&slurm, "run", &stub.url, &chain);
    let limit = |account: &str| {
        let of = format!("account={account}");
        slurm.run("sacctmgr", &["-nP", "show", "assoc", "where", &of, "user=", "format=grptres"]).trim().to_owned()
    };
    until("limits of accounts", || {
        (limit("spot") == "gres/gpu:a100=6,gres/gpu:h100=0,gres/gpu=6"
            && limit("spot-4h").starts_with("gres/gpu:a100=4"))
        .then_some(())
    });
    let long = spot(&slurm, 4, "a100:4");
    slurm.until_state(long, "R");
    let (short, more) = (spot(&slurm, 1, "a100:2"), spot(&slurm, 4, "a100:1"));
    slurm.until_state(short, "R");
    slurm.until_state(more, "PD AssocGrpGRES");
    let last = spot(&slurm, 1, "a100:1");
    slurm.until_state(last, "PD AssocGrpGRES");
}

#[test]
fn with_its_connector_killed_limits_fall_to_what_is_held_and_jobs_stay() {
    let Some(slurm) = slurm("watchdog") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 12.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let mut writer = connector(&slurm, "run", &stub.url, &[PUBLISH]);
    let watchdog = connector(&slurm, "watchdog", &stub.url, &[]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=12,gres/gpu:h100=0,gres/gpu=12");
    let held = spot(&slurm, 1, "a100:6");
    slurm.until_state(held, "R");
    // 1. While it beats nothing is lowered, also not by a timer's call.
    std::thread::sleep(Duration::from_secs(9));
    assert_eq!(slurm.limit("spot1h"), "gres/gpu:a100=12,gres/gpu:h100=0,gres/gpu=12");
    // 2. kill -9.
    writer.kill();
    let took = until_limit(&slurm, "spot1h", "gres/gpu:a100=6,gres/gpu:h100=0,gres/gpu=6");
    println!("12 GPUs were lowered to the 6 that are held {:.1} s after kill -9", took.as_secs_f64());
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(slurm.state(held), "R None");
    let new = spot(&slurm, 1, "a100:1");
    slurm.until_state(new, "PD QOSGrpGRES");
    // 3. One that is back raises them again.
    assert_eq!(watchdog.stop().code, 0);
    let mut again = connector(&slurm, "run", &stub.url, &[PUBLISH]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=12,gres/gpu:h100=0,gres/gpu=12");
    slurm.until_state(new, "R");
    // 4. The same by calls of a timer: the first notes the beat, one after the time lowers.
    again.kill();
    let once = || ran(&slurm, &["watchdog", "--once", "--json"], &stub.url, &[]).json();
    assert_eq!(once()["beats"], true);
    std::thread::sleep(Duration::from_secs(9));
    let lowered = once();
    assert_eq!(lowered["lowered"], json!({"spot1h": {"gres/gpu": 7, "gres/gpu:a100": 7}}), "{lowered}");
    assert_eq!(once()["lowered"], json!({}), "there is nothing more to lower");
}

/// Two machines, each with a connector, its heartbeat and its watchdog.
#[test]
fn the_watchdog_of_a_connector_that_is_gone_leaves_the_limits_of_another_one_alone() {
    let Some(slurm) = slurm("watchdogs of two machines") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 9.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let hearts = [slurm.path("heartbeat-one"), slurm.path("heartbeat-other")];
    let on = |machine: usize, command: &str, name: &str| {
        let own = [PUBLISH, ("HEADROOM_HEARTBEAT_FILE", hearts[machine].as_str()), ("HEADROOM_IDENTITY", name)];
        connector(&slurm, command, &stub.url, &own)
    };
    // The same name, as two machines with one file of settings have it: still one of them writes.
    let (one, other) = (on(0, "run", "headroom"), on(1, "run", "headroom"));
    until("a writer", || {
        let leads = [&one, &other].map(|of| metric(of, "headroom_slurm_leads").unwrap_or(0.0));
        (leads[0] + leads[1] == 1.0).then_some(())
    });
    let (mut writer, machine, mut gone) =
        if metric(&one, "headroom_slurm_leads") == Some(1.0) { (one, 1, other) } else { (other, 0, one) };
    until_limit(&slurm, "spot1h", "gres/gpu:a100=9,gres/gpu:h100=0,gres/gpu=9");
    // 1. The other one is gone, its heartbeat stands still, and its watchdog looks again and again.
    gone.kill();
    let watchdog = on(machine, "watchdog", "watchdog");
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(slurm.limit("spot1h"), "gres/gpu:a100=9,gres/gpu:h100=0,gres/gpu=9");
    // 2. The writer is gone, too: now nobody publishes, and it lowers.
    writer.kill();
    until_limit(&slurm, "spot1h", "gres/gpu:a100=0,gres/gpu:h100=0,gres/gpu=0");
    let log = watchdog.stop().stderr;
    assert!(log.matches("another connector publishes").count() == 1, "{log}");
}

#[test]
fn a_write_of_a_connector_that_was_killed_ends_before_its_lease_does() {
    let Some(slurm) = slurm("orphans") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    // An accounting that takes a write and answers late.
    let (begun, done) = (slurm.path("write-begun"), slurm.path("write-done"));
    let late = format!(
        "[ \"$2\" != modify ] && exec sacctmgr \"$@\"; touch {begun}; sleep 6; touch {done}; exec sacctmgr \"$@\""
    );
    let folder = changed(&slurm, "sacctmgr", &late);
    let mut writer = connector(&slurm, "run", &stub.url, &[PUBLISH, ("HEADROOM_SLURM_BIN", &folder)]);
    until("a write", || std::path::Path::new(&begun).exists().then_some(()));
    writer.kill();
    std::thread::sleep(Duration::from_secs(8));
    assert!(!std::path::Path::new(&done).exists(), "it wrote when its lease was over");
    assert_eq!(slurm.limit("spot1h"), "");
}

#[test]
fn an_accounting_that_is_away_leaves_limits_as_they_were_and_is_written_to_again() {
    let Some(slurm) = slurm("slurmdbd away") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let writer = connector(&slurm, "run", &stub.url, &[PUBLISH]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=8,gres/gpu:h100=0,gres/gpu=8");
    let held = spot(&slurm, 1, "a100:5");
    slurm.until_state(held, "R");
    slurm.pause_accounting(true);
    stub.offer("a100", &[(1, 6.0), (4, 0.0)]);
    until("the alarm", || (metric(&writer, "headroom_slurm_limits_in_order")? == 0.0).then_some(()));
    // Jobs are seen, since the controller answers.
    let more = spot(&slurm, 1, "a100:2");
    slurm.until_state(more, "R");
    until_state(&stub, "earth:a100", &[("idle_gpus", json!(9.0))]);
    slurm.pause_accounting(false);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=6,gres/gpu:h100=0,gres/gpu=7");
    until("the end of the alarm", || (metric(&writer, "headroom_slurm_limits_in_order")? == 1.0).then_some(()));
    let log = writer.stop().stderr;
    assert!(log.contains("limits are not as they should be") && log.contains("as they should be again"), "{log}");
    assert!(log.matches("limits are not as they should be").count() == 1, "a line a second: {log}");
}

#[test]
fn of_two_connectors_one_writes_and_the_other_takes_over() {
    let Some(slurm) = slurm("two connectors") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let one = connector(&slurm, "run", &stub.url, &[PUBLISH, ("HEADROOM_IDENTITY", "one")]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=8,gres/gpu:h100=0,gres/gpu=8");
    let other = connector(&slurm, "run", &stub.url, &[PUBLISH, ("HEADROOM_IDENTITY", "other")]);
    until("the answer that another one holds the lease", || metric(&other, "headroom_slurm_leads"));
    let writes = |of: &Listening| metric(of, "headroom_slurm_writes_total").unwrap_or(0.0);
    assert_eq!((metric(&one, "headroom_slurm_leads"), metric(&other, "headroom_slurm_leads")), (Some(1.0), Some(0.0)));
    stub.offer("a100", &[(1, 5.0), (4, 0.0)]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=5,gres/gpu:h100=0,gres/gpu=5");
    assert!(writes(&one) > 0.0 && writes(&other) == 0.0);
    // A frozen one loses its lease, the other writes, and the first one writes nothing when it goes on.
    one.pause(true);
    let ((), took) = until("the takeover", || (metric(&other, "headroom_slurm_leads")? == 1.0).then_some(()));
    println!("takeover {:.1} s after the writer froze, with a lease of 5 s", took.as_secs_f64());
    let before = {
        stub.offer("a100", &[(1, 4.0), (4, 0.0)]);
        until_limit(&slurm, "spot1h", "gres/gpu:a100=4,gres/gpu:h100=0,gres/gpu=4");
        one.pause(false);
        writes(&one)
    };
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(writes(&one), before);
    // One that stops gives the lease back.
    assert_eq!(other.stop().code, 0);
    until("the lease again", || (metric(&one, "headroom_slurm_leads")? == 1.0).then_some(()));
}

#[test]
fn a_limit_that_slurm_does_not_know_is_named_and_nothing_is_written() {
    let Some(slurm) = slurm("unknown QOS") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0)]);
    let writer = connector(&slurm, "run", &stub.url, &[PUBLISH, ("HEADROOM_SPOT_QOS", "spot1h=1,nosuch=2")]);
    until("the alarm", || (metric(&writer, "headroom_slurm_limits_in_order")? == 0.0).then_some(()));
    assert_eq!(slurm.limit("spot1h"), "");
    let log = writer.stop().stderr;
    assert!(log.contains("spot_qos: Slurm knows no QOS nosuch"), "{log}");
}

#[test]
fn without_a_heartbeat_limits_are_lowered_and_none_is_raised() {
    let Some(slurm) = slurm("no heartbeat") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let good = connector(&slurm, "run", &stub.url, &[PUBLISH]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=8,gres/gpu:h100=0,gres/gpu=8");
    assert_eq!(good.stop().code, 0);
    // A folder that is not there, or a disk that is full.
    let bad = connector(&slurm, "run", &stub.url, &[PUBLISH, ("HEADROOM_HEARTBEAT_FILE", "/nosuch/heartbeat")]);
    stub.offer("a100", &[(1, 12.0), (4, 0.0)]);
    until("the alarm", || (metric(&bad, "headroom_slurm_limits_in_order")? == 0.0).then_some(()));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(slurm.limit("spot1h"), "gres/gpu:a100=8,gres/gpu:h100=0,gres/gpu=8");
    stub.offer("a100", &[(1, 5.0), (4, 0.0)]);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=5,gres/gpu:h100=0,gres/gpu=5");
    let log = bad.stop().stderr;
    assert!(log.contains("heartbeat_file: /nosuch/heartbeat"), "{log}");
}

#[test]
fn a_raise_that_slurm_refuses_is_an_alarm_until_it_is_written() {
    let Some(slurm) = slurm("refused writes") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 4.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let refuses = slurm.path("refuses");
    let script = format!(
        "[ \"$2\" = modify ] && [ -e {refuses} ] && {{ echo \"Your user doesn't have privileges\" >&2; exit 1; }}; exec sacctmgr \"$@\""
    );
    let folder = changed(&slurm, "sacctmgr", &script);
    let own = [PUBLISH, ("HEADROOM_SLURM_BIN", folder.as_str()), ("HEADROOM_RAISE_AFTER_S", "4")];
    let writer = connector(&slurm, "run", &stub.url, &own);
    until_limit(&slurm, "spot1h", "gres/gpu:a100=4,gres/gpu:h100=0,gres/gpu=4");
    std::fs::write(&refuses, "").unwrap();
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    let in_order = || metric(&writer, "headroom_slurm_limits_in_order");
    until("the alarm", || (in_order()? == 0.0).then_some(()));
    // Between two attempts there is nothing to write, and the alarm stays.
    for _ in 0..30 {
        assert_eq!(in_order(), Some(0.0));
        std::thread::sleep(Duration::from_millis(200));
    }
    std::fs::remove_file(&refuses).unwrap();
    until_limit(&slurm, "spot1h", "gres/gpu:a100=8,gres/gpu:h100=0,gres/gpu=8");
    until("the end of the alarm", || (in_order()? == 1.0).then_some(()));
    assert!(writer.stop().stderr.contains("have privileges"));
}
