//! Each wrong set-up is found and named with its fix; the facts are as Slurm 22.05.8 prints them.

use super::*;
use crate::config::{Mode, Nesting};
use crate::site::SlurmConfig;
use std::collections::BTreeMap;

const GOOD: &str = "AccountingStorageType = accounting_storage/slurmdbd\nAccountingStorageEnforce = associations,limits,qos\n\
    PreemptType = preempt/qos\nPreemptMode = REQUEUE\nPreemptExemptTime = 00:00:00\nSchedulerParameters = bf_interval=5\n\
    JobSubmitPlugins = lua\nSlurmUser = slurm(64030)\nClusterName = t\n";
const QOS: &str =
    "normal|100|spot1h,spot4h|00:00:00||cluster\nspot1h|1||00:00:00|gres/gpu=4|cluster\nspot4h|4||04:00:00||cluster\n";

fn config() -> Config {
    Config {
        mode: Mode::PublishAndHook,
        spot_qos: "spot1h=1,spot4h=4".parse().unwrap(),
        hard_qos: "spot4h".parse().unwrap(),
        spot_accounts: "spot=1,spot-4h=4".parse().unwrap(),
        ..Config::default()
    }
}

fn facts() -> Facts {
    let mut facts = Facts::new((22, 5), SlurmConfig::parse(GOOD), "headroom".to_owned());
    facts.qos = Ok(facts::qos(QOS));
    facts.tracked = ["gres/gpu", "gres/gpu:a100", "gres/gpu:h100"].map(str::to_owned).into();
    facts.admin_level = "Administrator".to_owned();
    facts.accounts = ["spot", "spot-4h"].map(|name| (name.to_owned(), BTreeMap::new())).into();
    facts.parents =
        [("spot", "root"), ("spot-4h", "spot")].map(|(name, parent)| (name.to_owned(), parent.to_owned())).into();
    facts
}

fn checks(config: &Config, facts: &Facts) -> Vec<Check> {
    [slurm::of(config, facts), limits::of(config, facts), preemption::of(config, facts)].concat()
}

/// The checks that are not good, as `status name: found → fix`.
fn found(change: impl FnOnce(&mut Config, &mut Facts)) -> Vec<String> {
    let (mut config, mut facts) = (config(), facts());
    change(&mut config, &mut facts);
    let bad: Vec<Check> = checks(&config, &facts).into_iter().filter(|check| check.status != Status::Ok).collect();
    assert!(bad.iter().all(is_clean), "{bad:#?}");
    let bad = bad.into_iter();
    bad.map(|check| format!("{:?} {}: {} → {}", check.status, check.name, check.found, check.fix.unwrap_or_default()))
        .collect()
}

/// A fix that is a command is a line for a shell.
fn is_clean(check: &Check) -> bool {
    let fix = check.fix.as_deref().unwrap_or_default();
    let words = ["(", ")", " or ", " unless ", "…", "TYPE", ", "];
    !fix.contains("sacctmgr ") || (fix.starts_with("sacctmgr ") && !words.iter().any(|word| fix.contains(word)))
}

fn one(change: impl FnOnce(&mut Config, &mut Facts), parts: &[&str]) {
    let found = found(change);
    assert_eq!(found.len(), 1, "{found:#?}");
    for part in parts {
        assert!(found[0].contains(part), "{part} is not in {}", found[0]);
    }
}

fn set(facts: &mut Facts, key: &str, value: &str) {
    facts.config = SlurmConfig::parse(&format!("{GOOD}{key} = {value}\n"));
}

#[test]
fn a_good_installation_has_nothing_to_fix() {
    assert_eq!(found(|_, _| {}), [""; 0]);
}

#[test]
fn an_installation_without_accounting_enforcement_or_tracked_gpus_is_found() {
    one(
        |_, facts| set(facts, "AccountingStorageType", "accounting_storage/none"),
        &["Fail accounting", "no history", "accounting_storage/slurmdbd"],
    );
    one(|_, facts| set(facts, "AccountingStorageEnforce", "associations"), &["Fail enforcement", "lacks limits, qos"]);
    one(
        |_, facts| set(facts, "AccountingStorageEnforce", "associations,limits,safe,nosteps"),
        &["lacks qos", "→ set AccountingStorageEnforce=associations,limits,safe,nosteps,qos in slurm.conf"],
    );
    one(|_, facts| facts.tracked.clear(), &["Fail tracked GPUs", "AccountingStorageTRES=gres/gpu"]);
}

#[test]
fn a_release_that_is_newer_than_this_program_is_found() {
    one(|_, facts| facts.release = (26, 11), &["Warn slurm: 26.11 is newer than 26.05", "newer headroom-slurm"]);
}

#[test]
fn missing_rights_are_found_with_the_command_that_gives_them() {
    one(
        |_, facts| facts.admin_level = "None".to_owned(),
        &["Fail rights", "headroom is None", "sacctmgr -i modify user headroom set adminlevel=Administrator"],
    );
    one(|_, facts| facts.admin_level = "Operator".to_owned(), &["Fail rights", "nesting qos needs Administrator"]);
    let accounts = |config: &mut Config, facts: &mut Facts| {
        config.nesting = Nesting::Accounts;
        facts.admin_level = "Operator".to_owned();
        facts.qos = Ok(facts::qos(&QOS.replace("gres/gpu=4", "")));
    };
    assert_eq!(found(accounts), [""; 0], "an operator may set limits of accounts");
}

#[test]
fn typed_limits_without_typed_requests_are_found() {
    one(|_, facts| set(facts, "JobSubmitPlugins", "(null)"), &["Warn untyped jobs", "JobSubmitPlugins=lua"]);
    one(|config, _| config.mode = Mode::Publish, &["Warn untyped jobs", "publish+hook"]);
}

#[test]
fn victims_in_the_wrong_order_are_found() {
    one(
        |_, facts| set(facts, "SchedulerParameters", "bf_interval=5,preempt_youngest_first"),
        &["Fail order of victims", "take preempt_youngest_first out of SchedulerParameters"],
    );
    one(
        |_, facts| facts.qos = Ok(facts::qos(&QOS.replace("spot4h|4|", "spot4h|1|"))),
        &["Fail qos spot4h", "longer promises are broken first", "set priority=2"],
    );
}

#[test]
fn preemption_that_evicts_nobody_or_gives_nothing_back_is_found() {
    one(|_, facts| set(facts, "PreemptType", "preempt/none"), &["Warn preemption", "PreemptType=preempt/qos"]);
    one(
        |_, facts| set(facts, "PreemptMode", "SUSPEND,GANG"),
        &["Fail preemption", "does not give its GPUs back", "PreemptMode=REQUEUE"],
    );
    one(
        |_, facts| facts.qos = Ok(facts::qos(&QOS.replace("gpu=4|cluster", "gpu=4|suspend"))),
        &["Fail qos spot1h: its preemptmode is suspend", "→ sacctmgr -i modify qos spot1h set preemptmode=requeue"],
    );
    let by_qos = QOS.replace("gpu=4|cluster", "gpu=4|requeue").replace("04:00:00||cluster", "04:00:00||cancel");
    let each_has_its_own = |_: &mut Config, facts: &mut Facts| {
        set(facts, "PreemptMode", "SUSPEND,GANG");
        facts.qos = Ok(facts::qos(&by_qos));
    };
    assert_eq!(found(each_has_its_own), [""; 0]);
    one(
        |_, facts| facts.qos = Ok(facts::qos(&QOS.replace("spot1h,spot4h", "spot1h"))),
        &["Warn qos spot4h", "set preempt+=spot4h"],
    );
    one(
        |_, facts| facts.qos = Ok(facts::qos(&QOS.replace("spot4h|4||", "spot4h|4|spot1h|"))),
        &["Warn qos spot4h: its jobs evict those of spot1h", "set preempt-=spot1h"],
    );
}

#[test]
fn a_spot_qos_that_hp_jobs_cannot_evict_is_found_though_another_spot_qos_can() {
    let by_spot = QOS.replace("spot1h,spot4h", "spot4h").replace("spot4h|4||", "spot4h|4|spot1h|");
    let bad = found(|_, facts| facts.qos = Ok(facts::qos(&by_spot)));
    assert_eq!(bad.len(), 2, "{bad:#?}");
    assert_eq!(
        bad[0],
        "Warn qos spot1h: no QOS of HP jobs may evict its jobs: HP jobs wait for them → sacctmgr -i modify qos normal set preempt+=spot1h"
    );
    assert!(bad[1].contains("its jobs evict those of spot1h"), "{bad:#?}");
}

#[test]
fn each_qos_of_hp_jobs_has_to_evict_each_spot_qos() {
    let with = |line: &'static str, of: &'static str| {
        move |config: &mut Config, facts: &mut Facts| {
            config.hp_qos = of.parse().unwrap();
            facts.qos = Ok(facts::qos(&format!("{QOS}{line}\n")));
        }
    };
    one(
        with("prod|100|spot1h|00:00:00||cluster", "normal,prod"),
        &[
            "Warn qos spot4h: prod of hp_qos may not evict its jobs",
            "→ sacctmgr -i modify qos prod set preempt+=spot4h",
        ],
    );
    assert_eq!(found(with("prod|100|spot1h|00:00:00||cluster", "normal")), [""; 0], "prod is no QOS of HP jobs");
    assert_eq!(
        found(with("prod|100||00:00:00||cluster", "")),
        [""; 0],
        "one of those that are no spot QOS evicts both"
    );
}

#[test]
fn a_hard_promise_without_exemption_and_a_soft_one_with_it_are_found() {
    one(
        |_, facts| facts.qos = Ok(facts::qos(&QOS.replace("04:00:00", "00:00:00"))),
        &["Fail qos spot4h", "exempts its jobs for 0 s", "preemptexempttime=4:00:00"],
    );
    one(
        |config, _| config.hard_qos = "".parse().unwrap(),
        &["Warn qos spot4h", "the promise is hard, and HP jobs wait", "add it to hard_qos"],
    );
}

#[test]
fn a_qos_without_an_exemption_of_its_own_has_that_of_all_jobs_and_one_of_zero_has_none() {
    let global = |own: &'static str| {
        move |_: &mut Config, facts: &mut Facts| {
            set(facts, "PreemptExemptTime", "00:30:00");
            facts.qos = Ok(facts::qos(&QOS.replace("spot1h|1||00:00:00|", own)));
        }
    };
    one(
        global("spot1h|1|||"),
        &[
            "Warn qos spot1h: Slurm exempts its jobs for 1800 s by PreemptExemptTime of slurm.conf",
            "→ sacctmgr -i modify qos spot1h set preemptexempttime=0",
        ],
    );
    assert_eq!(found(global("spot1h|1||00:00:00|")), [""; 0], "that of the QOS comes first");
}

#[test]
fn limits_that_hide_ours_are_found() {
    let partition = |_: &mut Config, facts: &mut Facts| {
        facts.qos = Ok(facts::qos(&format!("{QOS}part|0||00:00:00|gres/gpu=9\n")));
        facts.partition_qos = [("gpu".to_owned(), "part".to_owned())].into();
    };
    one(
        partition,
        &["Warn partition gpu", "first limit that it finds", "→ sacctmgr -i modify qos part set GrpTRES=gres/gpu=-1"],
    );
    let chain = |config: &mut Config, _: &mut Facts| config.nesting = Nesting::Accounts;
    one(
        chain,
        &[
            "Fail qos spot1h",
            "ignores the limit of the account",
            "→ sacctmgr -i modify qos spot1h set GrpTRES=gres/gpu=-1",
        ],
    );
    let parents = |config: &mut Config, facts: &mut Facts| {
        config.nesting = Nesting::Accounts;
        facts.qos = Ok(facts::qos(&QOS.replace("gres/gpu=4", "")));
        facts.parents.insert("spot-4h".to_owned(), "root".to_owned());
    };
    one(parents, &["Fail account spot-4h", "its parent is not spot", "set parent=spot"]);
}

#[test]
fn a_spot_qos_that_another_cluster_of_the_accounting_uses_is_found() {
    let moon = |facts: &mut Facts| {
        facts.elsewhere = facts::by_cluster("moon|normal\nmoon|normal,spot1h\nmars|normal\nmars|\n");
    };
    one(|_, facts| moon(facts), &["Warn cluster moon: its jobs may use spot1h", "QOS of their own"]);
    let accounts = |config: &mut Config, facts: &mut Facts| {
        config.nesting = Nesting::Accounts;
        facts.qos = Ok(facts::qos(&QOS.replace("gres/gpu=4", "")));
        moon(facts);
    };
    assert_eq!(found(accounts), [""; 0], "limits of accounts are of a cluster");
}

#[test]
fn names_that_slurm_does_not_know_are_found() {
    one(
        |config, _| config.hp_qos = "high".parse().unwrap(),
        &["Fail qos high: ", "in spot_qos or hp_qos → sacctmgr -i add qos high"],
    );
    let unknown = |config: &mut Config, facts: &mut Facts| {
        config.nesting = Nesting::Accounts;
        facts.qos = Ok(facts::qos(&QOS.replace("gres/gpu=4", "")));
        facts.accounts.remove("spot-4h");
    };
    one(unknown, &["Fail account spot-4h: ", "in spot_accounts → sacctmgr -i add account spot-4h parent=spot"]);
}

#[test]
fn a_qos_that_is_no_spot_qos_any_more_is_found_by_the_limits_that_headroom_wrote() {
    let with = |line: &'static str| {
        move |_: &mut Config, facts: &mut Facts| facts.qos = Ok(facts::qos(&format!("{QOS}{line}\n")))
    };
    one(
        with("old|0||00:00:00|gres/gpu=12,gres/gpu:a100=12"),
        &[
            "Warn qos old: it limits GPUs (gres/gpu=12,gres/gpu:a100=12)",
            "→ sacctmgr -i modify qos old set GrpTRES=gres/gpu=-1,gres/gpu:a100=-1",
        ],
    );
    one(with("old|0||00:00:00|gres/gpu:a100=12,gres/gpu:h100=1"), &["set GrpTRES=gres/gpu:a100=-1,gres/gpu:h100=-1"]);
    // A part of the limits was taken away: HP jobs may evict it, as a spot QOS.
    for (limits, fix) in [("gres/gpu:a100=2", "GrpTRES=gres/gpu:a100=-1"), ("gres/gpu=2", "GrpTRES=gres/gpu=-1")] {
        let evictable = |_: &mut Config, facts: &mut Facts| {
            let qos = format!("{}old|0||00:00:00|{limits}\n", QOS.replace("spot1h,spot4h", "spot1h,spot4h,old"));
            facts.qos = Ok(facts::qos(&qos));
        };
        one(evictable, &["Warn qos old", fix]);
    }
    assert_eq!(found(with("own|0||00:00:00|gres/gpu=9")), [""; 0], "people limit all GPUs alone");
}

#[test]
fn jobs_without_promise_that_nothing_holds_back_are_found() {
    let free = |normal: &'static str, free: &'static str| {
        move |config: &mut Config, facts: &mut Facts| {
            config.spot_qos = "spot1h=1,spot4h=4,free=0".parse().unwrap();
            facts.qos = Ok(facts::qos(&format!("{}{free}\n", QOS.replace("normal|100|spot1h,spot4h|", normal))));
        }
    };
    let normal = "normal|100|spot1h,spot4h,free|";
    one(
        free(normal, "free|0||00:00:00|"),
        &["Warn qos free: it promises nothing", "modify qos spot1h,spot4h set preempt+=free"],
    );
    assert_eq!(found(free(normal, "free|0||00:00:00|gres/gpu=8")), [""; 0], "a limit of their own");
    one(
        free(normal, "free|0||00:00:00|gres/gpu:a100=8"),
        &["Warn qos free", "every idle GPU of gres/gpu:h100, which its own limit does not hold", "set preempt+=free"],
    );
    assert_eq!(found(free(normal, "free|0||00:00:00|gres/gpu:a100=8,gres/gpu:h100=1")), [""; 0], "one of each type");
    let only_a100 = |config: &mut Config, facts: &mut Facts| {
        free(normal, "free|0||00:00:00|gres/gpu:a100=8")(config, facts);
        facts.on_nodes = ["gres/gpu", "gres/gpu:a100"].map(str::to_owned).into();
    };
    assert_eq!(found(only_a100), [""; 0], "no node of this cluster has another type");
    let gives_way = |config: &mut Config, facts: &mut Facts| {
        free(normal, "free|0||00:00:00|")(config, facts);
        let qos = facts.qos.as_mut().unwrap();
        for name in ["spot1h", "spot4h"] {
            qos.get_mut(name).unwrap().preempts.insert("free".to_owned());
        }
    };
    assert_eq!(found(gives_way), [""; 0], "jobs with a promise evict them");
}

#[test]
fn a_slurmctld_that_tracks_no_types_or_forgets_jobs_between_two_looks_is_found() {
    one(
        |_, facts| set(facts, "AccountingStorageTRES", "cpu,mem,gres/gpu"),
        &[
            "Fail tracked GPUs: slurmctld does not track gres/gpu:a100, gres/gpu:h100",
            "set AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100 in slurm.conf",
        ],
    );
    assert_eq!(
        found(|_, facts| set(facts, "AccountingStorageTRES", "cpu,gres/gpu,gres/gpu:a100,gres/gpu:h100")),
        [""; 0]
    );
    one(
        |_, facts| set(facts, "MinJobAge", "4 sec"),
        &["Warn ended jobs: slurmctld forgets a job 4 s after its end", "MinJobAge=300"],
    );
    assert_eq!(found(|_, facts| set(facts, "MinJobAge", "300 sec")), [""; 0]);
}

#[test]
fn a_type_of_the_nodes_that_is_not_tracked_is_named_with_the_whole_setting() {
    let nodes = "NodeName=n1 Gres=gpu:a100:8(S:0-1) OS=Linux 5.10 \nNodeName=n2 Gres=gpu:h100:8,shard:16 \nNodeName=n3 Gres=(null)\n";
    assert_eq!(facts::on_nodes(nodes), ["gres/gpu", "gres/gpu:a100", "gres/gpu:h100"].map(str::to_owned).into());
    let half = |_: &mut Config, facts: &mut Facts| {
        set(
            facts,
            "AccountingStorageTRES",
            "license/x,gres/gpu,gres/gpu:a100,cpu,mem,energy,node,billing,fs/disk,vmem,pages",
        );
        facts.on_nodes = facts::on_nodes(nodes);
    };
    one(
        half,
        &[
            "Fail tracked GPUs: slurmctld does not track gres/gpu:h100",
            "→ set AccountingStorageTRES=license/x,gres/gpu,gres/gpu:a100,gres/gpu:h100 in slurm.conf and restart slurmctld",
        ],
    );
    let mut none = facts();
    assert_eq!(no_gpus(&none).map(|check| check.found), Some("no node has GPUs".to_owned()));
    none.on_nodes = facts::on_nodes(nodes);
    none.tracked.clear();
    assert_eq!(no_gpus(&none), None, "tracking is what is missing");
}

#[test]
fn times_of_slurm_are_seconds() {
    assert_eq!(["04:00:00", "1-02:00:00", "00:40", ""].map(facts::seconds), [14_400, 93_600, 40, 0]);
}
