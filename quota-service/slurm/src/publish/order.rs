//! The order of writes. Pure.

use crate::limits::{ByName, Tres};

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// QOS or account.
    pub name: String,
    /// Limits that it gets.
    pub limits: Tres,
}

/// Writes that lead from what stands to what is planned: all that lower, and first limits, before any that raise. Side by side,
/// one QOS gets what another one gives up; were it the other way round, both would have it for a moment.
#[must_use]
pub fn steps(stands: &ByName, planned: &ByName) -> Vec<Step> {
    let mut steps = Vec::new();
    for raises in [false, true] {
        for (name, wanted) in planned {
            let is = |tres: &String| stands.get(name).and_then(|limits| limits.get(tres)).copied();
            let changes = wanted.iter().filter(|(tres, gpus)| match is(tres) {
                // Without a limit there is no bound.
                None => !raises,
                Some(stands) => (stands > **gpus && !raises) || (stands < **gpus && raises),
            });
            let limits: Tres = changes.map(|(tres, gpus)| (tres.clone(), *gpus)).collect();
            if !limits.is_empty() {
                steps.push(Step { name: name.clone(), limits });
            }
        }
    }
    steps
}

/// The plan without its raises: first limits, and lower ones.
#[must_use]
pub fn lower_alone(stands: &ByName, mut planned: ByName) -> ByName {
    for (name, limits) in &mut planned {
        let is = |tres: &String| stands.get(name).and_then(|limits| limits.get(tres)).copied();
        limits.retain(|tres, gpus| is(tres).is_none_or(|stands| *gpus <= stands));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(list: &[(&str, &str, u64)]) -> ByName {
        let mut all = ByName::new();
        for (name, tres, gpus) in list {
            all.entry((*name).to_owned()).or_default().insert((*tres).to_owned(), *gpus);
        }
        all
    }

    #[test]
    fn every_lowering_and_every_first_limit_comes_before_a_raise() {
        let stands = limits(&[("a", "x", 4), ("b", "x", 9), ("b", "y", 1)]);
        let planned = limits(&[("a", "x", 8), ("b", "x", 5), ("b", "y", 3), ("c", "x", 2)]);
        let found: Vec<String> =
            steps(&stands, &planned).iter().map(|step| format!("{} {:?}", step.name, step.limits)).collect();
        assert_eq!(found, ["b {\"x\": 5}", "c {\"x\": 2}", "a {\"x\": 8}", "b {\"y\": 3}"]);
        assert!(steps(&stands, &stands).is_empty());
    }

    #[test]
    fn without_raises_first_limits_and_lower_ones_stay() {
        let stands = limits(&[("a", "gres/gpu", 5), ("b", "gres/gpu", 5)]);
        let planned = limits(&[("a", "gres/gpu", 4), ("a", "gres/gpu:x", 9), ("b", "gres/gpu", 6)]);
        let lower = lower_alone(&stands, planned);
        assert_eq!(steps(&stands, &lower).len(), 1);
        assert_eq!(lower["a"], limits(&[("a", "gres/gpu", 4), ("a", "gres/gpu:x", 9)])["a"]);
        assert!(lower["b"].is_empty());
    }
}
