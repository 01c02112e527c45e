//! Which jobs are spot, and whose they are.

use std::collections::{BTreeMap, BTreeSet};

/// Class of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobClass {
    /// High priority: its demand is forecast.
    Hp,
    /// Spot.
    Spot,
    /// Neither: it has GPUs, and is no demand that is forecast.
    Other,
}

/// Rules that sort jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// QOS of spot jobs.
    pub spot_qos: BTreeSet<String>,
    /// Partitions of spot jobs.
    pub spot_partitions: BTreeSet<String>,
    /// QOS of HP jobs; with no HP QOS and no HP partition, all that is not spot is HP.
    pub hp_qos: BTreeSet<String>,
    /// Partitions of HP jobs.
    pub hp_partitions: BTreeSet<String>,
    /// Organizations of accounts.
    pub accounts: Accounts,
}

impl Rules {
    /// Class of a job by its QOS and partition. A job that waits may name several of each, comma between them: it is
    /// spot if it cannot start as anything else.
    #[must_use]
    pub fn class(&self, qos: &str, partition: &str) -> JobClass {
        let all = |names: &str, of: &BTreeSet<String>| {
            let mut names = names.split(',').filter(|name| !name.is_empty()).peekable();
            names.peek().is_some() && names.all(|name| of.contains(name))
        };
        let any = |names: &str, of: &BTreeSet<String>| names.split(',').any(|name| of.contains(name));
        if all(qos, &self.spot_qos) || all(partition, &self.spot_partitions) {
            return JobClass::Spot;
        }
        let names_hp = !self.hp_qos.is_empty() || !self.hp_partitions.is_empty();
        if !names_hp || any(qos, &self.hp_qos) || any(partition, &self.hp_partitions) {
            return JobClass::Hp;
        }
        JobClass::Other
    }
}

/// Organization of each account: itself, or one of its parents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounts {
    /// Parent of each account; `root` has none.
    parents: BTreeMap<String, String>,
    /// Level of the organizations below `root`, from one; none for the account itself.
    level: Option<u32>,
}

/// The account above all others.
const ROOT: &str = "root";
/// Organization of jobs without an account.
const WITHOUT_ACCOUNT: &str = "none";

/// Why a tree of accounts was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountsFault {
    /// A line.
    #[error(
        "line {line}: {text:?} is not ACCOUNT|PARENT: print it with sacctmgr -nP show account withassoc format=account,parentname"
    )]
    Line {
        /// Number from one.
        line: usize,
        /// Its text.
        text: String,
    },
    /// A circle of parents.
    #[error("account {account} is its own parent: correct the list of accounts")]
    Circle {
        /// One of the circle.
        account: String,
    },
}

impl Accounts {
    /// Reads the lines of `sacctmgr -nP show account withassoc format=account,parentname`. Associations of users repeat an
    /// account without a parent.
    ///
    /// # Errors
    /// A line is another one, or the parents run in a circle.
    pub fn parse(text: &str, level: u32) -> Result<Self, AccountsFault> {
        let mut parents = BTreeMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = || AccountsFault::Line { line: index + 1, text: line.to_owned() };
            let (account, parent) =
                line.trim_end_matches('|').split_once('|').unwrap_or((line.trim_end_matches('|'), ""));
            if account.is_empty() || parent.contains('|') {
                return Err(wrong());
            }
            if !parent.is_empty() {
                parents.insert(account.to_lowercase(), parent.to_lowercase());
            }
        }
        let accounts = Self { parents, level: Some(level.max(1)) };
        for account in accounts.parents.keys() {
            if accounts.path(account).is_none() {
                return Err(AccountsFault::Circle { account: account.clone() });
            }
        }
        Ok(accounts)
    }

    /// The organization of an account: its parent at the level, or itself above it. A Slurm that enforces no associations has
    /// jobs without an account: they are of one organization.
    #[must_use]
    pub fn organization<'a>(&'a self, account: &'a str) -> &'a str {
        if account.is_empty() {
            return WITHOUT_ACCOUNT;
        }
        let Some(level) = self.level else { return account };
        let path = self.path(account).unwrap_or_default();
        path.get(path.len().saturating_sub(level as usize)).copied().unwrap_or(account)
    }

    /// The account, its parent, and so on, without `root`; `None` where they run in a circle.
    fn path<'a>(&'a self, account: &'a str) -> Option<Vec<&'a str>> {
        let (mut path, mut at) = (Vec::new(), account);
        while at != ROOT {
            if path.len() > self.parents.len() {
                return None;
            }
            path.push(at);
            match self.parents.get(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::JobClass::{Hp, Other, Spot};
    use super::*;

    fn names(list: &str) -> BTreeSet<String> {
        list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn a_job_is_spot_by_qos_or_partition_and_else_hp_or_neither() {
        let all = Rules { spot_qos: names("spot1h,spot4h"), spot_partitions: names("scavenge"), ..Rules::default() };
        let classes = [
            ("normal", "gpu"),
            ("spot1h", "gpu"),
            ("normal", "scavenge"),
            ("spot1h,spot4h", "gpu"),
            ("spot1h,normal", "gpu"),
        ];
        assert_eq!(classes.map(|(qos, partition)| all.class(qos, partition)), [Hp, Spot, Spot, Spot, Hp]);
        let some = Rules { hp_qos: names("high"), hp_partitions: names("prod"), ..all };
        let classes = [("normal", "gpu"), ("high", "gpu"), ("normal", "prod"), ("spot1h", "prod")];
        assert_eq!(classes.map(|(qos, partition)| some.class(qos, partition)), [Other, Hp, Hp, Spot]);
    }

    #[test]
    fn an_organization_is_the_account_or_its_parent_at_a_level() {
        let tree = "root|\nresearch|root\nvision|research\nsegmentation|vision\nengineering|root\nvision|\n";
        let of = |level: u32, account: &str| Accounts::parse(tree, level).unwrap().organization(account).to_owned();
        assert_eq!(
            ["segmentation", "vision", "research", "engineering", "unknown"].map(|one| of(1, one)),
            ["research", "research", "research", "engineering", "unknown"]
        );
        assert_eq!(["segmentation", "vision", "research"].map(|one| of(2, one)), ["vision", "vision", "research"]);
        assert_eq!(Accounts::default().organization("vision"), "vision");
    }

    #[test]
    fn jobs_without_an_account_are_of_one_organization() {
        assert_eq!(Accounts::default().organization(""), "none");
        assert_eq!(Accounts::parse("root|\nvision|root\n", 1).unwrap().organization(""), "none");
    }

    #[test]
    fn a_list_of_accounts_that_is_none_is_refused_with_its_line() {
        assert!(
            Accounts::parse("a|b|c\n", 1)
                .unwrap_err()
                .to_string()
                .starts_with("line 1: \"a|b|c\" is not ACCOUNT|PARENT")
        );
        assert!(Accounts::parse("a|b\nb|a\n", 1).unwrap_err().to_string().contains("is its own parent"));
    }
}
