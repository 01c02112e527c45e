//! Quota to publish in each pool: what spot may hold, by flavor and in all. When it changes is the planner's, which connectors share.

pub use connectors::plan::{Basis, Change, Gpus, Plan, Planner, Rules, Why};

use std::collections::BTreeMap;
use vocab::GpuModel;

/// GPUs for spot in one pool, whole, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// GPUs that spot may hold in all, held ones included; where spot at will is apart, without that.
    pub quota_gpus: u64,
    /// GPUs that its pods hold now.
    pub held_gpus: u64,
    /// The same of spot at will, where it is apart.
    pub at_will: AtWill,
    /// GPUs on nodes that can take pods.
    pub allocatable_gpus: u64,
    /// Ground of the quota. One of 0 without an offer is for want of one, and no decision.
    pub basis: Basis,
    /// Whether nothing new is promised: the quota is what spot holds, where it holds it.
    pub is_held: bool,
}

/// GPUs for spot at will in one pool; none where it is not apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtWill {
    /// GPUs that it may hold, held ones included.
    pub quota_gpus: u64,
    /// GPUs that its pods hold now.
    pub held_gpus: u64,
}

/// Which part of spot an amount is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All of spot, or what is promised where spot at will is apart.
    Main,
    /// Spot at will.
    AtWill,
}

impl Amounts {
    /// GPUs that a part may hold. Never more than nodes have: Kueue would admit what no node can take (its #4782).
    #[must_use]
    pub fn quota(&self, part: Part) -> u64 {
        let quota_gpus = match part {
            Part::Main => self.quota_gpus,
            Part::AtWill => self.at_will.quota_gpus,
        };
        quota_gpus.min(self.allocatable_gpus)
    }

    const fn held(&self, part: Part) -> u64 {
        match part {
            Part::Main => self.held_gpus,
            Part::AtWill => self.at_will.held_gpus,
        }
    }
}

/// Quota to publish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Whether nodes and quotas are known. Before, nothing is written, and nothing renewed.
    pub is_known: bool,
    /// Amounts by GPU model.
    pub by_model: BTreeMap<GpuModel, Amounts>,
    /// GPUs that spot holds in pools that promise nothing new, by namespace.
    pub held_by_namespace: BTreeMap<(String, Part), u64>,
    /// Why this is less than the quota: that Headroom does not answer. Empty where it is the quota.
    pub lowered_because: String,
}

impl Wanted {
    /// By flavor. One of no pool gets 0.
    #[must_use]
    pub fn by_flavor(&self, part: Part, flavors: &BTreeMap<String, GpuModel>) -> Gpus {
        self.of_flavors(flavors, |amounts| amounts.quota(part))
    }

    /// GPUs that spot holds, by flavor.
    #[must_use]
    pub fn held(&self, part: Part, flavors: &BTreeMap<String, GpuModel>) -> Gpus {
        self.of_flavors(flavors, |amounts| amounts.held(part))
    }

    /// All pools together: a `ResourceQuota` counts a resource by its name, for all models together.
    #[must_use]
    pub fn in_all(&self, part: Part) -> u64 {
        self.by_model.values().map(|amounts| amounts.quota(part)).sum()
    }

    /// GPUs that namespaces share: those of pools that promise something new.
    #[must_use]
    pub fn shared(&self, part: Part) -> u64 {
        self.by_model.values().filter(|amounts| !amounts.is_held).map(|amounts| amounts.quota(part)).sum()
    }

    /// GPUs of a namespace beside its share: those that it holds where nothing new is promised.
    #[must_use]
    pub fn held_in(&self, namespace: &str, part: Part) -> u64 {
        self.held_by_namespace.get(&(namespace.to_owned(), part)).copied().unwrap_or(0)
    }

    /// Ground of the amount of each flavor.
    #[must_use]
    pub fn basis(&self, flavors: &BTreeMap<String, GpuModel>) -> BTreeMap<String, Basis> {
        let of = |model| self.by_model.get(model).map_or(Basis::Missing, |amounts| amounts.basis);
        flavors.iter().map(|(flavor, model)| (flavor.clone(), of(model))).collect()
    }

    /// Ground of the amount of all pools together: one old offer keeps their sum from being raised.
    #[must_use]
    pub fn basis_in_all(&self) -> Basis {
        let bases = || self.by_model.values().map(|amounts| amounts.basis);
        if bases().any(|basis| basis == Basis::Old) { Basis::Old } else { bases().max().unwrap_or_default() }
    }

    fn of_flavors(&self, flavors: &BTreeMap<String, GpuModel>, of: impl Fn(&Amounts) -> u64) -> Gpus {
        flavors.iter().map(|(flavor, model)| (flavor.clone(), self.by_model.get(model).map_or(0, &of))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const RULES: Rules = Rules {
        least_change_gpus: 2,
        least_change_ratio: 0.1,
        raise_after: Duration::from_mins(2),
        looks_within: Duration::from_mins(1),
    };

    #[test]
    fn flavors_are_set_to_0_and_not_dropped_and_no_more_is_published_than_nodes_have() {
        let model = |name| GpuModel::parse(name).unwrap();
        let amounts = Amounts { quota_gpus: 90, held_gpus: 8, allocatable_gpus: 64, ..Amounts::default() };
        let wanted = Wanted { is_known: true, by_model: [(model("A100"), amounts)].into(), ..Wanted::default() };
        let flavors = "a=A100,h=H800".parse::<crate::config::Flavors>().unwrap().0;
        let by_flavor = wanted.by_flavor(Part::Main, &flavors);
        assert_eq!(by_flavor, [("a".to_owned(), 64), ("h".to_owned(), 0)].into());
        assert_eq!((wanted.in_all(Part::Main), wanted.held(Part::Main, &flavors)["a"]), (64, 8));
        let published = [("a".to_owned(), 64), ("old".to_owned(), 12)].into();
        let plan = Planner::new(RULES).plan(Instant::now(), &by_flavor, |_| Basis::Known, &published);
        assert_eq!(plan.gpus["old"], 0);
        let texts: Vec<String> = plan.changes.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["h: 0, none before", "old: 12 to 0"]);
    }
}
