//! Preemption: whether HP jobs evict spot jobs, in the order of their promises, and hard promises hold.

use super::{Check, Facts, Qos};
use crate::config::Config;
use std::collections::BTreeMap;
use vocab::HorizonHours;

/// The QOS that every Slurm has, and that jobs get which name none.
const USUAL_QOS: &str = "normal";

/// Checks of preemption.
pub fn of(config: &Config, facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    let kind = facts.config.get("PreemptType");
    if kind != "preempt/qos" {
        let found = format!("PreemptType is {kind:?}: HP jobs do not evict spot jobs by their QOS");
        let fix = "set PreemptType=preempt/qos and PreemptMode=REQUEUE in slurm.conf and restart slurmctld";
        checks.push(Check::warn("preemption", found, fix));
        return checks;
    }
    checks.extend(modes(config, facts));
    if let Some(key) = ["SchedulerParameters", "PreemptParameters"]
        .into_iter()
        .find(|key| facts.config.lists(key, "preempt_youngest_first"))
    {
        let found = format!("{key} has preempt_youngest_first: victims are the youngest jobs, even of long promises");
        checks.push(Check::fail(
            "order of victims",
            found,
            format!("take preempt_youngest_first out of {key} and restart slurmctld"),
        ));
    }
    if facts.qos.is_ok() {
        checks.extend(evicting(config, facts));
        checks.extend(priorities(config, facts));
        checks.extend(exemptions(config, facts));
    }
    checks
}

/// How spot jobs are evicted: by the mode of their QOS, else by that of all jobs.
fn modes(config: &Config, facts: &Facts) -> Vec<Check> {
    let gives_back = |mode: &str| {
        let mode = mode.to_ascii_uppercase();
        mode.contains("REQUEUE") || mode.contains("CANCEL")
    };
    let mode = facts.config.get("PreemptMode");
    let known = facts.qos.as_ref().ok().into_iter();
    let spot: Vec<_> = known.flatten().filter(|(name, _)| config.spot_qos.0.contains_key(*name)).collect();
    let follows = spot.is_empty() || spot.iter().any(|(_, one)| one.preempt_mode.is_none());
    let mut checks = vec![if gives_back(mode) || !follows {
        Check::ok("preemption", format!("preempt/qos, {mode}"))
    } else {
        let found = format!("PreemptMode is {mode}: an evicted job does not give its GPUs back");
        Check::fail("preemption", found, "set PreemptMode=REQUEUE in slurm.conf and restart slurmctld")
    }];
    for (name, one) in spot {
        if let Some(own) = one.preempt_mode.as_ref().filter(|own| !gives_back(own)) {
            let found = format!("its preemptmode is {own}: an evicted job does not give its GPUs back");
            let fix = format!("sacctmgr -i modify qos {name} set preemptmode=requeue");
            checks.push(Check::fail(format!("qos {name}"), found, fix));
        }
    }
    checks
}

/// HP jobs have to be able to evict each spot QOS: all QOS of `hp_qos`, or else one at least that is no spot QOS.
fn evicting(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let mut checks: Vec<Check> = config
        .spot_qos
        .0
        .keys()
        .filter(|name| qos.contains_key(*name))
        .filter_map(|name| {
            if config.hp_qos.0.is_empty() { none_evicts(config, qos, name) } else { some_do_not(config, qos, name) }
        })
        .collect();
    for name in config.spot_qos.0.keys() {
        let others = qos.get(name).map(|one| &one.preempts).into_iter().flatten();
        let is_promised = |other: &&String| config.spot_qos.0.get(*other).is_some_and(Option::is_some);
        if let Some(other) = others.into_iter().find(is_promised) {
            let found = format!("its jobs evict those of {other}: promises are broken for no HP job");
            checks.push(Check::warn(
                format!("qos {name}"),
                found,
                format!("sacctmgr -i modify qos {name} set preempt-={other}"),
            ));
        }
    }
    checks
}

/// Of the QOS of `hp_qos` some may not evict a spot QOS. Those that Slurm does not know are found as such.
fn some_do_not(config: &Config, qos: &BTreeMap<String, Qos>, name: &str) -> Option<Check> {
    let lacks = |hp: &&String| qos.get(*hp).is_some_and(|one| !one.preempts.contains(name));
    let lacking: Vec<&str> = config.hp_qos.0.iter().filter(lacks).map(String::as_str).collect();
    let found = format!("{} of hp_qos may not evict its jobs: HP jobs wait for them", lacking.join(", "));
    let fix = format!("sacctmgr -i modify qos {} set preempt+={name}", lacking.join(","));
    (!lacking.is_empty()).then(|| Check::warn(format!("qos {name}"), found, fix))
}

/// No QOS of HP jobs may evict a spot QOS: another spot QOS that may breaks promises, and helps no HP job.
fn none_evicts(config: &Config, qos: &BTreeMap<String, Qos>, name: &str) -> Option<Check> {
    let of_hp = || qos.iter().filter(|(other, _)| !config.spot_qos.0.contains_key(*other));
    if of_hp().any(|(_, one)| one.preempts.contains(name)) {
        return None;
    }
    let found = "no QOS of HP jobs may evict its jobs: HP jobs wait for them";
    // Those that evict another spot QOS are of HP jobs for sure.
    let evicts_spot = |one: &Qos| one.preempts.iter().any(|other| config.spot_qos.0.contains_key(other));
    let mut known: Vec<&str> = of_hp().filter(|(_, one)| evicts_spot(one)).map(|(other, _)| other.as_str()).collect();
    if known.is_empty() && of_hp().any(|(other, _)| other == USUAL_QOS) {
        known.push(USUAL_QOS);
    }
    let fix = match &known[..] {
        [] => format!(
            "set hp_qos to the QOS of HP jobs, and let each evict it; doctor then prints the command for {name}"
        ),
        known => format!("sacctmgr -i modify qos {} set preempt+={name}", known.join(",")),
    };
    Some(Check::warn(format!("qos {name}"), found, fix))
}

/// Victims are those of the lowest priority first: it has to rise with the hours.
fn priorities(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let promised = config.spot_qos.promised();
    let known: Vec<(HorizonHours, &str, u64)> =
        promised.iter().filter_map(|(hours, name)| Some((*hours, *name, qos.get(*name)?.priority))).collect();
    let wrong = known.windows(2).filter(|pair| pair[0].0 < pair[1].0 && pair[0].2 >= pair[1].2);
    let check = |pair: &[(HorizonHours, &str, u64)]| {
        let ((_, shorter, least), (_, longer, most)) = (pair[0], pair[1]);
        let found =
            format!("its priority {most} is not above that {least} of {shorter}: longer promises are broken first");
        Check::fail(
            format!("qos {longer}"),
            found,
            format!("sacctmgr -i modify qos {longer} set priority={}", least + 1),
        )
    };
    wrong.map(check).collect()
}

/// Hard promises are held by Slurm itself, soft ones by the quota.
fn exemptions(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let global_s = super::facts::seconds(facts.config.get("PreemptExemptTime"));
    let mut checks = Vec::new();
    for (hours, name) in config.spot_qos.promised() {
        let Some(one) = qos.get(name) else { continue };
        let (exempt_s, promised_s) = (one.exempt_s.unwrap_or(global_s), u64::try_from(hours.seconds()).unwrap_or(0));
        let is_hard = config.hard_qos.0.contains(name);
        if is_hard && exempt_s != promised_s {
            let found = format!(
                "it is in hard_qos and promises {} h, and Slurm exempts its jobs for {exempt_s} s",
                hours.get()
            );
            let fix = format!("sacctmgr -i modify qos {name} set preemptexempttime={}:00:00", hours.get());
            checks.push(Check::fail(format!("qos {name}"), found, fix));
        } else if !is_hard && exempt_s > 0 {
            let by = if one.exempt_s.is_none() { " by PreemptExemptTime of slurm.conf" } else { "" };
            let found = format!(
                "Slurm exempts its jobs for {exempt_s} s{by}: the promise is hard, and HP jobs wait; if that is meant, add it to hard_qos"
            );
            let fix = format!("sacctmgr -i modify qos {name} set preemptexempttime=0");
            checks.push(Check::warn(format!("qos {name}"), found, fix));
        }
    }
    checks
}
