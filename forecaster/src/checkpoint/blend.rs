//! Trees and networks of a blend as tensors.

use super::CheckpointError;
use super::tensors::Payload;
use crate::blend::{Blend, FeatureGroup, Parts, Recipe};
use crate::network::{Member, Network, Sizes};
use crate::rows::{OUTPUTS, StepGroups};
use vocab::{HorizonHours, SeriesId};

const SERIES_SCALE: &str = "series_scale";
const SHARE: &str = "network_share";
const STANDARD: &str = "network_standard";
/// Number of the group of features that was left out, from 1; 0 is none.
const WITHOUT: &str = "left_out";
const EPOCHS: &str = "network_epochs";
/// The parameter of a network with a row for each class of series.
const FIRST_SERIES: &str = "first_series";
/// The last step of each group, from 1; absent where each step stands alone.
const GROUPS: &str = "step_groups";
/// 1 where days that depart from the week have features; absent where they have none.
const DAYS_OFF: &str = "days_off";
/// 1 for each series that came back after a pause; absent where none did.
const RETURNED: &str = "returned";
/// Steps from one that is answered to the next, of each group; absent where every step is.
const STRIDES: &str = "step_strides";

fn without(number: &[f64]) -> Option<FeatureGroup> {
    FeatureGroup::ALL.into_iter().zip(1..).find(|(_, place)| f64::from(*place) == number[0]).map(|(group, _)| group)
}

fn member_name(member: usize, parameter: &str) -> String {
    format!("network.{member}.{parameter}")
}

impl Payload {
    /// Writes the parts, and answers their series in the order of their scales.
    ///
    /// `series_scale` `[series]`, `left_out` `[1]`, `network_share` `[5]`, the forests, and of the networks `network_standard` `[amounts, 2]`
    /// (mean and deviation), `network_epochs` `[members]` and the parameters of each, `network.MEMBER.NAME`; `step_groups` and
    /// `step_strides` `[groups]` where steps are grouped, `days_off` `[1]` where days that depart from the week have features, and `returned` `[series]` where any came back after a pause.
    pub fn put_blend(&mut self, parts: Parts) -> Vec<SeriesId> {
        let (series, scales): (Vec<SeriesId>, Vec<f64>) = parts.series.into_iter().unzip();
        if !parts.returned.is_empty() {
            let returned = series.iter().map(|one| f64::from(u8::from(parts.returned.contains(one)))).collect();
            self.put_f64(RETURNED, &[series.len()], returned);
        }
        self.put_f64(SERIES_SCALE, &[scales.len()], scales);
        self.put_f64(SHARE, &[OUTPUTS], parts.network_share.to_vec());
        let left_out = FeatureGroup::ALL.into_iter().position(|group| Some(group) == parts.without);
        self.put_f64(WITHOUT, &[1], vec![left_out.map_or(0.0, |place| place as f64 + 1.0)]);
        if parts.days_off {
            self.put_f64(DAYS_OFF, &[1], vec![1.0]);
        }
        if !parts.step_groups.is_empty() {
            let ends: Vec<f64> = parts.step_groups.ends().map(|end| end as f64).collect();
            self.put_f64(GROUPS, &[ends.len()], ends);
            let strides: Vec<f64> = parts.step_groups.strides().iter().map(|stride| *stride as f64).collect();
            self.put_f64(STRIDES, &[strides.len()], strides);
        }
        if let Some(forests) = &parts.forests {
            self.put_forests(forests);
        }
        if let Some(network) = &parts.network {
            self.put_networks(network);
        }
        series
    }

    fn put_networks(&mut self, network: &Network) {
        self.put_f32(STANDARD, &[network.standard.len(), 2], network.standard.concat());
        self.put_f64(EPOCHS, &[network.epochs.len()], network.epochs.iter().map(|epochs| *epochs as f64).collect());
        for (number, member) in network.members.iter().enumerate() {
            for ((name, shape), values) in network.sizes.shapes().zip(member.parameters()) {
                self.put_f32(&member_name(number, name), &shape, values.clone());
            }
        }
    }

    /// Reads the default model.
    pub fn blend(
        &self,
        recipe: Recipe,
        series: Vec<SeriesId>,
        horizon: HorizonHours,
        lookback_hours: usize,
    ) -> Result<Blend, CheckpointError> {
        let scales = self.f64s(SERIES_SCALE, &[series.len()])?;
        let shares = self.f64s(SHARE, &[OUTPUTS])?;
        let step_groups = self.step_groups(horizon)?;
        let days_off = self.has(DAYS_OFF);
        let (columns, sizes) = Blend::shape_of((lookback_hours, horizon), &step_groups, days_off, series.len());
        let sizes = self.with_classes(sizes);
        let returned = self.has(RETURNED).then(|| self.f64s(RETURNED, &[series.len()])).transpose()?;
        let returned = series.iter().zip(returned.unwrap_or_default()).filter(|(_, returned)| *returned > 0.0);
        let returned = returned.map(|(one, _)| one.clone()).collect();
        let (parts, is_grouped) = (step_groups.parts(horizon), !step_groups.is_empty());
        Ok(Blend::from_parts(Parts {
            horizon,
            lookback_hours,
            step_groups,
            without: without(&self.f64s(WITHOUT, &[1])?),
            days_off,
            series: series.into_iter().zip(scales).collect(),
            forests: (recipe != Recipe::Network).then(|| self.forests(parts, columns, is_grouped)).transpose()?,
            network: (recipe != Recipe::Trees).then(|| self.networks(sizes)).transpose()?,
            network_share: std::array::from_fn(|output| shares[output]),
            returned,
        }))
    }

    /// A network of an older version has weights for each series, however many there are.
    fn with_classes(&self, sizes: Sizes) -> Sizes {
        let rows = self.shape(&member_name(0, FIRST_SERIES)).and_then(|shape| shape.first().copied());
        if rows == Some(sizes.series) { Sizes { classes: sizes.series, ..sizes } } else { sizes }
    }

    /// Groups that cover all steps of the horizon once.
    fn step_groups(&self, horizon: HorizonHours) -> Result<StepGroups, CheckpointError> {
        if !self.has(GROUPS) {
            return Ok(StepGroups::default());
        }
        let ends: Vec<usize> = self.f64_row(GROUPS)?.into_iter().map(|end| end as usize).collect();
        if ends.last() != Some(&horizon.steps()) || ends[0] == 0 || !ends.is_sorted_by(|one, next| one < next) {
            let (expected, found) = (vec![horizon.steps()], ends);
            return Err(CheckpointError::OtherShape { name: GROUPS.to_owned(), expected, found });
        }
        let groups = StepGroups::from_ends(&ends);
        if !self.has(STRIDES) {
            return Ok(groups);
        }
        let strides: Vec<usize> =
            self.f64s(STRIDES, &[ends.len()])?.into_iter().map(|stride| (stride as usize).max(1)).collect();
        Ok(groups.with_strides(strides))
    }

    fn networks(&self, sizes: Sizes) -> Result<Network, CheckpointError> {
        let epochs: Vec<usize> = self.f64_row(EPOCHS)?.into_iter().map(|epochs| epochs as usize).collect();
        let member = |number: usize| {
            let parameters = sizes.shapes().map(|(name, shape)| self.f32s(&member_name(number, name), &shape));
            Ok(Member::new(sizes, parameters.collect::<Result<_, CheckpointError>>()?)?)
        };
        let members = (0..epochs.len()).map(member).collect::<Result<_, CheckpointError>>()?;
        let standard = self.f32_rows(STANDARD)?;
        if standard.len() != sizes.amounts() || epochs.is_empty() {
            let (expected, found) = (vec![sizes.amounts(), 2], vec![standard.len(), 2]);
            return Err(CheckpointError::OtherShape { name: STANDARD.to_owned(), expected, found });
        }
        Ok(Network { standard, members, epochs, sizes })
    }
}
