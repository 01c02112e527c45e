//! Settings that are lists, with commas between their entries.

use super::values::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use vocab::GpuModel;

const WHOLE: u32 = 1_000;

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// Name of an object in an entry, by the rule of [`ObjectName`].
fn name_in(entry: &str, name: &str) -> Result<String, String> {
    let name: ObjectName = name.trim().parse().map_err(|fault| format!("{entry:?}: {fault}"))?;
    Ok(name.to_string())
}

fn joined(f: &mut fmt::Formatter<'_>, entries: impl Iterator<Item = String>) -> fmt::Result {
    f.write_str(&entries.collect::<Vec<_>>().join(","))
}

/// Priority classes of spot pods; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpotClasses(BTreeSet<String>);

impl SpotClasses {
    /// Names of the classes.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.0
    }
}

impl Default for SpotClasses {
    fn default() -> Self {
        Self(["spot".to_owned()].into())
    }
}

impl FromStr for SpotClasses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: BTreeSet<String> = entries(text).map(|entry| name_in(entry, entry)).collect::<Result<_, _>>()?;
        if names.is_empty() {
            return Err("it names no priority class: write the classes of spot pods, such as spot".to_owned());
        }
        Ok(Self(names))
    }
}

impl fmt::Display for SpotClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, self.0.iter().cloned())
    }
}

/// Priority classes of spot pods at will; none where all of spot is counted together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AtWillClasses(pub BTreeSet<String>);

impl FromStr for AtWillClasses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        entries(text).map(|entry| name_in(entry, entry)).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for AtWillClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, self.0.iter().cloned())
    }
}

/// GPU models by flavor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flavors(pub BTreeMap<String, GpuModel>);

impl FromStr for Flavors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut flavors, mut models) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries(text) {
            let (flavor, model) = entry.split_once('=').ok_or_else(|| format!("{entry:?}: write FLAVOR=GPU_MODEL"))?;
            let model = GpuModel::parse(model.trim()).map_err(|fault| format!("{entry:?}: {fault}"))?;
            // Two flavors of one pool would hand its quota out twice.
            if !models.insert(model.clone()) {
                return Err(format!("{entry:?}: another flavor has this GPU model"));
            }
            if flavors.insert(name_in(entry, flavor)?, model).is_some() {
                return Err(format!("{entry:?}: the flavor is listed twice"));
            }
        }
        Ok(Self(flavors))
    }
}

impl fmt::Display for Flavors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, self.0.iter().map(|(flavor, model)| format!("{flavor}={model}")))
    }
}

/// Classes of devices that are GPUs, with the GPU model of those that state one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceClasses(pub BTreeMap<String, Option<GpuModel>>);

impl FromStr for DeviceClasses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut classes = BTreeMap::new();
        for entry in entries(text) {
            let (class, model) = entry.split_once('=').map_or((entry, None), |(class, model)| (class, Some(model)));
            let model = model.map(|model| GpuModel::parse(model.trim())).transpose();
            let model = model.map_err(|fault| format!("{entry:?}: {fault}: write CLASS or CLASS=GPU_MODEL"))?;
            if classes.insert(name_in(entry, class)?, model).is_some() {
                return Err(format!("{entry:?}: the class is listed twice"));
            }
        }
        Ok(Self(classes))
    }
}

impl fmt::Display for DeviceClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(
            f,
            self.0.iter().map(|(class, model)| match model {
                Some(model) => format!("{class}={model}"),
                None => class.clone(),
            }),
        )
    }
}

/// Shares of a pool's quota by namespace, in thousandths; together at most 1,000.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares(pub BTreeMap<String, u32>);

impl FromStr for Shares {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut shares = BTreeMap::new();
        for entry in entries(text) {
            let wrong = || format!("{entry:?}: write NAMESPACE=SHARE, a share between 0 and 1");
            let (namespace, share) = entry.split_once('=').ok_or_else(wrong)?;
            let share: f64 = share.trim().parse().map_err(|_| wrong())?;
            if !(0.0..=1.0).contains(&share) {
                return Err(wrong());
            }
            if shares.insert(name_in(entry, namespace)?, (share * f64::from(WHOLE)).floor() as u32).is_some() {
                return Err(format!("{entry:?}: the namespace is listed twice"));
            }
        }
        let sum: u32 = shares.values().sum();
        if sum > WHOLE {
            return Err(format!("the shares add up to {}; the limit is 1", f64::from(sum) / f64::from(WHOLE)));
        }
        Ok(Self(shares))
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |share: u32| f64::from(share) / f64::from(WHOLE);
        joined(f, self.0.iter().map(|(namespace, part)| format!("{namespace}={}", share(*part))))
    }
}
