//! Settings that are lists.

use std::collections::{BTreeMap, BTreeSet};
use vocab::GpuModel;

/// Thousandths of a pool's quota, by namespace.
pub type Shares = BTreeMap<String, u32>;

const WHOLE: u32 = 1_000;

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// The priority classes of spot pods.
#[must_use]
pub fn spot_classes(text: &str) -> BTreeSet<String> {
    entries(text).map(str::to_owned).collect()
}

/// GPU models by flavor.
///
/// # Errors
/// An entry is not `FLAVOR=GPU_MODEL`, or a flavor or model stands there twice.
pub fn flavors(text: &str) -> Result<BTreeMap<String, GpuModel>, String> {
    let (mut flavors, mut models) = (BTreeMap::new(), BTreeSet::new());
    for entry in entries(text) {
        let (flavor, model) = entry.split_once('=').ok_or_else(|| format!("{entry:?}: write FLAVOR=GPU_MODEL"))?;
        let model = GpuModel::parse(model.trim()).map_err(|fault| format!("{entry:?}: {fault}"))?;
        // Two flavors of one pool would hand its quota out twice.
        if !models.insert(model.clone()) {
            return Err(format!("{entry:?}: another flavor has this GPU model"));
        }
        if flavors.insert(flavor.trim().to_owned(), model).is_some() {
            return Err(format!("{entry:?}: the flavor stands there twice"));
        }
    }
    Ok(flavors)
}

/// Shares of a pool's quota by namespace, in thousandths.
///
/// # Errors
/// An entry is not `NAMESPACE=SHARE`, a namespace stands there twice, or shares are above 1 together.
pub fn shares(text: &str) -> Result<Shares, String> {
    let mut shares = Shares::new();
    for entry in entries(text) {
        let wrong = || format!("{entry:?}: write NAMESPACE=SHARE, a share between 0 and 1");
        let (namespace, share) = entry.split_once('=').ok_or_else(wrong)?;
        let share: f64 = share.trim().parse().map_err(|_| wrong())?;
        if !(0.0..=1.0).contains(&share) {
            return Err(wrong());
        }
        if shares.insert(namespace.trim().to_owned(), (share * f64::from(WHOLE)).floor() as u32).is_some() {
            return Err(format!("{entry:?}: the namespace stands there twice"));
        }
    }
    if shares.values().sum::<u32>() > WHOLE {
        return Err("the shares are above 1 together: quota would be handed out twice".to_owned());
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_one_flavor_and_shares_are_at_most_all() {
        assert_eq!(flavors("a=A100, b=H800").unwrap().len(), 2);
        assert!(flavors("a=A100,b=A100").unwrap_err().contains("another flavor"));
        assert!(flavors("a").unwrap_err().contains("FLAVOR=GPU_MODEL"));
        assert_eq!(shares("x=0.5,y=0.25").unwrap().values().sum::<u32>(), 750);
        assert!(shares("x=0.7,y=0.7").unwrap_err().contains("handed out twice"));
        assert!(shares("x=2").unwrap_err().contains("NAMESPACE=SHARE"));
        assert_eq!(spot_classes(" spot, batch ,").len(), 2);
    }
}
