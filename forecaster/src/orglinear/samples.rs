//! Batches of windows with what came after them.

use super::config::ZeroTargets;
use super::scaling::Scale;
use crate::model::ModelSpec;
use candle_core::{Device, Tensor};
use datasets::window;
use datasets::{HourFeatures, HourRange, Panel};
use std::borrow::Cow;
use vocab::{HorizonHours, HourStart};

/// Where samples come from.
pub struct Source<'a> {
    /// Demand of all series.
    pub panel: &'a Panel,
    /// Places in the panel of the series that are learned: the model numbers its series by their order here.
    pub learned: &'a [usize],
    /// In that order.
    pub scales: &'a [Scale],
    /// Hours that the model sees.
    pub lookback_hours: usize,
    /// Steps of a forecast, in hours.
    pub horizon: HorizonHours,
    /// Whether zeros are targets.
    pub zero_targets: ZeroTargets,
}

/// Windows of several issue times, every series that has one.
pub struct Batch<'a> {
    /// `[windows, lookback]`, scaled.
    pub inputs: Tensor,
    /// The series of each window, as the model numbers them.
    pub places: Vec<usize>,
    /// Calendar of each series.
    pub calendars: Vec<&'a [HourFeatures]>,
    /// Whether each hour of each window was measured.
    pub measured: Vec<Cow<'a, [bool]>>,
    /// `[windows, steps]`, scaled.
    pub targets: Tensor,
    /// 1 where the target counts, else 0; `[windows, steps]`.
    pub counted: Tensor,
    /// How many targets count.
    pub count: usize,
}

/// Places in the panel of the series that have a window with a measured target among these issue times. A model knows
/// no other: one that came too late for a whole window would be forecast from parameters that nothing has taught.
pub fn learned_series(panel: &Panel, issues: HourRange, spec: &ModelSpec) -> Vec<usize> {
    let is_learned = |place: &usize| {
        issues.iter().any(|issue| {
            let seen = window::at(panel, *place, issue, spec.least_hours(), spec.horizon).is_ok();
            let came = window::outcome(panel, *place, issue, spec.horizon).filter(|_| seen);
            came.is_some_and(|came| came.measured.contains(&true))
        })
    };
    (0..panel.series().len()).filter(is_learned).collect()
}

impl<'a> Source<'a> {
    /// `None` when no target of these issue times counts.
    pub fn batch(&self, issues: &[HourStart]) -> Result<Option<Batch<'a>>, candle_core::Error> {
        let (mut inputs, mut targets, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        let (mut places, mut calendars, mut measured) = (Vec::new(), Vec::new(), Vec::new());
        for &issue in issues {
            for (place, &in_panel) in self.learned.iter().enumerate() {
                let seen = window::at(self.panel, in_panel, issue, self.lookback_hours, self.horizon);
                let came = window::outcome(self.panel, in_panel, issue, self.horizon);
                if let (Ok(seen), Some(came)) = (seen, came) {
                    self.scales[place].scale_into(&seen.demand_gpus, &mut inputs);
                    self.scales[place].scale_into(came.demand_gpus, &mut targets);
                    counted.extend(came.demand_gpus.iter().zip(came.measured).map(|(gpus, measured)| {
                        let zero = *gpus == 0.0 && self.zero_targets == ZeroTargets::Masked;
                        if *measured && !zero { 1.0_f32 } else { 0.0 }
                    }));
                    places.push(place);
                    calendars.push(seen.targets);
                    measured.push(seen.measured);
                }
            }
        }
        let count = counted.iter().filter(|counts| **counts > 0.0).count();
        if count == 0 {
            return Ok(None);
        }
        let tensor = |values: Vec<f32>| Tensor::from_vec(values, (places.len(), self.horizon.steps()), &Device::Cpu);
        let (targets, counted) = (tensor(targets)?, tensor(counted)?);
        let inputs = Tensor::from_vec(inputs, (places.len(), self.lookback_hours), &Device::Cpu)?;
        Ok(Some(Batch { inputs, places, calendars, measured, targets, counted, count }))
    }
}
