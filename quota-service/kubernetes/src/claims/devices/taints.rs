//! Taints of devices, by their drivers and by rules.

use super::{DeviceName, Inventory};
use crate::cluster::dra::{Taint, TaintRuleSpec, TaintSelector, Toleration};
use std::collections::BTreeSet;
use vocab::NodeId;

/// A taint of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    selector: TaintSelector,
    taint: Taint,
}

pub(super) fn is_keeping_off(effect: &str) -> bool {
    // Effects that are not known have to be read as none.
    matches!(effect, "NoSchedule" | "NoExecute")
}

impl Inventory {
    /// Changes with taints, on which estimates for all devices of a node rest.
    #[must_use]
    pub const fn taints_version(&self) -> u64 {
        self.taints_version
    }

    /// Whether new claims may not have a device, unless they tolerate its taints.
    #[must_use]
    pub fn is_tainted(&self, name: &DeviceName) -> bool {
        self.keeps_off(name, &[])
    }

    /// Whether a device has a taint that none of these tolerates.
    #[must_use]
    pub fn keeps_off(&self, name: &DeviceName, tolerations: &[Toleration]) -> bool {
        let matches = |rule: &&Rule| {
            let selector = &rule.selector;
            let is = |wanted: &Option<String>, own: &String| wanted.as_ref().is_none_or(|wanted| wanted == own);
            let in_class = selector
                .device_class_name
                .as_ref()
                .is_none_or(|class| self.members.get(name).is_some_and(|classes| classes.contains(class)));
            is(&selector.driver, &name.pool.0)
                && is(&selector.pool, &name.pool.1)
                && is(&selector.device, &name.device)
                && in_class
        };
        let own = self.device(name).into_iter().flat_map(|device| &device.taints);
        let by_rules = self.rules.values().filter(matches).map(|rule| &rule.taint);
        own.chain(by_rules).any(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
    }

    /// A rule that taints devices is there, or has gone. Answers the nodes whose GPUs may have changed.
    pub fn set_rule(&mut self, name: &str, spec: Option<&TaintRuleSpec>) -> BTreeSet<NodeId> {
        let keeps_off = |spec: &&TaintRuleSpec| is_keeping_off(&spec.taint.effect);
        let rule =
            |spec: &TaintRuleSpec| Some(Rule { selector: spec.device_selector.clone()?, taint: spec.taint.clone() });
        let now_is = spec.filter(keeps_off).and_then(rule);
        self.taints_version += u64::from(self.rules.get(name) != now_is.as_ref());
        match now_is {
            Some(rule) => self.rules.insert(name.to_owned(), rule),
            None => self.rules.remove(name),
        };
        self.nodes()
    }
}
