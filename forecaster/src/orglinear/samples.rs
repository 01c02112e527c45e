//! Batches of windows with what came after them.

use super::config::ZeroTargets;
use super::scaling::Scale;
use candle_core::{Device, Tensor};
use datasets::window;
use datasets::{HourFeatures, Panel};
use vocab::{HorizonHours, HourStart};

/// Where samples come from.
pub struct Source<'a> {
    pub panel: &'a Panel,
    pub scales: &'a [Scale],
    pub lookback_hours: usize,
    pub horizon: HorizonHours,
    pub zero_targets: ZeroTargets,
}

/// Windows of several issue times, every series that has one.
pub struct Batch<'a> {
    /// `[windows, lookback]`, scaled.
    pub inputs: Tensor,
    /// The series of each window.
    pub places: Vec<usize>,
    pub calendars: Vec<&'a [HourFeatures]>,
    /// `[windows, steps]`, scaled.
    pub targets: Tensor,
    /// 1 where the target counts, else 0; `[windows, steps]`.
    pub counted: Tensor,
    /// How many targets count.
    pub count: usize,
}

impl<'a> Source<'a> {
    /// `None` when no target of these issue times counts.
    pub fn batch(&self, issues: &[HourStart]) -> Result<Option<Batch<'a>>, candle_core::Error> {
        let (mut inputs, mut targets, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        let (mut places, mut calendars) = (Vec::new(), Vec::new());
        for &issue in issues {
            for place in 0..self.panel.series().len() {
                let seen = window::at(self.panel, place, issue, self.lookback_hours, self.horizon);
                let came = window::outcome(self.panel, place, issue, self.horizon);
                if let (Ok(seen), Some(came)) = (seen, came) {
                    self.scales[place].scale_into(seen.demand_gpus, &mut inputs);
                    self.scales[place].scale_into(came.demand_gpus, &mut targets);
                    counted.extend(came.demand_gpus.iter().zip(came.measured).map(|(gpus, measured)| {
                        let zero = *gpus == 0.0 && self.zero_targets == ZeroTargets::Masked;
                        if *measured && !zero { 1.0_f32 } else { 0.0 }
                    }));
                    places.push(place);
                    calendars.push(seen.targets);
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
        Ok(Some(Batch { inputs, places, calendars, targets, counted, count }))
    }
}
