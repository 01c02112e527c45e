//! `headroom-slurm doctor` beside a real Slurm, well and badly set up. Each wrong set-up by itself is in the tests of its crate.

use super::ran;
use super::stub::Stub;
use serde_json::Value;
use tests::{Lent, slurm};

/// Checks that are not good, as JSON.
fn bad(slurm: &Lent, url: &str, more: &[(&str, &str)]) -> Vec<String> {
    // A busy machine answers late.
    let patient = [("HEADROOM_SLURM_COMMAND_TIMEOUT_S", "10"), ("HEADROOM_LEASE_S", "30")];
    let ran = ran(slurm, &["doctor", "--json"], url, &[&patient[..], more].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {ran:?}"));
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["status"] != "ok");
    checks.map(Value::to_string).collect()
}

const HOOK: (&str, &str) = ("HEADROOM_MODE", "publish+hook");

/// Edits of the answer of `scontrol show config`, and parts of the check that finds each.
const OTHERS: &[(&str, &[&str])] = &[
    ("s#^PreemptType .*#PreemptType = preempt/none#", &["preemption", "PreemptType=preempt/qos"]),
    ("s#^PreemptMode .*#PreemptMode = SUSPEND,GANG#", &["preemption", "does not give its GPUs back"]),
    (
        "s#^SchedulerParameters .*#SchedulerParameters = preempt_youngest_first#",
        &["order of victims", "take preempt_youngest_first out"],
    ),
    ("s#^AccountingStorageEnforce .*#AccountingStorageEnforce = associations#", &["enforcement", "lacks limits, qos"]),
    ("s#^AccountingStorageType .*#AccountingStorageType = accounting_storage/none#", &["accounting", "no history"]),
];

#[test]
fn doctor_finds_nothing_in_a_good_installation_and_names_what_is_wrong_in_others() {
    let Some(slurm) = slurm("doctor") else { return };
    let stub = Stub::start();
    stub.offer("a100", &[(1, 8.0), (4, 4.0)]);
    stub.offer("h100", &[(1, 8.0), (4, 4.0)]);
    assert_eq!(bad(&slurm, &stub.url, &[HOOK]), [""; 0]);
    let one = |more: &[(&str, &str)], parts: &[&str]| {
        let found = bad(&slurm, &stub.url, more);
        assert!(found.iter().any(|check| parts.iter().all(|part| check.contains(part))), "{parts:?}: {found:#?}");
    };
    let set = |what: &str| drop(slurm.run("sacctmgr", &["-i", "modify", "qos", "spot4h", "set", what]));
    // 1. Settings of QOS.
    set("priority=1");
    one(&[HOOK], &["qos spot4h", "longer promises are broken first", "set priority=2"]);
    set("priority=4");
    set("preemptexempttime=01:00:00");
    one(&[HOOK], &["qos spot4h", "the promise is hard", "hard_qos"]);
    one(
        &[HOOK, ("HEADROOM_HARD_QOS", "spot4h")],
        &["qos spot4h", "exempts its jobs for 3600 s", "preemptexempttime=4:00:00"],
    );
    set("preemptexempttime=0");
    set("preemptmode=suspend");
    one(&[HOOK], &["qos spot4h", "its preemptmode is suspend", "set preemptmode=requeue"]);
    set("preemptmode=cluster");
    // 2. Names, files and programs.
    one(&[HOOK, ("HEADROOM_SPOT_QOS", "nosuch=1")], &["qos nosuch", "sacctmgr -i add qos nosuch"]);
    one(&[HOOK, ("HEADROOM_QUOTA_FILE", "/nosuch/quota")], &["quota_file", "create /nosuch"]);
    one(&[("HEADROOM_SLURM_BIN", "/nosuch")], &["slurm", "cannot be started", "slurm_bin"]);
    one(&[("HEADROOM_MODE", "publish")], &["untyped jobs", "publish+hook"]);
    let chain =
        [("HEADROOM_MODE", "publish"), ("HEADROOM_NESTING", "accounts"), ("HEADROOM_SPOT_ACCOUNTS", "spot=1,vision=4")];
    one(&chain, &["account vision", "its parent is not spot", "set parent=spot"]);
    // 3. An accounting, and a controller, that do not answer.
    slurm.pause_accounting(true);
    one(&[HOOK, ("HEADROOM_SLURM_COMMAND_TIMEOUT_S", "2")], &["accounting", "no answer within 2 s", "start slurmdbd"]);
    slurm.pause_accounting(false);
    // 4. Settings of slurm.conf, as if they were others.
    for (change, parts) in OTHERS {
        let folder = changed(&slurm, "scontrol", &format!("scontrol \"$@\" | sed -e '{change}'"));
        one(&[HOOK, ("HEADROOM_SLURM_BIN", &folder)], parts);
    }
    let folder = changed(&slurm, "squeue", "[ \"$1\" != --version ] && exec squeue \"$@\"; echo slurm 26.11.1");
    one(&[HOOK, ("HEADROOM_SLURM_BIN", &folder)], &["newer than 26.05"]);
    let folder = changed(&slurm, "squeue", "echo slurm 20.11.9");
    one(&[HOOK, ("HEADROOM_SLURM_BIN", &folder)], &["slurm", "Slurm 20.11 is not known"]);
    let folder =
        changed(&slurm, "scontrol", "echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2; exit 1");
    one(
        &[HOOK, ("HEADROOM_SLURM_BIN", &folder)],
        &["controller", "Unable to contact slurm controller", "start slurmctld"],
    );
}

/// Slurm's programs, one of them in the form of a script that calls the real one.
pub fn changed(slurm: &Lent, program: &str, script: &str) -> String {
    let folder = slurm.path("bin");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    for name in ["squeue", "sinfo", "scontrol", "sacct", "sacctmgr"] {
        let text = if name == program { script.to_owned() } else { format!("exec {name} \"$@\"") };
        let path = format!("{folder}/{name}");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    folder
}
