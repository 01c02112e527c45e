//! Which jobs were running when the window begins.
//!
//! The trace begins with thousands of jobs at its second 0: the services that were running. So do synthetic ones, since a
//! window that begins empty would fill for weeks. How likely a job is to be among them follows from its duration: just so
//! that, on average, as many GPUs of a model are asked for at the end of the window as at its beginning.

use super::draw::Draft;
use super::published::{LONGEST_S, MODELS};

/// Bins of durations, even in the logarithm from [`SHORTEST_S`] to the longest.
const BINS: usize = 48;
const SHORTEST_S: f64 = 600.0;
/// Where jobs longer than the window exist, as many of them stand at its beginning as bring mean demand near this share of
/// the fleet; the others begin inside the window and stay.
const WANTED_LOAD: f64 = 0.75;

/// The chance of standing at the beginning, by model and duration.
#[derive(Debug, Clone)]
pub struct Standing {
    /// By class, model and bin.
    chance: [[[f64; BINS]; MODELS.len()]; 2],
}

impl Standing {
    /// From the jobs of all organizations.
    #[must_use]
    pub fn of<'a>(drafts: impl Iterator<Item = &'a Draft>, fleets: &[u32; MODELS.len()], window_s: f64) -> Self {
        let mut gpus = [[[0.0; BINS]; MODELS.len()]; 2];
        for draft in drafts {
            gpus[usize::from(draft.spot)][usize::from(draft.model)][bin(draft.duration_s)] += draft.gpus();
        }
        let [hp, spot] = gpus;
        let of_model = |model: usize| {
            let wanted = WANTED_LOAD * f64::from(fleets[model]);
            let load = |longest: f64| load(&hp[model], &chances(&hp[model], longest, window_s), window_s);
            let tried = (0..=20).map(|step| f64::from(step) / 20.0);
            let best = tried.min_by(|a, b| (load(*a) - wanted).abs().total_cmp(&(load(*b) - wanted).abs()));
            let longest = best.expect("twenty-one values");
            (chances(&hp[model], longest, window_s), chances(&spot[model], longest, window_s))
        };
        let of_models: [_; MODELS.len()] = std::array::from_fn(of_model);
        Self { chance: [of_models.map(|(hp, _)| hp), of_models.map(|(_, spot)| spot)] }
    }

    #[must_use]
    pub fn chance(&self, draft: &Draft) -> f64 {
        self.chance[usize::from(draft.spot)][usize::from(draft.model)][bin(draft.duration_s)]
    }
}

fn bin(duration_s: f64) -> usize {
    let place = (duration_s / SHORTEST_S).ln() / (f64::from(LONGEST_S) / SHORTEST_S).ln() * BINS as f64;
    place.clamp(0.0, (BINS - 1) as f64) as usize
}

/// From and to of a bin, in seconds.
fn edges(bin: usize) -> (f64, f64) {
    let edge = |place: usize| SHORTEST_S * (f64::from(LONGEST_S) / SHORTEST_S).powf(place as f64 / BINS as f64);
    (if bin == 0 { 0.0 } else { edge(bin) }, edge(bin + 1))
}

/// Jobs that arrived and still run have to balance the ends of jobs that stood at the beginning. A job
/// that arrives runs at time t with chance t / window if it is longer than t: so those that end at t, `chance × gpus`, are as
/// many as the longer ones arriving meanwhile.
fn chances(gpus: &[f64; BINS], of_longest: f64, window_s: f64) -> [f64; BINS] {
    let mut chance = [of_longest; BINS];
    let mut arriving = 0.0;
    for bin in (0..BINS).rev() {
        let (from, to) = edges(bin);
        let width = (to - from) / window_s;
        if from < window_s && gpus[bin] > 0.0 {
            chance[bin] = ((arriving + gpus[bin] / 2.0) * width / (gpus[bin] * (1.0 + width / 2.0))).min(1.0);
        }
        arriving += (1.0 - chance[bin]) * gpus[bin];
    }
    chance
}

/// Mean GPUs asked for over the window.
fn load(gpus: &[f64; BINS], chance: &[f64; BINS], window_s: f64) -> f64 {
    let of = |bin: usize| {
        let (from, to) = edges(bin);
        let length = f64::midpoint(from, to) / window_s;
        let arrives = if length < 1.0 { length - length * length / 2.0 } else { 0.5 };
        gpus[bin] * (chance[bin] * length.min(1.0) + (1.0 - chance[bin]) * arrives)
    };
    (0..BINS).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_gpus_are_asked_for_at_the_end_of_the_window_as_at_its_beginning() {
        // As many jobs in every bin: durations from minutes to half a year, even in the logarithm.
        let gpus = [100.0; BINS];
        let window_s = 35.0 * f64::from(crate::synthetic::gfs::DAY_S);
        for of_longest in [0.0, 0.5, 1.0] {
            let chance = chances(&gpus, of_longest, window_s);
            let length = |bin: usize| f64::midpoint(edges(bin).0, edges(bin).1) / window_s;
            let at_start: f64 = (0..BINS).map(|bin| gpus[bin] * chance[bin]).sum();
            let stays = |bin: usize| if length(bin) > 1.0 { chance[bin] } else { 0.0 };
            let at_end: f64 =
                (0..BINS).map(|bin| gpus[bin] * (stays(bin) + (1.0 - chance[bin]) * length(bin).min(1.0))).sum();
            // To the width of a bin, over which chance is one number.
            assert!((at_end / at_start - 1.0).abs() < 0.1, "{of_longest}: {at_start} and {at_end}");
        }
    }

    #[test]
    fn the_more_of_the_longest_stand_at_the_beginning_the_higher_the_load() {
        let (gpus, window_s) = ([100.0; BINS], 35.0 * f64::from(crate::synthetic::gfs::DAY_S));
        let load = |longest| load(&gpus, &chances(&gpus, longest, window_s), window_s);
        assert!(load(0.0) < load(0.5) && load(0.5) < load(1.0));
    }
}
