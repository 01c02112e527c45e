//! Limits of GPUs on QOS and accounts, as Slurm prints and takes them. Pure.

use crate::config::Nesting;
use std::collections::{BTreeMap, BTreeSet};

/// All GPUs, of any type.
pub const ALL_GPUS: &str = "gres/gpu";

/// GPUs by the name of a trackable resource: `gres/gpu`, `gres/gpu:a100`.
pub type Tres = BTreeMap<String, u64>;

/// GPUs of each QOS or account.
pub type ByName = BTreeMap<String, Tres>;

/// The trackable resource of a type of GPUs.
#[must_use]
pub fn tres_of(gpu_type: &str) -> String {
    format!("{ALL_GPUS}:{gpu_type}")
}

/// Whether a trackable resource is GPUs.
fn is_gpus(name: &str) -> bool {
    name == ALL_GPUS || name.strip_prefix(ALL_GPUS).is_some_and(|rest| rest.starts_with(':'))
}

/// GPUs of `cpu=100,gres/gpu=5`, where they have a limit.
fn gpus_of(text: &str) -> Tres {
    let pairs = text.split(',').filter_map(|part| part.split_once('='));
    pairs
        .filter(|(name, _)| is_gpus(name))
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect()
}

/// Limits of QOS out of `sacctmgr -nP show qos format=name,grptres`.
#[must_use]
pub fn of_qos(text: &str) -> ByName {
    let lines = text.lines().filter_map(|line| line.split_once('|'));
    lines.map(|(name, limits)| (name.to_owned(), gpus_of(limits))).collect()
}

/// Limits of accounts out of `sacctmgr -nP show assoc format=account,user,partition,grptres`.
#[must_use]
pub fn of_accounts(text: &str) -> ByName {
    let mut all = ByName::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        if let [account, "", "", limits] = fields[..] {
            all.insert(account.to_owned(), gpus_of(limits));
        }
    }
    all
}

/// GPUs in use out of `scontrol show assoc_mgr flags=qos` or `flags=assoc`: `gres/gpu=5(4)`, `gres/gpu:a100=N(4)`.
#[must_use]
pub fn in_use(text: &str, kind: Nesting) -> ByName {
    let (mut all, mut name) = (ByName::new(), None);
    for line in text.lines() {
        let (words, is_top) = (line.trim(), !line.starts_with(' '));
        if is_top {
            name = match kind {
                Nesting::Qos => words.strip_prefix("QOS=").and_then(|rest| rest.split('(').next()).map(str::to_owned),
                Nesting::Accounts => account_of(words),
            };
            continue;
        }
        if let (Some(name), Some(list)) = (&name, words.strip_prefix("GrpTRES=")) {
            let used = list.split(',').filter_map(|part| {
                let (tres, count) = part.split_once('=')?;
                let used = count.split_once('(')?.1.strip_suffix(')')?.parse().ok()?;
                is_gpus(tres).then(|| (tres.to_owned(), used))
            });
            all.insert(name.clone(), used.collect());
        }
    }
    all
}

/// The account of an association that is no user's and of no partition.
fn account_of(words: &str) -> Option<String> {
    let field = |key: &str| words.split(' ').find_map(|word| word.strip_prefix(key));
    let is_account = field("UserName=") == Some("") && field("Partition=") == Some("");
    field("Account=").filter(|_| is_account).map(str::to_owned)
}

/// Trackable GPUs out of `sacctmgr -nP show tres format=type,name`.
#[must_use]
pub fn tracked(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.trim_end_matches('|').split_once('|'));
    lines.map(|(kind, name)| format!("{kind}/{name}")).filter(|name| is_gpus(name)).collect()
}

/// The argument that sets these limits and leaves all others as they are.
#[must_use]
pub fn argument(limits: &Tres) -> String {
    let list: Vec<String> = limits.iter().map(|(name, gpus)| format!("{name}={gpus}")).collect();
    format!("GrpTRES={}", list.join(","))
}

/// Parents of accounts out of `sacctmgr -nP show account withassoc format=account,parentname`.
#[must_use]
pub fn parents(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('|'));
    lines.filter(|(_, parent)| !parent.is_empty()).map(|(name, parent)| (name.to_owned(), parent.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tres(list: &[(&str, u64)]) -> Tres {
        list.iter().map(|(name, gpus)| ((*name).to_owned(), *gpus)).collect()
    }

    #[test]
    fn limits_of_gpus_are_read_and_others_left_out() {
        let qos = of_qos("normal|\nspot1h|cpu=100,gres/gpu:a100=4,gres/gpu=5\n");
        assert_eq!(qos["spot1h"], tres(&[("gres/gpu", 5), ("gres/gpu:a100", 4)]));
        assert!(qos["normal"].is_empty());
        let accounts = of_accounts("spot|||gres/gpu=9\nspot|alice||gres/gpu=1\nspot||debug|gres/gpu=2\nvision|||\n");
        assert_eq!(
            accounts,
            [("spot".to_owned(), tres(&[("gres/gpu", 9)])), ("vision".to_owned(), Tres::new())].into()
        );
        assert_eq!(argument(&qos["spot1h"]), "GrpTRES=gres/gpu=5,gres/gpu:a100=4");
    }

    #[test]
    fn gpus_in_use_are_read_of_qos_and_of_accounts() {
        let text = "Current Association Manager state\n\nQOS Records\n\nQOS=spot1h(2)\n    UsageRaw=632.7\n    \
            GrpTRES=cpu=N(1),gres/gpu=5(4),gres/gpu:a100=N(4),gres/gpu:h100=N(0)\n    GrpTRESMins=gres/gpu=N(42)\nQOS=x(3)\n    GrpTRES=gres/gpu=N(1)\n";
        let used = in_use(text, Nesting::Qos);
        assert_eq!(used["spot1h"], tres(&[("gres/gpu", 4), ("gres/gpu:a100", 4), ("gres/gpu:h100", 0)]));
        assert_eq!(used["x"], tres(&[("gres/gpu", 1)]));
        let text = "ClusterName=t Account=spot UserName= Partition= Priority=0 ID=6\n    GrpTRES=gres/gpu=N(4)\n\
            ClusterName=t Account=spot UserName=alice(1001) Partition= Priority=0 ID=9\n    GrpTRES=gres/gpu=N(3)\n";
        assert_eq!(in_use(text, Nesting::Accounts), [("spot".to_owned(), tres(&[("gres/gpu", 4)]))].into());
    }

    #[test]
    fn trackable_gpus_and_parents_of_accounts_are_read() {
        assert_eq!(
            tracked("cpu|\ngres|gpu\ngres|gpu:a100\nfs|disk\ngres|gpumem\n").into_iter().collect::<Vec<_>>(),
            ["gres/gpu", "gres/gpu:a100"]
        );
        assert_eq!(parents("spot|root\nspot|\nspot-4h|spot\n")["spot-4h"], "spot");
    }
}
