//! Consumable capacity: the share of a device that a claim takes, by what it asks for and by the device's rules.

use super::devices::WHOLE_MILLI;
use super::milli;
use crate::cluster::dra::{DeviceBody, Policy};
use std::collections::BTreeMap;

/// Amounts that a capacity is handed out in, in thousandths of its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Steps {
    /// Any amount.
    Any,
    /// One of these, by size.
    Values(Vec<u128>),
    /// Least, most, and step between two.
    Range(u128, Option<u128>, Option<u128>),
}

/// A capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Capacity {
    all: u128,
    /// Of a request that states none; all of it where the device states none either.
    default: u128,
    steps: Steps,
}

/// Capacities of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacities {
    by_name: BTreeMap<String, Capacity>,
    /// Whether several claims may share the device.
    is_shared: bool,
}

impl Capacities {
    /// Of a device. One that is no quantity is left out.
    #[must_use]
    pub fn read(body: &DeviceBody) -> Self {
        let read = body.capacity.iter().filter_map(|(name, one)| {
            let all = milli(&one.value)?;
            let default = one.request_policy.default.as_deref().and_then(milli).unwrap_or(all);
            Some((name.clone(), Capacity { all, default, steps: steps(&one.request_policy) }))
        });
        Self { by_name: read.collect(), is_shared: body.allow_multiple_allocations }
    }

    /// Thousandths of the device that a request takes; `None` where the device cannot meet it.
    #[must_use]
    pub fn asked_milli(&self, requests: &BTreeMap<String, u128>) -> Option<u64> {
        let is_within = |(name, asked): (&String, &u128)| self.by_name.get(name).is_some_and(|one| *asked <= one.all);
        if !requests.iter().all(is_within) {
            return None;
        }
        if !self.is_shared {
            return Some(WHOLE_MILLI);
        }
        let mut most = 0;
        for (name, one) in &self.by_name {
            let taken = match requests.get(name) {
                None => one.default,
                Some(asked) => stepped(*asked, &one.steps)?,
            };
            if taken > one.all {
                return None;
            }
            most = most.max(share(taken, one.all));
        }
        // Without any capacity nothing bounds its shares: it counts whole.
        Some(if self.by_name.is_empty() { WHOLE_MILLI } else { most })
    }

    /// Thousandths of the device that an allocation took, as the scheduler recorded.
    #[must_use]
    pub fn consumed_milli(&self, consumed: &BTreeMap<String, String>) -> u64 {
        if !self.is_shared {
            return WHOLE_MILLI;
        }
        let shares =
            consumed.iter().filter_map(|(name, taken)| Some(share(milli(taken)?, self.by_name.get(name)?.all)));
        shares.max().unwrap_or(WHOLE_MILLI).min(WHOLE_MILLI)
    }
}

fn share(taken: u128, all: u128) -> u64 {
    if all == 0 {
        return 0;
    }
    u64::try_from(taken.saturating_mul(u128::from(WHOLE_MILLI)).div_ceil(all)).unwrap_or(u64::MAX)
}

fn steps(policy: &Policy) -> Steps {
    if let Some(values) = &policy.valid_values {
        let mut values: Vec<u128> = values.iter().filter_map(|value| milli(value)).collect();
        values.sort_unstable();
        return Steps::Values(values);
    }
    policy.valid_range.as_ref().map_or(Steps::Any, |range| {
        let of = |text: &Option<String>| text.as_deref().and_then(milli);
        Steps::Range(milli(&range.min).unwrap_or(0), of(&range.max), of(&range.step))
    })
}

/// The next amount that is handed out.
fn stepped(asked: u128, steps: &Steps) -> Option<u128> {
    match steps {
        Steps::Any => Some(asked),
        Steps::Values(values) => values.iter().find(|value| **value >= asked).copied(),
        Steps::Range(least, most, step) => {
            let over = asked.saturating_sub(*least);
            let over = step.filter(|step| *step > 0).map_or(over, |step| over.div_ceil(step) * step);
            let taken = least + over;
            most.is_none_or(|most| taken <= most).then_some(taken)
        }
    }
}
