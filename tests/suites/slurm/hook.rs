//! `job_submit.lua`: what a user reads at submission, in a real slurmctld and in a plain Lua.

use super::stub::Stub;
use super::{connector, until};
use std::process::Command;
use tests::{Lent, slurm, workspace_root};

fn spot(slurm: &Lent, qos: &str, gres: &str) -> Result<(u32, String), String> {
    let arguments = ["--account=spot".to_owned(), format!("--qos={qos}"), format!("--gres={gres}")];
    slurm.try_submit(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), 600)
}

#[test]
fn a_user_reads_what_is_free_what_is_spent_and_what_else_there_is_at_submission() {
    let Some(slurm) = slurm("job_submit.lua") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 10.0), (4, 4.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    // 1. Without a quota file every job passes, without a word.
    let (_, words) = spot(&slurm, "spot1h", "gpu:a100:1").unwrap();
    assert_eq!(words, "");
    let mut writer = connector(&slurm, "run", &stub.url, &[("HEADROOM_MODE", "publish+hook")]);
    let quota = || std::fs::read_to_string(slurm.path("quota")).unwrap_or_default();
    until("the quota file", || quota().contains("limit spot1h 1 a100 6 1").then_some(()));
    // 2. Free, spent, and what else is free.
    let (long, words) = spot(&slurm, "spot4h", "gpu:a100:4").unwrap();
    assert_eq!(words, "sbatch: headroom: 4 a100 guaranteed for 4 h from their start; 4 were free\n");
    slurm.until_state(long, "R");
    until("what is held", || quota().contains("limit spot4h 4 a100 4 4").then_some(()));
    let (_, words) = spot(&slurm, "spot4h", "gpu:a100:2").unwrap();
    let spent = "sbatch: headroom: 4 h guaranteed is spent: 0 of 4 a100 are free, this job asks for 2; it waits; \
        1 h is free now for 5 GPUs (--qos=spot1h)\n";
    assert_eq!(words, spent);
    // 3. A type is asked for, where there are several; HP jobs pass without a word.
    let refused = spot(&slurm, "spot1h", "gpu:2").unwrap_err();
    assert!(
        refused.contains("a spot job has to name its GPU type: --gres=gpu:TYPE:2 with TYPE one of a100, h100"),
        "{refused}"
    );
    let (_, words) = slurm.try_submit(&["--account=vision", "--gres=gpu:1"], 1).unwrap();
    assert_eq!(words, "");
    let (_, words) = spot(&slurm, "SPOT1H", "gpu:a100:1").unwrap();
    assert!(words.starts_with("sbatch: headroom: 1 a100 guaranteed for 1 h"), "{words}");
    // 4. A file that nobody renews: spot is refused, HP passes.
    writer.kill();
    until("the file is stale", || {
        spot(&slurm, "spot1h", "gpu:a100:1").err().filter(|words| words.contains("has not been renewed"))
    });
    let _ = slurm.try_submit(&["--account=vision", "--gres=gpu:1"], 1).unwrap();
    // 5. A fault of the hook's own lets jobs pass.
    std::fs::write(slurm.path("quota"), "headroom-quota 1\nexpires 9999999999\nby qos\nlimit spot1h torn\n").unwrap();
    let (_, words) = spot(&slurm, "spot1h", "gpu:a100:1").unwrap();
    assert_eq!(words, "");
    let log = std::fs::read_to_string(slurm.path("log/slurmctld.log")).unwrap();
    assert!(log.contains("headroom: ") && log.contains("a torn line"), "the fault is in the controller's log");
}

#[test]
fn a_user_whose_job_waits_reads_when_the_forecast_expects_its_gpus_to_be_free() {
    let Some(slurm) = slurm("expected times") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 2.0), (4, 2.0)]);
    stub.offer("h100", &[(1, 2.0), (4, 2.0)]);
    // Of 16 GPUs HP jobs leave 4 from the next hour on. Of h100 nothing is known.
    stub.forecast("a100", &[12.0; 6]);
    let _writer = connector(&slurm, "run", &stub.url, &[("HEADROOM_MODE", "publish+hook")]);
    let quota = || std::fs::read_to_string(slurm.path("quota")).unwrap_or_default();
    until("expected times", || quota().contains("expected spot4h a100 ").then_some(()));
    let (_, words) = spot(&slurm, "spot4h", "gpu:h100:4").unwrap();
    assert!(words.contains("this job asks for 4; it waits") && !words.contains("expected"), "{words}");
    let (_, words) = spot(&slurm, "spot4h", "gpu:a100:4").unwrap();
    let time = words.trim().rsplit_once("; expected for 4 h about ").unwrap_or_else(|| panic!("{words}")).1;
    assert!(time.ends_with(":00") && time.len() <= "Mon 00:00".len(), "{words}");
    let (_, words) = spot(&slurm, "spot4h", "gpu:a100:5").unwrap();
    assert!(
        words.contains("this job asks for 5; it waits") && !words.contains("expected"),
        "more than there will be: {words}"
    );
}

#[test]
fn the_quota_file_beside_a_connector_that_another_one_keeps_from_writing_is_renewed_too() {
    let Some(slurm) = slurm("quota files of two machines") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 0.0)]);
    stub.offer("h100", &[(1, 0.0), (4, 0.0)]);
    let files =
        ["one", "other"].map(|name| (slurm.path(&format!("quota-{name}")), slurm.path(&format!("heart-{name}"))));
    let on = |(quota, heart): &(String, String)| {
        let own = [("HEADROOM_QUOTA_FILE", quota.as_str()), ("HEADROOM_HEARTBEAT_FILE", heart.as_str())];
        connector(&slurm, "run", &stub.url, &[&[("HEADROOM_MODE", "publish+hook")][..], &own].concat())
    };
    let (_one, _other) = (on(&files[0]), on(&files[1]));
    for (quota, _) in &files {
        let expiry = || {
            let text = std::fs::read_to_string(quota).ok().filter(|text| text.contains("limit spot1h 1 a100 8 0"))?;
            text.lines().find_map(|line| line.strip_prefix("expires ")?.parse::<i64>().ok())
        };
        let (first, _) = until("a quota file", expiry);
        until("its renewal", || expiry().filter(|expiry| *expiry > first));
    }
}

/// A plain Lua, where there is one.
fn lua() -> Option<&'static str> {
    let found =
        ["lua5.3", "lua5.4", "lua"].into_iter().find(|program| Command::new(program).arg("-v").output().is_ok());
    if found.is_none() {
        assert!(
            std::env::var_os("HEADROOM_SLURM_REQUIRED").is_none(),
            "HEADROOM_SLURM_REQUIRED is set, and there is no Lua"
        );
        println!("not run, since Lua is not installed: the hook in a plain interpreter");
    }
    found
}

#[test]
fn the_hook_counts_gpus_in_every_way_of_asking_and_survives_any_file() {
    let Some(lua) = lua() else { return };
    let root = workspace_root();
    let ran = Command::new(lua)
        .arg(root.join("tests/slurm/hook_test.lua"))
        .arg(root.join("deploy/slurm/job_submit.lua"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    println!("{text}");
}
